//! Runs are apart from each other, so every processor can have one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use tower_geo::BoxError;

/// Does something with each item, on so many threads, and returns what came of it in the order of
/// the items.
///
/// # Errors
///
/// The first that one of the threads meets; the others do not stop for it.
pub(crate) fn map<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    make: impl Fn(&T) -> Result<R, BoxError> + Sync,
) -> Result<Vec<R>, BoxError> {
    let next = AtomicUsize::new(0);
    let made = Mutex::new(Vec::with_capacity(items.len()));
    let work = || -> Result<(), BoxError> {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else {
                return Ok(());
            };
            let result = make(item)?;
            made.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push((index, result));
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| {
            thread
                .join()
                .unwrap_or_else(|_| Err("a thread has panicked".into()))
        })
    })?;
    let mut made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    made.sort_by_key(|(index, _)| *index);
    Ok(made.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<_> = (0..100).collect();
        let doubled = map(&items, 3, |item| Ok(item * 2)).unwrap();
        assert!(doubled.iter().zip(&items).all(|(two, one)| *two == one * 2));
    }

    #[test]
    fn an_error_is_not_lost() {
        let odd = |item: &u32| {
            if item % 2 == 1 {
                Err("odd".into())
            } else {
                Ok(*item)
            }
        };
        assert!(map(&[2, 3, 4], 2, odd).is_err());
    }
}
