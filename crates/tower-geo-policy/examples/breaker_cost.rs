//! What a call costs at the breaker, to be counted rather than timed:
//!
//! ```text
//! cargo build --release -p tower-geo-policy --example breaker_cost
//! valgrind --tool=callgrind --callgrind-out-file=out target/release/examples/breaker_cost CASE N
//! ```
//!
//! with CASE one of those printed without arguments. Run it for two values of N; the difference of
//! the instruction counts, divided by the difference of N, is the cost of one call.
//! `allocations` prints the heap allocations of a thousand calls of each case instead, and
//! `threads` times one thread against two.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement prints, and reads the clock"
)]

use std::alloc::System;
use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{HeaderMap, Method, StatusCode, Uri};
use tower_geo_policy::breaker::{BreakerSettings, Circuit, Outcome};
use tower_geo_policy::gate::GateCheck;
use tower_geo_policy::intent::{Intent, Ruling};
use tower_geo_policy::provider::Provider;
use tower_geo_policy::region::{Endpoint, Region, RegionId, Regions};
use tower_geo_policy::service_state::{ServiceConfig, ServiceRoot, ServiceState};
use tower_geo_policy::tick::Tick;
use tower_geo_policy::verdict::{Evidence, FromCopy, Verdict};

#[global_allocator]
static ALLOCATOR: &stats_alloc::StatsAlloc<System> = &stats_alloc::INSTRUMENTED_SYSTEM;

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

fn service(settings: BreakerSettings, base: Instant) -> Result<ServiceRoot, Box<dyn Error>> {
    let regions = Regions::new(vec![
        Region::new("primary", Endpoint::parse("https://a.example")?).writable(true),
        Region::new("secondary", Endpoint::parse("https://b.example")?),
    ])?;
    let config =
        ServiceConfig::new("cost", Arc::new(Anything), regions, base, ()).breaker(settings);
    Ok(ServiceRoot::build(config)?)
}

/// A millisecond passes with each call, of which a call takes half.
const STEP: Duration = Duration::from_millis(1);

/// Admission and settlement as the layers do them while all is well.
#[inline(never)]
fn healthy(state: &ServiceState, circuit: Circuit, now: Tick, then: Tick) {
    match state.send_if_calm(RegionId::FIRST, circuit, now) {
        Some(sent) => {
            state.send_settled(sent, Outcome::answer(Evidence::Success), then, || 1.0);
        }
        None => unusual(state, circuit, now, then),
    }
}

#[cold]
#[inline(never)]
fn unusual(state: &ServiceState, circuit: Circuit, now: Tick, then: Tick) {
    if let Some(sent) = state.send_started(RegionId::FIRST, circuit, now) {
        state.send_settled(sent, Outcome::answer(Evidence::Success), then, || 1.0);
    }
}

/// The same, with the conversion of both time stamps.
#[inline(never)]
fn healthy_from_instants(state: &ServiceState, now: Instant, then: Instant) {
    let started = state.send_started(RegionId::FIRST, Circuit::Reads, state.tick(now));
    if let Some(sent) = started {
        let then = state.tick(then);
        state.send_settled(sent, Outcome::answer(Evidence::Success), then, || 1.0);
    }
}

#[inline(never)]
fn refused_read(state: &ServiceState, now: Tick) -> Option<Tick> {
    match state.admit(RegionId::FIRST, Circuit::Reads, now) {
        Err(refusal) => refusal.until,
        Ok(_) => Some(now),
    }
}

#[inline(never)]
fn refused_write(state: &ServiceState, now: Tick) -> Option<Tick> {
    match state.check_gate(now) {
        GateCheck::Refused(refusal) => refusal.until,
        _ => Some(now),
    }
}

#[inline(never)]
fn cloned(state: &ServiceState) {
    drop(black_box(state.clone()));
}

/// One call; the instants are the same times as the ticks.
type Call = fn(&ServiceState, [Tick; 2], [Instant; 2]);

const CASES: [(&str, Call); 8] = [
    ("nothing", |_, ticks, _| {
        black_box(ticks);
    }),
    ("reads", |s, [now, then], _| {
        healthy(s, Circuit::Reads, now, then)
    }),
    ("no-rate", |s, [now, then], _| {
        healthy(s, Circuit::Reads, now, then)
    }),
    ("writes", |s, [now, then], _| {
        healthy(s, Circuit::Writes, now, then)
    }),
    ("instants", |s, _, [now, then]| {
        healthy_from_instants(s, now, then)
    }),
    ("open-read", |s, [now, _], _| {
        black_box(refused_read(s, now));
    }),
    ("open-write", |s, [now, _], _| {
        black_box(refused_write(s, now));
    }),
    ("clone", |s, _, _| cloned(s)),
];

fn run(case: &str, n: u32) -> Result<(), Box<dyn Error>> {
    let Some((_, call)) = CASES.iter().find(|(name, _)| *name == case) else {
        return Err("there is no such case".into());
    };
    let base = Instant::now();
    let settings = match case {
        "no-rate" => BreakerSettings::new().rate(None),
        _ => BreakerSettings::new(),
    };
    let root = service(settings, base)?;
    let state = root.handle();
    if case.starts_with("open") {
        state.force_open(RegionId::FIRST, Tick::ZERO);
        state.force_open(RegionId::new(1), Tick::ZERO);
    }
    let mut ticks = [Tick::ZERO + STEP, Tick::ZERO + STEP + STEP / 2];
    let mut instants = [base + STEP, base + STEP + STEP / 2];
    let before = ALLOCATOR.stats();
    for _ in 0..n {
        call(&state, ticks, instants);
        ticks = ticks.map(|tick| tick + STEP);
        instants = instants.map(|instant| instant + STEP);
    }
    let after = ALLOCATOR.stats();
    println!(
        "{case}: {n} calls, {} allocations",
        after.allocations - before.allocations
    );
    Ok(())
}

/// Nanoseconds per call for each number of threads on one service, the best of several runs.
fn threads() -> Result<(), Box<dyn Error>> {
    const CALLS: u32 = 4_000_000;
    let base = Instant::now();
    let root = service(BreakerSettings::new(), base)?;
    for count in [1_u32, 2] {
        let mut best = Duration::MAX;
        for _ in 0..7 {
            let begin = Instant::now();
            std::thread::scope(|scope| {
                for _ in 0..count {
                    let first = &root;
                    scope.spawn(move || {
                        let state = first.handle();
                        let mut now = Tick::ZERO + STEP;
                        for _ in 0..CALLS {
                            let call = state.clone();
                            healthy(&call, Circuit::Reads, now, now + STEP / 2);
                            now = now + STEP;
                        }
                    });
                }
            });
            best = best.min(begin.elapsed());
        }
        let each = best.as_nanos() as f64 / f64::from(CALLS);
        println!("{count} threads: {each:.1} ns per call of each thread");
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["threads"] => threads(),
        ["allocations"] => CASES.iter().try_for_each(|(case, _)| run(case, 1000)),
        [case, n] => run(case, n.parse()?),
        _ => {
            let names = CASES.map(|(name, _)| name);
            println!("breaker_cost CASE N | allocations | threads; cases: {names:?}");
            Ok(())
        }
    }
}
