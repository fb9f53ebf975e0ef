//! Programs made with the builder, run on functions that the tests register.

use std::sync::{Arc, Mutex};

use crate::support::{machine, register, try_machine};
use relaxide_ffi::{Any, AnyView, Array, DataType, Error, Function, Module, Shape, Tensor, replace_global};
use relaxide_vm::{Arg, BuildError, ExecBuilder, InstrumentReturn, Register, Returns};

fn reg(number: i64) -> Arg {
    Arg::Register(Register(number))
}

/// A function: name, parameters, and what emits its body.
type Definition<'a> = (&'a str, &'a [&'a str], &'a dyn Fn(&mut ExecBuilder) -> Result<(), BuildError>);

/// Builds a module from functions.
fn module(functions: &[Definition<'_>]) -> Module {
    let mut builder = ExecBuilder::new();
    for (name, params, body) in functions {
        builder.begin_function(name, params).unwrap();
        body(&mut builder).unwrap();
        builder.end_function().unwrap();
    }
    builder.get().unwrap().into_module()
}

fn ints(values: &[i64]) -> Vec<AnyView<'static>> {
    values.iter().map(|value| AnyView::from(*value)).collect()
}

/// `count(n) = if n == 0 { 0 } else { 1 + count(n - 1) }`, one frame for each step.
fn counting() -> Module {
    register("test.rec.not_zero", |x| i64::from(x[0] != 0));
    register("test.rec.sub", |x| x[0] - x[1]);
    register("test.rec.add", |x| x[0] + x[1]);
    module(&[("count", &["n"], &|b| {
        b.emit_call("test.rec.not_zero", &[reg(0)], Register(1))?;
        let branch = b.emit_if(Register(1), 2)?;
        b.emit_call("test.rec.sub", &[reg(0), Arg::Immediate(1)], Register(2))?;
        b.emit_call("count", &[reg(2)], Register(3))?;
        b.emit_call("test.rec.add", &[reg(3), Arg::Immediate(1)], Register(4))?;
        b.emit_ret(Register(4))?;
        let otherwise = b.next_instruction();
        b.set_jump_target(branch, otherwise)?;
        b.emit_ret(Register(0))?;
        Ok(())
    })])
}

#[test]
fn recursion_runs_deep_and_ends_in_an_error() {
    let vm = machine(&counting());
    assert_eq!(vm.invoke("count", &ints(&[50_000])).unwrap().as_int(), Some(50_000));
    let error = vm.invoke("count", &ints(&[1_000_000])).unwrap_err();
    assert_eq!(error.kind(), "RecursionError");
    assert!(error.message().contains("does the recursion end?"), "{error}");
    // The machine is as good as new.
    assert_eq!(vm.invoke("count", &ints(&[3])).unwrap().as_int(), Some(3));
}

#[test]
fn recursion_through_the_host_ends_in_an_error() {
    let program = module(&[("main", &["f"], &|b| {
        b.emit_call("vm.builtin.invoke_closure", &[Arg::Register(Register::VM), reg(0)], Register(1))?;
        b.emit_ret(Register(1))?;
        Ok(())
    })]);
    let vm = machine(&program);
    let again = vm.clone();
    let place: Arc<Mutex<Option<Function>>> = Arc::default();
    let itself = Arc::clone(&place);
    let function = Function::new(move |_args| {
        let function = itself.lock().unwrap().clone().unwrap();
        again.invoke("main", &[AnyView::from(&function)])
    });
    *place.lock().unwrap() = Some(function.clone());
    let error = vm.invoke("main", &[AnyView::from(&function)]).unwrap_err();
    assert_eq!(error.kind(), "RecursionError");
    place.lock().unwrap().take();
}

#[test]
fn a_loop_jumps_back() {
    register("test.loop.less", |x| i64::from(x[0] < x[1]));
    register("test.loop.add", |x| x[0] + x[1]);
    let program = module(&[("sum", &["n"], &|b| {
        b.emit_call("vm.builtin.copy", &[Arg::Immediate(0)], Register(1))?;
        b.emit_call("vm.builtin.copy", &[Arg::Immediate(0)], Register(2))?;
        let head = b.emit_call("test.loop.less", &[reg(1), reg(0)], Register(3))?;
        b.emit_if(Register(3), 4)?;
        b.emit_call("test.loop.add", &[reg(1), Arg::Immediate(1)], Register(1))?;
        b.emit_call("test.loop.add", &[reg(2), reg(1)], Register(2))?;
        let back = b.emit_goto(-4)?;
        b.set_jump_target(back, head)?;
        b.emit_ret(Register(2))?;
        Ok(())
    })]);
    assert_eq!(machine(&program).invoke("sum", &ints(&[1000])).unwrap().as_int(), Some(500_500));
}

#[test]
fn arguments_of_every_kind_arrive() {
    replace_global(
        "test.kinds",
        Function::new(|args: &[AnyView<'_>]| {
            Ok(Array::from_vec(args.iter().map(|arg| Any::from(arg.type_key())).collect()).into())
        }),
    );
    let program = module(&[("main", &[], &|b| {
        let constant = b.constant("a text that is not short");
        let shape = b.constant(Shape::from([1, 2]));
        let small = b.constant(5_i64);
        assert_eq!(small, Arg::Immediate(5));
        assert_eq!(b.constant(Shape::from([1, 2])), shape, "equal constants share a place");
        let this = b.function("main")?;
        let args = [constant, shape, small, this, Arg::Register(Register::VM), Arg::Register(Register::VOID)];
        b.emit_call("test.kinds", &args, Register(0))?;
        b.emit_ret(Register(0))?;
        Ok(())
    })]);
    let kinds: Vec<String> = machine(&program).invoke("main", &[]).unwrap().to().unwrap();
    assert_eq!(kinds, ["ffi.String", "ffi.Shape", "int", "relax.vm.Closure", "void*", "None"]);
}

#[test]
fn more_arguments_than_fit_inline_arrive() {
    register("test.many.sum", |x| x.iter().sum());
    let program = module(&[("main", &[], &|b| {
        let args: Vec<Arg> = (0..100).map(Arg::Immediate).collect();
        b.emit_call("test.many.sum", &args, Register(0))?;
        b.emit_ret(Register(0))?;
        Ok(())
    })]);
    assert_eq!(machine(&program).invoke("main", &[]).unwrap().as_int(), Some(4950));
}

#[test]
fn memory_is_used_again_only_when_nobody_has_it() {
    let program = module(&[("main", &[], &|b| {
        let (size, shape) = (b.constant(Shape::from([64])), b.constant(Shape::from([4, 4])));
        let (byte, float) = (b.constant(DataType::uint(8)), b.constant(DataType::float(32)));
        let scope = b.constant("global");
        let storage = [Arg::Register(Register::VM), size, Arg::Immediate(0), byte, scope];
        b.emit_call("vm.builtin.alloc_storage", &storage, Register(0))?;
        b.emit_call("vm.builtin.alloc_tensor", &[reg(0), Arg::Immediate(0), shape, float], Register(1))?;
        b.emit_call("vm.builtin.null_value", &[], Register(0))?;
        b.emit_ret(Register(1))?;
        Ok(())
    })]);
    let vm = machine(&program);
    let run = || vm.invoke("main", &[]).unwrap().to::<Tensor>().unwrap();
    let (first, second, third) = (run(), run(), run());
    assert_eq!((first.shape(), first.dtype()), (&[4, 4][..], DataType::float(32)));
    assert!(first.data_ptr() != second.data_ptr() && second.data_ptr() != third.data_ptr());
    let address = first.data_ptr();
    drop(first);
    assert_eq!(run().data_ptr(), address);
}

#[test]
fn a_tensor_that_does_not_fit_its_storage_is_refused() {
    let program = |offset: i64, dims: [i64; 2]| {
        module(&[("main", &[], &move |b| {
            let (size, shape) = (b.constant(Shape::from([4096])), b.constant(Shape::from(dims)));
            let (byte, float) = (b.constant(DataType::uint(8)), b.constant(DataType::float(32)));
            let scope = b.constant("global");
            let storage = [Arg::Register(Register::VM), size, Arg::Immediate(0), byte, scope];
            b.emit_call("vm.builtin.alloc_storage", &storage, Register(0))?;
            b.emit_call("vm.builtin.alloc_tensor", &[reg(0), Arg::Immediate(offset), shape, float], Register(1))?;
            b.emit_ret(Register(1))?;
            Ok(())
        })])
    };
    let run = |offset, dims| machine(&program(offset, dims)).invoke("main", &[]);
    assert!(run(0, [32, 32]).is_ok() && run(4096 - 64, [4, 4]).is_ok());
    for (offset, dims) in [(4, [32, 32]), (0, [32, 33]), (-64, [1, 1]), (1 << 54, [1, 1]), (0, [1 << 40, 1 << 40])] {
        assert!(run(offset, dims).is_err(), "{offset} {dims:?}");
    }
}

#[test]
fn closures_bind_values_behind_their_arguments() {
    register("test.closure.join", |x| x.iter().fold(0, |all, digit| all * 10 + digit));
    let program = module(&[
        ("join", &["a", "b", "c"], &|b| {
            b.emit_call("test.closure.join", &[reg(0), reg(1), reg(2)], Register(3))?;
            b.emit_ret(Register(3))?;
            Ok(())
        }),
        ("bind", &["c"], &|b| {
            let join = b.function("join")?;
            b.emit_call("vm.builtin.make_closure", &[join, reg(0)], Register(1))?;
            b.emit_ret(Register(1))?;
            Ok(())
        }),
        ("main", &["a", "c"], &|b| {
            b.emit_call("bind", &[reg(1)], Register(2))?;
            let args = [Arg::Register(Register::VM), reg(2), reg(0), Arg::Immediate(7)];
            b.emit_call("vm.builtin.invoke_closure", &args, Register(3))?;
            b.emit_ret(Register(3))?;
            Ok(())
        }),
    ]);
    let vm = machine(&program);
    assert_eq!(vm.invoke("main", &ints(&[1, 2])).unwrap().as_int(), Some(172));
    let closure = vm.invoke("bind", &ints(&[9])).unwrap();
    assert_eq!(vm.invoke_closure(closure.as_view(), &ints(&[4, 5])).unwrap().as_int(), Some(459));
    let error = vm.invoke_closure(closure.as_view(), &ints(&[4])).unwrap_err();
    assert!(error.message().contains("expects 3 arguments (a, b, c), but 2 arguments were provided"), "{error}");
    let other = machine(&counting());
    assert_eq!(other.invoke_closure(closure.as_view(), &ints(&[4, 5])).unwrap().as_int(), Some(459));
    drop(vm);
    let error = other.invoke_closure(closure.as_view(), &ints(&[4, 5])).unwrap_err();
    assert!(error.message().contains("the machine of closure join is gone"), "{error}");
}

#[test]
fn what_is_missing_is_named_when_the_machine_is_made() {
    let program = module(&[("main", &[], &|b| {
        b.emit_call("test.missing.one", &[], Register(0))?;
        b.emit_call("test.missing.two", &[], Register(0))?;
        b.emit_ret(Register(0))?;
        Ok(())
    })]);
    let error = try_machine(&program).unwrap_err();
    assert!(error.message().contains("test.missing.one, test.missing.two"), "{error}");
}

#[test]
fn imports_come_before_globals_and_builtins() {
    struct Kernels;
    impl relaxide_ffi::ModuleImpl for Kernels {
        fn kind(&self) -> &str {
            "test"
        }

        fn get_function(&self, name: &str) -> Option<Function> {
            (name == "vm.builtin.copy").then(|| Function::typed(|x: i64| Ok::<_, Error>(x + 1000)))
        }
    }
    let build = || {
        module(&[("main", &["x"], &|b| {
            b.emit_call("vm.builtin.copy", &[reg(0)], Register(1))?;
            b.emit_ret(Register(1))?;
            Ok(())
        })])
    };
    let (plain, importing) = (build(), build());
    importing.import(Module::new(Kernels)).unwrap();
    assert_eq!(machine(&plain).invoke("main", &ints(&[1])).unwrap().as_int(), Some(1));
    assert_eq!(machine(&importing).invoke("main", &ints(&[1])).unwrap().as_int(), Some(1001));
}

#[test]
fn a_wrong_number_of_arguments_is_refused() {
    let vm = machine(&counting());
    let error = vm.invoke("count", &[]).unwrap_err();
    assert_eq!(error.message(), "Invoking function count expects 1 arguments (n), but 0 arguments were provided.");
    assert_eq!(vm.invoke("nothing", &[]).unwrap_err().message(), "Unknown function: nothing");
}

#[test]
fn errors_say_which_instructions_were_active() {
    replace_global(
        "test.trace.fail",
        Function::new(|_args: &[AnyView<'_>]| Err(Error::new("ValueError", "the kernel failed"))),
    );
    let program = module(&[
        ("inner", &[], &|b| {
            b.emit_call("vm.builtin.null_value", &[], Register(1))?;
            b.emit_call("test.trace.fail", &[], Register(0))?;
            b.emit_ret(Register(0))?;
            Ok(())
        }),
        ("outer", &[], &|b| {
            b.emit_call("inner", &[], Register(0))?;
            b.emit_ret(Register(0))?;
            Ok(())
        }),
    ]);
    let error = machine(&program).invoke("outer", &[]).unwrap_err();
    assert_eq!(error.message(), "the kernel failed");
    let trace = error.backtrace();
    let lines: Vec<&str> = trace.lines().collect();
    assert!(lines[0].ends_with("line 1, in inner") && lines[1].ends_with("line 3, in outer"), "{trace}");
}

#[test]
fn an_instrument_sees_calls_and_can_skip_them() {
    register("test.instrument.add", |x| x[0] + x[1]);
    let program = module(&[("main", &["x"], &|b| {
        b.emit_call("test.instrument.add", &[reg(0), Arg::Immediate(1)], Register(1))?;
        b.emit_ret(Register(1))?;
        Ok(())
    })]);
    let vm = machine(&program);
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&seen);
    vm.set_instrument(Some(Function::new(move |args: &[AnyView<'_>]| {
        log.lock().unwrap().push(format!("{:?}", &args[1..]));
        Ok(Any::none())
    })));
    assert_eq!(vm.invoke("main", &ints(&[4])).unwrap().as_int(), Some(5));
    let expected = [r#"["test.instrument.add", true, None, 4, 1]"#, r#"["test.instrument.add", false, 5, 4, 1]"#];
    assert_eq!(*seen.lock().unwrap(), expected);
    vm.set_instrument(Some(Function::new(|_args: &[AnyView<'_>]| Ok((InstrumentReturn::SkipRun as i64).into()))));
    assert!(vm.invoke("main", &ints(&[4])).unwrap().is_none());
    vm.set_instrument(None);
    assert_eq!(vm.invoke("main", &ints(&[4])).unwrap().as_int(), Some(5));
}

#[test]
fn stateful_calls_keep_inputs_and_outputs() {
    let program = module(&[("pair", &["a", "b"], &|b| {
        b.emit_call("vm.builtin.make_tuple", &[reg(0), reg(1)], Register(2))?;
        b.emit_ret(Register(2))?;
        Ok(())
    })]);
    let vm = machine(&program);
    let no_input = vm.invoke_stateful("pair").unwrap_err();
    assert_eq!(no_input.message(), "No inputs set for stateful call of pair; use `set_input` first.");
    assert!(vm.set_input("pair", &ints(&[1])).is_err());
    vm.set_input("pair", &ints(&[1, 2])).unwrap();
    assert!(vm.get_output("pair", &[]).unwrap_err().message().starts_with("No output saved"));
    vm.invoke_stateful("pair").unwrap();
    assert_eq!(vm.output_arity("pair", &[]).unwrap(), Some(2));
    assert_eq!(vm.get_output("pair", &[1]).unwrap().as_int(), Some(2));
    assert_eq!(vm.get_output("pair", &[2]).unwrap_err().message(), "Invalid index (2 >= 2).");
    assert!(vm.get_output("pair", &[0, 0]).is_err());

    vm.save_function("pair", "saved", &ints(&[3, 4]), Returns::Result).unwrap();
    let values: Vec<i64> = vm.invoke("saved", &[]).unwrap().to().unwrap();
    assert_eq!(values, [3, 4]);
    let error = vm.invoke("saved", &ints(&[5])).unwrap_err();
    assert!(error.message().contains("expects 2 arguments (a, b), but 3 arguments were provided"), "{error}");
    vm.save_function("pair", "partly saved", &ints(&[4]), Returns::Result).unwrap();
    let values: Vec<i64> = vm.function("partly saved").unwrap().call(&ints(&[9])).unwrap().to().unwrap();
    assert_eq!(values, [9, 4]);
    vm.save_function("pair", "quiet", &ints(&[3, 4]), Returns::Nothing).unwrap();
    assert!(vm.function("quiet").unwrap().call(&[]).unwrap().is_none());
    assert_eq!(vm.param_names("pair").unwrap(), ["a", "b"]);
}

#[test]
fn the_module_faces_lead_from_executable_to_result() {
    let executable = counting();
    let call = |module: &Module, name: &str, args: &[AnyView<'_>]| {
        module.get_function(name, false).unwrap_or_else(|| panic!("no function {name}")).call(args)
    };
    let has = Any::from("count");
    assert_eq!(call(&executable, "has_function", &[has.as_view()]).unwrap().as_int(), Some(1));
    let machine: Module = call(&executable, "vm_load_executable", &[]).unwrap().to().unwrap();
    assert_eq!(machine.kind(), "relax.VirtualMachine");
    assert!(machine.get_function("count", false).is_none(), "not initialised yet");
    assert!(call(&machine, "vm_initialization", &ints(&[1, 0])).is_err());
    call(&machine, "vm_initialization", &ints(&[1, 0, 2])).unwrap();
    assert!(call(&machine, "vm_initialization", &ints(&[1, 0, 2])).is_err(), "initialised twice");
    assert_eq!(call(&machine, "count", &ints(&[5])).unwrap().as_int(), Some(5));
    let name = Any::from("count");
    assert_eq!(call(&machine, "get_function_arity", &[name.as_view()]).unwrap().as_int(), Some(1));
    let param = call(&machine, "get_function_param_name", &[name.as_view(), 0_i64.into()]).unwrap();
    assert_eq!(param.as_str(), Some("n"));
}

#[test]
fn one_machine_serves_many_threads() {
    let vm = machine(&counting());
    std::thread::scope(|scope| {
        for thread in 0..4_i64 {
            let vm = &vm;
            scope.spawn(move || {
                for n in 0..200 {
                    assert_eq!(vm.invoke("count", &ints(&[n + thread])).unwrap().as_int(), Some(n + thread));
                }
            });
        }
    });
}

#[test]
fn a_machine_with_closures_is_freed() {
    let vm = machine(&counting());
    let tensor = Tensor::from_slice(&[1_i64], &[1]).unwrap();
    vm.set_input("count", &[AnyView::from(&tensor)]).unwrap();
    let count = |tensor: &Tensor| relaxide_ffi::Handle::as_object(tensor).header().strong_count();
    assert_eq!(count(&tensor), 2);
    drop(vm);
    assert_eq!(count(&tensor), 1, "the machine is gone and with it what it kept");
}
