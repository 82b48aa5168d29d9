//! The one error of the stack: what kind, what was tried, what to do.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use http::{Method, StatusCode};
use tower_geo_policy::fault::Fault;
use tower_geo_policy::gate::ReadOnlyWhy;
use tower_geo_policy::operation::{Failure, Misfit};
use tower_geo_policy::region::RegionId;
use tower_geo_policy::tick::Tick;
use tower_geo_policy::trail::{Ending, Trail};
use tower_geo_policy::verdict::Verdict;

use crate::faults::ClassifyFault;
use crate::redact::Words;
use crate::runtime::State;
use crate::served::region_name;

/// Any error of any service below us.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// An operation that ended without an answer.
///
/// Every layer of this crate has this error. What a service below reports stays in the chain of
/// [`source`](StdError::source), down to the client's own error; below a layer that passes a
/// request through untouched, the kind is [`ErrorKind::Transport`] as well.
///
/// Nothing in it, nor in what it prints, is a query string, a header or a body. Its debug form has
/// the words of its sources, without queries and credentials; [`source`](StdError::source) hands
/// the client's own error out as it is.
///
/// ```
/// # async fn call<S>(client: S) where
/// #     S: tower_service::Service<http::Request<()>, Error = tower_geo::Error>,
/// # {
/// # let mut client = client;
/// match client.call(http::Request::new(())).await {
///     Err(error) if error.is_read_only() => { /* keep the change, tell the user */ }
///     Err(error) if error.is_circuit_open() => { /* come back after `error.retry_after()` */ }
///     Err(error) if error.kind() == tower_geo::ErrorKind::UnknownOutcome => { /* look before writing again */ }
///     _ => {}
/// }
/// # }
/// ```
pub struct Error {
    inner: Box<Inner>,
}

struct Inner {
    kind: ErrorKind,
    state: Option<State>,
    request: Option<RequestLine>,
    trail: Trail,
    detail: Option<Detail>,
    timed_out: bool,
    never_sent: bool,
    retry_after: Option<Duration>,
    source: Option<BoxError>,
}

/// The parts of a request that may be told: no query, no headers.
pub(crate) struct RequestLine {
    method: Method,
    host: Option<String>,
}

impl RequestLine {
    pub(crate) fn new(method: &Method, host: Option<String>) -> Self {
        Self {
            method: method.clone(),
            host,
        }
    }
}

enum Detail {
    ReadOnly { why: ReadOnlyWhy, since: Duration },
    Text(String),
}

/// What kind of end an operation came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The service is read-only; nothing was sent, the body was not touched. Keep the write and
    /// try it later.
    ReadOnly,
    /// No region admits the request at this moment; nothing was sent. Come back later.
    BreakerOpen,
    /// The deadline passed while the only send was under way.
    Deadline,
    /// The last failure had no answer of the service; the client's own error is the source.
    Transport,
    /// A write was sent and its fate cannot be known. Look before you write again.
    UnknownOutcome,
    /// The request had to be sent again, and its body could be sent only once. Make the body
    /// cloneable, or let it be buffered.
    NotReplayable,
    /// The secondary is further behind than this read allows, or may lack what was written, and
    /// the primary gave no answer; its failure is the source. Come back later, or allow more.
    Stale,
    /// A body broke off, and the version that it was of is no longer there, so its rest cannot be
    /// fetched (R9). Read the object again from its beginning.
    VersionChanged,
    /// The request or the stack asks for what is not configured. A fault of the program.
    Config,
}

impl ErrorKind {
    /// The word for it in drills.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::BreakerOpen => "breaker-open",
            Self::Deadline => "deadline",
            Self::Transport => "transport",
            Self::UnknownOutcome => "unknown-outcome",
            Self::NotReplayable => "not-replayable",
            Self::Stale => "stale",
            Self::VersionChanged => "version-changed",
            Self::Config => "config",
        }
    }
}

impl Error {
    fn of_kind(kind: ErrorKind) -> Self {
        Self {
            inner: Box::new(Inner {
                kind,
                state: None,
                request: None,
                trail: Trail::default(),
                detail: None,
                timed_out: false,
                never_sent: false,
                retry_after: None,
                source: None,
            }),
        }
    }

    pub(crate) fn read_only(
        state: &State,
        why: ReadOnlyWhy,
        since: Tick,
        until: Option<Tick>,
        now: Tick,
    ) -> Self {
        let mut error = Self::of_kind(ErrorKind::ReadOnly);
        error.inner.state = Some(state.clone());
        error.inner.never_sent = true;
        error.inner.retry_after = until.map(|until| until.since(now));
        error.inner.detail = Some(Detail::ReadOnly {
            why,
            since: now.since(since),
        });
        error
    }

    pub(crate) fn breaker_open(state: &State, until: Option<Tick>, now: Tick) -> Self {
        let mut error = Self::of_kind(ErrorKind::BreakerOpen);
        error.inner.state = Some(state.clone());
        error.inner.never_sent = true;
        error.inner.retry_after = until.map(|until| until.since(now));
        error
    }

    pub(crate) fn config(state: &State, message: impl Into<String>) -> Self {
        let mut error = Self::of_kind(ErrorKind::Config);
        error.inner.state = Some(state.clone());
        error.inner.never_sent = true;
        error.inner.detail = Some(Detail::Text(message.into()));
        error
    }

    /// A request that asks for what its service is not configured for.
    pub(crate) fn misfit(state: &State, misfit: Misfit) -> Self {
        Self::config(state, misfit_message(state, misfit))
    }

    /// What is worth keeping as the cause of a failed operation: the client's own error, not the
    /// wrapping of a layer in between.
    pub(crate) fn into_cause(mut self) -> BoxError {
        match (self.inner.kind, self.inner.source.take()) {
            (ErrorKind::Transport, Some(source)) => source,
            (_, source) => {
                self.inner.source = source;
                Box::new(self)
            }
        }
    }

    /// What a service below reported, as it is. Our own error stays what it is.
    pub(crate) fn from_inner(error: BoxError) -> Self {
        match error.downcast::<Self>() {
            Ok(ours) => *ours,
            Err(theirs) => {
                let mut error = Self::of_kind(ErrorKind::Transport);
                error.inner.source = Some(theirs);
                error
            }
        }
    }

    /// A send that was given up because it had not answered in time.
    pub(crate) fn timed_out(state: &State, message: &'static str) -> Self {
        let mut error = Self::of_kind(ErrorKind::Transport);
        error.inner.state = Some(state.clone());
        error.inner.timed_out = true;
        error.inner.detail = Some(Detail::Text(message.to_owned()));
        error
    }

    /// A body that is not what its head has promised.
    pub(crate) fn body(message: &'static str) -> Self {
        let mut error = Self::of_kind(ErrorKind::Transport);
        error.inner.detail = Some(Detail::Text(message.to_owned()));
        error
    }

    /// A body that broke off and whose rest could not be had; `source` is what ended the attempts.
    pub(crate) fn not_resumed(
        state: &State,
        kind: ErrorKind,
        message: String,
        source: Option<Self>,
    ) -> Self {
        let mut error = Self::of_kind(kind);
        error.inner.state = Some(state.clone());
        error.inner.timed_out = source.as_ref().is_some_and(Self::is_timeout);
        error.inner.detail = Some(Detail::Text(message));
        error.inner.source = source.map(|source| Box::new(source) as BoxError);
        error
    }

    /// The end of an operation without an answer.
    pub(crate) fn of_operation(
        state: &State,
        failure: Failure,
        request: RequestLine,
        trail: Trail,
        source: Option<BoxError>,
        now: Tick,
    ) -> Self {
        let mut error = match failure {
            Failure::BreakerOpen { until } => Self::breaker_open(state, until, now),
            Failure::Deadline => Self::of_kind(ErrorKind::Deadline),
            Failure::Transport => Self::of_kind(ErrorKind::Transport),
            Failure::UnknownOutcome => Self::of_kind(ErrorKind::UnknownOutcome),
            Failure::NotReplayable => Self::of_kind(ErrorKind::NotReplayable),
            Failure::Stale { until } => {
                return Self::stale(state, until, request, trail, source, now);
            }
            Failure::Config(misfit) => return Self::misfit(state, misfit),
            other => {
                let mut error = Self::of_kind(ErrorKind::Transport);
                error.inner.detail = Some(Detail::Text(format!("{other:?}")));
                error
            }
        };
        let sends = trail.sends();
        error.inner.never_sent = sends
            .iter()
            .all(|send| matches!(send.ending, Ending::Fault(fault) if fault.verdict() == Verdict::Unreachable));
        error.inner.timed_out = sends
            .last()
            .is_some_and(|send| matches!(send.ending, Ending::Fault(Fault::TimedOut)));
        error.inner.state = Some(state.clone());
        error.inner.request = Some(request);
        error.inner.trail = trail;
        error.inner.source = source;
        error
    }

    /// F3: the copy is too old, or F5: it may lack what was written. What became of the writer is
    /// the source.
    fn stale(
        state: &State,
        until: Option<Tick>,
        request: RequestLine,
        trail: Trail,
        source: Option<BoxError>,
        now: Tick,
    ) -> Self {
        let writer = state.regions().writer();
        let last = trail.sends().iter().rfind(|send| send.region == writer);
        let source = source.or_else(|| match last.map(|send| send.ending) {
            Some(Ending::Answer(status)) => Some(Box::new(WriterAnswered {
                region: region_name(state, writer).to_owned(),
                status,
            })),
            Some(Ending::Fault(Fault::TimedOut)) => Some(Box::new(Self::timed_out(
                state,
                "the primary did not answer in time",
            ))),
            Some(_) => None,
            // Only the circuit keeps a read from a writer that it may go to.
            None => until.map(|_| Box::new(Self::breaker_open(state, until, now)) as BoxError),
        });
        let mut error = Self::of_kind(ErrorKind::Stale);
        error.inner.never_sent = trail.sends().is_empty();
        error.inner.retry_after = until.map(|until| until.since(now));
        error.inner.state = Some(state.clone());
        error.inner.request = Some(request);
        error.inner.trail = trail;
        error.inner.source = source;
        error
    }

    /// What a service below reported, as a fault of the transport; `None` when a layer of ours
    /// refused the request, so that nothing has left.
    pub(crate) fn fault(&self, classify: &dyn ClassifyFault) -> Option<Fault> {
        match (self.inner.kind, &self.inner.source) {
            _ if self.inner.timed_out => Some(Fault::TimedOut),
            (ErrorKind::Transport, Some(source)) => Some(classify.classify(&**source)),
            (
                ErrorKind::Transport
                | ErrorKind::UnknownOutcome
                | ErrorKind::Deadline
                | ErrorKind::VersionChanged,
                _,
            ) => Some(Fault::Reset),
            (ErrorKind::ReadOnly | ErrorKind::BreakerOpen | ErrorKind::Config, _) => None,
            (ErrorKind::NotReplayable | ErrorKind::Stale, _) => Some(Fault::Reset),
        }
    }

    /// What kind of end this is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// Whether the read-only gate refused a write.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.inner.kind == ErrorKind::ReadOnly
    }

    /// Why the read-only gate refused the write, if it did.
    #[cfg(feature = "metrics")]
    pub(crate) fn read_only_why(&self) -> Option<ReadOnlyWhy> {
        match self.inner.detail {
            Some(Detail::ReadOnly { why, .. }) => Some(why),
            _ => None,
        }
    }

    /// Whether no region admitted the request.
    #[must_use]
    pub fn is_circuit_open(&self) -> bool {
        self.inner.kind == ErrorKind::BreakerOpen
    }

    /// Whether the secondary was too old for this read, and the primary gave no answer.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.inner.kind == ErrorKind::Stale
    }

    /// Whether surely nothing of this operation was processed: refused by us, or no connection
    /// was made.
    #[must_use]
    pub fn was_never_sent(&self) -> bool {
        self.inner.never_sent
    }

    /// Whether the last send was given up because its time was over.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.inner.timed_out || self.inner.kind == ErrorKind::Deadline
    }

    /// How long to wait before another try can succeed, where that is known.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.inner.retry_after
    }

    /// Every send that was made (E1). Empty when there was none.
    #[must_use]
    pub fn trail(&self) -> &Trail {
        &self.inner.trail
    }

    /// The name of a region in [`trail`](Self::trail).
    #[must_use]
    pub fn name_of(&self, region: RegionId) -> &str {
        self.inner
            .state
            .as_ref()
            .map_or("unknown", |state| region_name(state, region))
    }

    /// The name of the service, if the error is ours.
    #[must_use]
    pub fn service_name(&self) -> Option<&str> {
        self.inner.state.as_ref().map(|state| state.name())
    }
}

/// The failure of the region that takes writes, as the source of a *stale* error.
#[derive(Debug)]
struct WriterAnswered {
    region: String,
    status: StatusCode,
}

impl fmt::Display for WriterAnswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} answered {}", self.region, self.status.as_u16())
    }
}

impl StdError for WriterAnswered {}

fn misfit_message(state: &State, misfit: Misfit) -> String {
    match misfit {
        Misfit::NoCopy => match &state.extra().no_copy {
            Some(reason) => format!("this request needs a secondary region: {reason}"),
            None => "this request needs a secondary region, and none is configured".to_owned(),
        },
        Misfit::WriteToCopy => {
            "a write is pinned to a region that takes no writes; remove the pin, or name the \
             primary's host"
                .to_owned()
        }
        Misfit::UnknownRegion => {
            let names: Vec<_> = state
                .regions()
                .iter()
                .map(|(_, region)| region.name())
                .collect();
            format!(
                "the request is pinned to a region that this service does not have; it has {}",
                names.join(", ")
            )
        }
        other => format!("{other:?}"),
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.inner.kind)
            .field("service", &self.service_name())
            .field("trail", &self.inner.trail)
            .field("retry_after", &self.inner.retry_after)
            .field("source", &self.source().map(Words))
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.inner;
        f.write_str(match inner.kind {
            ErrorKind::ReadOnly => "write refused, nothing was sent: the service is read-only",
            ErrorKind::BreakerOpen => "nothing was sent: no region admits the request",
            ErrorKind::Deadline => "no answer before the deadline",
            ErrorKind::Transport if inner.timed_out => "no answer in time",
            ErrorKind::Transport => "no answer",
            ErrorKind::UnknownOutcome => {
                "a write was sent and its outcome is unknown; look before writing again"
            }
            ErrorKind::NotReplayable => {
                "the request has to be sent again, but its body can be sent only once; use a body \
                 that can be cloned, or buffering"
            }
            ErrorKind::Stale => {
                "the secondary is too old for this read, and the primary gave no answer"
            }
            ErrorKind::VersionChanged => {
                "the object has changed while it was read; read it again from its beginning"
            }
            ErrorKind::Config => "not configured for this",
        })?;
        if let Some(service) = self.service_name() {
            write!(f, " (service `{service}`")?;
            if let Some(RequestLine { method, host }) = &inner.request {
                write!(f, ", {method}")?;
                if let Some(host) = host {
                    write!(f, " {host}")?;
                }
            }
            f.write_str(")")?;
        }
        match &inner.detail {
            Some(Detail::ReadOnly { why, since }) => write!(f, ", {why} for {since:.1?}")?,
            Some(Detail::Text(text)) => write!(f, ": {text}")?,
            None => {}
        }
        let mut separator = ", tried";
        for send in inner.trail.sends() {
            let region = self.name_of(send.region);
            match send.ending {
                Ending::Answer(status) => write!(f, "{separator} {region}: {}", status.as_u16())?,
                Ending::Fault(fault) => write!(f, "{separator} {region}: {fault}")?,
                _ => write!(f, "{separator} {region}")?,
            }
            write!(f, " after {:.0?}", send.took)?;
            separator = ";";
        }
        if let Some(after) = inner.retry_after {
            write!(f, ", try again in {after:.1?}")?;
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.inner
            .source
            .as_deref()
            .map(|source| source as &(dyn StdError + 'static))
    }
}
