//! A contract, whatever it holds, is written as TOML and read back the same.

use std::collections::BTreeMap;

use adjourn_http::Contract;
use proptest::prelude::*;

/// Pieces of a contract's text; any selection of them is a contract.
fn pieces() -> impl Strategy<Value = String> {
    let word = "[a-z][a-z0-9-]{0,12}";
    let text = "[ -~]{1,30}".prop_map(|text| toml::Value::String(text).to_string());
    let kind = prop::sample::select(vec![
        "short",
        "daily",
        "monthly",
        "concurrency",
        "account_disabled",
        "unknown",
    ]);
    let hint = prop::sample::select(vec!["app", "account", "user", "endpoint", "global", "unknown"]);
    let unit = prop::sample::select(vec![
        "auto", "s", "ms", "min", "h", "epoch-s", "epoch-ms", "epoch-us", "date", "duration",
    ]);
    let calendar = prop::sample::select(vec!["minute", "quarter-hour", "hour", "day", "week", "month"]);
    let zone = prop::sample::select(vec!["UTC", "America/Los_Angeles", "Asia/Kolkata"]);
    let at = (calendar, prop::option::of(zone)).prop_map(|(at, zone)| match zone {
        Some(zone) => format!("{{ at = \"{at}\", tz = \"{zone}\" }}"),
        None => format!("{{ at = \"{at}\" }}"),
    });
    let resets = prop_oneof![Just("\"rolling\"".to_string()), at];
    let windows = (word, 1_u64..1_000_000, 1_u64..31_000_000_000, resets, kind.clone(), hint.clone()).prop_map(
        |(name, limit, per_ms, resets, kind, scope)| {
            format!("[[windows]]\nname = \"{name}\"\nlimit = {limit}\nper_ms = {per_ms}\nresets = {resets}\nkind = \"{kind}\"\nscope = \"{scope}\"\n")
        },
    );
    let test = prop_oneof![
        Just("[4, \"x\", true]".to_string()),
        Just("\"one\"".to_string()),
        Just("{ matches = '(?i)a+\\d' }".to_string()),
        Just("{ present = false }".to_string()),
        Just("{ at_least = -3 }".to_string()),
        Just("{ at_most = 7 }".to_string()),
    ];
    let place = (
        prop::sample::select(vec![
            "header = \"x-a\"",
            "field = \"/a/*/b~1c\"",
            "pattern = 'in (\\d+)'",
        ]),
        unit.clone(),
    )
        .prop_map(|(place, unit)| format!("{{ {place}, unit = \"{unit}\" }}"));
    let time = prop_oneof![
        Just("\"parsers\"".to_string()),
        Just("\"none\"".to_string()),
        Just("\"window\"".to_string()),
        (1_u64..31_000_000_000).prop_map(|ms| format!("{{ delay_ms = {ms} }}")),
        place.clone(),
        prop::collection::vec(place.clone(), 1..3).prop_map(|places| format!("[{}]", places.join(", "))),
    ];
    let rules = (test.clone(), test, time, kind, hint, any::<bool>(), text.clone()).prop_map(
        |(header, field, time, kind, scope, limited, reason)| {
            format!(
                "[[classify]]\nstatus = [200, \"5xx\", 429]\nheaders = {{ x-b = {header} }}\nfields = {{ \"/a/*\" = {field} }}\nbody = 'b|c'\nlimited = {limited}\nkind = \"{kind}\"\nreason = {reason}\nscope = [\"{scope}\", \"app\"]\ntime = {time}\nexecuted = \"some\"\ncode = \"/code\"\n"
            )
        },
    );
    let headers = unit.prop_map(|unit| {
        format!(
            "[[headers]]\nlimit = \"x-l\"\nremaining = \"x-r\"\nused = \"x-u\"\nreset = \"x-s\"\nunit = \"{unit}\"\n"
        )
    });
    let rest = prop::sample::select(vec![
        "[[operations]]\nname = \"o\"\nmethods = [\"GET\", \"POST\"]\npath = \"/a/*\"\n",
        "[[costs]]\npoints = 3\nheader = \"x-cost\"\n",
        "[[costs]]\nfield = \"/cost\"\n",
        "[[cases]]\nname = \"c\"\nstatus = 429\nheaders = { Retry-After = [\"1\", \"2\"] }\nbody = 'b'\nexpect = { limited = true, kind = \"daily\", scope = \"app\", wait_ms = 5 }\n",
        "[[cases]]\nname = \"d\"\nstatus = 200\nreceived_at = \"2026-07-10T20:13:47Z\"\nexpect = { limited = false, retry_at = \"2026-07-11T00:00:00Z\" }\n",
    ]).prop_map(str::to_string);
    let any_piece = prop_oneof![windows, rules, headers, rest];
    let head = (text.clone(), prop::collection::vec(text, 0..3), prop::collection::vec(place, 0..3), 1_u64..9_000_000).prop_map(
        |(title, limits, places, ms)| {
            let parsers: Vec<String> = ["\"retry-after\"", "\"body\"", "\"shopify-cost\""].into_iter().map(str::to_string).chain(places).collect();
            format!(
                "title = {title}\nlimits = [{}]\nparsers = [{}]\nscope = \"app\"\nbasis = \"page\"\nmin_retry_after_ms = {ms}\nmax_concurrency = 3\nidempotency_window_ms = {ms}\n",
                limits.join(", "),
                parsers.join(", ")
            )
        },
    );
    (head, prop::collection::vec(any_piece, 0..6)).prop_map(|(head, pieces)| head + &pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_contract_is_written_and_read_back(text in pieces()) {
        let contract = Contract::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let written = contract.to_toml();
        prop_assert!(!written.is_empty());
        let again = Contract::parse(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
        prop_assert_eq!(&again, &contract, "{}", written);
    }

    #[test]
    fn no_text_panics_the_loader(text in "[a-z\\[\\]={}\" \n0-9_.']{0,120}") {
        let _: Result<Contract, _> = Contract::parse(&text);
    }

    #[test]
    fn a_contract_over_nothing_is_itself_and_over_itself_says_the_same(text in pieces()) {
        let contract = Contract::parse(&text).unwrap();
        prop_assert_eq!(&contract.clone().over(&Contract::default()), &contract);
        let twice = contract.clone().over(&contract);
        let names = |contract: &Contract| -> BTreeMap<String, usize> {
            let mut names = BTreeMap::new();
            contract.windows.iter().for_each(|window| *names.entry(window.name.clone()).or_default() += 1);
            names
        };
        prop_assert_eq!(names(&twice), names(&contract), "a window replaces those of its name");
    }
}
