//! Due or early, open or closed, time left or none.

use super::*;

#[test]
fn a_fresh_message_starts_at_once() {
    assert_eq!(admitted(&fresh(&scope())), AT_ONCE);
}

#[test]
fn law_1_never_early_by_the_envelopes_due_time() {
    let scope = scope();
    let at = |left: Duration| {
        let envelope = copy(now() + left, None);
        admitted(&AdmissionFacts {
            envelope: Some(&envelope),
            ..fresh(&scope)
        })
    };
    assert_eq!(at(Duration::ZERO), AT_ONCE);
    assert_eq!(
        at(ms(999)),
        Admission::Admit { after: ms(999) },
        "less than a second is waited before the call"
    );
    assert_eq!(park(at(s(1))), (now() + s(1), Cause::NotDue, "burst".to_string()));
    assert_eq!(park(at(s(3600))).0, now() + s(3600));
    let late = copy(now() - s(5), None);
    assert_eq!(
        admitted(&AdmissionFacts {
            envelope: Some(&late),
            ..fresh(&scope)
        }),
        AT_ONCE
    );
}

#[test]
fn a_schedule_that_fires_a_minute_early_parks_for_exactly_the_rest() {
    let envelope = copy(now() + ms(73_250), None);
    let scope = scope();
    let (until, cause, _) = park(admitted(&AdmissionFacts {
        envelope: Some(&envelope),
        ..fresh(&scope)
    }));
    assert_eq!((until, cause), (now() + ms(73_250), Cause::NotDue));
}

#[test]
fn an_early_arrival_without_words_gets_some() {
    let envelope = Envelope {
        reason: String::new(),
        ..copy(now() + s(60), None)
    };
    let scope = scope();
    let (_, _, reason) = park(admitted(&AdmissionFacts {
        envelope: Some(&envelope),
        ..fresh(&scope)
    }));
    assert!(
        reason.contains("before its due time 2026-07-10T20:14:47.000Z"),
        "{reason}"
    );
}

#[test]
fn a_copy_that_served_its_delay_is_due_whatever_the_clock_says() {
    let scope = scope();
    for (clock_behind, rest, left) in [
        (s(0), ms(0), ms(0)),
        (ms(250), ms(250), ms(250)),
        (s(600), ms(0), ms(0)),
        (s(600), ms(250), ms(250)),
        (ms(100), ms(250), ms(100)),
        (s(86_400), ms(999), ms(999)),
    ] {
        let envelope = copy(now() + clock_behind, Some(rest));
        let facts = AdmissionFacts {
            envelope: Some(&envelope),
            ..fresh(&scope)
        };
        assert_eq!(
            admitted(&facts),
            Admission::Admit { after: left },
            "{clock_behind:?} {rest:?}"
        );
    }
}

#[test]
fn a_job_whose_copy_served_the_wait_for_its_own_moment_is_not_parked_again_by_a_slow_clock() {
    let scope = scope();
    let moment = now() + s(5);
    let envelope = copy(moment, Some(Duration::ZERO));
    let facts = AdmissionFacts {
        envelope: Some(&envelope),
        not_before: Some(moment),
        ..fresh(&scope)
    };
    assert_eq!(admitted(&facts), AT_ONCE);
    let earlier = copy(moment - s(1), Some(Duration::ZERO));
    let facts = AdmissionFacts {
        envelope: Some(&earlier),
        not_before: Some(moment),
        ..fresh(&scope)
    };
    assert_eq!(park(admitted(&facts)).0, moment, "a copy that waited for less has not");
}

#[test]
fn a_moment_from_a_scheduler_or_a_gate_adds_the_clock_skew() {
    let mut policy = Policy::default();
    policy.deferral.clock_skew = s(3);
    let scope = scope();
    let due = copy(now(), None);
    let facts = AdmissionFacts {
        envelope: Some(&due),
        ..fresh(&scope)
    };
    assert_eq!(park(admit(&policy, &facts)).0, now() + s(3));
    let served = copy(now(), Some(Duration::ZERO));
    assert_eq!(
        admit(
            &policy,
            &AdmissionFacts {
                envelope: Some(&served),
                ..fresh(&scope)
            }
        ),
        AT_ONCE
    );
    let gate = Passage::Closed {
        until: now() + s(10),
        reason: "burst".to_string(),
    };
    assert_eq!(
        park(admit(
            &policy,
            &AdmissionFacts {
                gate: &gate,
                ..fresh(&scope)
            }
        ))
        .0,
        now() + s(13)
    );
}

#[test]
fn the_jobs_own_moment_is_waited_for() {
    let scope = scope();
    let moment = now() + s(7 * 86_400);
    let (until, cause, reason) = park(admitted(&AdmissionFacts {
        not_before: Some(moment),
        ..fresh(&scope)
    }));
    assert_eq!((until, cause), (moment, Cause::NotBefore));
    assert!(reason.contains("not before 2026-07-17T20:13:47.000Z"), "{reason}");
    assert_eq!(
        admitted(&AdmissionFacts {
            not_before: Some(now()),
            ..fresh(&scope)
        }),
        AT_ONCE
    );
}

#[test]
fn a_hop_on_the_way_to_the_jobs_own_moment_is_still_its_own_wish() {
    let mut policy = Policy::default();
    policy.deferral.clock_skew = s(3);
    let scope = scope();
    let moment = now() + s(6 * 86_400);
    for due in [moment, moment + s(3)] {
        let envelope = copy(due, None);
        let facts = AdmissionFacts {
            envelope: Some(&envelope),
            not_before: Some(moment),
            ..fresh(&scope)
        };
        let (until, cause, _) = park(admit(&policy, &facts));
        assert_eq!(
            (until, cause),
            (due + s(3), Cause::NotBefore),
            "no cap on deferrals applies to it"
        );
    }
}

#[test]
fn the_later_of_two_moments_holds() {
    let scope = scope();
    let envelope = copy(now() + s(90), None);
    let facts = AdmissionFacts {
        envelope: Some(&envelope),
        not_before: Some(now() + s(60)),
        ..fresh(&scope)
    };
    assert_eq!(
        park(admitted(&facts)),
        (now() + s(90), Cause::NotDue, "burst".to_string())
    );
    let facts = AdmissionFacts {
        not_before: Some(now() + s(120)),
        ..facts
    };
    let (until, cause, _) = park(admitted(&facts));
    assert_eq!((until, cause), (now() + s(120), Cause::NotBefore));
}

#[test]
fn a_closed_gate_parks_and_says_whose_and_why() {
    let scope = scope();
    let gate = Passage::Closed {
        until: now() + s(30),
        reason: "burst".to_string(),
    };
    let (until, cause, reason) = park(admitted(&AdmissionFacts {
        gate: &gate,
        ..fresh(&scope)
    }));
    assert_eq!((until, cause), (now() + s(30), Cause::GateClosed));
    for word in ["acme:entity:7", "burst", "2026-07-10T20:14:17.000Z"] {
        assert!(reason.contains(word), "{reason}");
    }
    let soon = Passage::Closed {
        until: now() + ms(400),
        reason: "burst".to_string(),
    };
    assert_eq!(
        admitted(&AdmissionFacts {
            gate: &soon,
            ..fresh(&scope)
        }),
        Admission::Admit { after: ms(400) }
    );
}

#[test]
fn a_full_scope_waits_for_one_to_end() {
    let scope = scope();
    assert_eq!(
        admitted(&AdmissionFacts {
            gate: &Passage::Full,
            ..fresh(&scope)
        }),
        Admission::Full
    );
}

#[test]
fn what_the_invocation_has_no_time_for_is_given_back_unless_it_has_to_wait_anyway() {
    let scope = scope();
    let hurried = AdmissionFacts {
        time_left: false,
        ..fresh(&scope)
    };
    assert_eq!(admitted(&hurried), Admission::Yield);
    let envelope = copy(now() + s(60), None);
    assert_eq!(
        park(admitted(&AdmissionFacts {
            envelope: Some(&envelope),
            ..hurried.clone()
        }))
        .1,
        Cause::NotDue
    );
    let closed = Passage::Closed {
        until: now() + s(30),
        reason: "burst".to_string(),
    };
    assert_eq!(
        park(admitted(&AdmissionFacts {
            gate: &closed,
            ..hurried.clone()
        }))
        .1,
        Cause::GateClosed
    );
    let reopened = Passage::Closed {
        until: now(),
        reason: "burst".to_string(),
    };
    assert_eq!(
        admitted(&AdmissionFacts {
            gate: &reopened,
            ..hurried
        }),
        Admission::Yield
    );
}

#[test]
fn a_worker_may_wait_in_process_where_it_is_allowed_to() {
    let mut policy = Policy::default();
    policy.deferral.max_in_process_wait = s(5);
    let scope = scope();
    for (left, waits) in [(s(5), true), (ms(5001), false)] {
        let envelope = copy(now() + left, None);
        let admission = admit(
            &policy,
            &AdmissionFacts {
                envelope: Some(&envelope),
                ..fresh(&scope)
            },
        );
        assert_eq!(
            admission == Admission::Admit { after: left },
            waits,
            "{left:?}: {admission:?}"
        );
    }
}
