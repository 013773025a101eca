//! What the deployable functions are put together from, so that their mains stay thin.

use std::{
    error::Error,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use adjourn_aws::{
    Environment,
    lambda::{Deployment, InJobSpan},
};
use adjourn_http::{Credentials, HttpHandler, Settings};
use adjourn_worker::{SystemClock, Worker};

/// Everything that keeps a function from starting, at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes(Vec<String>);

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the function cannot start: {}", self.0.join("; "))
    }
}

impl Error for Mistakes {}

/// The worker of HTTP jobs: ports as the environment says, providers and tiers as `adjourn.toml` says.
///
/// `ADJOURN_CONFIG` is the file's path, relative to where the function's code lies (`LAMBDA_TASK_ROOT`); without it,
/// `adjourn.toml` there.
///
/// # Errors
/// Every mistake of the environment and of the file at once.
pub async fn http_worker(environment: &Environment) -> Result<(Deployment, Worker<InJobSpan<HttpHandler>>), Mistakes> {
    let (deployment, file) = (Deployment::read(environment).await, read(environment));
    let (deployment, (settings, credentials)) = match (deployment, file) {
        (Ok(deployment), Ok(file)) => (deployment, file),
        (deployment, file) => {
            let environment = deployment.err().map(|mistakes| mistakes.to_string());
            return Err(Mistakes(environment.into_iter().chain(file.err()).collect()));
        }
    };
    let alone = |error: &dyn Error| Mistakes(vec![error.to_string()]);
    let (policy, concurrency) = (settings.policy().clone(), settings.concurrency());
    let handler = HttpHandler::new(settings, credentials, Arc::new(SystemClock)).map_err(|error| alone(&error))?;
    let worker = deployment.worker(handler, policy).map_err(|error| alone(&error))?;
    Ok((deployment, worker.concurrency(concurrency).build()))
}

fn read(environment: &Environment) -> Result<(Settings, Credentials), String> {
    let path = path(environment)?;
    let text = std::fs::read_to_string(&path).map_err(|error| {
        let path = path.display();
        format!("ADJOURN_CONFIG: {path}: {error}; needed: the path of an adjourn.toml in the function's package")
    })?;
    let wrong = |error: adjourn_http::SettingsError| format!("{}: {error}", path.display());
    let settings = Settings::parse(&text).map_err(wrong)?;
    let credentials = Credentials::read(&settings, |name| environment.get(name).map(str::to_string)).map_err(wrong)?;
    Ok((settings, credentials))
}

fn path(environment: &Environment) -> Result<PathBuf, String> {
    let named = environment.get("ADJOURN_CONFIG").unwrap_or("adjourn.toml");
    if named.starts_with("ssm:") {
        return Err(format!(
            "ADJOURN_CONFIG: found {named:?}; this version reads a file of the function's package, not a parameter"
        ));
    }
    // An absolute path replaces the root.
    Ok(environment
        .get("LAMBDA_TASK_ROOT")
        .map_or_else(PathBuf::new, PathBuf::from)
        .join(Path::new(named)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: [(&str, &str); 4] = [
        (
            "ADJOURN_QUEUE_URL",
            "https://sqs.eu-west-1.amazonaws.com/111122223333/jobs",
        ),
        ("ADJOURN_VISIBILITY_S", "180"),
        ("ADJOURN_RETENTION_S", "345600"),
        ("ACME_TOKEN", "t"),
    ];

    /// Starts with this file in the function's package, and these variables more.
    async fn start(file: &str, more: &[(&str, &str)]) -> Result<Worker<InJobSpan<HttpHandler>>, String> {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("adjourn.toml"), file).unwrap();
        let root = [("LAMBDA_TASK_ROOT", root.path().to_str().unwrap())];
        let environment = Environment::new(WHOLE.iter().chain(&root).chain(more).copied());
        http_worker(&environment)
            .await
            .map(|(_, worker)| worker)
            .map_err(|mistakes| mistakes.to_string())
    }

    #[tokio::test]
    async fn the_packaged_file_decides_the_tiers() {
        let file = "[providers.acme]\nbase_url = \"https://api.acme.example\"\n[deferral]\nmax_deferrals = 7\n";
        let worker = start(file, &[]).await.unwrap();
        assert!(format!("{worker:?}").contains("max_deferrals: 7"));
    }

    #[tokio::test]
    async fn mistakes_of_environment_and_file_are_told_together() {
        let words = start(
            "[providers.acme]\n",
            &[("ADJOURN_RETENTION_S", "1"), ("ADJOURN_VISIBILITY_S", "x")],
        )
        .await;
        let words = words.unwrap_err();
        for part in ["ADJOURN_RETENTION_S", "ADJOURN_VISIBILITY_S", "base_url"] {
            assert!(words.contains(part), "{part} in {words}");
        }
    }

    #[tokio::test]
    async fn a_file_that_is_not_there_is_named() {
        for (config, part) in [("other.toml", "other.toml"), ("ssm:/adjourn", "not a parameter")] {
            let words = start("", &[("ADJOURN_CONFIG", config)]).await.unwrap_err();
            assert!(words.contains("ADJOURN_CONFIG") && words.contains(part), "{words}");
        }
    }
}
