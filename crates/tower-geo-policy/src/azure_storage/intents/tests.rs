use http::HeaderValue;
use proptest::prelude::*;

use super::super::{AccountEndpoint, AzureStorage};
use super::*;
use crate::provider::Provider;

use StorageService::{Blob, Dfs, File, Queue, Table, Web};

type Headers<'a> = &'a [(&'static str, &'static str)];

fn rule(provider: AzureStorage, method: &str, path: &str, headers: Headers<'_>) -> Ruling {
    let headers: HeaderMap = headers
        .iter()
        .map(|(name, value)| {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            (name, HeaderValue::from_static(value))
        })
        .collect();
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let uri: Uri = format!("https://contoso.test{path}").parse().unwrap();
    let ruling = provider.intent(&method, &uri, &headers);
    assert!(
        !ruling.why.is_empty() && !ruling.why.ends_with('.'),
        "{}",
        ruling.why
    );
    ruling
}

fn intent_of(service: StorageService, method: &str, path: &str, headers: Headers<'_>) -> Intent {
    rule(AzureStorage::new(service), method, path, headers).intent
}

/// Endpoint, method, path, headers, intent, whether the gate stops it, whether it is redirectable
/// (none: not said).
type Explained = (
    &'static str,
    &'static str,
    &'static str,
    Headers<'static>,
    &'static str,
    bool,
    Option<bool>,
);

#[rustfmt::skip]
const EXPLAINED: &[Explained] = &[
    ("https://contoso.blob.core.windows.net", "GET", "/c/b", &[], "read", false, Some(true)),
    ("https://contoso.blob.core.windows.net", "HEAD", "/c/b?comp=metadata", &[], "read", false, Some(true)),
    ("https://contoso.blob.core.windows.net", "GET", "/c?restype=container&comp=list&prefix=a", &[], "read", false, Some(true)),
    ("https://contoso.blob.core.windows.net", "GET", "/?comp=properties&restype=account", &[], "read", false, Some(true)),
    ("https://contoso.blob.core.windows.net", "GET", "/c/b?comp=blocklist", &[], "read", false, Some(true)),
    ("https://contoso.blob.core.windows.net", "PUT", "/c/b", &[("x-ms-blob-type", "BlockBlob")], "write", true, Some(false)),
    ("https://contoso.blob.core.windows.net", "DELETE", "/c/b", &[], "write", true, Some(false)),
    ("https://contoso.blob.core.windows.net", "PUT", "/c/b?comp=lease", &[("x-ms-lease-action", "acquire")], "write", true, Some(false)),
    ("https://contoso.blob.core.windows.net", "POST", "/?comp=batch", &[], "write", true, Some(false)),
    ("https://contoso.blob.core.windows.net", "PURGE", "/c/b", &[], "write", true, Some(false)),
    ("https://contoso.blob.core.windows.net", "POST", "/c/b?comp=query", &[], "read", false, Some(false)),
    ("https://contoso.blob.core.windows.net", "POST", "/?restype=service&comp=userdelegationkey", &[], "neutral", false, Some(false)),
    ("https://contoso.blob.core.windows.net", "OPTIONS", "/c/b", &[], "neutral", false, Some(false)),
    ("https://contoso.blob.core.windows.net", "GET", "/?restype=service&comp=stats", &[], "read", false, None),
    ("https://contoso.queue.core.windows.net", "GET", "/orders/messages?numofmessages=8", &[], "write", true, Some(false)),
    ("https://contoso.queue.core.windows.net", "GET", "/orders/messages?numofmessages=8&peekonly=true", &[], "read", false, Some(true)),
    ("https://contoso.queue.core.windows.net", "GET", "/orders/messages?PeekOnly=true", &[], "read", false, Some(true)),
    ("https://contoso.queue.core.windows.net", "GET", "/orders/messages?peekonly=false", &[], "write", true, Some(false)),
    ("https://contoso.queue.core.windows.net", "GET", "/orders?comp=metadata", &[], "read", false, Some(true)),
    ("https://contoso.queue.core.windows.net", "POST", "/orders/messages", &[], "write", true, Some(false)),
    ("https://contoso.table.core.windows.net", "GET", "/Orders(PartitionKey='a',RowKey='1')", &[], "read", false, Some(true)),
    ("https://contoso.table.core.windows.net", "POST", "/$batch", &[], "write", true, Some(false)),
    ("https://contoso.table.core.windows.net", "GET", "/Orders()", &[("x-http-method", "MERGE")], "write", true, Some(false)),
    ("https://contoso.table.core.windows.net", "MERGE", "/Orders(PartitionKey='a',RowKey='1')", &[("if-match", "*")], "write", true, Some(false)),
    ("https://contoso.dfs.core.windows.net", "HEAD", "/fs/f?action=getStatus", &[], "read", false, Some(true)),
    ("https://contoso.dfs.core.windows.net", "PATCH", "/fs/f?action=append&position=0", &[], "write", true, Some(false)),
    ("https://contoso.z13.web.core.windows.net", "GET", "/index.html", &[], "read", false, Some(true)),
    ("https://contoso.file.core.windows.net", "PUT", "/share/f?comp=range", &[], "write", true, Some(false)),
    ("https://contoso.file.core.windows.net", "GET", "/share/f", &[], "read", false, Some(false)),
];

/// I1 to I6: what `geodrill explain` says.
#[test]
fn requests_are_explained() {
    for (endpoint, method, path, headers, intent, gated, redirectable) in EXPLAINED {
        let service = AccountEndpoint::parse(endpoint).unwrap().service().unwrap();
        let found = intent_of(service, method, path, headers);
        let case = format!("{service} {method} {path}");
        assert_eq!(found.is_read(), *intent == "read", "{case}");
        assert_eq!(found.is_write(), *intent == "write", "{case}");
        assert_eq!(found.is_neutral(), *intent == "neutral", "{case}");
        assert_eq!(found.is_write(), *gated, "{case}");
        if let Some(redirectable) = redirectable {
            assert_eq!(found.is_redirectable(), *redirectable, "{case}");
        }
    }
}

/// I1, for every service; I6 for `file`.
#[test]
fn only_get_and_head_are_reads() {
    for service in StorageService::ALL {
        let read = if service == File {
            Intent::READ_AT_WRITER
        } else {
            Intent::READ
        };
        for path in [
            "/",
            "/a",
            "/a/b",
            "/a?comp=metadata",
            "/a/b?comp=lease&restype=x",
        ] {
            assert_eq!(
                intent_of(service, "GET", path, &[]),
                read,
                "{service} {path}"
            );
            assert_eq!(
                intent_of(service, "HEAD", path, &[]),
                read,
                "{service} {path}"
            );
            for method in [
                "PUT", "POST", "DELETE", "PATCH", "MERGE", "PURGE", "TRACE", "get",
            ] {
                assert!(
                    intent_of(service, method, path, &[]).is_write(),
                    "{service} {method} {path}"
                );
            }
            // I3
            assert_eq!(intent_of(service, "OPTIONS", path, &[]), Intent::NEUTRAL);
        }
    }
}

/// I2: a GET of `/QUEUE/messages` is a write, however it is written.
#[test]
fn dequeue_is_a_write_and_peek_is_a_read() {
    for path in [
        "/q/messages",
        "/q/messages/",
        "//q//messages",
        "/q/%6Dessages",
        "/q/Messages",
        "/q/messages?numofmessages=32&visibilitytimeout=30",
        "/q/messages?peekonly=false",
        "/q/messages?peekonly",
        "/q/messages?peekonly=",
        "/q/messages?peekonly=TRUE",
        "/q/messages?peekonly=true&peekonly=false",
        "/q/messages?peekonly=true&peek%6Fnly=0",
        "/q/messages?xpeekonly=true",
        "/q/messages?a=peekonly=true",
        "/account/q/messages",
    ] {
        assert_eq!(
            intent_of(Queue, "GET", path, &[]),
            Intent::WRITE_ONCE,
            "{path}"
        );
    }
    for path in [
        "/q/messages?peekonly=true",
        "/q/messages?numofmessages=8&PEEKONLY=true",
        "/q/messages?peek%4Fnly=tru%65",
        "/q/messages?peekonly=true&peekonly=true",
        "/account/q/messages?peekonly=true",
        "/messages?comp=metadata",
        "/q?comp=acl",
        "/?comp=list",
        "/",
        "/q/messages/id",
    ] {
        assert_eq!(intent_of(Queue, "GET", path, &[]), Intent::READ, "{path}");
    }
    // Blobs and others may be called `messages`.
    assert_eq!(intent_of(Blob, "GET", "/c/messages", &[]), Intent::READ);
}

/// I2 where the account is in the path: a queue called `messages` can be told from the messages.
#[test]
fn a_queue_called_messages_is_known_below_an_account() {
    let queue = AzureStorage::new(Queue).path_style(true);
    for (method, path, expected) in [
        ("GET", "/account/messages?comp=metadata", Intent::READ),
        ("GET", "/account/messages/messages", Intent::WRITE_ONCE),
        ("GET", "/account/q/messages", Intent::WRITE_ONCE),
        ("GET", "/account/q/messages?peekonly=true", Intent::READ),
        ("PUT", "/account/q", Intent::WRITE_HARMLESS),
        ("DELETE", "/account/messages", Intent::WRITE_HARMLESS),
        ("DELETE", "/account/q/messages", Intent::WRITE_ONCE),
        ("DELETE", "/account/messages/messages", Intent::WRITE_ONCE),
        (
            "DELETE",
            "/account/messages/messages/id?popreceipt=r",
            Intent::WRITE_HARMLESS,
        ),
        ("PUT", "/account", Intent::WRITE_ONCE),
    ] {
        assert_eq!(
            rule(queue, method, path, &[]).intent,
            expected,
            "{method} {path}"
        );
    }
    let blob = AzureStorage::new(Blob).path_style(true);
    assert_eq!(
        rule(blob, "PUT", "/account", &[]).intent,
        Intent::WRITE_ONCE
    );
    assert_eq!(
        rule(blob, "PUT", "/account/b", &[]).intent,
        Intent::WRITE_HARMLESS
    );
    let table = AzureStorage::new(Table).path_style(true);
    assert_eq!(
        rule(table, "POST", "/account/Tables", &[]).intent,
        Intent::WRITE_HARMLESS
    );
    assert_eq!(
        rule(table, "POST", "/account/Orders", &[]).intent,
        Intent::WRITE_ONCE
    );
}

/// I3: only for blobs, and only with POST.
#[test]
fn blob_queries_stay_and_delegation_keys_are_neutral() {
    assert_eq!(
        intent_of(Blob, "POST", "/c/b?comp=query", &[]),
        Intent::READ_AT_WRITER
    );
    assert_eq!(
        intent_of(Blob, "POST", "/c/b?timeout=3&COMP=query&snapshot=x", &[]),
        Intent::READ_AT_WRITER
    );
    assert_eq!(
        intent_of(
            Blob,
            "POST",
            "/?comp=userdelegationkey&restype=service",
            &[]
        ),
        Intent::NEUTRAL
    );
    for (service, method, path) in [
        (Blob, "POST", "/?comp=userdelegationkey"),
        (Blob, "PUT", "/c/b?comp=query"),
        (Blob, "POST", "/c/b?comp=query&comp=batch"),
        (Blob, "POST", "/c?restype=container&comp=batch"),
        (Blob, "POST", "/c/b?comp=queryx"),
        (Queue, "POST", "/q?comp=query"),
        (Table, "POST", "/t?comp=query"),
        (Table, "POST", "/?restype=service&comp=userdelegationkey"),
    ] {
        assert_eq!(
            intent_of(service, method, path, &[]),
            Intent::WRITE_ONCE,
            "{method} {path}"
        );
    }
}

/// I4: any override of the method, whatever both methods are.
#[test]
fn an_overridden_method_is_a_write() {
    for method in ["GET", "HEAD", "POST", "OPTIONS", "DELETE", "PUT"] {
        for name in ["x-http-method", "x-http-method-override"] {
            for value in ["MERGE", "DELETE", "GET", ""] {
                let path = "/Orders(PartitionKey='a',RowKey='1')";
                let found = intent_of(Table, method, path, &[(name, value)]);
                assert_eq!(found, Intent::WRITE_ONCE, "{method} {name} {value}");
            }
        }
    }
    assert_eq!(intent_of(Table, "POST", "/$batch", &[]), Intent::WRITE_ONCE);
    // Other services know nothing of that header.
    assert_eq!(
        intent_of(Blob, "GET", "/c/b", &[("x-http-method", "DELETE")]),
        Intent::READ
    );
}

/// I5
#[test]
fn statistics_are_read_at_the_copy() {
    for service in StorageService::ALL {
        for path in [
            "/?restype=service&comp=stats",
            "/?comp=stats&timeout=30&restype=service",
            "/account/?Restype=service&Comp=st%61ts",
            "/?restype=service&comp=stats&sv=2024-01-01&sig=a%2Bb%3D",
        ] {
            assert_eq!(
                intent_of(service, "GET", path, &[]),
                Intent::READ_AT_COPY,
                "{path}"
            );
        }
    }
    for path in [
        "/?restype=service&comp=properties",
        "/?comp=stats",
        "/c/b?x=comp=stats",
        "/stats",
    ] {
        assert_eq!(intent_of(Blob, "GET", path, &[]), Intent::READ, "{path}");
    }
}

const COPY: (&str, &str) = (
    "x-ms-copy-source",
    "https://fabrikam.blob.core.windows.net/c/b",
);
const BLOCK_BLOB: (&str, &str) = ("x-ms-blob-type", "BlockBlob");

type Write = (StorageService, &'static str, &'static str, Headers<'static>);

#[rustfmt::skip]
const HARMLESS: &[Write] = &[
    // put blob, from a URL only with its type
    (Blob, "PUT", "/c/b", &[BLOCK_BLOB]),
    (Blob, "PUT", "/c/b", &[]),
    (Blob, "PUT", "/c/d/e/f?timeout=30&sv=1&sig=x", &[BLOCK_BLOB]),
    (Blob, "PUT", "/in-root", &[BLOCK_BLOB]),
    (Blob, "PUT", "/c/b", &[BLOCK_BLOB, COPY]),
    (Blob, "PUT", "/c/b", &[("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "512")]),
    // put block, from a URL too; put block list; put page
    (Blob, "PUT", "/c/b?comp=block&blockid=QQ==", &[]),
    (Blob, "PUT", "/c/b?comp=block&blockid=QQ==", &[COPY]),
    (Blob, "PUT", "/c/b?comp=blocklist", &[]),
    (Blob, "PUT", "/c/b?COMP=BlockList", &[]),
    (Blob, "PUT", "/c/b?comp=page", &[("x-ms-page-write", "update")]),
    (Blob, "PUT", "/c/b?comp=page", &[("x-ms-page-write", "clear")]),
    // append block with a position
    (Blob, "PUT", "/c/b?comp=appendblock", &[("x-ms-blob-condition-appendpos", "0")]),
    // set metadata, properties, tier, tags
    (Blob, "PUT", "/c/b?comp=metadata", &[]),
    (Blob, "PUT", "/c?restype=container&comp=metadata", &[]),
    (Blob, "PUT", "/c/b?comp=properties", &[]),
    (Blob, "PUT", "/c/b?comp=properties", &[("x-ms-sequence-number-action", "max")]),
    (Blob, "PUT", "/c/b?comp=tier", &[]),
    (Blob, "PUT", "/c/b?comp=tags&versionid=1", &[]),
    // delete
    (Blob, "DELETE", "/c/b", &[]),
    (Blob, "DELETE", "/c/b?snapshot=2026-01-01T00:00:00.0000000Z", &[("x-ms-delete-snapshots", "only")]),
    // create and delete of containers
    (Blob, "PUT", "/c?restype=container", &[]),
    (Blob, "DELETE", "/c?restype=container", &[]),
    (Dfs, "PUT", "/fs?resource=filesystem", &[]),
    (Dfs, "DELETE", "/fs?resource=filesystem", &[]),
    // dfs: append at a position, flush
    (Dfs, "PATCH", "/fs/f?action=append&position=0", &[]),
    (Dfs, "PATCH", "/fs/f?position=4096&action=append&flush=true", &[]),
    (Dfs, "PATCH", "/fs/f?action=flush&position=8192&close=true", &[]),
    // table: put entity, delete; create and delete of tables
    (Table, "PUT", "/Orders(PartitionKey='a',RowKey='1')", &[]),
    (Table, "PUT", "/Orders(PartitionKey='a',RowKey='1')", &[("if-match", "*")]),
    (Table, "PUT", "/Orders(PartitionKey='a/b(c)',RowKey='1')?timeout=3", &[]),
    (Table, "PUT", "/Orders%28PartitionKey=%27a%27,RowKey=%271%27%29", &[]),
    (Table, "DELETE", "/Orders(PartitionKey='a',RowKey='1')", &[("if-match", "*")]),
    (Table, "POST", "/Tables", &[]),
    (Table, "DELETE", "/Tables('Orders')", &[]),
    // queue: delete message; create and delete of queues
    (Queue, "DELETE", "/q/messages/4e7f?popreceipt=AgAAAAMAAAA%3d", &[]),
    (Queue, "DELETE", "/account/q/messages/4e7f?popreceipt=r", &[]),
    (Queue, "PUT", "/q", &[]),
    (Queue, "DELETE", "/q?timeout=30", &[]),
];

#[rustfmt::skip]
const ONCE: &[Write] = &[
    // append block without its condition
    (Blob, "PUT", "/c/b?comp=appendblock", &[]),
    (Blob, "PUT", "/c/b?comp=appendblock", &[("x-ms-blob-condition-appendpos", "")]),
    (Blob, "PUT", "/c/b?comp=appendblock", &[("x-ms-blob-condition-maxsize", "4096")]),
    (Blob, "PUT", "/c/b?comp=appendblock", &[COPY]),
    // lease, snapshot, copy, rename
    (Blob, "PUT", "/c/b?comp=lease", &[("x-ms-lease-action", "acquire")]),
    (Blob, "PUT", "/c?restype=container&comp=lease", &[("x-ms-lease-action", "renew")]),
    (Blob, "PUT", "/c/b?comp=snapshot", &[]),
    (Blob, "PUT", "/c/b", &[COPY]),
    (Blob, "PUT", "/c/b", &[COPY, ("x-ms-requires-sync", "true")]),
    (Blob, "PUT", "/c/b?comp=copy&copyid=1", &[("x-ms-copy-action", "abort")]),
    (Blob, "PUT", "/c/b?comp=incrementalcopy", &[COPY]),
    (Blob, "PUT", "/c/b?comp=page", &[COPY]),
    (Blob, "PUT", "/c/b", &[("x-ms-rename-source", "/c/a")]),
    (Blob, "PUT", "/c?restype=container&comp=rename", &[]),
    (Dfs, "PUT", "/fs/b", &[("x-ms-rename-source", "/fs/a")]),
    (Dfs, "PUT", "/fs/b?mode=legacy", &[("x-ms-rename-source", "/fs/a")]),
    // batch, POST, PATCH and MERGE otherwise
    (Blob, "POST", "/?comp=batch", &[]),
    (Blob, "POST", "/c/b", &[]),
    (Blob, "PATCH", "/c/b", &[]),
    (Table, "POST", "/$batch", &[]),
    (Table, "POST", "/Orders", &[]),
    (Table, "POST", "/Tables('Orders')", &[]),
    (Table, "MERGE", "/Orders(PartitionKey='a',RowKey='1')", &[("if-match", "*")]),
    (Table, "PATCH", "/Orders(PartitionKey='a',RowKey='1')", &[]),
    (Dfs, "POST", "/fs/f", &[("x-ms-lease-action", "acquire")]),
    // put message, update message, dequeue, clear
    (Queue, "POST", "/q/messages", &[]),
    (Queue, "PUT", "/q/messages/4e7f?popreceipt=r&visibilitytimeout=30", &[]),
    (Queue, "GET", "/q/messages", &[]),
    (Queue, "DELETE", "/q/messages", &[]),
    (Queue, "DELETE", "/account/q/messages", &[]),
    // what V1 does not list
    (Blob, "PUT", "/c?restype=container&comp=acl", &[]),
    (Blob, "PUT", "/?restype=service&comp=properties", &[]),
    (Blob, "PUT", "/c/b?comp=undelete", &[]),
    (Blob, "PUT", "/c/b?comp=seal", &[]),
    (Blob, "PUT", "/c/b?comp=expiry", &[]),
    (Blob, "PUT", "/c/b?comp=legalhold", &[]),
    (Blob, "PUT", "/c/b?comp=tomorrow", &[]),
    (Blob, "PUT", "/c/b?comp=", &[]),
    (Blob, "PUT", "/c/b?comp", &[]),
    (Blob, "PUT", "/c/b?comp=metadata&comp=lease", &[]),
    (Blob, "PUT", "/c/b?comp=metadata&c%6Fmp=lease", &[]),
    (Blob, "PUT", "/c/b?restype=tomorrow", &[]),
    (Blob, "PUT", "/c/d?resource=directory", &[]),
    (Blob, "PUT", "/", &[]),
    (Blob, "DELETE", "/", &[]),
    (Blob, "DELETE", "/c/b?comp=immutabilityPolicies", &[]),
    (Blob, "PUT", "/c/b?comp=properties", &[("x-ms-sequence-number-action", "increment")]),
    (Dfs, "PATCH", "/fs/f?action=append", &[]),
    (Dfs, "PATCH", "/fs/f?action=append&position=", &[]),
    (Dfs, "PATCH", "/fs/f?action=append&position=0", &[("x-ms-lease-action", "acquire")]),
    (Dfs, "PATCH", "/fs/f?action=setProperties", &[]),
    (Dfs, "PATCH", "/fs/f?action=setAccessControl", &[]),
    (Dfs, "PUT", "/fs/f?resource=file", &[]),
    (Dfs, "DELETE", "/fs/d?recursive=true", &[]),
    (Queue, "PUT", "/q?comp=metadata", &[]),
    (Queue, "PUT", "/q?comp=acl", &[]),
    (Queue, "PUT", "/?restype=service&comp=properties", &[]),
    (Table, "PUT", "/Orders?comp=acl", &[]),
    (Table, "PUT", "/Orders", &[]),
    (Table, "PUT", "/Orders()", &[]),
    (Table, "DELETE", "/Orders", &[]),
    (File, "PUT", "/share?restype=share", &[]),
    (File, "PUT", "/share/f?comp=range", &[]),
    (File, "DELETE", "/share/f", &[]),
    (Web, "PUT", "/index.html", &[]),
    (Web, "DELETE", "/index.html", &[]),
];

/// V1: the operations that are known to give the same result twice.
#[test]
fn listed_writes_are_harmless_to_repeat() {
    for (service, method, path, headers) in HARMLESS {
        let found = intent_of(*service, method, path, headers);
        assert_eq!(
            found,
            Intent::WRITE_HARMLESS,
            "{service} {method} {path} {headers:?}"
        );
    }
}

/// V1: "never by itself".
#[test]
fn other_writes_may_not_arrive_twice() {
    for (service, method, path, headers) in ONCE {
        let found = intent_of(*service, method, path, headers);
        assert_eq!(
            found,
            Intent::WRITE_ONCE,
            "{service} {method} {path} {headers:?}"
        );
    }
}

/// V1: `If-None-Match`, or `If-Match` with an ETag, makes any write harmless, and no read a write.
#[test]
fn conditions_make_any_write_harmless() {
    for (service, method, path, headers) in ONCE.iter().chain(HARMLESS) {
        for condition in [
            ("if-none-match", "*"),
            ("if-none-match", "\"1\""),
            ("if-match", "\"1\""),
        ] {
            let mut headers: Vec<_> = headers
                .iter()
                .filter(|(name, _)| *name != "if-match")
                .copied()
                .collect();
            headers.push(condition);
            let found = intent_of(*service, method, path, &headers);
            assert_eq!(
                found,
                Intent::WRITE_HARMLESS,
                "{service} {method} {path} {headers:?}"
            );
        }
    }
    for (service, method, path, headers) in ONCE {
        if !headers.iter().any(|(name, _)| *name == "if-match") {
            let mut headers = headers.to_vec();
            headers.push(("if-match", "*"));
            let found = intent_of(*service, method, path, &headers);
            assert_eq!(
                found,
                Intent::WRITE_ONCE,
                "{service} {method} {path} {headers:?}"
            );
        }
    }
    assert_eq!(
        intent_of(Blob, "GET", "/c/b", &[("if-none-match", "\"1\"")]),
        Intent::READ
    );
}

proptest! {
    /// I1, R1: whatever path and query are, no method but GET and HEAD is a read that may be
    /// redirected.
    #[test]
    fn no_other_method_is_ever_redirectable(
        service in prop::sample::select(StorageService::ALL.to_vec()),
        method in prop::sample::select(vec!["PUT", "POST", "DELETE", "PATCH", "MERGE", "OPTIONS", "PURGE"]),
        path in "(/[a-z$%()='0-9]{0,9}){0,4}",
        query in "([a-z]{0,4}(comp|restype|peekonly|action)?=?(query|stats|service|true|append|%[0-9a-f]{2})?&?){0,4}",
        path_style in any::<bool>(),
    ) {
        let uri = format!("https://contoso.test{path}?{query}").parse::<Uri>();
        prop_assume!(uri.is_ok());
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let found = AzureStorage::new(service)
            .path_style(path_style)
            .intent(&method, &uri.unwrap(), &HeaderMap::new());
        prop_assert!(!found.intent.is_redirectable());
    }

    /// I2: no spelling of the path or of other parameters makes a dequeue a read.
    #[test]
    fn a_dequeue_is_a_write_however_it_is_spelled(
        queue in "[a-z][a-z0-9-]{2,20}",
        encode in prop::collection::vec(any::<bool>(), 8),
        query in "([a-z]{1,9}=[a-z0-9%]{0,4}&?){0,4}",
        path_style in any::<bool>(),
    ) {
        prop_assume!(!query.contains("peekonly=true"));
        let messages: String = "messages"
            .bytes()
            .zip(encode)
            .map(|(byte, encode)| if encode { format!("%{byte:02x}") } else { char::from(byte).to_string() })
            .collect();
        let account = if path_style { "/account" } else { "" };
        let uri = format!("https://contoso.test{account}/{queue}/{messages}?{query}").parse::<Uri>().unwrap();
        let found = AzureStorage::new(Queue)
            .path_style(path_style)
            .intent(&Method::GET, &uri, &HeaderMap::new());
        prop_assert_eq!(found.intent, Intent::WRITE_ONCE);
    }
}
