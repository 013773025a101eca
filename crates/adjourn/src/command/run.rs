//! `adjourn run`: performs a store's jobs until it is told to end, or until nothing is left.

use std::{
    io::{self, Write},
    path::Path,
    sync::Arc,
};

use adjourn_http::HttpHandler;
use adjourn_local::{Poller, PollerOptions, Progress, Store};
use adjourn_worker::SystemClock;
use indicatif::MultiProgress;
use tokio::sync::{oneshot, watch};

use crate::{
    cli::{Everywhere, Run},
    ending::{Ended, Failure},
    environment::Environment,
    logging, progress, settings_file,
    signals::Signals,
};

pub(crate) fn run(run: &Run, path: &Path, everywhere: &Everywhere, environment: &Environment) -> Ended {
    let bars = progress::bars(environment);
    logging::start(everywhere.verbose, environment, &bars)?;
    let settings = settings_file::read(everywhere.config())?;
    let credentials = settings_file::credentials(everywhere.config(), &settings)?;
    let concurrency = run
        .concurrency
        .and_then(|jobs| usize::try_from(jobs).ok())
        .unwrap_or(settings.concurrency());
    let policy = settings.policy().clone();
    // A call that is broken off may have had its effect, so each may use up its own timeout.
    let grace = settings.longest_timeout();
    super::block_on_many(async {
        let mut signals = Signals::listen()?;
        let handler = HttpHandler::new(settings, credentials, Arc::new(SystemClock)).map_err(Failure::no)?;
        let store = super::open(path)?;
        let worker = store.worker(handler).policy(policy).concurrency(concurrency).build();
        let (tell, told) = watch::channel(Progress::default());
        let options = PollerOptions::default().concurrency(concurrency).grace(grace);
        let options = if environment.stderr_is_terminal {
            options.progress(tell)
        } else {
            options
        };
        let options = if run.until_idle { options.until_idle() } else { options };
        let (stop, stopped) = oneshot::channel();
        let polling = Poller::run(worker, store.clone(), options, async {
            // A sender that is gone is no wish to stop.
            if stopped.await.is_err() {
                std::future::pending::<()>().await;
            }
        });
        tokio::select! {
            polled = polling => polled.map_err(Failure::no)?,
            ended = watch(&mut signals, stop, &bars) => return ended,
            () = show(told, &bars) => {}
        }
        let _ = bars.clear();
        finish(&store, everywhere.json).await
    })
}

/// The first signal asks the poller to end, the second ends this command.
async fn watch(signals: &mut Signals, stop: oneshot::Sender<()>, bars: &MultiProgress) -> Ended {
    signals.next().await;
    // Running jobs are not cut off because nobody reads stderr any more.
    let _ = bars.suspend(|| {
        writeln!(
            io::stderr(),
            "adjourn: ending; running jobs finish first, again ends at once, without them"
        )
    });
    // The poller may be at its end already.
    let _ = stop.send(());
    Err(Failure::Interrupted(signals.next().await))
}

/// Never over: that nothing more is told is no end.
async fn show(told: watch::Receiver<Progress>, bars: &MultiProgress) {
    progress::show(told, bars).await;
    std::future::pending::<()>().await;
}

async fn finish(store: &Store, as_json: bool) -> Ended {
    let status = store.status().await.map_err(Failure::no)?;
    if as_json {
        let mut stdout = io::stdout().lock();
        serde_json::to_writer(&mut stdout, &status).map_err(io::Error::from)?;
        writeln!(stdout)?;
    } else {
        let _ = writeln!(io::stderr(), "adjourn: {}", progress::summary(&status));
    }
    Ok(())
}
