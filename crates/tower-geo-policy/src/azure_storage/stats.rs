//! What Get Service Stats says: how far the secondary is (F1). Feature `stats`.

use std::fmt;

use roxmltree::{Document, Node};

use crate::freshness::{ReplicationStats, ReplicationStatus};

/// The query of Get Service Stats. It exists on the secondary only (I5).
pub const STATS_QUERY: &str = "restype=service&comp=stats";

/// No such document is longer; what is longer is no such document.
pub const STATS_LIMIT: usize = 64 * 1024;

/// Why an answer to Get Service Stats cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatsError(&'static str);

impl fmt::Display for StatsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for StatsError {}

/// Reads the body of an answer to Get Service Stats.
///
/// An empty time, and any time while the status is not *live*, is no time.
///
/// ```
/// use tower_geo_policy::azure_storage::parse_stats;
/// use tower_geo_policy::freshness::ReplicationStatus;
///
/// let stats = parse_stats(b"<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceStats>\
///     <GeoReplication><Status>live</Status>\
///     <LastSyncTime>Mon, 01 Jun 2026 10:00:00 GMT</LastSyncTime>\
///     </GeoReplication></StorageServiceStats>")?;
/// assert_eq!(stats.status(), ReplicationStatus::Live);
/// assert!(stats.last_sync().is_some());
/// # Ok::<(), tower_geo_policy::azure_storage::StatsError>(())
/// ```
///
/// # Errors
///
/// When it is not such a document: too long, no XML, a status or a time that nobody knows.
pub fn parse_stats(body: &[u8]) -> Result<ReplicationStats, StatsError> {
    if body.len() > STATS_LIMIT {
        return Err(StatsError("too long for the stats of a service"));
    }
    let text = std::str::from_utf8(body).map_err(|_| StatsError("not UTF-8"))?;
    let document =
        Document::parse(text.trim()).map_err(|_| StatsError("not a well-formed XML document"))?;
    let root = document.root_element();
    if root.tag_name().name() != "StorageServiceStats" {
        return Err(StatsError("not the stats of a service"));
    }
    let replication = child(root, "GeoReplication")
        .ok_or(StatsError("the stats say nothing about replication"))?;
    let value = |name| {
        let node = child(replication, name);
        node.and_then(|node| node.text()).unwrap_or_default().trim()
    };
    let status = match value("Status") {
        "live" => ReplicationStatus::Live,
        "bootstrap" => ReplicationStatus::Bootstrap,
        "unavailable" => ReplicationStatus::Unavailable,
        _ => return Err(StatsError("an unknown status of replication")),
    };
    let last_sync = match value("LastSyncTime") {
        "" => None,
        date => Some(
            httpdate::parse_http_date(date)
                .map_err(|_| StatsError("the time of the last synchronisation is no date"))?,
        ),
    };
    Ok(ReplicationStats::new(status, last_sync))
}

/// Compared without a name space: the service has used none, and may some day.
fn child<'a, 'input>(parent: Node<'a, 'input>, name: &str) -> Option<Node<'a, 'input>> {
    parent
        .children()
        .find(|node| node.is_element() && node.tag_name().name() == name)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use proptest::prelude::*;

    use super::*;

    fn document(inner: &str) -> String {
        format!(
            "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<StorageServiceStats>\
             <GeoReplication>{inner}</GeoReplication></StorageServiceStats>"
        )
    }

    fn read(inner: &str) -> Result<ReplicationStats, StatsError> {
        parse_stats(document(inner).as_bytes())
    }

    /// F1: the service begins its documents with a byte order mark.
    #[test]
    fn a_live_copy_tells_its_time() {
        let stats =
            read("<Status>live</Status><LastSyncTime>Sun, 29 Nov 2026 20:29:23 GMT</LastSyncTime>");
        let stats = stats.unwrap();
        assert_eq!(stats.status(), ReplicationStatus::Live);
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_984_163);
        assert_eq!(stats.last_sync(), Some(time));
    }

    /// F1: no value is unknown.
    #[test]
    fn an_empty_time_is_unknown() {
        for inner in [
            "<Status>live</Status><LastSyncTime></LastSyncTime>",
            "<Status>live</Status><LastSyncTime/>",
            "<Status>live</Status>",
            "<Status>bootstrap</Status><LastSyncTime>Sun, 29 Nov 2026 20:29:23 GMT</LastSyncTime>",
            "<Status> unavailable\n</Status>",
        ] {
            assert_eq!(read(inner).unwrap().last_sync(), None, "{inner}");
        }
    }

    #[test]
    fn what_is_no_stats_document_is_an_error() {
        for text in [
            "",
            "<html>hello</html>",
            "<StorageServiceStats/>",
            "<StorageServiceStats><GeoReplication>",
            "<!DOCTYPE x [<!ENTITY a \"b\">]><StorageServiceStats>&a;</StorageServiceStats>",
        ] {
            assert!(parse_stats(text.as_bytes()).is_err(), "{text}");
        }
        assert!(read("<Status>lively</Status>").is_err());
        assert!(read("<Status>live</Status><LastSyncTime>noon</LastSyncTime>").is_err());
        assert!(parse_stats(&[0xff, 0xfe]).is_err());
        assert!(parse_stats(&vec![b' '; STATS_LIMIT + 1]).is_err());
        let deep = format!("{}{}", "<a>".repeat(20_000), "</a>".repeat(9));
        assert!(parse_stats(deep.as_bytes().get(..60_000).unwrap()).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse_stats(&bytes);
        }

        #[test]
        fn any_inner_text_is_read_without_a_panic(inner in "[<>/a-zA-Z&;!\\[\\]' =\"-]{0,80}") {
            let _ = read(&inner);
        }
    }
}
