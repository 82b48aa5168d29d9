//! Which writes change more than what their path names, and what has more than one path (F5).

use http::header::HeaderName;
use http::{HeaderMap, Method, Uri};

use super::StorageService;
use crate::percent;

static RENAME_SOURCE: HeaderName = HeaderName::from_static("x-ms-rename-source");

/// Batches, renames, and deletes of all that lies below: the keys that they change are in a body,
/// in a header, or nowhere.
pub(super) fn writes_many(
    service: StorageService,
    path_style: bool,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
) -> bool {
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
            || says("resource", "filesystem")
            || match service {
                StorageService::Table => is_of_tables(last),
                StorageService::Queue => {
                    segments(uri.path()).count() == 1 + usize::from(path_style)
                }
                _ => false,
            });
    is_batch || is_rename || deletes_below
}

/// `Tables('people')`, which stands for all of its entities, named `people(…)`.
fn is_of_tables(segment: &str) -> bool {
    let set = percent::decoded(segment).take_while(|&byte| byte != b'(');
    set.map(|byte| byte.to_ascii_lowercase()).eq(*b"tables")
}

fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|segment| !segment.is_empty())
}

/// Peeking names the messages of a queue, deleting one names that one: `/QUEUE/messages/ID`. Blobs in
/// `$root` need not name it, and a web site names its files without `$web`.
pub(super) fn object_path(service: StorageService, path: &str) -> &str {
    let Some((first, rest)) = path.strip_prefix('/').and_then(|path| path.split_once('/')) else {
        return path;
    };
    // Behind the first segment, with the slash.
    let below = path.len() - rest.len() - 1;
    match service {
        StorageService::Queue => match rest.split_once('/') {
            Some((messages, message)) if percent::decodes_to_word(messages, "messages") => {
                path.get(..path.len() - message.len() - 1).unwrap_or(path)
            }
            _ => path,
        },
        StorageService::Blob | StorageService::Dfs | StorageService::Web
            if ["$root", "$web"]
                .iter()
                .any(|implied| percent::decodes_to_word(first, implied)) =>
        {
            path.get(below..).unwrap_or(path)
        }
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn many(method: &str, path: &str, headers: &HeaderMap) -> bool {
        let uri = format!("https://contoso.blob.core.windows.net{path}");
        is_many(StorageService::Blob, false, method, &uri, headers)
    }

    fn is_many(
        service: StorageService,
        path_style: bool,
        method: &str,
        uri: &str,
        headers: &HeaderMap,
    ) -> bool {
        let (method, uri) = (method.parse().unwrap(), uri.parse().unwrap());
        writes_many(service, path_style, &method, &uri, headers)
    }

    /// F5: a table is deleted under another path than its entities have, and a queue than its messages.
    #[test]
    fn deleting_a_table_or_a_queue_changes_all_that_is_in_it() {
        let many = |service, path_style, method, path: &str| {
            let uri = format!("https://contoso.example{path}");
            is_many(service, path_style, method, &uri, &HeaderMap::new())
        };
        for (service, path_style, method, path, wanted) in [
            (
                StorageService::Table,
                false,
                "DELETE",
                "/Tables('people')",
                true,
            ),
            (
                StorageService::Table,
                false,
                "DELETE",
                "/tables%28%27people%27%29",
                true,
            ),
            (
                StorageService::Table,
                true,
                "DELETE",
                "/contoso/Tables('people')",
                true,
            ),
            (StorageService::Table, false, "POST", "/Tables", false),
            (
                StorageService::Table,
                false,
                "DELETE",
                "/people(PartitionKey='a',RowKey='b')",
                false,
            ),
            (StorageService::Queue, false, "DELETE", "/jobs", true),
            (StorageService::Queue, false, "DELETE", "/jobs/", true),
            (StorageService::Queue, true, "DELETE", "/contoso/jobs", true),
            (
                StorageService::Queue,
                false,
                "DELETE",
                "/jobs/messages",
                false,
            ),
            (
                StorageService::Queue,
                false,
                "DELETE",
                "/jobs/messages/7",
                false,
            ),
            (StorageService::Queue, false, "PUT", "/jobs", false),
            (StorageService::Blob, false, "DELETE", "/logo.png", false),
        ] {
            assert_eq!(
                many(service, path_style, method, path),
                wanted,
                "{method} {path}"
            );
        }
    }

    /// F5: what one write names is found by reads that name it otherwise.
    #[test]
    fn one_thing_has_one_path() {
        for (service, path, wanted) in [
            (StorageService::Queue, "/jobs/messages/7", "/jobs/messages"),
            (
                StorageService::Queue,
                "/jobs/%6Dessages/7",
                "/jobs/%6Dessages",
            ),
            (
                StorageService::Queue,
                "/messages/messages/7",
                "/messages/messages",
            ),
            (StorageService::Queue, "/jobs/messages", "/jobs/messages"),
            (StorageService::Queue, "/jobs", "/jobs"),
            (StorageService::Blob, "/$root/logo.png", "/logo.png"),
            (StorageService::Blob, "/%24root/logo.png", "/logo.png"),
            (StorageService::Blob, "/$web/a/index.html", "/a/index.html"),
            (StorageService::Web, "/a/index.html", "/a/index.html"),
            (StorageService::Blob, "/photos/$root/1", "/photos/$root/1"),
            (StorageService::Table, "/$root/1", "/$root/1"),
            (StorageService::Blob, "", ""),
            (StorageService::Blob, "/$root", "/$root"),
        ] {
            assert_eq!(object_path(service, path), wanted, "{path}");
        }
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
