//! Redirects that are followed above the layers: each hop is a call.

use super::*;
use crate::requester::loopback::{Act, Loopback};

fn to(status: u16, location: &str) -> Act {
    Act::status(status, &format!("location: {location}\r\n"), "elsewhere")
}

fn fine() -> Act {
    Act::status(200, "", "fine")
}

/// As docs/clients.md builds it: one attempt, no redirects of its own.
fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .retry(reqwest::retry::never())
        .redirect(reqwest::redirect::Policy::none());
    client.no_proxy().build().unwrap()
}

/// A client's call through the layers, by tower or by reqwest-middleware.
async fn called(by_middleware: bool, budget: &RateBudget, request: reqwest::Request) -> Result<String, RateLimitError> {
    let limit = RateLimitLayer::new("acme", budget.clone());
    let retry = RetryLayer::new("acme").waiting(WaitPolicy::none());
    #[cfg(feature = "reqwest-middleware")]
    if by_middleware {
        let client = reqwest_middleware::ClientBuilder::new(client())
            .with(FollowRedirectLayer::new())
            .with(retry)
            .with(limit)
            .build();
        let response = client.execute(request).await;
        let response = response.map_err(|error| RateLimitError::find_in(&error).unwrap())?;
        return Ok(response.text().await.unwrap());
    }
    assert!(!by_middleware, "there is none without its feature");
    let service = ServiceBuilder::new()
        .layer(FollowRedirectLayer::new())
        .layer(retry)
        .layer(limit)
        .service(client());
    let response = service.oneshot(request).await;
    let response = response.map_err(|error| error.refusal().unwrap())?;
    Ok(response.text().await.unwrap())
}

#[tokio::test(start_paused = true)]
async fn each_hop_spends_and_takes_its_place_in_flight() {
    let ways = if cfg!(feature = "reqwest-middleware") {
        [false, true].iter()
    } else {
        [false].iter()
    };
    for by_middleware in ways {
        for (starts, made) in [(3, 3), (2, 2)] {
            let server = Loopback::playing(vec![to(302, "/a"), to(307, "b"), fine()]).await;
            let budget = RateBudget::new(Rate::new(starts, S(3600))).max_in_flight(1);
            let request = client().get(format!("{}/x", server.url)).build().unwrap();
            let answer = Allowance::worker()
                .scope(called(*by_middleware, &budget, request))
                .await;
            assert_eq!((answer.is_ok(), server.asked().len()), (starts == 3, made));
            assert!(budget.check("/").is_err(), "all of it is spent");
            assert_eq!(budget.in_flight(), 0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_hop_asks_for_is_what_browsers_ask_for_and_another_origin_is_asked_nothing() {
    let elsewhere = Loopback::playing(vec![fine()]).await;
    let other = format!("{}/a", elsewhere.url);
    for (method, status, location, expected) in [
        (Method::GET, 301, "/a?b=1", Some("GET /a?b=1 ")),
        (Method::POST, 301, "/a", Some("GET /a ")),
        (Method::POST, 302, "/a", Some("GET /a ")),
        (Method::PUT, 302, "/a", Some("PUT /a keeps")),
        (Method::PUT, 303, "/a", Some("GET /a ")),
        (Method::POST, 307, "/a", Some("POST /a keeps")),
        (Method::POST, 308, "../a", Some("POST /a keeps")),
        (Method::GET, 304, "/a", None),
        (Method::GET, 302, other.as_str(), None),
        (Method::GET, 302, "http://[", None),
    ] {
        let server = Loopback::playing(vec![to(status, location), fine()]).await;
        let mut request = client().request(method.clone(), format!("{}/x/y", server.url));
        if method != Method::GET {
            request = request.header("content-type", "text/plain").body("keeps");
        }
        let request = request.bearer_auth("secret").build().unwrap();
        let answer = called(false, &RateBudget::unknown(), request).await.unwrap();
        let asked = server.asked();
        let Some(expected) = expected else {
            assert_eq!(asked.len(), 1, "{method} {status} {location}");
            assert!(answer != "fine", "handed on as it was answered");
            continue;
        };
        let [_, hop] = asked.as_slice() else {
            panic!("{method} {status}: {asked:?}")
        };
        let line = hop.request_line().replace("HTTP/1.1", "");
        let seen = format!("{line}{}", String::from_utf8_lossy(&hop.body));
        assert_eq!(
            (answer.as_str(), seen.as_str()),
            ("fine", expected),
            "{method} {status}"
        );
        assert_eq!(hop.header("content-type").is_empty(), hop.body.is_empty());
        assert_eq!(hop.header("authorization"), ["Bearer secret"]);
    }
    assert!(elsewhere.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_circle_and_the_redirect_of_a_stream_are_handed_on() {
    let server = Loopback::playing(vec![to(302, "/x")]).await;
    let request = client().get(&server.url).build().unwrap();
    let answer = called(false, &RateBudget::unknown(), request).await.unwrap();
    assert_eq!((answer.as_str(), server.asked().len()), ("elsewhere", 11));

    let server = Loopback::playing(vec![to(307, "/a"), fine()]).await;
    let body = reqwest::Body::wrap(Pieces::default());
    let request = client().post(&server.url).header("content-length", "0").body(body);
    let answer = called(false, &RateBudget::unknown(), request.build().unwrap()).await;
    assert_eq!((answer.unwrap().as_str(), server.asked().len()), ("elsewhere", 1));
}

#[tokio::test(start_paused = true)]
async fn the_hops_of_a_spawned_call_have_the_allowance_of_the_task_that_made_it() {
    let refusal = Act::status(429, "retry-after: 2\r\n", "");
    let server = Loopback::playing(vec![to(302, "/a"), refusal, fine()]).await;
    let layer = ServiceBuilder::new()
        .layer(FollowRedirectLayer::new())
        .layer(RetryLayer::new("acme"));
    let mut service = layer.service(client());
    let request = client().get(&server.url).build().unwrap();
    let answer = Allowance::worker()
        .scope(async {
            tokio::spawn(service.ready().await.unwrap().call(request))
                .await
                .unwrap()
        })
        .await;
    assert_eq!(answer.unwrap_err().refusal().unwrap().wait(), Some(S(2)));
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn tower_http_s_layer_does_the_same_for_clients_of_its_own_requests() {
    let hop = |location: &str| Reply {
        headers: vec![("location", location.to_string())],
        ..reply(302)
    };
    let script = Script::playing([hop("/a"), hop("/b"), saying(200, "fine")]);
    let budget = RateBudget::new(Rate::new(2, S(3600)));
    let service = ServiceBuilder::new()
        .layer(tower_http::follow_redirect::FollowRedirectLayer::new())
        .layer(retry(&script))
        .layer(RateLimitLayer::new("acme", budget.clone()).wall_clock(script.now()))
        .service(script.clone());
    let answer = Allowance::worker().scope(service.oneshot(get())).await;
    assert!(answer.map(drop).unwrap_err().refusal().is_some());
    assert_eq!(script.calls(), 2);
    assert!(budget.check("/").is_err());
}
