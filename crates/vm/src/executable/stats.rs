//! The summary of an executable: its constants and the names of its functions, worded as TVM words it.

use relaxide_ffi::{Any, DataType};

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
        ConstantKind::Str => format!("\"{}\"", value.to::<String>().map_err(|_| unsupported())?),
        ConstantKind::Int => value.to::<i64>().map_err(|_| unsupported())?.to_string(),
        ConstantKind::DataType => value.to::<DataType>().map_err(|_| unsupported())?.to_string(),
        // TVM can store a float and has no words for it here. We have.
        ConstantKind::Float => value.to::<f64>().map_err(|_| unsupported())?.to_string(),
    })
}
