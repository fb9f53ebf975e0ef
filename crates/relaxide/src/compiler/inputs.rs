//! Whether inputs fit what a function declares, in the words of whoever calls it.
//!
//! The program checks its arguments itself when it runs, in terms of its own code. This check comes before, looks at all inputs
//! together, and says which input is wrong, what it is and what it should be.

use std::collections::HashMap;

use relaxide_ffi::{Any, Tensor};
use relaxide_vm::TextTensor;

use crate::{DimSpec, Error, FunctionSignature, ParamSignature};

/// Checks the arguments of a call. What the signature leaves open, and arguments that are no tensors, are not looked at.
pub fn check_inputs(signature: &FunctionSignature, arguments: &[Any]) -> Result<(), Error> {
    let (given, wanted) = (arguments.len(), signature.params.len());
    if given != wanted {
        let names: Vec<&str> = signature.params.iter().map(|p| p.name.as_str()).collect();
        let message = format!("function {} takes {wanted} inputs, and {given} are given", signature.name);
        return Err(Error::Input { message, help: format!("its inputs are: {}", names.join(", ")) });
    }
    let tensors: Vec<Option<Tensor>> = arguments.iter().map(|argument| argument.to::<Tensor>().ok()).collect();
    let texts = |argument: &Any| argument.downcast_ref::<TextTensor>().map(|texts| texts.shape.to_vec());
    let shape = |(tensor, argument): (&Option<Tensor>, &Any)| match tensor {
        Some(tensor) => Some(tensor.shape().to_vec()),
        None => texts(argument),
    };
    let shapes = tensors.iter().zip(arguments).map(shape);
    let shapes: Vec<_> = shapes.collect();
    for (param, tensor) in signature.params.iter().zip(&tensors) {
        if let (true, Some(tensor)) = (param.is_texts(), tensor) {
            let message = format!("input {} has elements of type {}, not texts", param.name, tensor.dtype());
            return Err(Error::Input { message, help: "give a tensor of texts".into() });
        }
        let (Some(dtype), Some(tensor)) = (param.dtype, tensor) else { continue };
        if tensor.dtype() != dtype {
            let message = format!("input {} has elements of type {}, not {dtype}", param.name, tensor.dtype());
            return Err(Error::Input { message, help: format!("convert it, in NumPy by `.astype(\"{dtype}\")`") });
        }
    }
    dims_of(signature, &shapes).map(drop)
}

/// The lengths of a function's symbolic dimensions, from the shapes of its inputs; `None` stands for an input of unknown shape.
pub fn dims_of(signature: &FunctionSignature, shapes: &[Option<Vec<i64>>]) -> Result<HashMap<String, i64>, Error> {
    let mut dims: HashMap<String, (i64, &str)> = HashMap::new();
    for (param, shape) in signature.params.iter().zip(shapes) {
        let Some(shape) = shape else { continue };
        // A tensor without dimensions has a shape, which is empty; of others nothing is known.
        if param.dims.is_empty() && !param.ty.starts_with("R.Tensor(()") {
            continue;
        }
        if shape.len() != param.dims.len() {
            let message = format!("has {} dimensions, not {}", shape.len(), param.dims.len());
            return Err(misfit(param, shape, &message));
        }
        for (axis, (dim, length)) in param.dims.iter().zip(shape).enumerate() {
            match dim {
                DimSpec::Int(wanted) if wanted != length => {
                    return Err(misfit(param, shape, &format!("has length {length}, not {wanted}, on axis {axis}")));
                }
                DimSpec::Int(_) => {}
                DimSpec::Name(name) if !is_name(name) => {}
                DimSpec::Name(name) => match dims.insert(name.clone(), (*length, &param.name)) {
                    Some((other, whose)) if other != *length => {
                        let message =
                            format!("has length {length} on axis {axis}, but {name} is {other} in input {whose}");
                        return Err(misfit(param, shape, &message));
                    }
                    _ => {}
                },
            }
        }
    }
    let dims: HashMap<String, i64> = dims.into_iter().map(|(name, (length, _))| (name, length)).collect();
    for range in &signature.ranges {
        if let Some(length) = dims.get(&range.name).filter(|length| !range.holds(**length)) {
            let message = format!("{} is {length}, outside of what the model was compiled for: {range}", range.name);
            return Err(Error::Input { message, help: "compile it with a wider range, `--dim NAME=MIN..MAX`".into() });
        }
    }
    Ok(dims)
}

/// Whether it is a variable and not an expression of some.
fn is_name(text: &str) -> bool {
    text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

fn misfit(param: &ParamSignature, shape: &[i64], what: &str) -> Error {
    let comma = |dims: Vec<String>| dims.join(", ");
    let given = comma(shape.iter().map(ToString::to_string).collect());
    let wanted = comma(param.dims.iter().map(ToString::to_string).collect());
    Error::Input {
        message: format!("input {} {what}", param.name),
        help: format!("its shape is ({given}); the function declares ({wanted})"),
    }
}

#[cfg(test)]
mod tests {
    use relaxide_ffi::DataType;

    use super::*;
    use crate::DimRange;

    fn signature() -> FunctionSignature {
        let param = |name: &str, dims: &[&str]| ParamSignature {
            name: name.into(),
            ty: String::new(),
            dtype: Some(DataType::float(32)),
            dims: dims.iter().map(|dim| dim.parse().unwrap()).collect(),
            below: None,
        };
        FunctionSignature {
            name: "main".into(),
            params: vec![param("x", &["n", "3"]), param("y", &["n", "m"])],
            result: String::new(),
            outputs: Vec::new(),
            ranges: vec![DimRange { name: "n".into(), min: 1, max: Some(8) }],
        }
    }

    fn problem(x: &[i64], y: &[i64]) -> String {
        let arguments = [x, y].map(|shape| Any::from(Tensor::zeros(shape, DataType::float(32)).unwrap()));
        check_inputs(&signature(), &arguments).map_or_else(|e| e.to_string(), |()| "fits".into())
    }

    #[test]
    fn what_does_not_fit_is_named() {
        assert_eq!(problem(&[2, 3], &[2, 7]), "fits");
        assert_eq!(problem(&[2, 4], &[2, 7]), "input x has length 4, not 3, on axis 1");
        assert_eq!(problem(&[2], &[2, 7]), "input x has 1 dimensions, not 2");
        assert_eq!(problem(&[2, 3], &[5, 7]), "input y has length 5 on axis 0, but n is 2 in input x");
        assert_eq!(problem(&[9, 3], &[9, 7]), "n is 9, outside of what the model was compiled for: n from 1 to 8");
    }

    #[test]
    fn element_types_and_counts_are_checked() {
        let wrong = Any::from(Tensor::zeros(&[2, 3], DataType::int(64)).unwrap());
        let right = Any::from(Tensor::zeros(&[2, 3], DataType::float(32)).unwrap());
        let error = check_inputs(&signature(), &[wrong, right.clone()]).unwrap_err();
        assert_eq!(error.to_string(), "input x has elements of type int64, not float32");
        assert!(check_inputs(&signature(), &[right]).is_err());
    }
}
