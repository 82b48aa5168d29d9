//! The regions of a service under the numbers that a result keeps.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tower_geo_policy::cosmos::RegionName;

/// The names of a service's regions, numbered in order.
///
/// Those of a Cosmos account are not known before it is read, and the layers may give a number to
/// another region one day; here a number means the same region from the start to the end.
#[derive(Debug)]
pub(crate) struct Names {
    /// Names that differ in blanks and letter case are one, and new ones are taken in.
    grow: bool,
    known: Mutex<Vec<String>>,
}

impl Names {
    /// Exactly these.
    pub(crate) fn fixed(names: Vec<String>) -> Self {
        Self {
            grow: false,
            known: Mutex::new(names),
        }
    }

    /// Those of a Cosmos account: these, and whatever comes.
    pub(crate) fn growing(names: Vec<String>) -> Self {
        Self {
            grow: true,
            known: Mutex::new(names),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a region.
    pub(crate) fn number(&self, name: &str) -> Option<usize> {
        let mut known = self.lock();
        if !self.grow {
            return known.iter().position(|other| other == name);
        }
        // The writing is the same nearly always; only then is it looked at more closely.
        let same = known.iter().position(|other| other == name).or_else(|| {
            let name = RegionName::new(name);
            known.iter().position(|other| name.is(other))
        });
        Some(same.unwrap_or_else(|| {
            known.push(name.to_owned());
            known.len() - 1
        }))
    }

    /// All that are known so far.
    pub(crate) fn all(&self) -> Vec<String> {
        self.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_copies_are_taken_as_they_are() {
        let names = Names::fixed(vec!["eu".to_owned(), "EU".to_owned()]);
        assert_eq!((names.number("eu"), names.number("EU")), (Some(0), Some(1)));
        assert_eq!(names.number("us"), None);
        assert_eq!(names.all().len(), 2);
    }

    /// C3: names that differ in blanks and case are equal.
    #[test]
    fn a_region_of_an_account_has_one_number_in_any_writing() {
        let names = Names::growing(vec!["East US".to_owned()]);
        assert_eq!(names.number("eastus"), Some(0));
        assert_eq!(names.number("West US"), Some(1));
        assert_eq!(names.number("WESTUS"), Some(1));
        assert_eq!(names.all(), ["East US", "West US"]);
    }
}
