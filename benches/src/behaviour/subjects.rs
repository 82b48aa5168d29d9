//! Who is compared: each with the settings that come closest to what a check asks for.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use failsafe::{backoff, failure_policy, futures::CircuitBreaker as _};
use futures::future::{BoxFuture, FutureExt};
use http::{Method, StatusCode};
use recloser::{AsyncRecloser, Recloser};
use tower_geo::{BreakerSettings, CircuitBreakerLayer, GeoService, RateRule, RetryLayer};
use tower_layer::Layer;
use tower_resilience_circuitbreaker as resilience;
use tower_service::Service;

use super::wire::{Answer, Reply, Sent, Wire};

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Answered(StatusCode),
    Failed,
    /// By the breaker: nothing was sent.
    Refused,
}

/// One breaker with a wire below it. All calls go through the same.
pub(crate) type Breaker = Box<dyn Fn(Reply) -> BoxFuture<'static, Ended>>;

/// When a breaker is to open.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
    /// As it comes.
    Default,
    /// After so many failures in a row, or a few more.
    Streak(u32),
    /// When half of the last 100 calls have failed.
    OfCalls,
    /// When half of the calls within this time have failed, of 20 at least.
    OfTime(Duration),
}

/// What a check asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) rule: Rule,
    /// How long it stays open; the number of probes is one where it can be said.
    pub(crate) open_for: Duration,
}

/// Somebody who is compared.
pub(crate) struct Subject {
    pub(crate) who: &'static str,
    /// Follows tokio's clock, so that no time passes while it is compared. Is checked, too.
    pub(crate) is_paused: bool,
    /// None if it has no such rule.
    pub(crate) breaker: fn(Setup, Wire) -> Option<Breaker>,
    /// Failures that open it and successes that close it, where the rule is a streak of one.
    pub(crate) cycle: (usize, usize),
    /// A call through its retry as it comes, if it has one that decides by itself.
    pub(crate) retry: Option<fn(Wire, Sent) -> BoxFuture<'static, ()>>,
}

pub(crate) const SUBJECTS: [Subject; 4] = [
    Subject {
        who: "tower-geo",
        is_paused: true,
        breaker: tower_geo,
        cycle: (1, 1),
        retry: Some(tower_geo_retry),
    },
    Subject {
        who: "tower-resilience",
        is_paused: false,
        breaker: tower_resilience,
        cycle: (1, 1),
        retry: Some(tower_resilience_retry),
    },
    Subject {
        who: "recloser",
        is_paused: false,
        breaker: recloser,
        // Its rings give a verdict only with the call after the last that they hold.
        cycle: (2, 2),
        retry: None,
    },
    Subject {
        who: "failsafe",
        is_paused: false,
        breaker: failsafe,
        cycle: (1, 1),
        retry: None,
    },
];

/// What every check says of settings that are refused.
const GOOD: &str = "the settings are good";

#[expect(
    clippy::expect_used,
    reason = "with bad settings there is nothing to compare"
)]
fn tower_geo(setup: Setup, wire: Wire) -> Option<Breaker> {
    let settings = BreakerSettings::new()
        .open_for(setup.open_for)
        .max_open_for(setup.open_for)
        .probe_deadline(10 * setup.open_for);
    let settings = match setup.rule {
        Rule::Default => BreakerSettings::new(),
        Rule::Streak(failures) => settings.streak(failures).rate(None),
        Rule::OfCalls => return None,
        Rule::OfTime(window) => settings.streak(None).rate(RateRule::new(0.5, window, 20)),
    };
    let service = GeoService::static_copies("shop")
        .region("eu", "https://eu.example")
        .breaker(settings)
        .build()
        .expect(GOOD);
    let breaker = CircuitBreakerLayer::new(service).layer(wire);
    Some(Box::new(move |reply| {
        let answer = call(breaker.clone(), reply);
        answer
            .map(|result| match result {
                Ok(answer) => Ended::Answered(answer.status()),
                Err(error) if error.is_circuit_open() => Ended::Refused,
                Err(_) => Ended::Failed,
            })
            .boxed()
    }))
}

#[expect(
    clippy::expect_used,
    reason = "with bad settings there is nothing to compare"
)]
fn tower_geo_retry(wire: Wire, request: Sent) -> BoxFuture<'static, ()> {
    let service = GeoService::static_copies("shop")
        .region("eu", "https://eu.example")
        .build()
        .expect(GOOD);
    let mut retry = RetryLayer::new(service).clone_bodies().layer(wire);
    // Whatever the end is, the sends are counted below.
    async move { _ = retry.call(request).await }.boxed()
}

#[expect(
    clippy::expect_used,
    reason = "with bad settings there is nothing to compare"
)]
fn tower_resilience(setup: Setup, wire: Wire) -> Option<Breaker> {
    let builder = resilience::CircuitBreakerLayer::builder();
    let settings = match setup.rule {
        Rule::Default => builder,
        Rule::Streak(failures) => builder.consecutive_failures(failures as usize),
        // These are its defaults.
        Rule::OfCalls => builder.failure_rate_threshold(0.5).sliding_window_size(100),
        Rule::OfTime(window) => builder
            .failure_rate_threshold(0.5)
            .sliding_window_type(resilience::SlidingWindowType::TimeBased)
            .sliding_window_duration(window)
            .minimum_number_of_calls(20),
    };
    let settings = match setup.rule {
        Rule::Default => settings,
        _ => settings.wait_duration_in_open(setup.open_for),
    };
    let breaker = settings.build().expect(GOOD).layer(wire);
    Some(Box::new(move |reply| {
        let answer = call(breaker.clone(), reply);
        answer
            .map(|result: Result<Answer, _>| match result {
                Ok(answer) => Ended::Answered(answer.status()),
                Err(resilience::CircuitBreakerError::OpenCircuit) => Ended::Refused,
                Err(_) => Ended::Failed,
            })
            .boxed()
    }))
}

fn tower_resilience_retry(wire: Wire, request: Sent) -> BoxFuture<'static, ()> {
    let layer: tower_resilience_retry::RetryLayer<Sent, Answer, io::Error> =
        tower_resilience_retry::RetryLayer::builder().build();
    let mut retry = layer.layer(wire);
    // Whatever the end is, the sends are counted below.
    async move { _ = retry.call(request).await }.boxed()
}

fn recloser(setup: Setup, wire: Wire) -> Option<Breaker> {
    let builder = Recloser::custom();
    let recloser = match setup.rule {
        Rule::Default => Recloser::default(),
        Rule::Streak(failures) => builder
            .closed_len(failures as usize)
            .half_open_len(1)
            .open_wait(setup.open_for)
            .build(),
        Rule::OfCalls => builder.error_rate(0.5).closed_len(100).build(),
        Rule::OfTime(_) => return None,
    };
    let recloser = AsyncRecloser::from(recloser);
    Some(Box::new(move |reply| {
        let answer = recloser.call(call(wire.clone(), reply));
        answer
            .map(|result| match result {
                Ok(answer) => Ended::Answered(answer.status()),
                Err(recloser::Error::Rejected) => Ended::Refused,
                Err(recloser::Error::Inner(_)) => Ended::Failed,
            })
            .boxed()
    }))
}

fn failsafe(setup: Setup, wire: Wire) -> Option<Breaker> {
    let config = failsafe::Config::new();
    let wait = backoff::constant(setup.open_for);
    match setup.rule {
        Rule::Default => Some(failsafe_over(config.build(), wire)),
        Rule::Streak(failures) => {
            let policy = failure_policy::consecutive_failures(failures, wait);
            Some(failsafe_over(config.failure_policy(policy).build(), wire))
        }
        Rule::OfCalls => None,
        Rule::OfTime(window) => {
            let policy = failure_policy::success_rate_over_time_window(0.5, 20, window, wait);
            Some(failsafe_over(config.failure_policy(policy).build(), wire))
        }
    }
}

fn failsafe_over<P>(breaker: failsafe::StateMachine<P, ()>, wire: Wire) -> Breaker
where
    P: failsafe::FailurePolicy + Send + Sync + 'static,
{
    let breaker = Arc::new(breaker);
    Box::new(move |reply| {
        let answer = breaker.call(call(wire.clone(), reply));
        answer
            .map(|result| match result {
                Ok(answer) => Ended::Answered(answer.status()),
                Err(failsafe::Error::Rejected) => Ended::Refused,
                Err(failsafe::Error::Inner(_)) => Ended::Failed,
            })
            .boxed()
    })
}

/// A read through a service, once it is ready.
async fn call<S>(mut service: S, reply: Reply) -> Result<S::Response, S::Error>
where
    S: Service<Sent>,
{
    poll_fn(|cx| service.poll_ready(cx)).await?;
    service.call(reply.to(Method::GET)).await
}
