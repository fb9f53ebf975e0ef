//! The warm path takes nothing from the heap: a call of a long program takes as much as one of a short one.

#[path = "support/heap.rs"]
mod heap;
mod support;

use heap::taken_by;
use relaxide_ffi::{Any, AnyView, DataType, Function, Module, Shape, Tensor, replace_global};
use relaxide_vm::{Arg, BuildError, ExecBuilder, Register, VirtualMachine, load_module};
use support::{artifact, machine};

type Built = Result<(), BuildError>;

fn reg(number: i64) -> Arg {
    Arg::Register(Register(number))
}

/// Functions from outside that take nothing themselves.
fn kernels() {
    replace_global("test.heap.nothing", Function::new(|_args| Ok(Any::none())));
    replace_global("test.heap.sub", Function::new(|args| Ok((args[0].to::<i64>()? - args[1].to::<i64>()?).into())));
    replace_global("test.heap.positive", Function::new(|args| Ok((args[0].to::<i64>()? > 0).into())));
}

/// A program of one function, `main(x)`.
fn program(body: &dyn Fn(&mut ExecBuilder) -> Built) -> Module {
    kernels();
    let mut builder = ExecBuilder::new();
    builder.begin_function("main", &["x"]).unwrap();
    body(&mut builder).unwrap();
    builder.end_function().unwrap();
    builder.get().unwrap().into_module()
}

fn allocate(b: &mut ExecBuilder, shape: Arg, storage: i64, tensor: i64) -> Built {
    let (byte, float) = (b.constant(DataType::uint(8)), b.constant(DataType::float(32)));
    let (size, scope) = (b.constant(Shape::from([64])), b.constant("global"));
    let args = [Arg::Register(Register::VM), size, Arg::Immediate(0), byte, scope];
    b.emit_call("vm.builtin.alloc_storage", &args, Register(storage))?;
    b.emit_call("vm.builtin.alloc_tensor", &[reg(storage), Arg::Immediate(0), shape, float], Register(tensor))?;
    b.emit_call("vm.builtin.null_value", &[], Register(storage)).map(|_| ())
}

/// Kernel after kernel, each with a new tensor for its result; the one before ends.
fn chain(steps: i64) -> Module {
    program(&|b| {
        let shape = b.constant(Shape::from([4, 4]));
        for step in 0..steps {
            let (storage, tensor) = (1 + step * 2, 2 + step * 2);
            allocate(b, shape, storage, tensor)?;
            b.emit_call("test.heap.nothing", &[reg(tensor - 2), reg(tensor)], Register::VOID)?;
            b.emit_call("vm.builtin.null_value", &[], Register(tensor - 2))?;
        }
        b.emit_ret(Register::VOID)?;
        Ok(())
    })
}

/// The same with a length that is known when the program runs, and checks.
fn symbolic_chain(steps: i64) -> Module {
    program(&|b| {
        let (float, text, one) = (b.constant(DataType::float(32)), b.constant("x "), Arg::Immediate(1));
        let (heap, zero) = (1, Arg::Immediate(0));
        let args = [Arg::Register(Register::VM), Arg::Immediate(2)];
        b.emit_call("vm.builtin.alloc_shape_heap", &args, Register(heap))?;
        b.emit_call("vm.builtin.check_tensor_info", &[reg(0), one, float, text], Register::VOID)?;
        b.emit_call("vm.builtin.match_shape", &[reg(0), reg(heap), one, one, zero, text], Register::VOID)?;
        for step in 0..steps {
            let base = 2 + step * 4;
            b.emit_call("vm.builtin.make_shape", &[reg(heap), one, one, zero], Register(base))?;
            allocate(b, reg(base), base + 1, base + 2)?;
            b.emit_call("vm.builtin.shape_of", &[reg(base + 2)], Register(base + 3))?;
            b.emit_call("test.heap.nothing", &[reg(base + 2), reg(base + 3)], Register::VOID)?;
            b.emit_call("vm.builtin.null_value", &[], Register(base + 2))?;
        }
        b.emit_ret(Register::VOID)?;
        Ok(())
    })
}

/// A loop with a tensor in each iteration, or a recursion with one at each level, through a call or a closure.
fn iterations(how: &str) -> Module {
    program(&|b| {
        let shape = b.constant(Shape::from([2]));
        b.emit_call("vm.builtin.copy", &[reg(0)], Register(1))?;
        let head = b.next_instruction();
        allocate(b, shape, 2, 3)?;
        b.emit_call("test.heap.nothing", &[reg(3)], Register::VOID)?;
        b.emit_call("test.heap.sub", &[reg(1), Arg::Immediate(1)], Register(1))?;
        b.emit_call("test.heap.positive", &[reg(1)], Register(4))?;
        b.emit_call("vm.builtin.read_if_cond", &[reg(4)], Register(5))?;
        b.emit_if(Register(5), 2)?;
        match how {
            "loop" => {
                let back = b.emit_goto(-1)?;
                b.set_jump_target(back, head)?;
            }
            "recursion" => _ = b.emit_call("main", &[reg(1)], Register(6))?,
            _ => {
                let main = b.function("main")?;
                let args = [Arg::Register(Register::VM), main, reg(1)];
                b.emit_call("vm.builtin.invoke_closure", &args, Register(6))?;
            }
        }
        b.emit_ret(Register(1))?;
        Ok(())
    })
}

/// How often a warm call goes to the heap.
fn requests(vm: &VirtualMachine, arg: AnyView<'_>) -> usize {
    let main = vm.function("main").unwrap();
    for _ in 0..3 {
        main.call(&[arg]).unwrap();
    }
    taken_by(|| main.call(&[arg]).unwrap()).1.requests
}

#[test]
fn what_is_taken_is_counted() {
    if !heap::COUNTS {
        return;
    }
    let (_, taken) = taken_by(|| std::hint::black_box(vec![1_u8; 1000]));
    assert_eq!((taken.requests, taken.bytes, taken.largest), (1, 1000, 1000));
    let (_, taken) = taken_by(|| Tensor::zeros(&[1000], DataType::float(32)).unwrap());
    assert!(taken.requests >= 1 && taken.largest >= 4000, "{taken:?}");
    assert!(taken_by(|| Shape::new(&[1; 100])).1.bytes >= 800);
}

#[test]
fn a_warm_program_takes_nothing() {
    let x = Tensor::zeros(&[5], DataType::float(32)).unwrap();
    for steps in [1, 100, 2000] {
        assert_eq!(requests(&machine(&chain(steps)), AnyView::from(&x)), 0, "{steps} kernels");
        assert_eq!(requests(&machine(&symbolic_chain(steps)), AnyView::from(&x)), 0, "{steps} symbolic kernels");
        for how in ["loop", "recursion", "closure"] {
            assert_eq!(requests(&machine(&iterations(how)), steps.into()), 0, "{steps} iterations of a {how}");
        }
    }
}

#[test]
fn a_compiled_model_takes_only_its_result() {
    let cases: [(&str, &[&[i64]]); 3] =
        [("add", &[&[3, 4]]), ("dynamic", &[&[5, 4], &[5, 4]]), ("parallel", &[&[8, 300]])];
    for (name, shapes) in cases {
        let vm = machine(&load_module(artifact(&format!("{name}.so"))).unwrap());
        let main = vm.function("main").unwrap();
        let inputs: Vec<Any> =
            shapes.iter().map(|shape| Tensor::zeros(shape, DataType::float(32)).unwrap().into()).collect();
        let views: Vec<AnyView<'_>> = inputs.iter().map(Any::as_view).collect();
        for _ in 0..3 {
            main.call(&views).unwrap();
        }
        let (_, taken) = taken_by(|| main.call(&views).unwrap());
        // A storage and a tensor in it for each result, and what holds several results together.
        assert!(taken.requests <= 8, "{name}: {taken:?}");
    }
}
