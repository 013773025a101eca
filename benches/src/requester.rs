//! One call of the requester beside the same call by a bare client: what reading, pacing and an allowance cost.

use std::{sync::Arc, time::Duration};

use adjourn_core::Outcome;
use adjourn_http::{Allowance, ContractReader, Credentials, HttpJob, Requester, Settings};
use adjourn_worker::{Clock, SystemClock};

use crate::{
    Failure, calls,
    jobs::{self, BODY, PATH},
    pairs::{Stopwatch, alternate},
    provider::Provider,
    table::{Bound, Table, span},
};

/// Calls of one side of a pair, one after the other on one connection.
const CALLS: u32 = 2_000;
const PAIRS: u32 = 20;

pub(crate) async fn measure(table: &mut Table) -> Result<(), Failure> {
    let provider = Provider::start(Duration::ZERO).await?;
    let client = calls::client()?;
    let settings = Settings::parse(&jobs::settings(&provider.url, true))?;
    let reader = Arc::new(ContractReader::of(&settings));
    let now = Arc::new(|| SystemClock.now());
    let requester = Requester::new(settings, Credentials::default(), reader, now)?;
    let job = HttpJob::parse(&jobs::line(0))?;
    let target = format!("{}{PATH}", provider.url);
    // Both connections are open before anything counts.
    ours(&requester, &job).await?;
    bare(&client, &target).await?;
    let compared = alternate(PAIRS, async |side| {
        let watch = Stopwatch::start();
        for _ in 0..CALLS {
            if side {
                ours(&requester, &job).await?;
            } else {
                bare(&client, &target).await?;
            }
        }
        Ok(watch.read())
    })
    .await?;
    let of_one = |seconds: f64| span(seconds / f64::from(CALLS));
    table.add(
        "requester: a call beside a bare client's",
        of_one(compared.ours),
        of_one(compared.other),
        compared.ratio,
        Bound::Reported,
    );
    Ok(())
}

async fn ours(requester: &Requester, job: &HttpJob) -> Result<(), Failure> {
    let answer = Allowance::worker().scope(requester.call(job, "order-0")).await?;
    if answer.outcome == Outcome::Done {
        Ok(())
    } else {
        Err(format!("the provider answered {answer:?}").into())
    }
}

/// What somebody writes who has nothing but the client: the same request, its answer read to the end.
async fn bare(client: &reqwest::Client, target: &str) -> Result<(), Failure> {
    let request = client
        .post(target)
        .header("content-type", "application/json")
        .header("idempotency-key", jobs::id(0))
        .timeout(Duration::from_secs(10))
        .body(BODY);
    request.send().await?.error_for_status()?.bytes().await?;
    Ok(())
}
