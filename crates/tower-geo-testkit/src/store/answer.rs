//! From a request to what the service would answer.

use super::{
    body::StoreBody,
    data::{Blob, Change, Data},
};
use crate::Side;
use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode,
    header::{
        ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, DATE, ETAG, LAST_MODIFIED,
    },
    request::Parts,
};
use std::{fmt::Write as _, ops::Range, time::SystemTime};

/// What refuses a request: status and error code.
type Refusal = (StatusCode, &'static str);
type Result<T> = std::result::Result<T, Refusal>;

const NOT_IMPLEMENTED: Refusal = (StatusCode::NOT_IMPLEMENTED, "NotImplemented");
const READ_ONLY: Refusal = (StatusCode::FORBIDDEN, "InsufficientAccountPermissions");
const NO_CONTAINER: Refusal = (StatusCode::NOT_FOUND, "ContainerNotFound");
const NO_BLOB: Refusal = (StatusCode::NOT_FOUND, "BlobNotFound");
const CONDITION: Refusal = (StatusCode::PRECONDITION_FAILED, "ConditionNotMet");
const BAD_QUERY: Refusal = (StatusCode::BAD_REQUEST, "InvalidQueryParameterValue");

pub(super) fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

pub(super) fn answer(
    side: Side,
    prefix: Option<&str>,
    head: &Parts,
    body: Bytes,
    data: &mut Data,
) -> Response<StoreBody> {
    match route(side, prefix, head, body, data) {
        Ok(response) => finish(response, data),
        Err((status, code)) => failure_to(&head.method, status, code, data),
    }
}

/// An answer by something that is not the service.
pub(super) fn bare(status: StatusCode, data: &Data) -> Response<StoreBody> {
    let mut response = Response::new(StoreBody::new(Bytes::new()));
    *response.status_mut() = status;
    set(response.headers_mut(), DATE, &http_date(data.now()));
    response
}

/// An answer by the service that refuses the request or fails.
pub(super) fn failure(status: StatusCode, code: &str, data: &mut Data) -> Response<StoreBody> {
    failure_to(&Method::GET, status, code, data)
}

fn failure_to(
    method: &Method,
    status: StatusCode,
    code: &str,
    data: &mut Data,
) -> Response<StoreBody> {
    let content = if *method == Method::HEAD || status == StatusCode::NOT_MODIFIED {
        String::new()
    } else {
        format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>{code}</Code></Error>")
    };
    let mut response = xml(content);
    *response.status_mut() = status;
    set(
        response.headers_mut(),
        HeaderName::from_static("x-ms-error-code"),
        code,
    );
    finish(response, data)
}

/// What every answer of the service carries.
fn finish(mut response: Response<StoreBody>, data: &mut Data) -> Response<StoreBody> {
    let id = data.next_request_id();
    let headers = response.headers_mut();
    set(headers, HeaderName::from_static("x-ms-request-id"), &id);
    set(
        headers,
        HeaderName::from_static("x-ms-version"),
        "2021-12-02",
    );
    set(headers, DATE, &http_date(data.now()));
    response
}

fn route(
    side: Side,
    prefix: Option<&str>,
    head: &Parts,
    body: Bytes,
    data: &mut Data,
) -> Result<Response<StoreBody>> {
    let path = account_path(prefix, head.uri.path())?;
    if side == Side::Secondary && (!is_read(&head.method) || !data.secondary_readable) {
        return Err(READ_ONLY);
    }
    let query = Query(head.uri.query().unwrap_or_default());
    match path.split_once('/') {
        None if path.is_empty() => match (query.get("restype"), query.get("comp")) {
            (Some("service"), Some("stats")) if side == Side::Primary => Err(BAD_QUERY),
            (Some("service"), Some("stats")) => Ok(stats(data)),
            _ => Err(NOT_IMPLEMENTED),
        },
        None | Some((_, "")) if query.get("restype") == Some("container") => {
            let container = &decode(path.trim_end_matches('/'));
            match query.get("comp") {
                None => of_container(side, &head.method, container, data),
                Some("list") => list(side, container, &query, data),
                Some(_) => Err(NOT_IMPLEMENTED),
            }
        }
        Some((container, blob)) if !blob.is_empty() && query.get("comp").is_none() => {
            of_blob(side, head, &decode(container), &decode(blob), body, data)
        }
        None | Some(_) => Err(NOT_IMPLEMENTED),
    }
}

/// The path below the account, without its first slash.
fn account_path<'a>(prefix: Option<&str>, path: &'a str) -> Result<&'a str> {
    let path = match prefix {
        Some(prefix) => path
            .strip_prefix(prefix)
            .filter(|rest| rest.is_empty() || rest.starts_with('/'))
            .ok_or((StatusCode::NOT_FOUND, "ResourceNotFound"))?,
        None => path,
    };
    Ok(path.strip_prefix('/').unwrap_or(path))
}

fn stats(data: &mut Data) -> Response<StoreBody> {
    let time = http_date(data.last_sync_time());
    xml(format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceStats><GeoReplication>\
         <Status>live</Status><LastSyncTime>{time}</LastSyncTime>\
         </GeoReplication></StorageServiceStats>"
    ))
}

fn of_container(
    side: Side,
    method: &Method,
    container: &str,
    data: &mut Data,
) -> Result<Response<StoreBody>> {
    let exists = data.view(side).contains_key(container);
    match *method {
        Method::PUT if exists => Err((StatusCode::CONFLICT, "ContainerAlreadyExists")),
        Method::PUT => {
            data.change(Change::CreateContainer(container.to_owned()));
            Ok(empty(StatusCode::CREATED))
        }
        Method::GET | Method::HEAD if exists => Ok(empty(StatusCode::OK)),
        Method::DELETE if exists => {
            data.change(Change::DeleteContainer(container.to_owned()));
            Ok(empty(StatusCode::ACCEPTED))
        }
        Method::GET | Method::HEAD | Method::DELETE => Err(NO_CONTAINER),
        _ => Err(NOT_IMPLEMENTED),
    }
}

/// A page of names. The marker names its region, and the other region refuses it, as the service may
/// (R10).
fn list(
    side: Side,
    container: &str,
    query: &Query<'_>,
    data: &mut Data,
) -> Result<Response<StoreBody>> {
    let mark = match side {
        Side::Primary => "p!",
        Side::Secondary => "s!",
    };
    let marker = query.get("marker").map(decode).unwrap_or_default();
    let after = match marker.as_str() {
        "" => None,
        marker => Some(marker.strip_prefix(mark).ok_or(BAD_QUERY)?),
    };
    let page = match query.get("maxresults") {
        None => 5000,
        Some(text) => text
            .parse::<usize>()
            .ok()
            .filter(|&page| page > 0)
            .ok_or(BAD_QUERY)?,
    };
    let prefix = query.get("prefix").map(decode).unwrap_or_default();
    let blobs = data.view(side).get(container).ok_or(NO_CONTAINER)?;

    let mut names = blobs
        .iter()
        .filter(|(name, _)| {
            name.starts_with(&prefix) && after.is_none_or(|last| name.as_str() > last)
        })
        .peekable();
    let mut text =
        String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults><Blobs>");
    let mut last = "";
    for (name, blob) in names.by_ref().take(page) {
        last = name;
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "<Blob><Name>{}</Name><Properties><Last-Modified>{}</Last-Modified><Etag>{}</Etag>\
             <Content-Length>{}</Content-Length></Properties></Blob>",
            escape(name),
            http_date(blob.modified),
            blob.etag.trim_matches('"'),
            blob.content.len()
        );
    }
    text.push_str("</Blobs><NextMarker>");
    if names.peek().is_some() {
        text.push_str(mark);
        text.push_str(&escape(last));
    }
    text.push_str("</NextMarker></EnumerationResults>");
    Ok(xml(text))
}

fn of_blob(
    side: Side,
    head: &Parts,
    container: &str,
    name: &str,
    body: Bytes,
    data: &mut Data,
) -> Result<Response<StoreBody>> {
    let blobs = data.view(side).get(container).ok_or(NO_CONTAINER)?;
    let blob = blobs.get(name).cloned();
    match head.method {
        Method::GET | Method::HEAD => {
            let blob = blob.ok_or(NO_BLOB)?;
            check(head, Some(&blob))?;
            read(head, &blob)
        }
        Method::PUT => {
            check(head, blob.as_ref())?;
            let kept = |name: &HeaderName| {
                *name == CONTENT_TYPE || name.as_str().starts_with("x-ms-meta-")
            };
            let headers = head
                .headers
                .iter()
                .filter(|(name, _)| kept(name))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            let new = data.new_version(body, headers);
            let mut response = empty(StatusCode::CREATED);
            describe(response.headers_mut(), &new);
            data.change(Change::Put(container.to_owned(), name.to_owned(), new));
            Ok(response)
        }
        Method::DELETE => {
            let blob = blob.ok_or(NO_BLOB)?;
            check(head, Some(&blob))?;
            data.change(Change::Delete(container.to_owned(), name.to_owned()));
            Ok(empty(StatusCode::ACCEPTED))
        }
        _ => Err(NOT_IMPLEMENTED),
    }
}

/// `If-Match` and `If-None-Match`.
fn check(head: &Parts, blob: Option<&Blob>) -> Result<()> {
    let matches = |name: &str| {
        let wanted = text(&head.headers, name);
        let etag = blob.map(|blob| blob.etag.as_str());
        (!wanted.is_empty()).then(|| match wanted {
            "*" => etag.is_some(),
            wanted => etag == Some(wanted),
        })
    };
    if matches("if-match") == Some(false) {
        return Err(CONDITION);
    }
    match matches("if-none-match") {
        Some(true) if is_read(&head.method) => Err((StatusCode::NOT_MODIFIED, "ConditionNotMet")),
        Some(true) if text(&head.headers, "if-none-match") == "*" => {
            Err((StatusCode::CONFLICT, "BlobAlreadyExists"))
        }
        Some(true) => Err(CONDITION),
        Some(false) | None => Ok(()),
    }
}

fn read(head: &Parts, blob: &Blob) -> Result<Response<StoreBody>> {
    let size = blob.content.len();
    let wanted = match text(&head.headers, "x-ms-range") {
        "" => text(&head.headers, "range"),
        range => range,
    };
    let range = if wanted.is_empty() || head.method == Method::HEAD {
        None
    } else {
        Some(range_of(wanted, size)?)
    };
    let content = range
        .clone()
        .map_or_else(|| blob.content.clone(), |range| blob.content.slice(range));

    let length = content.len();
    // A HEAD has the length of what a GET would bring, and no body.
    let mut response = Response::new(StoreBody::new(if head.method == Method::HEAD {
        Bytes::new()
    } else {
        content
    }));
    let headers = response.headers_mut();
    describe(headers, blob);
    set(headers, ACCEPT_RANGES, "bytes");
    set(headers, CONTENT_LENGTH, &length.to_string());
    set(headers, CONTENT_TYPE, "application/octet-stream");
    for (name, value) in &blob.headers {
        headers.insert(name.clone(), value.clone());
    }
    if let Some(range) = range {
        let (first, last) = (range.start, range.end - 1);
        set(
            headers,
            CONTENT_RANGE,
            &format!("bytes {first}-{last}/{size}"),
        );
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    Ok(response)
}

/// `bytes=FIRST-` or `bytes=FIRST-LAST`, never empty. The service knows no other forms.
fn range_of(text: &str, size: usize) -> Result<Range<usize>> {
    let malformed = (StatusCode::BAD_REQUEST, "InvalidHeaderValue");
    let (first, last) = text
        .strip_prefix("bytes=")
        .and_then(|bounds| bounds.split_once('-'))
        .ok_or(malformed)?;
    let first: usize = first.parse().map_err(|_| malformed)?;
    let end = match last {
        "" => size,
        last => last
            .parse::<usize>()
            .map_err(|_| malformed)?
            .saturating_add(1)
            .min(size),
    };
    if first < end {
        Ok(first..end)
    } else {
        Err((StatusCode::RANGE_NOT_SATISFIABLE, "InvalidRange"))
    }
}

fn describe(headers: &mut HeaderMap, blob: &Blob) {
    set(headers, ETAG, &blob.etag);
    set(headers, LAST_MODIFIED, &http_date(blob.modified));
}

fn empty(status: StatusCode) -> Response<StoreBody> {
    let mut response = Response::new(StoreBody::new(Bytes::new()));
    *response.status_mut() = status;
    response
}

fn xml(text: String) -> Response<StoreBody> {
    let mut response = Response::new(StoreBody::new(text.into()));
    set(response.headers_mut(), CONTENT_TYPE, "application/xml");
    response
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    // A name with bytes that no header can hold loses the header, not the answer.
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// A header's value, or an empty text.
pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

fn http_date(time: SystemTime) -> String {
    httpdate::fmt_http_date(time)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Decodes `%XX`; what is no valid escape stays as it is.
fn decode(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let escaped = tail
            .get(..2)
            .filter(|_| first == b'%')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(escaped.unwrap_or(first));
        rest = match escaped {
            Some(_) => tail.get(2..).unwrap_or_default(),
            None => tail,
        };
    }
    String::from_utf8_lossy(&out).into_owned()
}

struct Query<'a>(&'a str);

impl<'a> Query<'a> {
    fn get(&self, wanted: &str) -> Option<&'a str> {
        self.0
            .split('&')
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
            .map(|(_, value)| value)
    }
}
