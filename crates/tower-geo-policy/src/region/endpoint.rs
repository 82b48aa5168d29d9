//! What an endpoint is, and when two are the same.

use std::error::Error;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use http::HeaderValue;
use http::uri::{Authority, Scheme};

use crate::config_error::ConfigError;

/// The normalised base URL of one copy of a service.
///
/// Normalised: scheme and host in lower case, no trailing dot, no port that is the scheme's own,
/// IPv6 addresses in their short form, no trailing slash. So two endpoints that mean the same are
/// equal.
///
/// An endpoint is *path style* when its URL has a path of one segment, which then names the
/// account: `http://127.0.0.1:10000/devstoreaccount1`.
///
/// ```
/// use tower_geo_policy::region::Endpoint;
///
/// let endpoint = Endpoint::parse("HTTPS://Contoso.Blob.Core.Windows.NET.:443/")?;
/// assert_eq!(endpoint.to_string(), "https://contoso.blob.core.windows.net");
///
/// let azurite = Endpoint::parse("http://127.0.0.1:10000/devstoreaccount1")?;
/// assert_eq!(azurite.authority(), "127.0.0.1:10000");
/// assert_eq!(azurite.account_segment(), Some("devstoreaccount1"));
/// # Ok::<(), tower_geo_policy::region::EndpointError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    scheme: Scheme,
    authority: Authority,
    /// The authority once more, as the value of a `Host` header: made once, cloned without a copy.
    host_header: HeaderValue,
    segment: Option<Box<str>>,
}

/// The longest host name that DNS can carry.
const MAX_HOST: usize = 253;
/// The longest label of a host name that DNS can carry.
const MAX_LABEL: usize = 63;

impl Endpoint {
    /// Reads and normalises a base URL.
    ///
    /// # Errors
    ///
    /// When it is no absolute `http` or `https` URL, when its host or port cannot exist, when it
    /// has user info, a query or a fragment, or a path of more than one segment. The message says
    /// which, and never repeats the URL, since that may carry a signature.
    pub fn parse(url: &str) -> Result<Self, EndpointError> {
        let (scheme, rest) = url
            .split_once("://")
            .ok_or(EndpointError("must begin with http:// or https://"))?;
        let scheme = if scheme.eq_ignore_ascii_case("https") {
            Scheme::HTTPS
        } else if scheme.eq_ignore_ascii_case("http") {
            Scheme::HTTP
        } else {
            return Err(EndpointError("must begin with http:// or https://"));
        };
        if rest.contains('#') {
            return Err(EndpointError("must not have a fragment"));
        }
        if rest.contains('?') {
            return Err(EndpointError(
                "must not have a query: give a shared access signature to the client instead",
            ));
        }
        let (authority, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, ""),
        };
        if authority.contains('@') {
            return Err(EndpointError("must not have user info"));
        }
        let (host, port) = split_port(authority);
        let host = normalise_host(host)?;
        let authority = match read_port(port, Some(&scheme)) {
            Some(Port::OfScheme) => host,
            Some(Port::Own(port)) => format!("{host}:{port}"),
            None => return Err(EndpointError("has a port that is not in 1 to 65535")),
        };
        let host_header =
            HeaderValue::try_from(authority.as_str()).map_err(|_| EndpointError(BAD_HOST))?;
        let authority = Authority::try_from(authority).map_err(|_| EndpointError(BAD_HOST))?;
        Ok(Self {
            scheme,
            authority,
            host_header,
            segment: read_segment(path)?,
        })
    }

    /// The scheme, `http` or `https`.
    #[must_use]
    pub fn scheme(&self) -> &str {
        self.scheme.as_str()
    }

    /// Host and, where it is not the scheme's own, port: what a `Host` header says.
    #[must_use]
    pub fn authority(&self) -> &str {
        self.authority.as_str()
    }

    /// The host without a port; IPv6 addresses keep their brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        split_port(self.authority()).0
    }

    /// The port, if it is not the scheme's own.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.authority.port_u16()
    }

    /// The account in the path, if the endpoint is path style.
    #[must_use]
    pub fn account_segment(&self) -> Option<&str> {
        self.segment.as_deref()
    }

    /// The same endpoint with another host.
    pub(crate) fn with_host(&self, host: &str) -> Result<Self, EndpointError> {
        let scheme = self.scheme();
        let mut url = match self.port() {
            Some(port) => format!("{scheme}://{host}:{port}"),
            None => format!("{scheme}://{host}"),
        };
        if let Some(segment) = self.account_segment() {
            url.push('/');
            url.push_str(segment);
        }
        Self::parse(&url)
    }

    /// The same endpoint with another account in the path.
    pub(crate) fn with_account_segment(&self, account: &str) -> Result<Self, EndpointError> {
        Self::parse(&format!(
            "{}://{}/{account}",
            self.scheme(),
            self.authority()
        ))
    }

    /// Whether the host is an IP address.
    pub(crate) fn is_ip_address(&self) -> bool {
        let host = self.host();
        host.starts_with('[') || host.parse::<Ipv4Addr>().is_ok()
    }

    pub(super) const fn uri_scheme(&self) -> &Scheme {
        &self.scheme
    }

    pub(super) const fn uri_authority(&self) -> &Authority {
        &self.authority
    }

    pub(super) const fn host_header(&self) -> &HeaderValue {
        &self.host_header
    }

    /// Whether an authority that is not the same text names this endpoint all the same: case, a
    /// trailing dot, user info, and a port that is the scheme's own do not matter. `scheme` is the
    /// scheme of the request, if it has one.
    pub(super) fn is_named_by(&self, authority: &str, scheme: Option<&Scheme>) -> bool {
        let authority = authority.rsplit('@').next().unwrap_or(authority);
        let (host, port) = split_port(authority);
        let port = match read_port(port, Some(scheme.unwrap_or(&self.scheme))) {
            Some(Port::OfScheme) => None,
            Some(Port::Own(port)) => Some(port),
            None => return false,
        };
        port == self.port() && is_same_host(host, self.host())
    }
}

impl fmt::Display for Endpoint {
    /// The URL, without a trailing slash.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.authority)?;
        match &self.segment {
            Some(segment) => write!(f, "/{segment}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({self})")
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(url: &str) -> Result<Self, EndpointError> {
        Self::parse(url)
    }
}

const BAD_HOST: &str =
    "has no host that can exist (letters, digits, hyphens and dots, or an IP address)";

enum Port {
    OfScheme,
    Own(u16),
}

/// Splits `host:port`; the port is empty if there is none. Brackets of IPv6 addresses stay.
fn split_port(authority: &str) -> (&str, &str) {
    let after_brackets = authority.rfind(']').map_or(0, |bracket| bracket + 1);
    match authority.get(after_brackets..).unwrap_or("").rfind(':') {
        Some(colon) => {
            let (host, port) = authority.split_at(after_brackets + colon);
            (host, port.get(1..).unwrap_or(""))
        }
        None => (authority, ""),
    }
}

/// None: no port that can exist.
fn read_port(text: &str, scheme: Option<&Scheme>) -> Option<Port> {
    if text.is_empty() {
        return Some(Port::OfScheme);
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let own = scheme.and_then(|scheme| match scheme.as_str() {
        "https" => Some(443),
        "http" => Some(80),
        _ => None,
    });
    match text.parse::<u16>() {
        Ok(0) | Err(_) => None,
        Ok(port) if Some(port) == own => Some(Port::OfScheme),
        Ok(port) => Some(Port::Own(port)),
    }
}

fn ipv6(host: &str) -> Option<Ipv6Addr> {
    host.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}

fn normalise_host(host: &str) -> Result<String, EndpointError> {
    if host.is_empty() {
        return Err(EndpointError("has no host"));
    }
    if host.starts_with('[') {
        return ipv6(host)
            .map(|address| format!("[{address}]"))
            .ok_or(EndpointError(BAD_HOST));
    }
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let can_exist = host.len() <= MAX_HOST
        && host.split('.').all(|label| {
            (1..=MAX_LABEL).contains(&label.len())
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        });
    if can_exist {
        Ok(host)
    } else {
        Err(EndpointError(BAD_HOST))
    }
}

fn is_same_host(given: &str, normalised: &str) -> bool {
    if given.starts_with('[') {
        return match (ipv6(given), ipv6(normalised)) {
            (Some(given), Some(own)) => given == own,
            _ => false,
        };
    }
    given
        .strip_suffix('.')
        .unwrap_or(given)
        .eq_ignore_ascii_case(normalised)
}

fn read_segment(path: &str) -> Result<Option<Box<str>>, EndpointError> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let segment = path.strip_suffix('/').unwrap_or(path);
    if path.is_empty() {
        return Ok(None);
    }
    // Only what never needs encoding, so that there is one way to write a segment.
    let is_account = !matches!(segment, "" | "." | "..")
        && segment
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~'));
    if is_account {
        Ok(Some(segment.into()))
    } else {
        Err(EndpointError(
            "has a path that is not one account name: give the service's own url, without a \
             container or a file",
        ))
    }
}

/// Why a text is no [`Endpoint`]. The message does not repeat the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointError(&'static str);

impl EndpointError {
    /// The same reason, as an error of a named setting.
    #[must_use]
    pub fn of_setting(self, setting: &'static str) -> ConfigError {
        ConfigError::new(setting, self.0)
    }

    pub(crate) const fn reason(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the endpoint {}", self.0)
    }
}

impl Error for EndpointError {}

impl From<EndpointError> for ConfigError {
    fn from(error: EndpointError) -> Self {
        error.of_setting("endpoint")
    }
}
