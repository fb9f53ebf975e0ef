//! Watching the calls of a program.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

use relaxide_ffi::{Any, AnyView, Error, Function};

use super::VirtualMachine;

/// What an instrument may return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i64)]
pub enum InstrumentReturn {
    /// Go on.
    NoOp = 0,
    /// Do not make the call; its result is nothing. Only before a call.
    SkipRun = 1,
}

/// Whether a call is to be made.
pub(super) enum Verdict {
    Run,
    Skip,
}

/// The function that is told of each call, if there is one.
#[derive(Default)]
pub(super) struct Instrument {
    is_set: AtomicBool,
    function: RwLock<Option<Function>>,
}

impl Instrument {
    pub(super) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Relaxed)
    }

    fn set(&self, function: Option<Function>) {
        let mut place = self.function.write().unwrap_or_else(PoisonError::into_inner);
        self.is_set.store(function.is_some(), Ordering::Relaxed);
        *place = function;
    }

    /// Tells of a call that is about to be made.
    pub(super) fn before(&self, callee: &Any, name: &str, args: &[AnyView<'_>]) -> Result<Verdict, Error> {
        let answer = self.tell(callee, name, true, AnyView::none(), args)?;
        let skip = answer.as_int() == Some(InstrumentReturn::SkipRun as i64);
        Ok(if skip { Verdict::Skip } else { Verdict::Run })
    }

    /// Tells of a call that was made.
    pub(super) fn after(&self, callee: &Any, name: &str, result: &Any, args: &[AnyView<'_>]) -> Result<(), Error> {
        self.tell(callee, name, false, result.as_view(), args).map(|_| ())
    }

    fn tell(
        &self,
        callee: &Any,
        name: &str,
        before: bool,
        result: AnyView<'_>,
        args: &[AnyView<'_>],
    ) -> Result<Any, Error> {
        // Called without the lock: an instrument may replace itself.
        let function = self.function.read().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(function) = function else { return Ok(Any::none()) };
        let name = Any::from(name);
        let head = [callee.as_view(), name.as_view(), before.into(), result];
        let all: Vec<AnyView<'_>> = head.into_iter().chain(args.iter().copied()).collect();
        function.call(&all)
    }
}

impl VirtualMachine {
    /// Has a function told of each call that instructions make: `(function, name, before, result, argument…)`, once
    /// before and once after. What it returns before decides whether the call is made ([`InstrumentReturn`]). `None`
    /// ends it. Runs that have begun go on as they were.
    pub fn set_instrument(&self, function: Option<Function>) {
        self.vm().instrument.set(function);
    }
}
