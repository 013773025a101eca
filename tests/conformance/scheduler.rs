//! What every scheduler has to do.

use std::{sync::Arc, time::Duration};

use adjourn_worker::{Attribute, Message};

use super::{ScheduleSite, envelope_of, received, scheduled};

const HOUR: Duration = Duration::from_secs(3600);
const MINUTE: Duration = Duration::from_secs(60);

pub(crate) async fn a_schedule_is_accepted_by_its_step(site: &dyn ScheduleSite) {
    let original = received(site, "{}").await;
    let asked = scheduled(&original, (site.clock().now() + HOUR).floor_to(MINUTE));
    let accepted = site
        .scheduler()
        .schedule(std::slice::from_ref(&asked))
        .await
        .remove(0)
        .unwrap();
    assert_eq!(accepted.identity, asked.envelope.identity);
    assert_eq!(site.schedules().await, [(accepted.name, asked.at)]);
}

pub(crate) async fn making_the_same_again_is_a_success_and_makes_no_second(site: &dyn ScheduleSite) {
    let original = received(site, "{}").await;
    let asked = scheduled(&original, (site.clock().now() + HOUR).floor_to(MINUTE));
    let first = site
        .scheduler()
        .schedule(std::slice::from_ref(&asked))
        .await
        .remove(0)
        .unwrap();
    let second = site
        .scheduler()
        .schedule(std::slice::from_ref(&asked))
        .await
        .remove(0)
        .unwrap();
    assert_eq!(first, second);
    assert_eq!(site.schedules().await.len(), 1);
}

pub(crate) async fn one_of_ours_that_is_later_serves_too(site: &dyn ScheduleSite) {
    let original = received(site, "{}").await;
    let at = (site.clock().now() + HOUR).floor_to(MINUTE);
    let later = scheduled(&original, at + 5 * MINUTE);
    site.scheduler()
        .schedule(std::slice::from_ref(&later))
        .await
        .remove(0)
        .unwrap();
    let accepted = site
        .scheduler()
        .schedule(&[scheduled(&original, at)])
        .await
        .remove(0)
        .unwrap();
    assert_eq!(accepted.identity, later.envelope.identity);
    let waiting: Vec<_> = site.schedules().await.into_iter().map(|(_, at)| at).collect();
    assert_eq!(waiting, [at + 5 * MINUTE], "never early: the later one stays");
}

/// The step was scheduled, its reply was lost, and by now the wait is longer.
pub(crate) async fn one_of_ours_that_is_earlier_is_replaced(site: &dyn ScheduleSite) {
    let original = received(site, "{}").await;
    let at = (site.clock().now() + HOUR).floor_to(MINUTE);
    let first = site
        .scheduler()
        .schedule(&[scheduled(&original, at)])
        .await
        .remove(0)
        .unwrap();
    let later = scheduled(&original, at + 5 * MINUTE);
    let second = site
        .scheduler()
        .schedule(std::slice::from_ref(&later))
        .await
        .remove(0)
        .unwrap();
    assert_eq!(second.identity, later.envelope.identity);
    assert_ne!(first.name, second.name);
    assert_eq!(site.schedules().await, [(second.name, at + 5 * MINUTE)]);
}

pub(crate) async fn a_name_that_is_somebody_elses_is_refused(site: &dyn ScheduleSite) {
    let original = received(site, "{}").await;
    let asked = scheduled(&original, (site.clock().now() + HOUR).floor_to(MINUTE));
    assert!(site.occupy(&asked.envelope.identity.name(), asked.at).await);
    let error = site.scheduler().schedule(&[asked]).await.remove(0).unwrap_err();
    assert!(!error.is_transient(), "another route has to be taken: {error}");
    assert_eq!(site.schedules().await.len(), 1, "and theirs is untouched");
}

pub(crate) async fn a_moment_that_is_not_in_the_future_is_refused(site: &dyn ScheduleSite) {
    let original = received(site, "{}").await;
    let now = site.clock().now();
    for at in [now.floor_to(MINUTE), now - HOUR] {
        let answer = site.scheduler().schedule(&[scheduled(&original, at)]).await.remove(0);
        assert!(answer.is_err(), "at({at}) was accepted at {now}");
    }
    assert!(site.schedules().await.is_empty());
}

pub(crate) async fn what_a_scheduler_would_change_is_not_carried(site: &dyn ScheduleSite) {
    let plain = received(site, "{}").await;
    assert!(site.scheduler().carries(&plain));
    let with_body = |body: &str| Message {
        body: body.to_string(),
        ..(*plain).clone()
    };
    assert!(!site.scheduler().carries(&with_body("see <aws.scheduler.execution-id>")));
    let mut keyword = (*plain).clone();
    let text = Attribute::text("<aws.scheduler.scheduled-time>");
    keyword.attributes.insert("when".to_string(), text);
    assert!(!site.scheduler().carries(&keyword));
    let mut binary = (*plain).clone();
    let value = adjourn_worker::AttributeValue::Bytes(vec![1]);
    let data_type = "Binary".to_string();
    binary
        .attributes
        .insert("bytes".to_string(), Attribute { data_type, value });
    assert!(!site.scheduler().carries(&binary));
    assert!(
        !site.scheduler().carries(&with_body(&"\"".repeat(1_000_000))),
        "too large as JSON"
    );
}

pub(crate) async fn a_schedule_sends_its_copy_within_its_minute_and_is_gone(site: &dyn ScheduleSite) {
    assert!(site.fires());
    let original = received(site, "later").await;
    if !site.is_transactional() {
        let answers = super::do_and_delete(site, vec![(*original).clone()]).await;
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    }
    let at = (site.clock().now() + 2 * HOUR).floor_to(MINUTE);
    let asked = scheduled(&original, at);
    site.scheduler()
        .schedule(std::slice::from_ref(&asked))
        .await
        .remove(0)
        .unwrap();
    let arrived = site.next(3 * HOUR).await.remove(0);
    let now = site.clock().now();
    assert!(
        now >= at && now < at + MINUTE + Duration::from_secs(1),
        "at({at}) came at {now}"
    );
    let arrived = Arc::new(arrived);
    assert_eq!(arrived.body, "later");
    let envelope = envelope_of(&arrived).unwrap();
    assert_eq!(envelope.identity, asked.envelope.identity);
    assert!(site.schedules().await.is_empty(), "it is deleted after completion");
}
