//! What it takes to get a program of 10,000 instructions ready: reading, verifying, making a machine.
//!
//! `cargo bench -p relaxide-vm --bench build`. Each row is the fastest of many turns, in microseconds.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use relaxide_ffi::{DataType, Device, Shape};
use relaxide_runtime::memory::AllocatorKind;
use relaxide_vm::{Arg, ExecBuilder, Executable, Register, VirtualMachine, verify};

const INSTRUCTIONS: i64 = 10_000;
const TURNS: usize = 100;

fn main() -> Result<(), Box<dyn Error>> {
    for (name, executable) in [("shapes", shapes()?), ("kernels", kernels()?)] {
        let bytes = executable.to_bytes()?;
        println!("{name}: {} instructions, {} bytes", executable.num_instructions(), bytes.len());
        row("read", || Executable::from_bytes(&bytes).map(|_| ()))?;
        let shared = Arc::new(executable.clone());
        row("verify", || verify(Arc::clone(&shared)).map(|_| ()))?;
        let module = executable.into_module();
        row("machine", || VirtualMachine::new(&module, &[(Device::cpu(0), AllocatorKind::Pooled)]).map(|_| ()))?;
    }
    Ok(())
}

fn row<E: Error + 'static>(name: &str, mut body: impl FnMut() -> Result<(), E>) -> Result<(), Box<dyn Error>> {
    let mut fastest = f64::INFINITY;
    for _ in 0..TURNS {
        let start = Instant::now();
        body()?;
        fastest = fastest.min(start.elapsed().as_secs_f64() * 1e6);
    }
    println!("  {name:8} {fastest:9.1} us");
    Ok(())
}

fn reg(number: i64) -> Arg {
    Arg::Register(Register(number))
}

/// Shapes and views in turn, as `bench/vm_programs.py` has them.
fn shapes() -> Result<Executable, Box<dyn Error>> {
    let mut builder = ExecBuilder::new();
    builder.begin_function("main", &["x"])?;
    for step in 0..INSTRUCTIONS / 2 {
        let shape = 1 + step % 8;
        builder.emit_call("vm.builtin.shape_of", &[reg(0)], Register(shape))?;
        builder.emit_call("vm.builtin.reshape", &[reg(0), reg(shape)], Register(9))?;
    }
    builder.emit_ret(Register(0))?;
    builder.end_function()?;
    Ok(builder.get()?)
}

/// Allocation, kernel and end in turn, as compilers emit them.
fn kernels() -> Result<Executable, Box<dyn Error>> {
    let mut builder = ExecBuilder::new();
    let (size, shape) = (builder.constant(Shape::from([64])), builder.constant(Shape::from([4, 4])));
    let (byte, float) = (builder.constant(DataType::uint(8)), builder.constant(DataType::float(32)));
    let scope = builder.constant("global");
    builder.begin_function("main", &["x"])?;
    let mut last = 0;
    for step in 0..INSTRUCTIONS / 5 {
        let (storage, tensor) = (Register(1 + step * 2), Register(2 + step * 2));
        let args = [Arg::Register(Register::VM), size, Arg::Immediate(0), byte, scope];
        builder.emit_call("vm.builtin.alloc_storage", &args, storage)?;
        let args = [Arg::Register(storage), Arg::Immediate(0), shape, float];
        builder.emit_call("vm.builtin.alloc_tensor", &args, tensor)?;
        builder.emit_call("vm.builtin.null_value", &[], storage)?;
        builder.emit_call("vm.builtin.copy", &[reg(last)], Register::VOID)?;
        builder.emit_call("vm.builtin.null_value", &[], Register(last))?;
        last = tensor.0;
    }
    builder.emit_ret(Register(last))?;
    builder.end_function()?;
    Ok(builder.get()?)
}
