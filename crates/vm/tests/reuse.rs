//! Objects that come back: the machine hands an object out again only when nobody has it any more.
//!
//! The reference is the same machine with an instrument set. It then runs every instruction as it stands in the
//! executable and keeps nothing from one time to the next.

use std::sync::{Arc, Mutex, PoisonError};

use crate::support::{machine, register};
use proptest::prelude::*;
use relaxide_ffi::{Any, AnyView, Array, DataType, Device, Error, Function, Module, Shape, Tensor, replace_global};
use relaxide_runtime::memory::{self, AllocatorKind};
use relaxide_vm::{Arg, BuildError, ExecBuilder, Register, VirtualMachine};

type Built = Result<(), BuildError>;
/// A function: name, parameters, and what emits its body.
type Definition<'a> = (&'a str, &'a [&'a str], &'a dyn Fn(&mut ExecBuilder) -> Built);

fn reg(number: i64) -> Arg {
    Arg::Register(Register(number))
}

/// Registers the kernels of these tests.
fn kernels() {
    // (tensor, value): every element becomes the value.
    replace_global("test.reuse.fill", Function::new(|args| set(args, |_, value| value)));
    // (tensor, value or tensor): adds to every element.
    replace_global("test.reuse.add", Function::new(|args| set(args, |old, value| old + value)));
    register("test.reuse.sub", |x| x[0] - x[1]);
    register("test.reuse.positive", |x| i64::from(x[0] > 0));
}

fn set(args: &[AnyView<'_>], change: impl Fn(f32, f32) -> f32) -> Result<Any, Error> {
    let tensor: Tensor = args[0].to()?;
    let value = match args[1].to::<Tensor>() {
        Ok(tensor) => tensor.to_vec::<f32>()?.iter().sum(),
        Err(_) => args[1].to::<i64>()? as f32,
    };
    let new: Vec<f32> = tensor.to_vec::<f32>()?.into_iter().map(|old| change(old, value)).collect();
    tensor.copy_from_slice(&new)?;
    Ok(Any::none())
}

/// Emits a storage in one register and a tensor of floats in another.
fn allocate(b: &mut ExecBuilder, storage: i64, tensor: i64, elements: i64) -> Built {
    storage_in(b, storage, elements * 4)?;
    tensor_in(b, storage, 0, tensor, elements)
}

fn storage_in(b: &mut ExecBuilder, register: i64, bytes: i64) -> Built {
    let (size, byte, scope) = (b.constant(Shape::from([bytes])), b.constant(DataType::uint(8)), b.constant("global"));
    let args = [Arg::Register(Register::VM), size, Arg::Immediate(0), byte, scope];
    b.emit_call("vm.builtin.alloc_storage", &args, Register(register)).map(|_| ())
}

fn tensor_in(b: &mut ExecBuilder, storage: i64, offset: i64, tensor: i64, elements: i64) -> Built {
    let (shape, float) = (b.constant(Shape::from([elements])), b.constant(DataType::float(32)));
    let args = [reg(storage), Arg::Immediate(offset), shape, float];
    b.emit_call("vm.builtin.alloc_tensor", &args, Register(tensor)).map(|_| ())
}

fn kill(b: &mut ExecBuilder, register: i64) -> Built {
    b.emit_call("vm.builtin.null_value", &[], Register(register)).map(|_| ())
}

fn call(b: &mut ExecBuilder, name: &str, args: &[Arg]) -> Built {
    b.emit_call(name, args, Register::VOID).map(|_| ())
}

fn module(functions: &[Definition<'_>]) -> Module {
    kernels();
    let mut builder = ExecBuilder::new();
    for (name, params, body) in functions {
        builder.begin_function(name, params).unwrap();
        body(&mut builder).unwrap();
        builder.end_function().unwrap();
    }
    builder.get().unwrap().into_module()
}

fn floats(value: &Any) -> Vec<f32> {
    value.to::<Tensor>().unwrap().to_vec::<f32>().unwrap()
}

/// `main(v)`: a new tensor of four elements with the value.
fn filled() -> Module {
    module(&[("main", &["v"], &|b| {
        allocate(b, 1, 2, 4)?;
        kill(b, 1)?;
        call(b, "test.reuse.fill", &[reg(2), reg(0)])?;
        b.emit_ret(Register(2))?;
        Ok(())
    })])
}

#[test]
fn results_that_are_held_keep_their_values() {
    let vm = machine(&filled());
    for round in 0..3_i64 {
        let held: Vec<Any> = (0..20).map(|v| vm.invoke("main", &[(round * 100 + v).into()]).unwrap()).collect();
        for (v, value) in held.iter().enumerate() {
            assert_eq!(floats(value), [(round * 100) as f32 + v as f32; 4]);
        }
    }
}

#[test]
fn results_may_come_back_as_arguments() {
    let vm = machine(&module(&[("main", &["x"], &|b| {
        allocate(b, 1, 2, 1)?;
        kill(b, 1)?;
        call(b, "test.reuse.fill", &[reg(2), reg(0)])?;
        call(b, "test.reuse.add", &[reg(2), Arg::Immediate(1)])?;
        b.emit_ret(Register(2))?;
        Ok(())
    })]));
    let mut last: Vec<Any> = vec![Tensor::zeros(&[1], DataType::float(32)).unwrap().into()];
    for step in 0..50 {
        let newest = last.last().unwrap().clone();
        last.push(vm.invoke("main", &[newest.as_view()]).unwrap());
        let expected: Vec<Vec<f32>> = (0..last.len()).map(|at| vec![(step + 2 - last.len() + at) as f32]).collect();
        assert_eq!(last.iter().map(floats).collect::<Vec<_>>(), expected);
        if last.len() > 3 {
            last.remove(0);
        }
    }
}

/// `main(n)`: a tensor of each level, summed on the way back; `emit` makes the tensor in register 2.
fn recursive(emit: &dyn Fn(&mut ExecBuilder) -> Built) -> Module {
    module(&[("main", &["n"], &|b| {
        emit(b)?;
        call(b, "test.reuse.fill", &[reg(2), reg(0)])?;
        b.emit_call("test.reuse.positive", &[reg(0)], Register(3))?;
        b.emit_if(Register(3), 4)?;
        b.emit_call("test.reuse.sub", &[reg(0), Arg::Immediate(1)], Register(4))?;
        b.emit_call("main", &[reg(4)], Register(5))?;
        call(b, "test.reuse.add", &[reg(2), reg(5)])?;
        b.emit_ret(Register(2))?;
        Ok(())
    })])
}

#[test]
fn each_level_of_a_recursion_has_memory_of_its_own() {
    let alone = recursive(&|b| {
        allocate(b, 1, 2, 1)?;
        kill(b, 1)
    });
    let together = recursive(&|b| {
        storage_in(b, 1, 256)?;
        tensor_in(b, 1, 128, 6, 2)?;
        tensor_in(b, 1, 0, 2, 1)
    });
    for program in [alone, together] {
        let vm = machine(&program);
        let held: Vec<Any> = [5_i64, 0, 300, 7].iter().map(|n| vm.invoke("main", &[(*n).into()]).unwrap()).collect();
        assert_eq!(held.iter().map(floats).collect::<Vec<_>>(), [[15.0], [0.0], [45150.0], [28.0]]);
    }
}

#[test]
fn shapes_that_change_from_call_to_call_are_followed() {
    let vm = machine(&module(&[("main", &["x", "v"], &|b| {
        let (byte, float, scope) =
            (b.constant(DataType::uint(8)), b.constant(DataType::float(32)), b.constant("global"));
        let vm = Arg::Register(Register::VM);
        b.emit_call("vm.builtin.alloc_shape_heap", &[vm, Arg::Immediate(2)], Register(2))?;
        let text = b.constant("x ");
        let one = Arg::Immediate(1);
        call(b, "vm.builtin.match_shape", &[reg(0), reg(2), one, one, Arg::Immediate(0), text])?;
        b.emit_call("vm.builtin.make_shape", &[reg(2), one, one, Arg::Immediate(0)], Register(3))?;
        let size = b.constant(Shape::from([1024]));
        b.emit_call("vm.builtin.alloc_storage", &[vm, size, Arg::Immediate(0), byte, scope], Register(4))?;
        b.emit_call("vm.builtin.alloc_tensor", &[reg(4), Arg::Immediate(0), reg(3), float], Register(5))?;
        kill(b, 4)?;
        call(b, "test.reuse.fill", &[reg(5), reg(1)])?;
        b.emit_call("vm.builtin.make_tuple", &[reg(5), reg(3)], Register(6))?;
        b.emit_ret(Register(6))?;
        Ok(())
    })]));
    let mut held: Vec<(i64, i64, Any)> = Vec::new();
    for step in 0..60_i64 {
        let length = 1 + step % 7;
        let x = Tensor::zeros(&[length], DataType::float(32)).unwrap();
        held.push((length, step, vm.invoke("main", &[AnyView::from(&x), step.into()]).unwrap()));
        for (length, value, pair) in &held {
            let pair = pair.to::<Array>().unwrap().to_vec();
            assert_eq!(floats(&pair[0]), vec![*value as f32; *length as usize]);
            assert_eq!(pair[1].to::<Shape>().unwrap().as_slice(), [*length]);
        }
        if held.len() > 4 {
            held.remove(1);
        }
    }
}

#[test]
fn a_tuple_a_view_and_a_closure_keep_their_tensor() {
    let vm = machine(&module(&[
        ("tuple", &["v"], &|b| {
            allocate(b, 1, 2, 4)?;
            call(b, "test.reuse.fill", &[reg(2), reg(0)])?;
            b.emit_call("vm.builtin.make_tuple", &[reg(2)], Register(3))?;
            kill(b, 2)?;
            kill(b, 1)?;
            b.emit_ret(Register(3))?;
            Ok(())
        }),
        ("view", &["v"], &|b| {
            allocate(b, 1, 2, 4)?;
            kill(b, 1)?;
            call(b, "test.reuse.fill", &[reg(2), reg(0)])?;
            let shape = b.constant(Shape::from([2, 2]));
            b.emit_call("vm.builtin.reshape", &[reg(2), shape], Register(3))?;
            kill(b, 2)?;
            b.emit_ret(Register(3))?;
            Ok(())
        }),
        ("captured", &["t"], &|b| {
            b.emit_ret(Register(0))?;
            Ok(())
        }),
        ("closure", &["v"], &|b| {
            allocate(b, 1, 2, 4)?;
            kill(b, 1)?;
            call(b, "test.reuse.fill", &[reg(2), reg(0)])?;
            let captured = b.function("captured")?;
            b.emit_call("vm.builtin.make_closure", &[captured, reg(2)], Register(3))?;
            kill(b, 2)?;
            b.emit_ret(Register(3))?;
            Ok(())
        }),
    ]));
    for name in ["tuple", "view", "closure"] {
        let held: Vec<Any> = (0..8_i64).map(|v| vm.invoke(name, &[v.into()]).unwrap()).collect();
        for (v, value) in held.iter().enumerate() {
            let tensor = match name {
                "tuple" => value.to::<Array>().unwrap().to_vec()[0].clone(),
                "closure" => vm.invoke_closure(value.as_view(), &[]).unwrap(),
                _ => value.clone(),
            };
            assert_eq!(floats(&tensor), [v as f32; 4], "{name}");
        }
    }
}

#[test]
fn a_kernel_may_keep_its_arguments() {
    let kept: Arc<Mutex<Vec<Any>>> = Arc::default();
    let list = Arc::clone(&kept);
    replace_global(
        "test.reuse.keep",
        Function::new(move |args| {
            list.lock().unwrap().push(args[0].to_owned());
            Ok(Any::none())
        }),
    );
    // A loop, a storage of two tensors in it, and both kept by the kernel.
    let vm = machine(&module(&[("main", &["n"], &|b| {
        b.emit_call("vm.builtin.copy", &[reg(0)], Register(1))?;
        let head = b.next_instruction();
        storage_in(b, 2, 256)?;
        tensor_in(b, 2, 0, 3, 4)?;
        tensor_in(b, 2, 128, 4, 2)?;
        for tensor in [3, 4] {
            call(b, "test.reuse.fill", &[reg(tensor), reg(1)])?;
            call(b, "test.reuse.keep", &[reg(tensor)])?;
            kill(b, tensor)?;
        }
        kill(b, 2)?;
        b.emit_call("test.reuse.sub", &[reg(1), Arg::Immediate(1)], Register(1))?;
        b.emit_call("test.reuse.positive", &[reg(1)], Register(5))?;
        b.emit_if(Register(5), 2)?;
        let back = b.emit_goto(-1)?;
        b.set_jump_target(back, head)?;
        b.emit_ret(Register(1))?;
        Ok(())
    })]));
    for n in [6_i64, 3] {
        vm.invoke("main", &[n.into()]).unwrap();
    }
    let found: Vec<Vec<f32>> = kept.lock().unwrap().iter().map(floats).collect();
    let expected: Vec<Vec<f32>> =
        [6, 5, 4, 3, 2, 1, 3, 2, 1].iter().flat_map(|v| [vec![*v as f32; 4], vec![*v as f32; 2]]).collect();
    assert_eq!(found, expected);
}

#[test]
fn what_is_kept_goes_when_memory_is_asked_back() {
    let program = module(&[
        ("main", &["v"], &|b| {
            allocate(b, 1, 2, 4)?;
            kill(b, 1)?;
            call(b, "test.reuse.fill", &[reg(2), reg(0)])?;
            b.emit_ret(Register::VOID)?;
            Ok(())
        }),
        ("nothing", &["v"], &|b| {
            b.emit_ret(Register(0))?;
            Ok(())
        }),
    ]);
    // A device number of its own keeps other tests out of the counts.
    let device = Device::cpu(17);
    let vm = VirtualMachine::new(&program, &[(device, AllocatorKind::Pooled)]).unwrap();
    let in_use = || memory::allocator(device, AllocatorKind::Pooled).unwrap().stats().in_use;
    vm.invoke("main", &[1_i64.into()]).unwrap();
    vm.invoke("nothing", &[1_i64.into()]).unwrap();
    assert!(in_use() > 0, "it waits for the next run");
    memory::release_cached();
    vm.invoke("nothing", &[1_i64.into()]).unwrap();
    assert_eq!(in_use(), 0);
}

#[test]
fn a_run_that_fails_leaves_nothing_wrong_behind() {
    let vm = machine(&module(&[("main", &["v"], &|b| {
        storage_in(b, 1, 64)?;
        tensor_in(b, 1, 0, 2, 4)?;
        call(b, "test.reuse.fill", &[reg(2), reg(0)])?;
        b.emit_ret(Register(2))?;
        Ok(())
    })]));
    for v in 0..6_i64 {
        let held = vm.invoke("main", &[v.into()]).unwrap();
        assert!(vm.invoke("main", &[AnyView::none()]).is_err());
        assert_eq!(floats(&held), [v as f32; 4]);
    }
}

/// One step of a random program. Registers are taken modulo those that hold what the step needs.
#[derive(Clone, Debug)]
enum Step {
    Alone(usize),
    Storage,
    Alias { storage: usize, slot: usize },
    Add(usize, usize),
    Copy(usize),
    View(usize),
    Tuple(usize, usize),
    Item(usize),
    Keep(usize),
    Kill(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let place = || 0_usize..12;
    prop_oneof![
        place().prop_map(Step::Alone),
        Just(Step::Storage),
        (place(), 0_usize..3).prop_map(|(storage, slot)| Step::Alias { storage, slot }),
        (place(), 0_usize..3).prop_map(|(storage, slot)| Step::Alias { storage, slot }),
        (place(), place()).prop_map(|(a, b)| Step::Add(a, b)),
        place().prop_map(Step::Copy),
        place().prop_map(Step::View),
        (place(), place()).prop_map(|(a, b)| Step::Tuple(a, b)),
        place().prop_map(Step::Item),
        place().prop_map(Step::Keep),
        place().prop_map(Step::Kill),
        place().prop_map(Step::Kill),
    ]
}

/// Emits a random program while it knows what each register holds.
#[derive(Default)]
struct Emitter {
    next: i64,
    storages: Vec<i64>,
    tensors: Vec<i64>,
    tuples: Vec<i64>,
}

fn pick(registers: &[i64], place: usize) -> Option<i64> {
    registers.get(place % registers.len().max(1)).copied()
}

impl Emitter {
    fn fresh(&mut self) -> i64 {
        self.next += 1;
        self.next
    }

    fn tensor(&mut self, b: &mut ExecBuilder, register: i64) -> Built {
        // A value that no other instruction, iteration of the loop or run writes.
        call(b, "test.reuse.fill", &[reg(register), Arg::Immediate(register)])?;
        call(b, "test.reuse.add", &[reg(register), reg(COUNTER)])?;
        call(b, "test.reuse.add", &[reg(register), reg(SALT)])?;
        self.tensors.push(register);
        Ok(())
    }

    fn emit(&mut self, b: &mut ExecBuilder, step: &Step) -> Built {
        match *step {
            Step::Alone(elements) => {
                let (storage, tensor) = (self.fresh(), self.fresh());
                allocate(b, storage, tensor, 1 + elements as i64)?;
                kill(b, storage)?;
                self.tensor(b, tensor)?;
            }
            Step::Storage => {
                let storage = self.fresh();
                storage_in(b, storage, 192)?;
                self.storages.push(storage);
            }
            Step::Alias { storage, slot } => {
                let Some(storage) = pick(&self.storages, storage) else { return Ok(()) };
                let tensor = self.fresh();
                tensor_in(b, storage, slot as i64 * 64, tensor, 2)?;
                self.tensor(b, tensor)?;
            }
            Step::Add(to, from) => {
                let (Some(to), Some(from)) = (pick(&self.tensors, to), pick(&self.tensors, from)) else {
                    return Ok(());
                };
                call(b, "test.reuse.add", &[reg(to), reg(from)])?;
            }
            Step::Copy(from) => self.derived(b, "vm.builtin.copy", from)?,
            Step::View(from) => self.derived(b, "vm.builtin.ensure_zero_offset", from)?,
            Step::Tuple(first, second) => {
                let (Some(first), Some(second)) = (pick(&self.tensors, first), pick(&self.tensors, second)) else {
                    return Ok(());
                };
                let tuple = self.fresh();
                b.emit_call("vm.builtin.make_tuple", &[reg(first), reg(second)], Register(tuple))?;
                self.tuples.push(tuple);
            }
            Step::Item(from) => {
                let Some(tuple) = pick(&self.tuples, from) else { return Ok(()) };
                let item = self.fresh();
                let index = Arg::Immediate(from as i64 % 2);
                b.emit_call("vm.builtin.tuple_getitem", &[reg(tuple), index], Register(item))?;
                self.tensors.push(item);
            }
            Step::Keep(from) => {
                let Some(from) = pick(&self.tensors, from) else { return Ok(()) };
                call(b, "test.reuse.random_keep", &[reg(from)])?;
            }
            Step::Kill(place) => {
                let all = [&self.storages, &self.tensors, &self.tuples].into_iter().flatten().copied();
                let Some(register) = pick(&all.collect::<Vec<_>>(), place) else { return Ok(()) };
                kill(b, register)?;
                for list in [&mut self.storages, &mut self.tensors, &mut self.tuples] {
                    list.retain(|held| *held != register);
                }
            }
        }
        Ok(())
    }

    fn derived(&mut self, b: &mut ExecBuilder, builtin: &str, from: usize) -> Built {
        let Some(from) = pick(&self.tensors, from) else { return Ok(()) };
        let dst = self.fresh();
        b.emit_call(builtin, &[reg(from)], Register(dst))?;
        self.tensors.push(dst);
        Ok(())
    }
}

const SALT: i64 = 1;
const COUNTER: i64 = 2;

/// A program that goes through the steps `n` times and then returns a tuple of the tensors that it has.
fn random_program(steps: &[Step]) -> Module {
    module(&[("main", &["n", "salt"], &|b| {
        let mut emitter = Emitter { next: COUNTER, ..Emitter::default() };
        let (counter, truth) = (COUNTER, emitter.fresh());
        b.emit_call("vm.builtin.copy", &[reg(0)], Register(counter))?;
        let head = b.next_instruction();
        for step in steps {
            emitter.emit(b, step)?;
        }
        b.emit_call("test.reuse.sub", &[reg(counter), Arg::Immediate(1)], Register(counter))?;
        b.emit_call("test.reuse.positive", &[reg(counter)], Register(truth))?;
        b.emit_if(Register(truth), 2)?;
        let back = b.emit_goto(-1)?;
        b.set_jump_target(back, head)?;
        let all: Vec<Arg> = emitter.tensors.iter().map(|tensor| reg(*tensor)).collect();
        let result = emitter.fresh();
        b.emit_call("vm.builtin.make_tuple", &all, Register(result))?;
        b.emit_ret(Register(result))?;
        Ok(())
    })])
}

static KEPT: Mutex<Vec<Any>> = Mutex::new(Vec::new());

/// What a program shows in several runs, some results of which are held to the end.
fn shown(program: &Module, instrumented: bool) -> Vec<Vec<f32>> {
    let vm = machine(program);
    if instrumented {
        vm.set_instrument(Some(Function::new(|_args| Ok(Any::none()))));
    }
    let (mut shown, mut held) = (Vec::new(), Vec::new());
    for run in 0..5_i64 {
        let result: Array = vm.invoke("main", &[(1 + run % 3).into(), (run * 1000).into()]).unwrap().to().unwrap();
        shown.extend(result.iter().map(floats));
        if run % 2 == 0 {
            held.push(result);
        }
    }
    let kept = std::mem::take(&mut *KEPT.lock().unwrap_or_else(PoisonError::into_inner));
    shown.extend(held.iter().flat_map(Array::to_vec).chain(kept).map(|value| floats(&value)));
    shown
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_programs_show_what_they_show_without_reuse(steps in prop::collection::vec(step(), 1..30)) {
        replace_global("test.reuse.random_keep", Function::new(|args| {
            KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(args[0].to_owned());
            Ok(Any::none())
        }));
        let program = random_program(&steps);
        prop_assert_eq!(shown(&program, false), shown(&program, true));
    }
}
