//! Instrumented runs, call by call.
//!
//! With an instrument set, limits given or a profile asked for, every instruction of the executable runs as it stands
//! there, calls are reported before and after, and what the run uses is counted. Frames lie on the same stack as
//! elsewhere, so recursion is as deep as in a run that nobody watches.

use relaxide_ffi::{Any, AnyView, Error};

use super::Vm;
use super::instrument::Verdict;
use super::interpreter::{NativeDepth, Run, broken, no_truth, register, store};
use super::limits::LimitedRun;
use super::link::Callee;
use super::profile::{Profile, bytes_of};
use super::program::{Decoded, Destination, Operand, Operands};
use super::stack::{Frame, Stack};
use crate::builtins;
use crate::host::Host;

/// A call of a function in bytecode whose end is to be reported.
struct Reported {
    func: u32,
    /// How many frames are active inside the call.
    depth: usize,
    args: Vec<Any>,
}

impl Vm {
    /// As [`Vm::run`], with an eye on each call; what it sees is entered in the profile, if there is one.
    pub(super) fn run_instrumented(
        &self,
        stack: &mut Stack,
        index: usize,
        args: &[AnyView<'_>],
        mut profile: Option<&mut Profile>,
    ) -> Result<Any, Error> {
        let _depth = NativeDepth::enter()?;
        let limited = self.watch.limited().map(|limited| LimitedRun::enter(self, limited));
        if let Some(profile) = profile.as_deref_mut() {
            profile.begin(index as u32, args);
        }
        if let Some(Callee::Tir(function)) = self.callees.get(index) {
            let result = self.run_tir(function, index, args)?;
            profile.into_iter().for_each(|profile| profile.end(bytes_of(&[result.as_view()])));
            return Ok(result);
        }
        let entry = self.program.entries.get(index).ok_or_else(|| broken("a function"))?;
        stack.registers.extend(args.iter().map(|arg| arg.to_owned()));
        stack.open(Frame { func: index as u32, base: 0, call: 0, dst: Destination::NONE }, entry.registers)?;
        let run = Run::new(self, stack, entry.start);
        let mut instrumented = Instrumented { run, reported: Vec::new(), limited, profile };
        instrumented.until_done().map_err(|error| instrumented.run.trace(&error))
    }
}

struct Instrumented<'vm, 'stack, 'profile> {
    run: Run<'vm, 'stack>,
    reported: Vec<Reported>,
    limited: Option<LimitedRun>,
    profile: Option<&'profile mut Profile>,
}

impl Instrumented<'_, '_, '_> {
    fn until_done(&mut self) -> Result<Any, Error> {
        let vm = self.run.vm;
        self.check_new_frame()?;
        loop {
            if let Some(limited) = &self.limited {
                limited.step()?;
            }
            self.run.pulse.step()?;
            let op = vm.program.ops.get(self.run.pc).ok_or_else(|| broken("the end of a function"))?;
            match *op {
                Decoded::Call { func, args, dst } => self.call(func, args, dst)?,
                Decoded::Goto { target } => self.run.pc = target as usize,
                Decoded::If { cond, otherwise } => {
                    let value = register(self.frame()?, cond)?;
                    let truth = value.as_int().ok_or_else(|| no_truth(value))?;
                    self.run.pc = if truth == 0 { otherwise as usize } else { self.run.pc + 1 };
                }
                Decoded::Ret { result } => {
                    let value = self.run.take_result(result)?;
                    self.report_end(&value)?;
                    if let Some(value) = self.run.close(value)? {
                        return Ok(value);
                    }
                }
            }
        }
    }

    fn frame(&mut self) -> Result<&mut [Any], Error> {
        self.run.stack.registers.get_mut(self.run.base..).ok_or_else(|| broken("a frame"))
    }

    /// Checks the limits after a frame was pushed.
    fn check_new_frame(&self) -> Result<(), Error> {
        self.limited.as_ref().map_or(Ok(()), |limited| limited.check_new_frame(self.run.stack))
    }

    fn call(&mut self, func: u32, args: Operands, dst: Destination) -> Result<(), Error> {
        let vm = self.run.vm;
        let callee = vm.pool.get(func as usize).ok_or_else(|| broken("a function"))?;
        let name = vm.info(func as usize)?.name.as_str();
        let has_instrument = vm.watch.has_instrument();
        let frame = self.run.stack.registers.get_mut(self.run.base..).ok_or_else(|| broken("a frame"))?;
        if has_instrument {
            let verdict = vm.with_views(frame, args, |views| vm.watch.before(callee, name, views))?;
            if let Verdict::Skip = verdict {
                store(frame, dst, Any::none())?;
                self.run.pc += 1;
                return Ok(());
            }
        }
        if let Some((inner, skip, bound)) = self.in_bytecode(func, args)? {
            self.note(func, inner, args, has_instrument);
            self.run.call_bytecode(inner as usize, args, skip, &bound, dst)?;
            return self.check_new_frame();
        }
        let (counted, skip) = self.counted_as(func, args);
        let frame = self.run.stack.registers.get_mut(self.run.base..).ok_or_else(|| broken("a frame"))?;
        let profile = &mut self.profile;
        let result = vm.with_views(frame, args, |views| {
            if let Some(profile) = profile {
                profile.begin(counted, views.get(skip..).unwrap_or_default());
            }
            let result = vm.call_linked(func as usize, views)?;
            if let Some(profile) = profile {
                profile.end(bytes_of(&[result.as_view()]));
            }
            if has_instrument {
                vm.watch.after(callee, name, &result, views)?;
            }
            Ok::<_, Error>(result)
        })?;
        store(frame, dst, result)?;
        self.run.pc += 1;
        Ok(())
    }

    /// The function that a profile counts a call as, and how many operands are not its arguments: a kernel that is called with
    /// integers is counted by its own name.
    fn counted_as(&self, func: u32, args: Operands) -> (u32, usize) {
        let by_builtin = match self.run.vm.callees.get(func as usize) {
            Some(Callee::Builtin(builtin, _)) => builtin.name == builtins::CALL_TIR_DYN,
            _ => false,
        };
        match self.run.vm.program.operands(args).first() {
            Some(Operand::Function(kernel)) if by_builtin => (*kernel, 1),
            _ => (func, 0),
        }
    }

    /// The function in bytecode that a call leads to, how many operands are not its arguments, and what follows them.
    fn in_bytecode(&self, func: u32, args: Operands) -> Result<Option<(u32, usize, Vec<Any>)>, Error> {
        match self.run.vm.callees.get(func as usize) {
            Some(Callee::Bytecode) => Ok(Some((func, 0, Vec::new()))),
            Some(Callee::Builtin(builtin, _)) if builtin.name == builtins::INVOKE_CLOSURE => {
                if self.run.vm.program.operands(args).len() < 2 {
                    return Ok(None);
                }
                let closure = self.run.own_closure(args)?;
                Ok(closure.map(|closure| (closure.index() as u32, 2, closure.bound().to_vec())))
            }
            _ => Ok(None),
        }
    }

    /// Notes a call whose end comes with a return: the function that the instruction names, and that in bytecode that it
    /// leads to.
    fn note(&mut self, func: u32, inner: u32, args: Operands, has_instrument: bool) {
        let vm = self.run.vm;
        let frame = self.run.stack.registers.get(self.run.base..).unwrap_or_default();
        if let Some(profile) = &mut self.profile {
            vm.with_views(frame, args, |views| profile.begin(inner, views));
        }
        if has_instrument {
            let own = |operand: &Operand| vm.view(frame, *operand).to_owned();
            let args = vm.program.operands(args).iter().map(own).collect();
            self.reported.push(Reported { func, depth: self.run.stack.frames.len() + 1, args });
        }
    }

    /// Reports the end of the call that the innermost frame is, if its beginning was reported.
    fn report_end(&mut self, result: &Any) -> Result<(), Error> {
        if let Some(profile) = &mut self.profile {
            profile.end(bytes_of(&[result.as_view()]));
        }
        let depth = self.run.stack.frames.len();
        let Some(call) = self.reported.pop_if(|call| call.depth == depth) else { return Ok(()) };
        let vm = self.run.vm;
        let callee = vm.pool.get(call.func as usize).ok_or_else(|| broken("a function"))?;
        let name = vm.info(call.func as usize)?.name.as_str();
        let views: Vec<AnyView<'_>> = call.args.iter().map(Any::as_view).collect();
        vm.watch.after(callee, name, result, &views)
    }
}

impl Vm {
    /// Calls whatever an entry of the function table is.
    pub(super) fn call_linked(&self, func: usize, args: &[AnyView<'_>]) -> Result<Any, Error> {
        match self.callees.get(func) {
            Some(Callee::Packed(function)) => function.call(args),
            Some(Callee::Builtin(builtin, _)) => builtin.run(self, args),
            _ => self.invoke(func, args),
        }
    }
}
