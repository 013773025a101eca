//! `adjourn simulate --list`: the scenarios that come with adjourn, and the strategies.

use std::io::{self, BufWriter, Write};

use adjourn_sim::pacing::{DEFAULT_STRATEGY, STRATEGIES};
use serde_json::json;

use super::chosen::Chosen;
use crate::{
    ending::Ended,
    environment::Environment,
    paint::{Paint, Tone},
};

pub(super) fn run(as_json: bool, environment: &Environment) -> Ended {
    let scenarios = Chosen::all()?;
    let mut out = BufWriter::new(io::stdout().lock());
    if as_json {
        objects(&mut out, &scenarios)?;
    } else {
        words(&mut out, &scenarios, Paint::stdout(environment))?;
    }
    Ok(out.flush()?)
}

fn words(out: &mut impl Write, scenarios: &[Chosen], paint: Paint) -> io::Result<()> {
    writeln!(out, "{}", paint.words(Tone::Strong, "Scenarios"))?;
    for Chosen { scenario, variants } in scenarios {
        let name = paint.words(Tone::Strong, format!("{:<20}", scenario.name));
        writeln!(out, "  {name} {}", scenario.title)?;
        let count = match variants.len() {
            1 => String::new(),
            count => format!("; {count} variants"),
        };
        let must = format!("must: {}{count}", scenario.must.words());
        writeln!(out, "  {:20} {}", "", paint.words(Tone::Quiet, must))?;
    }
    writeln!(out, "\n{}", paint.words(Tone::Strong, "Strategies"))?;
    for strategy in &STRATEGIES {
        let name = paint.words(Tone::Strong, format!("{:<20}", strategy.name));
        let default = if strategy.name == DEFAULT_STRATEGY {
            " (default)"
        } else {
            ""
        };
        writeln!(out, "  {name} {}{default}", strategy.about)?;
    }
    Ok(())
}

fn objects(out: &mut impl Write, scenarios: &[Chosen]) -> io::Result<()> {
    for Chosen { scenario, variants } in scenarios {
        let must = &scenario.must;
        let names: Vec<&str> = variants.iter().map(|variant| variant.name.as_str()).collect();
        let object = json!({
            "scenario": scenario.name,
            "title": scenario.title,
            "jobs": scenario.jobs,
            "variants": names,
            "must": {
                "ratio": must.ratio,
                "against": must.against.name(),
                "refusedShare": must.refused_share,
                "calls": must.calls,
                "givenUp": must.given_up,
                "words": must.words(),
            },
        });
        writeln!(out, "{object}")?;
    }
    for strategy in &STRATEGIES {
        let object = json!({
            "strategy": strategy.name,
            "about": strategy.about,
            "default": strategy.name == DEFAULT_STRATEGY,
        });
        writeln!(out, "{object}")?;
    }
    Ok(())
}
