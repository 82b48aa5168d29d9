//! Regions that refuse: C5, C2, C10, C13.

use super::*;

/// C5: the writer moved: one refused write, one account read, then straight to the new writer.
#[test]
fn a_refused_write_reads_the_account_and_follows() {
    let mut bench = Bench::single(&[WEST]);
    bench.read_takes = Duration::from_millis(200);
    bench.changes(50_000, &[WEST, EAST], &[WEST], false);
    let refuses = |region: &str| {
        if region == EAST {
            sub(403, 3).after(5)
        } else {
            answer(201).after(8)
        }
    };
    let ran = bench.write(60_000, refuses);
    ran.answered(&[EAST, WEST], 201);
    assert_eq!(ran.times(), [60_000, 60_205]);
    assert_eq!(ran.done, 60_213);
    bench.write(61_000, refuses).answered(&[WEST], 201);
    assert_eq!(bench.reads.len(), 2);
}

/// C3, C5: many writers that are refused at one moment share one account read.
#[test]
fn one_account_read_serves_many_writers() {
    let mut bench = Bench::single(&[]);
    bench.at(59_000);
    bench.changes(59_500, &[WEST, EAST], &[WEST], false);
    bench.at(60_000);
    let mut operations: Vec<_> = (0..5).map(|_| begin(RequestKind::DocumentWrite)).collect();
    for operation in &mut operations {
        assert_eq!(bench.send(operation).region, EAST);
    }
    for operation in &mut operations {
        bench.answer(operation, 403, 3);
    }
    for operation in &mut operations {
        assert_eq!(bench.send(operation).region, WEST);
    }
    assert_eq!(bench.reads.len(), 2);
}

/// C5: 0, 1, 2 and 4 s after the first refusal, each after a fresh account read; then the answer.
#[test]
fn refused_for_ever_ends_within_five_seconds() {
    let mut bench = Bench::single(&[]);
    let ran = bench.write(60_000, |_| sub(403, 3));
    ran.answered(&[EAST; 5], 403);
    assert_eq!(ran.times(), [60_000, 60_000, 61_000, 62_000, 64_000]);
    assert_eq!(ran.done, 64_000);
    let times: Vec<_> = bench.reads.iter().map(|(time, _)| *time).collect();
    assert_eq!(times, [1_000, 60_000, 61_000, 62_000, 64_000]);
}

/// C5: a failed account read does not hold the choice up.
#[test]
fn a_failed_account_read_leaves_the_marks_to_decide() {
    let mut bench = Bench::single(&[WEST]);
    bench.account_says(50_000, 503, b"");
    let ran = bench.read(60_000, |region| match region {
        WEST => sub(403, 1008),
        _ => answer(200),
    });
    ran.answered(&[WEST, EAST], 200);
}

/// C5, C10: a region that is gone is marked for the kind of the request; the mark, not the
/// document that still lists it, moves traffic, until it ends.
#[test]
fn a_region_that_is_gone_is_left_for_five_minutes() {
    let mut bench = Bench::multi(&[WEST, CENTRAL]);
    let gone = |region: &str| {
        if region == WEST {
            sub(403, 1008)
        } else {
            answer(200)
        }
    };
    bench.read(60_000, gone).answered(&[WEST, CENTRAL], 200);
    bench.write(61_000, well).answered(&[WEST], 200);
    bench.read(359_999, well).answered(&[CENTRAL], 200);
    bench.read(360_001, well).answered(&[WEST], 200);
    assert_eq!(
        bench.reads.len(),
        3,
        "at start, at the refusal, after five minutes"
    );
}

/// C5: 403/3 on a multi-write account takes writes away and nothing else.
#[test]
fn write_forbidden_marks_writes_only() {
    let mut bench = Bench::multi(&[WEST, CENTRAL]);
    let refuses = |region: &str| {
        if region == WEST {
            sub(403, 3)
        } else {
            answer(201)
        }
    };
    bench.write(60_000, refuses).answered(&[WEST, CENTRAL], 201);
    bench.write(61_000, well).answered(&[CENTRAL], 200);
    bench.read(62_000, well).answered(&[WEST], 200);
}

/// C2: a 403/3 of the hub to what is not for documents marks nothing.
#[test]
fn write_forbidden_at_the_hub_marks_nothing() {
    let mut bench = Bench::multi(&[]);
    bench.at(60_000);
    let mut calls = 0;
    let ran = bench.run(begin(RequestKind::OtherWrite), |_| {
        calls += 1;
        if calls == 1 { sub(403, 3) } else { answer(201) }
    });
    ran.answered(&[EAST, EAST], 201);
    assert_eq!(ran.times(), [60_000, 60_000]);
    bench.write(61_000, well).answered(&[EAST], 200);
}

/// C5: two regions gone: the third is asked after a second, and directly from then on.
#[test]
fn the_second_refusal_waits_a_second() {
    let mut bench = Bench::single(&[WEST, CENTRAL]);
    let gone = |region: &str| {
        if region == EAST {
            answer(200)
        } else {
            sub(403, 1008)
        }
    };
    let ran = bench.read(60_000, gone);
    ran.answered(&[WEST, CENTRAL, EAST], 200);
    assert_eq!(ran.times(), [60_000, 60_000, 61_000]);
    bench.read(61_500, gone).answered(&[EAST], 200);
}

/// C5, C7: a region that has failed is not the new choice.
#[test]
fn the_new_choice_has_not_failed_yet() {
    let mut bench = Bench::single(&[WEST]);
    let ran = bench.read(60_000, |region| match region {
        WEST => answer(503),
        EAST => sub(403, 1008),
        _ => answer(200),
    });
    ran.answered(&[WEST, EAST, CENTRAL], 200);
}

/// C2, C5: two writers are listed and the flag is false: the second takes over until the mark
/// ends; both refusing, the first is asked again.
#[test]
fn the_second_listed_writer_takes_over() {
    let settings = || AccountSettings::new().preferred([CENTRAL]);
    let account = |settings| Bench::new(settings, &[EAST, WEST, CENTRAL], &[EAST, WEST], false);
    let mut bench = account(settings());
    let refuses = |region: &str| {
        if region == EAST {
            sub(403, 3)
        } else {
            answer(201)
        }
    };
    bench.write(60_000, refuses).answered(&[EAST, WEST], 201);
    bench.write(61_000, refuses).answered(&[WEST], 201);
    bench.write(365_000, well).answered(&[EAST], 200);
    let mut bench = account(settings());
    let ran = bench.write(60_000, |_| sub(403, 3));
    ran.answered(&[EAST, WEST, EAST, EAST, EAST], 403);
}

/// C4: with discovery off no answer moves a request, and the account is never read.
#[test]
fn with_discovery_off_everything_stays() {
    let settings = AccountSettings::new().preferred([WEST]).discovery(false);
    let mut bench = Bench::new(settings, &[EAST, WEST], &[EAST, WEST], true);
    let replies = [
        sub(403, 3),
        sub(403, 1008),
        sub(404, 1002),
        answer(503),
        answer(500),
    ];
    for (reply, time) in replies.into_iter().zip(60_000..) {
        for ran in [bench.read(time, |_| reply), bench.write(time, |_| reply)] {
            assert_eq!(ran.regions(), ["global"], "{reply:?}");
            assert!(matches!(ran.end, End::Answer(..)), "{reply:?}");
        }
    }
    let ran = bench.write(61_000, |_| fault(Fault::Connect));
    ran.failed(&["global", "global"], Failure::Transport);
    bench.read(2_000_000, well).answered(&["global"], 200);
    assert!(bench.reads.is_empty());
}

/// C13: of two marked regions each is used again when its own mark ends.
#[test]
fn a_region_is_used_again_when_its_own_mark_ends() {
    let mut bench = Bench::single(&[WEST, CENTRAL]);
    let gone = |gone: &'static str| {
        move |region: &str| {
            if region == gone {
                sub(403, 1008)
            } else {
                answer(200)
            }
        }
    };
    bench
        .read(60_000, gone(WEST))
        .answered(&[WEST, CENTRAL], 200);
    bench
        .read(120_000, gone(CENTRAL))
        .answered(&[CENTRAL, EAST], 200);
    bench.read(200_000, well).answered(&[EAST], 200);
    bench.read(370_000, well).answered(&[WEST], 200);
    bench.read(430_000, well).answered(&[WEST], 200);
}

/// C5: for every request kind: a read that is refused as a write would be goes on elsewhere, and
/// only writes are marked.
#[test]
fn a_read_that_is_write_forbidden_goes_elsewhere() {
    let mut bench = Bench::single(&[WEST]);
    let ran = bench.read(60_000, |region| match region {
        WEST => sub(403, 3),
        _ => answer(200),
    });
    ran.answered(&[WEST, EAST], 200);
    bench.read(61_000, well).answered(&[WEST], 200);
}
