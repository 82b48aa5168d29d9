//! What is refused when a service is built, because the layers could not keep their word.

use tower_geo_policy::config_error::ConfigError;
use tower_geo_policy::region::Regions;

/// Writes go to one region: retries, redirects and the gate follow one writer. A second one would
/// never be written to, yet would keep the gate open.
pub(crate) fn one_writer(regions: &Regions) -> Result<(), ConfigError> {
    let writers = regions
        .iter()
        .filter(|(_, region)| region.is_writable())
        .count();
    if writers > 1 {
        return Err(ConfigError::new(
            "region_that_writes",
            format!(
                "more than one region that takes writes is not supported: writes go to one region \
                 (got {writers})"
            ),
        ));
    }
    Ok(())
}

/// The evidence of a service is split into so many parts.
pub(crate) fn threads(threads: Option<u8>) -> Result<(), ConfigError> {
    match threads {
        Some(threads) if !(1..=64).contains(&threads) => Err(ConfigError::new(
            "threads",
            format!("must be 1 to 64 (got {threads})"),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::GeoService;

    /// R1, G1: writes go to one region, and the gate says whether that takes them.
    #[test]
    fn a_second_region_that_writes_is_refused() {
        let error = GeoService::static_copies("shop")
            .region_that_writes("eu", "https://eu.example.test", true)
            .region_that_writes("us", "https://us.example.test", true)
            .build()
            .unwrap_err();
        assert_eq!(error.setting(), "region_that_writes");
        assert!(error.to_string().contains("writes go to one region"));
    }

    #[test]
    fn a_senseless_number_of_threads_is_named() {
        for threads in [0, 65] {
            let error = GeoService::azure_storage("https://contoso.blob.core.windows.net")
                .threads(threads)
                .build()
                .unwrap_err();
            assert_eq!(error.setting(), "threads");
        }
    }
}
