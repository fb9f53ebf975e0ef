//! Bytes as an executable of the Relay VM: reading, listing, verifying and writing them back must end, without a panic. What
//! is verified runs, within limits: it ends in a result or an error.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use relaxide_ffi::{AnyView, Tensor};
use relaxide_relay_vm::{Executable, Limits, VirtualMachine, verify};

fuzz_target!(|data: &[u8]| {
    let Ok(executable) = Executable::from_bytes(data) else { return };
    let _ = executable.bytecode();
    let _ = executable.stats();
    if let Ok(bytes) = executable.to_bytes() {
        assert!(Executable::from_bytes(&bytes).is_ok(), "what was written is readable");
    }
    let Ok(verified) = verify(executable) else { return };
    let functions: Vec<(String, usize)> = verified.functions.iter().map(|f| (f.name.clone(), f.params.len())).collect();
    let Ok(machine) = VirtualMachine::on_cpu(verified, None) else { return };
    machine.set_limits(Limits {
        instructions: Some(10_000),
        memory: Some(1 << 24),
        time: Some(Duration::from_secs(1)),
        depth: Some(1_000),
    });
    let Ok(tensor) = Tensor::from_slice(&[1i32], &[]) else { return };
    for (name, params) in functions.into_iter().take(4) {
        let args = vec![AnyView::from(&tensor); params.min(16)];
        let _ = machine.invoke(&name, &args);
    }
});
