//! The shared state under every interleaving that loom can think of:
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p tower-geo-policy --test loom --release
//! ```
//!
//! One stripe, so that the threads of a model meet at the same counters as often as they can.
#![cfg(loom)]
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "helpers of tests unwrap, and any instant will do for a base"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{HeaderMap, Method, StatusCode, Uri};
use loom::sync::Mutex;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use tower_geo_policy::breaker::{
    Admission, BreakerSettings, Circuit, Circuits, OpenJitter, Outcome, RateRule, Sent, Standing,
};
use tower_geo_policy::events::{Event, EventKind, Listener};
use tower_geo_policy::gate::GateMode;
use tower_geo_policy::intent::{Intent, Ruling};
use tower_geo_policy::provider::Provider;
use tower_geo_policy::region::{Endpoint, Region, RegionId, Regions};
use tower_geo_policy::service_state::{ServiceConfig, ServiceRoot, ServiceState};
use tower_geo_policy::tick::Tick;
use tower_geo_policy::verdict::{Evidence, FromCopy, Verdict};

const P: RegionId = RegionId::FIRST;
const READS: Circuit = Circuit::Reads;
const SUCCESS: Outcome = Outcome::answer(Evidence::Success);
const FAILURE: Outcome = Outcome::answer(Evidence::Failure);
const TIMEOUT: Outcome = Outcome::fault(Evidence::Failure);

#[derive(Debug)]
struct Anything;

impl Provider for Anything {
    fn intent(&self, _: &Method, _: &Uri, _: &HeaderMap) -> Ruling {
        Ruling::new(Intent::READ, "everything is a read here")
    }

    fn verdict(&self, _: Intent, _: StatusCode, _: &HeaderMap) -> Verdict {
        Verdict::Answered
    }

    fn judge_copy(&self, _: StatusCode, _: &HeaderMap) -> FromCopy {
        FromCopy::Usual
    }
}

#[derive(Clone)]
struct Told(Arc<Mutex<Vec<EventKind>>>);

impl Listener for Told {
    fn on_event(&self, event: &Event) {
        self.0.lock().unwrap().push(event.kind);
    }
}

fn ms(millis: u64) -> Tick {
    Tick::ZERO + Duration::from_millis(millis)
}

fn settings() -> BreakerSettings {
    BreakerSettings::new()
        .streak(2)
        .rate(None)
        .jitter(OpenJitter::None)
        .ramp([])
        .open_for(Duration::from_secs(1))
}

fn service(settings: BreakerSettings) -> (ServiceRoot, ServiceState, Told) {
    let told = Told(Arc::new(Mutex::new(Vec::new())));
    let endpoint = Endpoint::parse("https://a.example").unwrap();
    let regions = Regions::new(vec![Region::new("primary", endpoint).writable(true)]).unwrap();
    let config = ServiceConfig::new("loom", Arc::new(Anything), regions, Instant::now(), ())
        .breaker(settings)
        .gate(GateMode::Manual)
        .stripes(1)
        .listener(Arc::new(told.clone()));
    let root = ServiceRoot::build(config).unwrap();
    let state = root.handle();
    (root, state, told)
}

fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(builder.preemption_bound.unwrap_or(2));
    builder.max_branches = 20_000;
    builder.check(f);
}

fn start(state: &ServiceState, at: u64) -> Sent {
    state.send_started(P, READS, ms(at)).unwrap()
}

fn settle(state: &ServiceState, sent: Sent, outcome: Outcome, at: u64) {
    state.send_settled(sent, outcome, ms(at), || 1.0);
}

fn call(state: &ServiceState, outcome: Outcome, at: u64) {
    settle(state, start(state, at), outcome, at);
}

fn streak(state: &ServiceState, at: u64) -> u32 {
    state.circuit(P, READS, ms(at)).unwrap().streak
}

/// B10: two failures at once open once, and the state says so to everybody afterwards.
#[test]
fn two_failures_open_once() {
    model(|| {
        let (_root, state, told) = service(settings());
        let other = state.clone();
        let thread = thread::spawn(move || call(&other, FAILURE, 5));
        call(&state, FAILURE, 5);
        thread.join().unwrap();
        assert_eq!(told.0.lock().unwrap().len(), 1);
        assert!(!state.is_calm());
        let reads = state.standing(P, READS, ms(6));
        assert!(matches!(reads, Standing::Open { .. }));
    });
}

/// B2: whatever a success and a failure do to each other, the next success ends the streak: the
/// short cut of good calls never hides one.
#[test]
fn a_streak_never_survives_a_later_success() {
    model(|| {
        let (_root, state, _) = service(settings().streak(10));
        // The second call may take the short cut.
        call(&state, SUCCESS, 1);
        let other = state.clone();
        let thread = thread::spawn(move || call(&other, FAILURE, 5));
        call(&state, SUCCESS, 5);
        thread.join().unwrap();
        assert!(streak(&state, 5) <= 1);
        call(&state, SUCCESS, 6);
        assert_eq!(streak(&state, 6), 0);
        call(&state, SUCCESS, 7);
        assert!(state.is_calm());
    });
}

/// B2: the same when the success has a streak to end.
#[test]
fn a_failure_is_not_lost_beside_a_success() {
    model(|| {
        let (_root, state, _) = service(settings().streak(10));
        call(&state, FAILURE, 1);
        let other = state.clone();
        let thread = thread::spawn(move || call(&other, FAILURE, 5));
        call(&state, SUCCESS, 5);
        thread.join().unwrap();
        // In one order or in the other.
        assert!(matches!(streak(&state, 5), 0 | 1));
        call(&state, SUCCESS, 6);
        assert_eq!(streak(&state, 6), 0);
    });
}

/// B6: an outcome of before the opening neither opens nor ends anything after it.
#[test]
fn a_late_success_meets_an_opening() {
    model(|| {
        let (_root, state, told) = service(settings().streak(1));
        let late = start(&state, 1);
        let other = state.clone();
        let thread = thread::spawn(move || call(&other, FAILURE, 5));
        settle(&state, late, SUCCESS, 5);
        thread.join().unwrap();
        assert_eq!(told.0.lock().unwrap().len(), 1);
        let reads = state.standing(P, READS, ms(6));
        assert!(matches!(reads, Standing::Open { .. }));
    });
}

/// B4, B7: one slot is held once at a time, and comes back however its holders meet.
#[test]
fn a_probe_slot_is_held_once() {
    model(|| {
        let (_root, state, _) = service(settings().streak(1));
        call(&state, FAILURE, 1);
        let held = Arc::new(AtomicUsize::new(0));
        let probe = |state: &ServiceState, held: &AtomicUsize| {
            if let Ok(Admission::Probe(slot)) = state.admit(P, READS, ms(5000)) {
                assert_eq!(held.fetch_add(1, Ordering::SeqCst), 0);
                held.fetch_sub(1, Ordering::SeqCst);
                drop(slot);
            }
        };
        let (other, others) = (state.clone(), Arc::clone(&held));
        let thread = thread::spawn(move || probe(&other, &others));
        probe(&state, &held);
        thread.join().unwrap();
        assert_eq!(state.circuit(P, READS, ms(5000)).unwrap().probes, 0);
        let again = state.admit(P, READS, ms(5000));
        assert!(matches!(again, Ok(Admission::Probe(_))));
    });
}

/// B6, B7: a slot that is dropped while another probe decides gives nothing back too much.
#[test]
fn a_dropped_probe_meets_a_decision() {
    model(|| {
        let (_root, state, told) = service(settings().streak(1).probes(2));
        call(&state, FAILURE, 1);
        let probe = || match state.admit(P, READS, ms(5000)) {
            Ok(Admission::Probe(slot)) => slot,
            _ => unreachable!("there are two slots"),
        };
        let (dropped, decides) = (probe(), probe());
        let decides = state.probe_started(decides, READS, Circuits::NONE, ms(5000));
        let thread = thread::spawn(move || drop(dropped));
        settle(&state, decides.unwrap(), FAILURE, 5001);
        thread.join().unwrap();
        assert_eq!(told.0.lock().unwrap().len(), 3);
        let circuit = state.circuit(P, READS, ms(5001)).unwrap();
        assert_eq!((circuit.probes, circuit.good_probes), (0, 0));
        let reads = state.standing(P, READS, ms(5001));
        assert!(matches!(reads, Standing::Open { .. }));
    });
}

/// B3: no call is lost while a tenth of the window ends.
#[test]
fn a_tenth_ends_without_losing_a_call() {
    model(|| {
        let rule = RateRule::new(0.5, Duration::from_secs(10), 1);
        let (_root, state, _) = service(settings().streak(None).rate(rule));
        call(&state, SUCCESS, 990);
        let other = state.clone();
        let thread = thread::spawn(move || call(&other, SUCCESS, 1010));
        call(&state, SUCCESS, 1010);
        thread.join().unwrap();
        // Three good calls: the third bad one makes half.
        for i in 0..3 {
            assert!(state.is_calm(), "{i}");
            call(&state, FAILURE, 1020);
        }
        assert!(!state.is_calm());
    });
}

/// B8: sends are neither lost nor doubled while their slot of time is reused.
#[test]
fn a_slot_is_reused_without_losing_a_send() {
    model(|| {
        let (_root, state, _) = service(settings().streak(100));
        // A slot lasts 100 ms, and sixteen of them are kept.
        let old = start(&state, 150);
        let other = state.clone();
        let thread = thread::spawn(move || start(&other, 1750));
        settle(&state, old, TIMEOUT, 1750);
        let young = thread.join().unwrap();
        assert_eq!(streak(&state, 1750), 1);
        // The young one has been silent for long enough by now.
        call(&state, TIMEOUT, 3000);
        assert_eq!(streak(&state, 3000), 3);
        settle(&state, young, TIMEOUT, 3001);
        assert_eq!(streak(&state, 3001), 3);
    });
}

/// B10: what two operators do is told in the order in which it was done.
#[test]
fn events_are_told_in_order() {
    model(|| {
        let (_root, state, told) = service(settings());
        let other = state.clone();
        let thread = thread::spawn(move || other.force_open(P, ms(1)));
        state.force_open(P, ms(1));
        state.automatic(P, ms(1));
        thread.join().unwrap();
        let told = told.0.lock().unwrap();
        // Open and closed in turns, for each circuit.
        for circuit in Circuit::BOTH {
            let mut phases = told.iter().filter_map(|kind| match kind {
                EventKind::Breaker {
                    circuit: c,
                    from,
                    to,
                    ..
                } if *c == circuit => Some((*from, *to)),
                _ => None,
            });
            let mut last = phases.next().unwrap();
            for next in phases {
                assert_eq!(last.1, next.0);
                last = next;
            }
        }
    });
}
