//! The command line as a user meets it: the real binary, a real server on loopback, and temporary folders.

#[cfg(test)]
#[path = "cli/scene.rs"]
mod scene;

#[cfg(test)]
#[path = "cli/aws.rs"]
mod aws;
#[cfg(test)]
#[cfg(feature = "aws")]
#[path = "cli/aws_queue.rs"]
mod aws_queue;
#[cfg(test)]
#[path = "cli/cancel.rs"]
mod cancel;
#[cfg(test)]
#[path = "cli/crash.rs"]
mod crash;
#[cfg(test)]
#[path = "cli/demo.rs"]
mod demo;
#[cfg(test)]
#[path = "cli/explain.rs"]
mod explain;
#[cfg(test)]
#[path = "cli/explain_words.rs"]
mod explain_words;
#[cfg(test)]
#[path = "cli/jobs.rs"]
mod jobs;
#[cfg(test)]
#[path = "cli/later.rs"]
mod later;
#[cfg(test)]
#[path = "cli/providers.rs"]
mod providers;
#[cfg(test)]
#[path = "cli/readme.rs"]
mod readme;
#[cfg(test)]
#[path = "cli/run.rs"]
mod run;
#[cfg(test)]
#[path = "cli/send.rs"]
mod send;
#[cfg(test)]
#[path = "cli/settings_file.rs"]
mod settings_file;
#[cfg(test)]
#[path = "cli/signals.rs"]
mod signals;
#[cfg(test)]
#[path = "cli/simulate.rs"]
mod simulate;
#[cfg(test)]
#[path = "cli/terminal.rs"]
mod terminal;
#[cfg(test)]
#[path = "cli/usage.rs"]
mod usage;
