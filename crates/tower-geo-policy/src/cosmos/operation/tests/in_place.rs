//! Repeats in the same region: C9.

use super::*;

fn times(n: usize, reply: Reply) -> impl FnMut(&str) -> Reply {
    let mut calls = 0;
    move |_| {
        calls += 1;
        if calls <= n {
            reply
        } else {
            answer(200).after(8)
        }
    }
}

/// C9: 429 stays in the region and waits as told, or five seconds.
#[test]
fn throttling_waits_as_told() {
    let mut bench = Bench::multi(&[WEST]);
    let ran = bench.read(60_000, times(2, throttled(3200, 250).after(3)));
    ran.answered(&[WEST; 3], 200);
    assert_eq!(ran.times(), [60_000, 60_253, 60_506]);
    let ran = bench.write(70_000, times(1, answer(429)));
    ran.answered(&[WEST; 2], 200);
    assert_eq!(ran.times(), [70_000, 75_000]);
    bench.read(80_000, well).answered(&[WEST], 200);
}

/// C9: nine repeats at most, none that would end past thirty seconds.
#[test]
fn throttling_is_repeated_nine_times_or_thirty_seconds() {
    let mut bench = Bench::single(&[WEST]);
    bench.settings = bench.settings.clone().deadline(Duration::from_secs(180));
    let ran = bench.read(60_000, |_| throttled(3200, 100));
    ran.answered(&[WEST; 10], 429);
    assert_eq!(ran.done, 60_900);
    let ran = bench.read(100_000, |_| throttled(3200, 4_900));
    ran.answered(&[WEST; 7], 429);
    assert_eq!(ran.done, 129_400);
    let ran = bench.read(200_000, |_| throttled(3200, 40_000));
    ran.answered(&[WEST], 429);
}

/// C9: 3092 moves on at once on a multi-write account, reads and writes; where there is nowhere
/// to go it is a 429 like any other.
#[test]
fn an_overloaded_region_is_left_where_others_take_over() {
    let overloaded = |region: &str| {
        if region == WEST {
            throttled(3092, 1_000)
        } else {
            answer(201)
        }
    };
    let mut multi = Bench::multi(&[WEST]);
    for ran in [
        multi.write(60_000, overloaded),
        multi.read(61_000, overloaded),
    ] {
        ran.answered(&[WEST, EAST], 201);
        assert_eq!(ran.times()[0], ran.times()[1]);
    }
    let ran = Bench::single(&[]).write(60_000, times(1, throttled(3092, 200).after(5)));
    ran.answered(&[EAST; 2], 200);
    assert_eq!(ran.times(), [60_000, 60_205]);
    let mut hub = Bench::multi(&[WEST]);
    let ran = hub.run(
        begin(RequestKind::OtherWrite),
        times(1, throttled(3092, 200)),
    );
    ran.answered(&[EAST; 2], 200);
    let ran = Bench::multi(&[WEST]).write(60_000, times(3, throttled(3092, 200)));
    ran.answered(&[WEST, EAST, CENTRAL, CENTRAL], 200);
}

/// C9: 449 stays in the region: 10 ms doubled up to one second, for thirty seconds.
#[test]
fn retry_with_doubles_up_to_a_second() {
    let mut bench = Bench::single(&[WEST]);
    let ran = bench.write(60_000, times(10, answer(449)));
    let waits = [0, 10, 30, 70, 150, 310, 630, 1_270, 2_270, 3_270, 4_270];
    assert_eq!(ran.times(), waits.map(|wait| 60_000 + wait));
    let ran = bench.write(100_000, |_| answer(449));
    assert_eq!(ran.end, End::Answer(449, EAST.to_owned()));
    assert!(ran.done <= 130_000 && ran.done > 129_000, "{}", ran.done);
}

/// C9, T4: a repeat in place costs one token; so does a resend of C5, C6, C8 and a move of C7.
#[test]
fn every_further_send_costs_one_token() {
    let mut bench = Bench::single(&[WEST]);
    bench.budgets = (0..16).map(|_| Budget::new(3)).collect();
    let ran = bench.read(60_000, |_| throttled(3200, 100));
    ran.answered(&[WEST; 4], 429);
    assert_eq!(ran.done, 60_300, "no wait for a send that cannot be paid");
    let ran = bench.read(61_000, |region| match region {
        WEST => answer(503),
        EAST => sub(403, 1008),
        _ => answer(200),
    });
    ran.answered(&[WEST, EAST, CENTRAL], 200);
    let level = |name| {
        let topology = bench.account.topology();
        let region = topology.listed_by_name(&RegionName::new(name)).unwrap();
        bench.budgets[region.index()].level()
    };
    assert_eq!((level(WEST), level(EAST), level(CENTRAL)), (0, 2, 3));
}
