use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode};
use tower_geo_policy::config_error::ConfigError;

/// How a send fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// No connection can be made: surely not processed, and not a byte of the body is taken.
    Connect,
    /// The host name cannot be looked up: as [`Connect`](Self::Connect).
    Dns,
    /// TLS cannot be agreed on: as [`Connect`](Self::Connect).
    Tls,
    /// The connection ends after the request was taken: it may have been processed.
    Reset,
    /// No answer, ever. A time-out has to end it.
    Hang,
}

/// What happens to a send.
///
/// | made by | is the request really sent? | what the caller gets |
/// |---|---|---|
/// | [`of`](Self::of) | no | an answer that is made up |
/// | [`fault`](Self::fault) | no | an error, or nothing for ever |
/// | [`real`](Self::real) | yes | the real answer, with what is changed here |
/// | [`lost`](Self::lost) | yes | an error: the answer is lost on its way |
///
/// ```
/// use std::time::Duration;
/// use http::{HeaderName, HeaderValue, StatusCode};
/// use tower_geo::fault::{Answer, FaultKind};
///
/// let busy = Answer::of(StatusCode::SERVICE_UNAVAILABLE)
///     .header(HeaderName::from_static("x-ms-error-code"), HeaderValue::from_static("ServerBusy"))
///     .latency(Duration::from_millis(20));
/// let black_hole = Answer::fault(FaultKind::Hang);
/// // The write is done, and nobody is told so.
/// let applied = Answer::real().status(StatusCode::BAD_GATEWAY);
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Answer {
    pub(super) latency: Duration,
    pub(super) what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    Fault(FaultKind),
    Made(Made),
    Real(Change),
    Lost,
}

/// An answer that no server gave.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub(super) change: Change,
    pub(super) body: Bytes,
}

/// What is changed on an answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Change {
    pub(super) status: Option<StatusCode>,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) end: End,
    /// Set where it makes no sense; told when the layer is built.
    misuse: Option<(&'static str, &'static str)>,
}

/// How a body ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum End {
    #[default]
    Whole,
    CutAfter(u64),
    StallAfter(u64),
}

impl Answer {
    const fn new(what: What) -> Self {
        Self {
            latency: Duration::ZERO,
            what,
        }
    }

    /// An answer with this status and an empty body; the request is not sent.
    pub const fn of(status: StatusCode) -> Self {
        Self::new(What::Made(Made {
            change: Change {
                status: Some(status),
                headers: Vec::new(),
                end: End::Whole,
                misuse: None,
            },
            body: Bytes::new(),
        }))
    }

    /// No answer; the request is not sent.
    pub const fn fault(kind: FaultKind) -> Self {
        Self::new(What::Fault(kind))
    }

    /// The request is sent, and its answer handed over with what is changed here. Unchanged, it
    /// makes an exception from the rules behind it.
    pub const fn real() -> Self {
        Self::new(What::Real(Change {
            status: None,
            headers: Vec::new(),
            end: End::Whole,
            misuse: None,
        }))
    }

    /// The request is sent and answered, and the answer is lost: for the caller a connection that
    /// was reset, after which a write may have been done.
    pub const fn lost() -> Self {
        Self::new(What::Lost)
    }

    /// The answer, or the fault, comes so much later. For a real answer this is in addition.
    pub const fn latency(mut self, latency: Duration) -> Self {
        self.latency = latency;
        self
    }

    /// The status of the answer.
    pub fn status(self, status: StatusCode) -> Self {
        self.change(|change| change.status = Some(status))
    }

    /// A header of the answer. On a real answer it replaces what is there.
    pub fn header(self, name: HeaderName, value: HeaderValue) -> Self {
        self.change(|change| change.headers.push((name, value)))
    }

    /// The body of an answer that is made up.
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        if let What::Made(made) = &mut self.what {
            made.body = body.into();
            return self;
        }
        self.change(|change| {
            change.misuse = Some(("body", "a real answer keeps its body; use `Answer::of`"));
        })
    }

    /// The body breaks off after so many bytes.
    pub fn cut_after(self, bytes: u64) -> Self {
        self.end(End::CutAfter(bytes), "cut_after")
    }

    /// The body gives so many bytes, and then nothing for ever.
    pub fn stall_after(self, bytes: u64) -> Self {
        self.end(End::StallAfter(bytes), "stall_after")
    }

    fn end(self, end: End, setting: &'static str) -> Self {
        self.change(|change| {
            if change.end != End::Whole {
                change.misuse = Some((setting, "a body ends only once"));
            }
            change.end = end;
        })
    }

    fn change(mut self, change: impl FnOnce(&mut Change)) -> Self {
        match &mut self.what {
            What::Made(made) => change(&mut made.change),
            What::Real(real) => change(real),
            What::Fault(_) | What::Lost => {
                // Told when the layer is built, where all other mistakes are told.
                self.what = What::Real(Change {
                    misuse: Some(("answers", "a fault has no answer that could be changed")),
                    ..Change::default()
                });
            }
        }
        self
    }

    /// What makes no sense.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let (change, length) = match &self.what {
            What::Fault(_) | What::Lost => return Ok(()),
            What::Real(change) => (change, u64::MAX),
            What::Made(made) => (&made.change, made.body.len() as u64),
        };
        if let Some((setting, message)) = change.misuse {
            return Err(ConfigError::new(setting, message));
        }
        if change
            .status
            .is_some_and(|status| status.is_informational())
        {
            // It ends nothing, so no client hands it over.
            return Err(ConfigError::new("status", "must be at least 200"));
        }
        let (setting, bytes) = match change.end {
            End::Whole => return Ok(()),
            End::CutAfter(bytes) => ("cut_after", bytes),
            End::StallAfter(bytes) => ("stall_after", bytes),
        };
        if bytes > length {
            return Err(ConfigError::new(setting, "is longer than the body"));
        }
        Ok(())
    }
}
