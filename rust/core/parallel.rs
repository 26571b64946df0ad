//! The only place that uses the rayon pool. Without the feature `parallel`, the calling thread does
//! all the work.
//!
//! The compiler builds rayon's plumbing anew for every closure that rayon is given, a few thousand
//! lines each time. Parallel work here takes microseconds at least, so a call through a pointer
//! costs nothing, and the plumbing is compiled once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[cfg(feature = "parallel")]
use rayon::prelude::*;

/// Does a job for every index below `count`, on the current rayon pool.
pub(crate) fn for_each(count: usize, job: impl Fn(usize) + Sync) {
    match count {
        0 => {}
        1 => job(0),
        _ => spread(count, &job),
    }
}

#[inline(never)]
fn spread(count: usize, job: &(dyn Fn(usize) + Sync)) {
    #[cfg(feature = "parallel")]
    (0..count).into_par_iter().for_each(job);
    #[cfg(not(feature = "parallel"))]
    (0..count).for_each(job);
}

/// Does two jobs, on two threads if there are any to spare.
pub(crate) fn join(one: impl FnOnce() + Send, other: impl FnOnce() + Send) {
    #[cfg(feature = "parallel")]
    rayon::join(one, other);
    #[cfg(not(feature = "parallel"))]
    {
        one();
        other();
    }
}

/// How many threads there are.
pub(crate) fn threads() -> usize {
    #[cfg(feature = "parallel")]
    return rayon::current_num_threads();
    #[cfg(not(feature = "parallel"))]
    return 1;
}

/// The results of a job for every index below `count`, in their order.
pub(crate) fn map<T: Send>(count: usize, job: impl Fn(usize) -> T + Sync) -> Vec<T> {
    map_with(count, || (), |(), index| job(index))
}

/// As [`map`], with a state that a job finds as another has left it: buffers, say.
pub(crate) fn map_with<S: Send, T: Send>(
    count: usize,
    new: impl Fn() -> S + Sync,
    job: impl Fn(&mut S, usize) -> T + Sync,
) -> Vec<T> {
    let results: Vec<Mutex<Option<T>>> = (0..count).map(|_| Mutex::new(None)).collect();
    let states = Mutex::new(Vec::new());
    for_each(count, |index| {
        let state = lock(&states).pop();
        let mut state = state.unwrap_or_else(&new);
        *lock(&results[index]) = Some(job(&mut state, index));
        lock(&states).push(state);
    });
    let value =
        |result: Mutex<Option<T>>| result.into_inner().unwrap_or_else(PoisonError::into_inner);
    // Every job has run: there is a value for each index.
    results.into_iter().filter_map(value).collect()
}

/// Does a job for every chunk of `length` items, the last of which may be shorter; `length` is not
/// zero.
pub(crate) fn for_each_chunk<T: Send>(
    items: &mut [T],
    length: usize,
    job: impl Fn(usize, &mut [T]) + Sync,
) {
    let chunks: Vec<Mutex<&mut [T]>> = items.chunks_mut(length).map(Mutex::new).collect();
    for_each(chunks.len(), |index| job(index, &mut lock(&chunks[index])));
}

/// As [`for_each_chunk`], with the results of the jobs in their order.
pub(crate) fn map_chunks<T: Send, R: Send>(
    items: &mut [T],
    length: usize,
    job: impl Fn(usize, &mut [T]) -> R + Sync,
) -> Vec<R> {
    let chunks: Vec<Mutex<&mut [T]>> = items.chunks_mut(length).map(Mutex::new).collect();
    map(chunks.len(), |index| job(index, &mut lock(&chunks[index])))
}

/// Whether a condition holds for every index below `count`; not all are asked once it does not.
pub(crate) fn all(count: usize, condition: impl Fn(usize) -> bool + Sync) -> bool {
    let holds = AtomicBool::new(true);
    for_each(count, |index| {
        if holds.load(Ordering::Relaxed) && !condition(index) {
            holds.store(false, Ordering::Relaxed);
        }
    });
    holds.into_inner()
}

/// How many of so many chunks one counter takes: some counters for each thread, however many chunks.
pub(crate) fn stretch(chunks: usize) -> usize {
    (chunks / (8 * threads())).max(1)
}

/// The range of the chunk of that index, of so many items in all.
pub(crate) fn chunk(index: usize, length: usize, items: usize) -> core::ops::Range<usize> {
    let start = index * length;
    start..items.min(start + length)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_indices() {
        for count in [0, 1, 2, 1000] {
            let expected: Vec<usize> = (0..count).map(|index| index * index).collect();
            assert_eq!(map(count, |index| index * index), expected);
        }
    }

    #[test]
    fn every_item_is_in_one_chunk() {
        let mut items = vec![0; 1003];
        for_each_chunk(&mut items, 10, |index, items| items.fill(index + 1));
        let expected: Vec<usize> = (0..1003).map(|place| place / 10 + 1).collect();
        assert_eq!(items, expected);
        assert_eq!(chunk(100, 10, 1003), 1000..1003);
    }

    #[test]
    fn one_exception_is_enough() {
        assert!(all(1000, |_| true));
        assert!(all(0, |_| false));
        for exception in [0, 500, 999] {
            assert!(!all(1000, |index| index != exception));
        }
    }

    #[test]
    fn a_state_is_used_by_one_job_at_a_time() {
        let used = map_with(1000, Vec::new, |state: &mut Vec<usize>, index| {
            state.clear();
            state.push(index);
            state[0]
        });
        assert_eq!(used, (0..1000).collect::<Vec<_>>());
    }
}
