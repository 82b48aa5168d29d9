//! The questions. Each is answered by running it, the same way for everybody.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio::time::{advance, sleep};
use tower_geo_benches::readme::thousands;

use super::subjects::{Breaker, Ended, Rule, Setup, Subject};
use super::wire::{Reply, Wire};

/// What became of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    Yes(String),
    No(String),
    /// It has nothing that could be asked.
    Without(&'static str),
}

impl Finding {
    fn of(is: bool, how: impl Into<String>) -> Self {
        if is {
            Self::Yes(how.into())
        } else {
            Self::No(how.into())
        }
    }

    /// As a cell of a table.
    pub(crate) fn cell(&self) -> String {
        match self {
            Self::Yes(how) if how.is_empty() => "yes".to_owned(),
            Self::No(how) if how.is_empty() => "no".to_owned(),
            Self::Yes(how) => format!("yes: {how}"),
            Self::No(how) => format!("no: {how}"),
            Self::Without(why) => format!("– ({why})"),
        }
    }
}

/// A question, and how it is asked.
pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) question: &'static str,
    /// Everybody is asked on tokio's paused clock, not only those who follow it.
    pub(crate) always_paused: bool,
    pub(crate) ask: fn(&Subject, &Runtime) -> Finding,
}

const NO_WINDOW: &str = "no such window";
const NO_CAP: &str = "no limit on probes";
const NO_RETRY: &str = "no retry";

pub(crate) const CHECKS: [Check; 10] = [
    Check {
        name: "window-of-calls",
        question: "a window of 100 calls slides: after 10,000 good calls, failures until it opens",
        always_paused: false,
        ask: |subject, runtime| runtime.block_on(window_of_calls(subject)),
    },
    Check {
        name: "window-of-time",
        question: "a window of time slides: after good calls and one window, failures until it opens",
        always_paused: false,
        ask: |subject, runtime| runtime.block_on(window_of_time(subject)),
    },
    Check {
        name: "probe-cap",
        question: "half open, 100 calls at once: only the probes are let through",
        always_paused: false,
        ask: |subject, runtime| runtime.block_on(probe_cap(subject)),
    },
    Check {
        name: "late-result",
        question: "half open, good answers to calls from before it opened change nothing",
        always_paused: false,
        ask: |subject, runtime| runtime.block_on(late_result(subject)),
    },
    Check {
        name: "dropped-probe",
        question: "a probe whose caller leaves frees its slot",
        always_paused: false,
        ask: |subject, runtime| runtime.block_on(dropped_probe(subject)),
    },
    Check {
        name: "hung-probe",
        question: "a probe that never answers does not keep it half open for ever",
        always_paused: false,
        ask: |subject, runtime| runtime.block_on(hung_probe(subject)),
    },
    Check {
        name: "paused-time",
        question: "follows tokio's paused clock, so that tests need not wait",
        always_paused: true,
        ask: |subject, runtime| runtime.block_on(paused_time(subject)),
    },
    Check {
        name: "server-errors-count",
        question: "200 × `Ok(503)` open it, as it comes",
        always_paused: false,
        ask: |subject, runtime| runtime.block_on(server_errors(subject)),
    },
    Check {
        name: "post-not-resent",
        question: "a POST whose connection breaks is not sent again, as it comes",
        always_paused: true,
        ask: |subject, runtime| runtime.block_on(post(subject)),
    },
    Check {
        name: "memory",
        question: "1,000,000 times open and closed: no memory is lost",
        always_paused: false,
        ask: memory,
    },
];

const OPEN_FOR: Duration = Duration::from_millis(40);

const STREAK: Setup = Setup {
    rule: Rule::Streak(5),
    open_for: OPEN_FOR,
};

/// So many failures until a call is refused.
async fn failures_until_open(breaker: &Breaker, at_most: usize, pace: Duration) -> Option<usize> {
    for failures in 0..=at_most {
        if breaker(Reply::Reset).await == Ended::Refused {
            return Some(failures);
        }
        if !pace.is_zero() {
            sleep(pace).await;
        }
    }
    None
}

/// Opens it, and waits until it may be half open.
async fn half_open(breaker: &Breaker) -> Option<()> {
    failures_until_open(breaker, 100, Duration::ZERO).await?;
    sleep(OPEN_FOR + OPEN_FOR / 2).await;
    Some(())
}

const NEVER_OPENS: Finding = Finding::Without("does not open");

async fn window_of_calls(subject: &Subject) -> Finding {
    const GOOD: usize = 10_000;
    let setup = Setup {
        rule: Rule::OfCalls,
        open_for: Duration::from_secs(30),
    };
    let Some(breaker) = (subject.breaker)(setup, Wire::default()) else {
        return Finding::Without(NO_WINDOW);
    };
    for _ in 0..GOOD {
        breaker(Reply::Ok).await;
    }
    slides(
        failures_until_open(&breaker, 2 * GOOD, Duration::ZERO).await,
        100,
    )
}

fn slides(failures: Option<usize>, at_most: usize) -> Finding {
    match failures {
        Some(failures) => Finding::of(failures <= at_most, thousands(failures as u64)),
        None => Finding::No("never".to_owned()),
    }
}

async fn window_of_time(subject: &Subject) -> Finding {
    const WINDOW: Duration = Duration::from_secs(1);
    let setup = Setup {
        rule: Rule::OfTime(WINDOW),
        open_for: Duration::from_secs(30),
    };
    let Some(breaker) = (subject.breaker)(setup, Wire::default()) else {
        return Finding::Without(NO_WINDOW);
    };
    for _ in 0..1_000 {
        breaker(Reply::Ok).await;
    }
    // A tenth of a window more, which one of slices may take.
    sleep(WINDOW + WINDOW / 10).await;
    slides(failures_until_open(&breaker, 300, WINDOW / 100).await, 100)
}

/// So many of 100 calls at once come through half open.
async fn admitted_at_once(subject: &Subject) -> Option<usize> {
    let wire = Wire::default();
    let breaker = (subject.breaker)(STREAK, wire.clone())?;
    half_open(&breaker).await?;
    let before = wire.arrivals();
    let until = Arc::new(Notify::new());
    let calls = (0..100).map(|_| breaker(Reply::Held(until.clone())));
    let mut calls = futures::future::join_all(calls);
    // Long enough for all of them, short enough not to be a deadline of a probe.
    _ = tokio::time::timeout(OPEN_FOR, &mut calls).await;
    Some(wire.arrivals() - before)
}

async fn probe_cap(subject: &Subject) -> Finding {
    match admitted_at_once(subject).await {
        Some(admitted) => Finding::of(admitted == 1, format!("{admitted} of 100")),
        None => NEVER_OPENS,
    }
}

async fn late_result(subject: &Subject) -> Finding {
    let Some(breaker) = (subject.breaker)(STREAK, Wire::default()) else {
        return NEVER_OPENS;
    };
    let until = Arc::new(Notify::new());
    // Several, for those who want more than one to close.
    let early: Vec<_> = (0..3)
        .map(|_| breaker(Reply::Held(until.clone())))
        .map(tokio::spawn)
        .collect();
    tokio::task::yield_now().await;
    if half_open(&breaker).await.is_none() {
        return NEVER_OPENS;
    }
    // It is half open once somebody has asked.
    let probe = tokio::spawn(breaker(Reply::Held(Arc::new(Notify::new()))));
    sleep(Duration::from_millis(2)).await;
    until.notify_waiters();
    for call in early {
        _ = call.await;
    }
    // One failure opens it again if it is half open; a closed one takes five.
    let still_half_open = breaker(Reply::Reset).await == Ended::Refused
        || breaker(Reply::Reset).await == Ended::Refused;
    probe.abort();
    Finding::of(still_half_open, "")
}

async fn dropped_probe(subject: &Subject) -> Finding {
    if admitted_at_once(subject)
        .await
        .is_none_or(|admitted| admitted > 1)
    {
        return Finding::Without(NO_CAP);
    }
    let Some(breaker) = (subject.breaker)(STREAK, Wire::default()) else {
        return NEVER_OPENS;
    };
    if half_open(&breaker).await.is_none() {
        return NEVER_OPENS;
    }
    let never = Arc::new(Notify::new());
    let probe = tokio::time::timeout(Duration::from_millis(2), breaker(Reply::Held(never)));
    _ = probe.await;
    Finding::of(breaker(Reply::Ok).await != Ended::Refused, "")
}

async fn hung_probe(subject: &Subject) -> Finding {
    if admitted_at_once(subject)
        .await
        .is_none_or(|admitted| admitted > 1)
    {
        return Finding::Without(NO_CAP);
    }
    let Some(breaker) = (subject.breaker)(STREAK, Wire::default()) else {
        return NEVER_OPENS;
    };
    if half_open(&breaker).await.is_none() {
        return NEVER_OPENS;
    }
    let hanging = tokio::spawn(breaker(Reply::Held(Arc::new(Notify::new()))));
    sleep(50 * OPEN_FOR).await;
    let is_over = breaker(Reply::Ok).await != Ended::Refused;
    hanging.abort();
    Finding::of(
        is_over,
        if is_over {
            ""
        } else {
            "refused after 50 waits"
        },
    )
}

async fn paused_time(subject: &Subject) -> Finding {
    let setup = Setup {
        rule: Rule::Streak(5),
        open_for: Duration::from_secs(30),
    };
    let Some(breaker) = (subject.breaker)(setup, Wire::default()) else {
        return NEVER_OPENS;
    };
    if failures_until_open(&breaker, 100, Duration::ZERO)
        .await
        .is_none()
    {
        return NEVER_OPENS;
    }
    advance(Duration::from_secs(31)).await;
    Finding::of(breaker(Reply::Ok).await != Ended::Refused, "")
}

async fn server_errors(subject: &Subject) -> Finding {
    let setup = Setup {
        rule: Rule::Default,
        open_for: OPEN_FOR,
    };
    let Some(breaker) = (subject.breaker)(setup, Wire::default()) else {
        return NEVER_OPENS;
    };
    for answers in 0..200 {
        let reply = Reply::Status(StatusCode::SERVICE_UNAVAILABLE);
        if breaker(reply).await == Ended::Refused {
            return Finding::Yes(format!("after {answers}"));
        }
    }
    Finding::No(String::new())
}

async fn post(subject: &Subject) -> Finding {
    let Some(retry) = subject.retry else {
        return Finding::Without(NO_RETRY);
    };
    let mut sends = [0; 2];
    for (sends, method) in sends.iter_mut().zip([Method::POST, Method::GET]) {
        let wire = Wire::default();
        retry(wire.clone(), Reply::Reset.to(method)).await;
        *sends = wire.arrivals();
    }
    let [post, get] = sends;
    Finding::of(post == 1, format!("{post} sent, a GET {get}"))
}

fn memory(subject: &Subject, runtime: &Runtime) -> Finding {
    const CYCLES: u32 = 1_000_000;
    // Where tokio's clock is followed it is moved; elsewhere no time has to pass.
    let open_for = if subject.is_paused {
        Duration::from_secs(1)
    } else {
        Duration::from_nanos(1)
    };
    let setup = Setup {
        rule: Rule::Streak(1),
        open_for,
    };
    let Some(breaker) = (subject.breaker)(setup, Wire::default()) else {
        return NEVER_OPENS;
    };
    let cycles = async |cycles: u32| {
        for _ in 0..cycles {
            for _ in 0..subject.cycle.0 {
                breaker(Reply::Reset).await;
            }
            if subject.is_paused {
                advance(2 * open_for).await;
            }
            for _ in 0..subject.cycle.1 {
                breaker(Reply::Ok).await;
            }
        }
    };
    runtime.block_on(cycles(10_000));
    let counted = allocation_counter::measure(|| runtime.block_on(cycles(CYCLES)));
    let bytes = u64::try_from(counted.bytes_current).unwrap_or_default();
    let each = bytes / u64::from(CYCLES);
    let lost = format!("{} bytes each time", thousands(each));
    // A buffer may have grown once.
    Finding::of(each == 0, if each > 0 { lost } else { String::new() })
}
