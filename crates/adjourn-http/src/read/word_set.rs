//! Which of several patterns stand in a text, told in one walk through it.

use std::slice;

use regex::{RegexSet, RegexSetBuilder};
use regex_automata::{
    Input, MatchKind,
    hybrid::{
        LazyStateID,
        dfa::{Cache, DFA},
    },
    util::{pool::Pool, syntax},
};

/// How often the walk's memory may fill up and be emptied before the text is searched in the other way.
const MOST_CLEARS: usize = 3;

type NewCache = Box<dyn Fn() -> Cache + Send + Sync + std::panic::UnwindSafe + std::panic::RefUnwindSafe>;

/// At most 16 patterns, by ASCII and without regard to its case.
///
/// A `RegexSet` tells the same and asks at every byte where the next match begins, which makes half of the cost of a short
/// text. Here a byte is one step of a lazily built automaton. Where that outgrows its memory, the `RegexSet` is asked.
#[derive(Debug)]
pub(super) struct WordSet {
    automaton: DFA,
    caches: Pool<Cache, NewCache>,
    set: RegexSet,
}

/// The patterns that stand in a text, by their place in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held(u16);

impl Held {
    pub(super) fn has(self, index: usize) -> bool {
        self.0 >> index & 1 == 1
    }

    fn add(&mut self, index: usize) {
        self.0 |= 1 << index;
    }
}

impl WordSet {
    /// None where a pattern is wrong, or there are too many of them.
    pub(super) fn new(patterns: &[&str]) -> Option<Self> {
        let config = DFA::config()
            .match_kind(MatchKind::All)
            .minimum_cache_clear_count(Some(MOST_CLEARS));
        let automaton = DFA::builder()
            .configure(config)
            .syntax(syntax::Config::new().case_insensitive(true).unicode(false).utf8(false))
            .build_many(patterns)
            .ok()?;
        let set = RegexSetBuilder::new(patterns)
            .case_insensitive(true)
            .unicode(false)
            .build();
        let of = automaton.clone();
        Some(Self {
            caches: Pool::new(Box::new(move || of.create_cache())),
            automaton,
            set: set.ok().filter(|_| patterns.len() <= 16)?,
        })
    }

    pub(super) fn held_by(&self, text: &str) -> Held {
        self.walk(text).unwrap_or_else(|| {
            let mut held = Held(0);
            self.set.matches(text).iter().for_each(|index| held.add(index));
            held
        })
    }

    /// None where the automaton outgrows its memory.
    fn walk(&self, text: &str) -> Option<Held> {
        let mut cache = self.caches.get();
        let walked = self.steps(&mut cache, text);
        if walked.is_none() {
            cache.reset(&self.automaton);
        }
        walked
    }

    fn steps(&self, cache: &mut Cache, text: &str) -> Option<Held> {
        let automaton = &self.automaton;
        let mut held = Held(0);
        let mut state = automaton.start_state_forward(cache, &Input::new(text)).ok()?;
        let mut bytes = text.as_bytes().iter();
        loop {
            let byte = if state.is_tagged() {
                bytes.next().copied()
            } else {
                self.run(cache, &mut state, &mut bytes)
            };
            let Some(byte) = byte else { break };
            state = automaton.next_state(cache, state, byte).ok()?;
            if state.is_match() {
                self.add(&mut held, cache, state);
            } else if state.is_tagged() {
                return None;
            }
        }
        state = automaton.next_eoi_state(cache, state).ok()?;
        if state.is_match() {
            self.add(&mut held, cache, state);
        }
        Some(held)
    }

    /// Goes from a state that tells nothing to the next, as long as each was built before and tells nothing either, which
    /// nearly all do; the byte that leads elsewhere.
    fn run(&self, cache: &Cache, state: &mut LazyStateID, bytes: &mut slice::Iter<'_, u8>) -> Option<u8> {
        let mut at = *state;
        let elsewhere = bytes.find(|byte| {
            let next = self.automaton.next_state_untagged(cache, at, **byte);
            if !next.is_tagged() {
                at = next;
            }
            next.is_tagged()
        });
        *state = at;
        elsewhere.copied()
    }

    fn add(&self, held: &mut Held, cache: &Cache, state: LazyStateID) {
        for index in 0..self.automaton.match_len(cache, state) {
            held.add(self.automaton.match_pattern(cache, state, index).as_usize());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;

    const PATTERNS: [&str; 4] = [
        r"\bday\b|daily",
        r"per (?:\w+ ){0,3}hour",
        "rate[ -]?limit",
        r"x\w{1,5}z",
    ];

    static WORDS: LazyLock<WordSet> = LazyLock::new(|| WordSet::new(&PATTERNS).unwrap());

    fn by_the_set(text: &str) -> Vec<usize> {
        WORDS.set.matches(text).iter().collect()
    }

    fn by_the_walk(text: &str) -> Vec<usize> {
        let held = WORDS.walk(text).unwrap();
        (0..PATTERNS.len()).filter(|&index| held.has(index)).collect()
    }

    #[test]
    fn at_the_beginning_in_the_middle_and_at_the_end() {
        for (text, expected) in [
            ("", vec![]),
            ("day", vec![0]),
            ("Sunday, some DAY!", vec![0]),
            ("RATE-LIMIT per busy hour", vec![1, 2]),
            ("a rate limit", vec![2]),
            ("xabcz ratelimit daily", vec![0, 2, 3]),
            ("müday", vec![0]),
        ] {
            assert_eq!(by_the_walk(text), expected, "{text}");
        }
        assert!(WordSet::new(&["("]).is_none() && WordSet::new(&["a"; 17]).is_none());
    }

    proptest! {
        #[test]
        fn as_a_set_of_patterns_tells_it(text in "(?:day|daily|per |hour|rate|limit|[ -]|[xyzä1]){0,12}") {
                prop_assert_eq!(by_the_walk(&text), by_the_set(&text));
        }
    }
}
