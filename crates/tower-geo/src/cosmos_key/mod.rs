//! Signs requests to Azure Cosmos DB with the key of the account.
//!
//! For clients that speak the REST API, such as hyper or reqwest, and for the background reads of
//! the account document, which need a signed way out (rule F7). The official client signs by
//! itself.
//!
//! # Order
//!
//! **Below the geo layers**, nearest to the client: every send is signed anew, just before it
//! leaves. A signature covers the method, the path and the date, but not the host, so one that was
//! made above the geo layers stays valid in every region, yet only until its date is 15 minutes
//! old; and the reads of the account document would go unsigned.
//!
//! # What is signed
//!
//! Requests to the account, and no others, since whoever holds a signature can use it:
//!
//! - to the host of the endpoint that the layer was given;
//! - to the account's regions: that host with `-REGION` behind its first label
//!   (`contoso-westus2.documents.azure.com`), where `REGION` is letters and digits;
//! - to hosts that were named with [`CosmosKeyLayer::allow_host`], such as a private endpoint or an
//!   emulator's regions.
//!
//! Everything else passes untouched, and so does a request that has an `Authorization` header: one
//! with a resource token, or with a token of Microsoft Entra ID.
//!
//! Resources are named by their names in paths (`/dbs/shop/colls/orders/docs/1`). Internal ids
//! (`_rid`), which the service signs differently, are understood of offers only.
//!
//! # Example
//!
//! ```
//! use http::{Request, Response};
//! use tower_geo::cosmos_key::CosmosKeyLayer;
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
//! #         assert!(request.headers()["authorization"].to_str().unwrap().starts_with("type%3Dmaster"));
//! #         ready(Ok(Response::new(())))
//! #     }
//! # }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use tower_service::Service;
//!
//! let layer = CosmosKeyLayer::new("https://contoso.documents.azure.com:443/", "c2VjcmV0")?;
//! let mut client = layer.layer(Client);
//! let region = "https://contoso-westus2.documents.azure.com";
//! let request = Request::get(format!("{region}/dbs/shop/colls/orders/docs/1"))
//!     .header("x-ms-documentdb-partitionkey", r#"["1"]"#)
//!     .body(String::new())?;
//! let answer = client.call(request);
//! # drop(answer);
//! # Ok(())
//! # }
//! ```
//!
//! # Errors
//!
//! [`SigningError`](crate::signing::SigningError) when the layer is built with an endpoint, a key or
//! a host that cannot be right, or, as
//! [`SigningServiceError`](crate::signing::SigningServiceError), when the wall clock shows a date
//! that HTTP cannot write. Then nothing was sent.
//!
//! # Cancellation
//!
//! Nothing is held across a call: a dropped future leaves nothing behind.

mod hosts;
mod layer;
mod service;
#[cfg(test)]
mod tests;

pub use self::{layer::CosmosKeyLayer, service::CosmosKey};
