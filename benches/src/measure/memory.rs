//! What stays on the heap.

/// What is held, or by how much it has grown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    /// None where bytes are a share, or a difference.
    pub(crate) allocations: Option<u64>,
    pub(crate) bytes: i64,
}

/// What is still held when `make` has returned, while its value lives.
pub(crate) fn of<T>(make: impl FnOnce() -> T) -> Held {
    let mut value = None;
    let counted = allocation_counter::measure(|| value = Some(make()));
    drop(value);
    Held {
        allocations: u64::try_from(counted.count_current).ok(),
        bytes: counted.bytes_current,
    }
}

/// By how much the heap has grown after `work`.
pub(crate) fn growth(work: impl FnOnce()) -> Held {
    Held {
        allocations: None,
        bytes: allocation_counter::measure(work).bytes_current,
    }
}
