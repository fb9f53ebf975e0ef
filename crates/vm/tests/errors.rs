//! What users see when a call, a file or a machine is wrong: each text names what was found, what was expected, and where.

use crate::support::{artifact, machine};
use relaxide_ffi::{Any, AnyView, Array, DataType, Device, Error, Module, Shape, Tensor};
use relaxide_runtime::memory::{AllocatorKind, Buffer, Storage, allocator};
use relaxide_vm::{Arg, ExecBuilder, Executable, Register, VirtualMachine, load_module};

/// What the compiler says of the parameter of `add`.
const PARAMETER: &str = "argument `x` of `main` must be R.Tensor((3, 4), dtype=\"float32\"): ";

fn library(name: &str) -> Module {
    load_module(artifact(&format!("{name}.so"))).unwrap()
}

fn zeros(shape: &[i64], dtype: DataType) -> Any {
    Tensor::zeros(shape, dtype).unwrap().into()
}

fn invoke(vm: &VirtualMachine, name: &str, args: &[Any]) -> Error {
    let views: Vec<AnyView<'_>> = args.iter().map(Any::as_view).collect();
    vm.invoke(name, &views).unwrap_err()
}

/// A tensor on a device of its own number.
fn elsewhere(device: Device) -> Any {
    let memory = allocator(device, AllocatorKind::Naive).unwrap();
    let storage = Storage::new(Buffer::new(&memory, 48).unwrap());
    Storage::tensor(&storage, 0, &[3, 4], DataType::float(32)).unwrap().into()
}

#[test]
fn a_wrong_argument_is_named_with_its_function_parameter_and_annotation() {
    let vm = machine(&library("add"));
    let f32 = DataType::float(32);
    let cases: Vec<(&str, Vec<Any>, &str, &str)> = vec![
        (
            "dtype",
            vec![zeros(&[3, 4], DataType::int(32))],
            "ValueError",
            "expect Tensor with dtype float32 but get int32",
        ),
        ("rank", vec![zeros(&[3], f32)], "ValueError", "expect Tensor with ndim 2 but get 1"),
        ("shape", vec![zeros(&[3, 5], f32)], "ShapeError", "dimension 1 is 5, not 4"),
        ("no tensor", vec![Any::from(5_i64)], "TypeError", "expect a Tensor but get int"),
        ("nothing", vec![Any::none()], "TypeError", "expect a Tensor but get None"),
        (
            "a tuple",
            vec![Array::from_vec(vec![zeros(&[3, 4], f32)]).into()],
            "TypeError",
            "expect a Tensor but get ffi.Array",
        ),
    ];
    for (what, args, kind, text) in cases {
        let error = invoke(&vm, "main", &args);
        assert_eq!(error.kind(), kind, "{what}: {error}");
        assert!(error.message().starts_with(PARAMETER), "{what}: {error}");
        assert!(error.message().contains(text), "{what}: {error}");
    }
}

#[test]
fn a_tensor_on_another_device_is_refused_by_the_kernel() {
    let vm = machine(&library("add"));
    let error = invoke(&vm, "main", &[elsewhere(Device::cpu(5))]);
    assert!(error.message().contains("device"), "{error}");
    assert!(error.message().contains("add"), "{error}");
}

#[test]
fn a_wrong_number_of_arguments_names_the_parameters() {
    let vm = machine(&library("dynamic"));
    for count in [0, 1, 3] {
        let error = invoke(&vm, "main", &vec![zeros(&[2, 4], DataType::float(32)); count]);
        assert_eq!(error.kind(), "ArityError");
        let expected =
            format!("Invoking function main expects 2 arguments (x, y), but {count} arguments were provided.");
        assert_eq!(error.message(), expected);
    }
}

#[test]
fn dimensions_that_disagree_are_named() {
    let vm = machine(&library("dynamic"));
    let error = invoke(&vm, "main", &[zeros(&[2, 4], DataType::float(32)), zeros(&[3, 4], DataType::float(32))]);
    assert!(error.message().starts_with("argument `y` of `main` must be "), "{error}");
    assert!(error.message().contains("dimension 0 is 3, not 2"), "{error}");
}

#[test]
fn a_missing_function_is_named() {
    let vm = machine(&library("add"));
    assert_eq!(invoke(&vm, "mian", &[]).message(), "Unknown function: mian");
    assert!(vm.function("mian").is_none());
    assert_eq!(vm.set_input("mian", &[]).unwrap_err().message(), "Unknown function: mian");
    assert_eq!(vm.invoke_stateful("mian").unwrap_err().message(), "Unknown function: mian");
}

#[test]
fn a_missing_kernel_is_named_before_anything_runs() {
    let bytes = std::fs::read(artifact("add.vmexec")).unwrap();
    let without_kernels = Executable::from_bytes(&bytes).unwrap().into_module();
    let error = VirtualMachine::new(&without_kernels, &[(Device::cpu(0), AllocatorKind::Pooled)]).unwrap_err();
    assert_eq!(error.kind(), "ValueError");
    assert!(
        error.message().starts_with("Cannot find function add in the modules that the executable imports"),
        "{error}"
    );
}

#[test]
fn an_absent_device_is_named() {
    let module = library("add");
    let with = |device: Device| VirtualMachine::new(&module, &[(device, AllocatorKind::Pooled)]).unwrap_err();
    let error = with(Device::new(Device::CUDA, 0));
    assert!(error.message().contains("cuda:0") && error.message().contains("not available"), "{error}");
    assert!(with(Device::cpu(-1)).message().contains("cpu:-1"));
    // A program that wants a device that the machine was not given.
    let mut b = ExecBuilder::new();
    let (size, byte, scope) = (b.constant(Shape::from([4])), b.constant(DataType::uint(8)), b.constant("global"));
    let far = b.constant("global.texture");
    b.begin_function("second", &["unused"]).unwrap();
    let vm = Arg::Register(Register::VM);
    b.emit_call("vm.builtin.alloc_storage", &[vm, size, Arg::Immediate(3), byte, scope], Register(1)).unwrap();
    b.emit_ret(Register(1)).unwrap();
    b.end_function().unwrap();
    b.begin_function("scope", &["unused"]).unwrap();
    b.emit_call("vm.builtin.alloc_storage", &[vm, size, Arg::Immediate(0), byte, far], Register(1)).unwrap();
    b.emit_ret(Register(1)).unwrap();
    b.end_function().unwrap();
    let vm = machine(&b.get().unwrap().into_module());
    let error = invoke(&vm, "second", &[Any::none()]);
    assert!(error.message().contains("device index 3 does not exist: the VM has 1 devices"), "{error}");
    let error = invoke(&vm, "scope", &[Any::none()]);
    assert!(error.message().contains("memory scope \"global.texture\" does not exist"), "{error}");
}

#[test]
fn a_file_that_is_not_an_executable_says_why() {
    let bytes = std::fs::read(artifact("add.vmexec")).unwrap();
    let error = |bytes: &[u8]| Executable::from_bytes(bytes).unwrap_err().to_string();
    let with = |at: usize, value: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        bytes
    };
    assert!(error(&with(7, 0)).contains("header, byte 0: the magic is 0x0025de2f4214151e"), "{}", error(&with(7, 0)));
    assert!(error(&with(19, b'5')).contains("the version is \"0.15\"; this runtime reads \"0.14\""));
    assert!(error(&[]).contains("header"));
    for (cut, section) in [(10, "header"), (100, "function table"), (0x210, "memory scopes"), (0x240, "constant pool")]
    {
        let text = error(&bytes[..cut]);
        assert!(text.contains(section) && text.contains("are left"), "{cut}: {text}");
    }
    assert!(error(&bytes[..bytes.len() - 1]).contains("instruction data"));
}

#[test]
fn a_library_that_is_not_one_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.so");
    let missing = load_module(&path).unwrap_err();
    assert!(missing.message().contains("model.so"), "{missing}");
    for content in [&b""[..], b"not a library"] {
        std::fs::write(&path, content).unwrap();
        let error = load_module(&path).unwrap_err();
        assert!(error.message().contains("model.so"), "{error}");
    }
}

#[test]
fn a_module_of_another_kind_is_refused() {
    let error = VirtualMachine::new(&library("add").imports().remove(0), &[(Device::cpu(0), AllocatorKind::Pooled)])
        .unwrap_err();
    assert!(error.message().contains("is not a VM executable"), "{error}");
}
