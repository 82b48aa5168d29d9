//! Azure Cosmos DB: the account with several regions, seen from its client.
//!
//! | question | file | rules |
//! |---|---|---|
//! | is a request a read or a write, and of what? | `intents.rs` | I7, C2 |
//! | what does an answer mean? | `verdicts.rs` | C5 to C9, C15 |
//! | are two names the same region, and what is its host? | `names.rs` | C3 |
//! | what does the account document say? | `account.rs` | C3 |
//! | which regions are there, under which numbers? | `topology.rs` | C3, C4, C13 |
//! | in which order are they tried? | `routing.rs` | C1, C2, C10 to C12 |
//! | which regions are left for last? | `marks.rs` | C10 |
//! | when is the account read again? | `account_reads.rs` | C3, C5, C7, C8 |
//! | what do all users of an account share? | `state.rs` | C3, C4, C7 |
//! | what comes next in this operation? | `operation/` | C4 to C9, C15, T3 to T6, T9 |
//! | what is signed with the account's key? | `signature.rs` | |
//!
//! This is the gateway protocol over HTTP. What needs the map of partitions is not here: direct
//! mode, breakers and failover per partition, Gateway V2 (C14).
//!
//! ```
//! use http::StatusCode;
//! use tower_geo_policy::cosmos::{AccountDocument, AccountSettings, Marks, Route, Topology};
//! use tower_geo_policy::region::Endpoint;
//! use tower_geo_policy::tick::Tick;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let settings = AccountSettings::new().preferred(["West US"]);
//! let given = Endpoint::parse("https://contoso.documents.azure.com")?;
//! let answer = br#"{
//!     "writableLocations": [
//!         {"name": "East US", "databaseAccountEndpoint": "https://contoso-eastus.documents.azure.com:443/"}],
//!     "readableLocations": [
//!         {"name": "East US", "databaseAccountEndpoint": "https://contoso-eastus.documents.azure.com:443/"},
//!         {"name": "West US", "databaseAccountEndpoint": "https://contoso-westus.documents.azure.com:443/"}]}"#;
//! let document = AccountDocument::of_answer(StatusCode::OK, answer)?;
//! let topology = Topology::given(given, &settings)?.with_document(&document, &settings)?.topology;
//!
//! let order = topology.order(Route::Read, &Marks::new(), topology.excluded(), Tick::ZERO)?;
//! let names: Vec<_> = order.iter().filter_map(|region| topology.name(region)).collect();
//! assert_eq!(names, ["West US", "East US"]);
//! # Ok(())
//! # }
//! ```

mod account;
mod account_reads;
mod intents;
mod marks;
mod names;
pub mod operation;
mod routing;
mod settings;
mod signature;
mod state;
mod topology;
#[cfg(test)]
mod vectors;
mod verdicts;

pub use self::account::{AccountDocument, DocumentError, Location};
pub use self::account_reads::{Cause, Finished, READ_SPACING, ReadEnd, ReadStep};
pub use self::intents::{Cosmos, RequestKind};
pub use self::marks::Marks;
pub use self::names::{GLOBAL, RegionName, regional_endpoint, regional_host};
pub use self::routing::{AllExcluded, Order, Route};
pub use self::settings::AccountSettings;
pub use self::signature::{authorization_token, resource_of, string_to_sign, string_to_sign_for};
pub use self::state::{AccountRead, AccountState, AfterAnswer};
pub use self::topology::{NewTopology, Topology};
pub use self::verdicts::{
    ALLOW_TENTATIVE_WRITES, Meaning, SUB_STATUS, is_final_for_hedge, sub_status,
};
