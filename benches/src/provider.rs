//! A provider that refuses nobody, in a process of its own on a loopback port.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{io::AsyncReadExt as _, net::TcpListener};

use crate::{Failure, children, children::Child};

/// Where it tells how many calls it has answered.
const COUNT: &str = "/answered";

/// The provider as its callers see it.
pub(crate) struct Provider {
    pub(crate) url: String,
    client: reqwest::Client,
    _child: Child,
}

impl Provider {
    /// A provider that takes so long for each call, or none that answers at once.
    pub(crate) async fn start(takes: Duration) -> Result<Self, Failure> {
        let mut child = Child::of_this_program(&[children::PROVIDER, &takes.as_millis().to_string()])?;
        let url = child.line().await?;
        Ok(Self {
            url,
            client: crate::calls::client()?,
            _child: child,
        })
    }

    /// How many calls it has answered.
    pub(crate) async fn answered(&self) -> Result<u32, Failure> {
        let response = self.client.get(format!("{}{COUNT}", self.url)).send().await?;
        Ok(response.text().await?.parse()?)
    }
}

/// A provider that answers at once, by a task of this runtime. Says where it is.
pub(crate) async fn here() -> Result<String, Failure> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move {
        let answered = Arc::new(AtomicU32::new(0));
        while let Ok((stream, _)) = listener.accept().await {
            let answered = Arc::clone(&answered);
            let service = service_fn(move |request| answer(request, Arc::clone(&answered), Duration::ZERO));
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    Ok(url)
}

/// Serves until the standard input ends; each call takes so many milliseconds.
pub(crate) fn serve(takes: &str) -> Result<(), Failure> {
    let takes = Duration::from_millis(takes.parse()?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        children::tell(&format!("http://{}", listener.local_addr()?))?;
        let answered = Arc::new(AtomicU32::new(0));
        let mut input = tokio::io::stdin();
        let mut nothing = [0; 1];
        loop {
            tokio::select! {
                accepted = listener.accept() => {
                    let (stream, _) = accepted?;
                    stream.set_nodelay(true)?;
                    let answered = Arc::clone(&answered);
                    let service = service_fn(move |request| answer(request, Arc::clone(&answered), takes));
                    // A caller that went away is not this side's trouble.
                    tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
                }
                _ = input.read(&mut nothing) => return Ok(()),
            }
        }
    })
}

async fn answer(
    request: Request<Incoming>,
    answered: Arc<AtomicU32>,
    takes: Duration,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let words = if request.uri().path() == COUNT {
        answered.load(Ordering::Relaxed).to_string()
    } else {
        // A body that breaks off is a caller that went away.
        let _ = request.into_body().collect().await;
        if !takes.is_zero() {
            tokio::time::sleep(takes).await;
        }
        answered.fetch_add(1, Ordering::Relaxed);
        r#"{"accepted":true}"#.to_string()
    };
    Ok(Response::new(Full::from(words)))
}
