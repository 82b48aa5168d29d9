use std::error::Error;
use std::fmt;
use std::io;

use tower_geo_policy::fault::Fault;

use crate::error::BoxError;

/// A fault that was made, not met.
///
/// [`StandardFaults`](crate::StandardFaults) takes it for the fault that it stands for. Its source
/// is the [`io::Error`] that a client would report: connection refused, name not found, invalid
/// data (TLS), connection reset, unexpected end of file (a body that breaks off). So whoever looks
/// at errors in another way finds what there would be.
pub struct InjectedFault {
    fault: Fault,
    source: BoxError,
}

impl InjectedFault {
    pub(super) fn new(fault: Fault) -> Self {
        let kind = match fault {
            Fault::Connect => io::ErrorKind::ConnectionRefused,
            Fault::Dns => io::ErrorKind::NotFound,
            Fault::Tls => io::ErrorKind::InvalidData,
            Fault::BodyCut => io::ErrorKind::UnexpectedEof,
            _ => io::ErrorKind::ConnectionReset,
        };
        Self {
            fault,
            source: Box::new(io::Error::from(kind)),
        }
    }

    /// The request's own body broke off, which ends the connection.
    pub(super) fn broken_upload(source: BoxError) -> Self {
        Self {
            fault: Fault::Reset,
            source,
        }
    }

    /// What it stands for.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        self.fault
    }
}

impl fmt::Debug for InjectedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InjectedFault").field(&self.fault).finish()
    }
}

impl fmt::Display for InjectedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fault by a rule: {}", self.fault)
    }
}

impl Error for InjectedFault {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}
