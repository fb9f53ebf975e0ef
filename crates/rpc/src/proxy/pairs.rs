//! [`Pairs`]: who waits for whom, by key.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::wire::handshake::Side;

/// One that came first, with what it needs when the other comes.
struct WaitingPeer<T> {
    side: Side,
    number: u64,
    tell: Sender<T>,
}

/// Those that wait.
pub struct Pairs<T> {
    waiting: Mutex<(u64, HashMap<String, WaitingPeer<T>>)>,
}

/// What becomes of one that comes.
pub enum Came<T> {
    /// The other is there: it is told through this.
    Paired(Sender<T>),
    /// It is the first, and waits; the number takes it out again.
    Waits(Receiver<T>, u64),
    /// One of its side waits already.
    Duplicate,
}

impl<T> Default for Pairs<T> {
    fn default() -> Self {
        Pairs { waiting: Mutex::new((0, HashMap::new())) }
    }
}

impl<T> Pairs<T> {
    fn lock(&self) -> MutexGuard<'_, (u64, HashMap<String, WaitingPeer<T>>)> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One comes.
    pub fn come(&self, side: Side, key: &str) -> Came<T> {
        let mut waiting = self.lock();
        match waiting.1.get(key).map(|first| first.side == side) {
            Some(true) => Came::Duplicate,
            Some(false) => match waiting.1.remove(key) {
                Some(first) => Came::Paired(first.tell),
                None => Came::Duplicate,
            },
            None => {
                let (tell, told) = channel();
                waiting.0 += 1;
                let number = waiting.0;
                waiting.1.insert(key.to_owned(), WaitingPeer { side, number, tell });
                Came::Waits(told, number)
            }
        }
    }

    /// Whether one of that side waits.
    pub fn has(&self, side: Side, key: &str) -> bool {
        self.lock().1.get(key).is_some_and(|waiting| waiting.side == side)
    }

    /// One waits no more; false if it was paired meanwhile, and is about to be told.
    pub fn leave(&self, key: &str, number: u64) -> bool {
        let mut waiting = self.lock();
        let mine = waiting.1.get(key).is_some_and(|waiting| waiting.number == number);
        if mine {
            waiting.1.remove(key);
        }
        mine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sides_meet_and_one_side_does_not() {
        let pairs = Pairs::default();
        let Came::Waits(told, number) = pairs.come(Side::Server, "k") else { panic!() };
        assert!(matches!(pairs.come(Side::Server, "k"), Came::Duplicate));
        let Came::Paired(tell) = pairs.come(Side::Client, "k") else { panic!() };
        tell.send(7).unwrap();
        assert_eq!(told.recv(), Ok(7));
        assert!(!pairs.leave("k", number));
        let Came::Waits(_, number) = pairs.come(Side::Client, "k") else { panic!() };
        assert!(pairs.leave("k", number) && !pairs.has(Side::Client, "k"));
    }
}
