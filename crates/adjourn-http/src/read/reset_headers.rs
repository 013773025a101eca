//! Reset headers in any spelling: those that a contract lists, and those that are named like one.

use std::borrow::Cow;

use adjourn_core::Kind;
use http::HeaderMap;

use super::{
    Ignored,
    bucket::{Bucket, Reset},
    clock::ProviderClock,
    header_names::{Role, by_name, kind_by_name},
    number, retry_after, value,
};
use crate::{Contract, LimitHeaders, Unit};

/// Every limit that such headers tell of.
pub(super) fn buckets<'a>(
    contract: Option<&'a Contract>,
    headers: &'a HeaderMap,
    clock: &ProviderClock,
    ignored: &mut Vec<Ignored>,
) -> Vec<Bucket<'a>> {
    let mut groups: Few<Group<'a>> = Few::default();
    let listed = contract.map_or(&[][..], |contract| contract.headers.as_slice());
    for entry in listed {
        if let Some(group) = Group::listed(entry, headers) {
            groups.push(group);
        }
    }
    for (name, header) in headers {
        let name = name.as_str();
        let Some((role, unit, stem)) = by_name(name) else {
            continue;
        };
        if listed.iter().any(|entry| lists(entry, name)) {
            continue;
        }
        let text = retry_after::text(header.as_bytes());
        let same = |group: &&mut Group<'_>| group.entry.is_none() && group.stem == stem;
        let known = groups.iter_mut().find(same);
        match known {
            Some(group) => group.add(role, name, unit, text),
            None => {
                let mut group = Group {
                    stem,
                    ..Group::default()
                };
                group.add(role, name, unit, text);
                groups.push(group);
            }
        }
    }
    let mut buckets = Vec::with_capacity(groups.len());
    for group in groups.iter() {
        group.buckets(contract, clock, ignored, &mut buckets);
    }
    if buckets.len() > 1 {
        share(&mut buckets);
    }
    buckets
}

/// A limit of which nothing remains and that has no reset of its own has the one that stands alone:
/// `x-rate-limit-requests-left: 0` beside `x-rate-limit-time-reset-ms`. Not where the names say that they are different limits,
/// and not where a contract says what belongs together.
fn share(buckets: &mut Vec<Bucket<'_>>) {
    let lacks =
        |bucket: &Bucket<'_>| bucket.window.is_none() && bucket.reset.is_none() && bucket.is_exhausted() == Some(true);
    if !buckets.iter().any(lacks) {
        return;
    }
    let alone = |bucket: &Bucket<'_>| {
        let named = bucket.window.is_some() || kind_by_name(&bucket.name) != Kind::Unknown;
        bucket.reset.is_some() && bucket.is_exhausted().is_none() && !named
    };
    let mut shared = buckets.iter().filter(|bucket| alone(bucket));
    let (Some(reset), None) = (shared.next().and_then(|bucket| bucket.reset.clone()), shared.next()) else {
        return;
    };
    buckets.retain(|bucket| !alone(bucket));
    for bucket in buckets.iter_mut().filter(|bucket| lacks(bucket)) {
        bucket.reset = Some(reset.clone());
    }
}

fn lists(entry: &LimitHeaders, name: &str) -> bool {
    [&entry.limit, &entry.remaining, &entry.used, &entry.reset]
        .into_iter()
        .flatten()
        .any(|listed| listed == name)
}

/// Some values, of which there is mostly one.
struct Few<T> {
    first: Option<T>,
    others: Vec<T>,
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self {
            first: None,
            others: Vec::new(),
        }
    }
}

impl<T> Few<T> {
    fn push(&mut self, value: T) {
        if self.first.is_none() {
            self.first = Some(value);
        } else {
            self.others.push(value);
        }
    }

    fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(&self.others)
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.first.iter_mut().chain(&mut self.others)
    }

    fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }
}

/// What stands at each position; none where that is no number.
type Amounts = Few<Option<i64>>;

/// Headers that tell of the same limits, by position.
#[derive(Default)]
struct Group<'a> {
    stem: String,
    entry: Option<&'a LimitHeaders>,
    limit: Amounts,
    remaining: Amounts,
    used: Amounts,
    resets: Few<(&'a str, Unit, usize, Cow<'a, str>)>,
}

impl<'a> Group<'a> {
    fn listed(entry: &'a LimitHeaders, headers: &'a HeaderMap) -> Option<Self> {
        let mut group = Self {
            entry: Some(entry),
            stem: entry.windows.first().cloned().unwrap_or_default(),
            ..Self::default()
        };
        let roles = [
            (&entry.limit, Role::Limit),
            (&entry.remaining, Role::Remaining),
            (&entry.used, Role::Used),
            (&entry.reset, Role::Reset),
        ];
        for (name, role) in roles {
            let Some(name) = name else { continue };
            for value in headers.get_all(name) {
                group.add(role, name, entry.unit, retry_after::text(value.as_bytes()));
            }
        }
        (group.remaining.len() + group.used.len() + group.resets.len() > 0).then_some(group)
    }

    fn add(&mut self, role: Role, name: &'a str, unit: Unit, text: Cow<'a, str>) {
        match text {
            Cow::Borrowed(text) if !text.as_bytes().contains(&b',') => {
                self.put(role, name, unit, 0, Cow::Borrowed(text))
            }
            Cow::Borrowed(text) => {
                for (position, part) in retry_after::tokens(text).enumerate() {
                    self.put(role, name, unit, position, Cow::Borrowed(part));
                }
            }
            Cow::Owned(text) => {
                for (position, part) in retry_after::tokens(&text).enumerate() {
                    self.put(role, name, unit, position, Cow::Owned(part.to_string()));
                }
            }
        }
    }

    fn put(&mut self, role: Role, name: &'a str, unit: Unit, position: usize, part: Cow<'a, str>) {
        match role {
            Role::Limit => self.limit.push(number::amount(&part)),
            Role::Remaining => self.remaining.push(number::amount(&part)),
            Role::Used => self.used.push(number::amount(&part)),
            Role::Reset => self.resets.push((name, unit, position, part)),
        }
    }

    fn buckets(
        &self,
        contract: Option<&'a Contract>,
        clock: &ProviderClock,
        ignored: &mut Vec<Ignored>,
        buckets: &mut Vec<Bucket<'a>>,
    ) {
        let positions = self.remaining.len().max(self.used.len()).max(1);
        for position in 0..positions {
            let amount = |amounts: &Amounts| amounts.iter().nth(position).copied().flatten();
            let window = self
                .entry
                .and_then(|entry| entry.windows.get(position))
                .map(String::as_str);
            let stated = window
                .and_then(|name| contract?.window(name))
                .map(crate::Window::limit_kind);
            let mut bucket = Bucket {
                name: self.stem.clone(),
                window,
                limit: amount(&self.limit),
                remaining: amount(&self.remaining),
                used: amount(&self.used),
                kind: stated.unwrap_or_else(|| kind_by_name(&self.stem)),
                reset: self.reset(position, positions, clock, ignored),
                counts_others: false,
            };
            // Of several windows in a row, all but the last are the shorter ones.
            if bucket.kind == Kind::Unknown && position + 1 < positions {
                bucket.kind = Kind::Short;
            }
            if bucket.is_exhausted().is_some() || bucket.reset.is_some() {
                buckets.push(bucket);
            }
        }
    }

    /// The reset of a position: the latest of what the headers name for it.
    fn reset(
        &self,
        position: usize,
        positions: usize,
        clock: &ProviderClock,
        ignored: &mut Vec<Ignored>,
    ) -> Option<Reset<'a>> {
        let mut latest: Option<Reset<'a>> = None;
        // More moments than limits: which is whose cannot be told.
        let mine = self
            .resets
            .iter()
            .filter(|(_, _, place, _)| positions == 1 || *place == position);
        for (header, unit, _, raw) in mine {
            match value::moment(raw, *unit, clock) {
                None => ignored.push(Ignored::new(header, raw, "is no time that can be believed")),
                Some(found) if latest.as_ref().is_none_or(|latest| latest.found.at < found.at) => {
                    latest = Some(Reset {
                        header: Cow::Borrowed(header),
                        raw: raw.clone(),
                        found,
                    });
                }
                Some(_) => {}
            }
        }
        latest
    }
}
