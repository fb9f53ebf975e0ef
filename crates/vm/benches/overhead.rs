//! What an instruction costs, on the programs that `bench/vm_programs.py` makes.
//!
//! `cargo bench -p relaxide-vm --bench overhead -- DIRECTORY [NAME]`. `bench/vm_overhead.py` compares the same programs with TVM.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use relaxide_ffi::{Any, AnyView, Device, Function, Tensor, register_global};
use relaxide_runtime::memory::AllocatorKind;
use relaxide_vm::{VirtualMachine, load_module};

/// How long each row runs.
const SECONDS: f64 = 0.3;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with("--"));
    let directory = words.next().ok_or("name the directory that bench/vm_programs.py has written")?;
    let only = words.next();
    register_global("bench.callback", Function::new(|args| Ok(args.first().map_or(Any::none(), AnyView::to_owned))))?;
    let rows = std::fs::read_to_string(Path::new(&directory).join("programs.json"))?;
    let rows: serde_json::Value = serde_json::from_str(&rows)?;
    println!("{:12} {:>9}", "program", "ns");
    for row in rows.as_array().ok_or("the rows are a list")? {
        let name = row["name"].as_str().ok_or("a row has a name")?;
        if only.as_deref().is_none_or(|only| only == name) {
            let repeats = row["repeats"].as_f64().ok_or("a row has repeats")?;
            let args = row["args"].as_array().ok_or("a row has arguments")?;
            let args = args.iter().map(argument).collect::<Result<Vec<_>, _>>()?;
            measure(&directory, name, repeats, &args)?;
        }
    }
    Ok(())
}

fn argument(value: &serde_json::Value) -> Result<Any, Box<dyn Error>> {
    let shape: Vec<i64> = serde_json::from_value(value[1].clone())?;
    Ok(match value[0].as_str() {
        Some("int32") => Tensor::from_slice(&[i32::try_from(value[2].as_i64().unwrap_or(0))?], &shape)?.into(),
        _ => Tensor::from_slice(&vec![1.0_f32; shape.iter().product::<i64>() as usize], &shape)?.into(),
    })
}

fn measure(directory: &str, name: &str, repeats: f64, args: &[Any]) -> Result<(), Box<dyn Error>> {
    let module = load_module(Path::new(directory).join(format!("{name}.so")))?;
    let start = Instant::now();
    let vm = VirtualMachine::new(&module, &[(Device::cpu(0), AllocatorKind::Pooled)])?;
    let made = start.elapsed();
    let main = vm.function("main").ok_or("there is no main")?;
    let views: Vec<AnyView<'_>> = args.iter().map(Any::as_view).collect();
    for _ in 0..3 {
        main.call(&views)?;
    }
    let (mut fastest, begin) = (f64::INFINITY, Instant::now());
    let batch = (20_000.0 / repeats).ceil();
    while begin.elapsed().as_secs_f64() < SECONDS {
        let start = Instant::now();
        for _ in 0..batch as usize {
            main.call(&views)?;
        }
        fastest = fastest.min(start.elapsed().as_secs_f64() * 1e9 / (batch * repeats));
    }
    println!("{name:12} {fastest:9.1}  machine made in {:.3} ms", made.as_secs_f64() * 1e3);
    Ok(())
}
