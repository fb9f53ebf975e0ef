//! The dispatch loop.
//!
//! The verifier has checked registers and jumps, so the loop looks only at what a run can tell: what kind of value a register
//! holds. Frames and registers are the machine's own memory. Calls, of kernels too, and jumps back count as steps of the run's
//! [`Pulse`], which asks now and then whether the run is to stop.

use relaxide_ffi::{Any, AnyView, Error, ErrorKind, Ref, Tail, Tensor};
use relaxide_runtime::device::on_host;
use relaxide_runtime::memory::{Buffer, Storage};
use relaxide_vm::Pulse;
use relaxide_vm::limits::{Limited, Usage};

use super::Machine;
use super::program::{Bytes, Code, Decoded, Intrinsic, Offset, passed};
use crate::RefValue;
use crate::object::{Adt, Closure};

/// How many arguments a kernel may have before the list of them is made in memory of its own.
const FEW_ARGS: usize = 16;

/// How to resume a caller.
struct Frame {
    func: u32,
    pc: u32,
    base: u32,
    dst: u32,
}

/// The state of a run: what the document calls the machine's.
#[derive(Default)]
pub(super) struct State {
    frames: Vec<Frame>,
    registers: Vec<Any>,
    scratch: Vec<Any>,
    /// How many runs in a row needed little of the memory that is kept.
    shallow: u32,
    /// The most registers that the run had at one time.
    peak: usize,
}

/// How many registers are kept for the next run at the most: 64 MiB.
const MOST_KEPT: usize = (64 << 20) / size_of::<Any>();
/// How many registers are kept in any case.
const LEAST_KEPT: usize = 1 << 14;
/// How many runs in a row must need little before memory is given back.
const SHALLOW_RUNS: u32 = 64;

impl State {
    pub fn clear(&mut self) {
        self.frames.clear();
        self.registers.clear();
        self.scratch.clear();
        // New memory costs more than the instructions that use it, so a deep run's is kept for the next ones, if it is not
        // too much and they need it.
        let peak = std::mem::take(&mut self.peak);
        self.shallow = if peak > self.registers.capacity() / 8 { 0 } else { self.shallow + 1 };
        let kept = if self.shallow < SHALLOW_RUNS { MOST_KEPT } else { LEAST_KEPT };
        self.frames.shrink_to(kept / 4);
        self.registers.shrink_to(kept);
    }
}

fn error(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::RuntimeError, message.into())
}

#[cold]
fn unfit(what: &str, found: &Any) -> Error {
    let found = if found.is_none() { "nothing: the register was not written, or was killed" } else { found.type_key() };
    Error::new(ErrorKind::TypeError, format!("{what} is expected, and the register holds {found}"))
}

fn tensor(value: &Any) -> Result<&Tensor, Error> {
    value.as_tensor().ok_or_else(|| unfit("a tensor", value))
}

/// The integer that a value holds: a plain one, or the first element of a tensor of integers or bools.
#[inline]
fn scalar(value: &Any) -> Result<i64, Error> {
    if let Some(plain) = value.as_int() {
        return Ok(plain);
    }
    let tensor = tensor(value)?;
    if tensor.numel() == 0 {
        return Err(error("a scalar is expected, and the tensor is empty"));
    }
    let host;
    let tensor = if tensor.device().device_type == relaxide_ffi::Device::CPU {
        tensor
    } else {
        host = on_host(tensor)?;
        &host
    };
    let bytes = tensor.as_bytes()?;
    let word = |n: usize| bytes.get(..n).unwrap_or_default();
    let dtype = tensor.dtype();
    let value = match (dtype.code, dtype.bits) {
        (6, _) | (1, 1 | 8) => word(1).first().map(|b| i64::from(*b)),
        (0, 8) => word(1).first().map(|b| i64::from(*b as i8)),
        (0, 16) => word(2).try_into().ok().map(|b| i64::from(i16::from_le_bytes(b))),
        (1, 16) => word(2).try_into().ok().map(|b| i64::from(u16::from_le_bytes(b))),
        (0, 32) => word(4).try_into().ok().map(|b| i64::from(i32::from_le_bytes(b))),
        (1, 32) => word(4).try_into().ok().map(|b| i64::from(u32::from_le_bytes(b))),
        (0 | 1, 64) => word(8).try_into().ok().map(i64::from_le_bytes),
        _ => None,
    };
    value.ok_or_else(|| error(format!("Unknown scalar int type: {dtype}")))
}

/// The integers of a tensor, on the host.
fn ints(value: &Any) -> Result<Vec<i64>, Error> {
    let tensor = tensor(value)?;
    let host = on_host(tensor)?;
    if let Ok(values) = host.to_vec::<i64>() {
        return Ok(values);
    }
    let narrow = host.to_vec::<i32>();
    narrow
        .map(|values| values.into_iter().map(i64::from).collect())
        .map_err(|_| error(format!("a shape is a tensor of int64 or int32, and this is of {}", tensor.dtype())))
}

impl Machine {
    /// Calls a function on a state, which is empty.
    pub(super) fn run(
        &self,
        state: &mut State,
        func: usize,
        args: &[Any],
        limited: Option<&Limited>,
    ) -> Result<Any, Error> {
        match limited {
            None => self.execute::<false>(state, func, args, None),
            Some(_) => self.execute::<true>(state, func, args, limited),
        }
    }

    fn code(&self, func: u32) -> &Code {
        // The verifier has checked every index of a function.
        &self.program[func as usize]
    }

    fn execute<const INSTRUMENTED: bool>(
        &self,
        state: &mut State,
        func: usize,
        args: &[Any],
        limited: Option<&Limited>,
    ) -> Result<Any, Error> {
        let mut func = func as u32;
        let mut code = self.code(func);
        let mut base = 0usize;
        let mut pc = 0usize;
        let mut pulse = Pulse::new();
        let mut usage = limited.map(Limited::begin).unwrap_or_default();
        state.registers.extend(args.iter().cloned());
        state.registers.resize(code.registers as usize, Any::none());
        loop {
            let op = &code.ops[pc];
            if INSTRUMENTED && let Some(limited) = limited {
                let counted = count(limited, &mut usage, state);
                counted.map_err(|e| self.located(e, func, pc))?;
            }
            let registers = &mut state.registers;
            pc += 1;
            let done: Result<(), Error> = match op {
                Decoded::Move { from, dst } => {
                    registers[base + *dst as usize] = registers[base + *from as usize].clone();
                    Ok(())
                }
                Decoded::Goto { target } => jump(&mut pc, *target, &mut pulse),
                Decoded::Kill { dst } => {
                    registers[base + *dst as usize] = Any::none();
                    Ok(())
                }
                Decoded::If { test, target, then, other } => {
                    let pair = scalar(&registers[base + *test as usize])
                        .and_then(|a| Ok((a, scalar(&registers[base + *target as usize])?)));
                    match pair {
                        // The document compares 32 bits.
                        Ok((a, b)) => jump(&mut pc, if a as i32 == b as i32 { *then } else { *other }, &mut pulse),
                        Err(e) => Err(e),
                    }
                }
                Decoded::Case { object, tag, then, other } => {
                    match registers[base + *object as usize].downcast_ref::<Adt>() {
                        Some(adt) => jump(&mut pc, if adt.tag == *tag { *then } else { *other }, &mut pulse),
                        None => Err(unfit("a value of a data type", &registers[base + *object as usize])),
                    }
                }
                Decoded::IfIs { test, value, then, other } => match scalar(&registers[base + *test as usize]) {
                    Ok(found) => jump(&mut pc, if found as i32 == *value { *then } else { *other }, &mut pulse),
                    Err(e) => Err(e),
                },
                Decoded::LoadInt { value, dst, plain: true } => {
                    registers[base + *dst as usize] = Any::from(*value);
                    Ok(())
                }
                Decoded::GetTag { object, dst, plain: true } => {
                    match registers[base + *object as usize].downcast_ref::<Adt>().map(|adt| adt.tag) {
                        Some(tag) => {
                            registers[base + *dst as usize] = Any::from(tag);
                            Ok(())
                        }
                        None => Err(unfit("a value of a data type", &registers[base + *object as usize])),
                    }
                }
                Decoded::GetField { object, index, dst } => {
                    let value = &registers[base + *object as usize];
                    match value.downcast_ref::<Adt>().map(|adt| (adt.fields.get(*index).cloned(), adt.fields.len())) {
                        Some((Some(field), _)) => {
                            registers[base + *dst as usize] = field;
                            Ok(())
                        }
                        Some((None, count)) => Err(error(format!("there is no field {index}: the value has {count}"))),
                        None => Err(unfit("a tuple or a value of a data type", value)),
                    }
                }
                Decoded::AllocAdt { tag, dst, args } => {
                    let own = &mut registers[base..];
                    let made = Adt::of(*tag, code.list(*args).iter().map(|r| passed(own, *r)));
                    registers[base + *dst as usize] = made.into();
                    Ok(())
                }
                Decoded::Ret { result } => {
                    let value = std::mem::take(&mut registers[base + *result as usize]);
                    registers.truncate(base);
                    match state.frames.pop() {
                        None => break Ok(value),
                        Some(frame) => {
                            (func, pc, base) = (frame.func, frame.pc as usize, frame.base as usize);
                            code = self.code(func);
                            state.registers[base + frame.dst as usize] = value;
                            Ok(())
                        }
                    }
                }
                Decoded::Call { func: callee, dst, args } => {
                    let frame = Frame { func, pc: pc as u32, base: base as u32, dst: *dst };
                    let target = self.code(*callee);
                    let entered = pulse.step().and_then(|()| self.enter(state, code, base, *args, &[], target, frame));
                    match entered {
                        Ok(new_base) => {
                            (func, code, base, pc) = (*callee, target, new_base, 0);
                            Ok(())
                        }
                        Err(e) => Err(e),
                    }
                }
                Decoded::TailCall { func: callee, args } => {
                    let target = self.code(*callee);
                    replace_frame(state, code, base, *args, &[], target);
                    (func, code, pc) = (*callee, target, 0);
                    pulse.step()
                }
                Decoded::CallClosure { closure, dst, args } => match self.callee(state, code, base, *closure, *args) {
                    Ok(callable) => {
                        let frame = Frame { func, pc: pc as u32, base: base as u32, dst: *dst };
                        let target = self.code(callable.func);
                        let free = &callable.free;
                        let entered =
                            pulse.step().and_then(|()| self.enter(state, code, base, *args, free, target, frame));
                        match entered {
                            Ok(new_base) => {
                                (func, code, base, pc) = (callable.func, target, new_base, 0);
                                Ok(())
                            }
                            Err(e) => Err(e),
                        }
                    }
                    Err(e) => Err(e),
                },
                Decoded::TailClosure { closure, args } => match self.callee(state, code, base, *closure, *args) {
                    Ok(callable) => {
                        let target = self.code(callable.func);
                        replace_frame(state, code, base, *args, &callable.free, target);
                        (func, code, pc) = (callable.func, target, 0);
                        pulse.step()
                    }
                    Err(e) => Err(e),
                },
                Decoded::LoadConst { index, device, dst } => match self.constant(*index as usize, *device as usize) {
                    Ok(value) => {
                        registers[base + *dst as usize] = value;
                        Ok(())
                    }
                    Err(e) => Err(e),
                },
                Decoded::Packed { index, outputs, args } => {
                    let list = code.list(*args);
                    let registers = &registers[base..];
                    pulse.step().and_then(|()| self.call_kernel(*index as usize, *outputs as usize, list, registers))
                }
                Decoded::Fatal => {
                    Err(error("VM encountered fatal error: no case of a `match` fits, or the list is empty"))
                }
                other => self.execute_rare(other, code, limited, &mut registers[base..]),
            };
            if let Err(e) = done {
                // A call in the last place is over when it is to stop.
                break Err(self.located(e, func, pc.saturating_sub(1)));
            }
        }
    }

    /// The operations that make memory or copies, where a call more does not count.
    fn execute_rare(
        &self,
        op: &Decoded,
        code: &Code,
        limited: Option<&Limited>,
        registers: &mut [Any],
    ) -> Result<(), Error> {
        let at = |r: &u32| *r as usize;
        match op {
            Decoded::AllocTensor { storage, offset, shape, dtype, dst } => {
                let offset = begin(*offset, registers)?;
                let value = in_storage(&registers[at(storage)], offset, shape, *dtype)?;
                registers[at(dst)] = value;
            }
            Decoded::AllocTensorReg { storage, offset, shape, dtype, dst } => {
                let offset = begin(*offset, registers)?;
                let shape = ints(&registers[at(shape)])?;
                let value = in_storage(&registers[at(storage)], offset, &shape, *dtype)?;
                registers[at(dst)] = value;
            }
            Decoded::AllocStorage { bytes, alignment, device, dst } => {
                let bytes = match bytes {
                    Bytes::Known(bytes) => *bytes,
                    Bytes::TooLarge => return Err(error("the storage is larger than memory can be")),
                    Bytes::Register(r) => {
                        let bytes = scalar(&registers[at(r)])?;
                        usize::try_from(bytes).map_err(|_| error(format!("a storage cannot have {bytes} bytes")))?
                    }
                };
                if let Some(register) = alignment {
                    scalar(&registers[at(register)])?;
                }
                let allocator = self.allocator(limited, *device as usize)?;
                registers[at(dst)] = Storage::new(Buffer::new(allocator, bytes)?).into();
            }
            Decoded::AllocClosure { func, dst, args } => {
                let closure = Closure { machine: self.identity, func: *func, free: Tail::default() };
                let free = code.list(*args).iter().map(|r| passed(registers, *r));
                registers[at(dst)] = Ref::with_tail(closure, free).into();
            }
            Decoded::GetTag { object, dst, .. } => {
                let value = &registers[at(object)];
                let adt = value.downcast_ref::<Adt>().ok_or_else(|| unfit("a value of a data type", value))?;
                registers[at(dst)] = Tensor::from_slice(&[adt.tag], &[1])?.into();
            }
            Decoded::LoadInt { value, dst, .. } => registers[at(dst)] = Tensor::from_slice(&[*value], &[1])?.into(),
            Decoded::ShapeOf { tensor: of, dst } => {
                let shape = tensor(&registers[at(of)])?.shape().to_vec();
                registers[at(dst)] = Tensor::from_slice(&shape, &[shape.len() as i64])?.into();
            }
            Decoded::Reshape { tensor: of, shape, dst } => {
                let shape = ints(&registers[at(shape)])?;
                registers[at(dst)] = tensor(&registers[at(of)])?.reshape(&shape)?.into();
            }
            Decoded::DeviceCopy { src, from, to, dst } => {
                let source = tensor(&registers[at(src)])?;
                let (from, to) = (self.device(*from as usize)?, self.device(*to as usize)?);
                if source.device().device_type != from.device_type {
                    let message =
                        format!("the tensor to be copied is on {}, and the program says {from}", source.device());
                    return Err(error(message));
                }
                // Without a program's name for another memory the copy may be the same tensor; the document has it fresh.
                registers[at(dst)] = relaxide_runtime::device::copy_tensor(source, to)?.into();
            }
            Decoded::Intrinsic { kind, args } => self.intrinsic(*kind, code.list(*args), registers)?,
            other => return Err(Error::new(ErrorKind::InternalError, format!("{other:?} is not executed here"))),
        }
        Ok(())
    }

    fn intrinsic(&self, kind: Intrinsic, args: &[u32], registers: &mut [Any]) -> Result<(), Error> {
        let get = |i: usize| registers[args[i] as usize].clone();
        let reference =
            |value: &Any| value.downcast_ref::<RefValue>().cloned().ok_or_else(|| unfit("a reference", value));
        let (value, dst) = match kind {
            Intrinsic::Create => (RefValue::new(get(0)).into(), args[1]),
            Intrinsic::Read => (reference(&get(0))?.get(), args[1]),
            Intrinsic::Write => {
                reference(&get(0))?.set(get(1));
                (Adt::tuple(Vec::new()).into(), args[2])
            }
        };
        registers[dst as usize] = value;
        Ok(())
    }

    /// The closure in a register, which fits so many arguments and is this machine's.
    fn callee(
        &self,
        state: &State,
        code: &Code,
        base: usize,
        register: u32,
        args: super::program::Args,
    ) -> Result<Ref<Closure>, Error> {
        let value = &state.registers[base + register as usize];
        let closure = value.downcast_ref::<Closure>().ok_or_else(|| unfit("a closure", value))?;
        self.check_closure(closure, code.list(args).len())?;
        Ok(closure.clone())
    }

    /// Makes a frame for a call; the place of its registers.
    #[allow(clippy::too_many_arguments, reason = "the state of both sides of a call, taken apart for the loop")]
    fn enter(
        &self,
        state: &mut State,
        code: &Code,
        base: usize,
        args: super::program::Args,
        free: &[Any],
        target: &Code,
        frame: Frame,
    ) -> Result<usize, Error> {
        let new_base = state.registers.len();
        let needed = target.registers as usize;
        let bytes = (new_base + needed).saturating_mul(size_of::<Any>());
        if bytes > self.stack_bytes || new_base + needed > u32::MAX as usize {
            let message = format!(
                "the recursion is {} calls deep and needs more than the {} bytes that the stack may take; set_stack_bytes \
                 allows more",
                state.frames.len(),
                self.stack_bytes
            );
            return Err(error(message));
        }
        let reserved = state.registers.try_reserve(needed).and_then(|()| state.frames.try_reserve(1));
        reserved.map_err(|_| error("there is no memory for a deeper recursion"))?;
        state.registers.extend(free.iter().cloned());
        for register in code.list(args) {
            let value = passed(&mut state.registers[base..], *register);
            state.registers.push(value);
        }
        state.registers.resize(new_base + needed, Any::none());
        state.peak = state.peak.max(new_base + needed);
        state.frames.push(frame);
        Ok(new_base)
    }

    /// Calls a kernel on registers: values of data types are unpacked one level, and nothing is called for an empty result.
    fn call_kernel(&self, index: usize, outputs: usize, list: &[u32], registers: &[Any]) -> Result<(), Error> {
        if outputs == 1
            && let Some(last) = list.last()
            && registers[*last as usize].as_tensor().is_some_and(|t| t.shape().contains(&0))
        {
            return Ok(());
        }
        let function = self.kernel(index)?;
        let started = self.profile.begin();
        let mut few = [AnyView::none(); FEW_ARGS];
        let simple = list.len() <= FEW_ARGS && list.iter().all(|r| registers[*r as usize].as_tensor().is_some());
        let called = if simple {
            for (place, register) in few.iter_mut().zip(list) {
                *place = registers[*register as usize].as_view();
            }
            function.call(&few[..list.len()])
        } else {
            let mut views = Vec::with_capacity(list.len());
            for register in list {
                let value = &registers[*register as usize];
                match value.downcast_ref::<Adt>() {
                    Some(adt) => {
                        for field in &adt.fields {
                            tensor(field)?;
                            views.push(field.as_view());
                        }
                    }
                    None => {
                        tensor(value)?;
                        views.push(value.as_view());
                    }
                }
            }
            function.call(&views)
        };
        self.profile.end(index, started);
        called.map(drop).map_err(|e| e.context(format!("kernel {}", self.executable.primitives[index])))
    }

    /// An error with the place of the instruction.
    #[cold]
    fn located(&self, error: Error, func: u32, pc: usize) -> Error {
        let function = self.executable.functions.get(func as usize);
        let pc = self.code(func).origin.get(pc).map_or(pc, |origin| *origin as usize);
        let text = function.and_then(|f| f.instructions.get(pc)).map(|i| i.text(self.executable.form));
        let name = function.map_or("", |f| f.name.as_str());
        error.context(format!("function {name}, instruction {pc} ({})", text.unwrap_or_default()))
    }
}

/// Counts an instruction, and looks at the stack.
#[cold]
fn count(limited: &Limited, usage: &mut Usage, state: &State) -> Result<(), Error> {
    limited.step(usage)?;
    let callers = state.frames.len();
    limited.check_stack(callers + 1, state.registers.len() * size_of::<Any>() + callers * size_of::<Frame>())
}

/// Goes to an instruction; a jump back is a step.
#[inline]
fn jump(pc: &mut usize, target: u32, pulse: &mut Pulse) -> Result<(), Error> {
    let back = (target as usize) < *pc;
    *pc = target as usize;
    if back { pulse.step() } else { Ok(()) }
}

/// Has a call take the place of its caller.
fn replace_frame(state: &mut State, code: &Code, base: usize, args: super::program::Args, free: &[Any], target: &Code) {
    let State { registers, scratch, .. } = state;
    scratch.extend(free.iter().cloned());
    for register in code.list(args) {
        let value = passed(&mut registers[base..], *register);
        scratch.push(value);
    }
    let needed = base + target.registers as usize;
    registers.truncate(needed);
    // What the frame held is given back where the next value comes.
    let mut values = scratch.drain(..);
    for register in &mut registers[base..] {
        *register = values.next().unwrap_or_default();
    }
    registers.extend(values);
    registers.resize(needed, Any::none());
}

/// Where a tensor begins in its storage.
fn begin(offset: Offset, registers: &[Any]) -> Result<i64, Error> {
    match offset {
        Offset::Known(offset) => Ok(offset),
        Offset::Register(register) => scalar(&registers[register as usize]),
    }
}

fn in_storage(storage: &Any, offset: i64, shape: &[i64], dtype: relaxide_ffi::DataType) -> Result<Any, Error> {
    let storage = storage.downcast_ref::<Storage>().ok_or_else(|| unfit("a storage", storage))?;
    let offset = usize::try_from(offset).map_err(|_| error(format!("a tensor cannot begin at offset {offset}")))?;
    Storage::tensor(storage, offset, shape, dtype).map(Any::from)
}
