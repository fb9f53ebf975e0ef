//! The process's tables during a fork.
//!
//! A forked child has one thread. A table's lock that another thread held at that moment would stay locked in it for ever, so
//! whoever knows of a fork holds all of them across it (`relaxide_runtime::fork` does).

use std::any::Any;
use std::sync::{Mutex, RwLock, TryLockError};
use std::time::{Duration, Instant};

use crate::{builtin, capi, container_lock, env, global, signal, tensor_source, type_attr, type_info};

/// How long a lock is waited for. They are held for microseconds, or until a thread that was preempted gets a core again; whoever
/// holds one for longer may be waiting for the thread that forks.
const PATIENCE: Duration = Duration::from_secs(1);

/// Tries before the thread sleeps in between, which leaves its core to whoever holds the lock; a thread that yields may be the next to run.
const YIELDS: usize = 100;

/// How long it sleeps.
const NAP: Duration = Duration::from_micros(500);

/// A lock that is held, until this is dropped.
pub type Held = Box<dyn Any>;

/// Takes the lock of a table for writing. `None` if it cannot be had in time.
pub fn hold_table<T>(lock: &'static RwLock<T>) -> Option<Held> {
    patiently(|| match lock.try_write() {
        Ok(guard) => Some(Box::new(guard) as Held),
        Err(TryLockError::Poisoned(guard)) => Some(Box::new(guard.into_inner())),
        Err(TryLockError::WouldBlock) => None,
    })
}

/// Takes a lock. `None` if it cannot be had in time.
pub fn hold<T>(lock: &'static Mutex<T>) -> Option<Held> {
    patiently(|| match lock.try_lock() {
        Ok(guard) => Some(Box::new(guard) as Held),
        Err(TryLockError::Poisoned(guard)) => Some(Box::new(guard.into_inner())),
        Err(TryLockError::WouldBlock) => None,
    })
}

/// Tries until it succeeds, or for as long as a fork may take.
pub fn patiently<T>(attempt: impl Fn() -> Option<T>) -> Option<T> {
    let begin = Instant::now();
    for tried in 0.. {
        if let Some(done) = attempt() {
            return Some(done);
        }
        if begin.elapsed() > PATIENCE {
            break;
        }
        if tried < YIELDS { std::thread::yield_now() } else { std::thread::sleep(NAP) }
    }
    None
}

/// Holds the tables of this crate: functions, types and their attributes, symbols, containers, what front ends have lent.
pub fn hold_tables() -> Vec<Held> {
    // Tables that are made when they are first used register types, so none may be made while the table of types is held.
    global::make();
    type_attr::make();
    env::make();
    let mut held = Vec::new();
    held.extend(container_lock::hold());
    held.extend(global::hold());
    held.extend(type_info::hold());
    held.extend(type_attr::hold());
    held.extend(env::hold());
    held.extend(signal::hold());
    held.extend(tensor_source::hold());
    held.extend(builtin::hold());
    held.extend(capi::hold());
    held
}
