//! The read-only gate (G1, G3, G4, G6, B4).

use super::*;
use crate::gate::{AccountSwitch, GateStatus, ReadOnlyWhy};
use std::sync::atomic::{AtomicUsize, Ordering};

/// G1: an operator's read-write withdraws the operator's own say, nothing else.
#[test]
fn an_operator_makes_it_read_only() {
    let world = World::new(exact().streak(1));
    assert_eq!(world.gate(0), "pass");
    world.state.set_read_only(true, ms(1000));
    let GateCheck::Refused(refusal) = world.state.check_gate(ms(2000)) else {
        panic!("it is read-only");
    };
    assert_eq!(
        (refusal.why, refusal.since, refusal.until),
        (ReadOnlyWhy::Operator, ms(1000), None)
    );
    assert!(world.read(2500, FAILURE), "reads pass the gate");
    world.state.set_read_only(false, ms(5000));
    assert_eq!(world.gate(5000), "refused", "the circuit of reads is open");
    assert_eq!(
        world.told.lines(),
        [
            "1000 blob gate read-only operator",
            "2510 blob r0 reads closed>open streak"
        ]
    );
    assert_eq!(world.state.gate(ms(5000)).why, Some(ReadOnlyWhy::Breaker));
}

/// G1: either circuit of the region that takes the writes makes it read-only.
#[test]
fn either_circuit_makes_it_read_only() {
    for circuit in [READS, WRITES] {
        let world = World::new(exact().streak(1));
        world.call(P, circuit, 0, FAILURE);
        assert_eq!(world.gate(100), "refused");
        assert_eq!(world.gate(30_010), "trial");
    }
}

/// G1: a manual gate leaves writes to the breaker.
#[test]
fn a_manual_gate_ignores_circuits() {
    let world = World::ungated(exact().streak(1));
    world.read(0, UNREACHABLE);
    assert_eq!(world.gate(100), "pass");
    assert!(!world.write(100, SUCCESS));
    world.state.set_read_only(true, ms(200));
    assert_eq!(world.gate(300), "refused");
}

/// B4: the gate takes the slot; the others are refused as read-only meanwhile.
#[test]
fn the_gate_admits_one_trial_write() {
    let world = World::new(exact().streak(2).open_for(secs(10)));
    world.write(0, FAILURE);
    world.write(1000, FAILURE);
    assert!(!world.state.trial_is_due(ms(11_009)));
    assert!(world.state.trial_is_due(ms(15_000)));
    let GateCheck::Trial(slot) = world.state.check_gate(ms(15_000)) else {
        panic!("the wait is over");
    };
    assert_eq!(slot.circuits(), WRITES.into());
    assert!(!world.state.trial_is_due(ms(15_100)));
    assert_eq!(world.gate(15_200), "refused");
    assert_eq!(world.gate(15_400), "refused");
    let sent = world
        .state
        .probe_started(slot, WRITES, Circuits::NONE, ms(15_000));
    world
        .state
        .send_settled(sent.unwrap(), SUCCESS, ms(16_000), || 1.0);
    assert_eq!(world.gate(17_000), "pass");
    assert_eq!(
        world.told.lines(),
        [
            "1010 blob r0 writes closed>open streak",
            "1010 blob gate read-only breaker",
            "15000 blob r0 writes open>half-open waited",
            "15000 blob gate trial breaker",
            "16000 blob r0 writes half-open>closed probe",
            "16000 blob gate read-write breaker"
        ]
    );
}

/// B4: a trial that fails closes the gate again.
#[test]
fn a_failed_trial_is_read_only_again() {
    let world = World::new(exact().streak(1).open_for(secs(10)));
    world.read(0, UNREACHABLE);
    let GateCheck::Trial(slot) = world.state.check_gate(ms(15_000)) else {
        panic!("the wait is over");
    };
    assert_eq!(slot.circuits(), Circuits::BOTH);
    let sent = world
        .state
        .probe_started(slot, WRITES, Circuits::NONE, ms(15_000));
    world
        .state
        .send_settled(sent.unwrap(), UNREACHABLE, ms(15_010), || 1.0);
    assert_eq!(
        world.told.lines()[3..],
        [
            "15000 blob r0 reads open>half-open waited",
            "15000 blob r0 writes open>half-open waited",
            "15000 blob gate trial breaker",
            "15010 blob r0 reads half-open>open probe",
            "15010 blob r0 writes half-open>open probe",
            "15010 blob gate read-only breaker"
        ]
    );
}

/// B4: a trial needs every slot; half a trial is none.
#[test]
fn no_trial_while_one_circuit_still_waits() {
    let world = World::new(exact().streak(1).open_for(secs(10)));
    world.write(0, FAILURE);
    // Sent before the gate would have stopped it.
    world.read(5000, FAILURE);
    assert_eq!(world.gate(12_000), "refused");
    assert_eq!(world.told.lines().len(), 3, "nothing was entered");
    assert_eq!(world.gate(15_010), "trial");
}

/// B4: while a read probes, writes are refused.
#[test]
fn a_probing_read_keeps_writes_out() {
    let world = World::new(exact().streak(1).open_for(secs(10)));
    world.read(0, FAILURE);
    let slot = world.probe(READS, 12_000).unwrap();
    assert_eq!(world.state.gate(ms(12_000)).status, GateStatus::Trial);
    assert_eq!(world.gate(12_001), "refused");
    drop(slot);
    assert_eq!(world.gate(12_002), "trial");
}

/// G6: what is shown, with times.
#[test]
fn the_state_can_be_read() {
    let world = World::new(exact().streak(1));
    let shown = |at| {
        let gate = world.state.gate(ms(at));
        (gate.status, gate.since, gate.why, gate.until)
    };
    assert_eq!(shown(0), (GateStatus::ReadWrite, ms(0), None, None));
    world.read(0, FAILURE);
    let why = Some(ReadOnlyWhy::Breaker);
    assert_eq!(
        shown(100),
        (GateStatus::ReadOnly, ms(10), why, Some(ms(30_010)))
    );
    assert_eq!(shown(30_010), (GateStatus::Trial, ms(10), why, None));
    assert!(world.read(40_000, SUCCESS));
    assert_eq!(
        shown(41_000),
        (GateStatus::ReadWrite, ms(40_010), None, None)
    );
}

/// G3: a flag over all services of an account, next to each one's own.
#[test]
fn an_account_has_a_flag_of_its_own() {
    let switch = AccountSwitch::new();
    let a = World::with(exact(), |c| c.account(Arc::clone(&switch)));
    let b = World::with(exact(), |c| c.account(Arc::clone(&switch)));
    let other = World::new(exact());
    let at = |seconds: u64| a.state.instant(ms(seconds * 1000));
    b.state.set_read_only(true, ms(500));
    switch.set_read_only(true, at(1));
    assert_eq!(
        (a.gate(1000), b.gate(1000), other.gate(1000)),
        ("refused", "refused", "pass")
    );
    let late = World::with(exact(), |c| c.account(Arc::clone(&switch)));
    assert_eq!(late.gate(1000), "refused");
    switch.set_read_only(false, at(2));
    assert_eq!(
        (a.gate(2100), b.gate(2100), late.gate(2100)),
        ("pass", "refused", "pass")
    );
    drop(a.root);
    drop(a.state);
    switch.set_read_only(true, base());
}

/// G4: maintenance is an override; ending it restores what would hold by then.
#[test]
fn maintenance_and_back() {
    let world = World::new(exact().streak(1));
    world.state.begin_maintenance(ms(1000)).unwrap();
    assert!(world.state.in_maintenance());
    assert_eq!(world.gate(2000), "refused");
    world.state.set_read_only(true, ms(3000));
    world.state.end_maintenance(ms(5000));
    assert!(!world.state.in_maintenance());
    assert_eq!(
        world.gate(5000),
        "refused",
        "the operator said so meanwhile"
    );
    assert_eq!(world.state.gate(ms(5000)).why, Some(ReadOnlyWhy::Operator));
    world.state.set_read_only(false, ms(6000));
    assert_eq!(world.gate(6000), "pass");
    assert_eq!(
        world.told.lines(),
        [
            "1000 blob gate read-only maintenance",
            "6000 blob gate read-write operator"
        ]
    );
}

/// G4: without a secondary there is nothing left to read from.
#[test]
fn maintenance_needs_a_secondary() {
    let alone = ServiceConfig::new("file", Arc::new(Anything), regions(1), base(), ());
    let alone = ServiceRoot::build(alone).unwrap().handle();
    let error = alone.begin_maintenance(ms(0)).unwrap_err();
    assert_eq!(error.setting(), "maintenance");
    assert!(alone.is_calm());
}

/// G4, G6: watchers are woken by changes of the gate, and when the last write has drained.
#[test]
fn watchers_are_woken() {
    let woken = Arc::new(AtomicUsize::new(0));
    let wake = Arc::clone(&woken);
    let world = World::with(exact().streak(1), |c| {
        c.on_change(move || {
            wake.fetch_add(1, Ordering::Relaxed);
        })
    });
    let woken = || woken.load(Ordering::Relaxed);
    let sent = world.state.send_started(P, WRITES, ms(0)).unwrap();
    let quick = world.state.send_started(P, WRITES, ms(0)).unwrap();
    world.state.begin_maintenance(ms(100)).unwrap();
    assert_eq!((woken(), world.state.writes_in_flight()), (1, 2));
    world.state.send_settled(quick, SUCCESS, ms(200), || 1.0);
    assert_eq!(woken(), 1);
    world.state.send_settled(sent, TIMEOUT, ms(300), || 1.0);
    assert_eq!((world.state.writes_in_flight(), woken()), (0, 2));
    world.state.end_maintenance(ms(400));
    assert_eq!(woken(), 3, "the gate has changed");
}

/// G1, C2: with several regions that take writes, all of them have to be open.
#[test]
fn one_region_that_takes_writes_is_enough() {
    let all = Regions::new(
        ["a", "b"]
            .map(|n| {
                let url = format!("https://{n}.example");
                Region::new(n, Endpoint::parse(&url).unwrap()).writable(true)
            })
            .to_vec(),
    )
    .unwrap();
    let config =
        ServiceConfig::new("docs", Arc::new(Anything), all, base(), ()).breaker(exact().streak(1));
    let root = ServiceRoot::build(config).unwrap();
    let world = World {
        state: root.handle(),
        root,
        told: Told::default(),
    };
    world.call(P, WRITES, 0, FAILURE);
    assert_eq!(world.gate(100), "pass");
    world.call(S, WRITES, 1000, FAILURE);
    assert_eq!(world.gate(1100), "refused");
    let until = world.state.gate(ms(1100)).until;
    assert_eq!(until, Some(ms(30_010)), "the earliest of both");
    assert_eq!(world.gate(30_010), "trial");
}
