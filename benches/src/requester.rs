//! One call of the requester beside the same call by a bare client: what reading, pacing and an allowance cost.

use std::{sync::Arc, time::Duration};

use adjourn_core::Outcome;
use adjourn_http::{Allowance, ContractReader, Credentials, HttpJob, Requester, Settings};
use adjourn_worker::{Clock, SystemClock};

use crate::{
    Failure, calls,
    jobs::{self, BODY, PATH},
    pairs::{Compared, Stopwatch, alternate},
    provider::{self, Provider},
    table::{Bound, Table, span},
};

/// Calls of one side of a pair, one after the other on one connection. Short, so that both sides of a pair meet the same machine.
const CALLS: u32 = 200;
const PAIRS: u32 = 200;

/// The argument by which this program makes calls and nothing else.
pub(crate) const CALLS_OF: &str = "--calls-of";

/// What a client calls itself, as the requester does.
const USER_AGENT: &str = concat!("adjourn/", env!("CARGO_PKG_VERSION"));

pub(crate) async fn measure(table: &mut Table) -> Result<(), Failure> {
    let provider = Provider::start(Duration::ZERO).await?;
    let ours = Ours::of(&provider.url)?;
    for (what, bare, bound) in [
        (
            "requester: a call beside a bare client's",
            Bare::of(&provider.url, Some(USER_AGENT))?,
            Bound::Reported,
        ),
        (
            "the same, a bare client that does not say who it is",
            Bare::of(&provider.url, None)?,
            Bound::Reported,
        ),
    ] {
        let compared = compare(&ours, &bare).await?;
        let of_one = |seconds: f64| span(seconds / f64::from(CALLS));
        table.add(
            what,
            of_one(compared.ours),
            of_one(compared.other),
            compared.ratio,
            bound,
        );
    }
    Ok(())
}

async fn compare(ours: &Ours, bare: &Bare) -> Result<Compared, Failure> {
    // Both connections are open before anything counts.
    ours.calls(1).await?;
    bare.calls(1).await?;
    alternate(PAIRS, async |side| {
        let watch = Stopwatch::start();
        if side {
            ours.calls(CALLS).await?;
        } else {
            bare.calls(CALLS).await?;
        }
        Ok(watch.read())
    })
    .await
}

/// Makes so many calls by one side, the provider in the same process and thread: what a counter of instructions counts.
pub(crate) fn count(side: &str, calls: &str) -> Result<(), Failure> {
    let calls = calls.parse()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let url = provider::here().await?;
        match side {
            "ours" => Ours::of(&url)?.calls(calls).await,
            "bare" => Bare::of(&url, Some(USER_AGENT))?.calls(calls).await,
            other => Err(format!("no side {other:?}; there are ours, bare").into()),
        }
    })
}

struct Ours {
    requester: Requester,
    job: HttpJob,
}

impl Ours {
    fn of(url: &str) -> Result<Self, Failure> {
        let settings = Settings::parse(&jobs::settings(url, true))?;
        let reader = Arc::new(ContractReader::of(&settings));
        let now = Arc::new(|| SystemClock.now());
        Ok(Self {
            requester: Requester::new(settings, Credentials::default(), reader, now)?,
            job: HttpJob::parse(&jobs::line(0))?,
        })
    }

    async fn calls(&self, count: u32) -> Result<(), Failure> {
        for _ in 0..count {
            let call = self.requester.call(&self.job, "order-0");
            let answer = Allowance::worker().scope(call).await?;
            if answer.outcome != Outcome::Done {
                return Err(format!("the provider answered {answer:?}").into());
            }
        }
        Ok(())
    }
}

/// What somebody writes who has nothing but the client: the same request, its answer read to the end.
struct Bare {
    client: reqwest::Client,
    target: String,
}

impl Bare {
    fn of(url: &str, user_agent: Option<&str>) -> Result<Self, Failure> {
        Ok(Self {
            client: calls::client_named(user_agent)?,
            target: format!("{url}{PATH}"),
        })
    }

    async fn calls(&self, count: u32) -> Result<(), Failure> {
        for _ in 0..count {
            let request = self
                .client
                .post(&self.target)
                .header("content-type", "application/json")
                .header("idempotency-key", jobs::id(0))
                .timeout(Duration::from_secs(10))
                .body(BODY);
            request.send().await?.error_for_status()?.bytes().await?;
        }
        Ok(())
    }
}
