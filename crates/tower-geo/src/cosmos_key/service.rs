use super::hosts::AccountHosts;
use crate::error::BoxError;
use crate::signing::{
    AccountKey, ResponseFuture, SigningError, SigningServiceError, X_MS_DATE, X_MS_VERSION,
    http_date,
};
use http::{HeaderValue, Request, header::AUTHORIZATION};
use std::{
    fmt::{self, Write},
    sync::Arc,
    task::{Context, Poll},
    time::SystemTime,
};
use tower_geo_policy::cosmos::{authorization_token, string_to_sign_for};
use tower_service::Service;

/// A service that signs requests to Azure Cosmos DB; made by
/// [`CosmosKeyLayer`](super::CosmosKeyLayer).
#[derive(Clone, Debug)]
pub struct CosmosKey<S> {
    inner: S,
    signer: Signer,
}

impl<S> CosmosKey<S> {
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

impl<S, B> Service<Request<B>> for CosmosKey<S>
where
    S: Service<Request<B>>,
    S::Error: Into<BoxError>,
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
    pub(super) hosts: AccountHosts,
    pub(super) key: AccountKey,
    pub(super) clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    pub(super) version: HeaderValue,
}

impl Signer {
    /// Adds date, version and signature. The request is unchanged on an error, when it is authorised
    /// already, and when it is not for the account.
    fn sign<B>(&self, request: &mut Request<B>) -> Result<(), SigningError> {
        let (uri, headers) = (request.uri(), request.headers());
        if headers.contains_key(AUTHORIZATION) || !self.hosts.are_asked(uri, headers) {
            return Ok(());
        }
        let date = http_date((self.clock)())?;
        // Made by us, of visible ASCII.
        let text = string_to_sign_for(
            request.method().as_str(),
            uri.path(),
            date.to_str().unwrap_or_default(),
        );
        let mut signature = String::new();
        self.key.sign(text.as_bytes(), &mut signature);
        let authorization = percent_encoded(&authorization_token(&signature));

        let headers = request.headers_mut();
        headers.insert(&X_MS_DATE, date);
        if !headers.contains_key(&X_MS_VERSION) {
            headers.insert(&X_MS_VERSION, self.version.clone());
        }
        // Cannot fail: what is percent-encoded is visible ASCII.
        if let Ok(mut value) = HeaderValue::try_from(authorization) {
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(())
    }
}

/// The token as the header takes it. It consists of Base64 and of `type=master&ver=1.0&sig=`.
fn percent_encoded(token: &str) -> String {
    let mut out = String::with_capacity(token.len() + 16);
    for letter in token.chars() {
        if letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_') {
            out.push(letter);
        } else {
            // Writing to a string does not fail.
            let _ = write!(out, "%{:02X}", u32::from(letter));
        }
    }
    out
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer")
            .field("hosts", &self.hosts)
            .finish_non_exhaustive()
    }
}
