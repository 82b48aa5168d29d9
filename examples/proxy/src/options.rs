//! The command line.

use std::net::SocketAddr;

use clap::Parser;
use tower_geo::{Account, AccountBuilder, ConfigError, GeoService, LocationMode, StorageService};

/// Gives any client of a storage account, in any language, geo-redundancy.
///
/// Point the endpoints of a client at it: `http://127.0.0.1:10000` is the account's blob endpoint.
/// With endpoints given one by one, only those services are served.
#[derive(Debug, Parser)]
#[command(
    name = "geo-proxy",
    version,
    after_help = "Examples:\n  geo-proxy --account contoso\n  geo-proxy --blob-endpoint \
                  https://files.contoso.test,https://replica.contoso.test --mode secondary-then-primary"
)]
pub(crate) struct Options {
    /// The account, of the public cloud unless --suffix says otherwise.
    #[arg(
        long,
        value_name = "NAME",
        required_unless_present_any = ["blob_endpoint", "queue_endpoint", "table_endpoint"],
        conflicts_with_all = ["blob_endpoint", "queue_endpoint", "table_endpoint"]
    )]
    account: Option<String>,
    /// The end of the account's host names [default: core.windows.net].
    #[arg(long, requires = "account")]
    suffix: Option<String>,
    /// The primary, and the secondary if it does not follow from it.
    #[arg(long, value_name = "URL[,URL]")]
    blob_endpoint: Option<String>,
    /// The same for queues.
    #[arg(long, value_name = "URL[,URL]")]
    queue_endpoint: Option<String>,
    /// The same for tables.
    #[arg(long, value_name = "URL[,URL]")]
    table_endpoint: Option<String>,
    /// Where reads go: primary-only, primary-then-secondary, secondary-only, secondary-then-primary.
    #[arg(long, default_value = "primary-then-secondary")]
    mode: LocationMode,
    /// Where to listen for blobs.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:10000")]
    blob: SocketAddr,
    /// Where to listen for queues.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:10001")]
    queue: SocketAddr,
    /// Where to listen for tables.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:10002")]
    table: SocketAddr,
    /// How many bytes of each request body are kept, to send it again.
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20)]
    pub(crate) keep: usize,
    /// How long requests under way may go on after the first Ctrl-C or SIGTERM; a second ends them.
    #[arg(long, value_name = "SECONDS", default_value_t = 25)]
    pub(crate) grace: u64,
}

const SERVICES: [StorageService; 3] = [
    StorageService::Blob,
    StorageService::Queue,
    StorageService::Table,
];

impl Options {
    /// Each service that is served, and where.
    pub(crate) fn services(&self) -> Result<Vec<(GeoService, SocketAddr)>, ConfigError> {
        if let Some(name) = &self.account {
            let account = self.account(Account::azure_storage(name)).build()?;
            let services = [account.blob(), account.queue(), account.table()];
            return Ok(services.into_iter().zip(self.listen()).collect());
        }
        let mut services = Vec::new();
        for ((service, listen), urls) in SERVICES
            .into_iter()
            .zip(self.listen())
            .zip(self.endpoints())
        {
            let Some(urls) = urls else { continue };
            let (primary, secondary) = match urls.split_once(',') {
                Some((primary, secondary)) => (primary, Some(secondary)),
                None => (urls.as_str(), None),
            };
            let mut builder = GeoService::azure_storage(primary)
                .storage_service(service)
                .location_mode(self.mode);
            if let Some(secondary) = secondary {
                builder = builder.secondary(secondary);
            }
            services.push((builder.build()?, listen));
        }
        Ok(services)
    }

    const fn listen(&self) -> [SocketAddr; 3] {
        [self.blob, self.queue, self.table]
    }

    const fn endpoints(&self) -> [&Option<String>; 3] {
        [
            &self.blob_endpoint,
            &self.queue_endpoint,
            &self.table_endpoint,
        ]
    }

    fn account(&self, builder: AccountBuilder) -> AccountBuilder {
        let builder = builder.location_mode(self.mode);
        match &self.suffix {
            Some(suffix) => builder.endpoint_suffix(suffix),
            None => builder,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Result<Options, clap::Error> {
        Options::try_parse_from(std::iter::once("geo-proxy").chain(line.split_whitespace()))
    }

    fn services(line: &str) -> Vec<(String, u16)> {
        let services = options(line).unwrap().services().unwrap().into_iter();
        services
            .map(|(service, addr)| (service.name().to_owned(), addr.port()))
            .collect()
    }

    #[test]
    fn account_has_three_services() {
        let all = services("--account contoso --queue 127.0.0.1:7 --mode secondary-only");
        let expected = [("blob", 10_000), ("queue", 7), ("table", 10_002)];
        assert_eq!(all, expected.map(|(name, port)| (name.to_owned(), port)));
    }

    #[test]
    fn endpoints_are_served_one_by_one() {
        let all = services("--table-endpoint http://127.0.0.1:1/a,http://127.0.0.1:2/a-secondary");
        assert_eq!(all, [("table".into(), 10_002)]);
    }

    #[test]
    fn senseless_lines_are_refused_with_a_reason() {
        for (line, reason) in [
            ("", "--account"),
            ("--account", "value is required"),
            ("--account a --blob-endpoint b", "cannot be used with"),
            ("--colour red", "--colour"),
            ("--account a --mode nowhere", "--mode"),
            ("--account a --keep much", "--keep"),
            ("--account a --grace ever", "--grace"),
            ("--account a --blob here", "--blob"),
        ] {
            let error = options(line).unwrap_err().to_string();
            assert!(error.contains(reason), "{line}: {error}");
        }
    }
}
