//! `relaxide run`.

use std::path::{Path, PathBuf};

use relaxide::ffi::{Any, Array, Tensor};

use crate::args::RunArgs;
use crate::error::CliError;
use crate::inputs::Call;
use crate::npy;

/// Calls a function once and prints or writes what it returns.
pub fn run(args: &RunArgs) -> Result<(), CliError> {
    let call = Call::prepare(&args.file, &args.inputs)?;
    let result = call.invoke()?;
    let mut tensors = Vec::new();
    collect(&result, &mut tensors);
    match &args.output {
        None => tensors.iter().enumerate().try_for_each(|(i, tensor)| print(i, tensor)),
        Some(prefix) => write(prefix, &tensors),
    }
}

fn collect(value: &Any, tensors: &mut Vec<Tensor>) {
    if let Ok(tensor) = value.to::<Tensor>() {
        tensors.push(tensor);
    } else if let Ok(array) = value.to::<Array>() {
        array.iter().for_each(|item| collect(item, tensors));
    } else {
        println!("{value:?}");
    }
}

fn print(index: usize, tensor: &Tensor) -> Result<(), CliError> {
    let values = npy::to_f64(tensor)?;
    let (mut low, mut high, mut sum) = (f64::INFINITY, f64::NEG_INFINITY, 0.0);
    for v in &values {
        low = low.min(*v);
        high = high.max(*v);
        sum += v;
    }
    let mean = if values.is_empty() { 0.0 } else { sum / values.len() as f64 };
    println!("output {index}: {:?} {}  min {low:.6} max {high:.6} mean {mean:.6}", tensor.shape(), tensor.dtype());
    let head: Vec<String> = values.iter().take(8).map(|v| format!("{v:.6}")).collect();
    println!("  [{}{}]", head.join(", "), if values.len() > 8 { ", …" } else { "" });
    Ok(())
}

fn write(prefix: &Path, tensors: &[Tensor]) -> Result<(), CliError> {
    for (i, tensor) in tensors.iter().enumerate() {
        let name = if tensors.len() == 1 { ".npy".to_string() } else { format!(".{i}.npy") };
        let mut path = prefix.as_os_str().to_owned();
        path.push(name);
        let path = PathBuf::from(path);
        npy::write(&path, tensor)?;
        println!("wrote {}: {:?} {}", path.display(), tensor.shape(), tensor.dtype());
    }
    Ok(())
}
