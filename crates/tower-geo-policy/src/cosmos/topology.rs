//! Which regions an account has, under numbers that last (C3, C4, C13).

use crate::config_error::ConfigError;
use crate::operation::RegionRef;
use crate::region::{Endpoint, Region, RegionId, Regions};
use crate::tick::Tick;

use super::account::{AccountDocument, DocumentError, Location};
use super::marks::Marks;
use super::names::{GLOBAL, RegionName};
use super::routing::{Order, bit, preferred_first};
use super::settings::AccountSettings;

/// The regions of an account as one account document gave them. It never changes: an operation
/// uses one until it has asked for another.
///
/// # Numbers
///
/// A region keeps its number ([`RegionId`]) for as long as the service lives, also when it leaves
/// the account and returns, so that its circuits, its budget and its marks are found again. Number
/// 0 is the given host. It is one of the account's regions only if the account says so; otherwise
/// it is called [`GLOBAL`] and gets no data (C4).
///
/// There are 16 numbers. An account with more regions is used with those that take writes, then
/// the preferred, then the first of the rest. The number of a region that has left is given to
/// another when there is no free one.
#[derive(Clone, Debug)]
pub struct Topology {
    regions: Regions,
    readable: Order,
    writable: Order,
    reads: Order,
    writes: Order,
    excluded: u16,
    multi_write: bool,
    hedging_disabled: bool,
    known: bool,
}

/// A topology that was made from the one before.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NewTopology {
    /// The topology.
    pub topology: Topology,
    /// A bit for each number that means another region now.
    pub reassigned: u16,
}

/// One number and what it means.
struct Slot {
    name: Box<str>,
    endpoint: Endpoint,
    listed: bool,
}

impl Topology {
    /// What is known before the account was asked: the given host. With discovery off that is all
    /// that there will ever be (C4).
    ///
    /// # Errors
    ///
    /// When the host cannot be that of a service.
    pub fn given(given: Endpoint, settings: &AccountSettings) -> Result<Self, ConfigError> {
        let global = Region::new(GLOBAL, given).writable(true);
        let only = Order::from_iter([RegionId::FIRST]);
        Ok(Self {
            regions: Regions::new(vec![global])?,
            readable: only,
            writable: only,
            reads: only,
            writes: only,
            excluded: 0,
            multi_write: false,
            hedging_disabled: false,
            known: !settings.get_discovery(),
        })
    }

    /// The topology that follows from an account document.
    ///
    /// # Errors
    ///
    /// When the document cannot be used: it would take requests off TLS, say. This topology then
    /// goes on to hold.
    pub fn with_document(
        &self,
        document: &AccountDocument,
        settings: &AccountSettings,
    ) -> Result<NewTopology, DocumentError> {
        let (slots, mut reassigned) = self.slots_for(document, settings);
        let number = |location: &Location| {
            let name = RegionName::new(location.name());
            let found = slots.iter().position(|slot| {
                slot.listed && (name.is(&slot.name) || slot.endpoint == *location.endpoint())
            });
            found.map(number_of)
        };
        let readable: Order = document.readable().iter().filter_map(number).collect();
        let writable: Order = document.writable().iter().filter_map(number).collect();
        let is_clash = |index: usize, slot: &Slot| {
            !slot.listed
                && slots.iter().enumerate().any(|(other, taken)| {
                    other != index
                        && (RegionName::new(&taken.name).is(&slot.name)
                            || taken.endpoint == slot.endpoint)
                })
        };
        let mut regions = Vec::with_capacity(slots.len());
        for (index, slot) in slots.iter().enumerate() {
            // A region that has left, and whose name or host is another's now.
            let clash = index > 0 && is_clash(index, slot);
            let (name, endpoint) = if clash {
                reassigned |= 1 << index;
                nobody(index, &slot.endpoint)?
            } else {
                (slot.name.to_string(), slot.endpoint.clone())
            };
            let takes_writes = writable.contains(number_of(index));
            regions.push(Region::new(name, endpoint).writable(takes_writes));
        }
        let regions = Regions::new(regions).map_err(|error| DocumentError::does_not_fit(&error))?;
        let multi_write =
            document.is_multi_write() && settings.get_multi_write() && writable.len() > 1;
        let mut topology = Self {
            regions,
            readable,
            writable,
            reads: readable,
            writes: writable,
            excluded: 0,
            multi_write,
            hedging_disabled: document.hedging_disabled().unwrap_or(self.hedging_disabled),
            known: true,
        };
        let preferred = |topology: &Self| -> Order {
            let preferred = settings.get_preferred().iter();
            preferred
                .filter_map(|name| topology.listed_by_name(name))
                .collect()
        };
        let preferred = preferred(&topology);
        topology.reads = preferred_first(preferred.iter(), &readable);
        if multi_write {
            topology.writes = preferred_first(preferred.iter(), &writable);
        }
        topology.excluded = topology.mask(settings.get_excluded());
        Ok(NewTopology {
            topology,
            reassigned,
        })
    }

    /// Gives every region of the document a number, and says which numbers changed hands.
    fn slots_for(
        &self,
        document: &AccountDocument,
        settings: &AccountSettings,
    ) -> (Vec<Slot>, u16) {
        let mut slots: Vec<_> = self
            .regions
            .iter()
            .map(|(id, region)| Slot {
                name: if id == RegionId::FIRST {
                    GLOBAL.into()
                } else {
                    region.name().into()
                },
                endpoint: region.endpoint().clone(),
                listed: false,
            })
            .collect();
        let is_preferred = |location: &&Location| {
            let preferred = settings.get_preferred();
            preferred.iter().any(|name| name.is(location.name()))
        };
        let in_order_of_need = document
            .writable()
            .iter()
            .chain(document.readable().iter().filter(is_preferred))
            .chain(document.readable());
        let given = self.regions.get(RegionId::FIRST).map(Region::endpoint);
        let mut chosen: Vec<&Location> = Vec::new();
        let mut free = Regions::MAX - 1;
        for location in in_order_of_need {
            let is_given = given == Some(location.endpoint());
            if chosen.iter().any(|other| is_same(other, location)) || (free == 0 && !is_given) {
                continue;
            }
            free -= usize::from(!is_given);
            chosen.push(location);
        }
        let mut reassigned = 0;
        for location in &chosen {
            if let Some(index) = place(&mut slots, &chosen, location) {
                reassigned |= 1 << index;
            }
        }
        (slots, reassigned)
    }

    /// The regions by number, to tell which one a request names and to direct it to another. Also
    /// those that have left the account.
    #[must_use]
    pub const fn regions(&self) -> &Regions {
        &self.regions
    }

    /// Whether the account was asked, or is not to be asked.
    #[must_use]
    pub const fn is_known(&self) -> bool {
        self.known
    }

    /// The regions that answer reads, in the account's order.
    #[must_use]
    pub const fn readable(&self) -> &Order {
        &self.readable
    }

    /// The regions that take writes, in the account's order.
    #[must_use]
    pub const fn writable(&self) -> &Order {
        &self.writable
    }

    pub(super) const fn reads(&self) -> &Order {
        &self.reads
    }

    pub(super) const fn writes(&self) -> &Order {
        &self.writes
    }

    /// Whether writes go to several regions: the account says so, lists several writers, and the
    /// user makes use of it (C2).
    #[must_use]
    pub const fn is_multi_write(&self) -> bool {
        self.multi_write
    }

    /// Whether the account forbids hedging (C15).
    #[must_use]
    pub const fn is_hedging_disabled(&self) -> bool {
        self.hedging_disabled
    }

    /// A bit for each region that the service excludes (C11).
    #[must_use]
    pub const fn excluded(&self) -> u16 {
        self.excluded
    }

    /// Whether the account lists this region.
    #[must_use]
    pub fn lists(&self, region: RegionId) -> bool {
        self.readable.contains(region) || self.writable.contains(region)
    }

    /// A bit for each region that the account lists.
    #[must_use]
    pub fn listed(&self) -> u16 {
        let all = self.readable.iter().chain(self.writable.iter());
        all.fold(0, |mask, region| mask | bit(region))
    }

    /// The region that is meant, if the account lists it: the writer of this moment, the first
    /// reader beside it, or the one of that name.
    #[must_use]
    pub fn region(&self, named: &RegionRef, marks: &Marks, now: Tick) -> Option<RegionId> {
        match named {
            RegionRef::Primary => self.writer(marks, now),
            RegionRef::Secondary => {
                let writer = self.writer(marks, now);
                let mut readers = self.readable.iter();
                readers.find(|&region| Some(region) != writer)
            }
            RegionRef::Named(name) => self.listed_by_name(&RegionName::new(name)),
        }
    }

    /// The name of a region, as the account writes it.
    #[must_use]
    pub fn name(&self, region: RegionId) -> Option<&str> {
        self.regions.get(region).map(Region::name)
    }

    /// The region of this name, in any writing, if the account has it.
    #[must_use]
    pub fn listed_by_name(&self, name: &RegionName) -> Option<RegionId> {
        self.regions
            .iter()
            .find(|(id, region)| self.lists(*id) && name.is(region.name()))
            .map(|(id, _)| id)
    }

    /// A bit for each number that takes writes.
    #[must_use]
    pub fn writers(&self) -> u16 {
        self.writable
            .iter()
            .fold(0, |mask, region| mask | bit(region))
    }
}

/// Whether two locations are one region: the same name, or the same host.
fn is_same(one: &Location, other: &Location) -> bool {
    RegionName::new(one.name()).is(other.name()) || one.endpoint() == other.endpoint()
}

/// Finds the number of a location, or gives it one. Returns the number if it meant another region.
fn place(slots: &mut Vec<Slot>, chosen: &[&Location], location: &Location) -> Option<usize> {
    let name = RegionName::new(location.name());
    let later = |slot: &Slot| !slot.listed;
    let given = slots
        .first()
        .filter(|given| given.endpoint == *location.endpoint());
    let by_name = || {
        slots
            .iter()
            .skip(1)
            .position(|slot| later(slot) && name.is(&slot.name))
    };
    let by_host = || {
        let mut others = slots.iter().skip(1);
        others.position(|slot| later(slot) && slot.endpoint == *location.endpoint())
    };
    let known = if given.is_some() {
        Some(0)
    } else {
        by_name().or_else(by_host).map(|index| index + 1)
    };
    let slot = Slot {
        name: location.name().into(),
        endpoint: location.endpoint().clone(),
        listed: true,
    };
    if let Some(index) = known {
        if let Some(place) = slots.get_mut(index) {
            *place = slot;
        }
        return None;
    }
    if slots.len() < Regions::MAX {
        slots.push(slot);
        return None;
    }
    let is_wanted = |slot: &Slot| {
        let mut chosen = chosen.iter();
        chosen.any(|other| {
            RegionName::new(other.name()).is(&slot.name) || *other.endpoint() == slot.endpoint
        })
    };
    let free = slots
        .iter()
        .skip(1)
        .position(|slot| !slot.listed && !is_wanted(slot))?;
    *slots.get_mut(free + 1)? = slot;
    Some(free + 1)
}

/// What stands for a number that means no region.
fn nobody(index: usize, like: &Endpoint) -> Result<(String, Endpoint), DocumentError> {
    let endpoint = like
        .with_host(&format!("nobody-{index}.invalid"))
        .map_err(|error| DocumentError::does_not_fit(&error))?;
    Ok((format!("(none {index})"), endpoint))
}

/// There are never more than [`Regions::MAX`].
fn number_of(index: usize) -> RegionId {
    RegionId::new(u8::try_from(index).unwrap_or(u8::MAX))
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use serde_json::{Value, json};

    use super::*;

    fn given(url: &str) -> Topology {
        Topology::given(Endpoint::parse(url).unwrap(), &AccountSettings::new()).unwrap()
    }

    fn document(readable: &[(&str, &str)], writable: &[(&str, &str)]) -> AccountDocument {
        let locations = |list: &[(&str, &str)]| -> Value {
            list.iter()
                .map(|(name, url)| json!({"name": name, "databaseAccountEndpoint": url}))
                .collect()
        };
        let body = json!({
            "readableLocations": locations(readable),
            "writableLocations": locations(writable),
        });
        AccountDocument::of_answer(StatusCode::OK, body.to_string().as_bytes()).unwrap()
    }

    fn next(topology: &Topology, readable: &[(&str, &str)]) -> NewTopology {
        let settings = AccountSettings::new();
        topology
            .with_document(&document(readable, &readable[..1]), &settings)
            .unwrap()
    }

    fn number(topology: &Topology, name: &str) -> Option<usize> {
        let region = topology.listed_by_name(&RegionName::new(name));
        region.map(RegionId::index)
    }

    const EAST: (&str, &str) = ("East US", "https://a-eastus.documents.azure.com:443/");
    const WEST: (&str, &str) = ("West US", "https://a-westus.documents.azure.com:443/");
    const NORTH: (&str, &str) = ("North US", "https://a-northus.documents.azure.com:443/");

    /// C13: a region keeps its number, also when it leaves and returns.
    #[test]
    fn numbers_last() {
        let first = next(&given("https://a.documents.azure.com"), &[EAST, WEST]).topology;
        assert_eq!(
            (number(&first, "eastus"), number(&first, "West US")),
            (Some(1), Some(2))
        );
        let without = next(&first, &[EAST, NORTH]).topology;
        assert_eq!(
            (number(&without, "West US"), number(&without, "North US")),
            (None, Some(3))
        );
        let back = next(&without, &[WEST, EAST]);
        assert_eq!(number(&back.topology, "WESTUS"), Some(2));
        assert_eq!(back.topology.hub(), Some(RegionId::new(2)));
        assert_eq!(back.reassigned, 0);
        assert!(
            back.topology.regions().by_name("North US").is_some(),
            "still directed to"
        );
    }

    /// C4: the given host gets no data, unless the account lists it as a region.
    #[test]
    fn the_given_host_is_a_region_only_if_it_is_listed() {
        let apart = next(&given("https://a.documents.azure.com"), &[EAST, WEST]).topology;
        assert_eq!(apart.name(RegionId::FIRST), Some(GLOBAL));
        assert!(!apart.lists(RegionId::FIRST));
        assert!(apart.regions().write_target(RegionId::FIRST).is_none());
        let listed = next(
            &given("https://a-westus.documents.azure.com"),
            &[EAST, WEST],
        )
        .topology;
        assert_eq!(listed.name(RegionId::FIRST), Some("West US"));
        assert_eq!(number(&listed, "West US"), Some(0));
        // The region moves to another host: the given one is nobody's again.
        let moved = ("West US", "https://b-westus.documents.azure.com");
        let moved = next(&listed, &[EAST, moved]).topology;
        assert_eq!(moved.name(RegionId::FIRST), Some(GLOBAL));
        assert_eq!(number(&moved, "West US"), Some(2));
    }

    /// C3: a region that is renamed, and two names of one host.
    #[test]
    fn a_host_is_one_region() {
        let first = next(&given("https://a.documents.azure.com"), &[EAST, WEST]).topology;
        let renamed = next(&first, &[EAST, ("West US (Stage)", WEST.1)]);
        assert_eq!(number(&renamed.topology, "westus(stage)"), Some(2));
        assert_eq!(renamed.reassigned, 0);
        let twice = next(&first, &[EAST, WEST, ("West US 9", WEST.1)]).topology;
        assert_eq!(twice.readable().len(), 2);
    }

    /// C3: what would take requests off TLS does not fit.
    #[test]
    fn a_document_of_another_scheme_does_not_fit() {
        let settings = AccountSettings::new();
        let topology = given("https://a.documents.azure.com");
        let plain = ("East US", "http://a-eastus.documents.azure.com");
        let error = topology
            .with_document(&document(&[plain], &[plain]), &settings)
            .unwrap_err();
        assert!(error.to_string().contains("tls"), "{error}");
    }

    /// There are 16 numbers: writers, then the preferred, then the first of the rest; the numbers
    /// of regions that have left are given away.
    #[test]
    fn an_account_may_have_more_regions_than_there_are_numbers() {
        let names: Vec<_> = (0..40)
            .map(|n| {
                (
                    format!("Region {n}"),
                    format!("https://a-region{n}.documents.azure.com"),
                )
            })
            .collect();
        let all: Vec<_> = names
            .iter()
            .map(|(name, url)| (name.as_str(), url.as_str()))
            .collect();
        let settings = AccountSettings::new().preferred(["region 39"]);
        let topology = given("https://a.documents.azure.com");
        let many = topology
            .with_document(&document(&all[..40], &all[20..22]), &settings)
            .unwrap();
        let read = many.topology;
        assert_eq!(read.regions().len(), 16);
        assert_eq!(read.readable().len(), 15);
        assert_eq!(number(&read, "Region 20"), Some(1));
        assert_eq!(number(&read, "Region 39"), Some(3));
        assert_eq!(number(&read, "Region 11"), Some(15));
        assert_eq!(number(&read, "Region 12"), None);
        let few = read
            .with_document(&document(&all[30..32], &all[30..31]), &settings)
            .unwrap();
        assert_eq!(few.reassigned.count_ones(), 2);
        assert_eq!(number(&few.topology, "Region 30"), Some(1));
        assert_eq!(few.topology.hub(), Some(RegionId::new(1)));
    }

    /// A hub that is new to a full account takes the number of a region that can be done without.
    #[test]
    fn a_new_hub_finds_a_number_in_a_full_account() {
        let region = |n: usize| {
            (
                format!("Region {n}"),
                format!("https://a-region{n}.documents.azure.com"),
            )
        };
        let list = |numbers: std::ops::Range<usize>| numbers.map(region).collect::<Vec<_>>();
        let (before, after) = (list(1..16), list(0..16));
        let borrow = |list: &[(String, String)]| -> AccountDocument {
            let list: Vec<_> = list.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
            document(&list, &list[..1])
        };
        let settings = AccountSettings::new();
        let full = given("https://a.documents.azure.com")
            .with_document(&borrow(&before), &settings)
            .unwrap()
            .topology;
        let new = full.with_document(&borrow(&after), &settings).unwrap();
        let hub = new.topology.hub();
        assert_eq!(hub.and_then(|hub| new.topology.name(hub)), Some("Region 0"));
        assert_eq!(number(&new.topology, "Region 15"), None);
        assert_eq!(number(&new.topology, "Region 1"), number(&full, "Region 1"));
        assert_eq!(new.reassigned, 1 << 15);
    }

    /// C15: the switch against hedging holds until the account says otherwise.
    #[test]
    fn the_switch_against_hedging_lasts() {
        let settings = AccountSettings::new();
        let with = |topology: &Topology, said: Value| {
            let list = json!([{"name": EAST.0, "databaseAccountEndpoint": EAST.1}]);
            let body = json!({
                "readableLocations": list,
                "writableLocations": list,
                "disableCrossRegionalHedging": said,
            });
            let body = body.to_string().into_bytes();
            let document = AccountDocument::of_answer(StatusCode::OK, &body).unwrap();
            topology
                .with_document(&document, &settings)
                .unwrap()
                .topology
        };
        let first = with(&given("https://a.documents.azure.com"), Value::Null);
        assert!(!first.is_hedging_disabled());
        let off = with(&first, json!(true));
        assert!(off.is_hedging_disabled());
        assert!(with(&off, Value::Null).is_hedging_disabled());
        assert!(!with(&off, json!(false)).is_hedging_disabled());
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

        /// C3, C13: whatever documents follow each other, a region that stays keeps its number,
        /// every region that has a number is found under its name and its host, and only listed
        /// writers take writes.
        #[test]
        fn numbers_last_through_any_documents(
            documents in proptest::collection::vec(
                proptest::sample::subsequence((0..20_usize).collect::<Vec<_>>(), 1..=20),
                1..12,
            ),
            given_is in 0..25_usize,
        ) {
            let url = |n: usize| format!("https://a-region{n}.documents.azure.com");
            let mut topology = given(&url(given_is));
            for listed in documents {
                let names: Vec<_> =
                    listed.iter().map(|n| (format!("Region {n}"), url(*n))).collect();
                let all: Vec<_> =
                    names.iter().map(|(name, url)| (name.as_str(), url.as_str())).collect();
                let new = next(&topology, &all);
                for (name, url) in &all {
                    let Some(at) = number(&new.topology, name) else {
                        proptest::prop_assert!(all.len() > 15, "{name} has no number");
                        continue;
                    };
                    if let Some(before) = number(&topology, name) {
                        proptest::prop_assert_eq!(at, before);
                        proptest::prop_assert_eq!(new.reassigned & (1 << at), 0);
                    }
                    let uri = url.parse().unwrap();
                    let named = new.topology.regions().region_of(&uri).map(RegionId::index);
                    proptest::prop_assert_eq!(named, Some(at));
                }
                for (id, region) in new.topology.regions().iter() {
                    let is_hub = region.name() == all[0].0;
                    proptest::prop_assert_eq!(region.is_writable(), is_hub);
                    proptest::prop_assert_eq!(new.topology.hub() == Some(id), is_hub);
                }
                topology = new.topology;
            }
        }
    }
}
