//! BindParams: parameters of a function become constants.
//!
//! Weights that are known before compilation need not be passed at every call, and constants fold:
//!
//! ```text
//! def main(x: R.Tensor(("n", 4)), w: R.Tensor((4, 2))):        def main(x: R.Tensor(("n", 4))):
//!     gv = R.matmul(x, w)                                          gv = R.matmul(x, metadata["ir.GenericConst"][0])
//! ```
//!
//! On the command line a tensor is given as numbers in lists, `BindParams(main, {w: [[1.0, 2.0]]})`, and has the parameter's
//! element type. Symbolic dimensions of its type are those of the value, in the whole function. A value must have the element type and the rank of its parameter, and its dimensions where those are numbers.
//! **Differs from TVM**, which takes a value of any rank and shape, and types what uses it anew.

use std::collections::HashMap;

use relaxide_ffi::{Any, DataType, Ref, Tensor};
use relaxide_ir::pass::{ParamKind, PassError, PassInfo, PassParam, PassResult};
use relaxide_ir::prim::VarMap;
use relaxide_ir::{AttrValue, BaseFunc, IRModule, Type};

use crate::constant::from_floats;
use crate::functor::VarReplacer;
use crate::rewrite::in_function;
use crate::shape::bind_dims;
use crate::transform::bind_symbols::SymbolMutator;
use crate::*;

const NAME: &str = "BindParams";

pub(super) const PASS: PassInfo =
    PassInfo::new(NAME, "Parameters of a function become constants.", |module, _, args| {
        let Some(AttrValue::Map(values)) = args.get("params") else { return Ok(module) };
        let function = args.str("func_name").unwrap_or_default();
        let params = module.get_as::<Function>(function).map(|f| f.params.clone()).unwrap_or_default();
        let tensor = |(name, value): (&String, &AttrValue)| {
            let param = params.iter().find(|p| p.name == *name);
            let dtype = param.and_then(|p| p.ty.as_tensor()).map(|t| t.dtype);
            let made = tensor_of(value, dtype.filter(|d| !d.is_void()).unwrap_or(DataType::float(32)));
            let no_tensor = || PassError::arguments(NAME, format!("the value of {name} is no tensor"));
            Ok((name.clone(), made.ok_or_else(no_tensor)?))
        };
        let values = values.iter().map(tensor).collect::<Result<Vec<_>, PassError>>()?;
        bind_params(module, function, &values)
    })
    .params(&[
        PassParam::required("func_name", ParamKind::Str, "The function."),
        PassParam::required("params", ParamKind::Map, "Tensors, or numbers in lists, by the names of parameters."),
    ]);

/// A tensor, or one of numbers in nested lists, which are of the parameter's dtype.
fn tensor_of(value: &AttrValue, dtype: DataType) -> Option<Tensor> {
    if let AttrValue::Object(object) = value {
        return Any::from(object.clone()).to::<Tensor>().ok();
    }
    let (mut shape, mut numbers) = (Vec::new(), Vec::new());
    let mut first = value;
    while let AttrValue::List(items) = first {
        shape.push(items.len() as i64);
        let Some(inner) = items.first() else { break };
        first = inner;
    }
    flatten(value, &shape, &mut numbers)?;
    from_floats(&numbers, &shape, dtype)
}

/// The numbers of nested lists of these lengths, in order.
fn flatten(value: &AttrValue, shape: &[i64], numbers: &mut Vec<f64>) -> Option<()> {
    match (value, shape) {
        (AttrValue::List(items), [len, inner @ ..]) if items.len() as i64 == *len => {
            items.iter().try_for_each(|item| flatten(item, inner, numbers))?;
        }
        (AttrValue::Int(number), []) => numbers.push(*number as f64),
        (AttrValue::Float(number), []) => numbers.push(*number),
        (AttrValue::Bool(truth), []) => numbers.push(f64::from(u8::from(*truth))),
        _ => return None,
    }
    Some(())
}

/// Binds parameters of a function by name.
pub fn bind_params(mut module: IRModule, function: &str, values: &[(String, Tensor)]) -> PassResult {
    if values.is_empty() {
        return Ok(module);
    }
    let Some(f) = module.get_as::<Function>(function) else {
        return Err(PassError::arguments(NAME, format!("the module has no Relax function {function:?}")));
    };
    let (mut replace, mut dims) = (VarReplacer(HashMap::new()), VarMap::new());
    for (name, value) in values {
        let Some(param) = f.params.iter().find(|p| p.name == *name) else {
            let known: Vec<&str> = f.params.iter().map(|p| p.name.as_str()).collect();
            return Err(in_function(NAME, function, format!("no parameter {name:?}; there are: {}", known.join(", "))));
        };
        fits(value, &param.ty).map_err(|why| in_function(NAME, function, format!("parameter {name}: {why}")))?;
        let value = Expr::constant(value.clone());
        bind_dims(&param.ty, &value.ty(), &mut dims);
        replace.0.insert(AnyVar::Var(param.clone()), value);
    }
    let body = replace.mutate_seq(&f.body);
    let params = f.params.iter().filter(|p| !replace.0.contains_key(&AnyVar::Var((*p).clone()))).cloned().collect();
    let bound = Ref::new(Function { params, body, ..Function::clone(&f) });
    module.functions.insert(function.to_string(), BaseFunc::from(SymbolMutator::new(dims).function(&bound)));
    Ok(module)
}

fn fits(value: &Tensor, ty: &Type) -> Result<(), String> {
    let wrong = || {
        Err(format!(
            "a tensor of shape {:?} and dtype {} does not fit {}",
            value.shape(),
            value.dtype(),
            display::type_text(ty)
        ))
    };
    let Some(tensor) = ty.as_tensor() else { return wrong() };
    if (!tensor.dtype.is_void() && tensor.dtype != value.dtype())
        || (tensor.ndim >= 0 && tensor.ndim != value.ndim() as i64)
    {
        return wrong();
    }
    let dims = tensor.shape.iter().flatten();
    let differs = dims.zip(value.shape()).any(|(dim, have)| dim.as_int().is_some_and(|want| want != *have));
    if differs { wrong() } else { Ok(()) }
}
