//! `adjourn jobs`: one job a line, as they come out of the store.

use std::{
    io::{self, BufWriter, Write},
    path::Path,
};

use adjourn_local::{JobFilter, State as JobState};

use crate::{
    cli::{Jobs, State},
    ending::{Ended, Failure},
    report,
};

fn state(state: State) -> JobState {
    match state {
        State::Ready => JobState::Ready,
        State::Running => JobState::Running,
        State::Waiting => JobState::Waiting,
        State::Done => JobState::Done,
        State::Failed => JobState::Failed,
        State::Exhausted => JobState::Exhausted,
        State::Review => JobState::Review,
        State::Cancelled => JobState::Cancelled,
    }
}

pub(crate) fn run(jobs: &Jobs, path: &Path, as_json: bool) -> Ended {
    let filter = JobFilter {
        state: jobs.state.map(state),
        tenant: jobs.tenant.clone(),
        run: jobs.run.clone(),
    };
    super::block_on(async {
        let store = super::existing(path)?;
        let mut listed = store.jobs(filter);
        let mut stdout = BufWriter::new(io::stdout().lock());
        while let Some(job) = listed.recv().await {
            let job = job.map_err(Failure::bad)?;
            if as_json {
                serde_json::to_writer(&mut stdout, &job).map_err(io::Error::from)?;
                writeln!(stdout)?;
            } else {
                writeln!(stdout, "{}", report::line(&job))?;
            }
        }
        stdout.flush()?;
        Ok(())
    })
}
