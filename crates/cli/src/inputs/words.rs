//! Inputs that are texts: a JSON list, a file of one, or a file of lines.

use std::collections::HashMap;
use std::path::Path;

use relaxide::ffi::{Any, Array};
use relaxide::vm::TextTensor;
use relaxide::{DimSpec, ParamSignature};
use serde_json::Value;

use super::length;
use crate::error::CliError;

const HELP: &str = r#"write a list such as '["a", "b"]', or name a file that ends in .json or .txt (a text a line)"#;

/// The tensor that `what` stands for.
pub fn read(
    what: &str,
    param: &ParamSignature,
    dims: &[DimSpec],
    lengths: &HashMap<String, i64>,
) -> Result<Any, CliError> {
    let path = Path::new(what);
    let file = || std::fs::read_to_string(path).map_err(CliError::file(path));
    let texts = match path.extension().and_then(|ending| ending.to_str()) {
        _ if what.trim_start().starts_with(['[', '"']) => listed(what, param)?,
        Some("json") => listed(&file()?, param)?,
        Some("txt") => file()?.lines().map(str::to_string).collect(),
        _ => return Err(CliError::usage(format!("{what} gives no texts for input {}", param.name), HELP)),
    };
    tensor(texts, param, dims, lengths)
}

/// The texts of a JSON list, or of lists in lists.
fn listed(text: &str, param: &ParamSignature) -> Result<Vec<String>, CliError> {
    let wrong = |why: &str| CliError::usage(format!("input {}: {why}", param.name), HELP);
    let value: Value = serde_json::from_str(text).map_err(|e| wrong(&format!("it is no JSON: {e}")))?;
    let mut texts = Vec::new();
    let mut rest = vec![value];
    while let Some(value) = rest.pop() {
        match value {
            Value::Array(items) => rest.extend(items.into_iter().rev()),
            Value::String(text) => texts.push(text),
            other => return Err(wrong(&format!("{other} is no text"))),
        }
    }
    Ok(texts)
}

/// Texts in the shape of an input, of which one open dimension follows from their count.
fn tensor(
    texts: Vec<String>,
    param: &ParamSignature,
    dims: &[DimSpec],
    lengths: &HashMap<String, i64>,
) -> Result<Any, CliError> {
    let count = texts.len() as i64;
    let dims: Vec<Option<i64>> = dims.iter().map(|dim| length(dim, lengths)).collect();
    let known = dims.iter().flatten().try_fold(1i64, |n, dim| n.checked_mul(*dim)).unwrap_or(0);
    let open = dims.iter().filter(|dim| dim.is_none()).count();
    if !(open == 0 && known == count || open == 1 && known > 0 && count % known == 0) {
        let message = format!("{count} texts do not fill input {} of type {}", param.name, param.ty);
        return Err(CliError::usage(message, format!("give as many as it has elements, or --shape {}=…", param.name)));
    }
    let shape: Vec<i64> = dims.iter().map(|dim| dim.unwrap_or_else(|| count / known)).collect();
    let texts = Array::from_vec(texts.into_iter().map(Any::from).collect());
    Ok(Any::from(TextTensor::new(&shape, texts)?))
}

/// Letters for an input of which nothing is said.
pub fn letters(shape: &[i64], mut below: impl FnMut(u32) -> u32) -> Result<Any, CliError> {
    let count = shape.iter().try_fold(1usize, |n, dim| n.checked_mul(usize::try_from(*dim).ok()?)).unwrap_or(0);
    let texts = (0..count).map(|_| Any::from(char::from(b'a' + below(26) as u8).to_string())).collect();
    Ok(Any::from(TextTensor::new(shape, Array::from_vec(texts))?))
}
