//! Services that behave as one (B12), and the lock under which circuits and gates change.
//!
//! A service that shares with nobody is a group of one. The lock is taken by failures, probes,
//! transitions and operators; never by a success of a closed circuit, nor by a refusal while open.

mod at;
mod change;
mod refresh;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

pub(crate) use change::{Effect, Settling, effects};

use crate::breaker::Timing;
use crate::events::Event;
use crate::service_state::Core;
use crate::sync::{Mutex, lock};
use crate::tick::Tick;

/// As many regions as a service can have.
pub(crate) const MAX_REGIONS: usize = 16;

/// Makes services behave as one when it is given to each of them.
///
/// Each keeps its own evidence and circuits. While a circuit of one is open and its wait is not
/// over, the circuits of the others at the same place in the order of regions behave as open, and
/// their gates follow. One whose wait is over holds back only itself.
///
/// ```
/// use std::time::Instant;
/// use tower_geo_policy::group::GroupHandle;
///
/// # #[expect(clippy::disallowed_methods, reason = "an example of a user")]
/// let group = GroupHandle::new(Instant::now());
/// let the_same = group.clone();
/// ```
#[derive(Clone)]
pub struct GroupHandle(pub(crate) Arc<Group>);

impl GroupHandle {
    /// A group without members. All of them count time from `base`.
    #[must_use]
    pub fn new(base: Instant) -> Self {
        Self(Arc::new(Group {
            base,
            shared: Mutex::new(Shared::default()),
        }))
    }
}

impl fmt::Debug for GroupHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members: Vec<Arc<str>> = lock(&self.0.shared)
            .members
            .iter()
            .flatten()
            .map(|m| Arc::clone(&m.core.name))
            .collect();
        f.debug_struct("GroupHandle")
            .field("members", &members)
            .finish()
    }
}

/// What the members of a group have in common.
pub(crate) struct Group {
    pub(crate) base: Instant,
    shared: Mutex<Shared>,
}

#[derive(Default)]
struct Shared {
    members: Vec<Option<Member>>,
    notes: VecDeque<Note>,
    /// Somebody is telling the notes; whoever adds one leaves it to them.
    delivering: bool,
    /// The latest time that was seen, for changes that come without one.
    latest: Tick,
}

struct Member {
    core: Arc<Core>,
    /// By region, then by circuit.
    timing: Box<[[Timing; 2]]>,
    operator: bool,
    account: bool,
    maintenance: bool,
}

/// Something to tell once the lock is gone.
struct Note {
    core: Arc<Core>,
    /// None: only that the gate changed, to whoever watches it.
    event: Option<Event>,
}

/// A change of circuits or gates that is being made, under the lock.
pub(crate) struct Change<'a> {
    shared: &'a mut Shared,
    now: Tick,
    /// Whether what follows from circuits and flags has to be worked out again.
    dirty: bool,
}

impl Group {
    /// Makes a change under the lock, works out what follows from it, and tells it afterwards.
    pub(crate) fn update<R>(&self, now: Tick, make: impl FnOnce(&mut Change<'_>) -> R) -> R {
        let mut guard = lock(&self.shared);
        let shared = &mut *guard;
        shared.latest = shared.latest.max(now);
        let mut change = Change {
            shared,
            now,
            dirty: false,
        };
        let made = make(&mut change);
        if change.dirty {
            change.refresh();
        }
        let deliver = !guard.notes.is_empty() && !guard.delivering;
        guard.delivering |= deliver;
        drop(guard);
        if deliver {
            self.deliver();
        }
        made
    }

    /// Adds a service, and says under which number.
    pub(crate) fn join(&self, core: Arc<Core>) -> usize {
        let mut shared = lock(&self.shared);
        let timing = core
            .regions()
            .map(|_| [Timing::default(), Timing::default()])
            .collect();
        let member = Some(Member {
            core,
            timing,
            operator: false,
            account: false,
            maintenance: false,
        });
        // Places of services that are gone are used again.
        let number = match shared.members.iter().position(Option::is_none) {
            Some(free) => free,
            None => shared.members.len(),
        };
        match shared.members.get_mut(number) {
            Some(place) => *place = member,
            None => shared.members.push(member),
        }
        let now = shared.latest;
        drop(shared);
        // It may have to follow circuits that are open already.
        self.update(now, |change| change.dirty = true);
        number
    }

    /// A service is gone: its circuits hold nobody back any more.
    pub(crate) fn leave(&self, member: usize) {
        let now = lock(&self.shared).latest;
        // The member is dropped without the lock.
        let _gone = self.update(now, |change| {
            change.dirty = true;
            change.shared.members.get_mut(member).and_then(Option::take)
        });
    }

    fn deliver(&self) {
        /// The last note of a service drops its listeners, and one that panics then must not
        /// silence the others for good.
        struct Delivering<'a> {
            group: &'a Group,
            done: bool,
        }

        impl Drop for Delivering<'_> {
            fn drop(&mut self) {
                if !self.done {
                    lock(&self.group.shared).delivering = false;
                }
            }
        }

        let mut delivering = Delivering {
            group: self,
            done: false,
        };
        loop {
            let note = {
                let mut shared = lock(&self.shared);
                let note = shared.notes.pop_front();
                if note.is_none() {
                    shared.delivering = false;
                    delivering.done = true;
                }
                note
            };
            let Some(note) = note else { return };
            note.core.tell(note.event.as_ref());
        }
    }
}
