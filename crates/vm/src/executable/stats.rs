//! The summary of an executable: its constants and the names of its functions, worded as TVM words it.

use relaxide_ffi::{Any, DataType, Shape, Tensor};

use super::Executable;
use super::constant::{ConstantKind, UnsupportedConstant};

/// The summary. Fails on a constant that the summary has no words for.
pub fn stats(executable: &Executable) -> Result<String, UnsupportedConstant> {
    let constants: Vec<String> =
        executable.constants.iter().enumerate().map(|(i, value)| describe(i, value)).collect::<Result<_, _>>()?;
    let names: Vec<&str> = executable.functions.iter().map(|f| f.name.as_str()).collect();
    Ok(format!(
        "Relax VM executable statistics:\n  Constant pool (# {}): [{}]\n  Globals (#{}): [{}]\n",
        constants.len(),
        constants.join(", "),
        names.len(),
        names.join(", ")
    ))
}

fn describe(index: usize, value: &Any) -> Result<String, UnsupportedConstant> {
    let unsupported = || UnsupportedConstant::of(index, value);
    Ok(match ConstantKind::of(value).ok_or_else(unsupported)? {
        ConstantKind::Tensor => {
            let tensor = value.to::<Tensor>().map_err(|_| unsupported())?;
            if tensor.shape().is_empty() { "scalar".to_owned() } else { bracketed("[", tensor.shape()) }
        }
        ConstantKind::Shape => {
            let shape = value.to::<Shape>().map_err(|_| unsupported())?;
            bracketed("shapetuple[", &shape)
        }
        ConstantKind::Str => format!("\"{}\"", value.to::<String>().map_err(|_| unsupported())?),
        ConstantKind::Int => value.to::<i64>().map_err(|_| unsupported())?.to_string(),
        ConstantKind::DataType => value.to::<DataType>().map_err(|_| unsupported())?.to_string(),
        // TVM can store a float and has no words for it here. We have.
        ConstantKind::Float => value.to::<f64>().map_err(|_| unsupported())?.to_string(),
    })
}

/// TVM writes `open`, then each number with a comma and a blank behind it, cuts the last two letters off, and closes:
/// of an empty list it therefore loses the end of `open`. Tools compare these texts, so this one does the same.
fn bracketed(open: &str, numbers: &[i64]) -> String {
    let mut out = open.to_owned();
    numbers.iter().for_each(|number| out.push_str(&format!("{number}, ")));
    out.truncate(out.len().saturating_sub(2));
    out + "]"
}
