//! Half open, probes and the ramp (B4, B5, B7).

use super::*;

fn half_open(settings: BreakerSettings) -> World {
    let world = World::ungated(settings.streak(2).open_for(secs(10)));
    world.open_reads(1010, 2);
    world
}

/// B4: at most `probes` at once; all others are treated as while open.
#[test]
fn one_probe_among_a_hundred_reads() {
    let world = half_open(exact());
    let slot = world.probe(READS, 20_000).unwrap();
    assert_eq!(slot.region(), P);
    assert_eq!(slot.circuits(), READS.into());
    for at in 20_001..20_100 {
        let refusal = world.state.admit(P, READS, ms(at)).unwrap_err();
        assert_eq!(refusal.until, None);
        assert_eq!(world.reads(at), Standing::Open { until: None });
    }
}

#[test]
fn as_many_probes_as_were_asked_for() {
    let world = half_open(exact().probes(31).close_after(15));
    let slots: Vec<_> = (0..31)
        .map(|_| world.probe(READS, 20_000).unwrap())
        .collect();
    assert!(world.probe(READS, 20_000).is_none());
    drop(slots);
    assert!(world.probe(READS, 20_000).is_some());
}

/// B4: looking does not enter.
#[test]
fn a_look_changes_nothing() {
    let world = half_open(exact());
    assert_eq!(
        world.reads(11_009),
        Standing::Open {
            until: Some(ms(11_010))
        }
    );
    assert_eq!(world.reads(11_010), Standing::Probe);
    assert_eq!(world.told.lines().len(), 1);
}

/// B5: what each outcome does to a probe.
#[test]
fn how_probes_end() {
    for (outcome, ends) in [
        (SUCCESS, Some("closed")),
        (ALIVE, Some("closed")),
        (REFUSED, None),
        (THROTTLED, Some("open")),
        (FAILURE, Some("open")),
        (TIMEOUT, Some("open")),
        (UNREACHABLE, Some("open")),
        (Outcome::Dropped, None),
    ] {
        let world = half_open(exact());
        assert!(world.read(12_000, outcome));
        let lines = world.told.lines();
        match ends {
            Some(to) => assert_eq!(
                lines[2],
                format!("12010 blob r0 reads half-open>{to} probe"),
                "{outcome:?}"
            ),
            None => {
                assert_eq!(lines.len(), 2, "{outcome:?}");
                assert!(world.probe(READS, 12_020).is_some(), "{outcome:?}");
            }
        }
    }
}

/// B5: with `close_after` 2 the first good probe is not enough.
#[test]
fn two_good_probes_close() {
    let world = half_open(exact().close_after(2));
    assert!(world.call_taking(P, READS, 12_000, 100, SUCCESS).is_some());
    let slot = world.probe(READS, 13_000).unwrap();
    assert!(world.probe(READS, 13_050).is_none());
    let sent = world
        .state
        .probe_started(slot, READS, Circuits::NONE, ms(13_000));
    world
        .state
        .send_settled(sent.unwrap(), SUCCESS, ms(13_100), || 1.0);
    assert_eq!(
        world.told.lines()[2],
        "13100 blob r0 reads half-open>closed probe"
    );
    assert!(world.state.is_calm());
}

/// B7: a slot that is dropped comes back exactly once.
#[test]
fn dropped_probe_returns_its_slot() {
    let world = half_open(exact().probes(2));
    let first = world.probe(READS, 12_000).unwrap();
    let second = world.probe(READS, 12_000).unwrap();
    drop(first);
    let third = world.probe(READS, 12_000).unwrap();
    assert!(world.probe(READS, 12_000).is_none());
    drop((second, third));
    assert_eq!(world.state.circuit(P, READS, ms(12_000)).unwrap().probes, 0);
}

/// B6, B7: a slot from before the last change gives nothing back.
#[test]
fn a_late_slot_gives_nothing_back() {
    let world = half_open(exact().probes(2));
    let late = world.probe(READS, 12_000).unwrap();
    assert!(world.read(12_100, FAILURE));
    let taken = world.probe(READS, 40_000).unwrap();
    let taken_too = world.probe(READS, 40_000).unwrap();
    drop(late);
    assert!(world.probe(READS, 40_000).is_none());
    drop((taken, taken_too));
}

/// B7, B8: dropped by its caller early it has decided nothing, late it has failed.
#[test]
fn a_probe_that_is_given_up_late_has_failed() {
    let world = half_open(exact());
    assert!(
        world
            .call_taking(P, READS, 12_000, 999, Outcome::Dropped)
            .is_some()
    );
    assert!(
        world
            .call_taking(P, READS, 13_000, 1000, Outcome::Dropped)
            .is_some()
    );
    assert_eq!(
        world.told.lines()[2],
        "14000 blob r0 reads half-open>open probe"
    );
}

/// B4: a write may probe the reads of its region, too; it fails them only as *unreachable*.
#[test]
fn a_trial_write_holds_both_slots() {
    for (outcome, reads, writes) in [
        (SUCCESS, "closed", "closed"),
        (ALIVE, "closed", "closed"),
        (FAILURE, "half-open", "open"),
        (THROTTLED, "half-open", "open"),
        (UNREACHABLE, "open", "open"),
        (REFUSED, "half-open", "half-open"),
    ] {
        let world = World::ungated(exact().streak(1).open_for(secs(10)));
        world.read(0, UNREACHABLE);
        let slot = world.probe(WRITES, 12_000).unwrap();
        assert_eq!(slot.circuits(), Circuits::BOTH);
        let sent = world
            .state
            .probe_started(slot, WRITES, Circuits::NONE, ms(12_000));
        world
            .state
            .send_settled(sent.unwrap(), outcome, ms(12_010), || 1.0);
        let phase = |circuit| {
            let state = world.state.circuit(P, circuit, ms(12_010)).unwrap();
            assert_eq!(state.probes, 0, "{outcome:?}");
            state.phase.as_str()
        };
        assert_eq!(
            (phase(READS), phase(WRITES)),
            (reads, writes),
            "{outcome:?}"
        );
    }
}

/// B4: a write whose own circuit is closed probes the reads on the way.
#[test]
fn a_write_probes_reads_on_the_way() {
    let world = half_open(exact());
    assert!(world.write(5000, SUCCESS), "not due yet, no matter");
    assert!(world.write(12_000, SUCCESS));
    assert!(world.state.is_calm());
}

/// B5: the ramp, and its end.
#[test]
fn reads_come_back_along_the_ramp() {
    let world = half_open(exact().ramp([0.05, 0.25]).ramp_step(secs(10)));
    assert!(world.read(12_000, SUCCESS));
    assert_eq!(world.reads(12_010), Standing::Ramp(0.05));
    assert_eq!(world.reads(22_009), Standing::Ramp(0.05));
    assert_eq!(world.reads(22_010), Standing::Ramp(0.25));
    assert_eq!(world.writes(22_010), Standing::Closed);
    assert_eq!(world.reads(32_010), Standing::Closed);
    assert!(!world.state.is_calm());
    assert!(world.read(32_020, SUCCESS));
    assert!(world.state.is_calm(), "whoever finds it over ends it");
}

/// B2: failures count on the ramp as ever.
#[test]
fn a_relapse_on_the_ramp_opens() {
    let world = half_open(exact().ramp([0.05]));
    assert!(world.read(12_000, SUCCESS));
    world.read(12_100, FAILURE);
    world.read(12_200, FAILURE);
    assert_eq!(
        world.reads(12_210),
        Standing::Open {
            until: Some(ms(32_210))
        }
    );
}

/// A slot is of use only to the service that gave it.
#[test]
fn a_foreign_slot_is_given_back() {
    let world = half_open(exact());
    let other = half_open(exact());
    let slot = world.probe(READS, 12_000).unwrap();
    assert!(
        other
            .state
            .probe_started(slot, READS, Circuits::NONE, ms(12_000))
            .is_none()
    );
    assert!(world.probe(READS, 12_000).is_some());
}

/// B11: with a monitor, time alone opens nothing up; its answer does.
#[test]
fn only_the_monitor_ends_the_wait() {
    let world = World::with(exact().streak(1), |c| {
        c.monitored(true).gate(GateMode::Manual)
    });
    world.read(0, UNREACHABLE);
    assert_eq!(world.reads(1_000_000), Standing::Open { until: None });
    world.state.monitor_succeeded(P, ms(1_000_000));
    assert_eq!(world.reads(1_000_000), Standing::Probe);
    assert!(world.write(1_000_010, SUCCESS));
    assert_eq!(
        world.told.lines()[2..4],
        [
            "1000010 blob r0 reads open>half-open monitor",
            "1000010 blob r0 writes open>half-open monitor"
        ]
    );
    assert!(world.state.is_calm());
    // S ends by time.
    world.call(S, READS, 1_000_100, FAILURE);
    assert_eq!(
        world.state.standing(S, READS, ms(1_030_110)),
        Standing::Probe
    );
}
