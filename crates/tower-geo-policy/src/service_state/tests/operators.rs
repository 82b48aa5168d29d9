//! Operators, rests and what is set aside (B9, T1, R6).

use super::*;
use crate::breaker::CircuitPhase;
use crate::region::LocationMode;

/// B9: held open for as long as it takes, and handed back.
#[test]
fn forced_open_stays_open() {
    let world = World::new(exact());
    world.state.force_open(P, ms(5000));
    assert_eq!(world.reads(1_000_000), Standing::Open { until: None });
    assert!(!world.write(1_000_000, SUCCESS));
    assert_eq!(world.gate(1_000_000), "refused");
    world.state.automatic(P, ms(1_100_000));
    assert!(world.state.is_calm());
    assert_eq!(
        world.told.lines(),
        [
            "5000 blob r0 reads closed>open operator",
            "5000 blob r0 writes closed>open operator",
            "5000 blob gate read-only breaker",
            "1100000 blob r0 reads open>closed operator",
            "1100000 blob r0 writes open>closed operator",
            "1100000 blob gate read-write breaker"
        ]
    );
}

/// B9: held closed, failures change nothing that callers meet.
#[test]
fn forced_closed_ignores_failures() {
    let world = World::new(exact().streak(2));
    world.state.force_closed(P, ms(0));
    for i in 1..20 {
        assert!(world.read(i * 1000, UNREACHABLE));
        assert_eq!(world.gate(i * 1000 + 20), "pass");
    }
    assert_eq!(world.told.lines(), [] as [&str; 0]);
}

/// B9: *automatic* returns to the state that it would have had.
#[test]
fn automatic_returns_to_what_would_have_been() {
    // It would have opened.
    let world = World::new(exact().streak(2));
    world.state.force_closed(P, ms(0));
    world.read(1000, FAILURE);
    world.read(2000, FAILURE);
    world.state.automatic(P, ms(3000));
    assert_eq!(
        world.reads(3000),
        Standing::Open {
            until: Some(ms(32_010))
        }
    );
    assert_eq!(
        world.told.lines(),
        [
            "3000 blob r0 reads closed>open operator",
            "3000 blob gate read-only breaker"
        ]
    );
    // It would have been tried, and closed.
    let world = World::new(exact().streak(2));
    world.open_reads(1010, 2);
    world.state.force_closed(P, ms(2000));
    assert!(world.read(3000, SUCCESS), "no probe: its wait is not over");
    assert!(world.read(40_000, SUCCESS));
    world.state.automatic(P, ms(50_000));
    assert!(world.state.is_calm());
    // It would have been tried in vain.
    let world = World::new(exact().streak(2));
    world.open_reads(1010, 2);
    world.state.force_closed(P, ms(2000));
    assert!(world.read(40_000, FAILURE));
    world.state.automatic(P, ms(50_000));
    assert_eq!(
        world.reads(50_000),
        Standing::Open {
            until: Some(ms(100_010))
        }
    );
    // Its wait would have gone on.
    let world = World::new(exact().streak(2));
    world.open_reads(1010, 2);
    world.state.force_open(P, ms(2000));
    world.state.automatic(P, ms(3000));
    assert_eq!(
        world.reads(3000),
        Standing::Open {
            until: Some(ms(31_010))
        }
    );
}

/// B9: *reset* clears evidence.
#[test]
fn reset_clears_the_evidence() {
    let world = World::new(exact().streak(2));
    world.read(0, FAILURE);
    world.state.reset(P, ms(1000));
    world.read(2000, FAILURE);
    assert!(world.state.is_calm());
    world.read(4000, FAILURE);
    assert!(!world.state.is_calm());
    world.state.reset(P, ms(5000));
    assert!(world.state.is_calm());
    assert_eq!(
        world.told.lines()[2..],
        [
            "5000 blob r0 reads open>closed operator",
            "5000 blob gate read-write breaker"
        ]
    );
}

/// B4, B9: a reset also forgets how often it was open.
#[test]
fn reset_forgets_the_openings() {
    let world = World::new(exact().streak(1));
    world.read(0, FAILURE);
    world.state.reset(P, ms(1000));
    world.read(2000, FAILURE);
    assert_eq!(
        world.reads(2010),
        Standing::Open {
            until: Some(ms(32_010))
        }
    );
}

/// B9: *reset* clears evidence, not a manual state.
#[test]
fn reset_leaves_what_is_forced() {
    let world = World::new(exact().streak(2));
    world.state.force_open(P, ms(0));
    world.state.reset(P, ms(1000));
    assert_eq!(world.reads(1000), Standing::Open { until: None });
    let state = world.state.circuit(P, READS, ms(1000)).unwrap();
    assert!(state.forced);
    assert_eq!(state.phase, CircuitPhase::Open);
}

/// An operator may do the same again; it is told once.
#[test]
fn nothing_is_told_twice() {
    let world = World::new(exact());
    for _ in 0..3 {
        world.state.force_open(P, ms(1000));
        world.state.set_read_only(true, ms(1000));
    }
    assert_eq!(world.told.lines().len(), 3);
}

/// T1: the longest of several told waits counts.
#[test]
fn regions_rest() {
    let world = World::new(exact());
    world.state.rest(P, ms(5000), ms(0));
    world.state.rest(P, ms(3000), ms(0));
    assert!(!world.state.is_calm());
    assert_eq!(world.state.resting(P, ms(4999)), Some(ms(5000)));
    assert_eq!(world.state.resting(S, ms(1000)), None);
    assert_eq!(world.state.resting(P, ms(5000)), None);
    assert!(world.state.is_calm());
    world.state.rest(P, ms(5000), ms(6000));
    assert!(world.state.is_calm(), "it is over before it begins");
    assert!(world.read(7000, SUCCESS), "a rest is no open circuit");
}

/// R6: set aside for five minutes, said once, and in use again.
#[test]
fn set_aside_for_five_minutes() {
    let world = World::new(exact());
    world.state.set_aside(S, ms(10));
    world.state.set_aside(S, ms(25));
    assert!(world.state.is_set_aside(S, ms(299_000)));
    assert!(!world.state.is_set_aside(P, ms(299_000)));
    assert!(!world.state.is_calm());
    assert!(!world.state.is_set_aside(S, ms(300_010)));
    assert!(!world.state.is_set_aside(S, ms(301_000)));
    assert!(world.state.is_calm());
    assert_eq!(
        world.told.lines(),
        ["10 blob r1 set-aside", "300010 blob r1 in-use"]
    );
}

/// R2, I6: the mode can be changed; one that needs a secondary needs one.
#[test]
fn modes_need_their_regions() {
    let world = World::new(exact());
    assert_eq!(world.state.mode(), LocationMode::PrimaryOnly);
    world.state.set_mode(LocationMode::SecondaryOnly).unwrap();
    assert_eq!(world.state.mode(), LocationMode::SecondaryOnly);
    let alone = ServiceConfig::new("file", Arc::new(Anything), regions(1), base(), ());
    let alone = ServiceRoot::build(alone).unwrap().handle();
    let error = alone
        .set_mode(LocationMode::PrimaryThenSecondary)
        .unwrap_err();
    assert_eq!(error.setting(), "location_mode");
    assert_eq!(alone.mode(), LocationMode::PrimaryOnly);
    let wrong = ServiceConfig::new("file", Arc::new(Anything), regions(1), base(), ())
        .mode(LocationMode::SecondaryOnly);
    assert!(ServiceRoot::build(wrong).is_err());
}

#[test]
fn senseless_services_are_refused() {
    let config = || ServiceConfig::new("x", Arc::new(Anything), regions(2), base(), ());
    let error = |config| ServiceRoot::build(config).unwrap_err().setting().to_owned();
    assert_eq!(error(config().stripes(0)), "stripes");
    assert_eq!(error(config().stripes(65)), "stripes");
    assert_eq!(error(config().breaker(exact().probes(0))), "probes");
    let nameless = ServiceConfig::new("", Arc::new(Anything), regions(2), base(), ());
    assert_eq!(error(nameless), "name");
}

#[test]
fn time_is_counted_from_the_base() {
    let world = World::new(exact());
    let base = world.state.instant(Tick::ZERO);
    assert_eq!(world.state.tick(base + secs(3)), ms(3000));
    assert_eq!(world.state.tick(base - secs(3)), Tick::ZERO);
    assert_eq!(
        world.state.instant(ms(1500)),
        base + Duration::from_millis(1500)
    );
    assert!(world.state.instant(Tick::FOREVER) > base + secs(1_000_000_000));
}
