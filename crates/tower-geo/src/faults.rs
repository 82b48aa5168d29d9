//! What a transport's error means: was the request surely not processed?

use std::error::Error as StdError;
use std::fmt;
use std::io;

use tower_geo_policy::fault::Fault;

use crate::not_sent::NotSent;

/// Tells what the error of a client means.
///
/// The default, [`StandardFaults`], knows `std::io::Error` and, with the feature `hyper-util`,
/// the errors of `hyper_util`'s client. Implement this for a client with errors of its own. When
/// in doubt say [`Fault::Reset`]: a write is then not sent again unless it is harmless.
pub trait ClassifyFault: fmt::Debug + Send + Sync {
    /// What went wrong.
    fn classify(&self, error: &(dyn StdError + 'static)) -> Fault;

    /// Whether it is the program's own fault, found before anything was sent: a request that
    /// cannot be signed, a scheme that the client does not speak. It says nothing about the
    /// region and would not go better the next time, so the operation ends with
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) and nothing is counted.
    ///
    /// By default, the errors that are recognised are these, anywhere in the chain:
    /// [`NotSent`]; with the features `shared-key` and `cosmos-key`, that of a request that could
    /// not be signed; with the feature `hyper-util`, that of a request which `hyper_util`'s client
    /// refuses to take, or of a URL which its connector does not (*scheme is not http*: the client
    /// has no TLS).
    ///
    /// That the body of the request failed while it was sent is known by hyper's error, whatever is
    /// said here: it counts for no region either, and is not sent again.
    fn was_not_sent(&self, error: &(dyn StdError + 'static)) -> bool {
        own_fault(error).is_some()
    }
}

/// The error in a chain that says that nothing was sent, and why.
pub(crate) fn own_fault<'a>(
    error: &'a (dyn StdError + 'static),
) -> Option<&'a (dyn StdError + 'static)> {
    #[cfg(feature = "hyper-util")]
    if let Some(own) = hyper_util_own_fault(error) {
        return Some(own);
    }
    chain(error).find(|cause| {
        #[cfg(any(feature = "cosmos-key", feature = "shared-key"))]
        if cause.is::<crate::signing::SigningError>() {
            return true;
        }
        cause.is::<NotSent>()
    })
}

/// Whether the body of the request failed while it was sent: its source broke off, or the caller of
/// a proxy has left. Hyper keeps the kind private, but names it, under whatever client.
pub(crate) fn request_body_failed(error: &(dyn StdError + 'static)) -> bool {
    chain(error).any(|cause| {
        let text = cause.to_string();
        // Over HTTP/2 the stream is reset from this side, and that is all that is told.
        text == "error from user's Body stream" || text.starts_with("stream error sent by user: ")
    })
}

/// The faults that can be told from the standard library's errors, and hyper-util's.
///
/// | in the error's chain | fault |
/// |---|---|
/// | an injected fault (feature `fault`) | the one that it stands for |
/// | `hyper_util` client error that says *connect* (feature `hyper-util`) | connect, or TLS or DNS if the chain says so; a resolver that only says to try again is no DNS, since the name may exist |
/// | `io::Error` of kind connection refused, host or network unreachable, address not available | connect |
/// | `io::Error` of kind timed out | time-out |
/// | anything else | reset: it may have been processed |
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct StandardFaults;

impl ClassifyFault for StandardFaults {
    fn classify(&self, error: &(dyn StdError + 'static)) -> Fault {
        #[cfg(feature = "fault")]
        if let Some(injected) =
            chain(error).find_map(|cause| cause.downcast_ref::<crate::fault::InjectedFault>())
        {
            return injected.fault();
        }
        #[cfg(feature = "hyper-util")]
        if let Some(fault) = hyper_util_fault(error) {
            return fault;
        }
        chain(error)
            .filter_map(|cause| cause.downcast_ref::<io::Error>())
            .find_map(io_fault)
            .unwrap_or(Fault::Reset)
    }
}

/// An error and what caused it, and so on.
fn chain<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    // An `io::Error` that wraps another error gives that error's own source as its source, so the
    // wrapped error has to be asked for.
    std::iter::successors(Some(error), |&cause| {
        cause
            .downcast_ref::<io::Error>()
            .and_then(|wrapper| wrapper.get_ref())
            .map(|inner| inner as &(dyn StdError + 'static))
            .or_else(|| cause.source())
    })
}

fn io_fault(error: &io::Error) -> Option<Fault> {
    match error.kind() {
        io::ErrorKind::ConnectionRefused
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::AddrNotAvailable => Some(Fault::Connect),
        io::ErrorKind::TimedOut => Some(Fault::TimedOut),
        _ => None,
    }
}

/// What hyper-util's client does not even try. It keeps the kinds private, but names them.
#[cfg(feature = "hyper-util")]
fn hyper_util_own_fault<'a>(
    error: &'a (dyn StdError + 'static),
) -> Option<&'a (dyn StdError + 'static)> {
    let client = chain(error).find(|cause| cause.is::<hyper_util::client::legacy::Error>())?;
    if client.to_string().starts_with("client error (User") {
        return Some(client);
    }
    chain(client).skip(1).find(|cause| {
        let text = cause.to_string();
        // Of its own connector, and of that of hyper-rustls.
        text.starts_with("invalid URL, ") || text.starts_with("unsupported scheme ")
    })
}

#[cfg(feature = "hyper-util")]
fn hyper_util_fault(error: &(dyn StdError + 'static)) -> Option<Fault> {
    let client =
        chain(error).find_map(|cause| cause.downcast_ref::<hyper_util::client::legacy::Error>())?;
    if !client.is_connect() {
        return None;
    }
    // hyper-util keeps the error of its resolver private, but names it.
    let named_dns = chain(client).any(|cause| cause.to_string().starts_with("dns error"));
    let has_asked = !chain(client).any(is_try_again);
    let io_data = chain(client)
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::InvalidData);
    Some(match (named_dns && has_asked, io_data) {
        (true, _) => Fault::Dns,
        // rustls and native-tls both report a failed handshake as invalid data.
        (false, true) => Fault::Tls,
        (false, false) => Fault::Connect,
    })
}

/// What resolvers say that could not be asked themselves: glibc, musl, Windows. The standard library
/// has no kind for it.
#[cfg(feature = "hyper-util")]
fn is_try_again(cause: &(dyn StdError + 'static)) -> bool {
    let text = cause.to_string();
    [
        "Temporary failure in name resolution",
        "Try again",
        "temporary error during hostname resolution",
    ]
    .iter()
    .any(|saying| text.contains(saying))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R6: only a name that does not exist is one that does not exist; a resolver that does not answer
    /// says nothing about a region.
    #[cfg(feature = "hyper-util")]
    #[tokio::test]
    async fn a_resolver_that_does_not_answer_knows_no_name() {
        use hyper_util::client::legacy::Client;
        use hyper_util::rt::{TokioExecutor, TokioIo};
        use tower::ServiceExt;

        #[derive(Clone, Copy, Debug)]
        struct DnsError(&'static str);
        impl fmt::Display for DnsError {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(
                    f,
                    "dns error: failed to lookup address information: {}",
                    self.0
                )
            }
        }
        impl StdError for DnsError {}

        for (said, fault) in [
            ("Name or service not known", Fault::Dns),
            ("No address associated with hostname", Fault::Dns),
            ("Temporary failure in name resolution", Fault::Connect),
            ("Try again", Fault::Connect),
        ] {
            let connector = tower::service_fn(move |_: http::Uri| {
                std::future::ready(Err::<TokioIo<tokio::net::TcpStream>, _>(DnsError(said)))
            });
            let client = Client::builder(TokioExecutor::new()).build(connector);
            let request = http::Request::get("http://contoso.test/")
                .body(http_body_util::Empty::<bytes::Bytes>::new())
                .unwrap();
            let error = client.oneshot(request).await.unwrap_err();
            assert_eq!(StandardFaults.classify(&error), fault, "{said}");
        }
    }

    #[derive(Debug)]
    struct Wrapper(io::Error);

    impl fmt::Display for Wrapper {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("client error")
        }
    }

    impl StdError for Wrapper {
        fn source(&self) -> Option<&(dyn StdError + 'static)> {
            Some(&self.0)
        }
    }

    /// Verdict table: only what surely did not leave is *unreachable*.
    #[test]
    fn only_errors_of_connecting_are_surely_not_processed() {
        let cases = [
            (io::ErrorKind::ConnectionRefused, Fault::Connect),
            (io::ErrorKind::NetworkUnreachable, Fault::Connect),
            (io::ErrorKind::ConnectionReset, Fault::Reset),
            (io::ErrorKind::UnexpectedEof, Fault::Reset),
            (io::ErrorKind::BrokenPipe, Fault::Reset),
            (io::ErrorKind::TimedOut, Fault::TimedOut),
        ];
        for (kind, fault) in cases {
            assert_eq!(
                StandardFaults.classify(&Wrapper(kind.into())),
                fault,
                "{kind:?}"
            );
        }
    }

    /// T6: what hyper says of a body of a request that failed, over HTTP/1.1 and HTTP/2; a reset that
    /// came from the server is another matter.
    #[test]
    fn failed_request_body_is_told_from_a_reset() {
        for (said, is_own) in [
            ("error from user's Body stream", true),
            (
                "stream error sent by user: unexpected internal error detected",
                true,
            ),
            (
                "stream error received: unexpected internal error detected",
                false,
            ),
            ("connection reset by peer", false),
        ] {
            let error = Wrapper(io::Error::other(said));
            assert_eq!(request_body_failed(&error), is_own, "{said}");
        }
    }

    #[test]
    fn the_cause_is_found_inside_a_wrapping_io_error() {
        let inner = Wrapper(io::ErrorKind::ConnectionRefused.into());
        let outer = Wrapper(io::Error::other(inner));
        assert_eq!(StandardFaults.classify(&outer), Fault::Connect);
    }
}
