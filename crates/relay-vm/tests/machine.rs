//! The machine, on programs written by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use relaxide_ffi::{Any, AnyView, DataType, Device, Error, Function, Tensor, register_global, signal};
use relaxide_relay_vm::{
    Adt, Alignment, Executable, Instruction as I, Limits, Size, VirtualMachine, VmFunction, verify,
};

fn function(name: &str, params: &[&str], registers: i64, instructions: Vec<I>) -> VmFunction {
    let params: Vec<String> = params.iter().map(|p| p.to_string()).collect();
    let param_devices = vec![0; params.len()];
    VmFunction { name: name.into(), params, register_file_size: registers, instructions, param_devices }
}

fn machine(functions: Vec<VmFunction>, primitives: &[&str]) -> VirtualMachine {
    let globals = functions.iter().map(|f| f.name.clone()).collect();
    let primitives = primitives.iter().map(|p| p.to_string()).collect();
    let executable = Executable { globals, functions, primitives, ..Executable::default() };
    VirtualMachine::on_cpu(verify(executable).unwrap(), None).unwrap()
}

fn int(value: i64) -> Tensor {
    Tensor::from_slice(&[value], &[]).unwrap()
}

fn value(result: &Any) -> i64 {
    result.as_tensor().unwrap().to_vec::<i64>().unwrap()[0]
}

/// Kernels on 64-bit scalars: `test.relay.dec(a, out)` and `test.relay.add(a, b, out)`.
fn kernels() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let read = |v: &AnyView<'_>| v.as_tensor().unwrap().to_vec::<i64>().unwrap()[0];
        let dec = Function::new(move |args| {
            args[1].as_tensor().unwrap().copy_from_slice(&[read(&args[0]) - 1])?;
            Ok::<_, Error>(Any::none())
        });
        let add = Function::new(move |args| {
            args[2].as_tensor().unwrap().copy_from_slice(&[read(&args[0]) + read(&args[1])])?;
            Ok::<_, Error>(Any::none())
        });
        register_global("test.relay.dec", dec).unwrap();
        register_global("test.relay.add", add).unwrap();
    });
}

/// A 64-bit scalar in register `dst`, by way of `storage` and the zero in `zero`.
fn alloc(storage: i64, zero: i64, dst: i64) -> Vec<I> {
    let (dtype, device) = (DataType::int(64), 0);
    vec![
        I::AllocStorage { size: Size::Shape(vec![1]), alignment: Alignment::Bytes(64), dtype, device, dst: storage },
        I::LoadConsti { value: 0, dst: zero },
        I::AllocTensor { storage, offset: Some(zero), shape: vec![], dtype, dst },
    ]
}

#[test]
fn data_are_made_and_taken_apart() {
    let code = vec![
        I::AllocAdt { tag: 7, dst: 2, fields: vec![0, 1] },
        I::GetTag { object: 2, dst: 3 },
        I::LoadConsti { value: 7, dst: 4 },
        I::If { test: 3, target: 4, then: 1, other: 3 },
        I::GetField { object: 2, index: 1, dst: 5 },
        I::Goto { offset: 2 },
        I::Fatal,
        I::Ret { result: 5 },
    ];
    let vm = machine(vec![function("main", &["a", "b"], 6, code)], &[]);
    let result = vm.run(&[(&int(1)).into(), (&int(2)).into()]).unwrap();
    assert_eq!(value(&result), 2);
}

#[test]
fn what_get_tag_and_load_consti_make_are_tensors_where_they_are_looked_at() {
    let code = vec![
        I::AllocAdt { tag: -5, dst: 0, fields: vec![] },
        I::GetTag { object: 0, dst: 1 },
        I::LoadConsti { value: 9, dst: 2 },
        I::AllocAdt { tag: 0, dst: 3, fields: vec![1, 2] },
        I::Ret { result: 3 },
    ];
    let result = machine(vec![function("main", &[], 4, code)], &[]).run(&[]).unwrap();
    let adt = result.downcast_ref::<Adt>().unwrap();
    let (tag, consti) = (adt.fields[0].as_tensor().unwrap(), adt.fields[1].as_tensor().unwrap());
    assert_eq!((tag.shape(), tag.to_vec::<i32>().unwrap()), (&[1i64][..], vec![-5]));
    assert_eq!((consti.shape(), consti.to_vec::<i64>().unwrap()), (&[1i64][..], vec![9]));
}

/// `loop(n, acc) = if n == 0 { acc } else { loop(n - 1, acc + n) }`, the call in the last place behind a move and a jump.
fn loop_program() -> VirtualMachine {
    kernels();
    let mut code = vec![I::LoadConsti { value: 0, dst: 2 }, I::If { test: 0, target: 2, then: 1, other: 3 }];
    code.extend([I::Move { from: 1, dst: 9 }, I::Goto { offset: 12 }]);
    code.extend(alloc(3, 4, 5));
    code.push(I::InvokePacked { index: 0, outputs: 1, args: vec![0, 5] });
    code.extend(alloc(6, 7, 8));
    code.push(I::InvokePacked { index: 1, outputs: 1, args: vec![0, 1, 8] });
    code.push(I::Invoke { func: 0, dst: 9, args: vec![5, 8] });
    code.push(I::KillRegister { dst: 5 });
    code.push(I::Goto { offset: 1 });
    code.push(I::Ret { result: 9 });
    machine(vec![function("main", &["n", "acc"], 10, code)], &["test.relay.dec", "test.relay.add"])
}

#[test]
fn a_call_in_the_last_place_takes_the_frame_of_its_caller() {
    let vm = loop_program();
    let result = vm.run(&[(&int(100_000)).into(), (&int(0)).into()]).unwrap();
    assert_eq!(value(&result), 100_000 * 100_001 / 2);
    vm.set_limits(Limits { depth: Some(3), ..Limits::default() });
    assert_eq!(value(&vm.run(&[(&int(1000)).into(), (&int(0)).into()]).unwrap()), 500_500);
}

#[test]
fn a_limit_on_memory_holds_for_a_machine_that_is_there_already() {
    let (dtype, device, thousand) = (DataType::int(64), 0, vec![1000]);
    let size = Size::Shape(thousand.clone());
    let code = vec![
        I::AllocStorage { size, alignment: Alignment::Bytes(64), dtype, device, dst: 0 },
        I::LoadConsti { value: 0, dst: 1 },
        I::AllocTensor { storage: 0, offset: Some(1), shape: thousand, dtype, dst: 2 },
        I::Ret { result: 2 },
    ];
    let vm = machine(vec![function("main", &[], 3, code)], &[]);
    let limits = |bytes| Limits { memory: Some(bytes), ..Limits::default() };
    let refused = |vm: &VirtualMachine| vm.run(&[]).unwrap_err().message().contains("the memory limit of");
    assert!(vm.run(&[]).is_ok());
    vm.set_limits(limits(4000));
    assert!(refused(&vm));
    // What a caller holds is in use until it is given up.
    vm.set_limits(limits(14_000));
    assert_eq!(vm.limits(), limits(14_000));
    let held = vm.run(&[]).unwrap();
    assert!(vm.memory_in_use() >= 8000);
    assert!(refused(&vm));
    drop(held);
    assert!(vm.run(&[]).is_ok());
    // The stack counts, too.
    vm.set_limits(limits(8));
    assert!(vm.run(&[]).unwrap_err().to_string().contains("stack"));
    vm.set_limits(Limits::default());
    assert!(vm.run(&[]).is_ok());
}

#[test]
fn limits_end_a_run_and_name_themselves() {
    let vm = machine(vec![function("main", &[], 1, vec![I::KillRegister { dst: 0 }, I::Goto { offset: -1 }])], &[]);
    vm.set_limits(Limits { instructions: Some(1000), ..Limits::default() });
    assert!(vm.run(&[]).unwrap_err().message().contains("the limit of 1000 instructions"));
    vm.set_limits(Limits { time: Some(std::time::Duration::from_millis(20)), ..Limits::default() });
    assert!(vm.run(&[]).unwrap_err().message().contains("time limit"));
}

#[test]
fn recursion_is_bounded_by_memory_and_not_by_the_stack() {
    kernels();
    // f(n) = if n == 0 { n } else { let r = f(n - 1); (r,).0 }: the call is not in the last place.
    let mut code = vec![I::LoadConsti { value: 0, dst: 1 }, I::If { test: 0, target: 1, then: 1, other: 2 }];
    code.push(I::Ret { result: 0 });
    code.extend(alloc(2, 3, 4));
    code.push(I::InvokePacked { index: 0, outputs: 1, args: vec![0, 4] });
    code.push(I::Invoke { func: 0, dst: 5, args: vec![4] });
    code.push(I::AllocAdt { tag: 0, dst: 6, fields: vec![5] });
    code.push(I::GetField { object: 6, index: 0, dst: 7 });
    code.push(I::Ret { result: 7 });
    let vm = machine(vec![function("main", &["n"], 8, code)], &["test.relay.dec"]);
    assert_eq!(value(&vm.run(&[(&int(300_000)).into()]).unwrap()), 0);
    vm.set_limits(Limits { depth: Some(100), ..Limits::default() });
    assert!(vm.run(&[(&int(300)).into()]).unwrap_err().message().contains("the depth limit of 100 functions"));
}

#[test]
fn closures_get_what_they_captured_in_front_of_the_arguments() {
    let pair = function(
        "pair",
        &["a", "b"],
        3,
        vec![I::AllocAdt { tag: 0, dst: 2, fields: vec![0, 1] }, I::Ret { result: 2 }],
    );
    let code = vec![
        I::AllocClosure { func: 0, dst: 1, free: vec![0] },
        I::LoadConsti { value: 5, dst: 2 },
        I::InvokeClosure { closure: 1, dst: 3, args: vec![2] },
        I::AllocAdt { tag: 0, dst: 4, fields: vec![3, 1] },
        I::Ret { result: 4 },
    ];
    let vm = machine(vec![pair, function("main", &["x"], 5, code)], &[]);
    let result = vm.run(&[(&int(4)).into()]).unwrap();
    let fields = &result.downcast_ref::<Adt>().unwrap().fields;
    let called = fields[0].downcast_ref::<Adt>().unwrap();
    assert_eq!((value(&called.fields[0]), value(&called.fields[1])), (4, 5));
    // The closure may be called from outside, on its own machine only.
    let again = vm.invoke_closure(fields[1].as_view(), &[(&int(6)).into()]).unwrap();
    assert_eq!(value(&again.downcast_ref::<Adt>().unwrap().fields[1]), 6);
    assert!(loop_program().invoke_closure(fields[1].as_view(), &[]).unwrap_err().message().contains("another machine"));
}

#[test]
fn a_kernel_is_not_called_for_an_empty_result() {
    kernels();
    let mut code = vec![I::AllocStorage {
        size: Size::Shape(vec![1]),
        alignment: Alignment::Bytes(64),
        dtype: DataType::int(64),
        device: 0,
        dst: 1,
    }];
    code.push(I::LoadConsti { value: 0, dst: 2 });
    code.push(I::AllocTensor { storage: 1, offset: Some(2), shape: vec![0], dtype: DataType::int(64), dst: 3 });
    // The kernel would fail: its argument is of another type.
    code.push(I::InvokePacked { index: 0, outputs: 1, args: vec![3, 3] });
    code.push(I::Ret { result: 3 });
    let vm = machine(vec![function("main", &[], 4, code)], &["test.relay.dec"]);
    assert_eq!(vm.run(&[]).unwrap().as_tensor().unwrap().shape(), [0]);
}

#[test]
fn shapes_are_read_and_given() {
    let code = vec![
        I::ShapeOf { tensor: 0, dst: 2 },
        I::ReshapeTensor { tensor: 0, shape: 1, dst: 3 },
        I::AllocAdt { tag: 0, dst: 4, fields: vec![2, 3] },
        I::Ret { result: 4 },
    ];
    let vm = machine(vec![function("main", &["x", "shape"], 5, code)], &[]);
    let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap();
    let shape = Tensor::from_slice(&[3i64, 2], &[2]).unwrap();
    let result = vm.run(&[(&x).into(), (&shape).into()]).unwrap();
    let fields = &result.downcast_ref::<Adt>().unwrap().fields;
    assert_eq!(fields[0].as_tensor().unwrap().to_vec::<i64>().unwrap(), [2, 3]);
    assert_eq!(fields[1].as_tensor().unwrap().shape(), [3, 2]);
}

#[test]
fn references_are_read_and_written() {
    let code = vec![
        I::InvokePacked { index: 0, outputs: 1, args: vec![0, 2] },
        I::InvokePacked { index: 1, outputs: 1, args: vec![2, 1, 3] },
        I::InvokePacked { index: 2, outputs: 1, args: vec![2, 4] },
        I::Ret { result: 4 },
    ];
    let names = ["relay.vm.ref_create", "relay.vm.ref_write", "relay.vm.ref_read"];
    let vm = machine(vec![function("main", &["a", "b"], 5, code)], &names);
    assert_eq!(value(&vm.run(&[(&int(1)).into(), (&int(2)).into()]).unwrap()), 2);
}

#[test]
fn errors_name_function_instruction_and_what_is_there() {
    let vm =
        machine(vec![function("main", &["x"], 2, vec![I::GetTag { object: 0, dst: 1 }, I::Ret { result: 1 }])], &[]);
    let message = vm.run(&[(&int(1)).into()]).unwrap_err().message().to_string();
    assert!(message.contains("function main, instruction 0 (get_tag $1 $0)"), "{message}");
    assert!(message.contains("a value of a data type is expected"), "{message}");
    assert!(vm.run(&[]).unwrap_err().message().contains("takes 1 arguments (x)"));
    assert!(vm.invoke("other", &[]).unwrap_err().message().contains("there are main"));
    let fatal = machine(vec![function("main", &[], 0, vec![I::Fatal])], &[]);
    assert!(fatal.run(&[]).unwrap_err().message().contains("VM encountered fatal error"));
}

#[test]
fn inputs_and_outputs_are_kept_for_stateful_calls() {
    let vm = machine(
        vec![function(
            "main",
            &["a", "b"],
            3,
            vec![I::AllocAdt { tag: 0, dst: 2, fields: vec![1, 0] }, I::Ret { result: 2 }],
        )],
        &[],
    );
    assert!(vm.invoke_stateful("main").unwrap_err().message().contains("Input has not been set"));
    vm.set_one_input("main", 0, (&int(1)).into()).unwrap();
    assert!(vm.invoke_stateful("main").unwrap_err().message().contains("the input b"));
    vm.set_input("main", &[(&int(1)).into(), (&int(2)).into()]).unwrap();
    vm.invoke_stateful("main").unwrap();
    assert_eq!((vm.num_outputs().unwrap(), value(&vm.output(0).unwrap())), (2, 2));
    assert!(vm.output(2).is_err());
    assert_eq!(vm.input_index("main", "b").unwrap(), Some(1));
}

#[test]
fn a_run_that_would_not_end_stops_when_it_is_cancelled() {
    // By a jump back, by calls in the last place, by closures, and in a run that is limited.
    let endless = vec![I::Move { from: 0, dst: 1 }, I::Goto { offset: -1 }];
    let back = vec![
        I::LoadConsti { value: 1, dst: 1 },
        I::If { test: 1, target: 1, then: -1, other: 1 },
        I::Ret { result: 1 },
    ];
    let tail = vec![I::Invoke { func: 0, dst: 1, args: vec![0] }, I::Ret { result: 1 }];
    let closure = vec![
        I::AllocClosure { func: 0, dst: 1, free: vec![] },
        I::InvokeClosure { closure: 1, dst: 2, args: vec![0] },
        I::Ret { result: 2 },
    ];
    let cases = [(endless, None), (back, None), (tail.clone(), None), (closure, None), (tail, Some(u64::MAX))];
    for (case, (code, instructions)) in cases.into_iter().enumerate() {
        let vm = machine(vec![function("main", &["x"], 3, code)], &[]);
        vm.set_limits(Limits { instructions, ..Limits::default() });
        let stop = Arc::new(AtomicBool::new(false));
        let error = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(std::time::Duration::from_millis(20));
                stop.store(true, Ordering::Relaxed);
            });
            signal::stoppable(&stop, || vm.run(&[(&int(1)).into()])).unwrap_err()
        });
        assert_eq!(error.kind(), signal::CANCELLED, "case {case}: {error}");
        assert!(error.message().contains("function main"), "{error}");
    }
}

#[test]
fn the_verifier_refuses_what_would_leave_the_program() {
    let refuse = |instructions: Vec<I>| {
        let functions = vec![function("main", &[], 2, instructions)];
        verify(Executable { globals: vec!["main".into()], functions, ..Executable::default() }).unwrap_err().to_string()
    };
    let cases: Vec<(Vec<I>, &str)> = vec![
        (vec![I::Ret { result: 2 }], "there is no register 2"),
        (vec![I::Ret { result: -1 }], "there is no register -1"),
        (vec![I::Goto { offset: 1 }], "outside of the function"),
        (vec![I::Goto { offset: 0 }], "jumps to itself"),
        (vec![I::Goto { offset: i64::MAX }, I::Goto { offset: -1 }], "outside of the function"),
        (vec![I::LoadConsti { value: 0, dst: 0 }], "runs past its end"),
        (vec![], "it has no code"),
        (vec![I::Invoke { func: 0, dst: 0, args: vec![1] }, I::Ret { result: 0 }], "takes 0 arguments, not 1"),
        (vec![I::Invoke { func: 1, dst: 0, args: vec![] }, I::Ret { result: 0 }], "there is no function 1"),
        (vec![I::InvokePacked { index: 0, outputs: 0, args: vec![] }, I::Fatal], "there is no kernel 0"),
        (vec![I::LoadConst { index: 0, device: 0, dst: 0 }, I::Fatal], "there is no constant 0"),
        (vec![I::AllocClosure { func: 0, dst: 0, free: vec![1] }, I::Fatal], "1 values are captured"),
        (vec![I::DeviceCopy { src: 0, src_device: 0, dst_device: 1, dst: 0 }, I::Fatal], "there is no device 1"),
    ];
    for (code, expected) in cases {
        let message = refuse(code);
        assert!(message.contains(expected), "{message} does not contain {expected}");
    }
}

#[test]
fn the_module_offers_the_functions_of_the_reference() {
    let functions = vec![function("main", &["x"], 1, vec![I::Ret { result: 0 }])];
    let executable = Executable { globals: vec!["main".into()], functions, ..Executable::default() };
    let module = executable.into_module();
    let call = |m: &relaxide_ffi::Module, name: &str, args: &[AnyView<'_>]| {
        m.get_function(name, false).unwrap().call(args).unwrap()
    };
    assert!(call(&module, "get_bytecode", &[]).to::<String>().unwrap().contains("VM Function[0]: main(x)"));
    let vm: relaxide_ffi::Module = call(&module, "vm_load_executable", &[]).to().unwrap();
    let cpu = Device::cpu(0);
    call(&vm, "init", &[i64::from(cpu.device_type).into(), 0i64.into(), 2i64.into()]);
    let name = Any::from("main");
    assert_eq!(value(&call(&vm, "invoke", &[name.as_view(), (&int(3)).into()])), 3);
}
