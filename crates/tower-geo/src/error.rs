//! The one error of the stack: what kind, what was tried, what to do.

mod text;

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use http::{Method, StatusCode};
use tower_geo_policy::fault::Fault;
use tower_geo_policy::gate::ReadOnlyWhy;
use tower_geo_policy::operation::{Failure, Misfit};
use tower_geo_policy::region::{Region, RegionId};
use tower_geo_policy::tick::Tick;
use tower_geo_policy::trail::{Ending, Trail};
use tower_geo_policy::verdict::Verdict;

#[cfg(feature = "cosmos")]
use crate::cosmos::Unread;
use crate::faults::{ClassifyFault, StandardFaults, own_fault, request_body_failed};
use crate::known::Known;
use crate::redact::redact;
use crate::runtime::State;

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
    known: Known,
    request: Option<RequestLine>,
    trail: Trail,
    detail: Option<Detail>,
    timed_out: bool,
    /// Whether it happened after the head of an answer.
    of_body: bool,
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
                known: Known::default(),
                request: None,
                trail: Trail::default(),
                detail: None,
                timed_out: false,
                of_body: false,
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

    /// The end of an operation that never knew the regions of its account (C3).
    #[cfg(feature = "cosmos")]
    pub(crate) fn without_account(mut self, why: Option<Unread>) -> Self {
        if self.inner.kind == ErrorKind::Transport {
            let text = "the account could not be read, so its regions are not known";
            self.inner.detail = Some(Detail::Text(text.to_owned()));
            self.inner.source = why.map(|why| Box::new(why) as BoxError);
        }
        self
    }

    /// A request that asks for what its service is not configured for.
    pub(crate) fn misfit(state: &State, misfit: Misfit) -> Self {
        let mut error = Self::config(state, misfit_message(state, misfit));
        if let Misfit::AccountRefused(status) = misfit {
            error.inner.source = Some(Box::new(AccountAnswered(status)));
        }
        error
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
        Self::judged(error, &StandardFaults::default())
    }

    /// The same for whoever knows the service whose client reported it.
    pub(crate) fn of_client(state: &State, error: BoxError) -> Self {
        let mut error = Self::judged(error, &*state.extra().faults);
        if error.inner.state.is_none() {
            error.inner.state = Some(state.clone());
        }
        error
    }

    fn judged(error: BoxError, classify: &dyn ClassifyFault) -> Self {
        let theirs = match error.downcast::<Self>() {
            Ok(ours) => return *ours,
            Err(theirs) => theirs,
        };
        let mut error;
        if classify.was_not_sent(&*theirs) {
            error = Self::of_kind(ErrorKind::Config);
            error.inner.never_sent = true;
            error.inner.detail = Some(Detail::Text(not_sent_message(&*theirs)));
        } else {
            error = Self::of_kind(ErrorKind::Transport);
            // What made the body fail may itself be a connection, of somebody else's.
            error.inner.never_sent = !request_body_failed(&*theirs)
                && classify.classify(&*theirs).verdict() == Verdict::Unreachable;
        }
        error.inner.source = Some(theirs);
        error
    }

    /// Which operation it is that ends with this.
    pub(crate) fn in_operation(mut self, request: Option<RequestLine>) -> Self {
        self.inner.request = self.inner.request.take().or(request);
        self
    }

    /// A send that was given up because it had not answered in time.
    pub(crate) fn timed_out(state: &State, message: &'static str) -> Self {
        let mut error = Self::of_kind(ErrorKind::Transport);
        error.inner.state = Some(state.clone());
        error.inner.timed_out = true;
        error.inner.detail = Some(Detail::Text(message.to_owned()));
        error
    }

    /// The body of an answer that broke off. The service is known while its send is watched.
    pub(crate) fn body_cut(state: Option<&State>, error: BoxError) -> Self {
        match error.downcast::<Self>() {
            Ok(ours) => *ours,
            Err(theirs) => {
                let mut error = Self::of_kind(ErrorKind::Transport);
                error.inner.state = state.cloned();
                error.inner.of_body = true;
                error.inner.source = Some(theirs);
                error
            }
        }
    }

    /// The body of an answer that gave nothing for too long.
    pub(crate) fn body_stalled(state: &State) -> Self {
        let mut error = Self::timed_out(state, "it gave nothing for too long");
        error.inner.of_body = true;
        error
    }

    /// A body that is not what its head has promised.
    pub(crate) fn body(message: &'static str) -> Self {
        let mut error = Self::of_kind(ErrorKind::Transport);
        error.inner.of_body = true;
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
        error.inner.of_body = true;
        error.inner.timed_out = source.as_ref().is_some_and(Self::is_timeout);
        error.inner.detail = Some(Detail::Text(message));
        error.inner.source = source.map(|source| Box::new(source) as BoxError);
        error
    }

    /// The end of an operation without an answer.
    pub(crate) fn of_operation(
        state: &State,
        known: Known,
        failure: Failure,
        request: Option<RequestLine>,
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
            Failure::Config(misfit) => return Self::misfit(state, misfit).in_operation(request),
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
        error.inner.known = known;
        error.inner.request = request;
        error.inner.trail = trail;
        error.inner.source = source;
        error
    }

    /// F3: the copy is too old, or F5: it may lack what was written. What became of the writer is
    /// the source.
    fn stale(
        state: &State,
        until: Option<Tick>,
        request: Option<RequestLine>,
        trail: Trail,
        source: Option<BoxError>,
        now: Tick,
    ) -> Self {
        let writer = state.regions().writer();
        let last = trail.sends().iter().rfind(|send| send.region == writer);
        let source = source.or_else(|| match last.map(|send| send.ending) {
            Some(Ending::Answer(status)) => Some(Box::new(WriterAnswered {
                region: state
                    .regions()
                    .get(writer)
                    .map_or("unknown", Region::name)
                    .to_owned(),
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
        error.inner.request = request;
        error.inner.trail = trail;
        error.inner.source = source;
        error
    }

    /// What a service below reported, as a fault of the transport; `None` when a layer of ours
    /// refused the request, or the client could not try, so that nothing has left, or the caller's
    /// body failed.
    pub(crate) fn fault(&self, classify: &dyn ClassifyFault) -> Option<Fault> {
        match (self.inner.kind, &self.inner.source) {
            _ if self.inner.timed_out => Some(Fault::TimedOut),
            (ErrorKind::Transport, Some(source))
                if !classify.was_not_sent(&**source) && !request_body_failed(&**source) =>
            {
                Some(classify.classify(&**source))
            }
            (ErrorKind::Transport, Some(_)) => None,
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

    /// Whether the body of the request failed while it was sent. What was sent of it may have been
    /// processed all the same.
    pub(crate) fn is_of_request_body(&self) -> bool {
        let source = self.inner.source.as_deref();
        self.inner.kind == ErrorKind::Transport
            && source.is_some_and(|source| request_body_failed(source))
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

    /// Whether surely nothing of this operation was processed: refused by us, impossible to send,
    /// or no connection was made.
    ///
    /// Below a layer that passes a request through untouched, this is known of the errors that
    /// [`StandardFaults`] knows.
    #[must_use]
    pub fn was_never_sent(&self) -> bool {
        self.inner.never_sent
    }

    /// Whether the last send was given up because its time was over.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.inner.timed_out || self.inner.kind == ErrorKind::Deadline
    }

    /// Why the service takes no writes, if that is why this one was refused (G2).
    #[must_use]
    pub fn read_only_why(&self) -> Option<ReadOnlyWhy> {
        match self.inner.detail {
            Some(Detail::ReadOnly { why, .. }) => Some(why),
            _ => None,
        }
    }

    /// For how long the service had been read-only when it refused this write (G2).
    #[must_use]
    pub fn since(&self) -> Option<Duration> {
        match self.inner.detail {
            Some(Detail::ReadOnly { since, .. }) => Some(since),
            _ => None,
        }
    }

    /// How long to wait before another try can succeed, where that is known.
    ///
    /// It is not known while an operator keeps the service shut, nor while as many trials are
    /// under way as are let in at once: they decide, each within the breaker's `probe_deadline`.
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
            .map_or("unknown", |state| self.inner.known.name(state, region))
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

/// What the account said to whoever wanted to read it, as the source of a *config* error.
#[derive(Debug)]
struct AccountAnswered(StatusCode);

impl fmt::Display for AccountAnswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the account answered {}", self.0.as_u16())
    }
}

impl StdError for AccountAnswered {}

/// What a program did that could not be sent.
fn not_sent_message(error: &(dyn StdError + 'static)) -> String {
    let Some(own) = own_fault(error) else {
        return "the client could not send it, see the source".to_owned();
    };
    let cause = redact(&own.source().unwrap_or(own).to_string());
    let advice = if cause.ends_with("scheme is not http") {
        "; an https endpoint needs a client that speaks TLS"
    } else {
        ""
    };
    format!("the client could not send it: {cause}{advice}")
}

/// Whether the service is an account of Cosmos DB.
#[cfg(feature = "cosmos")]
fn is_account(state: &State) -> bool {
    state.extra().cosmos.is_some()
}

#[cfg(not(feature = "cosmos"))]
const fn is_account(_: &State) -> bool {
    false
}

fn misfit_message(state: &State, misfit: Misfit) -> String {
    match misfit {
        Misfit::NoCopy => match &state.extra().no_copy {
            Some(reason) => format!("this request needs a secondary region: {reason}"),
            None => "this request needs a secondary region, and none is configured".to_owned(),
        },
        Misfit::WriteToCopy => {
            let host = if is_account(state) {
                "the account's own host"
            } else {
                "the primary's host"
            };
            format!(
                "a write is pinned to a region that takes no writes; remove the pin, or name {host}"
            )
        }
        Misfit::UnknownRegion => {
            let names = Known::now(state).names(state);
            format!(
                "the request is pinned to a region that this service does not have; it has {names}"
            )
        }
        Misfit::AllExcluded => "every region that the request may use is excluded".to_owned(),
        Misfit::AccountRefused(_) => "the account refused to be read, so its regions are not \
            known; check the signer of the client that was given to `spawn_account_reader`"
            .to_owned(),
        Misfit::AccountUnread => "the regions of the account are not known and nobody reads them; \
            start `spawn_account_reader`, or build the account with `discovery(false)`"
            .to_owned(),
        other => format!("{other:?}"),
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

#[cfg(test)]
mod tests;
