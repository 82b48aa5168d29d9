//! What is still to come of a body, and whether an answer is that.

use std::time::Duration;

use http::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ETAG, IF_MATCH, IF_MODIFIED_SINCE,
    IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body::Body;
use tower_geo_policy::budget;
use tower_geo_policy::events::Resend;
use tower_geo_policy::region::RegionId;
use tower_service::Service;

use super::future::Begun;
use crate::body::BodyPolicy;
use crate::runtime::{self, State};
use crate::served::Served;

/// The range header of Azure Storage, which outranks `Range`.
static X_MS_RANGE: HeaderName = HeaderName::from_static("x-ms-range");
/// A body with check sums in between, which begin anew with each answer.
static X_MS_STRUCTURED_BODY: HeaderName = HeaderName::from_static("x-ms-structured-body");

/// In the extensions of a request that fetches the rest of a body (R9).
///
/// ```
/// use tower_geo::resume::Resuming;
///
/// fn is_resume<B>(request: &http::Request<B>) -> bool {
///     Resuming::of(request.extensions()).is_some()
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resuming {
    /// Which resume of its body this is, from 1.
    pub nth: u32,
    /// The position in the object, in bytes, from which it asks for the rest.
    pub from: u64,
}

impl Resuming {
    /// Takes a look at the extensions of a request.
    #[must_use]
    pub fn of(extensions: &http::Extensions) -> Option<&Self> {
        extensions.get()
    }
}

/// The rest of a body, and all that is needed to fetch it.
pub(super) struct Rest<S, P, B> {
    pub(super) service: S,
    pub(super) state: State,
    policy: P,
    /// The request as it was, with the body to send again.
    request: Request<B>,
    etag: HeaderValue,
    /// The position in the object of the byte that comes next, and the one behind the last.
    next: u64,
    end: u64,
    /// The size of the object, where it was told.
    total: Option<u64>,
    /// Whether the end was chosen by the caller, not by the size of the object.
    is_part: bool,
    /// Whose body is being read.
    region: RegionId,
    /// All resumes, and those since the last byte.
    resumes: u32,
    fruitless: u32,
    /// The wait before the resume that comes next.
    waited: Duration,
    /// The region from whose budget the resume under way was paid.
    paid: Option<RegionId>,
    /// Whether the head of the resume under way was good and its body has not broken off.
    is_good: bool,
}

/// Why an answer is not the rest of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Misfit {
    /// The version that was begun is not there (any more).
    VersionChanged,
    /// It is no part of anything.
    Answered(StatusCode),
    /// A part, but not the wanted one.
    OtherPart,
}

impl<S, P, B> Rest<S, P, B> {
    /// What can be resumed of an answer; `None` if nothing can.
    pub(super) fn of<RB: Body>(
        begun: Begun<S, P, B>,
        response: &Response<RB>,
    ) -> Option<Box<Self>> {
        let headers = response.headers();
        if response.body().is_end_stream() || is_encoded(headers) {
            return None;
        }
        let etag = headers.get(ETAG).filter(|etag| is_strong(etag))?.clone();
        let length = known_length(response)?;
        let (next, end, total, is_part) = match response.status() {
            StatusCode::OK => (0, length, Some(length), false),
            StatusCode::PARTIAL_CONTENT => {
                let range = ContentRange::of(headers)?;
                if range.end - range.start != length {
                    return None;
                }
                (range.start, range.end, range.total, true)
            }
            _ => return None,
        };
        Some(Box::new(Self {
            service: begun.service,
            policy: begun.policy,
            request: begun.request,
            region: region_of(response, begun.home),
            state: begun.state,
            etag,
            next,
            end,
            total,
            is_part,
            resumes: 0,
            fruitless: 0,
            waited: Duration::ZERO,
            paid: None,
            is_good: false,
        }))
    }

    /// How many bytes are still to come.
    pub(super) const fn left(&self) -> u64 {
        self.end - self.next
    }

    pub(super) const fn resumes(&self) -> u32 {
        self.resumes
    }

    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    pub(super) const fn end(&self) -> u64 {
        self.end
    }

    /// The name of the region whose body is being read.
    pub(super) fn region_name(&self) -> &str {
        let region = self.state.regions().get(self.region);
        region.map_or("unknown", tower_geo_policy::region::Region::name)
    }

    /// Bytes have come; false if they are more than there can be.
    pub(super) const fn took(&mut self, bytes: u64) -> bool {
        if bytes > self.left() {
            return false;
        }
        if bytes > 0 {
            self.next += bytes;
            self.fruitless = 0;
        }
        true
    }

    /// The body that was being read broke off.
    pub(super) const fn broke(&mut self) {
        self.is_good = false;
    }

    /// The body has come to its end, or nobody wants the rest: a success, which gives back what it
    /// took (T4, V4).
    pub(super) fn settle(&mut self) {
        if !std::mem::take(&mut self.is_good) {
            return;
        }
        let budgets = &self.state.extra().budgets;
        if let Some(bucket) = self
            .paid
            .take()
            .and_then(|region| budgets.get(region.index()))
        {
            bucket.give_back(budget::RETURN);
        }
    }

    /// The wait before the next resume (T1), or `None` when there were enough of them.
    pub(super) fn wait(&mut self) -> Option<Duration> {
        let runtime = self.state.extra();
        if self.fruitless >= runtime.retry.get_max_retries() {
            return None;
        }
        self.fruitless += 1;
        let wait = runtime
            .retry
            .wait_before_return(self.fruitless, (runtime.random)());
        self.waited = wait;
        Some(wait)
    }

    /// Pays for a return to the region whose body broke off (T4); false if it cannot.
    pub(super) fn pay(&mut self) -> bool {
        // What an earlier resume took is spent: its body has not come to its end.
        self.paid = None;
        let Some(bucket) = self.state.extra().budgets.get(self.region.index()) else {
            return true;
        };
        let has_paid = bucket.try_pay(budget::RETURN);
        if has_paid {
            self.paid = Some(self.region);
        }
        has_paid
    }

    /// Tells listeners that the rest is asked for (T9).
    pub(super) fn tell(&self) {
        let resend = Resend::resume(self.region, self.resumes, self.waited);
        self.state
            .tell_resend(resend, self.state.tick(runtime::now()));
    }

    /// The request for the rest; `None` if its body cannot be sent again.
    pub(super) fn request(&mut self) -> Option<Request<B>>
    where
        P: BodyPolicy<B, Body = B>,
    {
        let mut request = self.policy.keep_request(&self.request)?;
        self.resumes = self.resumes.saturating_add(1);
        let headers = request.headers_mut();
        // The version that was begun, and no condition of another kind.
        for name in [
            IF_NONE_MATCH,
            IF_MODIFIED_SINCE,
            IF_UNMODIFIED_SINCE,
            IF_RANGE,
        ] {
            headers.remove(name);
        }
        headers.insert(IF_MATCH, self.etag.clone());
        let range = if self.is_part {
            format!("bytes={}-{}", self.next, self.end - 1)
        } else {
            format!("bytes={}-", self.next)
        };
        let range = HeaderValue::try_from(range).ok()?;
        if headers.contains_key(&X_MS_RANGE) {
            headers.remove(RANGE);
            headers.insert(X_MS_RANGE.clone(), range);
        } else {
            headers.insert(RANGE, range);
        }
        let (nth, from) = (self.resumes, self.next);
        request.extensions_mut().insert(Resuming { nth, from });
        Some(request)
    }

    /// Whether an answer is the rest that was asked for.
    pub(super) fn accept<RB: Body>(&mut self, response: &Response<RB>) -> Result<(), Misfit> {
        let headers = response.headers();
        let same_version = headers.get(ETAG) == Some(&self.etag);
        match response.status() {
            StatusCode::PARTIAL_CONTENT if !same_version => return Err(Misfit::VersionChanged),
            StatusCode::PARTIAL_CONTENT => {}
            StatusCode::OK if !same_version => return Err(Misfit::VersionChanged),
            StatusCode::PRECONDITION_FAILED
            | StatusCode::RANGE_NOT_SATISFIABLE
            | StatusCode::NOT_FOUND
            | StatusCode::GONE => return Err(Misfit::VersionChanged),
            other => return Err(Misfit::Answered(other)),
        }
        let range = ContentRange::of(headers).ok_or(Misfit::OtherPart)?;
        let sizes_differ = match (range.total, self.total) {
            (Some(one), Some(other)) => one != other,
            _ => false,
        };
        if (range.start, range.end) != (self.next, self.end)
            || sizes_differ
            || is_encoded(headers)
            || length_contradicts(response, self.left())
        {
            return Err(Misfit::OtherPart);
        }
        self.region = region_of(response, self.region_named());
        self.is_good = true;
        Ok(())
    }

    /// The region that the request names.
    fn region_named(&self) -> RegionId {
        let regions = self.state.regions();
        regions.region_of(self.request.uri()).unwrap_or(self.region)
    }
}

impl<S, P, B> Rest<S, P, B>
where
    S: Service<Request<B>>,
{
    /// Calls the service, which is ready.
    pub(super) fn call(&mut self, request: Request<B>) -> S::Future
    where
        S: Clone,
    {
        let clone = self.service.clone();
        std::mem::replace(&mut self.service, clone).call(request)
    }
}

impl<S, P, B> Drop for Rest<S, P, B> {
    fn drop(&mut self) {
        self.settle();
    }
}

fn region_of<RB>(response: &Response<RB>, home: RegionId) -> RegionId {
    Served::of(response.extensions()).map_or(home, Served::region)
}

/// Whether the body is something else than the bytes of the object.
fn is_encoded(headers: &HeaderMap) -> bool {
    headers.contains_key(&X_MS_STRUCTURED_BODY)
        || headers
            .get_all(CONTENT_ENCODING)
            .iter()
            .any(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// Strong ones are quoted; a weak one says only that the content means the same.
fn is_strong(etag: &HeaderValue) -> bool {
    let text = etag.as_bytes();
    text.len() >= 2 && text.starts_with(b"\"") && text.ends_with(b"\"")
}

/// The length of a body as it is told, if all who tell it agree.
fn known_length<RB: Body>(response: &Response<RB>) -> Option<u64> {
    let length = match response.headers().get(CONTENT_LENGTH) {
        Some(told) => decimal(told.to_str().ok()?)?,
        None => response.body().size_hint().exact()?,
    };
    (!length_contradicts(response, length)).then_some(length)
}

/// Whether somebody tells another length of a body than this.
fn length_contradicts<RB: Body>(response: &Response<RB>, length: u64) -> bool {
    let told = response
        .headers()
        .get(CONTENT_LENGTH)
        .map(HeaderValue::to_str);
    let hint = response.body().size_hint();
    told.is_some_and(|told| told.ok().and_then(decimal) != Some(length))
        || hint.lower() > length
        || hint.upper().is_some_and(|upper| upper < length)
}

/// `bytes FIRST-LAST/TOTAL`; the end is the position behind the last byte.
struct ContentRange {
    start: u64,
    end: u64,
    total: Option<u64>,
}

impl ContentRange {
    fn of(headers: &HeaderMap) -> Option<Self> {
        let text = headers.get(CONTENT_RANGE)?.to_str().ok()?;
        let (unit, text) = text.split_once(' ')?;
        if !unit.eq_ignore_ascii_case("bytes") {
            return None;
        }
        let (range, total) = text.trim_start().split_once('/')?;
        let (first, last) = range.split_once('-')?;
        let (start, end) = (decimal(first)?, decimal(last)?.checked_add(1)?);
        let total = match total {
            "*" => None,
            total => Some(decimal(total)?),
        };
        let fits = start < end && total.is_none_or(|total| end <= total);
        fits.then_some(Self { start, end, total })
    }
}

/// Digits only: `parse` would take a sign as well.
fn decimal(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &'static str) -> Option<(u64, u64, Option<u64>)> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_RANGE, HeaderValue::from_static(text));
        ContentRange::of(&headers).map(|range| (range.start, range.end, range.total))
    }

    #[test]
    fn content_ranges_are_read_strictly() {
        assert_eq!(parsed("bytes 4-9/10"), Some((4, 10, Some(10))));
        assert_eq!(parsed("Bytes 0-0/*"), Some((0, 1, None)));
        for bad in [
            "bytes */10",
            "bytes 5-4/10",
            "bytes 4-10/10",
            "bytes 4-9",
            "bytes +4-9/10",
            "bytes -9/10",
            "bytes 0-18446744073709551615/*",
            "items 4-9/10",
            "",
        ] {
            assert_eq!(parsed(bad), None, "{bad}");
        }
    }

    #[test]
    fn only_quoted_etags_are_strong() {
        for (etag, strong) in [
            ("\"0x8D1\"", true),
            ("\"\"", true),
            ("W/\"1\"", false),
            ("0x8D1", false),
            ("\"", false),
        ] {
            assert_eq!(is_strong(&HeaderValue::from_static(etag)), strong, "{etag}");
        }
    }
}
