//! Sends that no caller made: how they are made, and how often (F7).
//!
//! They go through a service that the user gives, so that they are signed and traced as all others
//! are. It may be the bare client, or a stack of ours above it: our layers know such a send by its
//! extension and let it pass uncounted.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Buf;
use http::response::Parts;
use http::{Extensions, Method, Request, Response, Uri};
use http_body::Body;
use pin_project_lite::pin_project;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tower_geo_policy::config_error::ConfigError;
use tower_service::Service;

use crate::error::BoxError;
use crate::runtime::{State, service_id};

/// In the extensions of a request that this crate makes by itself, in the background.
///
/// Our own layers pass such a request on as it is. Yours may look at it: to log it apart, say.
///
/// ```
/// # fn label<B>(request: &http::Request<B>) -> &'static str {
/// match tower_geo::BackgroundSend::of(request.extensions()) {
///     Some(send) => send.purpose(), // "monitor", "last-sync", "verify" or "account"
///     None => "caller",
/// }
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct BackgroundSend {
    purpose: &'static str,
    service: usize,
}

impl BackgroundSend {
    /// Takes a look at the extensions of a request.
    #[must_use]
    pub fn of(extensions: &Extensions) -> Option<&Self> {
        extensions.get()
    }

    /// What the send is for: `monitor`, `last-sync`, `verify` or `account`.
    #[must_use]
    pub const fn purpose(&self) -> &'static str {
        self.purpose
    }

    /// Whether a request is one that this service makes by itself.
    pub(crate) fn is_of(extensions: &Extensions, state: &State) -> bool {
        Self::of(extensions).is_some_and(|send| send.service == service_id(state))
    }
}

/// Something that runs in the background until it is stopped, or this handle is dropped.
#[derive(Debug)]
#[must_use = "what runs in the background stops when its handle is dropped"]
pub struct BackgroundTask {
    task: AbortHandle,
    detached: bool,
}

impl BackgroundTask {
    /// Spawns a future on the runtime of the caller.
    pub(crate) fn spawn(
        setting: &'static str,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Self, ConfigError> {
        let runtime = Handle::try_current()
            .map_err(|_| ConfigError::new(setting, "must be started inside a tokio runtime"))?;
        Ok(Self {
            task: runtime.spawn(future).abort_handle(),
            detached: false,
        })
    }

    /// Stops it. A send that is under way is dropped. The same as dropping the handle.
    pub fn stop(self) {}

    /// Lets it run for as long as the runtime does.
    pub fn detach(mut self) {
        self.detached = true;
    }

    /// Whether it has ended, which it does by itself only when its runtime ends.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.task.is_finished()
    }
}

impl Drop for BackgroundTask {
    fn drop(&mut self) {
        if !self.detached {
            self.task.abort();
        }
    }
}

/// How often something is done: at the times of a grid that does not drift, each with jitter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    every: Duration,
    jitter: f64,
    /// The last time of the grid, without jitter.
    last: Instant,
}

impl Pace {
    const fn new(every: Duration, jitter: f64, start: Instant) -> Self {
        Self {
            every,
            jitter,
            last: start,
        }
    }

    /// When it is due next. Times that have passed because the last time took long are left out.
    pub(crate) fn next(&mut self, now: Instant, draw: impl FnOnce() -> f64) -> Instant {
        let late = now.saturating_duration_since(self.last);
        let missed = late.as_nanos() / self.every.as_nanos().max(1);
        let steps = u32::try_from(missed).unwrap_or(u32::MAX).saturating_add(1);
        let step = self.every.saturating_mul(steps);
        self.last = self.last.checked_add(step).unwrap_or(self.last);
        if self.jitter <= 0.0 {
            return self.last;
        }
        // Up to half of the jitter to either side, so that the mean stays what it is.
        // The draws are the user's: one that is no number leaves the time where it is.
        let draw = draw();
        let draw = if draw.is_nan() {
            0.5
        } else {
            draw.clamp(0.0, 1.0)
        };
        let shift = self.every.mul_f64(self.jitter * draw);
        (self.last + shift)
            .checked_sub(self.every.mul_f64(self.jitter / 2.0))
            .unwrap_or(self.last)
            .max(now)
    }
}

/// 100 years, which is never: adding it to an instant cannot overflow.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// What all settings of background tasks have in common: how often, how long for one answer, and how
/// much is chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rhythm {
    pub(crate) every: Duration,
    pub(crate) timeout: Duration,
    /// The share of `every` over which sends are spread.
    pub(crate) jitter: f64,
}

impl Rhythm {
    /// With a tenth of jitter.
    pub(crate) const fn new(every: Duration, timeout: Duration) -> Self {
        Self {
            every,
            timeout,
            jitter: 0.1,
        }
    }

    /// The pace from now on, if it makes sense.
    pub(crate) fn begin(&self, now: Instant) -> Result<Pace, ConfigError> {
        if self.every.is_zero() {
            return Err(ConfigError::new("every", "must be longer than nothing"));
        }
        if self.timeout.is_zero() {
            return Err(ConfigError::new("timeout", "must be longer than nothing"));
        }
        let jitter = self.jitter;
        if !(0.0..=1.0).contains(&jitter) {
            return Err(ConfigError::new(
                "jitter",
                format!("must be a share of the interval, 0 to 1 (got {jitter})"),
            ));
        }
        Ok(Pace::new(self.every.min(LONGEST), jitter, now))
    }
}

/// A request of ours, without headers.
pub(crate) fn request<B: Default>(
    state: &State,
    purpose: &'static str,
    method: &Method,
    uri: &Uri,
) -> Request<B> {
    let mut request = Request::new(B::default());
    request.method_mut().clone_from(method);
    request.uri_mut().clone_from(uri);
    request.extensions_mut().insert(BackgroundSend {
        purpose,
        service: service_id(state),
    });
    request
}

/// What came back: the head, and as much of the body as was wanted.
pub(crate) struct Exchange {
    pub(crate) head: Parts,
    #[cfg_attr(
        not(any(feature = "cosmos", feature = "last-sync")),
        expect(dead_code, reason = "a monitor reads it only to see how it ends")
    )]
    pub(crate) body: Vec<u8>,
    /// The body broke off.
    pub(crate) broken: bool,
}

/// Why nothing came back.
pub(crate) enum NoAnswer {
    /// The client was not ready in time, or said why it never will be: nothing has left (T7).
    NotReady(Option<BoxError>),
    TimedOut,
    /// The client panicked, which is not the service's doing.
    Panicked,
    Failed(BoxError),
}

/// Sends a request and reads the answer, up to so many bytes of its body and no longer than that.
///
/// `leaves` is called when the client is ready, right before it gets the request.
pub(crate) async fn exchange<C, B, RB>(
    client: &C,
    request: Request<B>,
    limit: usize,
    timeout: Duration,
    leaves: impl FnOnce(),
) -> Result<Exchange, NoAnswer>
where
    C: Service<Request<B>, Response = Response<RB>> + Clone,
    C::Error: Into<BoxError>,
    RB: Body,
{
    let has_left = AtomicBool::new(false);
    let purpose = BackgroundSend::of(request.extensions()).map(BackgroundSend::purpose);
    // A fresh clone each time: one that has panicked is not used again. In a box, so that dropping
    // it can be tried as polling it is.
    let mut sending = Box::pin(CatchUnwind {
        inner: async {
            let mut client = client.clone();
            std::future::poll_fn(|cx| client.poll_ready(cx))
                .await
                .map_err(|error| NoAnswer::NotReady(Some(error.into())))?;
            leaves();
            has_left.store(true, Ordering::Relaxed);
            let answer = client.call(request).await;
            let response = answer.map_err(|error| NoAnswer::Failed(error.into()))?;
            let (head, body) = response.into_parts();
            let (body, broken) = read(body, limit).await;
            Ok(Exchange { head, body, broken })
        },
    });
    let ended = tokio::time::timeout(timeout, sending.as_mut()).await;
    if catch_unwind(AssertUnwindSafe(|| drop(sending))).is_err() {
        // It changes nothing: whatever there is to know is known by now.
        tracing::warn!(purpose, "a client panicked as a request was dropped");
    }
    match ended {
        Err(_) if !has_left.load(Ordering::Relaxed) => Err(NoAnswer::NotReady(None)),
        Err(_) => Err(NoAnswer::TimedOut),
        Ok(Err(_)) => Err(NoAnswer::Panicked),
        Ok(Ok(result)) => result,
    }
}

/// Reads a body to its end, or a little past the limit; whether it broke off before that.
async fn read<RB: Body>(body: RB, limit: usize) -> (Vec<u8>, bool) {
    let mut body = pin!(body);
    let mut bytes = Vec::new();
    while bytes.len() <= limit {
        let frame = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await;
        match frame {
            None => break,
            Some(Err(_)) => return (bytes, true),
            Some(Ok(frame)) => {
                if let Ok(mut data) = frame.into_data() {
                    while data.has_remaining() && bytes.len() <= limit {
                        let chunk = data.chunk();
                        let taken = chunk.len().min(limit + 1 - bytes.len());
                        bytes.extend_from_slice(chunk.get(..taken).unwrap_or_default());
                        data.advance(taken);
                    }
                }
            }
        }
    }
    (bytes, false)
}

pin_project! {
    /// A future whose panic is a value. It is not polled again after one.
    struct CatchUnwind<F> {
        #[pin]
        inner: F,
    }
}

impl<F: Future> Future for CatchUnwind<F> {
    type Output = Result<F::Output, Box<dyn Any + Send>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let inner = self.project().inner;
        match catch_unwind(AssertUnwindSafe(|| inner.poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    }
}

impl fmt::Debug for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotReady(None) => "the client was not ready in time",
            Self::NotReady(Some(_)) => "the client was not ready",
            Self::TimedOut => "no answer in time",
            Self::Panicked => "the client panicked",
            Self::Failed(_) => "no answer",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> Instant {
        crate::runtime::now()
    }

    #[test]
    fn a_pace_does_not_drift_and_leaves_out_what_it_missed() {
        let start = start();
        let at = |ms| start + Duration::from_millis(ms);
        let mut pace = Pace::new(Duration::from_secs(5), 0.0, start);
        assert_eq!(pace.next(at(0), || 0.5), at(5_000));
        assert_eq!(pace.next(at(5_003), || 0.5), at(10_000));
        assert_eq!(
            pace.next(at(27_000), || 0.5),
            at(30_000),
            "15, 20 and 25 are gone"
        );
        assert_eq!(pace.next(at(35_000), || 0.5), at(40_000));
    }

    #[test]
    fn jitter_goes_to_both_sides_of_the_grid() {
        let start = start();
        let at = |ms| start + Duration::from_millis(ms);
        let next = |draw| Pace::new(Duration::from_secs(10), 0.2, start).next(start, || draw);
        assert_eq!(next(0.0), at(9_000));
        assert_eq!(next(0.5), at(10_000));
        assert_eq!(next(1.0), at(11_000));
        assert_eq!(next(f64::NAN), at(10_000));
    }

    /// B11, F1: an interval that no clock can show is one that never ends, not a panic.
    #[test]
    fn the_longest_interval_never_comes_and_panics_nowhere() {
        for (jitter, draw) in [(0.0, 0.0), (0.1, 0.5), (1.0, 1.0)] {
            let rhythm = Rhythm {
                every: Duration::MAX,
                timeout: Duration::MAX,
                jitter,
            };
            let mut pace = rhythm.begin(start()).unwrap();
            let first = pace.next(start(), || draw);
            assert!(first > start() + LONGEST / 3, "{jitter}");
            assert!(pace.next(first, || draw) >= first, "{jitter}");
        }
    }

    #[test]
    fn senseless_rhythms_are_errors() {
        let second = Duration::from_secs(1);
        let begin = |every, timeout, jitter| {
            let rhythm = Rhythm {
                every,
                timeout,
                jitter,
            };
            rhythm.begin(start())
        };
        assert!(begin(second, second, 1.0).is_ok());
        for (every, timeout, jitter, setting) in [
            (Duration::ZERO, second, 0.0, "every"),
            (second, Duration::ZERO, 0.0, "timeout"),
            (second, second, -0.1, "jitter"),
            (second, second, 1.1, "jitter"),
            (second, second, f64::NAN, "jitter"),
        ] {
            assert_eq!(
                begin(every, timeout, jitter).unwrap_err().setting(),
                setting
            );
        }
    }

    #[test]
    fn outside_of_a_runtime_nothing_is_spawned() {
        let error = BackgroundTask::spawn("monitor", async {}).unwrap_err();
        assert_eq!(error.setting(), "monitor");
    }
}
