//! The command line as a user meets it: the real binary, a real server on loopback, and temporary folders.

#[path = "cli/scene.rs"]
mod scene;

#[path = "cli/aws.rs"]
mod aws;
#[path = "cli/cancel.rs"]
mod cancel;
#[path = "cli/config.rs"]
mod config;
#[path = "cli/crash.rs"]
mod crash;
#[path = "cli/demo.rs"]
mod demo;
#[path = "cli/jobs.rs"]
mod jobs;
#[path = "cli/later.rs"]
mod later;
#[path = "cli/run.rs"]
mod run;
#[path = "cli/send.rs"]
mod send;
#[path = "cli/signals.rs"]
mod signals;
#[path = "cli/usage.rs"]
mod usage;
