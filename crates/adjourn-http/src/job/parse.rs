//! Reads a job's JSON into an `HttpJob`, or finds everything that is wrong with it.

use base64::Engine;
use http::{HeaderName, HeaderValue, Method};
use serde_json::value::RawValue;

use super::{
    Body, HttpJob, JobError, JobPath, Priority, Scope,
    field::{self, Fields},
    problem::Problems,
};
use crate::{headers, nearest};

const MAX_NAME_BYTES: usize = 256;
const MAX_SCOPE_BYTES: usize = 1024;
const MAX_KEY_BYTES: usize = 255;

const FIELDS: [&str; 18] = [
    "provider",
    "method",
    "path",
    "query",
    "headers",
    "body",
    "bodyText",
    "bodyBase64",
    "id",
    "tenant",
    "run",
    "scope",
    "idempotencyKey",
    "notBefore",
    "deadline",
    "priority",
    "statusQuery",
    "revision",
];
const METHODS: [Method; 6] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
];

#[derive(Default)]
struct Draft {
    provider: Option<String>,
    method: Option<Method>,
    path: Option<JobPath>,
    query: Vec<(String, String)>,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Option<Body>,
    id: Option<String>,
    tenant: Option<String>,
    run: Option<String>,
    scope: Option<Scope>,
    own_key: Option<String>,
    not_before: Option<adjourn_core::Timestamp>,
    deadline: Option<adjourn_core::Timestamp>,
    priority: Priority,
    revision: u64,
}

pub(super) fn job(text: &str, max_bytes: usize) -> Result<HttpJob, JobError> {
    if text.len() > max_bytes {
        return Err(JobError::whole(format!(
            "found a job of {} bytes; allowed: at most {max_bytes}",
            text.len()
        )));
    }
    let Fields(fields) = serde_json::from_str(text).map_err(|error| JobError::whole(not_an_object(text, &error)))?;
    let mut problems = Problems::default();
    let mut draft = Draft::default();
    let mut seen: Vec<&str> = Vec::with_capacity(fields.len());
    for (name, raw) in &fields {
        if seen.contains(&name.as_str()) {
            problems.add(name, "stands there twice; allowed: once");
            continue;
        }
        seen.push(name);
        read(name, raw, &mut draft, &mut problems);
    }
    let bodies: Vec<&str> = seen
        .iter()
        .copied()
        .filter(|name| name.starts_with("body") && FIELDS.contains(name))
        .collect();
    if bodies.len() > 1 {
        problems.add(
            bodies.join(", "),
            "stand there together; allowed: at most one of body, bodyText and bodyBase64",
        );
    }
    for (name, allowed) in [
        ("provider", "a name in adjourn.toml"),
        ("method", &methods()),
        ("path", "begins with \"/\""),
    ] {
        if !seen.contains(&name) {
            problems.add(name, format!("is missing; it is required: {allowed}"));
        }
    }
    problems.into_result()?;
    let (Some(provider), Some(method), Some(path)) = (draft.provider, draft.method, draft.path) else {
        return Err(JobError::whole("provider, method and path are required".to_string()));
    };
    Ok(HttpJob {
        provider,
        method,
        path,
        query: draft.query,
        headers: draft.headers,
        body: draft.body,
        id: draft.id,
        tenant: draft.tenant,
        run: draft.run,
        scope: draft.scope,
        own_key: draft.own_key,
        not_before: draft.not_before,
        deadline: draft.deadline,
        priority: draft.priority,
        revision: draft.revision,
    })
}

fn read(name: &str, raw: &RawValue, draft: &mut Draft, problems: &mut Problems) {
    match name {
        "provider" => draft.provider = problems.keep(name, field::text(raw, MAX_NAME_BYTES)),
        "method" => draft.method = problems.keep(name, method(raw)),
        "path" => draft.path = problems.keep(name, path(raw)),
        "query" => draft.query = query(raw, problems),
        "headers" => draft.headers = own_headers(raw, problems),
        "body" => draft.body = Some(Body::Json(raw.get().to_string())),
        "bodyText" => draft.body = problems.keep(name, field::any_text(raw)).map(Body::Text),
        "bodyBase64" => draft.body = problems.keep(name, bytes(raw)).map(Body::Bytes),
        "id" => draft.id = problems.keep(name, field::text(raw, MAX_NAME_BYTES)),
        "tenant" => draft.tenant = problems.keep(name, field::text(raw, MAX_NAME_BYTES)),
        "run" => draft.run = problems.keep(name, field::text(raw, MAX_NAME_BYTES)),
        "scope" => draft.scope = problems.keep(name, scope(raw)),
        "idempotencyKey" => draft.own_key = problems.keep(name, key(raw)),
        "notBefore" => draft.not_before = problems.keep(name, field::time(raw)),
        "deadline" => draft.deadline = problems.keep(name, field::time(raw)),
        "priority" => draft.priority = problems.keep(name, priority(raw)).unwrap_or_default(),
        "revision" => draft.revision = problems.keep(name, field::whole(raw)).unwrap_or_default(),
        "statusQuery" => problems.add(
            name,
            "is not built yet: a call whose effect is unknown ends as \"unknown\"; leave the field out",
        ),
        _ => problems.add(name, nearest::unknown(&FIELDS, name)),
    }
}

fn not_an_object(text: &str, error: &serde_json::Error) -> String {
    if text.trim().is_empty() {
        return "found nothing; allowed: one JSON object".to_string();
    }
    // What comes from serde names line and column by itself.
    format!("is not a job: {error}; allowed: one JSON object")
}

fn methods() -> String {
    METHODS.each_ref().map(Method::as_str).join(", ")
}

fn method(raw: &RawValue) -> Result<Method, String> {
    let text: Option<String> = serde_json::from_str(raw.get()).ok();
    METHODS
        .into_iter()
        .find(|method| text.as_deref() == Some(method.as_str()))
        .ok_or_else(|| format!("found {}; allowed: {}", field::found(raw), methods()))
}

fn path(raw: &RawValue) -> Result<JobPath, String> {
    JobPath::new(&field::any_text(raw)?).map_err(|words| format!("{}: {words}", field::found(raw)))
}

fn query(raw: &RawValue, problems: &mut Problems) -> Vec<(String, String)> {
    let allowed = "a string or a list of strings";
    let fields = problems.keep("query", field::object(raw, "an object of strings or lists of strings"));
    let mut query = Vec::new();
    for (name, value) in fields.unwrap_or_default() {
        if let Ok(text) = serde_json::from_str::<String>(value.get()) {
            query.push((name, text));
        } else if let Ok(texts) = serde_json::from_str::<Vec<String>>(value.get()) {
            query.extend(texts.into_iter().map(|text| (name.clone(), text)));
        } else {
            problems.add(
                format!("query.{name}"),
                format!("found {}; allowed: {allowed}", field::found(value)),
            );
        }
    }
    query
}

fn own_headers(raw: &RawValue, problems: &mut Problems) -> Vec<(HeaderName, HeaderValue)> {
    let fields = problems.keep("headers", field::object(raw, "an object of strings"));
    let mut headers: Vec<(HeaderName, HeaderValue)> = Vec::new();
    for (name, value) in fields.unwrap_or_default() {
        match header(&name, value) {
            Ok((header, _)) if headers.iter().any(|(other, _)| *other == header) => {
                problems.add(
                    format!("headers.{name}"),
                    "stands there twice, since case makes no difference; allowed: once",
                );
            }
            Ok(header) => headers.push(header),
            Err(words) => problems.add(format!("headers.{}", name.escape_debug()), words),
        }
    }
    headers
}

fn header(name: &str, raw: &RawValue) -> Result<(HeaderName, HeaderValue), String> {
    let header = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| "is no header name; allowed: letters, digits and !#$%&'*+-.^_`|~".to_string())?;
    if headers::belongs_to_the_connection(&header) {
        return Err(
            "belongs to the connection; allowed: any header but Host, Content-Length and the hop-by-hop ones"
                .to_string(),
        );
    }
    // The value may be a secret of the caller's: it is not repeated.
    let text: String = serde_json::from_str(raw.get()).map_err(|_| "found no string; allowed: a string".to_string())?;
    let value = HeaderValue::from_str(&text).map_err(|_| {
        "found a line break, a control or a non-ASCII character; allowed: visible ASCII, blanks and tabs".to_string()
    })?;
    Ok((header, value))
}

fn bytes(raw: &RawValue) -> Result<Vec<u8>, String> {
    let text = field::any_text(raw)?;
    base64::engine::general_purpose::STANDARD
        .decode(&text)
        .map_err(|error| format!("{error}; allowed: base64 in the standard alphabet, with its padding"))
}

fn scope(raw: &RawValue) -> Result<Scope, String> {
    const ALLOWED: &str = "one of {\"entity\": ID}, {\"credential\": ID}, {\"custom\": TEXT}";
    let fields = field::object(raw, ALLOWED)?;
    let [(name, value)] = fields.as_slice() else {
        return Err(format!("found {} fields; allowed: {ALLOWED}", fields.len()));
    };
    let make = match name.as_str() {
        "entity" => Scope::Entity,
        "credential" => Scope::Credential,
        "custom" => Scope::Custom,
        _ => {
            return Err(format!(
                "{name} {}",
                nearest::unknown(&["entity", "credential", "custom"], name)
            ));
        }
    };
    field::text(value, MAX_SCOPE_BYTES)
        .map(make)
        .map_err(|words| format!("{name}: {words}"))
}

fn key(raw: &RawValue) -> Result<String, String> {
    serde_json::from_str::<String>(raw.get())
        .ok()
        .filter(|key| (1..=MAX_KEY_BYTES).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic()))
        .ok_or_else(|| {
            format!(
                "found {}; allowed: a string of 1 to {MAX_KEY_BYTES} visible ASCII characters",
                field::found(raw)
            )
        })
}

fn priority(raw: &RawValue) -> Result<Priority, String> {
    match serde_json::from_str::<String>(raw.get()).as_deref() {
        Ok("normal") => Ok(Priority::Normal),
        Ok("status") => Ok(Priority::Status),
        _ => Err(format!("found {}; allowed: \"normal\", \"status\"", field::found(raw))),
    }
}
