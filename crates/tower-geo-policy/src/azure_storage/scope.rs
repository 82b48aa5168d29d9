//! Which writes change more than what their path names (F5).

use http::header::HeaderName;
use http::{HeaderMap, Method, Uri};

use crate::percent;

static RENAME_SOURCE: HeaderName = HeaderName::from_static("x-ms-rename-source");

/// Batches, renames, and deletes of all that lies below: the keys that they change are in a body,
/// in a header, or nowhere.
pub(super) fn writes_many(method: &Method, uri: &Uri, headers: &HeaderMap) -> bool {
    let query = uri.query().unwrap_or("");
    let says = |name, word| {
        percent::values(query, name).any(|value| percent::decodes_to_word(value, word))
    };
    let last = uri.path().rsplit('/').next().unwrap_or("");
    let is_batch = says("comp", "batch") || percent::decodes_to_word(last, "$batch");
    let is_rename = headers.contains_key(&RENAME_SOURCE);
    let deletes_below = *method == Method::DELETE
        && (says("recursive", "true")
            || says("restype", "container")
            || says("resource", "filesystem"));
    is_batch || is_rename || deletes_below
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn many(method: &str, path: &str, headers: &HeaderMap) -> bool {
        let uri = format!("https://contoso.blob.core.windows.net{path}");
        writes_many(&method.parse().unwrap(), &uri.parse().unwrap(), headers)
    }

    /// F5: where the keys are not known, the write holds for all of them.
    #[test]
    fn batches_renames_and_recursive_deletes_change_many() {
        let none = HeaderMap::new();
        assert!(many("POST", "/?comp=batch", &none));
        assert!(many("POST", "/c?restype=container&comp=batch", &none));
        assert!(many("POST", "/$batch", &none));
        assert!(many("POST", "/%24batch", &none));
        assert!(many("DELETE", "/fs/dir?recursive=true", &none));
        assert!(many("DELETE", "/c?restype=container", &none));
        let mut rename = HeaderMap::new();
        rename.insert("x-ms-rename-source", HeaderValue::from_static("/fs/a"));
        assert!(many("PUT", "/fs/b", &rename));
        assert!(!many("PUT", "/c/b", &none));
        assert!(!many("DELETE", "/c/b", &none));
        assert!(!many("PUT", "/c?restype=container", &none));
        assert!(!many("POST", "/people", &none));
    }
}
