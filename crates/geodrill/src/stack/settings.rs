//! Settings as a drill has them, in the words of the layers.

use tower_geo::{
    BackoffMode, BreakerSettings, LocationMode, OpenJitter, RateRule, RegionRef, Replay,
    RetrySettings, SlowRule,
};

use crate::format::{self, Breaker, Jitter, Mode, RequestOptions, Retry, RetryMode};

pub(super) const fn location_mode(mode: Mode) -> LocationMode {
    match mode {
        Mode::PrimaryOnly => LocationMode::PrimaryOnly,
        Mode::PrimaryThenSecondary => LocationMode::PrimaryThenSecondary,
        Mode::SecondaryOnly => LocationMode::SecondaryOnly,
        Mode::SecondaryThenPrimary => LocationMode::SecondaryThenPrimary,
    }
}

/// A region as a drill names it: also a secondary that could not be derived has its name.
pub(super) fn named(name: &str) -> RegionRef {
    match name {
        "primary" => RegionRef::Primary,
        "secondary" => RegionRef::Secondary,
        name => RegionRef::Named(name.to_owned()),
    }
}

pub(super) fn request_options(options: &RequestOptions) -> tower_geo::RequestOptions {
    let mut built = tower_geo::RequestOptions::new();
    if let Some(mode) = options.mode {
        built = built.location_mode(location_mode(mode));
    }
    if let Some(pin) = &options.pin {
        built = built.pin(named(pin));
    }
    if let Some(excluded) = &options.excluded {
        built = built.excluded(excluded);
    }
    if options.replayable {
        built = built.replayable();
    }
    built
}

pub(super) fn retry(retry: &Retry) -> RetrySettings {
    RetrySettings::new()
        .mode(match retry.mode {
            RetryMode::Exponential => BackoffMode::Exponential,
            RetryMode::Fixed => BackoffMode::Fixed,
        })
        .max_retries(retry.max_retries)
        .delay(retry.delay)
        .max_delay(retry.max_delay)
        .jitter(match retry.jitter {
            Jitter::None => tower_geo::Jitter::None,
            Jitter::Equal => tower_geo::Jitter::Equal,
            Jitter::Full => tower_geo::Jitter::Full,
        })
        .attempt_timeout(retry.attempt_timeout)
        .deadline(retry.deadline)
        .budget(retry.budget)
        .replay(if retry.replay_all {
            Replay::All
        } else {
            Replay::Harmless
        })
        .body_idle(retry.body_idle)
        .hedge(retry.hedge)
}

pub(super) fn breaker(breaker: &Breaker) -> BreakerSettings {
    let rule = |rate: format::Rate| RateRule::new(rate.threshold, rate.window, rate.minimum);
    BreakerSettings::new()
        .streak(breaker.streak)
        .rate(breaker.rate.map(rule))
        .slow(
            breaker
                .slow
                .map(|slow| SlowRule::new(slow.after, rule(slow.rate))),
        )
        .open_for(breaker.open_for)
        .max_open_for(breaker.max_open_for)
        .open_for_calls(breaker.open_for_calls)
        .suspect_after(breaker.suspect_after)
        .jitter(match breaker.jitter {
            Jitter::None => OpenJitter::None,
            Jitter::Equal | Jitter::Full => OpenJitter::Equal,
        })
        .probes(breaker.probes)
        .probe_deadline(breaker.probe_deadline)
        .close_after(breaker.close_after)
        .ramp(breaker.ramp.clone())
        .ramp_step(breaker.ramp_step)
}
