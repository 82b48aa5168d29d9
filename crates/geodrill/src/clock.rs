//! The virtual clock: a paused runtime that moves on when there is nothing left to do.
//!
//! Tokio's paused clock jumps to the next timer when every task waits. Two things are added
//! here. [`Idle`] tells when every task has done what it can do at the present instant, which is
//! how "requests come after timers" is kept; and [`step`] moves the clock without letting timers
//! fire first, which is how "operators come before timers" is kept.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time;

/// Tells one task when all others wait for a timer (or for ever).
#[derive(Clone, Debug, Default)]
pub(crate) struct Idle(Arc<Mutex<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    waker: Option<Waker>,
    is_idle: bool,
}

impl Idle {
    /// Waits until nothing else can be done at this instant.
    pub(crate) async fn reached(&self) {
        self.lock().is_idle = false;
        poll_fn(|cx| {
            let mut waiting = self.lock();
            if waiting.is_idle {
                waiting.waker = None;
                return Poll::Ready(());
            }
            waiting.waker = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// The runtime has no task that could run.
    fn tell(&self) {
        let mut waiting = self.lock();
        waiting.is_idle = true;
        if let Some(waker) = waiting.waker.take() {
            waker.wake();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A paused runtime on this thread, and its signal of idleness.
///
/// The signal is for spawned tasks only: the future given to `block_on` may still have something
/// to do when it comes.
pub(crate) fn runtime() -> io::Result<(Runtime, Idle)> {
    let idle = Idle::default();
    let told = idle.clone();
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        // Called when no task is ready, before the clock may jump; a task that is woken here
        // runs first.
        .on_thread_park(move || told.tell())
        .build()?;
    Ok((runtime, idle))
}

/// Moves the clock by one millisecond, with all timers still to fire.
///
/// `advance` moves the clock when it is first polled, and then yields so that timers fire. The
/// yield is what is left out here.
pub(crate) fn step() {
    let mut advance = pin!(time::advance(Duration::from_millis(1)));
    let _ = advance
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn idle_comes_after_every_timer_of_the_instant() {
        let (runtime, idle) = runtime().unwrap();
        let fired = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&fired);
        let driver = async move {
            let start = time::Instant::now();
            let at = start + Duration::from_millis(5);
            for _ in 0..100 {
                let fired = Arc::clone(&fired);
                tokio::spawn(async move {
                    time::sleep_until(at).await;
                    // What a timer sets off at the same instant belongs to it.
                    for _ in 0..10 {
                        tokio::task::yield_now().await;
                    }
                    time::sleep_until(at).await;
                    fired.fetch_add(1, Ordering::Relaxed);
                });
            }
            time::sleep_until(at).await;
            idle.reached().await;
            assert_eq!(time::Instant::now(), at);
            fired.load(Ordering::Relaxed)
        };
        let counted = runtime.block_on(async { tokio::spawn(driver).await.unwrap() });
        assert_eq!(counted, 100);
        assert_eq!(seen.load(Ordering::Relaxed), 100);
    }

    #[test]
    fn a_step_comes_before_the_timers_of_its_instant() {
        let (runtime, idle) = runtime().unwrap();
        let driver = async move {
            let start = time::Instant::now();
            let at = start + Duration::from_millis(2);
            let sleeper = tokio::spawn(async move { time::sleep_until(at).await });
            time::sleep_until(start + Duration::from_millis(1)).await;
            idle.reached().await;
            step();
            assert_eq!(time::Instant::now(), at);
            assert!(!sleeper.is_finished());
            idle.reached().await;
            assert_eq!(time::Instant::now(), at);
            assert!(sleeper.is_finished());
        };
        runtime.block_on(async { tokio::spawn(driver).await.unwrap() });
    }
}
