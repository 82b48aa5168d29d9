//! The command line.

use std::net::SocketAddr;

use tower_geo::{Account, AccountBuilder, ConfigError, GeoService, LocationMode, StorageService};

pub(crate) const HELP: &str = "\
geo-proxy: gives any client of a storage account geo-redundancy

  geo-proxy --account NAME [OPTION]...
  geo-proxy --blob-endpoint URL [OPTION]...

  --account NAME              the account, of the public cloud
  --suffix SUFFIX             the end of its host names (default: core.windows.net)
  --blob-endpoint URL[,URL]   the primary, and the secondary if it does not follow from it;
  --queue-endpoint URL[,URL]  the same for the others
  --table-endpoint URL[,URL]
  --mode MODE                 where reads go (default: primary-then-secondary)
  --blob ADDRESS              where to listen (default: 127.0.0.1:10000)
  --queue ADDRESS             (default: 127.0.0.1:10001)
  --table ADDRESS             (default: 127.0.0.1:10002)
  --keep BYTES                of each request body, to send it again (default: 1048576)

Point the endpoints of a client at it: http://127.0.0.1:10000 is the account's blob endpoint. With
endpoints given one by one, only those services are served.";

/// How the proxy is run.
#[derive(Debug)]
pub(crate) struct Options {
    account: Option<String>,
    suffix: Option<String>,
    endpoints: [Option<String>; 3],
    mode: LocationMode,
    listen: [SocketAddr; 3],
    pub(crate) keep: usize,
}

const SERVICES: [StorageService; 3] = [
    StorageService::Blob,
    StorageService::Queue,
    StorageService::Table,
];

/// Reads the arguments; `None` if help is wanted.
pub(crate) fn parse(args: impl IntoIterator<Item = String>) -> Result<Option<Options>, String> {
    let mut options = Options {
        account: None,
        suffix: None,
        endpoints: [None, None, None],
        mode: LocationMode::PrimaryThenSecondary,
        listen: [10_000, 10_001, 10_002].map(|port| ([127, 0, 0, 1], port).into()),
        keep: 1 << 20,
    };
    let mut args = args.into_iter().peekable();
    if args.peek().is_none() {
        return Ok(None);
    }
    while let Some(option) = args.next() {
        if matches!(option.as_str(), "--help" | "-h") {
            return Ok(None);
        }
        let value = args
            .next()
            .ok_or_else(|| format!("{option} needs a value"))?;
        let wrong = |message: &dyn std::fmt::Display| format!("{option} {value}: {message}");
        let address = || value.parse::<SocketAddr>().map_err(|error| wrong(&error));
        match option.as_str() {
            "--account" => options.account = Some(value),
            "--suffix" => options.suffix = Some(value),
            "--blob-endpoint" => options.endpoints[0] = Some(value),
            "--queue-endpoint" => options.endpoints[1] = Some(value),
            "--table-endpoint" => options.endpoints[2] = Some(value),
            "--mode" => options.mode = value.parse().map_err(|error| wrong(&error))?,
            "--blob" => options.listen[0] = address()?,
            "--queue" => options.listen[1] = address()?,
            "--table" => options.listen[2] = address()?,
            "--keep" => options.keep = value.parse().map_err(|error| wrong(&error))?,
            _ => return Err(format!("there is no option {option}")),
        }
    }
    let given = options.endpoints.iter().any(Option::is_some);
    match (&options.account, given) {
        (None, false) => Err("say which account: --account, or an endpoint".to_owned()),
        (Some(_), true) => Err("say --account or endpoints, not both".to_owned()),
        _ => Ok(Some(options)),
    }
}

impl Options {
    /// Each service that is served, and where.
    pub(crate) fn services(&self) -> Result<Vec<(GeoService, SocketAddr)>, ConfigError> {
        if let Some(name) = &self.account {
            let account = self.account(Account::azure_storage(name)).build()?;
            let services = [account.blob(), account.queue(), account.table()];
            return Ok(services.into_iter().zip(self.listen).collect());
        }
        let mut services = Vec::new();
        for ((service, listen), urls) in SERVICES.into_iter().zip(self.listen).zip(&self.endpoints)
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

    fn options(line: &str) -> Result<Option<Options>, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    fn services(line: &str) -> Vec<(String, u16)> {
        let Ok(Some(options)) = options(line) else {
            panic!("{line}");
        };
        let services = options.services().unwrap().into_iter();
        services
            .map(|(service, addr)| (service.name().to_owned(), addr.port()))
            .collect()
    }

    #[test]
    fn account_has_three_services() {
        let all = services("--account contoso --queue 127.0.0.1:7 --mode secondary-only");
        assert_eq!(
            all,
            [
                ("blob".into(), 10_000),
                ("queue".into(), 7),
                ("table".into(), 10_002)
            ]
        );
    }

    #[test]
    fn endpoints_are_served_one_by_one() {
        let all = services("--table-endpoint http://127.0.0.1:1/a,http://127.0.0.1:2/a-secondary");
        assert_eq!(all, [("table".into(), 10_002)]);
    }

    #[test]
    fn senseless_lines_are_refused_with_a_reason() {
        for (line, reason) in [
            ("--keep 0", "which account"),
            ("--account", "needs a value"),
            ("--account a --blob-endpoint b", "not both"),
            ("--colour red", "no option"),
            ("--account a --mode nowhere", "--mode nowhere"),
            ("--account a --keep much", "--keep much"),
            ("--account a --blob here", "--blob here"),
        ] {
            let error = options(line).unwrap_err();
            assert!(error.contains(reason), "{line}: {error}");
        }
        for line in ["", "--account a --help"] {
            assert!(matches!(options(line), Ok(None)), "{line}");
        }
    }
}
