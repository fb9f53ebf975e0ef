//! Locks that functions of another language run under.
//!
//! An interpreter runs on one thread at a time: its functions take a lock for each call and give it up behind it, so that
//! other threads get on. A caller that makes several such calls, with little in between, keeps the lock from one to the next
//! ([`KeptLock`]), and gives it up before anything that takes long or waits.

use std::marker::PhantomData;

use crate::Function;

/// The lock of an interpreter. A thread that has it may take it again, and has it until it has given it up as often.
#[derive(Debug)]
pub struct HostLock {
    /// Takes the lock. What comes back is handed to `give_up`.
    pub take: fn() -> usize,
    /// Gives the lock up, on the thread that took it; what was taken last is given up first.
    pub give_up: fn(usize),
}

/// A lock that a thread keeps between calls; none at first.
#[derive(Debug, Default)]
pub struct KeptLock {
    taken: Option<(&'static HostLock, usize)>,
    /// Locks belong to threads.
    thread: PhantomData<*const ()>,
}

impl KeptLock {
    /// Takes the lock that a function runs under, unless one is kept already. The function takes its own in any case.
    #[inline]
    pub fn keep_for(&mut self, function: &Function) {
        if self.taken.is_none()
            && let Some(lock) = function.host_lock()
        {
            self.taken = Some((lock, (lock.take)()));
        }
    }

    /// Gives the lock up, if one is kept.
    #[inline]
    pub fn give_up(&mut self) {
        if let Some((lock, token)) = self.taken.take() {
            (lock.give_up)(token);
        }
    }
}

impl Drop for KeptLock {
    fn drop(&mut self) {
        self.give_up();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::Any;

    static TAKEN: AtomicUsize = AtomicUsize::new(0);
    static LOCK: HostLock = HostLock {
        take: || TAKEN.fetch_add(1, Ordering::Relaxed),
        give_up: |token| assert_eq!(TAKEN.fetch_sub(1, Ordering::Relaxed), token + 1),
    };

    #[test]
    fn a_lock_is_kept_until_it_is_given_up_or_its_keeper_ends() {
        let plain = Function::new(|_| Ok(Any::none()));
        let hosted = Function::new_hosted(&LOCK, |_| Ok(Any::none()));
        let mut kept = KeptLock::default();
        kept.keep_for(&plain);
        assert_eq!(TAKEN.load(Ordering::Relaxed), 0);
        kept.keep_for(&hosted);
        kept.keep_for(&hosted);
        assert_eq!(TAKEN.load(Ordering::Relaxed), 1);
        kept.give_up();
        kept.give_up();
        assert_eq!(TAKEN.load(Ordering::Relaxed), 0);
        kept.keep_for(&hosted);
        drop(kept);
        assert_eq!(TAKEN.load(Ordering::Relaxed), 0);
    }
}
