//! Signs requests to Azure Storage with the key of the account (Shared Key).
//!
//! For clients without an Azure SDK above them, such as hyper or reqwest, and for the background
//! sends that need a signed way out (rule F7). An SDK signs by itself; do not sign twice.
//!
//! # Order
//!
//! A signature covers the method, the path, the query and headers, but neither the host, the
//! scheme nor the port. So the layer works in either place:
//!
//! - **Below the geo layers** (nearest to the client): every send is signed anew, just before it
//!   leaves. This is the better place, since Azure refuses a request whose date is more than 15
//!   minutes old, and retries under a signer share one date.
//! - **Above the geo layers**: one signature per operation. It stays valid when a send is redirected
//!   to the secondary, whose signatures carry the name of the *primary* account.
//!
//! The layer signs the URI that it sees. Path-style endpoints (`http://127.0.0.1:10000/account`)
//! work in both places with Azurite, which accepts the path of either region.
//!
//! # What is signed
//!
//! Requests to the account, and no others, since a signature is worth as much as what it signs:
//!
//! - to `ACCOUNT.SERVICE.…` and `ACCOUNT-secondary.SERVICE.…`, with a DNS zone or not;
//! - to `/ACCOUNT/…` and `/ACCOUNT-secondary/…` on an IP address or a name without dots;
//! - to hosts that were named with [`SharedKeyLayer::host`], such as a custom domain.
//!
//! Everything else passes untouched, and so does a request that is authorised already: one with an
//! `Authorization` header, or with a shared access signature (`sig=`) in its query.
//!
//! # Example
//!
//! ```
//! use http::{Request, Response};
//! use tower_geo::shared_key::{SharedKeyLayer, SharedKeyService};
//! use tower_layer::Layer;
//! # use std::convert::Infallible;
//! # use std::future::{Ready, ready};
//! # use std::task::{Context, Poll};
//! # struct Client;
//! # impl tower_service::Service<Request<String>> for Client {
//! #     type Response = Response<()>;
//! #     type Error = Infallible;
//! #     type Future = Ready<Result<Response<()>, Infallible>>;
//! #     fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
//! #         Poll::Ready(Ok(()))
//! #     }
//! #     fn call(&mut self, request: Request<String>) -> Self::Future {
//! #         assert!(request.headers()["authorization"].to_str().unwrap().starts_with("SharedKey contoso:"));
//! #         ready(Ok(Response::new(())))
//! #     }
//! # }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use tower_service::Service;
//!
//! let layer = SharedKeyLayer::new("contoso", "c2VjcmV0", SharedKeyService::Blob)?;
//! let mut client = layer.layer(Client);
//! let request = Request::put("https://contoso.blob.core.windows.net/photos/cat.jpg")
//!     .header("x-ms-blob-type", "BlockBlob")
//!     .body("meow".to_owned())?;
//! let answer = client.call(request);
//! # drop(answer);
//! # Ok(())
//! # }
//! ```
//!
//! # Errors
//!
//! [`SigningError`](crate::signing::SigningError) when the layer is built with an account, a key or
//! a host that cannot be right, or, as
//! [`SigningServiceError`](crate::signing::SigningServiceError), when a request cannot be signed:
//! its length is unknown, or the wall clock shows a date that HTTP cannot write. Then nothing was
//! sent.
//!
//! # Cancellation
//!
//! Nothing is held across a call: a dropped future leaves nothing behind.

mod hosts;
mod layer;
mod service;
mod string_to_sign;
#[cfg(test)]
mod tests;

pub use self::{
    layer::{SharedKeyLayer, SharedKeyService},
    service::SharedKey,
};
