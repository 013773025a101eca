//! The worker function: HTTP jobs from a queue, each under its provider's contract.

use adjourn_aws::{Environment, lambda};
use adjourn_functions::http_worker;

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), lambda_runtime::Error> {
    let environment = Environment::of_process();
    lambda::log::start(&environment);
    match http_worker(&environment).await {
        Ok((deployment, worker)) => deployment.serve(worker).await,
        Err(mistakes) => {
            tracing::error!("{mistakes}");
            Err(mistakes.into())
        }
    }
}
