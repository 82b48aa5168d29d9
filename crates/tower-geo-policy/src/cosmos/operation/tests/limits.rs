//! What bounds an operation: C7 with B2 to B4, C15, G4, T3 to T9, E2.

use super::*;
use crate::breaker::{BreakerSettings, OpenJitter};
use crate::cosmos::Route;
use crate::operation::Fate;

fn with_breaker(settings: AccountSettings, writable: &[&str], streak: u32) -> Bench {
    with_ramp(settings, writable, streak, &[])
}

fn with_ramp(settings: AccountSettings, writable: &[&str], streak: u32, shares: &[f64]) -> Bench {
    let body =
        super::super::super::vectors::document_of(&[EAST, WEST], writable, writable.len() > 1);
    let given = Endpoint::parse("https://acct.documents.azure.com").unwrap();
    let breaker = BreakerSettings::new()
        .streak(streak)
        .rate(None)
        .jitter(OpenJitter::None)
        .ramp(shares)
        .ramp_step(Duration::from_secs(3));
    Bench::build(given, settings, &body, Some(breaker))
}

/// C7: a black hole costs as many reads a time-out as the streak is long; the circuit then marks
/// the region and asks for one account read. When the mark ends, a probe finds the region back.
#[test]
fn a_black_hole_costs_a_few_time_outs() {
    let mut bench = with_breaker(AccountSettings::new().preferred([WEST]), &[EAST], 3);
    bench.settings = bench
        .settings
        .clone()
        .attempt_timeout(Duration::from_secs(2));
    let hole = |region: &str| {
        if region == WEST {
            silence()
        } else {
            answer(200)
        }
    };
    for time in [60_000, 70_000, 80_000] {
        bench.read(time, hole).answered(&[WEST, EAST], 200);
    }
    bench.read(90_000, hole).answered(&[EAST], 200);
    bench.write(91_000, well).answered(&[EAST], 200);
    assert_eq!(bench.reads.len(), 2);
    bench.read(375_000, hole).answered(&[EAST], 200);
    let back = bench.read(385_000, well);
    back.answered(&[WEST], 200);
    assert!(back.sends[0].probe);
    assert!(!bench.read(386_000, well).sends[0].probe);
}

/// C7, B1: failures of reads and of writes are told apart; C15: roles, lag and throttling are no
/// failures.
#[test]
fn what_does_not_count_opens_nothing() {
    let mut bench = with_breaker(AccountSettings::new().preferred([WEST]), &[EAST, WEST], 2);
    let first = |reply: Reply| move |region: &str| if region == WEST { reply } else { answer(200) };
    for (reply, time) in [sub(404, 1002), throttled(3092, 10)]
        .into_iter()
        .zip([60_000, 70_000])
    {
        for again in 0..3 {
            let ran = bench.read(time + again, first(reply));
            assert_eq!(ran.regions(), [WEST, EAST]);
        }
    }
    bench
        .read(80_000, first(answer(503)))
        .answered(&[WEST, EAST], 200);
    bench
        .write(80_001, first(answer(503)))
        .answered(&[WEST, EAST], 200);
    bench
        .read(80_002, first(answer(503)))
        .answered(&[WEST, EAST], 200);
    bench
        .read(80_003, first(answer(503)))
        .answered(&[EAST], 200);
    bench
        .write(80_004, first(answer(503)))
        .answered(&[WEST, EAST], 200);
}

/// B2, C8: two failed connections of one operation are one failure.
#[test]
fn an_operation_gives_a_circuit_one_failure() {
    let mut bench = with_breaker(AccountSettings::new().preferred([WEST]), &[EAST], 2);
    let gone = |region: &str| {
        if region == WEST {
            fault(Fault::Connect)
        } else {
            answer(200)
        }
    };
    bench.read(60_000, gone).answered(&[WEST, WEST, EAST], 200);
    assert!(bench.state().is_calm());
}

/// C8: a circuit that opens at the first failed connection spares the second.
#[test]
fn an_open_circuit_spares_the_second_connection() {
    let mut bench = with_breaker(AccountSettings::new().preferred([WEST]), &[EAST], 1);
    let gone = |region: &str| {
        if region == WEST {
            fault(Fault::Connect)
        } else {
            answer(200)
        }
    };
    bench.read(60_000, gone).answered(&[WEST, EAST], 200);
    bench.read(61_000, gone).answered(&[EAST], 200);
}

/// C8, G4: a gate that the old writer's circuit closed does not keep a write from the new one.
#[test]
fn a_write_follows_the_new_writer_past_its_own_breaker() {
    let mut bench = with_breaker(AccountSettings::new(), &[EAST], 1);
    bench.changes(50_000, &[WEST], &[WEST], false);
    let gone = |region: &str| {
        if region == EAST {
            fault(Fault::Dns)
        } else {
            answer(201)
        }
    };
    bench.write(60_000, gone).answered(&[EAST, WEST], 201);
    assert!(!bench.state().is_calm());
}

/// R7: if no region admits the request it ends at once, with the earliest time to come back.
#[test]
fn no_region_admits_the_request() {
    let mut bench = with_breaker(AccountSettings::new(), &[EAST], 1);
    bench
        .read(60_000, |_| answer(503))
        .answered(&[EAST, WEST], 503);
    let ran = bench.read(61_000, well);
    let until = Some(at(90_000));
    ran.failed(&[], Failure::BreakerOpen { until });
    bench.write(62_000, well).answered(&[EAST], 200);
}

/// C7: an operator's *force open* is no failure and marks nothing.
#[test]
fn what_an_operator_opens_is_not_marked() {
    let mut bench = with_breaker(AccountSettings::new().preferred([WEST]), &[EAST], 3);
    bench.read(60_000, well).answered(&[WEST], 200);
    let west = bench
        .account
        .topology()
        .listed_by_name(&RegionName::new(WEST))
        .unwrap();
    bench.state().force_open(west, bench.now);
    bench.read(61_000, well).answered(&[EAST], 200);
    bench.state().automatic(west, bench.now);
    bench.read(62_000, well).answered(&[WEST], 200);
    assert_eq!(bench.reads.len(), 1);
}

/// G4: in maintenance nothing asks the writer.
#[test]
fn maintenance_keeps_reads_off_the_writer() {
    let mut bench = with_breaker(AccountSettings::new().preferred([EAST]), &[EAST], 3);
    bench.read(60_000, well).answered(&[EAST], 200);
    bench.state().begin_maintenance(bench.now).unwrap();
    bench.read(61_000, |_| answer(503)).answered(&[WEST], 503);
    bench.state().end_maintenance(bench.now);
    bench.read(62_000, well).answered(&[EAST], 200);
}

/// G4: a write that waits ends with what it has when an operator closes the gate.
#[test]
fn an_operator_ends_the_wait_of_a_write() {
    let mut bench = Bench::single(&[]);
    let mut operation = begin(RequestKind::DocumentWrite);
    bench.send(&mut operation);
    bench.answer(&mut operation, 429, 0);
    bench.state().set_read_only(true, bench.now);
    assert_eq!(bench.next_send(&mut operation).unwrap_err(), Finish::Answer);
}

/// T3: no wait is begun that would pass the deadline; a silent region gets its share of it.
#[test]
fn the_deadline_bounds_waits_and_shares_time() {
    let mut bench = Bench::single(&[WEST]);
    bench.settings = bench.settings.clone().deadline(Duration::from_secs(1));
    let ran = bench.read(60_000, |_| throttled(3200, 2_000).after(20));
    ran.answered(&[WEST], 429);
    assert_eq!(ran.done, 60_020);
    bench.settings = bench
        .settings
        .clone()
        .attempt_timeout(None)
        .deadline(Duration::from_secs(9));
    let ran = bench.read(70_000, |_| silence());
    ran.failed(&[WEST, EAST, CENTRAL], Failure::Transport);
    assert_eq!(ran.times(), [70_000, 73_000, 76_000]);
    assert_eq!(ran.done, 79_000);
}

/// T3: a write that would not move keeps the whole deadline; a replayable one shares it.
#[test]
fn time_is_shared_only_with_regions_that_would_be_asked() {
    let mut bench = Bench::multi(&[WEST]);
    bench.settings = bench
        .settings
        .clone()
        .attempt_timeout(None)
        .deadline(Duration::from_secs(9));
    let ran = bench.write(60_000, |_| silence());
    ran.failed(&[WEST], Failure::UnknownOutcome);
    assert_eq!(ran.done, 69_000);
    let mut operation = begin(RequestKind::DocumentWrite);
    operation.set_options(&RequestOptions::new().replayable());
    let ran = bench.run(operation, |_| silence());
    ran.failed(&[WEST, EAST, CENTRAL], Failure::UnknownOutcome);
}

/// T3: *deadline* only if it cut the only send.
#[test]
fn a_cut_send_ends_with_deadline() {
    let settings = AccountSettings::new().discovery(false);
    let mut bench = Bench::new(settings, &[EAST], &[EAST], false);
    bench.settings = bench
        .settings
        .clone()
        .attempt_timeout(None)
        .deadline(Duration::from_secs(5));
    bench
        .read(60_000, |_| silence())
        .failed(&["global"], Failure::Deadline);
}

/// T5: nothing is sent when the signature is too old.
#[test]
fn an_old_signature_is_not_sent_again() {
    let mut bench = Bench::single(&[WEST]);
    let mut operation = begin(RequestKind::Read);
    bench.send(&mut operation);
    operation.set_signature_limit(bench.now);
    bench.reply(&mut operation, answer(503).after(10));
    assert_eq!(bench.next_send(&mut operation).unwrap_err(), Finish::Answer);
}

/// T6: a body that is gone ends the operation when a send is due.
#[test]
fn a_body_that_is_gone_is_told() {
    for (reply, failure) in [
        (answer(429), Failure::NotReplayable),
        (sub(403, 3), Failure::NotReplayable),
        (answer(503), Failure::NotReplayable),
    ] {
        let mut bench = Bench::multi(&[WEST]);
        let mut operation = begin(RequestKind::DocumentWrite);
        bench.send(&mut operation);
        bench.reply(&mut operation, reply);
        let finish = bench
            .next_send_with(&mut operation, Again::BodyGone)
            .unwrap_err();
        assert_eq!(finish, Finish::Failure(failure), "{reply:?}");
    }
}

/// T7: a send that could not leave gives its token back, and its region is left.
#[test]
fn what_was_not_sent_is_not_counted() {
    let mut bench = Bench::single(&[WEST]);
    let mut operation = begin(RequestKind::Read);
    bench.send(&mut operation);
    bench.not_sent(&mut operation);
    assert_eq!(operation.sends(), 0);
    assert_eq!(bench.send(&mut operation).region, EAST);
    bench.not_sent(&mut operation);
    assert_eq!(bench.send(&mut operation).region, CENTRAL);
    bench.not_sent(&mut operation);
    let finish = bench.next_send(&mut operation).unwrap_err();
    assert_eq!(
        finish,
        Finish::Failure(Failure::BreakerOpen { until: None })
    );
    assert_eq!(
        operation.finish_unready(),
        Finish::Failure(Failure::Transport)
    );
    let mut operation = begin(RequestKind::Read);
    bench.send(&mut operation);
    bench.answer(&mut operation, 503, 0);
    let east = bench.send(&mut operation).region;
    let region = operation.region().index();
    assert_eq!((&*east, bench.budgets[region].level()), (EAST, 499));
    bench.not_sent(&mut operation);
    assert_eq!(bench.budgets[region].level(), 500);
    assert_eq!(operation.finish_unready(), Finish::Answer);
}

#[derive(Debug)]
struct Says(Advised);

impl Advice for Says {
    fn advise(&self, trail: &Trail, planned: &Planned) -> Advised {
        assert!(!trail.sends().is_empty());
        assert!(matches!(planned.kind, SendKind::FallOver | SendKind::Retry));
        self.0
    }
}

/// T9: the user's advice may stop, wait, or choose another admissible region.
#[test]
fn advice_is_asked_before_every_further_send() {
    let failing = |region: &str| {
        if region == WEST {
            answer(503)
        } else {
            answer(200)
        }
    };
    let ran = |advised, time| {
        let mut bench = Bench::single(&[WEST]);
        bench.at(time);
        bench.advice = Some(Box::new(Says(advised)));
        bench.run(begin(RequestKind::Read), failing)
    };
    ran(Advised::Stop, 60_000).answered(&[WEST], 503);
    let after = ran(Advised::After(Duration::from_secs(3)), 60_000);
    after.answered(&[WEST, EAST], 200);
    assert_eq!(after.times(), [60_000, 63_000]);
    ran(Advised::After(Duration::from_secs(70)), 60_000).answered(&[WEST], 503);
    let mut bench = Bench::single(&[WEST]);
    bench.at(60_000);
    let central = bench
        .account
        .topology()
        .listed_by_name(&RegionName::new(CENTRAL))
        .unwrap();
    bench.advice = Some(Box::new(Says(Advised::To(central))));
    bench
        .run(begin(RequestKind::Read), failing)
        .answered(&[WEST, CENTRAL], 200);
    bench
        .run(begin(RequestKind::Read), |region| match region {
            WEST => throttled(3200, 1_000),
            _ => answer(200),
        })
        .answered(&[WEST, CENTRAL], 200);
    // R1: no advice takes a write where none is taken.
    let ran = bench.run(begin(RequestKind::DocumentWrite), |_| answer(449));
    assert!(ran.regions().iter().all(|region| *region == EAST));
}

/// E2: a healthy operation that was directed is told, with nothing kept; undirected it goes home
/// in silence.
#[test]
fn a_healthy_operation_keeps_nothing() {
    let mut bench = Bench::single(&[WEST]);
    bench.at(2_000);
    let mut operation = begin(RequestKind::Read);
    assert!(!bench.goes_home(&mut operation));
    bench.send(&mut operation);
    assert_eq!(
        bench.fate(&mut operation, 200),
        Fate::Deliver { told: true }
    );
    assert!(operation.trail().is_none());
    let settings = AccountSettings::new().discovery(false);
    let bench = Bench::new(settings, &[EAST], &[EAST], false);
    let mut operation = begin(RequestKind::DocumentWrite);
    assert!(bench.goes_home(&mut operation));
    assert_eq!(
        bench.fate(&mut operation, 201),
        Fate::Deliver { told: false }
    );
}

/// R10, C12: a request that names a region's own host goes home, unless it needs a header.
#[test]
fn a_request_that_names_its_region_goes_home() {
    let mut bench = Bench::multi(&[]);
    bench.at(2_000);
    let topology = bench.account.topology();
    let [east, west] =
        [EAST, WEST].map(|name| topology.listed_by_name(&RegionName::new(name)).unwrap());
    let home = |kind, region| bench.goes_home(&mut Operation::new(kind, region, Reach::Everywhere));
    assert!(home(RequestKind::Read, west));
    assert!(home(RequestKind::DocumentWrite, east));
    assert!(
        !home(RequestKind::DocumentWrite, west),
        "it has to be marked as tentative"
    );
}

/// Reach: a redirect alone asks each region at most once and never waits; a retry alone stays.
#[test]
fn layers_alone_do_their_part() {
    let alone = |reach| Operation::new(RequestKind::Read, RegionId::FIRST, reach);
    let mut bench = Bench::single(&[WEST]);
    bench.at(60_000);
    let ran = bench.run(alone(Reach::OnceEach), |_| throttled(3200, 100));
    ran.answered(&[WEST], 429);
    let ran = bench.run(alone(Reach::OnceEach), |region| match region {
        WEST => fault(Fault::Connect),
        _ => answer(200),
    });
    ran.answered(&[WEST, EAST], 200);
    bench.read(61_000, well).answered(&[WEST], 200);
    let ran = bench.run(alone(Reach::Home), |_| answer(503));
    ran.answered(&["global"], 503);
    let mut calls = 0;
    let ran = bench.run(alone(Reach::Home), |_| {
        calls += 1;
        if calls == 1 {
            throttled(3200, 100)
        } else {
            answer(200)
        }
    });
    ran.answered(&["global", "global"], 200);
}

/// T8: an operation that repeats one that has just failed pays, and is sent all the same.
#[test]
fn a_repeated_failure_pays() {
    let mut bench = Bench::single(&[WEST]);
    bench.at(60_000);
    let mut operation = begin(RequestKind::Read);
    operation.set_repeats_a_failure();
    assert_eq!(bench.send(&mut operation).region, WEST);
    let level = |bench: &Bench| bench.budgets[operation.region().index()].level();
    assert_eq!(level(&bench), 500 - crate::budget::RETURN);
}

/// C12: every write to another region than the hub says so, also one that belongs to the hub and is
/// pinned away from it.
#[test]
fn every_write_away_from_the_hub_is_tentative() {
    let mut bench = Bench::multi(&[]);
    bench.read(60_000, well).answered(&[EAST], 200);
    let topology = bench.account.topology();
    let region = |name| topology.listed_by_name(&RegionName::new(name)).unwrap();
    for route in [Route::Write, Route::Hub] {
        assert!(topology.is_tentative(route, region(WEST)), "{route:?}");
        assert!(!topology.is_tentative(route, region(EAST)), "{route:?}");
    }
    assert!(!topology.is_tentative(Route::Read, region(WEST)));
}

/// B5: reads return along the ramp, step by step; half is drawn here.
#[test]
fn reads_return_along_the_ramp() {
    let settings = AccountSettings::new().preferred([WEST]);
    let mut bench = with_ramp(settings, &[EAST], 1, &[0.25, 0.75]);
    bench.read(60_000, |region| {
        answer(if region == WEST { 503 } else { 200 })
    });
    bench.read(370_000, well).answered(&[WEST], 200);
    bench.read(371_000, well).answered(&[EAST], 200);
    bench.read(374_000, well).answered(&[WEST], 200);
}

/// T4: a success that has cost nothing gives one token back.
#[test]
fn a_success_gives_a_token_back() {
    let mut bench = Bench::single(&[WEST]);
    bench.read(60_000, well).answered(&[WEST], 200);
    let west = bench.account.topology();
    let west = west.listed_by_name(&RegionName::new(WEST)).unwrap();
    assert!(bench.budgets[west.index()].try_pay(100));
    bench.read(61_000, well).answered(&[WEST], 200);
    assert_eq!(bench.budgets[west.index()].level(), 401);
}

/// C11, R10: a write of a single-write account is exempt from exclusions, also when it is pinned.
#[test]
fn a_write_that_is_pinned_to_an_excluded_writer_goes_there() {
    let settings = AccountSettings::new().excluded([EAST]);
    let mut bench = Bench::new(settings, &[EAST, WEST], &[EAST], false);
    bench.at(60_000);
    let mut write = begin(RequestKind::DocumentWrite);
    write.set_options(&RequestOptions::new().pin(RegionRef::Primary));
    assert_eq!(bench.send(&mut write).region, EAST);
    let mut read = begin(RequestKind::Read);
    read.set_options(&RequestOptions::new().pin(RegionRef::Primary));
    let end = bench.next_send(&mut read).unwrap_err();
    assert_eq!(end, Finish::Failure(Failure::Config(Misfit::AllExcluded)));
}
