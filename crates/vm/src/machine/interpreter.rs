//! The dispatch loop.
//!
//! It takes one decoded instruction after the other. Calls between functions in bytecode, and of closures in bytecode,
//! open a frame on the same stack and go on in the same loop, so recursion in a program is bounded by the stack's limit
//! and not by the native stack. Everything else is called with its arguments as borrowed views: no count is touched and
//! nothing is allocated for up to [`INLINE_ARGS`] arguments.
//!
//! What instructions name exists ([`verify`](crate::verify) has checked); the loop still uses checked indexing, whose
//! cost does not show beside a call, since a crate without `unsafe` cannot ask for less.
//!
//! With an instrument set, a second instance of the loop reports each call; the first does not ask.

use std::cell::Cell;

use relaxide_ffi::{Any, AnyView, Error, ErrorKind, Function};

use super::closure::Closure;
use super::instrument::Verdict;
use super::link::Callee;
use super::program::{Destination, Op, Operand, Operands};
use super::stack::{Frame, Stack};
use super::{Vm, check_arity};

/// Calls with more arguments gather them on the heap.
const INLINE_ARGS: usize = 16;
/// How often functions from outside may call back into a machine, one inside the other.
const MAX_NATIVE_DEPTH: usize = 128;
/// How many frames the trace of an error shows.
const TRACED_FRAMES: usize = 16;

thread_local! {
    static NATIVE_DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Counts a run on the native stack.
struct NativeDepth;

impl NativeDepth {
    fn enter() -> Result<Self, Error> {
        let depth = NATIVE_DEPTH.get() + 1;
        if depth > MAX_NATIVE_DEPTH {
            let message = format!("functions and the VM have called each other {MAX_NATIVE_DEPTH} times deep");
            return Err(Error::new("RecursionError", message));
        }
        NATIVE_DEPTH.set(depth);
        Ok(Self)
    }
}

impl Drop for NativeDepth {
    fn drop(&mut self) {
        NATIVE_DEPTH.set(NATIVE_DEPTH.get() - 1);
    }
}

/// What an instruction leads to.
enum Next {
    /// The next instruction, or the first one of the frame that was opened.
    Step,
    Jump(usize),
    /// The outermost function has returned.
    Done(Any),
}

impl Vm {
    /// Runs a function that has a body, with as many arguments as it takes, on an empty stack.
    pub(super) fn run<const INSTRUMENTED: bool>(
        &self,
        stack: &mut Stack,
        index: usize,
        args: &[AnyView<'_>],
    ) -> Result<Any, Error> {
        let _depth = NativeDepth::enter()?;
        if let Some(Callee::Tir(function)) = self.callees.get(index) {
            return self.run_tir(function, index, args);
        }
        let entry = self.program.entries.get(index).copied().unwrap_or_default();
        stack.kept.resize(self.program.plans.len(), Any::none());
        stack.registers.extend(args.iter().map(|arg| arg.to_owned()));
        stack.open(Frame { func: index, base: 0, call: 0, dst: None }, entry.registers)?;
        let mut run = Run { vm: self, stack, pc: entry.start, base: 0 };
        run.until_done::<INSTRUMENTED>().map_err(|error| run.trace(&error))
    }

    /// Calls a native function on a register file of its own: arguments first, the result behind them.
    fn run_tir(&self, function: &Function, index: usize, args: &[AnyView<'_>]) -> Result<Any, Error> {
        let entry = self.program.entries.get(index).copied().unwrap_or_default();
        let mut registers: Vec<Any> = args.iter().map(|arg| arg.to_owned()).collect();
        registers.resize(entry.registers, Any::none());
        let (constants, pool) = (self.constants.as_ptr().cast_mut(), self.pool.as_ptr().cast_mut());
        let lists = [registers.as_mut_ptr(), constants, pool].map(|list| Any::from_ptr(list.cast()));
        let [file, constants, pool] = &lists;
        function.call(&[self.handle.as_view(), file.as_view(), constants.as_view(), pool.as_view()])?;
        registers.get_mut(entry.num_args).map(std::mem::take).ok_or_else(|| broken("the result of a native function"))
    }
}

/// A run: the machine, its stack, and where it is.
struct Run<'vm, 'stack> {
    vm: &'vm Vm,
    stack: &'stack mut Stack,
    pc: usize,
    base: usize,
}

impl<'vm> Run<'vm, '_> {
    fn until_done<const INSTRUMENTED: bool>(&mut self) -> Result<Any, Error> {
        let vm = self.vm;
        loop {
            let op = vm.program.ops.get(self.pc).ok_or_else(|| broken("the end of a function"))?;
            match self.step::<INSTRUMENTED>(op)? {
                Next::Step => self.pc += 1,
                Next::Jump(target) => self.pc = target,
                Next::Done(result) => return Ok(result),
            }
        }
    }

    #[inline]
    fn step<const INSTRUMENTED: bool>(&mut self, op: &Op) -> Result<Next, Error> {
        if INSTRUMENTED && let Some((func, args, dst)) = called(op) {
            let result = self.instrumented_call(func, args)?;
            return self.store(dst, result);
        }
        match *op {
            Op::Packed { func, args, dst } => {
                let Some(Callee::Packed(function)) = self.vm.callees.get(func as usize) else {
                    return Err(broken("a function from outside"));
                };
                let result = self.with_views(args, |views| function.call(views))?;
                self.store(dst, result)
            }
            Op::Builtin { builtin, args, dst, .. } => {
                let vm = self.vm;
                let result = self.with_views(args, |views| builtin.run(vm, views))?;
                self.store(dst, result)
            }
            Op::Planned { plan, dst, .. } => self.planned(plan as usize, dst),
            Op::Kill { dst, .. } => self.store(Some(dst), Any::none()),
            Op::Bytecode { func, args, dst } => self.call_bytecode(func as usize, args, 0, &[], dst),
            Op::InvokeClosure { args, dst, .. } => self.invoke_closure(args, dst),
            Op::Tir { func, args, dst } => {
                let vm = self.vm;
                let result = self.with_views(args, |views| vm.invoke(func as usize, views))?;
                self.store(dst, result)
            }
            Op::Ret { result } => self.ret(result),
            Op::Goto { target } => Ok(Next::Jump(target as usize)),
            Op::If { cond, otherwise } => self.branch(cond, otherwise),
        }
    }

    #[inline]
    fn register(&self, register: u32) -> Result<&Any, Error> {
        self.stack.registers.get(self.base + register as usize).ok_or_else(|| broken("a register"))
    }

    #[inline]
    fn store(&mut self, dst: Destination, value: Any) -> Result<Next, Error> {
        if let Some(register) = dst {
            let place = self.stack.registers.get_mut(self.base + register as usize);
            *place.ok_or_else(|| broken("a register"))? = value;
        }
        Ok(Next::Step)
    }

    /// Runs a builtin whose operands are known.
    #[inline]
    fn planned(&mut self, plan: usize, dst: Destination) -> Result<Next, Error> {
        let vm = self.vm;
        let Stack { registers, kept, .. } = &mut *self.stack;
        let registers = registers.get(self.base..).unwrap_or_default();
        let program = vm.program.plans.get(plan).ok_or_else(|| broken("a plan"))?;
        let result = program.run(vm, |operand| vm.view(registers, operand), kept.get_mut(plan))?;
        self.store(dst, result)
    }

    /// The value of an operand, borrowed.
    #[inline]
    fn view(&self, operand: Operand) -> AnyView<'_> {
        self.vm.view(self.stack.registers.get(self.base..).unwrap_or_default(), operand)
    }

    /// Runs `call` with the operands as views. The array for them is no larger than it must be, since it is cleared first.
    #[inline]
    fn with_views<T>(&self, args: Operands, call: impl FnOnce(&[AnyView<'_>]) -> T) -> T {
        let operands = self.vm.program.operands(args);
        match operands.len() {
            0..=4 => self.gather::<4, T>(operands, call),
            5..=8 => self.gather::<8, T>(operands, call),
            9..=INLINE_ARGS => self.gather::<INLINE_ARGS, T>(operands, call),
            _ => {
                let views: Vec<AnyView<'_>> = operands.iter().map(|operand| self.view(*operand)).collect();
                call(&views)
            }
        }
    }

    /// Runs `call` with at most `N` operands as views.
    #[inline]
    fn gather<const N: usize, T>(&self, operands: &[Operand], call: impl FnOnce(&[AnyView<'_>]) -> T) -> T {
        let mut views = [AnyView::none(); N];
        for (view, operand) in views.iter_mut().zip(operands) {
            *view = self.view(*operand);
        }
        call(views.get(..operands.len()).unwrap_or_default())
    }

    /// Opens a frame for a function in bytecode. The first `skip` operands are not arguments; `bound` values follow.
    fn call_bytecode(
        &mut self,
        func: usize,
        args: Operands,
        skip: usize,
        bound: &[Any],
        dst: Destination,
    ) -> Result<Next, Error> {
        let vm = self.vm;
        let entry = vm.program.entries.get(func).ok_or_else(|| broken("a function"))?;
        let base = self.stack.registers.len();
        for operand in vm.program.operands(args).iter().skip(skip) {
            let value = self.view(*operand).to_owned();
            self.stack.registers.push(value);
        }
        self.stack.registers.extend(bound.iter().cloned());
        self.stack.open(Frame { func, base, call: self.pc, dst }, entry.registers)?;
        self.base = base;
        Ok(Next::Jump(entry.start))
    }

    /// Calls the value that the second operand is with those behind it.
    fn invoke_closure(&mut self, args: Operands, dst: Destination) -> Result<Next, Error> {
        let vm = self.vm;
        let callee = self.vm.program.operands(args).get(1).copied().map(|operand| self.view(operand));
        let callee = callee.ok_or_else(|| broken("the callee"))?;
        if let Some(closure) = callee.downcast_ref::<Closure>()
            && closure.is_of(vm)
            && matches!(vm.callees.get(closure.index()), Some(Callee::Bytecode))
        {
            let closure = closure.clone();
            let found = vm.program.operands(args).len() - 2 + closure.bound().len();
            check_arity(vm.info(closure.index())?, found)?;
            return self.call_bytecode(closure.index(), args, 2, closure.bound(), dst);
        }
        let result = self.with_views(args, |views| {
            let [_, callee, rest @ ..] = views else { return Err(broken("the callee")) };
            vm.call_value(*callee, rest)
        })?;
        self.store(dst, result)
    }

    fn ret(&mut self, result: Option<u32>) -> Result<Next, Error> {
        let value = match result {
            None => Any::none(),
            // The frame ends here, so the value moves out of it.
            Some(register) => {
                let place = self.stack.registers.get_mut(self.base + register as usize);
                std::mem::take(place.ok_or_else(|| broken("a register"))?)
            }
        };
        let frame = self.stack.close().ok_or_else(|| broken("a frame"))?;
        let Some(caller) = self.stack.frames.last() else { return Ok(Next::Done(value)) };
        self.base = caller.base;
        self.store(frame.dst, value)?;
        Ok(Next::Jump(frame.call + 1))
    }

    fn branch(&self, cond: u32, otherwise: u32) -> Result<Next, Error> {
        let value = self.register(cond)?;
        let truth = value.as_view().as_int().ok_or_else(|| {
            let message = format!("a branch needs an integer or truth value and got {}", value.type_key());
            Error::new(ErrorKind::TypeError, message)
        })?;
        Ok(if truth != 0 { Next::Step } else { Next::Jump(otherwise as usize) })
    }

    /// A call with a report before and after. Calls between functions in bytecode take the native stack here.
    fn instrumented_call(&self, func: u32, args: Operands) -> Result<Any, Error> {
        let vm = self.vm;
        let callee = vm.pool.get(func as usize).ok_or_else(|| broken("a function"))?;
        let name = vm.info(func as usize)?.name.as_str();
        self.with_views(args, |views| {
            if let Verdict::Skip = vm.instrument.before(callee, name, views)? {
                return Ok(Any::none());
            }
            let result = vm.call_linked(func as usize, views)?;
            vm.instrument.after(callee, name, &result, views)?;
            Ok(result)
        })
    }

    /// The error with the instructions that were active, innermost first.
    #[cold]
    fn trace(&self, error: &Error) -> Error {
        let mut text = error.backtrace();
        let mut at = self.pc;
        for frame in self.stack.frames.iter().rev().take(TRACED_FRAMES) {
            let name = self.vm.executable.functions().get(frame.func).map_or("?", |info| info.name.as_str());
            text.push_str(&format!("  File \"relax.VMExecutable\", line {at}, in {name}\n"));
            at = frame.call;
        }
        let (cause, extra) = (error.cause().cloned(), error.extra_context().cloned());
        Error::with_backtrace(error.kind(), error.message(), &text, cause, extra)
    }
}

impl Vm {
    /// The value of an operand in a frame, borrowed.
    #[inline]
    fn view<'a>(&'a self, registers: &'a [Any], operand: Operand) -> AnyView<'a> {
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

    /// Calls whatever an entry of the function table is.
    fn call_linked(&self, func: usize, args: &[AnyView<'_>]) -> Result<Any, Error> {
        match self.callees.get(func) {
            Some(Callee::Packed(function)) => function.call(args),
            Some(Callee::Builtin(builtin, _)) => builtin.run(self, args),
            _ => self.invoke(func, args),
        }
    }
}

/// The function, the operands and the destination of a call.
fn called(op: &Op) -> Option<(u32, Operands, Destination)> {
    match *op {
        Op::Packed { func, args, dst }
        | Op::Builtin { func, args, dst, .. }
        | Op::Planned { func, args, dst, .. }
        | Op::InvokeClosure { func, args, dst }
        | Op::Bytecode { func, args, dst }
        | Op::Tir { func, args, dst } => Some((func, args, dst)),
        Op::Kill { dst, func, args } => Some((func, args, Some(dst))),
        Op::Ret { .. } | Op::Goto { .. } | Op::If { .. } => None,
    }
}

/// The error of something that the verifier has proved to exist.
#[cold]
fn broken(what: &str) -> Error {
    Error::new(ErrorKind::InternalError, format!("the verified program lacks {what}; this is a defect of the VM"))
}
