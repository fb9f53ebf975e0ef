//! What a process makes once for each processor and keeps in its memory.
//!
//! What the entries of all kernels call, the functions that check arguments and raise errors, is a part of every library and follows from
//! the processor alone. A process that compiles one program after another needs it for each.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use crate::error::CodegenError;

/// Values by what they follow from.
pub(crate) struct Memo<K, V>(Mutex<BTreeMap<K, V>>);

/// Processors that a process compiles for, beyond which it forgets: each value has a few kilobytes at most.
const MOST: usize = 64;

impl<K: Ord, V: Clone> Memo<K, V> {
    pub const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// The value under a key, made where it is not there yet. Two threads that ask at once may both make it.
    pub fn get(&self, key: K, make: impl FnOnce() -> Result<V, CodegenError>) -> Result<V, CodegenError> {
        let kept = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = kept().get(&key) {
            return Ok(value.clone());
        }
        let value = make()?;
        let mut kept = kept();
        if kept.len() >= MOST {
            kept.clear();
        }
        kept.insert(key, value.clone());
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_made_once_for_each_key() {
        let (memo, mut made) = (Memo::new(), 0);
        let mut ask = |key: usize| {
            let make = || {
                made += 1;
                Ok(key * 2)
            };
            memo.get(key, make).unwrap()
        };
        assert_eq!((ask(1), ask(2), ask(1)), (2, 4, 2));
        for key in 100..100 + MOST {
            ask(key);
        }
        assert_eq!(ask(1), 2);
        assert_eq!(made, 2 + MOST + 1);
        // What fails is not kept.
        assert!(memo.get(3, || Err(CodegenError::Llvm("no".into()))).is_err());
        assert_eq!(memo.get(3, || Ok(7)).unwrap(), 7);
    }
}
