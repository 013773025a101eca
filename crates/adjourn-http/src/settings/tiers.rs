//! [deferral], [retry] and [worker]: caps, tiers and how much runs at a time.

use std::time::Duration;

use adjourn_core::{DeferralPolicy, Fallback, Fifo, Monthly, RetryPolicy, UnsafeRedelivery};

use super::sheet::{Sheet, Table};

const MINUTE_MS: u32 = 60_000;
const DAY_MS: u32 = 24 * 60 * MINUTE_MS;
/// The longest wait that a setting may name: 45 days, well under what a number of milliseconds holds in 32 bits.
const LONGEST_MS: u32 = 45 * DAY_MS;

pub(super) struct InProcess {
    pub(super) concurrency: usize,
    pub(super) find_pace: bool,
    pub(super) max_in_process_wait: Duration,
}

pub(super) fn deferral(sheet: &mut Sheet<'_>, root: &Table<'_>) -> DeferralPolicy {
    let default = DeferralPolicy::default();
    let Some(table) = sheet.table(root, "deferral") else {
        return default;
    };
    const KNOWN: [&str; 13] = [
        "max_deferrals",
        "max_deferred_ms",
        "max_hops",
        "ladder_ms",
        "unknown_max_ms",
        "probe_interval_ms",
        "monthly",
        "fallback",
        "fifo",
        "on_exhausted",
        "min_retry_after_ms",
        "clock_skew_ms",
        "unsafe_redelivery",
    ];
    sheet.keys(&table, &KNOWN, &[]);
    on_exhausted(sheet, &table);
    let of = &table;
    DeferralPolicy {
        max_deferrals: sheet
            .whole(of, "max_deferrals", 0..=10_000)
            .unwrap_or(default.max_deferrals),
        max_deferred: sheet
            .span(of, "max_deferred_ms", 0..=LONGEST_MS)
            .unwrap_or(default.max_deferred),
        max_hops: sheet.whole(of, "max_hops", 1..=100_000).unwrap_or(default.max_hops),
        ladder: sheet.spans(of, "ladder_ms", 1..=DAY_MS).unwrap_or(default.ladder),
        unknown_max: sheet
            .span(of, "unknown_max_ms", 0..=LONGEST_MS)
            .unwrap_or(default.unknown_max),
        probe_interval: sheet
            .span(of, "probe_interval_ms", 1000..=DAY_MS)
            .unwrap_or(default.probe_interval),
        monthly: sheet
            .one_of(
                of,
                "monthly",
                &[("exhaust", Monthly::Exhaust), ("probe", Monthly::Probe)],
            )
            .unwrap_or(default.monthly),
        fallback: sheet
            .one_of(
                of,
                "fallback",
                &[("visibility", Fallback::Visibility), ("hops", Fallback::Hops)],
            )
            .unwrap_or(default.fallback),
        fifo: sheet
            .one_of(of, "fifo", &[("hold", Fifo::Hold), ("relaxed", Fifo::Relaxed)])
            .unwrap_or(default.fifo),
        min_retry_after: sheet
            .span(of, "min_retry_after_ms", 0..=DAY_MS)
            .unwrap_or(default.min_retry_after),
        clock_skew: sheet
            .span(of, "clock_skew_ms", 0..=60 * MINUTE_MS)
            .unwrap_or(default.clock_skew),
        max_in_process_wait: default.max_in_process_wait,
        unsafe_redelivery: sheet
            .one_of(
                of,
                "unsafe_redelivery",
                &[
                    ("unknown", UnsafeRedelivery::Unknown),
                    ("repeat", UnsafeRedelivery::Repeat),
                ],
            )
            .unwrap_or(default.unsafe_redelivery),
    }
}

fn on_exhausted(sheet: &mut Sheet<'_>, table: &Table<'_>) {
    let Some(value) = table.get("on_exhausted") else { return };
    match value.get_ref().as_str() {
        Some("dead-letter") => {}
        Some("review") => sheet.problem(
            value.span().start,
            &table.key("on_exhausted"),
            "found \"review\": leaving a job to a person is not built yet; allowed: \"dead-letter\"",
        ),
        _ => sheet.refuse(table, "on_exhausted", value, "\"dead-letter\""),
    }
}

pub(super) fn retry(sheet: &mut Sheet<'_>, table: &Table<'_>) -> RetryPolicy {
    let default = RetryPolicy::default();
    sheet.keys(table, &["max_attempts", "backoff_ms"], &[]);
    RetryPolicy {
        max_attempts: sheet
            .whole(table, "max_attempts", 1..=1000)
            .unwrap_or(default.max_attempts),
        backoff: sheet.spans(table, "backoff_ms", 0..=DAY_MS).unwrap_or(default.backoff),
    }
}

pub(super) fn worker(sheet: &mut Sheet<'_>, root: &Table<'_>) -> InProcess {
    let mut worker = InProcess {
        concurrency: 10,
        max_in_process_wait: Duration::ZERO,
        find_pace: true,
    };
    let Some(table) = sheet.table(root, "worker") else {
        return worker;
    };
    sheet.keys(&table, &["concurrency", "max_in_process_wait_ms", "find_pace"], &[]);
    if let Some(concurrency) = sheet.whole(&table, "concurrency", 1..=1000) {
        worker.concurrency = usize::try_from(concurrency).unwrap_or(worker.concurrency);
    }
    if let Some(wait) = sheet.span(&table, "max_in_process_wait_ms", 0..=15 * MINUTE_MS) {
        worker.max_in_process_wait = wait;
    }
    if let Some(find_pace) = sheet.boolean(&table, "find_pace") {
        worker.find_pace = find_pace;
    }
    worker
}
