//! Going on to another region: C6, C7, C8, C11, C12, I7, R10.

use http::StatusCode;

use super::*;

/// C1, C7: preferred first, then the rest of the account, each once, without a wait.
#[test]
fn a_read_walks_the_whole_account_once() {
    for status in [500, 502, 503, 504, 408] {
        let mut bench = Bench::single(&[CENTRAL]);
        let ran = bench.read(60_000, |_| answer(status).after(10));
        ran.answered(&[CENTRAL, EAST, WEST], status);
        assert_eq!(ran.times(), [60_000, 60_010, 60_020]);
        assert!(
            ran.sends
                .iter()
                .skip(1)
                .all(|seen| seen.kind == SendKind::FallOver)
        );
    }
    let mut bench = Bench::single(&[CENTRAL]);
    let ran = bench.read(60_000, |region| match region {
        CENTRAL => sub(410, 1022),
        _ => answer(200),
    });
    ran.answered(&[CENTRAL, EAST], 200);
}

/// C7: 400, 401, 403/0, 404/0, 409, 412, 501, 505 and other 410 are handed over, to reads and to
/// writes; nothing is marked and nothing is read.
#[test]
fn final_answers_are_handed_over() {
    let mut bench = Bench::multi(&[WEST]);
    let finals = [400, 401, 403, 404, 409, 412, 413, 501, 505, 410];
    for (status, time) in finals.into_iter().zip(60_000..) {
        bench
            .read(time, |_| answer(status))
            .answered(&[WEST], status);
        bench
            .write(time, |_| answer(status))
            .answered(&[WEST], status);
    }
    bench
        .read(61_000, |_| sub(410, 1002))
        .answered(&[WEST], 410);
    assert_eq!(bench.reads.len(), 1, "the one at start");
}

/// C7: a time-out or a reset moves this read; the next one starts at the first region again.
#[test]
fn silence_moves_one_read() {
    let mut bench = Bench::single(&[WEST]);
    bench.settings = bench
        .settings
        .clone()
        .attempt_timeout(Duration::from_secs(2));
    let ran = bench.read(60_000, |region| match region {
        WEST => silence(),
        _ => answer(200),
    });
    ran.answered(&[WEST, EAST], 200);
    assert_eq!(ran.times(), [60_000, 62_000]);
    let ran = bench.read(63_000, |region| match region {
        WEST => fault(Fault::Reset),
        _ => answer(200),
    });
    ran.answered(&[WEST, EAST], 200);
    bench.read(64_000, well).answered(&[WEST], 200);
}

/// C7: without any answer a read ends with *transport*; a fault does not replace an answer.
#[test]
fn a_read_ends_with_the_last_answer() {
    let mut bench = Bench::single(&[WEST]);
    let ran = bench.read(60_000, |_| fault(Fault::Reset));
    ran.failed(&[WEST, EAST, CENTRAL], Failure::Transport);
    let ran = bench.read(61_000, |region| match region {
        WEST => answer(503),
        _ => fault(Fault::Reset),
    });
    assert_eq!(ran.end, End::Answer(503, WEST.to_owned()));
}

/// C7: a write moves on a multi-write account, on 503 only; on a single-write account never.
#[test]
fn a_write_moves_only_on_503_of_a_multi_write_account() {
    let fails = |status| {
        move |region: &str| {
            if region == WEST {
                answer(status)
            } else {
                answer(201)
            }
        }
    };
    let mut multi = Bench::multi(&[WEST]);
    multi.write(60_000, fails(503)).answered(&[WEST, EAST], 201);
    for (status, time) in [500, 502, 504, 408].into_iter().zip(61_000..) {
        multi.write(time, fails(status)).answered(&[WEST], status);
    }
    multi
        .write(62_000, |_| sub(410, 1022))
        .answered(&[WEST], 410);
    let mut single = Bench::single(&[WEST]);
    for (status, time) in [503, 500, 408].into_iter().zip(60_000..) {
        single
            .write(time, |_| answer(status))
            .answered(&[EAST], status);
    }
}

/// C7: a write that was sent and lost is not sent again.
#[test]
fn a_lost_write_has_an_unknown_outcome() {
    for mut bench in [Bench::multi(&[EAST]), Bench::single(&[])] {
        for lost in [fault(Fault::Reset), silence()] {
            let ran = bench.write(ms(bench.now) + 60_000, |_| lost);
            ran.failed(&[EAST], Failure::UnknownOutcome);
        }
    }
}

/// C7: marked replayable, a write moves as a read would, though not on 408, and not on a
/// single-write account; headers and methods do not count.
#[test]
fn a_replayable_write_moves_on_a_multi_write_account() {
    let replayable = || {
        let mut operation = begin(RequestKind::DocumentWrite);
        operation.set_options(&RequestOptions::new().replayable());
        operation
    };
    let mut bench = Bench::multi(&[WEST, CENTRAL]);
    bench.at(60_000);
    let first = |reply: Reply| move |region: &str| if region == WEST { reply } else { answer(201) };
    for reply in [answer(500), sub(410, 1022), fault(Fault::Reset), silence()] {
        bench
            .run(replayable(), first(reply))
            .answered(&[WEST, CENTRAL], 201);
    }
    bench
        .run(replayable(), first(answer(408)))
        .answered(&[WEST], 408);
    let mut single = Bench::single(&[]);
    single
        .run(replayable(), |_| answer(500))
        .answered(&[EAST], 500);
    single
        .run(replayable(), |_| fault(Fault::Reset))
        .failed(&[EAST], Failure::UnknownOutcome);
}

/// V2: the 409 of a write whose first send may have been applied says so.
#[test]
fn a_conflict_may_be_the_doing_of_the_lost_send() {
    let mut bench = Bench::multi(&[WEST]);
    let mut operation = begin(RequestKind::DocumentWrite);
    operation.set_options(&RequestOptions::new().replayable());
    bench.send(&mut operation);
    bench.fault(&mut operation, Fault::Reset);
    bench.send(&mut operation);
    let end = bench.reply(&mut operation, answer(409));
    assert_eq!(end, Some(End::Answer(409, EAST.to_owned())));
    assert!(operation.is_after_ambiguous(StatusCode::CONFLICT));
    assert!(
        !operation.is_after_ambiguous(StatusCode::NOT_FOUND),
        "it is no DELETE"
    );
    assert_eq!(operation.take_trail().sends().len(), 2);
}

/// I7: a stored procedure is sent again only when it surely did not run.
#[test]
fn a_stored_procedure_never_runs_twice() {
    let first = |reply: Reply| move |region: &str| if region == WEST { reply } else { answer(200) };
    for reply in [answer(500), answer(503), answer(408), sub(410, 1022)] {
        let mut bench = Bench::multi(&[WEST]);
        let mut operation = begin(RequestKind::Procedure);
        operation.set_options(&RequestOptions::new().replayable());
        let ran = bench.run(operation, first(reply));
        assert_eq!(ran.regions(), [WEST], "{reply:?}");
    }
    let run = |reply| Bench::multi(&[WEST]).run(begin(RequestKind::Procedure), first(reply));
    run(fault(Fault::Reset)).failed(&[WEST], Failure::UnknownOutcome);
    run(fault(Fault::Connect)).answered(&[WEST, WEST, EAST], 200);
    run(sub(403, 3)).answered(&[WEST, EAST], 200);
    run(sub(403, 1008)).answered(&[WEST, EAST], 200);
    let mut calls = 0;
    let mut once = |reply: Reply| {
        calls = 0;
        let world = |_: &str| {
            calls += 1;
            if calls == 1 { reply } else { answer(200) }
        };
        Bench::multi(&[WEST]).run(begin(RequestKind::Procedure), world)
    };
    once(answer(449)).answered(&[WEST, WEST], 200);
    once(throttled(3200, 10)).answered(&[WEST, WEST], 200);
}

/// C6: on a single-write account the writer is asked, once, and its word is the end.
#[test]
fn session_lag_asks_the_writer_once() {
    let mut bench = Bench::single(&[WEST, CENTRAL]);
    let ran = bench.read(60_000, |region| match region {
        WEST => sub(404, 1002).after(12),
        _ => answer(200),
    });
    ran.answered(&[WEST, EAST], 200);
    assert_eq!(ran.times(), [60_000, 60_012]);
    bench.read(61_000, well).answered(&[WEST], 200);
    bench
        .read(62_000, |_| sub(404, 1002))
        .answered(&[WEST, EAST], 404);
    assert_eq!(bench.reads.len(), 1, "nothing is read because of it");
    bench
        .write(63_000, |_| sub(404, 1002))
        .answered(&[EAST], 404);
}

/// C6, C7: a writer that lags behind nobody but fails lets the others be asked.
#[test]
fn when_the_writer_fails_after_session_lag_the_rest_is_asked() {
    let mut bench = Bench::single(&[WEST]);
    let world = |last: u16| {
        move |region: &str| match region {
            WEST => sub(404, 1002),
            EAST => answer(503),
            _ => answer(last),
        }
    };
    bench
        .read(60_000, world(200))
        .answered(&[WEST, EAST, CENTRAL], 200);
    bench
        .read(61_000, world(503))
        .answered(&[WEST, EAST, CENTRAL], 503);
}

/// C6: on a multi-write account every other region is asked at most once; the last one's word is
/// the end.
#[test]
fn session_lag_walks_a_multi_write_account() {
    let mut bench = Bench::multi(&[WEST]);
    bench
        .read(60_000, |_| sub(404, 1002))
        .answered(&[WEST, EAST, CENTRAL], 404);
    let ran = bench.read(61_000, |region| match region {
        WEST => sub(404, 1002),
        EAST => answer(503),
        _ => answer(200),
    });
    ran.answered(&[WEST, EAST, CENTRAL], 200);
}

/// C8: once more on a new connection, then the next region; later requests of both kinds go there
/// directly, and the account is read once.
#[test]
fn no_connection_is_tried_twice_and_marks_both_kinds() {
    for refused in [Fault::Connect, Fault::Dns, Fault::Tls, Fault::RefusedStream] {
        let mut bench = Bench::multi(&[WEST, CENTRAL]);
        let gone = |region: &str| {
            if region == WEST {
                fault(refused)
            } else {
                answer(200)
            }
        };
        let ran = bench.read(60_000, gone);
        ran.answered(&[WEST, WEST, CENTRAL], 200);
        assert_eq!(ran.times(), [60_000; 3]);
        let fresh: Vec<_> = ran.sends.iter().map(|seen| seen.new_connection).collect();
        assert_eq!(fresh, [false, true, false]);
        bench.write(61_000, gone).answered(&[CENTRAL], 200);
        bench.read(62_000, gone).answered(&[CENTRAL], 200);
        assert_eq!(bench.reads.len(), 2);
        bench.read(361_000, well).answered(&[WEST], 200);
    }
}

/// C8: no mark if the second connection works.
#[test]
fn a_second_connection_that_works_marks_nothing() {
    let mut bench = Bench::single(&[WEST]);
    for (time, kind, region) in [
        (60_000, RequestKind::Read, WEST),
        (61_000, RequestKind::DocumentWrite, EAST),
    ] {
        let mut calls = 0;
        bench.at(time);
        let ran = bench.run(begin(kind), |_| {
            calls += 1;
            if calls == 1 {
                fault(Fault::Connect)
            } else {
                answer(200)
            }
        });
        ran.answered(&[region, region], 200);
    }
    bench.read(62_000, well).answered(&[WEST], 200);
    assert_eq!(bench.reads.len(), 1);
}

/// C8: a single-write write waits for the account read and follows the new writer.
#[test]
fn a_write_follows_the_new_writer() {
    let mut bench = Bench::single(&[]);
    bench.read_takes = Duration::from_millis(250);
    bench.changes(50_000, &[WEST, CENTRAL], &[WEST], false);
    let gone = |region: &str| {
        if region == EAST {
            fault(Fault::Dns)
        } else {
            answer(201)
        }
    };
    let ran = bench.write(60_000, gone);
    ran.answered(&[EAST, EAST, WEST], 201);
    assert_eq!(ran.times(), [60_000, 60_000, 60_250]);
    bench.write(61_000, gone).answered(&[WEST], 201);
}

/// C8: if the writer is the same, *transport*; reads are spaced, and the next write waits for the
/// next permitted one.
#[test]
fn a_write_waits_for_the_next_permitted_account_read() {
    let mut bench = Bench::single(&[]);
    let gone = |region: &str| {
        if region == EAST {
            fault(Fault::Connect)
        } else {
            answer(201)
        }
    };
    let ran = bench.write(60_000, gone);
    ran.failed(&[EAST, EAST], Failure::Transport);
    assert_eq!(ran.done, 60_000);
    bench.changes(70_000, &[WEST, CENTRAL], &[WEST], false);
    let ran = bench.write(63_000, gone);
    ran.answered(&[EAST, EAST, WEST], 201);
    assert_eq!(ran.times(), [63_000, 63_000, 75_000]);
    let times: Vec<_> = bench.reads.iter().map(|(time, _)| *time).collect();
    assert_eq!(times, [1_000, 60_000, 75_000]);
}

/// C8, T3: it does not wait for a read that begins after the deadline.
#[test]
fn a_write_does_not_wait_past_its_deadline() {
    let mut bench = Bench::single(&[]);
    bench.settings = bench.settings.clone().deadline(Duration::from_secs(10));
    let gone = |_: &str| fault(Fault::Connect);
    bench
        .write(60_000, gone)
        .failed(&[EAST, EAST], Failure::Transport);
    let ran = bench.write(61_000, gone);
    ran.failed(&[EAST, EAST], Failure::Transport);
    assert_eq!(ran.done, 61_000, "at once");
}

/// C2, C8: a second listed writer is followed at once, without waiting for the read.
#[test]
fn a_second_listed_writer_needs_no_account_read() {
    let settings = AccountSettings::new();
    let mut bench = Bench::new(settings, &[EAST, WEST], &[EAST, WEST], false);
    bench.read_takes = Duration::from_secs(5);
    let ran = bench.write(60_000, |region| match region {
        EAST => fault(Fault::Connect),
        _ => answer(201),
    });
    ran.answered(&[EAST, EAST, WEST], 201);
    assert_eq!(ran.times(), [60_000; 3]);
}

/// C2, C8: what belongs to the hub of a multi-write account follows the hub.
#[test]
fn a_hub_write_follows_the_hub() {
    let mut bench = Bench::multi(&[WEST]);
    bench.changes(50_000, &[WEST, CENTRAL], &[CENTRAL, WEST], true);
    bench.at(60_000);
    let ran = bench.run(begin(RequestKind::OtherWrite), |region| match region {
        EAST => fault(Fault::Connect),
        _ => answer(201),
    });
    ran.answered(&[EAST, EAST, CENTRAL], 201);
    let ran = bench.run(begin(RequestKind::OtherWrite), |_| answer(503));
    ran.answered(&[CENTRAL], 503);
}

/// C11: a request's own list counts instead of the service's, in retries too.
#[test]
fn excluded_regions_are_left_out_everywhere() {
    let settings = AccountSettings::new().preferred([WEST]).excluded([EAST]);
    let mut bench = Bench::new(settings, &[EAST, WEST, CENTRAL], &[EAST], false);
    bench
        .read(60_000, |_| answer(503))
        .answered(&[WEST, CENTRAL], 503);
    let mut own = begin(RequestKind::Read);
    own.set_excluded(["westus", "Mars"]);
    bench
        .run(own, |_| answer(503))
        .answered(&[EAST, CENTRAL], 503);
    let mut none = begin(RequestKind::Read);
    none.set_excluded::<[&str; 0]>([]);
    bench
        .run(none, |_| answer(503))
        .answered(&[WEST, EAST, CENTRAL], 503);
    bench.write(61_000, well).answered(&[EAST], 200);
    let lag = bench.read(62_000, |_| sub(404, 1002));
    lag.answered(&[WEST], 404);
}

/// C11: all excluded is an error, except for writes that have one place to go.
#[test]
fn with_everything_excluded_nothing_is_sent() {
    let everything = [EAST, WEST, CENTRAL];
    for (mut bench, kind, is_sent) in [
        (Bench::single(&[]), RequestKind::Read, false),
        (Bench::single(&[]), RequestKind::DocumentWrite, true),
        (Bench::multi(&[]), RequestKind::Read, false),
        (Bench::multi(&[]), RequestKind::DocumentWrite, false),
        (Bench::multi(&[]), RequestKind::OtherWrite, true),
    ] {
        let mut operation = begin(kind);
        operation.set_excluded(everything);
        let ran = bench.run(operation, well);
        if is_sent {
            ran.answered(&[EAST], 200);
        } else {
            assert_eq!(ran.end, End::Misfit(Misfit::AllExcluded));
            assert!(ran.sends.is_empty());
        }
    }
}

/// C12: writes of a multi-write account anywhere but at the hub.
#[test]
fn writes_away_from_the_hub_are_tentative() {
    let tentative = |bench: &mut Bench, kind| {
        let ran = bench.run(begin(kind), |region| match region {
            WEST => answer(503),
            _ => answer(200),
        });
        let sends = ran.sends.iter();
        let told: Vec<_> = sends
            .map(|seen| (seen.region.clone(), seen.tentative))
            .collect();
        told
    };
    let multi = &mut Bench::multi(&[WEST, CENTRAL]);
    let write = tentative(multi, RequestKind::DocumentWrite);
    assert_eq!(write, [(WEST.to_owned(), true), (CENTRAL.to_owned(), true)]);
    let read = tentative(multi, RequestKind::Read);
    assert!(read.iter().all(|(_, tentative)| !tentative));
    let hub = tentative(multi, RequestKind::OtherWrite);
    assert_eq!(hub, [(EAST.to_owned(), false)]);
    let multi = &mut Bench::multi(&[WEST, EAST]);
    let write = tentative(multi, RequestKind::DocumentWrite);
    assert_eq!(write, [(WEST.to_owned(), true), (EAST.to_owned(), false)]);
    let single = &mut Bench::single(&[WEST]);
    let write = tentative(single, RequestKind::DocumentWrite);
    assert_eq!(write, [(EAST.to_owned(), false)]);
}

/// R10: a pinned request stays, preferred or not, answered or not; by option and by host.
#[test]
fn a_pinned_request_stays() {
    let mut bench = Bench::single(&[WEST]);
    bench.at(60_000);
    let pinned = |kind, pin: &str| {
        let mut operation = begin(kind);
        operation.set_options(&RequestOptions::new().pin(RegionRef::Named(pin.to_owned())));
        operation
    };
    for reply in [answer(503), sub(404, 1002), answer(200)] {
        let ran = bench.run(pinned(RequestKind::Read, "centralus"), |_| reply);
        assert_eq!(ran.regions(), [CENTRAL]);
    }
    let ran = bench.run(pinned(RequestKind::Read, "Central US"), |_| {
        fault(Fault::Connect)
    });
    ran.failed(&[CENTRAL, CENTRAL], Failure::Transport);
    let ran = bench.run(pinned(RequestKind::DocumentWrite, "Central US"), well);
    assert_eq!(ran.end, End::Misfit(Misfit::WriteToCopy));
    let ran = bench.run(pinned(RequestKind::Read, "Japan East"), well);
    assert_eq!(ran.end, End::Misfit(Misfit::UnknownRegion));
    let topology = bench.account.topology();
    let central = topology.listed_by_name(&RegionName::new(CENTRAL)).unwrap();
    let by_host = Operation::new(RequestKind::Read, central, Reach::Everywhere);
    bench
        .run(by_host, |_| answer(503))
        .answered(&[CENTRAL], 503);
}
