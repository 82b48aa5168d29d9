//! Why a send ended without a whole answer.

use std::fmt;

use crate::verdict::Verdict;

/// What went wrong on the way, told by whoever knows the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// No connection could be made. Surely not processed.
    Connect,
    /// The host name does not exist. Surely not processed. (That nobody could say is [`Connect`](Self::Connect):
    /// a copy whose name does not exist is set aside.)
    Dns,
    /// TLS could not be agreed on, or the certificate is wrong. Surely not processed.
    Tls,
    /// HTTP/2 refused the stream, or it is above the last one that a GOAWAY admits. Surely not
    /// processed.
    RefusedStream,
    /// The connection ended after the request had left. It may have been processed.
    Reset,
    /// There was no answer in time. It may have been processed.
    TimedOut,
    /// The body of an answer broke off.
    BodyCut,
    /// The body of an answer gave nothing for too long.
    BodyStalled,
}

impl Fault {
    /// What this fault means by the verdict table.
    #[must_use]
    pub const fn verdict(self) -> Verdict {
        match self {
            Self::Connect | Self::Dns | Self::Tls | Self::RefusedStream => Verdict::Unreachable,
            Self::Reset | Self::TimedOut | Self::BodyCut | Self::BodyStalled => Verdict::Ambiguous,
        }
    }

    /// The word for it in trails and drills.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Dns => "dns",
            Self::Tls => "tls",
            Self::RefusedStream => "refused-stream",
            Self::Reset => "reset",
            Self::TimedOut => "timeout",
            Self::BodyCut => "cut",
            Self::BodyStalled => "stall",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
