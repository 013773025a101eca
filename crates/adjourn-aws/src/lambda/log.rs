//! The log of a function: one JSON object a line, each with the invocation's request id and, where there is one, the job's.
//!
//! A layer of our own, since a job runs in a task that is outside of the invocation's span, and its lines need the request id
//! all the same. A function runs one invocation at a time, so one cell holds it.

use std::{
    fmt,
    io::Write as _,
    sync::{Mutex, PoisonError},
};

use adjourn_worker::{Clock as _, SystemClock};
use serde_json::{Map, Value};
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{
    EnvFilter, Layer,
    layer::{Context, SubscriberExt as _},
    registry::LookupSpan,
    util::SubscriberInitExt as _,
};

use crate::Environment;

static REQUEST_ID: Mutex<String> = Mutex::new(String::new());

/// Starts the log, once for the process. `RUST_LOG` says what is logged, else `AWS_LAMBDA_LOG_LEVEL`, else `info`.
pub fn start(environment: &Environment) {
    let wanted = environment
        .get("RUST_LOG")
        .or_else(|| environment.get("AWS_LAMBDA_LOG_LEVEL"))
        .unwrap_or("info");
    let filter = EnvFilter::try_new(wanted).unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = JsonLines { write: to_stdout };
    if tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .try_init()
        .is_err()
    {
        tracing::warn!("a log was started already; this process keeps it");
    }
}

/// The lines from now on belong to this invocation.
pub(crate) fn invocation(request_id: &str) {
    *REQUEST_ID.lock().unwrap_or_else(PoisonError::into_inner) = request_id.to_string();
}

fn to_stdout(line: &str) {
    // A log that cannot be written is no reason to fail a job.
    let _ = std::io::stdout().lock().write_all(line.as_bytes());
}

struct JsonLines {
    write: fn(&str),
}

/// A span's fields, as they are put on each line within it.
struct Fields(Map<String, Value>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for JsonLines {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Map::new();
        attributes.record(&mut Collect(&mut fields));
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(Fields(fields));
        }
    }

    fn on_record(&self, id: &Id, record: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(Fields(fields)) = span.extensions_mut().get_mut()
        {
            record.record(&mut Collect(fields));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut line = Map::new();
        line.insert("timestamp".to_string(), Value::String(SystemClock.now().to_string()));
        line.insert(
            "level".to_string(),
            Value::String(level(event.metadata().level()).to_string()),
        );
        line.insert(
            "target".to_string(),
            Value::String(event.metadata().target().to_string()),
        );
        let request_id = REQUEST_ID.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if !request_id.is_empty() {
            line.insert("requestId".to_string(), Value::String(request_id));
        }
        if let Some(scope) = context.event_scope(event) {
            for span in scope.from_root() {
                if let Some(Fields(fields)) = span.extensions().get() {
                    line.extend(fields.clone());
                }
            }
        }
        event.record(&mut Collect(&mut line));
        let mut text = Value::Object(line).to_string();
        text.push('\n');
        (self.write)(&text);
    }
}

fn level(level: &Level) -> &'static str {
    match *level {
        Level::ERROR => "ERROR",
        Level::WARN => "WARN",
        Level::INFO => "INFO",
        Level::DEBUG => "DEBUG",
        Level::TRACE => "TRACE",
    }
}

/// Collects fields under names in camelCase.
struct Collect<'a>(&'a mut Map<String, Value>);

impl Collect<'_> {
    fn put(&mut self, field: &Field, value: Value) {
        let mut name = String::with_capacity(field.name().len());
        let mut raise = false;
        for letter in field.name().chars() {
            match letter {
                '_' => raise = !name.is_empty(),
                letter if raise => {
                    name.push(letter.to_ascii_uppercase());
                    raise = false;
                }
                letter => name.push(letter),
            }
        }
        self.0.insert(name, value);
    }
}

impl Visit for Collect<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, Value::String(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, Value::from(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, Value::from(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, Value::from(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, Value::from(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, Value::from(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static WRITTEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

    #[test]
    fn each_line_is_one_object_with_request_and_job() {
        let lines = JsonLines {
            write: |line| WRITTEN.lock().unwrap().push(line.to_string()),
        };
        let subscriber = tracing_subscriber::registry().with(lines);
        tracing::subscriber::with_default(subscriber, || {
            invocation("r-1");
            tracing::info!(count = 3, "outside");
            let span = tracing::info_span!("job", job_id = "j-7");
            span.in_scope(|| tracing::warn!(retry_at = %"soon", "two\nlines \"quoted\""));
            invocation("r-2");
            span.in_scope(|| tracing::error!(job_id = "its own", "later"));
        });
        let lines: Vec<Value> = WRITTEN
            .lock()
            .unwrap()
            .iter()
            .map(|line| {
                assert_eq!(line.matches('\n').count(), 1, "one line: {line:?}");
                serde_json::from_str(line).unwrap()
            })
            .collect();
        assert_eq!(
            (&lines[0]["requestId"], lines[0].get("jobId")),
            (&Value::from("r-1"), None)
        );
        assert_eq!(
            (&lines[0]["message"], &lines[0]["count"]),
            (&Value::from("outside"), &Value::from(3))
        );
        assert_eq!(
            (&lines[1]["jobId"], &lines[1]["level"]),
            (&Value::from("j-7"), &Value::from("WARN"))
        );
        assert_eq!(
            (&lines[1]["retryAt"], &lines[1]["message"]),
            (&Value::from("soon"), &Value::from("two\nlines \"quoted\""))
        );
        assert_eq!(
            (&lines[2]["requestId"], &lines[2]["jobId"]),
            (&Value::from("r-2"), &Value::from("its own"))
        );
        assert!(
            lines
                .iter()
                .all(|line| line["timestamp"].as_str().unwrap().ends_with('Z'))
        );
    }
}
