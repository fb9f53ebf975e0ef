//! Programs over several devices: equal results, and as many copies as there are crossings.
//!
//! The second device is [`relaxide_testkit::device`], whose memory no kernel of the CPU reaches, or another CPU, whose number kernels
//! check.

use relaxide::{CompileOptions, compile, parse_script};
use relaxide_ffi::{Any, AnyView, DataType, Device, Error, Tensor};
use relaxide_runtime::device::{copy_tensor, empty_tensor, on_host, view_at};
use relaxide_runtime::memory::{AllocatorKind, release_cached};
use relaxide_testkit::device::{self, Fails, copies};
use relaxide_vm::VirtualMachine;

const HANDLES: &str = r#"I.vdevice({"kind": "llvm", "target_device_type": 12}, 0)"#;
const SECOND_CPU: &str = r#"I.vdevice("llvm", 1)"#;

/// A program in which `DEVICE` stands for the second device, and hints for devices that are kinds and numbers.
fn machine(text: &str, second: &str) -> VirtualMachine {
    let (kind, id) = if second == SECOND_CPU { (1, 1) } else { (device::TYPE, 0) };
    let text = text.replace("DEVICE", second).replace("THERE", &format!("R.device(device_type={kind}, index={id})"));
    let text = text.replace("HERE", "R.device(device_type=1, index=0)");
    let module = parse_script(&text, "program.py").unwrap_or_else(|error| panic!("{error}"));
    let executable = compile(&module, &mut CompileOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    let program = device::program(&executable.jit().unwrap()).unwrap();
    let devices = [(Device::cpu(0), AllocatorKind::Pooled), (Device::new(kind, id), AllocatorKind::Pooled)];
    VirtualMachine::new(&program, &devices).unwrap()
}

fn floats(shape: &[i64], seed: u32) -> Tensor {
    let count = shape.iter().product::<i64>();
    let next = |state: &mut u32| {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (f64::from(*state >> 8) / f64::from(1 << 23) - 1.0) as f32
    };
    let mut state = seed;
    Tensor::from_slice(&(0..count).map(|_| next(&mut state)).collect::<Vec<f32>>(), shape).unwrap()
}

fn truth(value: bool) -> Tensor {
    let tensor = Tensor::zeros(&[], DataType::bool()).unwrap();
    tensor.copy_from_bytes(&[value.into()]).unwrap();
    tensor
}

fn call(vm: &VirtualMachine, args: &[&Tensor]) -> Result<Vec<f32>, Error> {
    let views: Vec<AnyView<'_>> = args.iter().map(|tensor| AnyView::from(*tensor)).collect();
    on_host(&vm.invoke("main", &views)?.to::<Tensor>()?)?.to_vec()
}

fn close(a: &[f32], b: &[f32]) {
    assert_eq!(a.len(), b.len());
    for (index, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() <= 1e-5 * (1.0 + b.abs()), "element {index}: {a} and {b}");
    }
}

/// Convolutions on the second device, the rest here. The weights of the second device are constants of the program.
const RESIDUAL: &str = r#"
@I.ir_module
class Module:
    I.module_global_infos({"vdevice": [I.vdevice("llvm"), DEVICE]})

    @R.function
    def main(x: R.Tensor(("n", 3, 8, 8), "float32"), w: R.Tensor((4, 3, 3, 3), "float32"), v: R.Tensor((4, 4, 3, 3), "float32"), d: R.Tensor((4, 5), "float32")) -> R.Tensor(("n", 5), "float32"):
        with R.dataflow():
            x1 = CROSS(x, THERE)
            w1 = CROSS(w, THERE)
            v1 = CROSS(v, THERE)
            a = R.nn.conv2d(x1, w1, padding=[1, 1])
            a1 = R.nn.relu(R.multiply(a, R.const(0.5, "float32")))
            b = R.nn.conv2d(a1, v1, padding=[1, 1])
            c = R.nn.relu(R.add(a1, b))
            e = CROSS(c, HERE)
            f = R.mean(e, axis=[2, 3])
            g = R.nn.softmax(R.matmul(f, d))
            R.output(g)
        return g
"#;

fn residual_inputs() -> [Tensor; 4] {
    [floats(&[2, 3, 8, 8], 1), floats(&[4, 3, 3, 3], 2), floats(&[4, 4, 3, 3], 3), floats(&[4, 5], 4)]
}

fn on(inputs: &[Tensor], there: Device, moved: &[usize]) -> Vec<Tensor> {
    let place = |(index, tensor): (usize, &Tensor)| match moved.contains(&index) {
        true => copy_tensor(tensor, there).unwrap(),
        false => tensor.clone(),
    };
    inputs.iter().enumerate().map(place).collect()
}

/// Without a word about devices.
fn here(text: &str) -> VirtualMachine {
    let hint = without_crossings(text);
    machine(&hint, r#"I.vdevice("llvm", 0)"#)
}

/// A program with its crossings left out.
fn without_crossings(text: &str) -> String {
    let listed = text.lines().filter(|line| !line.contains("module_global_infos"));
    let plain = |line: &str| match line.split_once("CROSS(") {
        Some((before, rest)) => format!("{before}{}", rest.split(',').next().unwrap_or_default()),
        None => line.to_string(),
    };
    listed.map(plain).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_network_split_over_two_devices_computes_the_same() {
    let _alone = device::alone();
    let inputs = residual_inputs();
    let views: Vec<&Tensor> = inputs.iter().collect();
    let expected = call(&here(RESIDUAL), &views).unwrap();
    let text = RESIDUAL.replace("CROSS", "R.hint_on_device");
    for second in [HANDLES, SECOND_CPU] {
        let vm = machine(&text, second);
        let there = vm.devices()[1];
        // A hint says where a parameter is to be: x, w and v are given there.
        let placed = on(&inputs, there, &[0, 1, 2]);
        let views: Vec<&Tensor> = placed.iter().collect();
        call(&vm, &views).unwrap();
        let (found, counts) = copies(|| call(&vm, &views).unwrap());
        close(&found, &expected);
        if second == HANDLES {
            // One value crosses, back to the host; the constant is there since the machine was made.
            assert_eq!((counts.in_, counts.out, counts.within), (0, 1, 0));
        }
    }
    release_cached();
    assert_eq!(device::counts().alive, 0);
}

#[test]
fn inputs_that_are_given_here_are_copied_where_the_program_says() {
    let _alone = device::alone();
    let inputs = residual_inputs();
    let views: Vec<&Tensor> = inputs.iter().collect();
    let expected = call(&here(RESIDUAL), &views).unwrap();
    // A hint on this side first: the parameters stay here, and the next hint is a crossing.
    let text = RESIDUAL
        .replace("CROSS", "R.hint_on_device")
        .replace("R.hint_on_device(x, THERE)", "R.hint_on_device(R.hint_on_device(x, HERE), THERE)")
        .replace("R.hint_on_device(w, THERE)", "R.hint_on_device(R.hint_on_device(w, HERE), THERE)")
        .replace("R.hint_on_device(v, THERE)", "R.hint_on_device(R.hint_on_device(v, HERE), THERE)");
    let vm = machine(&text, HANDLES);
    let (found, counts) = copies(|| call(&vm, &views).unwrap());
    close(&found, &expected);
    assert_eq!((counts.in_, counts.out, counts.within), (3, 1, 0));
    drop(vm);
    release_cached();
    assert_eq!(device::counts().alive, 0);
}

/// Each branch is on another device, and one value is used on both.
const BRANCHES: &str = r#"
@I.ir_module
class Module:
    I.module_global_infos({"vdevice": [I.vdevice("llvm"), DEVICE]})

    @R.function(private=True)
    def twice(x: R.Tensor((4, 4), "float32")) -> R.Tensor((4, 4), "float32"):
        y = R.add(x, x)
        return y

    @R.function
    def main(x: R.Tensor((4, 4), "float32"), cond: R.Tensor((), "bool")) -> R.Tensor((4, 4), "float32"):
        cls = Module
        here = CROSS(x, HERE)
        a = R.exp(here)
        if cond:
            there = CROSS(a, THERE)
            again = CROSS(a, THERE)
            b = cls.twice(there)
            c = R.multiply(b, again)
            r = CROSS(c, HERE)
        else:
            r = R.sqrt(a)
        s = R.add(r, a)
        return s
"#;

#[test]
fn branches_and_functions_run_where_they_are_put() {
    let _alone = device::alone();
    let x = floats(&[4, 4], 7);
    let text = BRANCHES.replace("CROSS", "R.hint_on_device");
    for second in [HANDLES, SECOND_CPU] {
        let vm = machine(&text, second);
        for (cond, crossings) in [(true, (1, 1, 0)), (false, (0, 0, 0))] {
            let cond = truth(cond);
            let expected = call(&here(BRANCHES), &[&x, &cond]).unwrap();
            let (found, counts) = copies(|| call(&vm, &[&x, &cond]).unwrap());
            close(&found, &expected);
            if second == HANDLES {
                assert_eq!((counts.in_, counts.out, counts.within), crossings);
            }
        }
    }
    release_cached();
    assert_eq!(device::counts().alive, 0);
}

/// Enough operators on both sides that storage is reused: never that of another device.
#[test]
fn storage_is_not_shared_between_devices() {
    let _alone = device::alone();
    let mut lines = Vec::new();
    let mut last = "x".to_string();
    for (side, place) in ["HERE", "THERE", "HERE"].into_iter().enumerate() {
        lines.push(format!("            h{side} = CROSS({last}, {place})"));
        last = format!("h{side}");
        for step in 0..4 {
            // Sorting is no part of fusion, so each step has a tensor of its own.
            let name = format!("v{side}_{step}");
            lines.push(format!("            {name} = R.cumsum({last}, axis=1)"));
            last = name;
        }
    }
    let text = format!(
        "@I.ir_module\nclass Module:\n    I.module_global_infos({{\"vdevice\": [I.vdevice(\"llvm\"), DEVICE]}})\n\n    @R.function\n    \
         def main(x: R.Tensor((3, 5), \"float32\")):\n        with R.dataflow():\n{}\n            R.output({last})\n        return {last}\n",
        lines.join("\n")
    );
    let x = floats(&[3, 5], 9);
    let expected = call(&here(&text), &[&x]).unwrap();
    for second in [HANDLES, SECOND_CPU] {
        close(&call(&machine(&text.replace("CROSS", "R.hint_on_device"), second), &[&x]).unwrap(), &expected);
    }
    release_cached();
    assert_eq!(device::counts().alive, 0);
}

#[test]
fn faults_of_a_device_are_errors_and_leave_nothing() {
    let _alone = device::alone();
    let text = BRANCHES.replace("CROSS", "R.hint_on_device");
    let vm = machine(&text, HANDLES);
    let (x, cond) = (floats(&[4, 4], 7), truth(true));
    let expected = call(&vm, &[&x, &cond]).unwrap();
    for what in [Fails::Allocation, Fails::Copy] {
        release_cached();
        device::fail(what, Some(0));
        let error = call(&vm, &[&x, &cond]).unwrap_err();
        assert!(error.message().contains("this was asked for"), "{error}");
        device::fail(what, None);
        // The machine goes on.
        assert_eq!(call(&vm, &[&x, &cond]).unwrap(), expected);
    }
    drop(vm);
    release_cached();
    assert_eq!(device::counts().alive, 0);
}

/// A kind that has no driver here, as DLPack numbers it.
const METAL: i32 = 8;

#[test]
fn tensors_lie_behind_handles() {
    let _alone = device::alone();
    let there = device::device(2);
    let x = floats(&[6, 4], 3);
    let far = copy_tensor(&x, there).unwrap();
    assert!(far.to_bytes().is_err() && far.as_bytes().is_err());
    // A view's offset stays apart from the handle.
    let view = view_at(&far, &[2, 4], x.dtype(), 32).unwrap();
    assert_eq!((view.dl_tensor().data, view.dl_tensor().byte_offset), (far.dl_tensor().data, 32));
    assert_eq!(on_host(&view).unwrap().to_vec::<f32>().unwrap(), x.to_vec::<f32>().unwrap()[8..16]);
    // Between two of the kind, and through the host to none.
    let other = copy_tensor(&view, device::device(1)).unwrap();
    assert_eq!(on_host(&other).unwrap().to_vec::<f32>().unwrap(), x.to_vec::<f32>().unwrap()[8..16]);
    let absent = empty_tensor(&[2], x.dtype(), device::device(99)).unwrap_err();
    assert!(absent.message().contains("there is no device ext_dev:99"), "{absent}");
    let unknown = empty_tensor(&[2], x.dtype(), Device::new(METAL, 0)).unwrap_err();
    assert!(unknown.message().contains("no driver for devices of that kind"), "{unknown}");
    drop((far, view, other));
    assert_eq!(device::counts().alive, 0);
}

#[test]
fn a_device_is_entered_once() {
    device::enter();
    let twice = relaxide_runtime::device::register_device(device::TYPE, &Nothing).unwrap_err();
    assert!(twice.message().contains("ext_dev have an implementation"), "{twice}");
    assert!(relaxide_runtime::device::register_device(Device::CPU, &Nothing).is_err());
}

struct Nothing;

impl relaxide_runtime::device::DeviceApi for Nothing {
    fn exists(&self, _: Device) -> bool {
        false
    }

    fn allocate(&self, _: Device, _: usize) -> Result<*mut std::ffi::c_void, Error> {
        Err(Error::new("MemoryError", "nothing"))
    }

    unsafe fn free(&self, _: Device, _: *mut std::ffi::c_void, _: usize) {}

    unsafe fn copy(
        &self,
        _: relaxide_runtime::device::Memory,
        _: relaxide_runtime::device::Memory,
        _: usize,
        _: relaxide_runtime::device::Stream,
    ) -> Result<(), Error> {
        Ok(())
    }

    unsafe fn copy_from_host(
        &self,
        _: *const std::ffi::c_void,
        _: relaxide_runtime::device::Memory,
        _: usize,
        _: relaxide_runtime::device::Stream,
    ) -> Result<(), Error> {
        Ok(())
    }

    unsafe fn copy_to_host(
        &self,
        _: relaxide_runtime::device::Memory,
        _: *mut std::ffi::c_void,
        _: usize,
        _: relaxide_runtime::device::Stream,
    ) -> Result<(), Error> {
        Ok(())
    }

    fn attribute(&self, _: Device, _: relaxide_runtime::device::Attribute) -> Result<Option<Any>, Error> {
        Ok(None)
    }

    fn synchronize(&self, _: Device, _: relaxide_runtime::device::Stream) -> Result<(), Error> {
        Ok(())
    }
}
