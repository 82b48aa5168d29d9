use super::{
    ResponseFuture, SharedKeyError, SharedKeyService, SharedKeyServiceError,
    hosts::Hosts,
    string_to_sign::{Scheme, string_to_sign},
};
use crate::error::BoxError;
use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Uri,
    header::{AUTHORIZATION, CONTENT_LENGTH},
};
use http_body::Body;
use sha2::Sha256;
use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tower_service::Service;

pub(super) static X_MS_DATE: HeaderName = HeaderName::from_static("x-ms-date");
static X_MS_VERSION: HeaderName = HeaderName::from_static("x-ms-version");

/// The first second that the four digits of an HTTP date cannot show: the year 10000.
const END_OF_HTTP_DATES: Duration = Duration::from_secs(253_402_300_800);

/// A service that signs requests to Azure Storage; made by
/// [`SharedKeyLayer`](super::SharedKeyLayer).
///
/// The body type needs [`Body`] only for its exact size, which is part of what is signed.
#[derive(Clone, Debug)]
pub struct SharedKey<S> {
    inner: S,
    signer: Signer,
}

impl<S> SharedKey<S> {
    pub(super) const fn new(inner: S, signer: Signer) -> Self {
        Self { inner, signer }
    }

    /// The inner service.
    #[must_use]
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The inner service, mutably.
    #[must_use]
    pub const fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// The inner service, by value.
    #[must_use]
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, B> Service<Request<B>> for SharedKey<S>
where
    S: Service<Request<B>>,
    S::Error: Into<BoxError>,
    B: Body,
{
    type Response = S::Response;
    type Error = SharedKeyServiceError;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner
            .poll_ready(cx)
            .map_err(SharedKeyServiceError::inner)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        match self.signer.sign(&mut request) {
            Ok(()) => ResponseFuture::sent(self.inner.call(request)),
            Err(error) => ResponseFuture::unsigned(error),
        }
    }
}

#[derive(Clone)]
pub(super) struct Signer {
    account: Arc<str>,
    /// HMAC with the key already mixed in; the key is not kept apart from it.
    keyed: Hmac<Sha256>,
    scheme: Scheme,
    pub(super) hosts: Hosts,
    pub(super) clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    pub(super) version: HeaderValue,
}

impl Signer {
    pub(super) fn new(
        account: String,
        key_base64: &str,
        service: SharedKeyService,
    ) -> Result<Self, SharedKeyError> {
        if account.ends_with("-secondary") {
            return Err(SharedKeyError::account(
                "must be the primary's, without `-secondary`, for both regions",
            ));
        }
        if account.is_empty()
            || !account
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        {
            return Err(SharedKeyError::account(
                "must consist of lower-case letters and digits",
            ));
        }
        let key = STANDARD
            .decode(key_base64)
            .map_err(|_| SharedKeyError::key("is not valid Base64"))?;
        if key.is_empty() {
            return Err(SharedKeyError::key("is empty"));
        }
        let keyed = Hmac::new_from_slice(&key)
            .map_err(|_| SharedKeyError::key("has a length that cannot be used"))?;
        Ok(Self {
            account: account.into(),
            keyed,
            scheme: service.scheme(),
            hosts: Hosts::default(),
            clock: Arc::new(crate::runtime::system_time),
            version: HeaderValue::from_static("2021-12-02"),
        })
    }

    /// Adds date, version and signature. The request is unchanged on an error, when it is authorised
    /// already, and when it is not for the account.
    fn sign<B: Body>(&self, request: &mut Request<B>) -> Result<(), SharedKeyError> {
        let (uri, headers) = (request.uri(), request.headers());
        if headers.contains_key(AUTHORIZATION)
            || has_signature(uri)
            || !self.hosts.are_asked(&self.account, uri, headers)
        {
            return Ok(());
        }
        let length = match self.scheme {
            Scheme::Full => content_length(request.headers(), request.body())?,
            Scheme::Table => None,
        };
        let date = http_date((self.clock)())?;

        let headers = request.headers_mut();
        headers.insert(&X_MS_DATE, date);
        if !headers.contains_key(&X_MS_VERSION) {
            headers.insert(&X_MS_VERSION, self.version.clone());
        }
        let text = string_to_sign(
            self.scheme,
            &self.account,
            request.method(),
            request.uri(),
            request.headers(),
            length,
        );
        let signature = self.keyed.clone().chain_update(&text).finalize();
        let mut authorization = format!("SharedKey {}:", self.account);
        STANDARD.encode_string(signature.into_bytes(), &mut authorization);
        // Cannot fail: the account is letters and digits, and Base64 is visible ASCII.
        if let Ok(mut value) = HeaderValue::try_from(authorization) {
            value.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        Ok(())
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer")
            .field("account", &self.account)
            .field("scheme", &self.scheme)
            .finish_non_exhaustive()
    }
}

/// Whether the query holds a shared access signature.
fn has_signature(uri: &Uri) -> bool {
    let mut pairs = uri.query().unwrap_or_default().split('&');
    pairs.any(|pair| {
        let name = pair.split('=').next().unwrap_or_default();
        name.eq_ignore_ascii_case("sig")
    })
}

/// The length to sign where the request itself does not say it in a header.
fn content_length<B: Body>(headers: &HeaderMap, body: &B) -> Result<Option<u64>, SharedKeyError> {
    if headers.contains_key(CONTENT_LENGTH) {
        return Ok(None);
    }
    if body.is_end_stream() {
        return Ok(Some(0));
    }
    let exact = body.size_hint().exact();
    exact.ok_or_else(SharedKeyError::unknown_length).map(Some)
}

fn http_date(time: SystemTime) -> Result<HeaderValue, SharedKeyError> {
    // Formatting panics outside this range.
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) if since < END_OF_HTTP_DATES => {
            HeaderValue::try_from(httpdate::fmt_http_date(time)).map_err(|_| SharedKeyError::date())
        }
        _ => Err(SharedKeyError::date()),
    }
}
