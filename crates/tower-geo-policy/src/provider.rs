//! What a kind of service is: how its requests and its answers are to be understood.

use std::fmt;
use std::time::SystemTime;

use http::header::LAST_MODIFIED;
use http::{HeaderMap, Method, StatusCode, Uri};

use crate::intent::{Intent, Ruling};
use crate::verdict::{FromCopy, Verdict};

/// A kind of service with regional copies: what its requests do and what its answers mean.
///
/// [`azure_storage`](crate::azure_storage) and [`static_service`](crate::static_service) are two
/// of them; implement this trait for a third. Nothing else in this workspace knows a service.
///
/// Every method is called on the path of a request, so it must not block, allocate or panic.
pub trait Provider: fmt::Debug + Send + Sync + 'static {
    /// What a request does, and why.
    fn intent(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Ruling;

    /// What an answer to a request of that intent means.
    fn verdict(&self, intent: Intent, status: StatusCode, headers: &HeaderMap) -> Verdict;

    /// What an answer to a read means when it comes from a copy instead of the writer (R4, R6).
    fn judge_copy(&self, status: StatusCode, headers: &HeaderMap) -> FromCopy;

    /// When the object in a good answer was changed last, by its own account (F2). `Last-Modified`
    /// unless the service knows better; `None` when the headers do not tell.
    fn object_time(&self, headers: &HeaderMap) -> Option<SystemTime> {
        let date = headers.get(LAST_MODIFIED)?.to_str().ok()?;
        httpdate::parse_http_date(date).ok()
    }

    /// Whether a write may change more than what its path names, such as a batch (F5). Asked only
    /// where reads have to see the writes before them.
    fn writes_many(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> bool {
        let _ = (method, uri, headers);
        false
    }

    /// The path under which reads find what a request names, from its path below the account (F5): the
    /// same, unless the service knows one thing by several paths.
    fn object_path<'u>(&self, path: &'u str) -> &'u str {
        path
    }
}
