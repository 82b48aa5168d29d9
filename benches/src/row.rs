//! What a row is: a name, whose code it measures, and one call of it.

/// Our own code.
pub(crate) const OURS: &str = "tower-geo";
/// The bare minimum that does the same work, to judge a gap by.
pub(crate) const FLOOR: &str = "floor";

/// One call of what is measured.
pub(crate) type Call = Box<dyn FnMut() + Send>;

/// Makes the call of one thread, on that thread.
pub(crate) type PerThread = Box<dyn Fn() -> Call + Send + Sync>;

/// One row for one implementation.
pub(crate) struct Row {
    /// The same for all who do the same work.
    pub(crate) name: &'static str,
    /// Whose code.
    pub(crate) who: &'static str,
    pub(crate) about: &'static str,
    pub(crate) work: Work,
}

/// How a row is measured.
pub(crate) enum Work {
    /// A call, over and over.
    Calls(fn() -> Call),
    /// So many calls; then all starts anew, since the calls change what is measured.
    Fresh(u32, fn() -> Call),
    /// The same on two threads at once, against one.
    Threads(fn() -> PerThread),
    /// What stays on the heap.
    Memory(fn() -> crate::measure::memory::Held),
    /// Requests over loopback; rows of one name are measured together, in pairs.
    Loopback(crate::loopback::Side),
}

impl Row {
    pub(crate) const fn calls(
        name: &'static str,
        who: &'static str,
        about: &'static str,
        start: fn() -> Call,
    ) -> Self {
        let work = Work::Calls(start);
        Self {
            name,
            who,
            about,
            work,
        }
    }

    pub(crate) const fn fresh(
        name: &'static str,
        who: &'static str,
        about: &'static str,
        calls: u32,
        start: fn() -> Call,
    ) -> Self {
        let work = Work::Fresh(calls, start);
        Self {
            name,
            who,
            about,
            work,
        }
    }

    pub(crate) const fn threads(
        name: &'static str,
        who: &'static str,
        about: &'static str,
        start: fn() -> PerThread,
    ) -> Self {
        let work = Work::Threads(start);
        Self {
            name,
            who,
            about,
            work,
        }
    }

    pub(crate) const fn memory(
        name: &'static str,
        who: &'static str,
        about: &'static str,
        hold: fn() -> crate::measure::memory::Held,
    ) -> Self {
        let work = Work::Memory(hold);
        Self {
            name,
            who,
            about,
            work,
        }
    }

    /// Whether a machine that is busy measures the same: no time is involved.
    pub(crate) const fn is_exact(&self) -> bool {
        matches!(
            self.work,
            Work::Calls(_) | Work::Fresh(..) | Work::Memory(_)
        )
    }
}
