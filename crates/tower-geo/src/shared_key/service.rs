use super::{
    SharedKeyService,
    hosts::are_asked,
    string_to_sign::{Scheme, string_to_sign},
};
use crate::error::BoxError;
use crate::signing::{
    AccountKey, GivenHosts, ResponseFuture, SigningError, SigningServiceError, X_MS_DATE,
    X_MS_VERSION, http_date,
};
use http::{
    HeaderMap, HeaderValue, Request, Uri,
    header::{AUTHORIZATION, CONTENT_LENGTH},
};
use http_body::Body;
use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
    time::SystemTime,
};
use tower_service::Service;

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
    type Error = SigningServiceError;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner
            .poll_ready(cx)
            .map_err(SigningServiceError::inner)
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
    key: AccountKey,
    scheme: Scheme,
    pub(super) hosts: GivenHosts,
    pub(super) clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    pub(super) version: HeaderValue,
}

impl Signer {
    pub(super) fn new(
        account: String,
        key_base64: &str,
        service: SharedKeyService,
    ) -> Result<Self, SigningError> {
        if account.ends_with("-secondary") {
            return Err(SigningError::account(
                "account name for shared key must be the primary's, without `-secondary`, for both regions",
            ));
        }
        if account.is_empty()
            || !account
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        {
            return Err(SigningError::account(
                "account name for shared key must consist of lower-case letters and digits",
            ));
        }
        Ok(Self {
            account: account.into(),
            key: AccountKey::from_base64(key_base64)?,
            scheme: service.scheme(),
            hosts: GivenHosts::default(),
            clock: Arc::new(crate::runtime::system_time),
            version: HeaderValue::from_static("2021-12-02"),
        })
    }

    /// Adds date, version and signature. The request is unchanged on an error, when it is authorised
    /// already, and when it is not for the account.
    fn sign<B: Body>(&self, request: &mut Request<B>) -> Result<(), SigningError> {
        let (uri, headers) = (request.uri(), request.headers());
        if headers.contains_key(AUTHORIZATION)
            || has_signature(uri)
            || !are_asked(&self.hosts, &self.account, uri, headers)
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
        let mut authorization = format!("SharedKey {}:", self.account);
        self.key.sign(&text, &mut authorization);
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
fn content_length<B: Body>(headers: &HeaderMap, body: &B) -> Result<Option<u64>, SigningError> {
    if headers.contains_key(CONTENT_LENGTH) {
        return Ok(None);
    }
    if body.is_end_stream() {
        return Ok(Some(0));
    }
    let exact = body.size_hint().exact();
    exact.ok_or_else(SigningError::unknown_length).map(Some)
}
