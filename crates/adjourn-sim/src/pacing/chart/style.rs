//! The colours of charts and pages, for light and dark.

/// Style sheet of a chart. Told apart by lightness as well as by hue.
pub const STYLE: &str = "\
.adjourn text{font-family:system-ui,-apple-system,\"Segoe UI\",Roboto,\"DejaVu Sans\",sans-serif;font-size:12px;fill:#1f2328}
.adjourn .ground{fill:#ffffff}
.adjourn .name{font-size:19px;font-weight:600}
.adjourn .words{font-size:14px}
.adjourn .strategy{font-size:14px;font-weight:600}
.adjourn .quiet,.adjourn .mark{fill:#59636e}
.adjourn .mark{font-size:11px}
.adjourn .miss{fill:#b3361b;font-weight:600}
.adjourn .met{fill:#1a6b3c;font-weight:600}
.adjourn .grid{stroke:#d8dee4;stroke-width:1}
.adjourn .base{stroke:#818b98;stroke-width:1}
.adjourn .passed{fill:#3f7fc4}
.adjourn .refused{fill:#e2562f}
.adjourn .failed{fill:#9c6ade}
.adjourn .backlog{fill:#b9d8c5}
.adjourn .edge{fill:none;stroke:#1a6b3c;stroke-width:1.5}
.adjourn .ideal{fill:none;stroke:#1f2328;stroke-width:1.3;stroke-dasharray:5 3}
@media (prefers-color-scheme:dark){
.adjourn text{fill:#e6edf3}
.adjourn .ground{fill:#0d1117}
.adjourn .quiet,.adjourn .mark{fill:#9198a1}
.adjourn .miss{fill:#ff8a6b}
.adjourn .met{fill:#5fce8f}
.adjourn .grid{stroke:#2a313a}
.adjourn .base{stroke:#6e7681}
.adjourn .passed{fill:#4b8fdb}
.adjourn .refused{fill:#f0683f}
.adjourn .failed{fill:#b48bf0}
.adjourn .backlog{fill:#1f4a35}
.adjourn .edge{stroke:#5fce8f}
.adjourn .ideal{stroke:#e6edf3}
}
";
