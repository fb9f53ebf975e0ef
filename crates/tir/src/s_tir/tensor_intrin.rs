//! Tensor intrinsics: what a piece of hardware computes, said twice. The *description* says it in plain loops, for
//! [`super::primitive::tensorize`] to recognize; the *implementation* says how it is done. Both are kernels over the same
//! parameters, with a root block that says what it reads and writes.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard};

use relaxide_ffi::Ref;

use super::ScheduleError;
use crate::PrimFunc;

/// A piece of computation, and how it is done.
#[derive(Clone, Debug)]
pub struct TensorIntrin {
    /// What is computed.
    pub desc: Ref<PrimFunc>,
    /// How.
    pub implementation: Ref<PrimFunc>,
}

static KNOWN: LazyLock<Mutex<HashMap<String, TensorIntrin>>> = LazyLock::new(Mutex::default);

fn known() -> MutexGuard<'static, HashMap<String, TensorIntrin>> {
    // What is behind the lock is whole after each insertion, whoever panicked.
    KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl TensorIntrin {
    /// Makes an intrinsic known under a name. One that is known already is replaced on request only.
    pub fn register(name: &str, intrin: TensorIntrin, replace: bool) -> Result<(), ScheduleError> {
        let (desc, implementation) = (&intrin.desc, &intrin.implementation);
        if desc.buffers.len() != implementation.buffers.len() {
            let (a, b) = (desc.buffers.len(), implementation.buffers.len());
            let reason = format!("the description has {a} parameters and the implementation {b}");
            return Err(ScheduleError::Operand(reason));
        }
        let mut known = known();
        if known.contains_key(name) && !replace {
            return Err(ScheduleError::Operand(format!("an intrinsic `{name}` is known already")));
        }
        known.insert(name.to_string(), intrin);
        Ok(())
    }

    /// The intrinsic of a name.
    pub fn get(name: &str) -> Option<TensorIntrin> {
        known().get(name).cloned()
    }
}
