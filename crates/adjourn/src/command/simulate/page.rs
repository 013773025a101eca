//! Pictures and the page around them: one file that needs no other.

use std::fmt::Write as _;

use adjourn_sim::pacing::{
    Against, Figures, Must,
    chart::{Chart, Track, document, escaped},
};

use super::{
    compared,
    played::{Played, PlayedVariant, Run},
    runs::{percent, seconds},
    took::Took,
};

/// The page's own style; a picture brings its own.
const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1f2328;--quiet:#59636e;--ground:#fff;--line:#d8dee4;--miss:#b3361b;--miss-ground:#fdebe6}
@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--quiet:#9198a1;--ground:#0d1117;--line:#2a313a;--miss:#ff8a6b;--miss-ground:#3a1a12}}
body{margin:2rem auto;max-width:1180px;padding:0 1rem;color:var(--ink);background:var(--ground);font:15px/1.5 system-ui,-apple-system,\"Segoe UI\",Roboto,sans-serif}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin:2rem 0 .3rem}p{margin:.3rem 0}
.quiet{color:var(--quiet)}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums;margin:.6rem 0}
th,td{padding:.25rem .45rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left;position:sticky;left:0;background:var(--ground)}
td.miss{color:var(--miss);background:var(--miss-ground)}
a{color:inherit}
svg{max-width:100%;height:auto}
";

/// A picture of each variant of one scenario; of several scenarios, of the variant that says most.
pub(super) fn svg(played: &[Played]) -> String {
    let charts: Vec<Chart> = match played {
        [one] => one.variants.iter().map(|variant| chart(one, variant)).collect(),
        several => several
            .iter()
            .filter_map(|played| Some(chart(played, telling(played)?)))
            .collect(),
    };
    document(&charts)
}

/// A page with every figure, and a picture for each scenario.
pub(super) fn html(played: &[Played], seed: u64) -> String {
    let title = match played {
        [one] => format!("{}: {}", one.scenario.name, one.scenario.title),
        several => format!("Pacing strategies on {} scenarios", several.len()),
    };
    let title = escaped(&title);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n\
         <p class=\"quiet\">adjourn simulate, seed {seed}. Each cell: the time that it took over the time of what the scenario compares \
         with, and the share of calls that were refused. Coloured and marked ! where the scenario's must was missed; the pointer shows why.</p>\n"
    );
    if played.len() > 1 {
        overview(&mut page, played);
    }
    for one in played {
        section(&mut page, one);
    }
    page.push_str("</body>\n</html>\n");
    page
}

/// The worst of each scenario, with the way to it.
fn overview(page: &mut String, played: &[Played]) {
    page.push_str("<div class=\"wide\"><table>\n<tr><th>scenario</th>");
    for run in played
        .iter()
        .flat_map(|one| &one.variants)
        .take(1)
        .flat_map(|variant| &variant.runs)
    {
        let _ = write!(page, "<th>{}</th>", escaped(&run.figures.strategy));
    }
    page.push_str("<th>against</th></tr>\n");
    for one in played {
        let (name, cells) = compared::whole(one);
        let name = escaped(&name);
        let _ = write!(page, "<tr><td><a href=\"#{name}\">{name}</a></td>");
        for cell in cells {
            let class = if cell.is_missed() { " class=\"miss\"" } else { "" };
            let _ = write!(page, "<td{class}>{cell}</td>");
        }
        let _ = writeln!(page, "<td>{}</td></tr>", one.scenario.must.against.name());
    }
    page.push_str("</table></div>\n");
}

fn section(page: &mut String, played: &Played) {
    let scenario = &played.scenario;
    // A String takes whatever is written.
    let _ = write!(
        page,
        "<h2 id=\"{name}\">{name}</h2>\n<div class=\"wide\"><table>\n<tr><th>variant</th>",
        name = escaped(&scenario.name),
    );
    for run in played.variants.first().into_iter().flat_map(|variant| &variant.runs) {
        let _ = write!(page, "<th>{}</th>", escaped(&run.figures.strategy));
    }
    page.push_str("<th>against</th></tr>\n");
    for variant in &played.variants {
        let Some(first) = variant.runs.first() else { continue };
        let name = first.figures.variant.as_deref().unwrap_or("-");
        let _ = write!(page, "<tr><td>{}</td>", escaped(name));
        for run in &variant.runs {
            page.push_str(&cell(&run.figures, &scenario.must));
        }
        let figures = &first.figures;
        let _ = writeln!(
            page,
            "<td>{}, {}</td></tr>",
            figures.against,
            seconds(figures.reference_ms)
        );
    }
    page.push_str("</table></div>\n");
    if let Some(variant) = telling(played) {
        page.push_str(&document(&[chart(played, variant)]));
    }
}

fn cell(figures: &Figures, must: &Must) -> String {
    let words = format!("{} &nbsp; {}", Took::of(figures, must), percent(figures));
    if figures.missed.is_empty() {
        return format!("<td>{words}</td>");
    }
    let why = escaped(&figures.missed.join("; "));
    format!("<td class=\"miss\" title=\"{why}\">{words} !</td>")
}

/// The variant that is shown of a scenario: the first whose must was missed, or the last.
fn telling(played: &Played) -> Option<&PlayedVariant> {
    let missed = |variant: &&PlayedVariant| variant.runs.first().is_some_and(|run| !run.figures.missed.is_empty());
    played.variants.iter().find(missed).or(played.variants.last())
}

fn chart(played: &Played, variant: &PlayedVariant) -> Chart {
    let name = variant.runs.first().map(|run| run.figures.whole_name());
    Chart {
        name: name.unwrap_or_default(),
        title: played.scenario.title.clone(),
        must: played.scenario.must.words(),
        ideal: variant.ideal.clone(),
        // Who knows the limit stands in every row.
        tracks: variant
            .runs
            .iter()
            .filter(|run| run.figures.strategy != "ideal" || variant.runs.len() == 1)
            .map(|run| track(run, &played.scenario.must))
            .collect(),
    }
}

fn track(run: &Run, must: &Must) -> Track {
    let figures = &run.figures;
    let mut notes = match Took::of(figures, must) {
        Took::NoEnd => vec![format!("no end of {} jobs", figures.lost)],
        Took::GaveUp => vec![format!("gave up {} jobs", figures.failed)],
        took @ Took::Times(_) => vec![match must.against {
            Against::Limit => format!("{took} x the limit's time"),
            Against::Independent | Against::Patient | Against::Ladder => {
                format!("{took} x {}", must.against.name())
            }
        }],
        Took::Incomparable => Vec::new(),
    };
    notes.push(format!("{} refused", percent(figures)));
    Track {
        strategy: figures.strategy.clone(),
        bins: run.bins.clone(),
        makespan: run.makespan,
        notes,
        missed: !figures.missed.is_empty(),
    }
}
