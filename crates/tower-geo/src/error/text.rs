//! What an error says to people.

use std::error::Error as _;
use std::fmt;
use std::time::Duration;

use tower_geo_policy::trail::Ending;

use super::{Detail, Error, ErrorKind, RequestLine};
use crate::redact::Words;

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
            ErrorKind::Transport if inner.of_body && inner.timed_out => {
                "the body of an answer stalled"
            }
            ErrorKind::Transport if inner.of_body => "the body of an answer broke off",
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
            Some(Detail::ReadOnly { why, since }) => write!(f, ", {why} for {}", Span(*since))?,
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
            write!(f, ", try again in {}", Span(after))?;
        }
        Ok(())
    }
}

/// A time for people: nobody is told of nanoseconds.
struct Span(Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < Duration::from_millis(1) {
            return f.write_str("less than 1ms");
        }
        write!(f, "{:.1?}", self.0)
    }
}
