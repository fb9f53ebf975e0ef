//! Programs of Relay over several devices: what the interpreter computes, and as many copies as there are crossings.
//!
//! The second device is [`relaxide_testkit::device`], whose memory no kernel of the CPU reaches. In the programs `HERE` is the CPU and
//! `THERE` the other.

use relaxide::relay::devices::mentions_devices;
use relaxide::relay::prelude::parse_with_prelude;
use relaxide::relay::text::{PrintOptions, Source, print_module};
use relaxide::relay::{DeviceConfig, Interpreter, Module, VirtualDevice, plan_devices, scalar};
use relaxide::relay_vm::{Adt, Instruction, MachineOptions, VirtualMachine};
use relaxide::{CompileOptions, FALLBACK_DEVICE, compile_relay};
use relaxide_ffi::{Any, AnyView, Device, Tensor};
use relaxide_runtime::device::{copy_tensor, on_host};
use relaxide_runtime::memory::AllocatorKind;
use relaxide_testkit::device::{self, copies};

/// A program, where it is wherever nothing is said, and the copies of one call: to the device, to the host.
struct Case {
    name: &'static str,
    text: &'static str,
    default_there: bool,
    copies: (usize, usize),
}

const M: &str = "Tensor[(5, 7), float32]";

const CASES: &[Case] = &[
    Case {
        name: "operands that are somewhere take what reads them along",
        text: "def @main(%a: M, %b: M) -> M { subtract(on_device(add(%a, %b), HERE), multiply(%a, %b)) }",
        default_there: true,
        copies: (0, 0),
    },
    Case {
        name: "operands that are elsewhere",
        text: "def @main(%a: M, %b: M, %c: M, %d: M) -> M {
          subtract(on_device(add(%a, %b), HERE), add(%c, %d)) }",
        default_there: true,
        copies: (1, 0),
    },
    Case {
        name: "both operands",
        text: "def @main(%a: M, %b: M, %c: M, %d: M) -> M {
          %0 = on_device(add(%a, %b), HERE); %1 = on_device(add(%c, %d), HERE); subtract(%0, %1) }",
        default_there: true,
        copies: (2, 0),
    },
    Case {
        name: "a result is where it was made",
        text: "def @main(%a: M, %b: M) -> M { on_device(add(%a, %b), THERE) }",
        default_there: false,
        copies: (0, 0),
    },
    Case {
        name: "a value used twice is copied once",
        text: "def @main(%a: M, %b: M, %c: M) -> M {
          %0 = add(%a, %b);
          %1 = on_device(%0, THERE); %2 = on_device(%0, THERE);
          add(multiply(%1, %c), subtract(%2, %c)) }",
        default_there: false,
        copies: (0, 1),
    },
    Case {
        name: "neighbours on one device cross nothing",
        text: "def @main(%a: M, %b: M, %c: M) -> M {
          add(on_device(exp(on_device(negative(on_device(add(%a, %b), THERE)), THERE)), THERE), %c) }",
        default_there: false,
        copies: (0, 1),
    },
    Case {
        name: "what is said of a binding holds for the name",
        text: "def @main(%a: M, %b: M, %c: M) -> M {
          let %x = on_device(add(%a, %b), THERE);
          let %y = on_device(tanh(%x), THERE);
          add(on_device(multiply(%x, %y), THERE), %c) }",
        default_there: false,
        copies: (0, 1),
    },
    Case {
        name: "a copy that is written",
        text: "def @main(%a: M, %b: M) -> M {
          let %x = device_copy(add(%a, %b), src_virtual_device=HOST, dst_virtual_device=EXT);
          let %y = tanh(%x);
          device_copy(%y, src_virtual_device=EXT, dst_virtual_device=HOST) }",
        default_there: false,
        copies: (1, 1),
    },
    Case {
        name: "a condition stays with the host",
        text: "def @main(%n: int32, %a: M, %b: M) -> M {
          if (less(%n, 3)) { add(%a, %b) } else { subtract(%a, %b) } }",
        default_there: true,
        copies: (0, 0),
    },
    Case {
        name: "a condition that is computed elsewhere is read from there",
        text: "def @main(%a: M, %b: M) -> M {
          if (less(sum(on_device(add(%a, %b), THERE, constrain_result=True)), 0f)) { %a } else { %b } }",
        default_there: true,
        copies: (0, 1),
    },
    Case {
        name: "branches give on one device",
        text: "def @main(%n: int32, %a: M, %b: M, %c: M) -> M {
          let %x = if (less(%n, 3)) { on_device(add(%a, %b), THERE) } else { on_device(subtract(%a, %b), THERE) };
          add(%x, %c) }",
        default_there: false,
        copies: (0, 1),
    },
    Case {
        name: "fields of a tuple are together",
        text: "def @main(%a: M, %b: M, %c: M) -> M {
          let %t = (on_device(add(%a, %b), HERE), %c); multiply(%t.0, %t.1) }",
        default_there: true,
        copies: (1, 0),
    },
    Case {
        name: "a tuple crosses field by field",
        text: "def @main(%a: M, %b: M, %c: M) -> M {
          let %t = on_device((add(%a, %b), exp(%a)), THERE, constrain_result=True);
          let %u = on_device(%t, THERE);
          let %s: (M, M) = on_device(%u, THERE);
          %0 = on_device(%s, THERE); add(multiply(%0.0, %0.1), %c) }",
        default_there: false,
        copies: (0, 2),
    },
    Case {
        name: "a function is where its arguments are",
        text: "def @f(%x: M) -> M { exp(%x) }
        def @main(%a: M, %b: M) -> M { add(on_device(@f(on_device(%a, THERE, constrain_body=False, constrain_result=True)), THERE), %b) }",
        default_there: false,
        copies: (1, 1),
    },
    Case {
        name: "a closure takes what it captured with it",
        text: "def @main(%a: M, %b: M, %c: M) -> M {
          let %f = fn (%x: M) -> M { on_device(add(%x, %a), THERE) }; add(on_device(%f(%b), THERE), %c) }",
        default_there: false,
        copies: (0, 1),
    },
    Case {
        name: "a function as an argument",
        text: "def @twice(%f: fn (M) -> M, %x: M) -> M { %f(%f(%x)) }
        def @main(%a: M, %b: M) -> M {
          add(on_device(@twice(fn (%x: M) -> M { on_device(tanh(%x), THERE) }, %a), THERE), %b) }",
        default_there: false,
        copies: (0, 1),
    },
    Case {
        name: "a loop counts on the host",
        text: "def @loop(%i: int32, %x: M) -> M { if (%i == 0) { %x } else { @loop(%i - 1, tanh(%x)) } }
        def @main(%n: int32, %a: M) -> M { @loop(%n, add(%a, %a)) }",
        default_there: true,
        copies: (0, 0),
    },
    Case {
        name: "data are with what they hold",
        text: "def @main(%a: M, %b: M) -> M {
          let %l = @map(fn (%x: M) -> M { on_device(exp(%x), THERE) }, Cons(%a, Cons(%b, Nil)));
          on_device(@foldl(fn (%x: M, %y: M) -> M { add(%x, %y) }, negative(%a), %l), THERE, constrain_result=True) }",
        default_there: false,
        copies: (0, 0),
    },
    Case {
        name: "references are with what they hold",
        text: "def @main(%a: M, %b: M) -> M {
          let %r = ref(on_device(add(%a, %b), THERE));
          let %u = ref_write(%r, on_device(exp(ref_read(%r)), THERE));
          on_device(ref_read(%r), THERE, constrain_result=True) }",
        default_there: false,
        copies: (0, 0),
    },
    Case {
        name: "constants are loaded to where they are used, and not at a call",
        text: "def @main(%a: M, %b: M) -> M {
          add(on_device(multiply(add(%a, 2f), 3f), THERE), multiply(%b, 3f)) }",
        default_there: false,
        copies: (0, 1),
    },
    Case {
        name: "shapes are the host's",
        text: "def @main(%a: Tensor[(?, 7), float32], %b: M) -> Tensor[(?, 7), float32] {
          let %x = on_device(concatenate((%a, exp(%a))), THERE);
          on_device(concatenate((%x, tanh(%x))), THERE) }",
        default_there: false,
        copies: (0, 0),
    },
    Case {
        name: "a shape that is data crosses to the host",
        text: "def @main(%a: M, %s: Tensor[(2), int64]) -> Tensor[(?, ?), float32] {
          dyn.reshape(exp(%a), on_device(%s, HERE), newshape=[]) }",
        default_there: true,
        copies: (1, 1),
    },
    Case {
        name: "a network",
        text: "def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(4, 3, 3, 3), float32], %d: Tensor[(5, 4), float32])
            -> Tensor[(1, 5), float32] {
          %0 = on_device(nn.relu(nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3])), THERE);
          %1 = nn.batch_flatten(nn.global_avg_pool2d(%0));
          nn.softmax(nn.dense(%1, %d, units=5)) }",
        default_there: false,
        copies: (0, 1),
    },
];

fn there() -> Device {
    device::device(0)
}

/// The text with devices: attributes of an older form, a kind's number, and those of the newer one in the metadata.
fn text_of(case: &Case) -> String {
    let body = case.text.replace(": M", &format!(": {M}")).replace("-> M", &format!("-> {M}"));
    let body = body.replace("(M, M)", &format!("({M}, {M})")).replace("(M)", &format!("({M})"));
    let body = body.replace("THERE", "virtual_device=12").replace("HERE", "virtual_device=1");
    let body = body.replace("HOST", "meta[VirtualDevice][0]").replace("EXT", "meta[VirtualDevice][1]");
    let device = |kind: i64| {
        format!(
            r#"{{"type_key":"VirtualDevice","attrs":{{"device_type_int":"{kind}","memory_scope":"5","target":"0","virtual_device_id":"0"}}}}"#
        )
    };
    let meta = format!(
        r#"{{"root":1,"nodes":[{{"type_key":""}},{{"type_key":"Map","keys":["VirtualDevice"],"data":[2]}},{{"type_key":"Array","data":[3,4]}},{},{},{{"type_key":"runtime.String"}}],"b64ndarrays":[],"attrs":{{"tvm_version":"0.16.0"}}}}"#,
        device(1),
        device(12)
    );
    format!("#[version = \"0.0.5\"]\n{body}\n#[metadata]\n{meta}\n")
}

fn module_of(case: &Case) -> Module {
    parse_with_prelude(&Source::new(case.name, text_of(case))).unwrap_or_else(|d| panic!("{}: {d}", case.name))
}

fn machine(case: &Case, module: &Module) -> VirtualMachine {
    let mut options = CompileOptions::default();
    if case.default_there {
        options.context.config.set(FALLBACK_DEVICE, i64::from(device::TYPE)).unwrap();
    }
    let executable = compile_relay(module, &mut options).unwrap_or_else(|e| panic!("{}: {e}", case.name));
    let program = device::relay_program(&executable.jit().unwrap()).unwrap();
    let devices = vec![(Device::cpu(0), AllocatorKind::Pooled), (there(), AllocatorKind::Pooled)];
    VirtualMachine::of_module(&program, MachineOptions { devices, ..MachineOptions::default() })
        .unwrap_or_else(|e| panic!("{}: {e}", case.name))
}

/// Arguments for the parameters' types, on the host.
fn inputs(module: &Module) -> Vec<Tensor> {
    let main = &module.functions["main"];
    let made = main.params.iter().enumerate().map(|(i, param)| {
        let relaxide::relay::Type::Tensor(ty) = param.annotation.clone().unwrap() else { panic!("a tensor") };
        let dims: Vec<i64> = ty.shape.iter().map(|d| if *d < 0 { 5 } else { *d }).collect();
        let count = dims.iter().product::<i64>() as usize;
        if ty.dtype.to_string() == "int32" {
            return Tensor::from_slice(&[2i32], &[]).unwrap();
        }
        if ty.dtype.to_string() == "int64" {
            return Tensor::from_slice(&[7i64, 5], &[2]).unwrap();
        }
        let values: Vec<f32> = (0..count).map(|k| ((k * 7 + i * 13) % 19) as f32 / 19.0 - 0.4).collect();
        Tensor::from_slice(&values, &dims).unwrap()
    });
    made.collect()
}

fn numbers(value: &Any) -> Vec<f64> {
    if let Some(adt) = value.downcast_ref::<Adt>() {
        return adt.fields.iter().flat_map(numbers).collect();
    }
    let tensor = on_host(value.as_tensor().unwrap()).unwrap();
    let float = |n: &scalar::Number| match n {
        scalar::Number::Float(v) => *v,
        scalar::Number::Int(v) => *v as f64,
        other => panic!("{other:?}"),
    };
    scalar::numbers(&tensor).unwrap().iter().map(float).collect()
}

#[test]
fn programs_over_two_devices_compute_the_same_with_the_fewest_copies() {
    let _alone = device::alone();
    let mut failures = Vec::new();
    for case in CASES {
        let module = module_of(case);
        let vm = machine(case, &module);
        let given = inputs(&module);
        let views: Vec<AnyView<'_>> = given.iter().map(AnyView::from).collect();
        let expected = Interpreter::new(&module).run("main", &views).unwrap_or_else(|e| panic!("{}: {e}", case.name));
        let main = vm.executable().functions.iter().find(|f| f.name == "main").unwrap();
        let devices = &vm.executable().virtual_devices;
        let placed: Vec<Tensor> = given
            .iter()
            .zip(&main.param_devices)
            .map(|(tensor, device)| match devices[*device as usize].device_type {
                1 => tensor.clone(),
                _ => copy_tensor(tensor, there()).unwrap(),
            })
            .collect();
        let views: Vec<AnyView<'_>> = placed.iter().map(AnyView::from).collect();
        if let Err(e) = vm.run(&views) {
            failures.push(format!("{}: {e}", case.name));
            continue;
        }
        let (found, counts) = copies(|| vm.run(&views).unwrap());
        let (found, expected) = (numbers(&found), numbers(&expected));
        let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-4 * (1.0 + b.abs());
        if found.len() != expected.len() || !found.iter().zip(&expected).all(close) {
            failures.push(format!("{}: {found:?} is not {expected:?}", case.name));
        }
        if (counts.in_, counts.out) != case.copies || counts.within != 0 {
            let config = DeviceConfig {
                default: if case.default_there { VirtualDevice::new(12, 0) } else { VirtualDevice::cpu() },
                ..DeviceConfig::default()
            };
            let planned = print_module(&plan_devices(&module, &config).unwrap(), PrintOptions::default());
            let code = vm.executable().bytecode().unwrap_or_default();
            let main = planned.split("def @main").nth(1).unwrap_or_default().split("#[meta").next().unwrap_or_default();
            failures.push(format!("{}: {counts:?} and not {:?}\n{main}\n{code}", case.name, case.copies));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn planning_again_changes_nothing_and_no_word_of_devices_needs_no_plan() {
    for case in CASES {
        let module = module_of(case);
        let config = DeviceConfig {
            default: if case.default_there { VirtualDevice::new(12, 0) } else { VirtualDevice::cpu() },
            ..DeviceConfig::default()
        };
        let show = |module: &Module| print_module(module, PrintOptions::default());
        let once = plan_devices(&module, &config).unwrap_or_else(|e| panic!("{}: {e}", case.name));
        assert!(mentions_devices(&once), "{}", case.name);
        // The text holds the devices, and is read back.
        let text = show(&once);
        let read = parse_with_prelude(&Source::new("again", text.clone())).unwrap_or_else(|d| panic!("{text}\n{d}"));
        for module in [&once, &read] {
            // With the other default: what was planned says everything itself.
            let other = DeviceConfig { default: VirtualDevice::cpu(), ..DeviceConfig::default() };
            assert_eq!(show(&plan_devices(module, &other).unwrap()), text, "{}", case.name);
        }
    }
}

#[test]
fn a_value_on_two_devices_is_refused_with_both_places() {
    let refused = |text: &str| {
        let case = Case { name: "refused", text: "", default_there: false, copies: (0, 0) };
        let text = text.replace(": M", &format!(": {M}")).replace("-> M", &format!("-> {M}"));
        let text = format!("#[version = \"0.0.5\"]\n{text}");
        let module = parse_with_prelude(&Source::new(case.name, text)).unwrap();
        plan_devices(&module, &DeviceConfig::default()).unwrap_err().to_string()
    };
    let message = refused(
        "def @main(%a: M, %b: M) -> M {
  let %x = on_device(exp(%a), virtual_device=12, constrain_result=True);
  let %y = on_device(exp(%b), virtual_device=1, constrain_result=True);
  add(%x, %y) }",
    );
    assert!(message.contains("ext_dev") && message.contains("cpu"), "{message}");
    for place in ["refused:3:", "refused:4:", "refused:5:"] {
        assert!(message.contains(place), "{message}");
    }
    let message = refused(
        "def @main(%a: M) -> M {
  %0 = on_device(Cons(exp(%a), Nil), virtual_device=12);
  exp(@hd(%0)) }",
    );
    assert!(message.contains("List"), "{message}");
}

#[test]
fn a_program_for_one_device_names_no_other() {
    let case = &CASES[1];
    let text = case.text.replace(": M", &format!(": {M}")).replace("-> M", &format!("-> {M}"));
    let text = text.replace("on_device(add(%a, %b), HERE)", "add(%a, %b)");
    let module = parse_with_prelude(&Source::new("one", format!("#[version = \"0.0.5\"]\n{text}"))).unwrap();
    assert!(!mentions_devices(&module));
    let executable = compile_relay(&module, &mut CompileOptions::default()).unwrap();
    let vm = VirtualMachine::of_module(&executable.jit().unwrap(), MachineOptions::default()).unwrap();
    assert_eq!(vm.executable().virtual_devices.len(), 1);
    let copies = |i: &Instruction| matches!(i, Instruction::DeviceCopy { .. });
    assert!(!vm.executable().functions.iter().any(|f| f.instructions.iter().any(copies)));
}
