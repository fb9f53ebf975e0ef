//! What a model takes and returns, as its file says it.
//!
//! The compiler writes types of parameters and the result behind the sections of an executable, in JSON with types as TVMScript says
//! them: `R.Tuple(R.Tensor((n, 10), dtype="float32"), R.Tensor((n,), dtype="int64"))`. Read here is as much of that as a server needs;
//! what is neither a tensor nor a tuple of tensors is an output of which nothing is known.

use std::collections::HashMap;

use relaxide_ffi::DataType;
use relaxide_vm::executable::TRAILER_MAGIC;
use serde_json::Value;

use crate::{Datatype, Error, Tensor};

/// How the type of a tensor of texts begins.
const TEXTS: &str = "texts(";

/// What a function takes and returns.
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    /// The inputs.
    pub inputs: Vec<Port>,
    /// The outputs; nothing where the file does not say how many there are.
    pub outputs: Option<Vec<Port>>,
    /// The least and the greatest length of dimensions that are limited.
    ranges: Vec<(String, i64, Option<i64>)>,
}

/// An input or an output.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// Its element type, where it is known.
    pub datatype: Option<Datatype>,
    /// Its dimensions, where their number is known.
    pub dims: Option<Vec<Dim>>,
}

/// A dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dim {
    /// Of that length.
    Fixed(i64),
    /// Of any length, which is one wherever the name stands.
    Named(String),
    /// Of a length that is computed, as its text; an empty one where the file does not say how.
    Computed(String),
}

impl Port {
    /// The shape as metadata has it: -1 for what is open.
    pub fn shape(&self) -> Vec<i64> {
        let length = |dim: &Dim| if let Dim::Fixed(length) = dim { *length } else { -1 };
        self.dims.as_deref().map_or_else(|| vec![-1], |dims| dims.iter().map(length).collect())
    }

    /// The names among its dimensions.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.dims.iter().flatten().filter_map(|dim| if let Dim::Named(name) = dim { Some(name.as_str()) } else { None })
    }
}

impl Signature {
    /// The signature of a function in the bytes behind an executable.
    pub fn of_trailer(trailer: &[u8], function: &str) -> Result<Signature, Error> {
        let silent = || {
            Error::invalid(
                "the file does not say what types its inputs have: compile the model with Relaxide to serve it",
            )
        };
        let text = trailer.strip_prefix(TRAILER_MAGIC).ok_or_else(silent)?;
        let head: Value = serde_json::from_slice(text).map_err(|_| silent())?;
        let functions = head["functions"].as_array().ok_or_else(silent)?;
        let found = functions.iter().find(|f| f["name"] == function).ok_or_else(|| {
            let names: Vec<&str> = functions.iter().filter_map(|f| f["name"].as_str()).collect();
            Error::invalid(format!("there is no function {function:?} to serve; the file has: {}", names.join(", ")))
        })?;
        let params = found["params"].as_array().ok_or_else(silent)?;
        let inputs = params.iter().map(input).collect::<Result<Vec<_>, _>>()?;
        let names: Vec<&str> = found["outputs"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let result = found["result"].as_str().unwrap_or_default();
        let ranges = found["ranges"].as_array().into_iter().flatten();
        let range =
            |range: &Value| Some((range["name"].as_str()?.to_string(), range["min"].as_i64()?, range["max"].as_i64()));
        Ok(Signature { inputs, outputs: outputs(result, &names), ranges: ranges.filter_map(range).collect() })
    }

    /// The name of an output.
    pub fn output_name(&self, index: usize) -> String {
        let known = self.outputs.as_ref().and_then(|outputs| outputs.get(index));
        known.map_or_else(|| format!("output_{index}"), |port| port.name.clone())
    }

    /// Fails if tensors, in the order of the inputs, are not what the function takes.
    pub fn check(&self, tensors: &[Tensor]) -> Result<(), Error> {
        let mut lengths: HashMap<&str, (i64, &str)> = HashMap::new();
        for (port, tensor) in self.inputs.iter().zip(tensors) {
            let name = &port.name;
            if let Some(wanted) = port.datatype.filter(|wanted| *wanted != tensor.datatype()) {
                let (wanted, found) = (wanted.name(), tensor.datatype().name());
                return Err(Error::invalid(format!("input {name:?} is of {found}; the model takes {wanted}")));
            }
            let Some(dims) = &port.dims else { continue };
            let shape = tensor.shape();
            let wanted = port.shape();
            if shape.len() != dims.len() {
                return Err(Error::invalid(format!("input {name:?} has shape {shape:?}; the model takes {wanted:?}")));
            }
            for (dim, length) in dims.iter().zip(shape) {
                match dim {
                    Dim::Fixed(fixed) if fixed != length => {
                        let message = format!("input {name:?} has shape {shape:?}; the model takes {wanted:?}");
                        return Err(Error::invalid(message));
                    }
                    Dim::Named(dim) => match lengths.insert(dim, (*length, name)) {
                        Some((other, whose)) if other != *length => {
                            return Err(Error::invalid(format!(
                                "input {name:?} has length {length} where input {whose:?} has {other}; both are `{dim}`"
                            )));
                        }
                        _ => {}
                    },
                    Dim::Fixed(_) | Dim::Computed(_) => {}
                }
            }
        }
        for (dim, min, max) in &self.ranges {
            let Some((length, whose)) = lengths.get(dim.as_str()) else { continue };
            if length < min || max.is_some_and(|max| *length > max) {
                let most = max.map(|max| format!(" to {max}")).unwrap_or_default();
                let message = format!("`{dim}` of input {whose:?} is {length}; the model was compiled for {min}{most}");
                return Err(Error::invalid(message));
            }
        }
        Ok(())
    }

    /// The name of the dimension that is the first of every input and output, where there is one: calls can be joined along it.
    pub fn batch_dim(&self) -> Option<&str> {
        let first = |port: &'_ Port| match port.dims.as_deref()?.first()? {
            Dim::Named(name) => Some(name.clone()),
            _ => None,
        };
        let outputs = self.outputs.as_ref().filter(|outputs| !outputs.is_empty())?;
        let Dim::Named(name) = self.inputs.first()?.dims.as_deref()?.first()? else { return None };
        let ports = self.inputs.iter().chain(outputs);
        let is_first_only = |port: &Port| {
            let rest = port.dims.as_deref().unwrap_or_default().iter().skip(1);
            rest.into_iter().all(|dim| !matches!(dim, Dim::Named(other) if other == name))
        };
        ports.clone().all(|port| first(port).as_ref() == Some(name) && is_first_only(port)).then_some(name)
    }

    /// The greatest length of a dimension, where there is one.
    pub fn most(&self, dim: &str) -> Option<i64> {
        self.ranges.iter().find(|(name, ..)| name == dim)?.2
    }
}

fn input(value: &Value) -> Result<Port, Error> {
    let name = value["name"].as_str().unwrap_or_default().to_string();
    let ty = value["type"].as_str().unwrap_or_default();
    let port = match ty.strip_prefix(TEXTS).and_then(|rest| rest.strip_suffix(')')) {
        Some(dims) => {
            let dims = parts(dims).into_iter().map(dim).collect();
            Some(Port { name: name.clone(), datatype: Some(Datatype::Bytes), dims: Some(dims) })
        }
        None => tensor(ty, &name)?,
    };
    port.ok_or_else(|| Error::invalid(format!("input {name:?} is of type {ty}; only models of tensors are served")))
}

/// The outputs of a result; nothing where it is no tensor and no tuple of tensors.
fn outputs(result: &str, names: &[&str]) -> Option<Vec<Port>> {
    let mut types = Vec::new();
    flatten(result, 0, &mut types)?;
    let name = |i: usize| match names.len() == types.len() {
        true => names[i].to_string(),
        false => format!("output_{i}"),
    };
    types.iter().enumerate().map(|(i, ty)| tensor(ty, &name(i)).ok().flatten()).collect()
}

/// How deep tuples are looked into.
const MAX_DEPTH: usize = 16;

fn flatten<'a>(ty: &'a str, depth: usize, types: &mut Vec<&'a str>) -> Option<()> {
    if ty == "R.Tuple" {
        return Some(());
    }
    match ty.strip_prefix("R.Tuple(").and_then(|rest| rest.strip_suffix(')')) {
        Some(_) if depth == MAX_DEPTH => None,
        Some(fields) => parts(fields).into_iter().try_for_each(|field| flatten(field, depth + 1, types)),
        None => {
            types.push(ty);
            Some(())
        }
    }
}

/// A tensor's type; an error where its elements have no name in the protocol.
fn tensor(ty: &str, name: &str) -> Result<Option<Port>, Error> {
    if ty == "R.Tensor" {
        return Ok(Some(Port { name: name.to_string(), datatype: None, dims: None }));
    }
    let Some(inside) = ty.strip_prefix("R.Tensor(").and_then(|rest| rest.strip_suffix(')')) else { return Ok(None) };
    let mut port = Port { name: name.to_string(), datatype: None, dims: None };
    for part in parts(inside) {
        if let Some(dims) = part.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
            port.dims = Some(parts(dims).into_iter().map(dim).collect());
        } else if let Some(text) = part.strip_prefix("dtype=") {
            let text = text.trim_matches('"');
            let dtype = text.parse::<DataType>().ok().and_then(Datatype::of_dtype);
            port.datatype = Some(dtype.ok_or_else(|| {
                Error::invalid(format!("{name:?} has elements of {text}, which the protocol has no name for"))
            })?);
        } else if let Some(rank) = part.strip_prefix("ndim=").and_then(|n| n.parse::<usize>().ok()) {
            port.dims = Some(vec![Dim::Computed(String::new()); rank.min(64)]);
        }
    }
    Ok(Some(port))
}

fn dim(text: &str) -> Dim {
    let text = text.trim_matches('"');
    match text.parse() {
        Ok(length) => Dim::Fixed(length),
        Err(_) if text.chars().all(|c| c.is_alphanumeric() || c == '_') => Dim::Named(text.to_string()),
        Err(_) => Dim::Computed(text.to_string()),
    }
}

/// What stands between commas that are in no parentheses and no quotes.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut quoted, mut begin) = (0usize, false, 0);
    let mut parts = Vec::new();
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(text[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[begin..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn signature(params: &[(&str, &str)], result: &str, names: &[&str]) -> Result<Signature, Error> {
        let params: Vec<Value> =
            params.iter().map(|(name, ty)| serde_json::json!({ "name": name, "type": ty })).collect();
        let ranges = serde_json::json!([{ "name": "n", "min": 1, "max": 8 }]);
        let function = serde_json::json!({ "name": "main", "params": params, "result": result, "outputs": names, "ranges": ranges });
        let head = serde_json::json!({ "functions": [function] });
        let trailer = [&TRAILER_MAGIC[..], head.to_string().as_bytes()].concat();
        Signature::of_trailer(&trailer, "main")
    }

    const X: (&str, &str) = ("x", "R.Tensor((n, 3), dtype=\"float32\")");

    #[test]
    fn types_are_read() {
        let result = "R.Tuple(R.Tensor((n, m * 2), dtype=\"int64\"), R.Tuple(R.Tensor((n,), dtype=\"bool\")))";
        let found = signature(&[X, ("t", "texts(n, 2)")], result, &["a", "b"]).unwrap();
        assert_eq!(found.inputs[0].shape(), [-1, 3]);
        assert_eq!(found.inputs[1].datatype, Some(Datatype::Bytes));
        let outputs = found.outputs.clone().unwrap();
        let shapes: Vec<_> = outputs.iter().map(|o| (o.name.as_str(), o.datatype.unwrap(), o.shape())).collect();
        assert_eq!(shapes, [("a", Datatype::Int64, vec![-1, -1]), ("b", Datatype::Bool, vec![-1])]);
        assert_eq!(found.batch_dim(), Some("n"));
        assert_eq!(found.most("n"), Some(8));
        assert_eq!(signature(&[X], "R.Any", &[]).unwrap().outputs, None);
        assert_eq!(signature(&[X], "R.Tensor(ndim=2)", &[]).unwrap().outputs.unwrap()[0].shape(), [-1, -1]);
    }

    #[test]
    fn calls_are_joined_only_where_every_tensor_begins_with_the_dimension() {
        let batch = |params: &[(&str, &str)], result: &str| {
            signature(params, result, &[]).unwrap().batch_dim().map(str::to_string)
        };
        let row = "R.Tensor((n, 3), dtype=\"float32\")";
        assert_eq!(batch(&[X], row).as_deref(), Some("n"));
        assert_eq!(batch(&[X], "R.Tensor((3,), dtype=\"float32\")"), None);
        assert_eq!(batch(&[X, ("y", "R.Tensor((3,), dtype=\"float32\")")], row), None);
        assert_eq!(batch(&[X, ("y", "R.Tensor((m, 3), dtype=\"float32\")")], row), None);
        // Each row is compared with all others: no rows of a batch.
        assert_eq!(batch(&[X], "R.Tensor((n, n), dtype=\"float32\")"), None);
        assert_eq!(batch(&[X], "R.Any"), None);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let found = signature(&[X, ("y", "R.Tensor((n,), dtype=\"int64\")")], "R.Any", &[]).unwrap();
        let check = |x: (Datatype, &[i64]), y: (Datatype, &[i64])| {
            let made = |(datatype, shape): (Datatype, &[i64])| {
                let size = shape.iter().product::<i64>() as usize * datatype.size().unwrap();
                Tensor::new("", datatype, shape.to_vec(), vec![0; size].into()).unwrap()
            };
            found.check(&[made(x), made(y)]).map_err(|error| error.message)
        };
        let (f, i) = (Datatype::Fp32, Datatype::Int64);
        assert_eq!(check((f, &[2, 3]), (i, &[2])), Ok(()));
        assert_eq!(check((i, &[2, 3]), (i, &[2])).unwrap_err(), "input \"x\" is of INT64; the model takes FP32");
        assert!(check((f, &[2, 4]), (i, &[2])).unwrap_err().contains("the model takes [-1, 3]"));
        assert!(check((f, &[2, 3, 1]), (i, &[2])).is_err());
        assert!(check((f, &[2, 3]), (i, &[4])).unwrap_err().contains("both are `n`"));
        assert!(check((f, &[9, 3]), (i, &[9])).unwrap_err().contains("compiled for 1 to 8"));
    }

    #[test]
    fn files_that_say_nothing_are_refused() {
        assert!(Signature::of_trailer(b"", "main").is_err());
        assert!(Signature::of_trailer(b"RLXSIGN1{", "main").is_err());
        assert!(signature(&[("f", "R.Callable")], "R.Any", &[]).is_err());
        assert!(signature(&[("f", "R.Tensor((2,), dtype=\"float8_e5m2\")")], "R.Any", &[]).is_err());
    }
}
