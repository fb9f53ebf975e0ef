//! Work on many items by as many threads as there are cores.
//!
//! For work that takes milliseconds an item: scheduling and compiling kernels. The thread that asks does none of it and is told
//! instead when an item is done, so that it can show progress. Threads of running programs are the runtime's, not these.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

/// Expressions and statements are walked by recursion.
const STACK: usize = 16 << 20;

/// Does `work` for every item, in any order; the results are in the order of the items. `done` is told how many are done.
///
/// The result of an item is `None` if its thread ended early or could not be started.
pub fn map<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(usize, &T) -> R + Sync,
    mut done: impl FnMut(usize),
) -> Vec<Option<R>> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(items.len());
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    let take_turns = |sender: mpsc::Sender<(usize, R)>| {
        while let Some((index, item)) = items.iter().enumerate().nth(next.fetch_add(1, Ordering::Relaxed)) {
            if sender.send((index, work(index, item))).is_err() {
                break;
            }
        }
    };
    let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
    thread::scope(|scope| {
        let start = |sender| thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || take_turns(sender));
        let workers: Vec<_> = (0..threads).filter_map(|_| start(sender.clone()).ok()).collect();
        drop(sender);
        for (count, (index, result)) in receiver.iter().enumerate() {
            results[index] = Some(result);
            done(count + 1);
        }
        // A panic was printed where it happened; here it is an item without a result.
        workers.into_iter().for_each(|worker| drop(worker.join()));
    });
    results
}

/// What `work` makes of each number below a count, in their order. What no thread could do is done by the one that asks.
pub fn in_order<R: Send>(count: usize, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let items: Vec<usize> = (0..count).collect();
    let made = map(&items, |_, item| work(*item), |_| ());
    made.into_iter().enumerate().map(|(item, made)| made.unwrap_or_else(|| work(item))).collect()
}

/// Has `fill` write each piece of `size` elements, the last of which may be shorter, given its number.
pub fn fill<T: Send>(all: &mut [T], size: usize, fill: impl Fn(usize, &mut [T]) + Sync) {
    let pieces: Vec<Mutex<&mut [T]>> = all.chunks_mut(size.max(1)).map(Mutex::new).collect();
    let write = |number: usize, piece: &Mutex<&mut [T]>| {
        fill(number, &mut piece.lock().unwrap_or_else(PoisonError::into_inner));
    };
    let done = map(&pieces, write, |_| ());
    let missing = done.iter().zip(&pieces).enumerate().filter(|(_, (done, _))| done.is_none());
    missing.for_each(|(number, (_, piece))| write(number, piece));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_and_progress_is_told() {
        let items: Vec<usize> = (0..100).collect();
        let mut told = Vec::new();
        let results = map(&items, |index, item| index + item, |done| told.push(done));
        assert_eq!(results, (0..100).map(|i| Some(2 * i)).collect::<Vec<_>>());
        assert_eq!(told, (1..=100).collect::<Vec<_>>());
        assert!(map(&[0u8; 0], |_, _| (), |_| ()).is_empty());
    }

    #[test]
    fn numbers_are_worked_on_in_order() {
        assert_eq!(in_order(50, |item| item * item), (0..50).map(|i| i * i).collect::<Vec<_>>());
        assert!(in_order(0, |item| item).is_empty());
    }

    #[test]
    fn pieces_are_filled_the_last_of_them_too() {
        let mut all = vec![0; 23];
        fill(&mut all, 5, |number, piece| piece.iter_mut().for_each(|e| *e = number));
        assert_eq!(all, (0..23).map(|i| i / 5).collect::<Vec<_>>());
    }

    #[test]
    fn an_item_whose_work_panics_has_no_result() {
        let results = map(&[1, 0, 2], |_, item| 10 / item, |_| ());
        assert_eq!((results[0], results[1]), (Some(10), None));
    }
}
