//! Damaged executables: reading, showing, verifying, writing back and running them ends in an answer or an error.
//!
//! Bytes are changed, which the sums of the code section mostly catch, and programs are changed that are read, written anew and
//! read again, which nothing catches but the verifier and the machine. 4,000 of them; a million under `RELAXIDE_DEEP=1`.

use std::path::PathBuf;
use std::time::Duration;

use relaxide_ffi::{AnyView, Tensor};
use relaxide_relay_vm::{Executable, Instruction, Limits, MachineOptions, VirtualMachine, VmFunction, verify};

const NAMES: [&str; 8] = ["closure", "const", "dense", "dynshape", "if_dyn", "list_sum", "loop", "tuple_match"];

fn bytes(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/relay/{name}.ro.hex"));
    let hex = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let digits: Vec<u32> = hex.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

/// A program that needs no kernels: a list is made, gone through by a call that is not in the last place, and by a closure.
fn without_kernels() -> Vec<u8> {
    use Instruction as I;
    let function = |name: &str, params: &[&str], registers: i64, instructions: Vec<I>| VmFunction {
        name: name.into(),
        params: params.iter().map(|p| p.to_string()).collect(),
        register_file_size: registers,
        instructions,
        param_devices: vec![0; params.len()],
    };
    let main = vec![
        I::AllocAdt { tag: 0, dst: 1, fields: vec![] },
        I::AllocAdt { tag: 1, dst: 2, fields: vec![0, 1] },
        I::AllocAdt { tag: 1, dst: 3, fields: vec![0, 2] },
        I::KillRegister { dst: 2 },
        I::Invoke { func: 1, dst: 4, args: vec![3, 1] },
        I::AllocClosure { func: 1, dst: 5, free: vec![4] },
        I::InvokeClosure { closure: 5, dst: 6, args: vec![3] },
        I::AllocAdt { tag: 0, dst: 7, fields: vec![4, 5, 6] },
        I::Ret { result: 7 },
    ];
    let reversed = vec![
        I::GetTag { object: 0, dst: 2 },
        I::LoadConsti { value: 1, dst: 3 },
        I::If { test: 2, target: 3, then: 1, other: 7 },
        I::GetField { object: 0, index: 0, dst: 4 },
        I::GetField { object: 0, index: 1, dst: 5 },
        I::AllocAdt { tag: 1, dst: 6, fields: vec![4, 1] },
        I::Invoke { func: 1, dst: 7, args: vec![5, 6] },
        I::Move { from: 7, dst: 8 },
        I::Goto { offset: 2 },
        I::Move { from: 1, dst: 8 },
        I::Ret { result: 8 },
    ];
    let functions = vec![function("main", &["x"], 8, main), function("reversed", &["xs", "done"], 9, reversed)];
    let globals = vec!["main".to_string(), "reversed".to_string()];
    Executable { globals, functions, ..Executable::default() }.to_bytes().expect("the program is written")
}

struct Random(fastrand::Rng);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0.usize(..n.max(1))
    }

    /// A number that is likely to be at a border of something.
    fn number(&mut self) -> i64 {
        let near = self.below(9) as i64 - 2;
        [near, near, near, i64::from(i32::MAX) + near, i64::MIN, i64::MAX, 1 << 40, -1][self.below(8)]
    }
}

fn changed_bytes(random: &mut Random, original: &[u8]) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for _ in 0..1 + random.below(3) {
        if bytes.len() < 2 {
            break;
        }
        let at = random.below(bytes.len());
        match random.below(5) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
            2 => drop(bytes.remove(at)),
            3 => bytes.truncate(at.max(1)),
            _ => bytes.insert(at, random.below(256) as u8),
        }
    }
    bytes
}

fn changed_program(random: &mut Random, executable: &mut Executable) {
    for _ in 0..1 + random.below(4) {
        let which = random.below(executable.functions.len());
        let other = random.below(executable.functions.len());
        let from = executable.functions[other].instructions.clone();
        let function = &mut executable.functions[which];
        let at = random.below(function.instructions.len());
        match random.below(8) {
            0 => function.register_file_size = random.number(),
            1 => drop(function.params.pop()),
            2 => function.params.push("more".into()),
            3 if at < function.instructions.len() => drop(function.instructions.remove(at)),
            4 => function.instructions.insert(at, from[random.below(from.len())].clone()),
            5 if !function.param_devices.is_empty() => function.param_devices[0] = random.number(),
            6 => executable.constant_devices.iter_mut().for_each(|device| *device = random.number()),
            _ => {
                if let Some(instruction) = function.instructions.get_mut(at) {
                    changed(random, instruction);
                }
            }
        }
    }
}

fn changed(random: &mut Random, instruction: &mut Instruction) {
    let number = random.number();
    match instruction {
        Instruction::Move { from, dst } => *[from, dst][random.below(2)] = number,
        Instruction::Ret { result } => *result = number,
        Instruction::Invoke { func, dst, args } => match random.below(3) {
            0 => *func = number,
            1 => *dst = number,
            _ => args.push(number),
        },
        Instruction::InvokeClosure { closure, dst, args } => match random.below(3) {
            0 => *closure = number,
            1 => *dst = number,
            _ => args.push(number),
        },
        Instruction::InvokePacked { index, outputs, args } => match random.below(3) {
            0 => *index = number,
            1 => *outputs = number,
            _ => args.push(number),
        },
        Instruction::AllocAdt { tag, dst, fields } => match random.below(3) {
            0 => *tag = number,
            1 => *dst = number,
            _ => fields.push(number),
        },
        Instruction::AllocClosure { func, dst, free } => match random.below(3) {
            0 => *func = number,
            1 => *dst = number,
            _ => free.push(number),
        },
        Instruction::AllocTensor { storage, shape, dst, .. } => match random.below(3) {
            0 => *storage = number,
            1 => *dst = number,
            _ => shape.push(number),
        },
        Instruction::GetField { object, index, dst } => *[object, index, dst][random.below(3)] = number,
        Instruction::If { test, target, then, other } => *[test, target, then, other][random.below(4)] = number,
        Instruction::Goto { offset } => *offset = number,
        Instruction::LoadConst { index, dst, .. } => *[index, dst][random.below(2)] = number,
        Instruction::LoadConsti { value, dst } => *[value, dst][random.below(2)] = number,
        Instruction::GetTag { object, dst } => *[object, dst][random.below(2)] = number,
        other => *other = Instruction::Goto { offset: number },
    }
}

/// Goes through all that is done with an executable. Whether it ran.
fn used(executable: Executable, tensor: &Tensor) -> bool {
    let _ = executable.bytecode();
    let _ = executable.stats();
    // A program that no file holds may be written as one that is refused.
    if let Ok(bytes) = executable.to_bytes()
        && let Ok(again) = Executable::from_bytes(&bytes)
    {
        assert_eq!(again.to_bytes().ok(), Some(bytes), "what is read is written as it was");
    }
    let Ok(verified) = verify(executable) else { return false };
    let functions: Vec<(String, usize)> = verified.functions.iter().map(|f| (f.name.clone(), f.params.len())).collect();
    // The kernels of the samples are not at hand: a call of one is an error.
    let Ok(machine) = VirtualMachine::new(verified, None, MachineOptions::default()) else { return false };
    machine.set_limits(Limits {
        instructions: Some(2_000),
        memory: Some(1 << 20),
        time: Some(Duration::from_secs(1)),
        depth: Some(100),
    });
    for (name, params) in functions.into_iter().take(3) {
        let args = vec![AnyView::from(tensor); params.min(16)];
        let _ = machine.invoke(&name, &args);
    }
    true
}

#[test]
fn damaged_executables_are_refused_or_run_to_an_end() {
    let runs = if std::env::var_os("RELAXIDE_DEEP").is_some() { 1_000_000 } else { 4_000 };
    let samples: Vec<Vec<u8>> = NAMES.iter().map(|name| bytes(name)).collect();
    let own = without_kernels();
    let tensor = Tensor::from_slice(&[1i32], &[]).unwrap();
    let (mut random, mut ran) = (Random(fastrand::Rng::with_seed(0x5eed)), 0usize);
    for run in 0..runs {
        let original = if run % 2 == 0 { &own } else { &samples[run / 2 % samples.len()] };
        let executable = if random.below(2) == 0 {
            let Ok(executable) = Executable::from_bytes(&changed_bytes(&mut random, original)) else { continue };
            executable
        } else {
            let mut executable = Executable::from_bytes(original).unwrap();
            changed_program(&mut random, &mut executable);
            executable
        };
        ran += usize::from(used(executable, &tensor));
    }
    println!("{runs} executables, of which {ran} ran");
    assert!(ran > runs / 50, "only {ran} of {runs} ran");
}
