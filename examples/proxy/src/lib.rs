//! A reverse proxy before one storage account: any client, in any language, gets the stack.
//!
//! One port for each service. Point the client's endpoint at it and leave the rest as it is:
//!
//! ```text
//! BlobEndpoint=http://localhost:10000;QueueEndpoint=http://localhost:10001;…
//! ```
//!
//! The proxy holds no key. It changes the host of a request and nothing that is signed, so Shared
//! Key, SAS and bearer tokens stay valid on the way. Bodies stream both ways.
//!
//! | what comes | what becomes of it |
//! |---|---|
//! | a request | sent to the account's primary, or through the stack elsewhere |
//! | an answer | handed on as it is; `x-geo-region` and `x-geo-sends` tell of a redirect or a retry |
//! | a refusal of the stack | 503 with `Retry-After` and a problem body (RFC 9457) |
//! | no answer | 502, or 504 if time was up |
//! | an upload that is answered before it has ended | the rest is taken for up to 30 s and thrown away: a client that is still writing gets the answer, not a reset |
//! | `GET /-/geo` | the state of the service, as JSON; no container can be called `-` |
//!
//! Ctrl-C or SIGTERM: no connections are taken any more, requests under way are finished within
//! `--grace` (25 s). A second signal ends at once.
//!
//! # What it costs
//!
//! Measured on two busy, shared cores of a virtual machine, all on loopback, by the example `figures`; run it
//! on yours. Microseconds for each request of 4 KiB, one at a time:
//!
//! | | directly | through a proxy that only forwards | through this one |
//! |---|---|---|---|
//! | get | 81 | 211 | 247 |
//! | put | 116 | 272 | 289 |
//!
//! 1 GiB up and 1 GiB down, each in one request: its resident memory peaks at 8 MiB, of which it has
//! 4 MiB before the first request.
//!
//! # The client's own retries
//!
//! A client whose own retries are on will repeat a 503: turn them off, or down (T8).

mod forward;
mod problem;
mod state;
mod upload;

pub use forward::{Body, router};
pub use upload::Upload;
