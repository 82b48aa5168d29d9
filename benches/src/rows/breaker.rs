//! Our breaker without any layer: the time is an argument.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use tower_geo::BreakerSettings;
use tower_geo::policy::breaker::{Admission, Circuit, Outcome, Sent};
use tower_geo::policy::gate::GateCheck;
use tower_geo::policy::region::{Endpoint, Region, RegionId, Regions};
use tower_geo::policy::service_state::{ServiceConfig, ServiceRoot, ServiceState};
use tower_geo::policy::static_service::StaticService;
use tower_geo::policy::tick::Tick;
use tower_geo::policy::verdict::Evidence;

use super::Window;
use crate::row::{Call, OURS, PerThread, Row};

/// How far apart calls are, in nanoseconds. Constants, so that the row does no arithmetic of its own.
const APART: u64 = 50_000;
const HARDLY_APART: u64 = 100;
/// A rate window is longer, by a tenth.
const WINDOW: Duration = Duration::from_secs(110);

pub(super) const ROWS: &[Row] = &[
    Row::calls(
        "breaker/closed",
        OURS,
        "admit and settle a success, default settings, `now` given",
        || {
            let root = root(1, 1);
            settles::<APART>(root.handle(), root, Tick::ZERO)
        },
    ),
    Row::calls("breaker/open", OURS, "the check alone", || {
        let root = root(1, 1);
        let state = root.handle();
        state.force_open(RegionId::FIRST, Tick::ZERO);
        Box::new(move || {
            let _alive = &root;
            assert!(is_refused(&state, black_box(Tick::ZERO)));
        })
    }),
    Row::calls(
        "gate/check",
        OURS,
        "a write asks and is refused: the check alone",
        || {
            let root = root(1, 1);
            let state = root.handle();
            state.set_read_only(true, Tick::ZERO);
            Box::new(move || {
                let _alive = &root;
                assert!(may_not_write(&state, black_box(Tick::ZERO)));
            })
        },
    ),
    Row::fresh(
        "breaker/window-10",
        OURS,
        "breaker/closed with 10 to 20 calls in the rate window",
        Window::TEN.calls,
        || windows(Window::TEN),
    ),
    Row::fresh(
        "breaker/window-1000",
        OURS,
        "the same with 1,000 calls and a few",
        Window::THOUSAND.calls,
        || windows(Window::THOUSAND),
    ),
    Row::fresh(
        "breaker/window-10000",
        OURS,
        "the same with 10,000 calls and a few",
        Window::TEN_THOUSAND.calls,
        || windows(Window::TEN_THOUSAND),
    ),
    Row::fresh(
        "breaker/window-1000000",
        OURS,
        "the same with 1,000,000 calls and a few",
        Window::MILLION.calls,
        || windows(Window::MILLION),
    ),
    Row::threads(
        "breaker/two-threads",
        OURS,
        "breaker/closed by two threads on one service",
        || {
            let root = root(1, 2);
            Box::new(move || {
                // On the thread that calls: a handle belongs to the stripe of its thread.
                settles::<APART>(root.handle(), (), Tick::ZERO)
            }) as PerThread
        },
    ),
];

/// A service with so many regions, split for so many threads.
#[expect(
    clippy::expect_used,
    reason = "a benchmark with bad settings cannot go on"
)]
pub(super) fn root(regions: usize, stripes: u8) -> ServiceRoot {
    let regions = (0..regions)
        .map(|number| {
            let url = format!("https://{number}.example");
            let endpoint = Endpoint::parse(&url).expect("a good URL");
            Region::new(number.to_string(), endpoint).writable(number == 0)
        })
        .collect();
    let regions = Regions::new(regions).expect("good regions");
    let base = tokio::time::Instant::now().into_std();
    let provider = Arc::new(StaticService::new());
    let config = ServiceConfig::new("a", provider, regions, base, ())
        .breaker(BreakerSettings::new())
        .stripes(stripes);
    ServiceRoot::build(config).expect("good settings")
}

/// A call is admitted and succeeds; `alive` goes with it.
fn settles<const APART: u64>(state: ServiceState, alive: impl Send + 'static, from: Tick) -> Call {
    let mut now = from;
    Box::new(move || {
        let _alive = &alive;
        now = now + Duration::from_nanos(APART);
        admit_and_settle(&state, black_box(now));
    })
}

#[inline(never)]
fn admit_and_settle(state: &ServiceState, now: Tick) {
    match state.send_if_calm(RegionId::FIRST, Circuit::Reads, now) {
        Some(sent) => succeed(state, sent, now),
        None => the_long_way(state, now),
    }
}

/// Once in a tenth of `suspect_after` there is more to do.
#[cold]
#[inline(never)]
fn the_long_way(state: &ServiceState, now: Tick) {
    let admitted = state.admit(RegionId::FIRST, Circuit::Reads, now);
    let sent = match admitted {
        Ok(Admission::Plain) => state.send_started(RegionId::FIRST, Circuit::Reads, now),
        _ => None,
    };
    match sent {
        Some(sent) => succeed(state, sent, now),
        None => unreachable!("a service in which nothing has failed admits"),
    }
}

#[inline]
fn succeed(state: &ServiceState, sent: Sent, now: Tick) {
    let outcome = Outcome::answer(Evidence::Success);
    black_box(state.send_settled(sent, outcome, now, || 1.0));
}

#[inline(never)]
fn is_refused(state: &ServiceState, now: Tick) -> bool {
    match state.admit(RegionId::FIRST, Circuit::Reads, now) {
        Err(_) => true,
        Ok(admission) => is_let_go(admission),
    }
}

/// Apart, so that the check alone is measured.
#[cold]
#[inline(never)]
fn is_let_go(admission: Admission) -> bool {
    drop(admission);
    false
}

#[inline(never)]
fn may_not_write(state: &ServiceState, now: Tick) -> bool {
    match state.check_gate(now) {
        GateCheck::Refused(_) => true,
        check => is_passed(check),
    }
}

#[cold]
#[inline(never)]
fn is_passed(check: GateCheck) -> bool {
    drop(check);
    false
}

/// Breakers whose windows hold so many calls, spread over the window, the last of them now.
fn windows(window: Window) -> Call {
    let breakers = (0..window.breakers)
        .map(|_| {
            let root = root(1, 1);
            let state = root.handle();
            for call in 1..=window.holds {
                let share = f64::from(call) / f64::from(window.holds);
                admit_and_settle(&state, Tick::ZERO + WINDOW.mul_f64(share));
            }
            settles::<HARDLY_APART>(state, root, Tick::ZERO + WINDOW)
        })
        .collect();
    window.in_turn(breakers)
}
