//! `relaxide inspect --machine`: what schedule rules know of the machine that kernels are made for.

use relaxide::Target;
use relaxide::tir::schedule::Machine;
use serde_json::{Value, json};

/// Bytes as caches are counted.
fn kib(bytes: i64) -> String {
    format!("{} KiB", bytes >> 10)
}

/// The machine of a target, for people.
pub fn text(target: &Target) -> String {
    match Machine::known(target) {
        None => of_others(target),
        Some(machine) if machine.device.is_some() => of_device(target, &machine),
        Some(machine) => of_processor(target, &machine),
    }
}

/// A machine of a sort that is not described here.
fn of_others(target: &Target) -> String {
    let cores = target.num_cores().map_or("not known".to_owned(), |cores| format!("{cores}, which the target says"));
    format!("target   {target}\nvectors  not known\ncaches   not known\nthreads  {cores}")
}

fn of_processor(target: &Target, machine: &Machine) -> String {
    let fma = if machine.fma { "multiply-add in one instruction" } else { "no multiply-add" };
    let threads = match machine.parallel_threshold {
        Some(operations) => format!("{}, from {operations} simple operations on", machine.cores),
        None => "1".to_owned(),
    };
    format!(
        "target   {target}\nvectors  {} bytes, {} registers, {fma}\ncaches   {} first level, {} second level of a core\nthreads  {threads}",
        machine.vector_bytes,
        machine.vector_registers,
        kib(machine.l1),
        kib(machine.l2),
    )
}

fn of_device(target: &Target, machine: &Machine) -> String {
    let limits = machine.device.as_ref();
    let (threads, shared) = limits.map_or((1, 0), |limits| (limits.threads, limits.shared_bytes));
    let access = machine.access_bytes.map_or("an element".to_owned(), |bytes| format!("{bytes} bytes"));
    let has = |has: bool| if has { "yes" } else { "no" };
    format!(
        "target        {target}\nblocks        {threads} threads at most, which share {}\naccesses      {access} of a thread at once\n\
         tensor cores  {}\nshuffles      {}",
        kib(shared),
        has(machine.tensor_cores),
        has(machine.shuffles),
    )
}

/// The machine of a target, for scripts.
pub fn json(target: &Target) -> Value {
    let Some(machine) = Machine::known(target) else {
        return json!({
            "target": target.to_string(), "vector_bytes": null, "vector_registers": null, "fma": null, "l1_bytes": null,
            "l2_bytes": null, "cores": target.num_cores(), "parallel_threshold": null, "device": null,
        });
    };
    let device = machine.device.as_ref().map(|limits| {
        json!({
            "threads_per_block": limits.threads, "shared_bytes_per_block": limits.shared_bytes,
            "access_bytes": machine.access_bytes, "tensor_cores": machine.tensor_cores, "shuffles": machine.shuffles,
        })
    });
    json!({
        "target": target.to_string(), "vector_bytes": machine.vector_bytes, "vector_registers": machine.vector_registers,
        "fma": machine.fma, "l1_bytes": machine.l1, "l2_bytes": machine.l2, "cores": machine.cores,
        "parallel_threshold": machine.parallel_threshold, "device": device,
    })
}
