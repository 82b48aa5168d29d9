//! Many threads on one service: counts are exact where they must be.

use super::*;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// E1 of DESIGN: clones belong to the stripe of their thread; any handle can settle any send.
#[test]
fn clones_and_sends_may_travel() {
    let world = World::new(exact().streak(4));
    let state = world.state.clone();
    let sent = thread::scope(|scope| {
        let on_another = scope.spawn(|| {
            let mine = state.clone();
            assert!(mine.is_same_service(&state));
            mine.send_started(P, WRITES, ms(0)).unwrap()
        });
        on_another.join().unwrap()
    });
    assert_eq!(world.state.writes_in_flight(), 1);
    world.state.send_settled(sent, SUCCESS, ms(10), || 1.0);
    assert_eq!(world.state.writes_in_flight(), 0);
    // Also without the root.
    drop(world.root);
    let again = thread::scope(|scope| scope.spawn(|| state.clone()).join().unwrap());
    assert!(again.is_calm());
}

/// B10: however many threads fail at once, a circuit opens once.
#[test]
fn a_circuit_opens_once() {
    for round in 0..50 {
        let world = World::new(exact().streak(8));
        let barrier = Barrier::new(4);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let state = world.state.clone();
                    barrier.wait();
                    for _ in 0..4 {
                        if let Some(sent) = state.send_started(P, READS, ms(round)) {
                            state.send_settled(sent, FAILURE, ms(round), || 1.0);
                        }
                    }
                });
            }
        });
        assert_eq!(world.told.lines().len(), 2, "{:?}", world.told.lines());
    }
}

/// B4, B7: never more probes than slots, and every slot comes back.
#[test]
fn slots_are_never_lost_nor_doubled() {
    let world = World::ungated(
        exact()
            .streak(1)
            .open_for(secs(1))
            .probes(3)
            .close_after(15),
    );
    world.read(0, FAILURE);
    let out = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let state = world.state.clone();
                for _ in 0..2000 {
                    if let Ok(Admission::Probe(slot)) = state.admit(P, READS, ms(5000)) {
                        let before = out.fetch_add(1, Ordering::SeqCst);
                        assert!(before < 3);
                        out.fetch_sub(1, Ordering::SeqCst);
                        drop(slot);
                    }
                }
            });
        }
    });
    assert_eq!(world.state.circuit(P, READS, ms(5000)).unwrap().probes, 0);
    assert_eq!(world.told.lines().len(), 2);
}

/// B2: calls of all stripes make up the rate, none is lost.
#[test]
fn the_rate_is_over_all_threads() {
    let rate = crate::breaker::RateRule::new(0.5, secs(60), 20);
    let world = World::new(exact().streak(None).rate(rate));
    const CALLS: u64 = 1000;
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let state = world.state.clone();
                for i in 0..CALLS {
                    let sent = state.send_started(P, READS, ms(i)).unwrap();
                    state.send_settled(sent, SUCCESS, ms(i), || 1.0);
                }
            });
        }
    });
    for i in 1..=4 * CALLS {
        assert!(world.state.is_calm(), "{i} failures of {}", 4 * CALLS + i);
        let sent = world.state.send_started(P, READS, ms(CALLS)).unwrap();
        world.state.send_settled(sent, FAILURE, ms(CALLS), || 1.0);
    }
    assert!(!world.state.is_calm());
}

/// G4: writes in flight are counted exactly.
#[test]
fn writes_in_flight_come_back_to_zero() {
    let world = World::new(exact().streak(None).rate(None));
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            let world = &world;
            scope.spawn(move || {
                let state = world.state.clone();
                let mut open = Vec::new();
                for i in 0..1000 {
                    open.push(state.send_started(P, WRITES, ms(i)).unwrap());
                    if i % 3 == thread % 3 {
                        let outcome = [SUCCESS, TIMEOUT, Outcome::Dropped][(i % 3) as usize];
                        let sent = open.swap_remove(0);
                        state.send_settled(sent, outcome, ms(i + 5), || 1.0);
                    }
                }
                for sent in open {
                    state.send_settled(sent, SUCCESS, ms(5000), || 1.0);
                }
            });
        }
    });
    assert_eq!(world.state.writes_in_flight(), 0);
}

/// B10: transitions of two members at once are told one after the other, each once.
#[test]
fn events_stay_in_order() {
    let group = GroupHandle::new(base());
    let told = Told::default();
    let settings = || exact().streak(1);
    let worlds = ["a", "b"].map(|n| World::member(n, &group, &told, settings(), |c| c));
    thread::scope(|scope| {
        for world in &worlds {
            scope.spawn(|| {
                for i in 0..200 {
                    world.state.force_open(P, ms(i));
                    world.state.automatic(P, ms(i));
                }
            });
        }
    });
    for name in ["a", "b"] {
        let mine = |kind: &str| {
            told.lines()
                .into_iter()
                .filter(|l| l.contains(&format!(" {name} ")) && l.contains(kind))
                .map(|l| l.split(' ').skip(2).collect::<Vec<_>>().join(" "))
                .collect::<Vec<_>>()
        };
        let reads = mine("reads");
        assert_eq!(reads.len(), 400);
        for pair in reads.chunks(2) {
            assert_eq!(pair[0], "r0 reads closed>open operator");
            assert_eq!(pair[1], "r0 reads open>closed operator");
        }
        // The gate alternates, whoever caused it.
        let gates = mine("gate");
        for pair in gates.windows(2) {
            let status = |l: &str| l.split(' ').nth(1).unwrap().to_owned();
            assert_ne!(status(&pair[0]), status(&pair[1]), "{name}");
        }
    }
    assert!(worlds[0].state.is_calm() && worlds[1].state.is_calm());
}
