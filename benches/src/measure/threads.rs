//! Two threads at once against one.
//!
//! On a machine that others use as well, a batch says something only if both threads had a core to
//! themselves all the time: their CPU time was their time on the wall, and they ran together. Only
//! such batches count, and how many there were is part of the result.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::Spread;
use super::allocations::uncounted;
use super::clock::{ns, thread_cpu, wall};
use crate::row::{Call, PerThread};

/// Enough clean batches for a median.
const ENOUGH: usize = 101;
/// When to give up.
const AT_MOST: Duration = Duration::from_secs(15);
/// At most, so that a batch has a chance to be left alone.
const BATCH: Duration = Duration::from_micros(150);
/// The part of its time on the wall that a thread must have run.
const RAN: f64 = 0.97;
/// The part of the time in which both must have been running.
const TOGETHER: f64 = 0.8;

pub(crate) struct Found {
    pub(crate) batches: u32,
    pub(crate) clean: u32,
    pub(crate) one: Option<Spread>,
    /// Of the slower thread.
    pub(crate) two: Option<Spread>,
    pub(crate) ratio: Option<Spread>,
}

/// What a worker is told: so many calls, once this many threads are there.
struct Order {
    calls: u32,
    threads: u32,
    round: u32,
}

#[derive(Clone, Copy)]
struct Sample {
    began: Instant,
    ended: Instant,
    cpu: Duration,
    calls: u32,
}

impl Sample {
    fn wall(&self) -> Duration {
        self.ended.saturating_duration_since(self.began)
    }

    fn had_its_core(&self) -> bool {
        self.cpu.as_secs_f64() >= RAN * self.wall().as_secs_f64()
    }

    fn ns(&self) -> f64 {
        ns(self.cpu) / f64::from(self.calls)
    }
}

struct Worker {
    orders: mpsc::Sender<Order>,
    samples: mpsc::Receiver<Sample>,
}

impl Worker {
    fn order(&self, calls: u32, threads: u32, round: u32) {
        let order = Order {
            calls,
            threads,
            round,
        };
        // A worker that is gone shows when its sample is missed.
        let _ = self.orders.send(order);
    }

    fn sample(&self) -> Option<Sample> {
        self.samples.recv().ok()
    }
}

pub(crate) fn two_against_one(start: &PerThread) -> Found {
    let arrived = AtomicU32::new(0);
    // One runtime for both, as in a program: rows that arm timers meet there.
    let runtime = tokio::runtime::Handle::try_current().ok();
    std::thread::scope(|scope| {
        let spawn = || {
            let (orders, to_do) = mpsc::channel::<Order>();
            let (done, samples) = mpsc::channel();
            let (arrived, runtime) = (&arrived, runtime.clone());
            scope.spawn(move || {
                let _context = runtime.as_ref().map(tokio::runtime::Handle::enter);
                uncounted(|| {
                    let mut call = start();
                    while let Ok(order) = to_do.recv() {
                        if done.send(batch(&mut call, &order, arrived)).is_err() {
                            break;
                        }
                    }
                });
            });
            Worker { orders, samples }
        };
        let found = compare(&spawn(), &spawn());
        // The channels are closed by now, so the threads end.
        found
    })
}

fn batch(call: &mut Call, order: &Order, arrived: &AtomicU32) -> Sample {
    // A thread that has slept is slow at first, which is not to be part of one side only.
    (0..order.calls / 4).for_each(|_| call());
    if order.threads > 1 {
        arrived.fetch_add(1, Ordering::AcqRel);
        while arrived.load(Ordering::Acquire) < order.round * order.threads {
            std::hint::spin_loop();
        }
    }
    let (began, before) = (wall(), thread_cpu());
    (0..order.calls).for_each(|_| call());
    let (after, ended) = (thread_cpu(), wall());
    Sample {
        began,
        ended,
        cpu: after.saturating_sub(before),
        calls: order.calls,
    }
}

fn compare(a: &Worker, b: &Worker) -> Found {
    let mut found = Found {
        batches: 0,
        clean: 0,
        one: None,
        two: None,
        ratio: None,
    };
    let mut round = 0;
    let sizes = alone_size(a).zip(batch_size(a, b, &mut round));
    let Some((calls_alone, calls)) = sizes else {
        return found;
    };
    let (mut one, mut two) = (Vec::new(), Vec::new());
    let began = wall();
    while two.len() < ENOUGH && wall() - began < AT_MOST {
        a.order(calls_alone, 1, 0);
        let Some(alone) = a.sample() else { break };
        found.batches += 1;
        let Some((first, second)) = both(a, b, calls, &mut round) else {
            break;
        };
        if alone.had_its_core() {
            one.push(alone.ns());
        }
        if first.had_its_core() && second.had_its_core() && were_together(&first, &second) {
            two.push(first.ns().max(second.ns()));
        }
    }
    found.clean = u32::try_from(two.len()).unwrap_or(u32::MAX);
    found.one = Spread::of(one).map(|one| one.rounded(1));
    found.ratio = found.one.and_then(|one| {
        let against = two.iter().map(|two| two / one.median).collect();
        Spread::of(against).map(|ratio| ratio.rounded(2))
    });
    found.two = Spread::of(two).map(|two| two.rounded(1));
    found
}

/// Both threads at once.
fn both(a: &Worker, b: &Worker, calls: u32, round: &mut u32) -> Option<(Sample, Sample)> {
    *round += 1;
    a.order(calls, 2, *round);
    b.order(calls, 2, *round);
    Some((a.sample()?, b.sample()?))
}

/// So many calls that a batch of one thread takes as long as it should.
fn alone_size(a: &Worker) -> Option<u32> {
    let mut calls = 50;
    loop {
        a.order(calls, 1, 0);
        if a.sample()?.cpu >= BATCH || calls > 1 << 20 {
            return Some(calls);
        }
        calls *= 2;
    }
}

/// So many calls that a batch of both threads takes as long as it should.
fn batch_size(a: &Worker, b: &Worker, round: &mut u32) -> Option<u32> {
    let mut calls = 50;
    loop {
        let mut longest = Duration::ZERO;
        // Several, because they may not have met.
        for _ in 0..8 {
            let (first, second) = both(a, b, calls, round)?;
            longest = longest.max(first.cpu).max(second.cpu);
        }
        if longest >= BATCH || calls > 1 << 20 {
            return Some(calls);
        }
        calls *= 2;
    }
}

fn were_together(a: &Sample, b: &Sample) -> bool {
    let both = a
        .ended
        .min(b.ended)
        .saturating_duration_since(a.began.max(b.began));
    both.as_secs_f64() >= TOGETHER * a.wall().max(b.wall()).as_secs_f64()
}
