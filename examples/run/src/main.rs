//! Runs `main` of a compiled model on ones, and prints its results.
//!
//! ```console
//! $ cargo run --release --manifest-path examples/run/Cargo.toml -- model.so 2x32:float32 1:int64
//! ```

use relaxide::VirtualMachine;
use relaxide::ffi::{Any, AnyView, Array, Tensor};

type Failure = Box<dyn std::error::Error>;

/// A tensor of ones, of `SHAPE:float32` or `SHAPE:int64`; `:int64` is one without dimensions.
fn ones(text: &str) -> Result<Tensor, Failure> {
    let (shape, dtype) = text.split_once(':').ok_or("an input is SHAPE:TYPE, such as 2x32:float32")?;
    let shape = shape.split('x').filter(|dim| !dim.is_empty()).map(str::parse).collect::<Result<Vec<i64>, _>>()?;
    let count = usize::try_from(shape.iter().product::<i64>())?;
    match dtype {
        "float32" => Ok(Tensor::from_slice(&vec![1f32; count], &shape)?),
        "int64" => Ok(Tensor::from_slice(&vec![1i64; count], &shape)?),
        other => Err(format!("this example makes no tensors of {other}").into()),
    }
}

fn print(value: &Any) -> Result<(), Failure> {
    if let Ok(tensor) = value.to::<Tensor>() {
        println!("{:?} {:?}", tensor.shape(), tensor.to_vec::<f32>()?);
        return Ok(());
    }
    value.to::<Array>()?.iter().try_for_each(print)
}

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (path, inputs) = words.split_first().ok_or("usage: run-model MODEL.so SHAPE:TYPE…")?;
    let machine = VirtualMachine::of(&relaxide::load_module(path.as_ref())?)?;
    let inputs = inputs.iter().map(|text| ones(text)).collect::<Result<Vec<_>, _>>()?;
    let args: Vec<AnyView<'_>> = inputs.iter().map(Into::into).collect();
    print(&machine.invoke("main", &args)?)
}
