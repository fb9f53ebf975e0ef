//! Limits: whatever a program does, it ends, and the error names what there was too much of.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::{machine, register};
use relaxide_ffi::{Any, AnyView, DataType, Error, Function, Module, Shape, replace_global};
use relaxide_vm::{Arg, BuildError, ExecBuilder, Limits, Register, VirtualMachine};

type Built = Result<(), BuildError>;
/// A function: name, parameters, and what emits its body.
type Definition<'a> = (&'a str, &'a [&'a str], &'a dyn Fn(&mut ExecBuilder) -> Built);

fn reg(number: i64) -> Arg {
    Arg::Register(Register(number))
}

fn module(functions: &[Definition<'_>]) -> Module {
    let mut builder = ExecBuilder::new();
    for (name, params, body) in functions {
        builder.begin_function(name, params).unwrap();
        body(&mut builder).unwrap();
        builder.end_function().unwrap();
    }
    builder.get().unwrap().into_module()
}

fn forever() -> Module {
    module(&[("main", &[], &|b| {
        let head = b.emit_call("vm.builtin.copy", &[Arg::Immediate(1)], Register(0))?;
        let back = b.emit_goto(-1)?;
        b.set_jump_target(back, head)?;
        Ok(())
    })])
}

/// Calls `main` and returns the error's kind and text.
fn failure(vm: &VirtualMachine, args: &[i64]) -> (String, String) {
    let views: Vec<AnyView<'_>> = args.iter().map(|arg| AnyView::from(*arg)).collect();
    let error = vm.invoke("main", &views).unwrap_err();
    (error.kind().to_owned(), error.message().to_owned())
}

#[test]
fn a_loop_without_end_is_stopped_by_instructions_and_by_time() {
    let vm = machine(&forever());
    vm.set_limits(Limits { instructions: Some(10_000), ..Limits::default() });
    for _ in 0..2 {
        let (kind, text) = failure(&vm, &[]);
        assert_eq!(kind, "RuntimeError");
        assert!(text.contains("the limit of 10000 instructions is reached"), "{text}");
    }
    vm.set_limits(Limits { time: Some(Duration::from_millis(20)), ..Limits::default() });
    let start = Instant::now();
    let (kind, text) = failure(&vm, &[]);
    assert_eq!(kind, "TimeoutError");
    assert!(text.contains("the time limit of 20ms is reached"), "{text}");
    assert!(start.elapsed() >= Duration::from_millis(20));
}

#[test]
fn a_program_within_its_limits_runs() {
    register("test.limits.add", |x| x[0] + x[1]);
    let vm = machine(&module(&[("main", &["a"], &|b| {
        b.emit_call("test.limits.add", &[reg(0), Arg::Immediate(1)], Register(1))?;
        b.emit_ret(Register(1))?;
        Ok(())
    })]));
    let limits =
        Limits { instructions: Some(2), memory: Some(1000), time: Some(Duration::from_secs(60)), depth: Some(1) };
    vm.set_limits(limits);
    assert_eq!(vm.limits(), limits);
    for a in 0..5_i64 {
        assert_eq!(vm.invoke("main", &[a.into()]).unwrap().as_int(), Some(a + 1), "each run has its own budget");
    }
    vm.set_limits(Limits { instructions: Some(1), ..limits });
    assert!(vm.invoke("main", &[1_i64.into()]).is_err());
    vm.set_limits(Limits::default());
    assert!(vm.invoke("main", &[1_i64.into()]).is_ok());
}

/// `main(bytes, pieces)`: a tuple of tensors, each in a storage of its own.
fn hoarding() -> Module {
    module(&[("main", &[], &|b| {
        let (size, byte, scope) =
            (b.constant(Shape::from([1000])), b.constant(DataType::uint(8)), b.constant("global"));
        let shape = b.constant(Shape::from([1000]));
        let head = b.next_instruction();
        let storage = [Arg::Register(Register::VM), size, Arg::Immediate(0), byte, scope];
        b.emit_call("vm.builtin.alloc_storage", &storage, Register(0))?;
        b.emit_call("vm.builtin.alloc_tensor", &[reg(0), Arg::Immediate(0), shape, byte], Register(1))?;
        b.emit_call("test.limits.keep", &[reg(1)], Register::VOID)?;
        let back = b.emit_goto(-1)?;
        b.set_jump_target(back, head)?;
        Ok(())
    })])
}

#[test]
fn memory_is_counted_until_it_is_given_back() {
    let kept: Arc<Mutex<Vec<Any>>> = Arc::default();
    let list = Arc::clone(&kept);
    replace_global(
        "test.limits.keep",
        Function::new(move |args| {
            list.lock().unwrap().push(args[0].to_owned());
            Ok(Any::none())
        }),
    );
    let vm = machine(&hoarding());
    vm.set_limits(Limits { memory: Some(100_000), instructions: Some(100_000), ..Limits::default() });
    let (kind, text) = failure(&vm, &[]);
    assert_eq!(kind, "MemoryError");
    assert!(text.contains("the memory limit of 100000 bytes is reached"), "{text}");
    let count = kept.lock().unwrap().len();
    assert!((90..=100).contains(&count), "{count}");
    assert!(vm.memory_in_use() > 90_000, "{}", vm.memory_in_use());
    kept.lock().unwrap().clear();
    assert_eq!(vm.memory_in_use(), 0);
}

/// `main(n)` calls itself until `n` is zero: directly, through a closure, or through a closure with a bound value.
fn descending(through: &str) -> Module {
    register("test.limits.positive", |x| i64::from(x[0] > 0));
    register("test.limits.sub", |x| x[0] - x[1]);
    let body = move |b: &mut ExecBuilder, next: &str| -> Built {
        b.emit_call("test.limits.positive", &[reg(0)], Register(1))?;
        let branch = b.emit_if(Register(1), 2)?;
        b.emit_call("test.limits.sub", &[reg(0), Arg::Immediate(1)], Register(2))?;
        match through {
            "calls" => _ = b.emit_call(next, &[reg(2)], Register(3))?,
            "closures" => {
                let next = b.function(next)?;
                let args = [Arg::Register(Register::VM), next, reg(2)];
                b.emit_call("vm.builtin.invoke_closure", &args, Register(3))?;
            }
            _ => {
                let next = b.function(next)?;
                b.emit_call("vm.builtin.make_closure", &[next, reg(2)], Register(4))?;
                b.emit_call("vm.builtin.invoke_closure", &[Arg::Register(Register::VM), reg(4)], Register(3))?;
            }
        }
        b.emit_ret(Register(3))?;
        let otherwise = b.next_instruction();
        b.set_jump_target(branch, otherwise)?;
        b.emit_ret(Register(0))?;
        Ok(())
    };
    let mut builder = ExecBuilder::new();
    builder.declare_function("main", relaxide_vm::FuncKind::Vm);
    builder.declare_function("other", relaxide_vm::FuncKind::Vm);
    for (name, next) in [("main", "other"), ("other", "main")] {
        builder.begin_function(name, &["n"]).unwrap();
        body(&mut builder, next).unwrap();
        builder.end_function().unwrap();
    }
    builder.get().unwrap().into_module()
}

#[test]
fn mutual_recursion_is_a_hundred_thousand_deep_and_ends_in_an_error() {
    for through in ["calls", "closures", "bound closures"] {
        let vm = machine(&descending(through));
        assert_eq!(vm.invoke("main", &[100_000_i64.into()]).unwrap().as_int(), Some(0), "{through}");
        if through == "calls" {
            let (kind, text) = failure(&vm, &[1_000_000]);
            assert_eq!(kind, "RecursionError", "{through}");
            assert!(text.contains("262144 functions"), "{through}: {text}");
            vm.set_instrument(Some(Function::new(|_args| Ok(Any::none()))));
            assert_eq!(vm.invoke("main", &[20_000_i64.into()]).unwrap().as_int(), Some(0));
            vm.set_instrument(None);
        }
        vm.set_limits(Limits { depth: Some(1000), ..Limits::default() });
        assert!(vm.invoke("main", &[999_i64.into()]).is_ok());
        let (kind, text) = failure(&vm, &[1000]);
        assert_eq!(kind, "RecursionError", "{through}");
        assert!(text.contains("the depth limit of 1000 functions"), "{through}: {text}");
        vm.set_limits(Limits { memory: Some(100_000), ..Limits::default() });
        let (kind, text) = failure(&vm, &[100_000]);
        assert_eq!(kind, "MemoryError", "{through}");
        assert!(text.contains("the stack: the memory limit of 100000 bytes"), "{through}: {text}");
    }
}

/// `main(n)`: calls `main(n - 1)` through a function from outside, which calls the machine again.
fn descending_outside() -> VirtualMachine {
    register("test.limits.positive", |x| i64::from(x[0] > 0));
    machine(&module(&[("main", &["n"], &|b| {
        b.emit_call("test.limits.positive", &[reg(0)], Register(1))?;
        b.emit_if(Register(1), 2)?;
        b.emit_call("test.limits.outside", &[reg(0)], Register(0))?;
        b.emit_ret(Register(0))?;
        Ok(())
    })]))
}

#[test]
fn recursion_through_functions_from_outside_ends_in_an_error() {
    let place: Arc<Mutex<Option<VirtualMachine>>> = Arc::default();
    let itself = Arc::clone(&place);
    replace_global(
        "test.limits.outside",
        Function::new(move |args| {
            let vm = itself.lock().unwrap().clone().unwrap();
            vm.invoke("main", &[(args[0].to::<i64>()? - 1).into()])
        }),
    );
    let vm = descending_outside();
    *place.lock().unwrap() = Some(vm.clone());
    assert_eq!(vm.invoke("main", &[100_i64.into()]).unwrap().as_int(), Some(0));
    let (kind, text) = failure(&vm, &[1_000_000]);
    assert_eq!(kind, "RecursionError");
    assert!(text.contains("times deep, as deep as the stack of this thread allows"), "{text}");
    // The runs inside use the budget of the outermost.
    vm.set_limits(Limits { instructions: Some(30), ..Limits::default() });
    assert!(vm.invoke("main", &[5_i64.into()]).is_ok());
    let (_, text) = failure(&vm, &[20]);
    assert!(text.contains("the limit of 30 instructions"), "{text}");
    place.lock().unwrap().take();
}

#[test]
fn what_nests_deeply_is_freed_without_the_native_stack() {
    for builtin in ["vm.builtin.make_tuple", "vm.builtin.make_closure"] {
        let vm = machine(&module(&[
            ("none", &["x"], &|b| {
                b.emit_ret(Register(0))?;
                Ok(())
            }),
            ("main", &["n"], &|b| {
                register("test.limits.positive", |x| i64::from(x[0] > 0));
                register("test.limits.sub", |x| x[0] - x[1]);
                let none = b.function("none")?;
                b.emit_call("vm.builtin.make_tuple", &[], Register(1))?;
                let head = b.next_instruction();
                let args = [none, reg(1)];
                let args = if builtin.ends_with("tuple") { &args[1..] } else { &args[..] };
                b.emit_call(builtin, args, Register(1))?;
                b.emit_call("test.limits.sub", &[reg(0), Arg::Immediate(1)], Register(0))?;
                b.emit_call("test.limits.positive", &[reg(0)], Register(2))?;
                b.emit_if(Register(2), 2)?;
                let back = b.emit_goto(-1)?;
                b.set_jump_target(back, head)?;
                b.emit_ret(Register(1))?;
                Ok(())
            }),
        ]));
        let nested = vm.invoke("main", &[100_000_i64.into()]).unwrap();
        drop(nested);
    }
}

#[test]
fn an_error_of_the_program_is_not_one_of_the_limits() {
    replace_global("test.limits.fail", Function::new(|_args| Err(Error::new("ValueError", "wrong"))));
    let vm = machine(&module(&[("main", &[], &|b| {
        b.emit_call("test.limits.fail", &[], Register(0))?;
        b.emit_ret(Register(0))?;
        Ok(())
    })]));
    vm.set_limits(Limits { instructions: Some(100), ..Limits::default() });
    assert_eq!(failure(&vm, &[]), ("ValueError".to_owned(), "wrong".to_owned()));
}
