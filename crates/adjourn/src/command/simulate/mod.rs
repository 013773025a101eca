//! `adjourn simulate`: scenarios under strategies, in virtual time.

mod chosen;
mod compared;
mod list;
mod page;
mod played;
mod runs;
mod took;
mod whole_file;

use std::io::{self, BufWriter, Write};

use adjourn_sim::pacing::{DEFAULT_STRATEGY, Named, STRATEGIES};

use crate::{
    cli::Simulate,
    ending::{Ended, Failure},
    environment::Environment,
    paint::Paint,
};
use chosen::Chosen;
use played::{Played, Wanted};

pub(crate) fn run(asked: &Simulate, as_json: bool, environment: &Environment) -> Ended {
    if asked.list {
        return list::run(as_json, environment);
    }
    let chosen = match &asked.scenario {
        Some(name) => vec![Chosen::find(name)?],
        None => Chosen::all()?,
    };
    let strategies: Vec<&Named> = if asked.compare {
        STRATEGIES.iter().collect()
    } else {
        let strategy = &asked.strategy;
        let named = Named::find(strategy).ok_or_else(|| {
            let shown: String = strategy.chars().take(60).collect();
            Failure::bad(format!(
                "--strategy: no strategy has the name {shown:?}{}",
                Named::unknown(&shown)
            ))
        })?;
        vec![named]
    };
    let files: Vec<_> = [&asked.svg, &asked.html].into_iter().flatten().collect();
    for path in &files {
        whole_file::check(path)?;
    }
    if let (Some(svg), Some(html)) = (&asked.svg, &asked.html)
        && !whole_file::are_two(svg, html)
    {
        let words = format!("--html: found {}, the file of --svg; name another one", html.display());
        return Err(Failure::bad(words));
    }
    let wanted = Wanted {
        strategies: &strategies,
        seed: asked.seed,
        charts: !files.is_empty(),
    };
    let played = played::all(&chosen, &wanted, environment);
    if let Some(path) = &asked.svg {
        whole_file::write(path, &page::svg(&played))?;
    }
    if let Some(path) = &asked.html {
        whole_file::write(path, &page::html(&played, asked.seed))?;
    }
    told(asked, &played, as_json, Paint::stdout(environment))?;
    judged(&played, asked.compare)
}

fn told(asked: &Simulate, played: &[Played], as_json: bool, paint: Paint) -> Ended {
    let mut out = BufWriter::new(io::stdout().lock());
    if as_json {
        for run in played.iter().flat_map(Played::runs) {
            serde_json::to_writer(&mut out, &run.figures).map_err(io::Error::from)?;
            writeln!(out)?;
        }
    } else if asked.compare {
        compared::table(&mut out, played, asked.scenario.is_some(), paint)?;
    } else {
        for played in played {
            runs::table(&mut out, played, asked.seed, paint)?;
        }
    }
    Ok(out.flush()?)
}

/// Whether all went as it must. In a comparison that is asked of adjourn's own strategy alone: the others are there to show what they do.
fn judged(played: &[Played], compare: bool) -> Ended {
    let mut words = Vec::new();
    for run in played.iter().flat_map(Played::runs) {
        let missed = if run.figures.strategy == DEFAULT_STRATEGY {
            &run.figures.missed
        } else if compare {
            continue;
        } else {
            &run.laws_broken
        };
        let name = run.figures.whole_name();
        words.extend(missed.iter().map(|missed| format!("{name}: {missed}")));
    }
    match words.as_slice() {
        [] => Ok(()),
        [one] => Err(Failure::no(one)),
        several => Err(Failure::no(format!(
            "{} parts of what must be reached were missed\n{}",
            several.len(),
            several.join("\n")
        ))),
    }
}
