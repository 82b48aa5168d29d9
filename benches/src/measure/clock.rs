//! The two clocks of measurements.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, Timespec, clock_gettime};

/// What this thread has had of a processor: the time in which others ran does not count.
pub(crate) fn thread_cpu() -> Duration {
    span(clock_gettime(ClockId::ThreadCPUTime))
}

fn span(time: Timespec) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
    Duration::new(seconds, nanos)
}

/// How long this thread has waited for a processor, where the kernel says so: Linux does.
pub(crate) fn thread_waited() -> Option<Duration> {
    let said = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanos = said.split_whitespace().nth(1)?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}

/// The time on the wall.
#[expect(
    clippy::disallowed_methods,
    reason = "real time is what is measured; it decides nothing"
)]
pub(crate) fn wall() -> Instant {
    Instant::now()
}

/// In nanoseconds.
pub(crate) fn ns(span: Duration) -> f64 {
    span.as_secs_f64() * 1e9
}
