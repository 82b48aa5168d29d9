//! Faults on purpose, in your own application: what does it do when a region fails?
//!
//! A [`FaultLayer`] sits between the stack and the client. By rules it lets sends fail, take long,
//! get answers that no server gave, or answers that are changed on their way. It does nothing until
//! it is switched on, so it may stay in a build that goes to a test environment.
//!
//! ```text
//! your code ─► ReadOnlyGate ─► Retry ─► GeoRedirect ─► CircuitBreaker ─► FaultLayer ─► client
//! ```
//!
//! The rules are those of the drill files of `geodrill`, which plays them in virtual time without a
//! client; this layer is for the program as it is, with its own client and its own requests.
//!
//! # Example
//!
//! The primary is lost half a minute after the faults were switched on, for two minutes; a twentieth
//! of all answers of the secondary are late.
//!
//! ```
//! use std::time::Duration;
//! use http::{Request, Response, StatusCode};
//! use tower::{ServiceBuilder, ServiceExt, service_fn};
//! use tower_geo::fault::{Answer, FaultKind, FaultLayer, Rule};
//! use tower_geo::{Account, LocationMode, Served};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let faults = FaultLayer::builder()
//!     .seed(7)
//!     .rule(
//!         Rule::host("contoso.blob.core.windows.net")
//!             .from(Duration::from_secs(30))
//!             .until(Duration::from_secs(150))
//!             .answer(Answer::fault(FaultKind::Connect)),
//!     )
//!     .rule(
//!         Rule::host("contoso-secondary.*")
//!             .rate(0.05)
//!             .answer(Answer::real().latency(Duration::from_secs(2))),
//!     )
//!     .build()?;
//! let switch = faults.switch();
//!
//! let account = Account::azure_storage("contoso")
//!     .location_mode(LocationMode::PrimaryThenSecondary)
//!     .build()?;
//! let client = service_fn(|_: Request<String>| async {
//!     Ok::<_, std::io::Error>(Response::new(String::from("a photo")))
//! });
//! let blobs = ServiceBuilder::new()
//!     .layer(account.blob().layer())
//!     .layer(faults)
//!     .service(client);
//! let get = || Request::get("https://contoso.blob.core.windows.net/photos/1").body(String::new());
//!
//! switch.enable();
//! tokio::time::sleep(Duration::from_secs(60)).await;
//! let photo = blobs.clone().oneshot(get()?).await?;
//! assert_eq!(photo.status(), StatusCode::OK);
//! assert!(Served::of(photo.extensions()).is_some_and(Served::is_from_copy));
//!
//! switch.disable();
//! let report = switch.report();
//! assert_eq!(report.unmatched().count(), 0, "{report}");
//! # Ok(())
//! # }
//! ```
//!
//! # Order
//!
//! Below everything of ours: a breaker below it would see only what is real. Above the client.
//!
//! # Errors
//!
//! A fault is an [`InjectedFault`], which [`StandardFaults`](crate::StandardFaults) takes for what
//! it stands for. The client's own errors pass as they are; all come boxed.
//!
//! # Cancellation
//!
//! A dropped call drops the send that was made for it, and gives back nothing: an answer of a rule
//! that it has met is used.

mod answer;
mod body;
mod error;
mod future;
mod layer;
mod pattern;
mod rules;
mod service;
mod switch;

pub use answer::{Answer, FaultKind};
pub use body::FaultBody;
pub use error::InjectedFault;
pub use future::ResponseFuture;
pub use layer::{FaultLayer, FaultLayerBuilder};
pub use pattern::Pattern;
pub use rules::{Rule, RuleUse, Rules, Sent};
pub use service::FaultService;
pub use switch::{FaultReport, FaultSwitch};

#[cfg(test)]
mod tests;
