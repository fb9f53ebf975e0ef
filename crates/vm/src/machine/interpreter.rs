//! The dispatch loop.
//!
//! It takes one prepared instruction after the other. Calls between functions in bytecode, and of closures in bytecode,
//! open a frame on the same stack and go on in the same loop, so recursion in a program is bounded by the stack's limit
//! and not by the native stack. Everything else is called with its arguments as borrowed views: no count is touched and
//! nothing is allocated for up to [`INLINE_ARGS`] arguments.
//!
//! What instructions name exists ([`verify`](crate::verify) has checked); the loop still uses checked indexing, whose
//! cost does not show beside a call, since a crate without `unsafe` cannot ask for less.
//!
//! Runs that somebody watches go through [`instrumented`](super::instrumented) instead; this loop does not ask.

use std::cell::Cell;

use relaxide_ffi::{Any, AnyView, Error, ErrorKind, Function, KeptLock, Shape};
use relaxide_runtime::memory::Storage;

use super::allocation_cache::AllocationCache;
use super::link::Callee;
use super::plan::Source;
use super::program::{Decoded, Destination, Operand, Operands};
use super::resolve::ResolvedOp;
use super::stack::{Frame, Stack};
use super::{Vm, check_arity};
use crate::builtins;
use crate::closure::Closure;
use crate::host::{self, Host};
use crate::pulse::Pulse;

/// Calls with more arguments gather them on the heap.
const INLINE_ARGS: usize = 16;
/// How many frames the trace of an error shows.
const TRACED_FRAMES: usize = 16;

thread_local! {
    static NATIVE_DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Counts a run on the native stack.
pub(super) struct NativeDepth;

impl NativeDepth {
    pub(super) fn enter() -> Result<Self, Error> {
        let depth = NATIVE_DEPTH.get();
        if relaxide_runtime::stack::is_low() {
            let message = format!(
                "functions and the VM have called each other {depth} times deep, as deep as the stack of this thread \
                 allows (programs as bytecode need no stack for their recursion)"
            );
            return Err(Error::new("RecursionError", message));
        }
        NATIVE_DEPTH.set(depth + 1);
        Ok(Self)
    }
}

impl Drop for NativeDepth {
    fn drop(&mut self) {
        NATIVE_DEPTH.set(NATIVE_DEPTH.get() - 1);
    }
}

impl Vm {
    /// Runs a function that has a body, with as many arguments as it takes, on an empty stack.
    pub(super) fn run(&self, stack: &mut Stack, index: usize, args: &[AnyView<'_>]) -> Result<Any, Error> {
        let _depth = NativeDepth::enter()?;
        let entry = self.program.entries.get(index).ok_or_else(|| broken("a function"))?;
        stack.cache.fit(self.program.plans.len());
        stack.registers.extend(args.iter().map(|arg| arg.to_owned()));
        stack.open(Frame { func: index as u32, base: 0, call: 0, dst: Destination::NONE }, entry.registers)?;
        let mut run = Run::new(self, stack, entry.start);
        run.until_done().map_err(|error| run.trace(&error))
    }

    /// Calls a native function on a register file of its own: arguments first, the result behind them.
    pub(super) fn run_tir(&self, function: &Function, index: usize, args: &[AnyView<'_>]) -> Result<Any, Error> {
        let entry = self.program.entries.get(index).ok_or_else(|| broken("a function"))?;
        let mut registers: Vec<Any> = args.iter().map(|arg| arg.to_owned()).collect();
        registers.resize(entry.registers, Any::none());
        let (constants, pool) = (self.constants.as_ptr().cast_mut(), self.pool.as_ptr().cast_mut());
        let lists = [registers.as_mut_ptr(), constants, pool].map(|list| Any::from_ptr(list.cast()));
        let [file, constants, pool] = &lists;
        function.call(&[self.handle.as_view(), file.as_view(), constants.as_view(), pool.as_view()])?;
        registers.get_mut(entry.num_args).map(std::mem::take).ok_or_else(|| broken("the result of a native function"))
    }

    /// The value of an operand in a frame, borrowed.
    #[inline]
    pub(super) fn view<'a>(&'a self, registers: &'a [Any], operand: Operand) -> AnyView<'a> {
        let value = match operand {
            Operand::Register(register) => registers.get(register as usize),
            Operand::Constant(index) => self.constants.get(index as usize),
            Operand::Function(index) => self.pool.get(index as usize),
            Operand::Machine => Some(&self.handle),
            Operand::Immediate(value) => return value.into(),
            Operand::Null => None,
        };
        value.map_or(AnyView::none(), Any::as_view)
    }

    /// Calls a function from outside that runs under an interpreter's lock, which is kept behind the call.
    #[inline(never)]
    fn call_hosted(
        &self,
        func: u32,
        args: Operands,
        dst: Destination,
        frame: &mut [Any],
        kept: &mut KeptLock,
    ) -> Result<(), Error> {
        if let Some(Callee::Packed(function)) = self.callees.get(func as usize) {
            kept.keep_for(function);
        }
        self.call_packed(func, args, dst, frame)
    }

    /// Calls a function from outside.
    #[inline(always)] // Kernels are called here: a call more shows.
    fn call_packed(&self, func: u32, args: Operands, dst: Destination, frame: &mut [Any]) -> Result<(), Error> {
        let Some(Callee::Packed(function)) = self.callees.get(func as usize) else {
            return Err(broken("a function from outside"));
        };
        let mut result = Any::none();
        self.with_views(frame, args, |views| function.call_into(views, &mut result))?;
        // A kernel gives nothing, and nobody wants it.
        if dst.register().is_none() && result.is_none() {
            return Ok(());
        }
        store(frame, dst, result)
    }

    /// Runs a plan.
    #[inline]
    fn make(&self, plan: u32, registers: &[Any], cache: &mut AllocationCache) -> Result<Any, Error> {
        let found = self.program.plans.get(plan as usize).ok_or_else(|| broken("a plan"))?;
        found.run(plan, Source { vm: self, registers }, cache)
    }

    /// Runs instructions as they stand in the executable, where the plan for them has failed: then the error is the
    /// builtin's own and at the instruction that it belongs to.
    #[cold]
    #[inline(never)]
    fn replay(&self, pc: &mut usize, length: u32, frame: &mut [Any]) -> Result<(), Error> {
        let first = *pc;
        for at in first..first + length as usize {
            *pc = at;
            let Some(Decoded::Call { func, args, dst }) = self.program.ops.get(at).copied() else {
                return Err(broken("an instruction that was joined"));
            };
            let result = self.with_views(frame, args, |views| self.call_linked(func as usize, views))?;
            store(frame, dst, result)?;
        }
        *pc = first;
        Ok(())
    }

    /// Empties the register that a plan is about to write. In a loop, it may hold what the plan made in the iteration before.
    #[inline]
    fn release_before(&self, plan: u32, frame: &mut [Any], dst: u32, cache: &mut AllocationCache) -> Result<(), Error> {
        let place = register(frame, dst)?;
        if place.is_none() {
            return Ok(());
        }
        let found = self.program.plans.get(plan as usize).ok_or_else(|| broken("a plan"))?;
        if found.has_own_register {
            found.take_back(plan, std::mem::take(place), cache);
        }
        Ok(())
    }

    /// Gives what a plan made back to it, if there is anything.
    #[inline]
    fn take_back(&self, plan: u32, value: Any, cache: &mut AllocationCache) -> Result<(), Error> {
        if !value.is_none() {
            let found = self.program.plans.get(plan as usize).ok_or_else(|| broken("a plan"))?;
            found.take_back(plan, value, cache);
        }
        Ok(())
    }

    /// Runs `call` with operands as views. The array for them is no larger than it must be, since it is cleared first.
    #[inline]
    pub(super) fn with_views<T>(&self, registers: &[Any], args: Operands, call: impl FnOnce(&[AnyView<'_>]) -> T) -> T {
        let operands = self.program.operands(args);
        match operands.len() {
            0..=4 => self.gather::<4, T>(registers, operands, call),
            5..=8 => self.gather::<8, T>(registers, operands, call),
            9..=INLINE_ARGS => self.gather::<INLINE_ARGS, T>(registers, operands, call),
            _ => {
                let views: Vec<AnyView<'_>> = operands.iter().map(|operand| self.view(registers, *operand)).collect();
                call(&views)
            }
        }
    }

    /// Runs `call` with at most `N` operands as views.
    #[inline]
    fn gather<const N: usize, T>(
        &self,
        registers: &[Any],
        operands: &[Operand],
        call: impl FnOnce(&[AnyView<'_>]) -> T,
    ) -> T {
        let mut views = [AnyView::none(); N];
        for (view, operand) in views.iter_mut().zip(operands) {
            *view = self.view(registers, *operand);
        }
        call(views.get(..operands.len()).unwrap_or_default())
    }
}

/// A run: the machine, its stack, and where it is.
pub(super) struct Run<'vm, 'stack> {
    pub(super) vm: &'vm Vm,
    pub(super) stack: &'stack mut Stack,
    pub(super) pc: usize,
    pub(super) base: usize,
    /// An interpreter's lock, from one of its functions to the next. Between them lies only what is short: no call of
    /// anything else, no change of the frame, no jump.
    kept: KeptLock,
    pub(super) pulse: Pulse,
}

/// What ended a stretch of instructions in one frame.
enum Stop {
    /// A call of a function in bytecode.
    Call { func: usize, args: Operands, dst: Destination },
    /// A call of a value.
    Closure { args: Operands, dst: Destination },
    /// The function returns.
    Return { result: Destination },
}

impl<'vm, 'stack> Run<'vm, 'stack> {
    /// A run from an instruction on, in the first frame of a stack.
    pub(super) fn new(vm: &'vm Vm, stack: &'stack mut Stack, pc: usize) -> Self {
        Self { vm, stack, pc, base: 0, kept: KeptLock::default(), pulse: Pulse::new() }
    }
}

impl Run<'_, '_> {
    fn until_done(&mut self) -> Result<Any, Error> {
        loop {
            let stop = self.until_stop()?;
            self.kept.give_up();
            match stop {
                Stop::Call { func, args, dst } => self.call_bytecode(func, args, 0, &[], dst)?,
                Stop::Closure { args, dst } => self.invoke_closure(args, dst)?,
                Stop::Return { result } => {
                    if let Some(value) = self.ret(result)? {
                        return Ok(value);
                    }
                }
            }
        }
    }

    /// Runs instructions until one changes the frame.
    fn until_stop(&mut self) -> Result<Stop, Error> {
        let vm = self.vm;
        let Stack { registers, cache, .. } = &mut *self.stack;
        let frame = registers.get_mut(self.base..).ok_or_else(|| broken("a frame"))?;
        let (pc, kept, pulse) = (&mut self.pc, &mut self.kept, &mut self.pulse);
        loop {
            match *vm.program.resolved.get(*pc).ok_or_else(|| broken("the end of a function"))? {
                ResolvedOp::Packed { func, args, dst } => {
                    kept.give_up();
                    vm.call_packed(func, args, dst, frame)?;
                }
                ResolvedOp::Hosted { func, args, dst } => vm.call_hosted(func, args, dst, frame, kept)?,
                ResolvedOp::MakeAlias { plan, dst, storage, storage_plan } => {
                    vm.release_before(plan, frame, dst, cache)?;
                    let kept = register(frame, storage)?.downcast_ref::<Storage>();
                    let kept = kept.and_then(|storage| cache.take_alias(plan, storage_plan, storage));
                    match kept.map_or_else(|| vm.make(plan, frame, cache), Ok) {
                        Ok(value) => *register(frame, dst)? = value,
                        Err(_) => vm.replay(pc, 1, frame)?,
                    }
                }
                ResolvedOp::MakeCached { plan, dst, length } => {
                    vm.release_before(plan, frame, dst, cache)?;
                    match cache.take(plan).map_or_else(|| vm.make(plan, frame, cache), Ok) {
                        Ok(value) => *register(frame, dst)? = value,
                        Err(_) => vm.replay(pc, length, frame)?,
                    }
                    *pc += length as usize;
                    continue;
                }
                ResolvedOp::Make { plan, dst, length } => {
                    vm.release_before(plan, frame, dst, cache)?;
                    match vm.make(plan, frame, cache) {
                        Ok(value) => *register(frame, dst)? = value,
                        Err(_) => vm.replay(pc, length, frame)?,
                    }
                    *pc += length as usize;
                    continue;
                }
                ResolvedOp::ShapeOf { tensor, dst } => {
                    if write_shape(frame, tensor, dst).is_none() {
                        vm.replay(pc, 1, frame)?;
                    }
                }
                ResolvedOp::Check { plan } => {
                    if vm.make(plan, frame, cache).is_err() {
                        vm.replay(pc, 1, frame)?;
                    }
                }
                ResolvedOp::Builtin { builtin, args, dst } => {
                    kept.give_up();
                    let result = vm.with_views(frame, args, |views| builtin.run(vm, views))?;
                    store(frame, dst, result)?;
                }
                ResolvedOp::Copy { from, dst } => {
                    let value = register(frame, from)?.clone();
                    *register(frame, dst)? = value;
                }
                ResolvedOp::Load { from, dst } => {
                    let value = vm.view(frame, from).to_owned();
                    *register(frame, dst)? = value;
                }
                ResolvedOp::Condition { from, dst } => {
                    let truth = builtins::truth(register(frame, from)?.as_view())?;
                    *register(frame, dst)? = truth.into();
                }
                ResolvedOp::Kill { dst } => *register(frame, dst)? = Any::none(),
                ResolvedOp::ReleaseCached { dst, plan } => {
                    vm.take_back(plan, std::mem::take(register(frame, dst)?), cache)?
                }
                ResolvedOp::ReleaseAlias { dst, plan, storage_plan } => {
                    let value = std::mem::take(register(frame, dst)?);
                    cache.give_alias(plan, storage_plan, 0, value);
                }
                ResolvedOp::Tir { func, args, dst } => {
                    kept.give_up();
                    let result = vm.with_views(frame, args, |views| vm.invoke(func as usize, views))?;
                    store(frame, dst, result)?;
                }
                ResolvedOp::Goto { target } => {
                    kept.give_up();
                    if target as usize <= *pc {
                        pulse.step()?;
                    }
                    *pc = target as usize;
                    continue;
                }
                ResolvedOp::If { cond, otherwise } => {
                    let value = register(frame, cond)?;
                    if value.as_int().ok_or_else(|| no_truth(value))? == 0 {
                        *pc = otherwise as usize;
                        continue;
                    }
                }
                ResolvedOp::Bytecode { func, args, dst } => return Ok(Stop::Call { func: func as usize, args, dst }),
                ResolvedOp::InvokeClosure { args, dst } => return Ok(Stop::Closure { args, dst }),
                ResolvedOp::Ret { result } => return Ok(Stop::Return { result }),
            }
            *pc += 1;
        }
    }

    /// Opens a frame for a function in bytecode. The first `skip` operands are not arguments; `bound` values follow.
    pub(super) fn call_bytecode(
        &mut self,
        func: usize,
        args: Operands,
        skip: usize,
        bound: &[Any],
        dst: Destination,
    ) -> Result<(), Error> {
        let vm = self.vm;
        self.pulse.step()?;
        let entry = vm.program.entries.get(func).ok_or_else(|| broken("a function"))?;
        let base = self.stack.registers.len();
        for operand in vm.program.operands(args).iter().skip(skip) {
            let caller = self.stack.registers.get(self.base..).unwrap_or_default();
            let value = vm.view(caller, *operand).to_owned();
            self.stack.registers.push(value);
        }
        self.stack.registers.extend(bound.iter().cloned());
        self.stack.open(Frame { func: func as u32, base, call: self.pc, dst }, entry.registers)?;
        self.base = base;
        self.pc = entry.start;
        Ok(())
    }

    /// The closure in bytecode of this machine that the second operand is, if it is one.
    pub(super) fn own_closure(&self, args: Operands) -> Result<Option<relaxide_ffi::Ref<Closure>>, Error> {
        let vm = self.vm;
        let [_, callee, rest @ ..] = vm.program.operands(args) else { return Err(broken("the callee")) };
        let callee = vm.view(self.stack.registers.get(self.base..).unwrap_or_default(), *callee);
        let Some(closure) = callee.downcast_ref::<Closure>() else { return Ok(None) };
        if !closure.is_of(vm) || !matches!(vm.callees.get(closure.index()), Some(Callee::Bytecode)) {
            return Ok(None);
        }
        check_arity(vm.info(closure.index())?, rest.len() + closure.bound().len())?;
        Ok(Some(closure.clone()))
    }

    /// Calls the value that the second operand is with those behind it.
    fn invoke_closure(&mut self, args: Operands, dst: Destination) -> Result<(), Error> {
        if let Some(closure) = self.own_closure(args)? {
            return self.call_bytecode(closure.index(), args, 2, closure.bound(), dst);
        }
        let vm = self.vm;
        let frame = self.stack.registers.get_mut(self.base..).ok_or_else(|| broken("a frame"))?;
        let result = vm.with_views(frame, args, |views| {
            let [_, callee, rest @ ..] = views else { return Err(broken("the callee")) };
            host::call_value(vm, *callee, rest)
        })?;
        store(frame, dst, result)?;
        self.pc += 1;
        Ok(())
    }

    /// Closes the innermost frame. The result of the outermost function comes back.
    fn ret(&mut self, result: Destination) -> Result<Option<Any>, Error> {
        let value = self.take_result(result)?;
        let Stack { registers, cache, frames } = &mut *self.stack;
        let func = frames.last().map_or(usize::MAX, |frame| frame.func as usize);
        let entry = self.vm.program.entries.get(func).ok_or_else(|| broken("a function"))?;
        let frame = registers.get_mut(self.base..).ok_or_else(|| broken("a frame"))?;
        for (own, plan) in &entry.own_registers {
            self.vm.take_back(*plan, std::mem::take(register(frame, *own)?), cache)?;
        }
        self.close(value)
    }

    /// The value of a register, or nothing. The frame ends, so the value moves out of it.
    pub(super) fn take_result(&mut self, result: Destination) -> Result<Any, Error> {
        let frame = self.stack.registers.get_mut(self.base..).ok_or_else(|| broken("a frame"))?;
        Ok(match result.register() {
            None => Any::none(),
            Some(result) => std::mem::take(register(frame, result)?),
        })
    }

    /// Goes back to the caller with a result, or passes it on if there is no caller.
    pub(super) fn close(&mut self, value: Any) -> Result<Option<Any>, Error> {
        let frame = self.stack.close().ok_or_else(|| broken("a frame"))?;
        let Some(caller) = self.stack.frames.last() else { return Ok(Some(value)) };
        self.base = caller.base;
        self.pc = frame.call + 1;
        let registers = self.stack.registers.get_mut(self.base..).ok_or_else(|| broken("a frame"))?;
        store(registers, frame.dst, value)?;
        Ok(None)
    }

    /// The error with the instructions that were active, innermost first.
    #[cold]
    pub(super) fn trace(&self, error: &Error) -> Error {
        let mut text = error.backtrace();
        let mut at = self.pc;
        let message = match self.vm.executable.origins().of(at) {
            Some(words) => format!("{} (in {words})", error.message()),
            None => error.message().to_string(),
        };
        for frame in self.stack.frames.iter().rev().take(TRACED_FRAMES) {
            let functions = self.vm.executable.functions();
            let name = functions.get(frame.func as usize).map_or("?", |info| info.name.as_str());
            text.push_str(&format!("  File \"relax.VMExecutable\", line {at}, in {name}\n"));
            at = frame.call;
        }
        let (cause, extra) = (error.cause().cloned(), error.extra_context().cloned());
        Error::with_backtrace(error.kind(), message, &text, cause, extra)
    }
}

#[inline]
pub(super) fn register(frame: &mut [Any], register: u32) -> Result<&mut Any, Error> {
    frame.get_mut(register as usize).ok_or_else(|| broken("a register"))
}

#[inline]
pub(super) fn store(frame: &mut [Any], dst: Destination, value: Any) -> Result<(), Error> {
    if let Some(dst) = dst.register() {
        *register(frame, dst)? = value;
    }
    Ok(())
}

/// Writes the shape of a tensor to another register. An equal one stays: shapes are values, and in a loop it is mostly
/// the same. Nothing where there is no tensor.
#[inline]
fn write_shape(frame: &mut [Any], tensor: u32, dst: u32) -> Option<()> {
    let [tensor, place] = frame.get_disjoint_mut([tensor as usize, dst as usize]).ok()?;
    let dims = tensor.as_tensor()?.shape();
    if place.as_view().as_shape().is_none_or(|found| found.as_slice() != dims) {
        *place = Shape::new(dims).into();
    }
    Some(())
}

#[cold]
pub(super) fn no_truth(value: &Any) -> Error {
    let message = format!("a branch needs an integer or bool and got {}", value.type_key());
    Error::new(ErrorKind::TypeError, message)
}

/// The error of something that the verifier has proved to exist.
#[cold]
pub(super) fn broken(what: &str) -> Error {
    Error::new(ErrorKind::InternalError, format!("the verified program lacks {what}; this is a defect of the VM"))
}
