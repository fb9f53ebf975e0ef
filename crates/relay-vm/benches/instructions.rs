//! What the machine's instructions cost: `cargo bench -p relaxide-relay-vm`.
//!
//! Each program repeats an instruction, or a pair of them, in a loop of the machine's own; the loop's cost is measured alone
//! and taken off. Times are of the processor where the system tells them, so others may use the machine.

use std::time::Instant;

use relaxide_ffi::{Any, AnyView, Tensor};
use relaxide_relay_vm::{Adt, Executable, Instruction as I, VirtualMachine, VmFunction, verify};

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

/// Nanoseconds of an element of a list, in a function of a list that calls itself.
fn per_element(code: Vec<I>, params: usize, length: usize) -> f64 {
    let vm = machine(vec![function("main", params, 8, code)], Vec::new());
    let nil = || Any::from(Adt::new(0, Vec::new()));
    let x = Any::from(Tensor::from_slice(&[1i64], &[]).expect("a scalar"));
    let list = (0..length).fold(nil(), |list, _| Adt::new(1, vec![x.clone(), list]).into());
    let made = nil();
    let args = [list.as_view(), made.as_view()];
    let mut best = f64::MAX;
    let runs = (200_000 / length).max(1);
    for _ in 0..20 {
        let start = now();
        for _ in 0..runs {
            vm.run(&args[..params]).expect("the program runs");
        }
        best = best.min((now() - start) / (runs * length) as f64);
    }
    best
}

/// The code of a function that looks at a list and has its first two fields in registers 4 and 5.
fn on_list(mut with_fields: Vec<I>, result: i64) -> Vec<I> {
    let mut code = vec![
        I::GetTag { object: 0, dst: 2 },
        I::LoadConsti { value: 1, dst: 3 },
        I::If { test: 2, target: 3, then: 1, other: with_fields.len() as i64 + 4 },
        I::GetField { object: 0, index: 0, dst: 4 },
        I::GetField { object: 0, index: 1, dst: 5 },
    ];
    code.append(&mut with_fields);
    code.extend([I::Ret { result: 6 }, I::Move { from: result, dst: 7 }, I::Ret { result: 7 }]);
    code
}

/// A list walked along, reversed, and copied by a recursion that is not in the last place.
fn lists(length: usize) -> [f64; 3] {
    let kills = |registers: &[i64]| registers.iter().map(|dst| I::KillRegister { dst: *dst }).collect::<Vec<I>>();
    let walk = [kills(&[0, 1]), vec![I::Invoke { func: 0, dst: 6, args: vec![5, 4] }]].concat();
    let made = I::AllocAdt { tag: 1, dst: 7, fields: vec![4, 1] };
    let reverse =
        [kills(&[0]), vec![made], kills(&[1, 4]), vec![I::Invoke { func: 0, dst: 6, args: vec![5, 7] }]].concat();
    let called = vec![I::Invoke { func: 0, dst: 7, args: vec![5] }];
    let made = vec![I::AllocAdt { tag: 1, dst: 6, fields: vec![4, 7] }];
    let deep = [kills(&[0]), called, kills(&[5]), made, kills(&[4, 7])].concat();
    [
        per_element(on_list(walk, 1), 2, length),
        per_element(on_list(reverse, 1), 2, length),
        per_element(on_list(deep, 0), 1, length),
    ]
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
    ];
    for (name, nanoseconds) in rows {
        println!("{name:<40} {nanoseconds:>7.1} ns");
    }
    for length in [1_000, 100_000] {
        let [walk, reverse, deep] = lists(length);
        println!(
            "an element of a list of {length}: walked {walk:.1} ns, reversed {reverse:.1}, copied by recursion {deep:.1}"
        );
        println!("  a constructor {:.1} ns, a level of recursion {:.1}", reverse - walk, deep - reverse);
    }
}
