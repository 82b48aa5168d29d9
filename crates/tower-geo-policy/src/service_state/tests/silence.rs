//! Callers that do not wait for an answer (B8, H4).

use super::*;
use crate::breaker::{RateRule, Sent, SlowRule};

fn start(world: &World, circuit: Circuit, at: u64) -> Sent {
    world.state.send_started(P, circuit, ms(at)).unwrap()
}

fn settle(world: &World, sent: Sent, outcome: Outcome, at: u64) -> Circuits {
    world.state.send_settled(sent, outcome, ms(at), || 1.0)
}

/// B8: ten callers leave a silent region after 2 s each.
#[test]
fn callers_that_leave_late_open() {
    let world = World::new(exact());
    for i in 0..10 {
        assert!(world.state.is_calm());
        world.call_taking(P, READS, i * 3000, 2000, Outcome::Dropped);
    }
    assert_eq!(
        world.told.lines()[0],
        "29000 blob r0 reads closed>open streak"
    );
    assert_eq!(world.writes(29_000), Standing::Closed);
}

/// B8: who leaves before `suspect_after` says nothing.
#[test]
fn callers_that_leave_early_say_nothing() {
    let world = World::new(exact().streak(1));
    world.call_taking(P, READS, 0, 999, Outcome::Dropped);
    assert!(world.state.is_calm());
    world.call_taking(P, READS, 5000, 1000, Outcome::Dropped);
    assert!(!world.state.is_calm());
}

/// B8: a region that answers others meanwhile is not suspect, whatever it answers.
#[test]
fn others_get_their_answers() {
    for answer in [
        SUCCESS,
        ALIVE,
        REFUSED,
        THROTTLED,
        Outcome::answer(Evidence::Failure),
    ] {
        let world = World::new(exact().streak(3));
        for i in 0..5 {
            let hung = start(&world, READS, i * 2000);
            world.call(P, WRITES, i * 2000 + 500, answer);
            settle(&world, hung, Outcome::Dropped, i * 2000 + 1500);
        }
        assert_eq!(world.reads(20_000), Standing::Closed, "{answer:?}");
    }
}

/// B8: a head is an answer, also while its body is on the way.
#[test]
fn a_head_is_an_answer() {
    let world = World::new(exact().streak(1));
    let hung = start(&world, READS, 0);
    world.state.note_answer(P, ms(500));
    settle(&world, hung, Outcome::Dropped, 5000);
    assert!(world.state.is_calm());
    world.state.note_answer(S, ms(6000));
    let hung = start(&world, READS, 5500);
    settle(&world, hung, Outcome::Dropped, 7000);
    assert!(!world.state.is_calm(), "another region's answer is none");
}

/// B8: calls still in flight count whenever a failure is recorded, each once.
#[test]
fn a_failure_makes_the_silent_ones_certain() {
    let world = World::new(exact().streak(5));
    let silent: Vec<_> = (0..4).map(|i| start(&world, READS, i * 100)).collect();
    let young = start(&world, READS, 2000);
    let failing = start(&world, READS, 2100);
    assert_eq!(settle(&world, failing, TIMEOUT, 2200), READS.into());
    assert_eq!(
        world.told.lines()[0],
        "2200 blob r0 reads closed>open streak"
    );
    for sent in silent {
        settle(&world, sent, TIMEOUT, 9000);
    }
    settle(&world, young, TIMEOUT, 9000);
    assert_eq!(world.told.lines().len(), 2);
}

/// B8: a call counted so is settled: its later outcome adds no failure.
#[test]
fn a_counted_call_adds_no_failure() {
    let world = World::new(exact().streak(5));
    let silent: Vec<_> = (0..3).map(|_| start(&world, READS, 0)).collect();
    let failing = start(&world, READS, 1900);
    settle(&world, failing, TIMEOUT, 2000);
    assert_eq!(world.state.circuit(P, READS, ms(2000)).unwrap().streak, 4);
    for (i, sent) in silent.into_iter().enumerate() {
        let outcome = [TIMEOUT, UNREACHABLE, Outcome::Dropped][i];
        assert_eq!(
            settle(&world, sent, outcome, 3000).contains(READS),
            outcome != Outcome::Dropped || i == 2,
            "the operation has given its failure"
        );
    }
    assert_eq!(world.state.circuit(P, READS, ms(3000)).unwrap().streak, 4);
}

/// B8: only what left after the last answer, and long enough ago, is suspect.
#[test]
fn who_is_suspect() {
    let world = World::new(exact().streak(100));
    let _before = start(&world, READS, 0);
    world.call(P, READS, 500, SUCCESS);
    let _after = start(&world, READS, 1000);
    let _write = start(&world, WRITES, 1000);
    let _young = start(&world, READS, 2500);
    let failing = start(&world, READS, 2000);
    settle(&world, failing, TIMEOUT, 2800);
    assert_eq!(world.state.circuit(P, READS, ms(2800)).unwrap().streak, 2);
    assert_eq!(world.state.circuit(P, WRITES, ms(2800)).unwrap().streak, 0);
}

/// B8: sends that are much older than `suspect_after` are not forgotten.
#[test]
fn old_sends_stay_suspect() {
    let world = World::new(exact().streak(100).rate(None));
    let sends: Vec<_> = (0..80)
        .map(|i| start(&world, READS, i * 100 + 50))
        .collect();
    let failing = start(&world, READS, 8000);
    settle(&world, failing, TIMEOUT, 9150);
    assert_eq!(world.state.circuit(P, READS, ms(9150)).unwrap().streak, 81);
    for sent in sends {
        settle(&world, sent, TIMEOUT, 10_000);
    }
    assert_eq!(
        world.state.circuit(P, READS, ms(10_000)).unwrap().streak,
        81
    );
}

/// B2, B8: an operation that has given its failure is not counted while its next send is silent.
#[test]
fn a_further_send_is_not_suspect() {
    let world = World::new(exact().streak(3));
    let _again = world.state.send_restarted(P, READS, READS.into(), ms(0));
    world.call_taking(P, READS, 100, 2000, TIMEOUT);
    assert_eq!(world.state.circuit(P, READS, ms(2100)).unwrap().streak, 1);
}

/// B6, B8: sends from before the circuit closed are of an older generation.
#[test]
fn sends_of_an_older_generation_are_not_suspect() {
    let world = World::ungated(exact().streak(2).open_for(secs(3)));
    let _old = start(&world, READS, 0);
    world.open_reads(500, 2);
    assert!(world.read(5000, SUCCESS));
    world.call_taking(P, READS, 6000, 2000, TIMEOUT);
    assert_eq!(world.state.circuit(P, READS, ms(8000)).unwrap().streak, 1);
}

/// B8: the calls that are made certain count for the rate as well.
#[test]
fn silent_calls_count_for_the_rate() {
    let rate = RateRule::new(0.5, secs(60), 20);
    let world = World::new(exact().streak(None).rate(rate));
    for _ in 0..19 {
        let _ = start(&world, READS, 0);
    }
    world.call_taking(P, READS, 1500, 10, UNREACHABLE);
    assert_eq!(world.told.lines()[0], "1510 blob r0 reads closed>open rate");
}

/// H4: a hedge that wins makes a silent region fail, however short it waited.
#[test]
fn outrun_in_silence_is_a_failure() {
    let world = World::new(exact().streak(2));
    world.call_taking(P, READS, 0, 250, Outcome::Outrun);
    world.call_taking(P, READS, 1000, 250, Outcome::Outrun);
    assert_eq!(
        world.told.lines()[0],
        "1250 blob r0 reads closed>open streak"
    );
}

/// H4: else it is a slow call.
#[test]
fn outrun_with_answers_is_a_slow_call() {
    let slow = SlowRule::new(secs(60), RateRule::new(0.5, secs(60), 2));
    for (slow, opens) in [(Some(slow), true), (None, false)] {
        let world = World::new(exact().streak(1).slow(slow));
        for i in 0..2 {
            let outrun = start(&world, READS, i * 1000);
            world.state.note_answer(P, ms(i * 1000 + 200));
            settle(&world, outrun, Outcome::Outrun, i * 1000 + 250);
        }
        let lines = world.told.lines();
        assert_eq!(lines.first().is_some_and(|l| l.ends_with("slow")), opens);
    }
}
