//! What the machine's instructions cost: `cargo bench -p relaxide-relay-vm`.
//!
//! Each program repeats an instruction, or a pair of them, in a loop of the machine's own; the loop's cost is measured alone
//! and taken off. Times are of the processor where the system tells them, so others may use the machine.

use std::time::Instant;

use relaxide_ffi::{Any, AnyView, Tensor};
use relaxide_relay_vm::{Executable, Instruction as I, VirtualMachine, VmFunction, verify};

const COUNT: usize = 1000;
const CALLS: usize = 2000;

/// Nanoseconds since some moment: those that this thread was on a processor, or those of the clock.
fn now() -> f64 {
    static BEGIN: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let used = told.and_then(|text| text.split_whitespace().next()?.parse().ok());
    used.unwrap_or_else(|| BEGIN.elapsed().as_nanos() as f64)
}

fn machine(functions: Vec<VmFunction>, primitives: Vec<String>) -> VirtualMachine {
    let globals = functions.iter().map(|f| f.name.clone()).collect();
    let executable = Executable { globals, functions, primitives, ..Executable::default() };
    VirtualMachine::on_cpu(verify(executable).expect("the program is valid"), None).expect("the machine is made")
}

fn function(name: &str, params: usize, registers: i64, instructions: Vec<I>) -> VmFunction {
    let params: Vec<String> = (0..params).map(|i| format!("p{i}")).collect();
    let param_devices = vec![0; params.len()];
    VmFunction { name: name.into(), params, register_file_size: registers, instructions, param_devices }
}

/// Nanoseconds of one repetition of `body`, which has a tensor in register 0 and a tuple of it in register 1.
fn cost(body: &[I]) -> f64 {
    let mut code = vec![I::AllocAdt { tag: 3, dst: 1, fields: vec![0, 0] }];
    for _ in 0..COUNT {
        code.extend(body.iter().cloned());
    }
    code.push(I::Ret { result: 0 });
    let vm = machine(vec![function("main", 1, 8, code)], Vec::new());
    let x = Tensor::from_slice(&[1i64], &[]).expect("a scalar");
    let args = [AnyView::from(&x)];
    let mut best = f64::MAX;
    for _ in 0..5 {
        let start = now();
        for _ in 0..CALLS {
            vm.run(&args).expect("the program runs");
        }
        best = best.min((now() - start) / (CALLS * COUNT) as f64);
    }
    best
}

/// Nanoseconds of one level of recursion that is not in the last place.
fn recursion() -> f64 {
    let code = vec![
        I::GetTag { object: 0, dst: 1 },
        I::LoadConsti { value: 1, dst: 2 },
        I::If { test: 1, target: 2, then: 1, other: 4 },
        I::GetField { object: 0, index: 0, dst: 3 },
        I::Invoke { func: 0, dst: 4, args: vec![3] },
        I::Goto { offset: 2 },
        I::Move { from: 0, dst: 4 },
        I::AllocAdt { tag: 0, dst: 5, fields: vec![4] },
        I::Ret { result: 4 },
    ];
    let vm = machine(vec![function("main", 1, 6, code)], Vec::new());
    const DEPTH: usize = 1000;
    let nil = Any::from(relaxide_relay_vm::Adt::new(0, Vec::new()));
    let list = (0..DEPTH).fold(nil, |list, _| relaxide_relay_vm::Adt::new(1, vec![list]).into());
    let start = now();
    for _ in 0..CALLS {
        vm.run(&[list.as_view()]).expect("the program runs");
    }
    (now() - start) / (CALLS * DEPTH) as f64
}

fn main() {
    let rows: Vec<(&str, f64)> = vec![
        ("Move", cost(&[I::Move { from: 0, dst: 2 }])),
        ("KillRegister", cost(&[I::KillRegister { dst: 2 }])),
        ("LoadConsti", cost(&[I::LoadConsti { value: 1, dst: 2 }])),
        ("GetTag", cost(&[I::GetTag { object: 1, dst: 2 }])),
        ("GetField", cost(&[I::GetField { object: 1, index: 0, dst: 2 }])),
        ("Goto", cost(&[I::Goto { offset: 1 }])),
        (
            "LoadConsti, If",
            cost(&[I::LoadConsti { value: 1, dst: 2 }, I::If { test: 2, target: 2, then: 1, other: 1 }]),
        ),
        ("AllocADT of two fields, and its end", cost(&[I::AllocAdt { tag: 1, dst: 2, fields: vec![0, 0] }])),
        ("AllocClosure, and its end", cost(&[I::AllocClosure { func: 0, dst: 2, free: vec![0] }])),
        ("a level of recursion", recursion()),
    ];
    for (name, nanoseconds) in rows {
        println!("{name:<40} {nanoseconds:>7.1} ns");
    }
}
