//! Watching the calls of a program with a function.

use relaxide_ffi::{Any, AnyView, Error, Function};

use super::VirtualMachine;
use super::watch::Watch;

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

impl Watch {
    /// Tells the instrument of a call that is about to be made.
    pub(super) fn before(&self, callee: &Any, name: &str, args: &[AnyView<'_>]) -> Result<Verdict, Error> {
        let answer = self.tell(callee, name, true, AnyView::none(), args)?;
        let skip = answer.as_int() == Some(InstrumentReturn::SkipRun as i64);
        Ok(if skip { Verdict::Skip } else { Verdict::Run })
    }

    /// Tells the instrument of a call that was made.
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
        // A copy, without the lock: an instrument may replace itself.
        let Some(function) = self.instrument() else { return Ok(Any::none()) };
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
        self.vm().watch.set_instrument(function);
    }
}
