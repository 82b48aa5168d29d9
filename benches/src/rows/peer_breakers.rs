//! The breakers that one would use instead, without layers where they can be used without.
//!
//! Each with the settings that it comes with, except for the windows, which are as long as ours.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use failsafe::{CircuitBreaker as _, backoff, failure_policy};
use recloser::Recloser;
use tower_layer::Layer;
use tower_resilience_circuitbreaker::{
    CircuitBreaker, CircuitBreakerLayer, DefaultClassifier, SlidingWindowType,
};

use super::Window;
use super::subject::{Number, block, calls, calls_with};
use crate::measure::memory::of;
use crate::row::{Call, PerThread, Row};

const RECLOSER: &str = "recloser";
const FAILSAFE: &str = "failsafe";
const TOWER_RESILIENCE: &str = "tower-resilience";

const LONG: Duration = Duration::from_secs(120);

pub(super) const ROWS: &[Row] = &[
    Row::calls(
        "breaker/closed",
        RECLOSER,
        "`call` of a closure, a window of 100 calls, no probe limit",
        || recloser_calls(Arc::new(Recloser::default())),
    ),
    Row::calls(
        "breaker/closed",
        FAILSAFE,
        "`call` of a closure, its default policy, no probe limit",
        || failsafe_calls(failsafe::Config::new().build()),
    ),
    Row::calls(
        "breaker/closed",
        TOWER_RESILIENCE,
        "its layer over a service that gives back a number; a count window that does not slide",
        || calls(resilience(), || 7),
    ),
    Row::calls("breaker/open", RECLOSER, "the whole refused `call`", || {
        let recloser = Recloser::custom().closed_len(1).build();
        (0..2).for_each(|_| _ = recloser.call(|| Err::<(), ()>(())));
        Box::new(move || {
            let result = recloser.call(|| Ok::<u64, ()>(black_box(7)));
            assert!(matches!(result, Err(recloser::Error::Rejected)));
        })
    }),
    Row::calls("breaker/open", FAILSAFE, "the whole refused `call`", || {
        let policy = failure_policy::consecutive_failures(1, backoff::constant(LONG));
        let breaker = failsafe::Config::new().failure_policy(policy).build();
        _ = breaker.call(|| Err::<(), ()>(()));
        Box::new(move || {
            let result = breaker.call(|| Ok::<u64, ()>(black_box(7)));
            assert!(matches!(result, Err(failsafe::Error::Rejected)));
        })
    }),
    Row::calls(
        "breaker/open",
        TOWER_RESILIENCE,
        "the whole refused call, as a service",
        || {
            let (layer, handle) = resilience_layer(100);
            block(handle.force_open());
            calls_with(layer.layer(Number), || 7, Result::is_err)
        },
    ),
    Row::fresh(
        "breaker/window-10",
        RECLOSER,
        "a ring of 10 calls, full",
        Window::TEN.calls,
        || recloser_window(Window::TEN),
    ),
    Row::fresh(
        "breaker/window-1000",
        RECLOSER,
        "a ring of 1,000 calls, full",
        Window::THOUSAND.calls,
        || recloser_window(Window::THOUSAND),
    ),
    Row::fresh(
        "breaker/window-10000",
        RECLOSER,
        "a ring of 10,000 calls, full",
        Window::TEN_THOUSAND.calls,
        || recloser_window(Window::TEN_THOUSAND),
    ),
    Row::fresh(
        "breaker/window-1000000",
        RECLOSER,
        "a ring of 1,000,000 calls, full",
        Window::MILLION.calls,
        || recloser_window(Window::MILLION),
    ),
    Row::fresh(
        "breaker/window-10",
        FAILSAFE,
        "a moving average, 10 calls and a few",
        Window::TEN.calls,
        || failsafe_window(Window::TEN),
    ),
    Row::fresh(
        "breaker/window-1000000",
        FAILSAFE,
        "a moving average, 1,000,000 calls and a few",
        Window::MILLION.calls,
        || failsafe_window(Window::MILLION),
    ),
    Row::fresh(
        "breaker/window-10",
        TOWER_RESILIENCE,
        "its window by time, 10 to 20 calls in it",
        Window::TEN.calls,
        || resilience_window(Window::TEN),
    ),
    Row::fresh(
        "breaker/window-1000",
        TOWER_RESILIENCE,
        "its window by time, 1,000 calls and a few; each call goes through all of them",
        Window::THOUSAND.calls,
        || resilience_window(Window::THOUSAND),
    ),
    Row::fresh(
        "breaker/window-10000",
        TOWER_RESILIENCE,
        "the same with 10,000; a million would take hours to fill, since filling is quadratic",
        Window::TEN_THOUSAND.calls,
        || resilience_window(Window::TEN_THOUSAND),
    ),
    Row::threads(
        "breaker/two-threads",
        RECLOSER,
        "breaker/closed by two threads on one breaker",
        || {
            let recloser = Arc::new(Recloser::default());
            Box::new(move || recloser_calls(recloser.clone())) as PerThread
        },
    ),
    Row::threads(
        "breaker/two-threads",
        FAILSAFE,
        "breaker/closed by two threads on one breaker",
        || {
            let breaker = failsafe::Config::new().build();
            Box::new(move || failsafe_calls(breaker.clone())) as PerThread
        },
    ),
    Row::threads(
        "breaker/two-threads",
        TOWER_RESILIENCE,
        "breaker/closed by two threads on clones of one service",
        || {
            let service = resilience();
            Box::new(move || calls(service.clone(), || 7)) as PerThread
        },
    ),
    Row::memory("memory/service", RECLOSER, "a breaker of 100 calls", || {
        of(Recloser::default)
    }),
    Row::memory("memory/service", FAILSAFE, "a breaker", || {
        of(|| failsafe::Config::new().build())
    }),
    Row::memory(
        "memory/service",
        TOWER_RESILIENCE,
        "a breaker over an empty service",
        || of(resilience),
    ),
];

fn recloser_calls(recloser: Arc<Recloser>) -> Call {
    Box::new(move || recloser_call(&recloser))
}

#[inline(never)]
fn recloser_call(recloser: &Recloser) {
    assert!(recloser.call(|| Ok::<u64, ()>(black_box(7))).is_ok());
}

fn failsafe_calls(breaker: impl failsafe::CircuitBreaker + Send + 'static) -> Call {
    Box::new(move || {
        assert!(breaker.call(|| Ok::<u64, ()>(black_box(7))).is_ok());
    })
}

fn resilience() -> CircuitBreaker<Number, DefaultClassifier> {
    resilience_layer(100).0.layer(Number)
}

type Layered = (
    CircuitBreakerLayer,
    tower_resilience_circuitbreaker::CircuitBreakerHandle,
);

#[expect(
    clippy::expect_used,
    reason = "a benchmark with bad settings cannot go on"
)]
fn resilience_layer(window: usize) -> Layered {
    CircuitBreakerLayer::builder()
        .sliding_window_size(window)
        .build_with_handle()
        .expect("the settings are good")
}

fn recloser_window(window: Window) -> Call {
    let breakers = (0..window.breakers)
        .map(|_| {
            let length = window.holds as usize;
            let recloser = Arc::new(Recloser::custom().closed_len(length).build());
            (0..=window.holds).for_each(|_| recloser_call(&recloser));
            recloser_calls(recloser)
        })
        .collect();
    window.in_turn(breakers)
}

fn failsafe_window(window: Window) -> Call {
    let breakers = (0..window.breakers)
        .map(|_| {
            let wait = backoff::constant(LONG);
            let policy = failure_policy::success_rate_over_time_window(0.1, 20, LONG, wait);
            let breaker = failsafe::Config::new().failure_policy(policy).build();
            let mut call = failsafe_calls(breaker);
            (0..window.holds).for_each(|_| call());
            call
        })
        .collect();
    window.in_turn(breakers)
}

#[expect(
    clippy::expect_used,
    reason = "a benchmark with bad settings cannot go on"
)]
fn resilience_window(window: Window) -> Call {
    let breakers = (0..window.breakers)
        .map(|_| {
            let layer = CircuitBreakerLayer::builder()
                .failure_rate_threshold(0.9)
                .sliding_window_type(SlidingWindowType::TimeBased)
                .sliding_window_duration(LONG)
                .minimum_number_of_calls(20)
                .build()
                .expect("the settings are good");
            let mut call = calls(layer.layer(Number), || 7);
            (0..window.holds).for_each(|_| call());
            call
        })
        .collect();
    window.in_turn(breakers)
}
