//! Between the SDK's requests and responses and those of the crate `http`. Bodies are moved.

use ::azure_core::http::headers::{HeaderName, HeaderValue, Headers};
use ::azure_core::http::{Method, Request as TheirRequest, StatusCode, Url};
use ::azure_core::{Error, error::ErrorKind};
use http::Request;

use super::body::SdkBody;

/// The SDK lends the request; its body is a handle on the bytes, or a clone of the stream at the
/// position where it is.
pub(super) fn to_http(theirs: &TheirRequest) -> Result<Request<SdkBody>, Error> {
    let mut request = Request::builder()
        .method(theirs.method().as_str())
        .uri(theirs.url().as_str());
    for (name, value) in theirs.headers().iter() {
        request = request.header(name.as_str(), value.as_str());
    }
    request.body(theirs.body().clone().into()).map_err(|error| {
        Error::with_error(
            ErrorKind::DataConversion,
            error,
            "the request cannot be sent",
        )
    })
}

pub(super) fn from_http(request: Request<SdkBody>) -> Result<TheirRequest, Error> {
    let (head, body) = request.into_parts();
    let url: Url = head.uri.to_string().parse()?;
    let method = match head.method {
        http::Method::DELETE => Method::Delete,
        http::Method::GET => Method::Get,
        http::Method::HEAD => Method::Head,
        http::Method::PATCH => Method::Patch,
        http::Method::POST => Method::Post,
        http::Method::PUT => Method::Put,
        other => {
            return Err(Error::with_message(
                ErrorKind::DataConversion,
                format!("the sdk has no method {other}"),
            ));
        }
    };
    let mut theirs = TheirRequest::new(url, method);
    *theirs.headers_mut() = headers_from_http(&head.headers);
    theirs.set_body(body);
    Ok(theirs)
}

/// The SDK keeps one value of each header, as text. Its own transport does the same.
pub(super) fn headers_from_http(headers: &http::HeaderMap) -> Headers {
    let mut theirs = Headers::new();
    for (name, value) in headers {
        if let Ok(value) = value.to_str() {
            theirs.insert(
                HeaderName::from(name.as_str().to_owned()),
                HeaderValue::from(value.to_owned()),
            );
        }
    }
    theirs
}

pub(super) fn headers_to_http(theirs: &Headers) -> Result<http::HeaderMap, Error> {
    let mut headers = http::HeaderMap::new();
    for (name, value) in theirs.iter() {
        let name = http::HeaderName::try_from(name.as_str())
            .map_err(|error| Error::new(ErrorKind::DataConversion, error))?;
        let value = http::HeaderValue::try_from(value.as_str())
            .map_err(|error| Error::new(ErrorKind::DataConversion, error))?;
        headers.append(name, value);
    }
    Ok(headers)
}

pub(super) fn status_from_http(status: http::StatusCode) -> StatusCode {
    StatusCode::from(status.as_u16())
}

pub(super) fn status_to_http(status: StatusCode) -> Result<http::StatusCode, Error> {
    http::StatusCode::from_u16(*status)
        .map_err(|error| Error::new(ErrorKind::DataConversion, error))
}
