//! Services that share (B12), and how events are told (B10).

use super::*;
use crate::gate::GateStatus;

fn pair(settings: fn() -> BreakerSettings) -> (World, World, Told) {
    let group = GroupHandle::new(base());
    let told = Told::default();
    let blob = World::member("blob", &group, &told, settings(), |c| c);
    let queue = World::member("queue", &group, &told, settings(), |c| c);
    (blob, queue, told)
}

fn quick() -> BreakerSettings {
    exact().streak(2).open_for(secs(10))
}

/// B12: while one is open, all behave as open.
#[test]
fn services_that_share_behave_as_one() {
    let (blob, queue, told) = pair(quick);
    blob.open_reads(1010, 2);
    assert_eq!(
        queue.reads(4000),
        Standing::Open {
            until: Some(ms(11_010))
        }
    );
    assert_eq!(queue.writes(4000), Standing::Closed);
    assert!(!queue.read(4000, SUCCESS));
    assert_eq!(queue.gate(4000), "refused");
    assert!(!queue.state.is_calm());
    assert_eq!(
        told.lines(),
        [
            "1010 blob r0 reads closed>open streak",
            "1010 blob gate read-only breaker",
            "1010 queue gate read-only group"
        ]
    );
    let held = queue.state.circuit(P, READS, ms(4000)).unwrap();
    assert_eq!(held.held_until, Some(ms(11_010)));
}

/// B12: a wait that has ended holds back only itself.
#[test]
fn a_wait_that_has_ended_frees_the_others() {
    let (blob, queue, told) = pair(quick);
    blob.open_reads(1010, 2);
    assert_eq!(queue.gate(9000), "refused");
    assert!(queue.read(12_000, SUCCESS));
    assert_eq!(queue.state.gate(ms(12_000)).status, GateStatus::ReadWrite);
    assert_eq!(queue.gate(13_000), "pass");
    assert_eq!(blob.gate(13_000), "trial");
    assert!(
        told.lines()
            .contains(&"13000 queue gate read-write group".to_owned())
    );
    // Nor does one that is tried.
    let slot = blob.probe(READS, 14_000).unwrap();
    assert!(queue.read(14_001, SUCCESS));
    assert_eq!(queue.gate(14_001), "pass");
    let sent = blob
        .state
        .probe_started(slot, READS, Circuits::NONE, ms(14_000));
    blob.state
        .send_settled(sent.unwrap(), FAILURE, ms(14_010), || 1.0);
    assert!(!queue.read(14_020, SUCCESS));
}

/// B12: each keeps its own evidence; a healthy member does not save a dead one.
#[test]
fn evidence_is_not_shared() {
    let (blob, queue, _) = pair(|| exact().streak(3));
    for i in 0..3 {
        assert!(blob.state.is_calm());
        blob.read(i * 2000, FAILURE);
        if i < 2 {
            queue.read(i * 2000 + 1000, SUCCESS);
        }
    }
    assert!(!queue.read(5000, SUCCESS));
    let queue = queue.state.circuit(P, READS, ms(5000)).unwrap();
    assert_eq!((queue.streak, queue.generation), (0, 0));
}

/// B12: without a group, services are apart.
#[test]
fn services_are_apart() {
    let blob = World::new(quick());
    let queue = World::new(quick());
    blob.open_reads(1010, 2);
    assert!(queue.state.is_calm());
}

/// B9, B12: forced open holds back all; forced closed is deaf to the others.
#[test]
fn operators_and_groups() {
    let (blob, queue, _) = pair(quick);
    blob.state.force_open(P, ms(0));
    assert_eq!(queue.reads(1_000_000), Standing::Open { until: None });
    queue.state.force_closed(P, ms(1_000_000));
    assert!(queue.read(1_000_001, SUCCESS));
    assert_eq!(queue.gate(1_000_002), "pass");
    assert_eq!(blob.gate(1_000_002), "refused");
    queue.state.automatic(P, ms(1_000_010));
    assert!(!queue.read(1_000_011, SUCCESS));
}

/// B12: a member that is gone holds back nobody, and its place can be taken.
#[test]
fn who_is_gone_holds_back_nobody() {
    let group = GroupHandle::new(base());
    let told = Told::default();
    let blob = World::member("blob", &group, &told, quick(), |c| c);
    let queue = World::member("queue", &group, &told, quick(), |c| c);
    blob.open_reads(1010, 2);
    assert!(!queue.state.is_calm());
    drop(blob);
    assert!(queue.state.is_calm());
    let blob = World::member("blob", &group, &told, quick(), |c| c);
    queue.open_reads(2010, 2);
    let late = World::member("late", &group, &told, quick(), |c| c);
    assert!(!blob.read(3000, SUCCESS) && !late.read(3000, SUCCESS));
    assert_eq!(
        format!("{group:?}"),
        r#"GroupHandle { members: ["blob", "queue", "late"] }"#
    );
}

/// B10: a listener may ask, and even change, the state that it hears about.
#[test]
fn a_listener_may_call_back() {
    use std::sync::OnceLock;

    let told = Told::default();
    let slot: Arc<OnceLock<ServiceState>> = Arc::new(OnceLock::new());
    let (mine, cell) = (told.listener(), Arc::clone(&slot));
    let world = World::with(quick(), |config| {
        config.listener(Arc::new(move |event: &Event| {
            if let EventKind::Breaker { .. } = event.kind {
                let state = cell.get().unwrap();
                assert_eq!(state.gate(event.at).status, GateStatus::ReadOnly);
                state.set_read_only(true, event.at);
            }
            mine.on_event(event);
        }))
    });
    slot.set(world.state.clone()).unwrap();
    world.open_reads(1010, 2);
    let expected = [
        "1010 blob r0 reads closed>open streak",
        "1010 blob gate read-only breaker",
    ];
    assert_eq!(told.lines(), expected);
    assert_eq!(world.told.lines(), expected);
}

/// B10: a panic of a listener ends there: the caller's read goes on, and the others are told.
#[test]
fn a_listener_that_panics_reaches_no_caller() {
    let world = World::with(quick(), |config| {
        let panics = |event: &Event| {
            let opens = matches!(event.kind, EventKind::Breaker { .. }) && event.at == ms(1010);
            assert!(!opens, "this listener panics once");
        };
        config.listener(Arc::new(panics))
    });
    world.open_reads(1010, 2);
    assert_eq!(world.state.listener_panics(), 1);
    world.state.reset(P, ms(2000));
    assert_eq!(
        world.told.lines().last().unwrap(),
        "2000 blob gate read-write breaker"
    );
    assert!(world.state.is_calm());
    assert_eq!(world.state.listener_panics(), 1);
}

/// B10: an event that is told while a thread unwinds does not end the program.
#[test]
fn a_listener_that_panics_while_a_service_is_dropped_aborts_nothing() {
    let (group, told) = (GroupHandle::new(base()), Told::default());
    let world = World::member("blob", &group, &told, quick(), |config| config);
    let stays = World::member("dfs", &group, &told, quick(), |config| {
        config.listener(Arc::new(|event: &Event| {
            let follows = matches!(event.kind, EventKind::Gate { .. });
            assert!(!follows, "this listener panics at its gate");
        }))
    });
    world.open_reads(1010, 2);
    let panics = stays.state.listener_panics();
    let unwound = std::thread::spawn(move || {
        let _dropped_while_it_unwinds = world;
        panic!("a caller that panics");
    })
    .join();
    assert!(unwound.is_err());
    assert!(stays.state.listener_panics() > panics);
}

/// B10: people read clocks, not ticks.
#[test]
fn an_event_says_at_which_instant_it_happened() {
    let start = base();
    let (group, told) = (GroupHandle::new(start), Told::default());
    let world = World::member("blob", &group, &told, quick(), |config| config);
    world.open_reads(1010, 2);
    let told = told.0.lock().unwrap();
    assert_eq!(told[0].instant(), start + Duration::from_millis(1010));
}
