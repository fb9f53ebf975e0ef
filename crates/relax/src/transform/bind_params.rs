//! BindParams: parameters of a function become constants.
//!
//! Weights that are known before compilation need not be passed at every call, and constants fold:
//!
//! ```text
//! def main(x: R.Tensor(("n", 4)), w: R.Tensor((4, 2))):        def main(x: R.Tensor(("n", 4))):
//!     gv = R.matmul(x, w)                                          gv = R.matmul(x, metadata["ir.GenericConst"][0])
//! ```
//!
//! A value must have the element type and the rank of its parameter, and its dimensions where those are numbers.

use std::collections::HashMap;

use relaxide_ffi::{Any, Ref, Tensor};
use relaxide_ir::pass::{ParamKind, PassError, PassInfo, PassParam, PassResult};
use relaxide_ir::{AttrValue, BaseFunc, IRModule, Type};

use crate::functor::VarReplacer;
use crate::rewrite::in_function;
use crate::*;

const NAME: &str = "BindParams";

pub(super) const PASS: PassInfo =
    PassInfo::new(NAME, "Parameters of a function become constants.", |module, _, args| {
        let Some(AttrValue::Map(values)) = args.get("params") else { return Ok(module) };
        let tensor = |(name, value): (&String, &AttrValue)| match value {
            AttrValue::Object(object) => match Any::from(object.clone()).to::<Tensor>() {
                Ok(tensor) => Ok((name.clone(), tensor)),
                Err(_) => Err(PassError::arguments(NAME, format!("the value of {name} is no tensor"))),
            },
            _ => Err(PassError::arguments(NAME, format!("the value of {name} is no tensor"))),
        };
        let values = values.iter().map(tensor).collect::<Result<Vec<_>, _>>()?;
        bind_params(module, args.str("func_name").unwrap_or_default(), &values)
    })
    .params(&[
        PassParam::required("func_name", ParamKind::Str, "The function."),
        PassParam::required("params", ParamKind::Map, "Tensors by the names of parameters."),
    ]);

/// Binds parameters of a function by name.
pub fn bind_params(mut module: IRModule, function: &str, values: &[(String, Tensor)]) -> PassResult {
    if values.is_empty() {
        return Ok(module);
    }
    let Some(f) = module.get_as::<Function>(function) else {
        return Err(PassError::arguments(NAME, format!("the module has no Relax function {function:?}")));
    };
    let mut replace = VarReplacer(HashMap::new());
    for (name, value) in values {
        let Some(param) = f.params.iter().find(|p| p.name == *name) else {
            let known: Vec<&str> = f.params.iter().map(|p| p.name.as_str()).collect();
            return Err(in_function(NAME, function, format!("no parameter {name:?}; there are: {}", known.join(", "))));
        };
        fits(value, &param.ty).map_err(|why| in_function(NAME, function, format!("parameter {name}: {why}")))?;
        replace.0.insert(AnyVar::Var(param.clone()), Expr::constant(value.clone()));
    }
    let body = replace.mutate_seq(&f.body);
    let params = f.params.iter().filter(|p| !replace.0.contains_key(&AnyVar::Var((*p).clone()))).cloned().collect();
    module
        .functions
        .insert(function.to_string(), BaseFunc::from(Ref::new(Function { params, body, ..Function::clone(&f) })));
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
