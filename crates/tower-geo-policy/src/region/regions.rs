//! Which copies of a service there are, which one a request names, and how it is directed to
//! another (R1, R8, R10, I8).

use std::error::Error;
use std::fmt;

use http::uri::{Authority, PathAndQuery};
use http::{HeaderValue, Uri};

use super::endpoint::Endpoint;
use crate::config_error::ConfigError;
use crate::intent::Intent;
use crate::percent;

/// The number of a region within its [`Regions`], from 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct RegionId(u8);

impl RegionId {
    /// The first region. For Azure Storage that is the primary, which takes the writes.
    pub const FIRST: Self = Self(0);

    /// The region of that number. Whether there is one, [`Regions::get`] tells.
    #[must_use]
    pub const fn new(number: u8) -> Self {
        Self(number)
    }

    /// The number, for an index into a list with an entry for each region.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One copy of a service: a name for people, an endpoint, and whether it takes writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    name: Box<str>,
    endpoint: Endpoint,
    writable: bool,
}

impl Region {
    /// A copy that takes no writes; see [`writable`](Self::writable).
    #[must_use]
    pub fn new(name: impl Into<String>, endpoint: Endpoint) -> Self {
        Self {
            name: name.into().into_boxed_str(),
            endpoint,
            writable: false,
        }
    }

    /// Says whether this copy takes writes (default: it does not).
    #[must_use]
    pub const fn writable(mut self, writable: bool) -> Self {
        self.writable = writable;
        self
    }

    /// The name, as it appears in trails, events and pins.
    #[must_use]
    pub const fn name(&self) -> &str {
        &self.name
    }

    /// The endpoint.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Whether this copy takes writes.
    #[must_use]
    pub const fn is_writable(&self) -> bool {
        self.writable
    }
}

/// The copies of one service, in order: 1 to 16, at least one of which takes writes.
///
/// The module has an [example](super).
#[derive(Clone, Debug)]
pub struct Regions {
    regions: Box<[Region]>,
    writer: RegionId,
    path_style: bool,
}

/// So many that a set of regions fits into 16 bits.
const MAX_REGIONS: usize = 16;

impl Regions {
    /// The most regions that a service can have.
    pub const MAX: usize = MAX_REGIONS;

    /// Checks and takes the copies of a service.
    ///
    /// # Errors
    ///
    /// When there are none or more than [`MAX`](Self::MAX); when none takes writes; when a name is
    /// empty or used twice; when two have the same endpoint, since a request that is redirected to
    /// where it came from has not been redirected; when some are `http` and some are `https`,
    /// since falling over would take a request off TLS (R8); when some have the account in the
    /// path and some do not, since then the path of a request could not be translated.
    pub fn new(regions: Vec<Region>) -> Result<Self, ConfigError> {
        if regions.len() > MAX_REGIONS {
            return Err(ConfigError::new(
                "regions",
                format!("must be at most {MAX_REGIONS} (got {})", regions.len()),
            ));
        }
        let Some(first) = regions.first() else {
            return Err(ConfigError::new("regions", "must be at least one"));
        };
        let path_style = first.endpoint.account_segment().is_some();
        let Some(writer) = regions.iter().position(Region::is_writable).map(id) else {
            return Err(ConfigError::new(
                "regions",
                "must have one that takes writes",
            ));
        };
        for (index, region) in regions.iter().enumerate() {
            if region.name.is_empty() {
                return Err(ConfigError::new(
                    "regions",
                    format!("must have names (number {index} has none)"),
                ));
            }
            for other in &regions[..index] {
                check_pair(other, region)?;
            }
        }
        Ok(Self {
            regions: regions.into_boxed_slice(),
            writer,
            path_style,
        })
    }

    /// How many regions there are: 1 to [`MAX`](Self::MAX).
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "there is always one")]
    pub const fn len(&self) -> usize {
        self.regions.len()
    }

    /// The region of that number.
    #[must_use]
    pub fn get(&self, region: RegionId) -> Option<&Region> {
        self.regions.get(region.index())
    }

    /// The regions and their numbers, in order.
    pub fn iter(&self) -> impl Iterator<Item = (RegionId, &Region)> {
        self.regions
            .iter()
            .enumerate()
            .map(|(index, region)| (id(index), region))
    }

    /// The first region that takes writes.
    #[must_use]
    pub const fn writer(&self) -> RegionId {
        self.writer
    }

    /// The regions beside the [`writer`](Self::writer), in order: the copies that reads may go to.
    pub fn copies(&self) -> impl Iterator<Item = RegionId> {
        let writer = self.writer();
        self.iter()
            .map(|(id, _)| id)
            .filter(move |&id| id != writer)
    }

    /// Whether the endpoints have the account in the path.
    #[must_use]
    pub const fn is_path_style(&self) -> bool {
        self.path_style
    }

    /// The region of that name.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<RegionId> {
        self.regions
            .iter()
            .position(|region| &*region.name == name)
            .map(id)
    }

    /// The region that a request names, by the authority of its URI and, where the account is in
    /// the path, by its first segment.
    ///
    /// None for a request to another service, which is to pass untouched (I8), and for a URI
    /// without an authority. The scheme is not compared: the same host is the same service.
    #[inline]
    #[must_use]
    pub fn region_of(&self, uri: &Uri) -> Option<RegionId> {
        let authority = uri.authority()?.as_str();
        // Clients repeat the endpoint as they were given it, so comparing bytes nearly always does.
        let exactly = self
            .regions
            .iter()
            .position(|region| region.endpoint.authority() == authority);
        match exactly {
            Some(index) if !self.path_style => Some(id(index)),
            _ => self.region_of_path_or_other_spelling(uri),
        }
    }

    #[inline(never)]
    fn region_of_path_or_other_spelling(&self, uri: &Uri) -> Option<RegionId> {
        let authority = uri.authority()?;
        let segment = if self.path_style {
            first_segment(uri.path())
        } else {
            ""
        };
        let exactly = self.regions.iter().position(|region| {
            let endpoint = &region.endpoint;
            endpoint.authority() == authority.as_str()
                && endpoint.account_segment().unwrap_or("") == segment
        });
        exactly
            .map(id)
            .or_else(|| self.region_of_other_spelling(uri, authority, segment))
    }

    #[cold]
    fn region_of_other_spelling(
        &self,
        uri: &Uri,
        authority: &Authority,
        segment: &str,
    ) -> Option<RegionId> {
        self.regions
            .iter()
            .position(|region| {
                let endpoint = &region.endpoint;
                endpoint.is_named_by(authority.as_str(), uri.scheme())
                    && percent::decodes_to(segment, endpoint.account_segment().unwrap_or(""))
            })
            .map(id)
    }

    /// Permission to send a read to a region. None if there is no such region, or if the read is
    /// one that only a copy answers and the region is not one (I5).
    #[must_use]
    pub fn read_target(&self, proof: ReadProof, region: RegionId) -> Option<Destination> {
        let found = self.get(region)?;
        if proof.for_copy && found.writable {
            return None;
        }
        Some(Destination {
            region,
            takes_writes: false,
        })
    }

    /// Permission to send anything to a region that takes writes. None if it does not, or if there
    /// is no such region.
    #[must_use]
    pub fn write_target(&self, region: RegionId) -> Option<Destination> {
        self.get(region)
            .filter(|found| found.writable)
            .map(|_| Destination {
                region,
                takes_writes: true,
            })
    }

    /// The URI and the value of the `Host` header that send a request to `destination`.
    ///
    /// Scheme and authority become those of the endpoint, where the account is in the path its
    /// segment is swapped, and nothing else changes (R8). The host header has the port where it is
    /// not the scheme's own; it must replace the caller's, which would win otherwise.
    ///
    /// # Errors
    ///
    /// When the URI names none of these regions, or `destination` was made by other [`Regions`]
    /// and does not fit these.
    pub fn direct(
        &self,
        destination: Destination,
        uri: &Uri,
    ) -> Result<(Uri, HeaderValue), DirectError> {
        let region = self
            .get(destination.region)
            .ok_or(DirectError("the destination is of another service"))?;
        // A permission to write holds only where it was given; elsewhere the region of the same
        // number may be a copy (R1).
        if destination.takes_writes && !region.writable {
            return Err(DirectError("the destination is of another service"));
        }
        if self.region_of(uri).is_none() {
            return Err(DirectError("the request is for another service"));
        }
        let mut parts = uri.clone().into_parts();
        if let Some(account) = region.endpoint.account_segment() {
            let path = parts.path_and_query.as_ref().map_or("", |p| p.as_str());
            parts.path_and_query = Some(swap_segment(path, account)?);
        }
        parts.scheme = Some(region.endpoint.uri_scheme().clone());
        parts.authority = Some(region.endpoint.uri_authority().clone());
        let uri = Uri::from_parts(parts).map_err(|_| DirectError(NOT_ABSOLUTE))?;
        Ok((uri, region.endpoint.host_header().clone()))
    }
}

/// `Regions::new` lets no more than 16 in, so the number always fits.
#[inline]
fn id(index: usize) -> RegionId {
    RegionId(u8::try_from(index).unwrap_or(u8::MAX))
}

fn check_pair(one: &Region, other: &Region) -> Result<(), ConfigError> {
    let error = |message: String| Err(ConfigError::new("regions", message));
    if one.name == other.name {
        return error(format!("must have distinct names (`{}` twice)", one.name));
    }
    let names = format!("`{}` and `{}`", one.name, other.name);
    if one.endpoint.account_segment().is_some() != other.endpoint.account_segment().is_some() {
        return error(format!(
            "must have the account in the path of all endpoints or of none ({names} differ)"
        ));
    }
    if one.endpoint.authority() == other.endpoint.authority()
        && one.endpoint.account_segment() == other.endpoint.account_segment()
    {
        return error(format!(
            "must have distinct endpoints: redirecting to itself disables the feature ({names} \
             are both {})",
            one.endpoint
        ));
    }
    if one.endpoint.scheme() != other.endpoint.scheme() {
        return error(format!(
            "must all be https or all be http: falling over must not take a request off tls \
             ({names} differ)"
        ));
    }
    Ok(())
}

const NOT_ABSOLUTE: &str = "the request has no absolute http uri";

/// The first segment of a path, without slashes.
fn first_segment(path: &str) -> &str {
    let path = path.strip_prefix('/').unwrap_or(path);
    path.split('/').next().unwrap_or("")
}

/// Replaces the first segment of a path (with its query, if any) and keeps every other byte.
fn swap_segment(path: &str, segment: &str) -> Result<PathAndQuery, DirectError> {
    let after_slash = path.strip_prefix('/').unwrap_or(path);
    let end = after_slash.find(['/', '?']).unwrap_or(after_slash.len());
    let rest = after_slash.get(end..).unwrap_or("");
    let mut swapped = String::with_capacity(1 + segment.len() + rest.len());
    swapped.push('/');
    swapped.push_str(segment);
    swapped.push_str(rest);
    PathAndQuery::try_from(swapped).map_err(|_| DirectError(NOT_ABSOLUTE))
}

/// Proof that a request is a read that a copy may answer (R1).
///
/// There is no other way to one than through the [`Intent`] of a request.
#[derive(Clone, Copy, Debug)]
pub struct ReadProof {
    for_copy: bool,
}

impl ReadProof {
    /// The proof, if there is one: for [`Intent::READ`] and [`Intent::READ_AT_COPY`]. Other
    /// reads belong to the writer, where [`Regions::write_target`] leads.
    #[must_use]
    pub const fn of(intent: Intent) -> Option<Self> {
        if intent.is_redirectable() || intent.is_for_copy() {
            Some(Self {
                for_copy: intent.is_for_copy(),
            })
        } else {
            None
        }
    }
}

/// Where a send may go: a permission made by [`Regions::read_target`] or
/// [`Regions::write_target`], to be carried out by [`Regions::direct`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    region: RegionId,
    takes_writes: bool,
}

impl Destination {
    /// The region.
    #[must_use]
    pub const fn region(self) -> RegionId {
        self.region
    }
}

/// Why [`Regions::direct`] could not direct a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectError(&'static str);

impl fmt::Display for DirectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Error for DirectError {}
