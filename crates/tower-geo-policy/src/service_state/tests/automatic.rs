//! How circuits open and for how long (B1 to B4, B6).

use super::*;
use crate::breaker::{RateRule, SlowRule};

/// B2: nine failures do nothing, the tenth opens.
#[test]
fn the_tenth_failure_in_a_row_opens() {
    let world = World::new(exact());
    for i in 0..9 {
        world.read(i * 1000, FAILURE);
        assert!(world.state.is_calm(), "failure {i}");
    }
    world.read(9000, FAILURE);
    assert_eq!(
        world.reads(9010),
        Standing::Open {
            until: Some(ms(39_010))
        }
    );
    assert_eq!(world.writes(9010), Standing::Closed);
    assert!(!world.state.is_calm());
    assert_eq!(
        world.told.lines(),
        [
            "9010 blob r0 reads closed>open streak",
            "9010 blob gate read-only breaker"
        ]
    );
}

/// B2: an outcome and what it does to a streak of two out of three.
#[test]
fn what_ends_a_streak_and_what_does_not() {
    for (between, opens) in [
        (SUCCESS, false),
        (ALIVE, true),
        (REFUSED, true),
        (THROTTLED, true),
        (Outcome::Dropped, true),
    ] {
        let world = World::new(exact().streak(3));
        world.read(0, FAILURE);
        world.read(100, FAILURE);
        world.read(200, between);
        world.read(300, FAILURE);
        assert_eq!(!world.state.is_calm(), opens, "{between:?}");
    }
}

/// B2: two failures more than 2 minutes apart form no streak.
#[test]
fn failures_far_apart_are_no_streak() {
    let world = World::new(exact().streak(3));
    for at in [0, 1000, 125_000, 126_000] {
        world.read(at, FAILURE);
        assert!(world.state.is_calm());
    }
    world.read(127_000, FAILURE);
    assert!(!world.state.is_calm());
}

/// B1: unreachable counts in both circuits.
#[test]
fn unreachable_opens_both() {
    let world = World::new(exact().streak(3));
    for i in 0..3 {
        assert_eq!(
            world.call(P, READS, i * 100, UNREACHABLE),
            Some(Circuits::BOTH)
        );
    }
    assert_eq!(
        world.told.lines(),
        [
            "210 blob r0 reads closed>open streak",
            "210 blob r0 writes closed>open streak",
            "210 blob gate read-only breaker"
        ]
    );
}

/// B1: a successful write proves both, a successful read proves reads only.
#[test]
fn what_a_success_proves() {
    let world = World::new(exact().streak(2));
    world.read(0, FAILURE);
    world.write(100, SUCCESS);
    world.read(200, FAILURE);
    assert!(world.state.is_calm());
    world.write(300, FAILURE);
    world.read(400, SUCCESS);
    world.write(500, FAILURE);
    assert!(matches!(world.writes(600), Standing::Open { .. }));
    assert_eq!(world.reads(600), Standing::Closed);
}

/// B1: each region has circuits of its own.
#[test]
fn regions_are_apart() {
    let world = World::new(exact().streak(2));
    world.call(S, READS, 0, FAILURE);
    world.call(S, READS, 100, FAILURE);
    assert!(matches!(
        world.state.standing(S, READS, ms(200)),
        Standing::Open { .. }
    ));
    assert_eq!(world.reads(200), Standing::Closed);
    assert_eq!(world.gate(200), "pass");
}

/// B2: a rate opens with enough calls, judged when a failure is recorded.
#[test]
fn the_failure_rate_opens() {
    let rate = RateRule::new(0.5, secs(120), 6);
    let world = World::new(exact().streak(None).rate(rate));
    for i in 0..6 {
        assert!(world.state.is_calm(), "{i} calls");
        world.read(i * 1000, if i % 2 == 0 { SUCCESS } else { FAILURE });
    }
    assert_eq!(world.told.lines()[0], "5010 blob r0 reads closed>open rate");
}

/// B1, B2: a successful write is no call in the rate of reads.
#[test]
fn a_write_is_no_call_of_reads() {
    let rate = RateRule::new(0.5, secs(120), 2);
    let world = World::new(exact().streak(None).rate(rate));
    for i in 0..10 {
        world.write(i, SUCCESS);
    }
    world.read(100, FAILURE);
    assert!(world.state.is_calm(), "one call only");
    world.read(200, FAILURE);
    assert!(!world.state.is_calm());
}

/// B3: a thousand successes, then failures: half of the last minute has failed after half a
/// minute, give or take a tenth of a minute.
#[test]
fn the_window_slides_truly() {
    let rate = RateRule::new(0.5, secs(60), 20);
    let world = World::new(exact().streak(None).rate(rate));
    for i in 0..1000 {
        world.read(i * 100, SUCCESS);
    }
    let mut at = 100_000;
    while world.read(at, FAILURE) {
        at += 100;
    }
    assert!((126_900..=133_200).contains(&at), "{at}");
}

/// B2: slow calls open although each of them is a success.
#[test]
fn slow_calls_open() {
    let slow = SlowRule::new(secs(1), RateRule::new(0.5, secs(60), 4));
    let world = World::new(exact().slow(slow));
    for i in 0..4 {
        assert!(world.state.is_calm());
        world.call_taking(P, READS, i * 3000, 1500, SUCCESS);
    }
    assert_eq!(
        world.told.lines()[0],
        "10500 blob r0 reads closed>open slow"
    );
}

/// B2: quick calls count for the rate of slow ones.
#[test]
fn quick_calls_keep_slow_ones_in_proportion() {
    let slow = SlowRule::new(secs(1), RateRule::new(0.5, secs(60), 4));
    let world = World::new(exact().slow(slow));
    for i in 0..5 {
        world.call_taking(P, READS, i * 3000, 10, SUCCESS);
        world.call_taking(P, READS, i * 3000 + 1000, 1500, FAILURE);
    }
    assert!(!world.state.is_calm(), "half of ten");
    assert!(world.told.lines()[0].ends_with("slow"));
}

/// B2: an operation gives a circuit one failure, however often it is sent again.
#[test]
fn one_failure_per_operation() {
    let world = World::new(exact().streak(3));
    for operation in 0..2 {
        let mut given = Circuits::NONE;
        for i in 0..6 {
            let at = operation * 30_000 + i * 1000;
            let sent = world.state.send_restarted(P, WRITES, given, ms(at));
            given |= world
                .state
                .send_settled(sent.unwrap(), FAILURE, ms(at + 10), || 1.0);
        }
        assert!(given.contains(WRITES));
    }
    assert!(world.state.is_calm());
    // The token can be told later, too.
    let sent = world.state.send_started(P, WRITES, ms(60_000)).unwrap();
    let sent = sent.failure_given(WRITES.into());
    let given = world.state.send_settled(sent, FAILURE, ms(60_010), || 1.0);
    assert_eq!(given, Circuits::NONE);
    assert!(world.state.is_calm());
    world.write(61_000, FAILURE);
    assert!(!world.state.is_calm());
}

/// B2: a success always counts, also when the operation has failed before.
#[test]
fn a_success_counts_after_a_failure() {
    let world = World::new(exact().streak(2));
    world.write(0, FAILURE);
    let sent = world
        .state
        .send_restarted(P, WRITES, WRITES.into(), ms(100));
    world
        .state
        .send_settled(sent.unwrap(), SUCCESS, ms(110), || 1.0);
    world.write(200, FAILURE);
    assert!(world.state.is_calm());
}

/// B4: 10 s, 20 s, 40 s, and 40 s again because that is the most.
#[test]
fn each_opening_in_a_row_lasts_twice_as_long() {
    let settings = exact().streak(2).open_for(secs(10)).max_open_for(secs(40));
    let world = World::ungated(settings);
    world.read(0, FAILURE);
    world.read(1000, FAILURE);
    assert!(world.read(12_000, FAILURE));
    assert!(!world.read(25_000, SUCCESS));
    assert!(world.read(33_000, FAILURE));
    assert!(!world.read(60_000, SUCCESS));
    assert!(world.read(74_000, FAILURE));
    assert!(!world.read(110_000, SUCCESS));
    assert!(world.read(115_000, SUCCESS));
    let lines = world.told.lines();
    let at: Vec<_> = lines.iter().map(|l| l.split(' ').next().unwrap()).collect();
    assert_eq!(
        at,
        [
            "1010", "12000", "12010", "33000", "33010", "74000", "74010", "115000", "115010"
        ]
    );
    assert_eq!(lines[1], "12000 blob r0 reads open>half-open waited");
    assert_eq!(lines[2], "12010 blob r0 reads half-open>open probe");
    assert_eq!(lines[8], "115010 blob r0 reads half-open>closed probe");
    assert!(world.state.is_calm());
}

/// B4: after as long closed as the last opening lasted, the next is as short as the first.
#[test]
fn a_long_time_closed_is_forgiven() {
    let settings = exact().streak(2).open_for(secs(10)).max_open_for(secs(20));
    let world = World::ungated(settings);
    world.read(0, FAILURE);
    world.read(1000, FAILURE);
    assert!(world.read(12_000, FAILURE));
    assert!(world.read(33_000, SUCCESS));
    world.read(200_000, FAILURE);
    world.read(201_000, FAILURE);
    assert_eq!(
        world.reads(201_010),
        Standing::Open {
            until: Some(ms(211_010))
        }
    );
}

/// B4: closed for less than the last opening lasted, the next is in a row.
#[test]
fn a_short_time_closed_is_not_forgiven() {
    let settings = exact().streak(2).open_for(secs(10));
    let world = World::ungated(settings);
    world.read(0, FAILURE);
    world.read(1000, FAILURE);
    assert!(world.read(12_000, SUCCESS));
    world.read(20_000, FAILURE);
    world.read(21_000, FAILURE);
    assert_eq!(
        world.reads(21_010),
        Standing::Open {
            until: Some(ms(41_010))
        }
    );
}

/// B4: not grown while each of two or more regions that could take the request is open.
#[test]
fn the_wait_does_not_grow_while_both_regions_are_open() {
    let world = World::ungated(exact().streak(2).open_for(secs(8)));
    world.open_reads(1010, 2);
    world.call(S, READS, 5000, FAILURE);
    world.call(S, READS, 6000, FAILURE);
    assert!(world.read(10_000, FAILURE));
    assert_eq!(
        world.reads(10_010),
        Standing::Open {
            until: Some(ms(18_010))
        }
    );
}

/// B4: for writes only the regions that take writes matter.
#[test]
fn the_wait_of_writes_grows_although_the_secondary_is_open() {
    let world = World::ungated(exact().streak(1).open_for(secs(8)));
    world.call(S, READS, 0, UNREACHABLE);
    world.write(1000, FAILURE);
    assert!(world.write(10_000, FAILURE));
    assert_eq!(
        world.writes(10_010),
        Standing::Open {
            until: Some(ms(26_010))
        }
    );
}

/// B4: after so many operations elsewhere the next one tries.
#[test]
fn open_for_a_number_of_operations() {
    let world = World::ungated(exact().streak(2).open_for(secs(240)).open_for_calls(5));
    world.open_reads(1010, 2);
    for at in [2000, 3000, 4000, 5000, 6000] {
        assert!(!world.read(at, SUCCESS), "at {at}");
        world.state.note_operation(P, READS, ms(at));
    }
    assert!(world.read(7000, SUCCESS));
    assert_eq!(
        world.told.lines(),
        [
            "1010 blob r0 reads closed>open streak",
            "7000 blob r0 reads open>half-open waited",
            "7010 blob r0 reads half-open>closed probe"
        ]
    );
}

/// B4: jitter only shortens the wait, and chance is asked only when a circuit opens.
#[test]
fn jitter_shortens_the_wait() {
    let world = World::new(exact().streak(1).jitter(OpenJitter::Equal));
    let settle = |at, outcome, draw: fn() -> f64| {
        let sent = world.state.send_started(P, READS, ms(at)).unwrap();
        world.state.send_settled(sent, outcome, ms(at), draw);
    };
    settle(0, SUCCESS, || unreachable!());
    settle(1000, FAILURE, || 0.5);
    assert_eq!(
        world.reads(1000),
        Standing::Open {
            until: Some(ms(23_500))
        }
    );
}

/// B6: late outcomes of an older generation change nothing.
#[test]
fn late_outcomes_change_nothing() {
    for late in [
        SUCCESS,
        FAILURE,
        UNREACHABLE,
        ALIVE,
        THROTTLED,
        Outcome::Dropped,
    ] {
        let world = World::ungated(exact().streak(1).open_for(secs(3)));
        let sends: Vec<_> = (0..3)
            .map(|_| world.state.send_started(P, READS, ms(0)).unwrap())
            .collect();
        world.read(500, FAILURE);
        // While it is open, while it is half open, and when it is closed again.
        world.state.send_settled(sends[0], late, ms(2000), || 1.0);
        let slot = world.probe(READS, 5000).unwrap();
        world.state.send_settled(sends[1], late, ms(5001), || 1.0);
        assert!(world.probe(READS, 5002).is_none(), "the slot is taken");
        let sent = world
            .state
            .probe_started(slot, READS, Circuits::NONE, ms(5003));
        world
            .state
            .send_settled(sent.unwrap(), SUCCESS, ms(5010), || 1.0);
        world.state.send_settled(sends[2], late, ms(9000), || 1.0);
        // An unreachable read is a late failure of reads, and a timely one of writes.
        let of_reads: Vec<_> = world
            .told
            .lines()
            .into_iter()
            .filter(|l| l.contains("reads"))
            .collect();
        assert_eq!(
            of_reads,
            [
                "510 blob r0 reads closed>open streak",
                "5000 blob r0 reads open>half-open waited",
                "5010 blob r0 reads half-open>closed probe"
            ],
            "{late:?}"
        );
    }
}

/// Evidence from before a closing does not open again.
#[test]
fn closing_forgets() {
    let rate = RateRule::new(0.5, secs(120), 10);
    let world = World::ungated(exact().streak(None).rate(rate).open_for(secs(10)));
    for i in 0..10 {
        world.read(i, FAILURE);
    }
    assert!(world.read(11_000, SUCCESS));
    world.read(12_000, FAILURE);
    assert!(world.state.is_calm());
}

/// Without rules nothing ever opens; without a breaker there is nothing to settle.
#[test]
fn rules_and_breaker_can_be_off() {
    let world = World::new(exact().streak(None).rate(None));
    for i in 0..100 {
        world.read(i, UNREACHABLE);
    }
    assert!(world.state.is_calm());
    let world = World::with(exact(), |config| config.breaker(None));
    assert!(world.state.send_started(P, READS, ms(0)).is_none());
    let sent = world.state.send_started(P, WRITES, ms(0)).unwrap();
    assert_eq!(world.state.writes_in_flight(), 1);
    let given = world.state.send_settled(sent, UNREACHABLE, ms(1), || 1.0);
    assert_eq!(given, Circuits::NONE);
    assert_eq!(world.state.writes_in_flight(), 0);
    assert!(world.state.is_calm());
}

/// B2: the short cut of good calls does not pass by a streak.
#[test]
fn a_success_in_the_same_moment_ends_a_streak() {
    let world = World::new(exact().streak(10).rate(None));
    let streak = || world.state.circuit(P, READS, ms(50)).unwrap().streak;
    for at in 0..20 {
        world.call_taking(P, READS, at, 0, SUCCESS);
        assert_eq!(streak(), 0);
        world.call_taking(P, READS, at, 0, FAILURE);
        assert_eq!(streak(), 1);
    }
}
