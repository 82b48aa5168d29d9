//! A region that can do so much and no more: servers, a queue in front of them, and what goes
//! wrong.
//!
//! Work is first come, first served. When something arrives, it is known which server will take it
//! and when, so its end is known, too; nothing has to run in the background. Whoever gives up
//! waiting goes, but the work stays in the queue and is done all the same: that is how a busy
//! region stays busy with what nobody wants any more.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use fastrand::Rng;

use crate::outage::{Spell, Trouble};

/// How long the work for one request takes where load allows it.
const USUAL_WORK: f64 = 0.02;
/// How long it takes to be refused a connection.
const REFUSAL: Duration = Duration::from_millis(2);

/// Which of the two copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Primary,
    Secondary,
}

impl Side {
    /// The host that the side answers for.
    pub(crate) const fn host(self) -> &'static str {
        match self {
            Self::Primary => "contoso.blob.core.windows.net",
            Self::Secondary => "contoso-secondary.blob.core.windows.net",
        }
    }

    /// The way to it and back.
    const fn latency(self) -> Duration {
        Duration::from_millis(match self {
            Self::Primary => 2,
            Self::Secondary => 40,
        })
    }
}

/// How much a region can do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Capacity {
    /// Requests per second.
    pub(crate) per_second: f64,
    /// How long the last one in a full queue waits, at the usual speed.
    pub(crate) queue: Duration,
}

/// What a region answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// What was asked for.
    Done,
    /// There is no such object here.
    NotFound,
    /// 503: the queue is full, or the region fails.
    Failed,
    /// 503 of a region that asks for patience.
    Busy,
    /// No connection.
    Refused,
    /// The connection broke after the request had left.
    Reset,
}

impl Reply {
    /// Whether it is a sign of trouble.
    pub(crate) const fn is_failure(self) -> bool {
        !matches!(self, Self::Done | Self::NotFound)
    }
}

/// A region at work. Times count from the start of the run and do not go back.
#[derive(Debug)]
pub(crate) struct Region {
    spells: Vec<Spell>,
    latency: Duration,
    /// How long the work for one request takes, on average.
    work: Duration,
    /// When each server has done what it was given.
    free: BinaryHeap<Reverse<Duration>>,
    /// When the work begins that nobody has begun yet, in order.
    waiting: VecDeque<Duration>,
    queue: usize,
    random: Rng,
}

impl Region {
    pub(crate) fn new(side: Side, capacity: Capacity, spells: &[Spell], random: Rng) -> Self {
        let servers = whole(capacity.per_second * USUAL_WORK).max(1);
        let work = Duration::from_secs_f64(servers as f64 / capacity.per_second);
        let queue = whole(capacity.per_second * capacity.queue.as_secs_f64());
        Self {
            spells: spells
                .iter()
                .filter(|spell| spell.side == side)
                .copied()
                .collect(),
            latency: side.latency(),
            work,
            free: vec![Reverse(Duration::ZERO); servers].into(),
            waiting: VecDeque::new(),
            queue,
            random,
        }
    }

    /// A request arrives. When it is answered, and what; `None` if it never is.
    pub(crate) fn arrive(&mut self, now: Duration, wants_new: bool) -> Option<(Duration, Reply)> {
        match trouble(&self.spells, now) {
            Some(Trouble::Down) => return Some((now + REFUSAL, Reply::Refused)),
            Some(Trouble::Silent) => return None,
            Some(Trouble::Throttled) => return Some((now + self.latency, Reply::Busy)),
            Some(Trouble::Errors(_) | Trouble::Slow(_) | Trouble::Lagging) | None => {}
        }
        while self.waiting.front().is_some_and(|&begins| begins <= now) {
            self.waiting.pop_front();
        }
        let full = Some((now + self.latency, Reply::Failed));
        let Some(mut server) = self.free.peek_mut() else {
            return full;
        };
        let begins = server.0.max(now);
        if begins > now {
            if self.waiting.len() >= self.queue {
                return full;
            }
            self.waiting.push_back(begins);
        }
        let meanwhile = trouble(&self.spells, begins);
        let slowness = match meanwhile {
            Some(Trouble::Slow(times)) => times,
            _ => 1.0,
        };
        let work = self.work.mul_f64(slowness * (0.5 + self.random.f64()));
        server.0 = begins + work;
        drop(server);
        let reply = match meanwhile {
            Some(Trouble::Errors(share)) if self.random.f64() < share => Reply::Failed,
            Some(Trouble::Lagging) if wants_new => Reply::NotFound,
            _ => Reply::Done,
        };
        self.cut_short(now, begins + work + self.latency, reply)
    }

    /// What becomes of an answer on its way when the region goes away.
    fn cut_short(&self, now: Duration, done: Duration, reply: Reply) -> Option<(Duration, Reply)> {
        let gone = self.spells.iter().find(|spell| {
            let away = matches!(spell.trouble, Trouble::Down | Trouble::Silent);
            away && now < spell.from && spell.from < done
        });
        match gone.map(|spell| (spell.from, spell.trouble)) {
            Some((_, Trouble::Silent)) => None,
            Some((from, _)) => Some((from, Reply::Reset)),
            None => Some((done, reply)),
        }
    }
}

fn trouble(spells: &[Spell], at: Duration) -> Option<Trouble> {
    spells
        .iter()
        .find(|spell| spell.from <= at && at < spell.until)
        .map(|spell| spell.trouble)
}

/// The nearest whole number, 0 for what is less.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded first, and what does not fit is cut, which is what is wanted"
)]
pub(crate) fn whole(number: f64) -> usize {
    number.round() as usize
}

#[cfg(test)]
mod tests;
