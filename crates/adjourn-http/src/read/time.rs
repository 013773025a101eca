//! The moment of a response: which place names it, in the order of the parsers.

use std::{borrow::Cow, cell::OnceCell};

use adjourn_core::{Signal, Source};
use http::HeaderMap;

use super::{
    Ignored,
    body::Body,
    bucket::{Bucket, severity},
    clock::{Found, ProviderClock},
    fields::{self, Named},
    phrases, reading, retry_after, span, value, vendor,
};
use crate::{Parser, Place, Unit};

/// The order of a provider that names none.
pub(super) const ORDER: [Parser; 5] = [
    Parser::RetryAfter,
    Parser::RetryAfterMs,
    Parser::Body,
    Parser::Ietf,
    Parser::ResetHeaders,
];

/// The parser of the `RateLimit` fields, by name.
pub(super) const IETF: &str = "ietf";

/// A moment with where it stood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told<'a> {
    pub(super) found: Found,
    pub(super) source: Source,
    /// The parser's name.
    pub(super) parser: &'static str,
    /// The header or the field.
    pub(super) place: Cow<'a, str>,
    pub(super) raw: Cow<'a, str>,
}

impl<'a> Told<'a> {
    pub(super) fn by_header(moment: retry_after::Moment<'a>) -> Self {
        Self {
            found: moment.found,
            source: Source::Parser,
            parser: if moment.millis { "retry-after-ms" } else { "retry-after" },
            place: Cow::Borrowed(moment.header),
            raw: reading::shown_of(moment.raw),
        }
    }

    /// A signal that names this moment.
    pub(super) fn onto(&self, signal: Signal, title: &str) -> Signal {
        let reason = [title, "; ", &self.place, ": ", &self.raw].concat();
        self.named_in(signal).reason(&reason)
    }

    /// As [`Told::onto`], and the reason is left alone.
    pub(super) fn named_in(&self, signal: Signal) -> Signal {
        let signal = signal
            .read_by(self.source, self.parser, &self.raw, self.found.interpretation)
            .clock_uncertainty(self.found.uncertainty)
            .retry_at(self.found.at);
        if self.found.saturated {
            signal.saturated()
        } else {
            signal
        }
    }
}

/// What moments are read out of.
pub(super) struct Places<'a> {
    pub(super) headers: &'a HeaderMap,
    pub(super) body: &'a Body<'a>,
    pub(super) clock: ProviderClock,
    pub(super) ietf: &'a [Bucket<'a>],
    pub(super) resets: &'a [Bucket<'a>],
    asked: OnceCell<Read<'a>>,
    of_body: OnceCell<Read<'a>>,
}

/// What some places told, and what of them was passed over.
type Read<'a> = (Option<Told<'a>>, Vec<Ignored>);

impl<'a> Places<'a> {
    pub(super) fn new(
        headers: &'a HeaderMap,
        body: &'a Body<'a>,
        clock: ProviderClock,
        ietf: &'a [Bucket<'a>],
        resets: &'a [Bucket<'a>],
    ) -> Self {
        Self {
            headers,
            body,
            clock,
            ietf,
            resets,
            asked: OnceCell::new(),
            of_body: OnceCell::new(),
        }
    }

    /// The moment that the first of the parsers names that names one.
    pub(super) fn by(&self, parsers: &[Parser], ignored: &mut Vec<Ignored>) -> Option<Told<'a>> {
        let mut index = 0;
        while let Some(parser) = parsers.get(index) {
            index += 1;
            let told = match parser {
                Parser::RetryAfter | Parser::RetryAfterMs => {
                    let other = parsers.get(index).filter(|next| next.is_retry_after());
                    index += usize::from(other.is_some());
                    let is = |wanted: &Parser| parser == wanted || other == Some(wanted);
                    self.by_retry_after(is(&Parser::RetryAfter), is(&Parser::RetryAfterMs), ignored)
                }
                Parser::Ietf => self.by_buckets(self.ietf, IETF, ignored),
                Parser::ResetHeaders => self.by_buckets(self.resets, "reset-headers", ignored),
                Parser::Body => {
                    let read = self.of_body.get_or_init(|| {
                        let mut unused = Vec::new();
                        (self.by_body(&mut unused), unused)
                    });
                    self.once(read, ignored)
                }
                Parser::ShopifyCost => vendor::shopify_cost(self.body, &self.clock),
                Parser::From(place) => self.at(place, ignored).map(|told| Told {
                    source: Source::Parser,
                    ..told
                }),
            };
            if told.is_some() {
                return told;
            }
        }
        None
    }

    /// What `Retry-After` and its kin name.
    pub(super) fn by_retry_after(&self, seconds: bool, millis: bool, ignored: &mut Vec<Ignored>) -> Option<Told<'a>> {
        let read = || {
            let kin = retry_after::Kin {
                seconds,
                millis,
                relatives: true,
            };
            let mut unused = Vec::new();
            let told = retry_after::named(self.headers, &self.clock, kin, &mut unused);
            (told.map(Told::by_header), unused)
        };
        if seconds && millis {
            return self.once(self.asked.get_or_init(read), ignored);
        }
        self.once(&read(), ignored)
    }

    /// What was read before is told again, and what it passed over is named once.
    fn once(&self, (told, unused): &Read<'a>, ignored: &mut Vec<Ignored>) -> Option<Told<'a>> {
        for one in unused {
            if !ignored.contains(one) {
                ignored.push(one.clone());
            }
        }
        told.clone()
    }

    /// The reset of the limit that refused.
    fn by_buckets(
        &self,
        buckets: &'a [Bucket<'a>],
        parser: &'static str,
        ignored: &mut Vec<Ignored>,
    ) -> Option<Told<'a>> {
        let refused = refused_by(buckets);
        for bucket in buckets {
            if let Some(reset) = &bucket.reset
                && refused != Some(bucket)
            {
                let why = if bucket.is_exhausted() == Some(false) {
                    "belongs to a limit of which something remains"
                } else {
                    "belongs to another limit than the one that refused"
                };
                ignored.push(Ignored::new(&reset.header, &reset.raw, why));
            }
        }
        let reset = refused?.reset.as_ref()?;
        Some(Told {
            found: reset.found,
            source: Source::Parser,
            parser,
            place: Cow::Borrowed(&reset.header),
            raw: reading::shown(&reset.raw),
        })
    }

    /// Fields and phrases that many providers share.
    fn by_body(&self, ignored: &mut Vec<Ignored>) -> Option<Told<'a>> {
        if self.body.is_empty() {
            return None;
        }
        let mut latest: Option<Told<'a>> = None;
        for field in self.body.moments() {
            let found = match field.named {
                Named::Wait => {
                    retry_after::seconds_or_date(&field.text, &self.clock).or_else(|| self.span(&field.text))
                }
                Named::WaitMs => super::number::scaled(&field.text, 0)
                    .map(|ms| self.clock.span(ms, adjourn_core::Interpretation::Delay)),
                Named::In(unit) => value::moment(&field.text, unit, &self.clock),
            };
            match found {
                None => ignored.push(Ignored::new(
                    &field.name,
                    &field.text,
                    "is no time that can be believed",
                )),
                Some(found) if latest.as_ref().is_none_or(|latest| latest.found.at < found.at) => {
                    latest = Some(Told {
                        found,
                        source: Source::Parser,
                        parser: "body",
                        place: field.name,
                        raw: reading::shown_of(field.text),
                    });
                }
                Some(_) => {}
            }
        }
        latest.or_else(|| self.by_phrase())
    }

    fn by_phrase(&self) -> Option<Told<'a>> {
        if self.body.is_html() {
            return None;
        }
        let text = phrases::wait(self.body.text())?;
        let found = self
            .span(text)
            .or_else(|| {
                let ms = span::clock(text)?;
                Some(self.clock.span(ms, adjourn_core::Interpretation::Duration))
            })
            .or_else(|| value::moment(text, Unit::Date, &self.clock))?;
        Some(Told {
            found,
            source: Source::Parser,
            parser: "body",
            place: Cow::Borrowed("the body's text"),
            raw: Cow::Borrowed(text),
        })
    }

    fn span(&self, text: &str) -> Option<Found> {
        let ms = span::millis(text.trim_ascii())?;
        Some(self.clock.span(ms, adjourn_core::Interpretation::Duration))
    }

    /// The latest moment at a place that a contract names.
    pub(super) fn at(&self, place: &Place, ignored: &mut Vec<Ignored>) -> Option<Told<'a>> {
        let texts = self.texts(place);
        let name = place
            .header
            .clone()
            .or_else(|| place.field.as_ref().map(|field| field.as_str().to_string()));
        let name = name.unwrap_or_else(|| "the body's text".to_string());
        let mut latest: Option<Told<'a>> = None;
        for text in texts {
            let found = value::moment(&text, place.unit, &self.clock).or_else(|| {
                // A span that no calendar holds is still a span: it saturates, and the caps end the job.
                let retry = matches!(place.unit, Unit::S) || place.unit == Unit::Auto && name.contains("retry");
                if retry {
                    retry_after::seconds_or_date(&text, &self.clock)
                } else {
                    None
                }
            });
            match found {
                None => ignored.push(Ignored::new(&name, &text, "is no time that can be believed")),
                Some(found) if latest.as_ref().is_none_or(|latest| latest.found.at < found.at) => {
                    latest = Some(Told {
                        found,
                        source: Source::Classify,
                        parser: "place",
                        place: Cow::Owned(name.clone()),
                        raw: Cow::Owned(reading::shown(&text).into_owned()),
                    });
                }
                Some(_) => {}
            }
        }
        latest
    }

    fn texts(&self, place: &Place) -> Vec<String> {
        let whole: Vec<Cow<'_, str>> = match &place.header {
            Some(name) => self
                .headers
                .get_all(name)
                .iter()
                .map(|value| retry_after::text(value.as_bytes()))
                .collect(),
            None => Vec::new(),
        };
        if let Some(pointer) = &place.field {
            let scalars = |root: &serde_json::Value| -> Vec<String> {
                pointer
                    .values(root)
                    .iter()
                    .filter_map(|value| fields::scalar(value).map(Cow::into_owned))
                    .collect()
            };
            return match &place.header {
                Some(_) => whole
                    .iter()
                    .filter_map(|text| serde_json::from_str(text).ok())
                    .flat_map(|root| scalars(&root))
                    .collect(),
                None => self.body.value().map(scalars).unwrap_or_default(),
            };
        }
        if let Some(pattern) = &place.pattern {
            return match &place.header {
                Some(_) => whole
                    .iter()
                    .filter_map(|text| pattern.find(text))
                    .map(str::to_string)
                    .collect(),
                None => pattern.find(self.body.text()).map(str::to_string).into_iter().collect(),
            };
        }
        whole
            .iter()
            .flat_map(|text| retry_after::tokens(text).map(str::to_string).collect::<Vec<_>>())
            .collect()
    }
}

impl Parser {
    fn is_retry_after(&self) -> bool {
        matches!(self, Self::RetryAfter | Self::RetryAfterMs)
    }
}

/// The limit that refused: the one of which nothing remains, of several the one that counts requests, of these the one that lasts
/// longest; where nothing says what remains, the one that starts anew last.
pub(super) fn refused_by<'b, 'a>(buckets: &'b [Bucket<'a>]) -> Option<&'b Bucket<'a>> {
    let longest = |bucket: &&Bucket<'_>| (!bucket.counts_others, severity(bucket.kind), bucket.resets_at());
    let exhausted = buckets
        .iter()
        .filter(|bucket| bucket.is_exhausted() == Some(true))
        .max_by_key(longest);
    exhausted.or_else(|| {
        let unsure = buckets.iter().filter(|bucket| bucket.is_exhausted().is_none());
        unsure.max_by_key(longest)
    })
}
