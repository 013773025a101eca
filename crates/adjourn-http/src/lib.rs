//! Being written.
mod headers;
mod job;
mod nearest;
mod read;
mod settings;

pub use job::{
    Body, FieldProblem, HttpJob, JobError, JobLine, JobLines, JobPath, LineProblem, LinesError, MAX_JOB_BYTES,
    Priority, Repeat, Scope, read_lines,
};
/// The most bytes of a body that are read to understand a response.
pub const READ_BYTES: usize = 64 * 1024;

pub use read::{PlainReader, ReadResponse, Reading, Response};
pub use settings::{Credential, Credentials, Problem, Provider, Results, Settings, SettingsError};
