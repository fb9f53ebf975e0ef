//! BindParams: parameters of a function become constants.
//!
//! Weights that are known before compilation need not be passed at every call, and constants fold:
//!
//! ```text
//! def main(x: R.Tensor(("n", 4)), w: R.Tensor((4, 2))):        def main(x: R.Tensor(("n", 4))):
//!     gv = R.matmul(x, w)                                          gv = R.matmul(x, metadata["ir.GenericConst"][0])
//! ```
//!
//! Parameters that are shapes and scalars take those. On the command line a tensor is given as numbers in lists,
//! `BindParams(main, {w: [[1.0, 2.0]]})`, and has the parameter's element type. Symbolic dimensions of its type are those of the
//! value, in the whole function, and a parameter that is such a dimension is bound with it. What uses a value of which more is known
//! than of its parameter is typed anew. A value must have the element type and the rank of its parameter, and its dimensions where
//! those are numbers. **Differs from TVM**, which takes a tensor of any rank and shape.

use std::collections::HashMap;

use relaxide_ffi::{Any, DataType, Ref, Tensor};
use relaxide_ir::pass::{ParamKind, PassError, PassInfo, PassParam, PassResult};
use relaxide_ir::prim::{PrimExpr, VarMap, float_of, int_of};
use relaxide_ir::{AttrValue, BaseFunc, IRModule, Type, Var};

use crate::constant::from_floats;
use crate::functor::{VarReplacer, bound_names};
use crate::rewrite::{Action, ExprMap, Rewrite, in_function, rewrite_seq};
use crate::shape::{bind_dims, same_type};
use crate::transform::bind_symbols::SymbolMutator;
use crate::*;

const NAME: &str = "BindParams";

pub(super) const PASS: PassInfo =
    PassInfo::new(NAME, "Parameters of a function become constants.", |module, _, args| {
        let Some(AttrValue::Map(values)) = args.get("params") else { return Ok(module) };
        let function = args.str("func_name").unwrap_or_default();
        let params = module.get_as::<Function>(function).map(|f| f.params.clone()).unwrap_or_default();
        let value = |(name, value): (&String, &AttrValue)| {
            let param = params.iter().find(|p| p.name == *name);
            Ok((name.clone(), value_of(name, value, param.map(|p| &p.ty))?))
        };
        let values = values.iter().map(value).collect::<Result<Vec<_>, PassError>>()?;
        bind(module, function, &values)
    })
    .params(&[
        PassParam::required("func_name", ParamKind::Str, "The function."),
        PassParam::required("params", ParamKind::Map, "Tensors, or numbers in lists, by the names of parameters."),
    ]);

/// The value for a parameter of a type.
fn value_of(name: &str, value: &AttrValue, ty: Option<&Type>) -> Result<Expr, PassError> {
    if let Some(Type::Prim(prim)) = ty {
        let scalar = match value {
            AttrValue::Int(number) => Some(int_of(prim.dtype, *number)),
            AttrValue::Float(number) => Some(float_of(prim.dtype, *number)),
            AttrValue::Prim(scalar) => Some(scalar.clone()),
            AttrValue::Object(object) => match Expr::try_from(object.clone()) {
                Ok(Expr::Prim(scalar)) => Some(scalar.value.clone()),
                _ => PrimExpr::try_from(object.clone()).ok(),
            },
            _ => None,
        };
        let wrong =
            || format!("the value of {name}, a symbolic variable, must be a number or an expression over others");
        return scalar.map(Expr::prim).ok_or_else(|| PassError::arguments(NAME, wrong()));
    }
    if let AttrValue::Object(object) = value
        && let Ok(expr @ (Expr::Constant(_) | Expr::Shape(_) | Expr::Prim(_))) = Expr::try_from(object.clone())
    {
        return Ok(expr);
    }
    if let (Some(Type::Shape(_)), AttrValue::List(dims)) = (ty, value) {
        let dim = |dim: &AttrValue| match dim {
            AttrValue::Int(number) => Some(PrimExpr::from(*number)),
            AttrValue::Prim(dim) => Some(dim.clone()),
            _ => None,
        };
        let wrong = || PassError::arguments(NAME, format!("the value of {name} is no shape"));
        return dims.iter().map(dim).collect::<Option<Vec<_>>>().map(Expr::shape).ok_or_else(wrong);
    }
    let dtype = ty.and_then(|ty| ty.as_tensor()).map(|t| t.dtype).filter(|d| !d.is_void());
    let made = tensor_of(value, dtype.unwrap_or(DataType::float(32)));
    let wrong = || format!("the value of {name} is no tensor, no shape and no constant");
    made.map(Expr::constant).ok_or_else(|| PassError::arguments(NAME, wrong()))
}

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

/// Binds parameters of a function by name to tensors.
pub fn bind_params(module: IRModule, function: &str, values: &[(String, Tensor)]) -> PassResult {
    let values: Vec<_> = values.iter().map(|(name, value)| (name.clone(), Expr::constant(value.clone()))).collect();
    bind(module, function, &values)
}

fn bind(mut module: IRModule, function: &str, values: &[(String, Expr)]) -> PassResult {
    if values.is_empty() {
        return Ok(module);
    }
    let Some(f) = module.get_as::<Function>(function) else {
        return Err(PassError::arguments(NAME, format!("the module has no Relax function {function:?}")));
    };
    let (mut given, mut dims) = (HashMap::new(), VarMap::new());
    for (name, value) in values {
        let Some(param) = f.params.iter().find(|p| p.name == *name) else {
            let known: Vec<&str> = f.params.iter().map(|p| p.name.as_str()).collect();
            return Err(in_function(NAME, function, format!("no parameter {name:?}; there are: {}", known.join(", "))));
        };
        fits(value, &param.ty).map_err(|why| in_function(NAME, function, format!("parameter {name}: {why}")))?;
        bind_dims(&param.ty, &value.ty(), &mut dims);
        given.insert(param.clone(), value.clone());
    }
    bind_symbols(&given, &mut dims)?;
    let with_dims = SymbolMutator::new(dims).function(&f);
    let pairs = f.params.iter().zip(&with_dims.params);
    let replaced: ExprMap =
        pairs.filter_map(|(old, new)| Some((AnyVar::Var(new.clone()), given.get(old)?.clone()))).collect();
    let bound = put(&module, &with_dims, replaced).map_err(|e| in_function(NAME, function, e))?;
    module.functions.insert(function.to_string(), BaseFunc::from(bound));
    Ok(module)
}

/// Adds the parameters that are symbolic variables to those that types mention. Both must agree.
fn bind_symbols(given: &HashMap<Ref<Var>, Expr>, dims: &mut VarMap) -> Result<(), PassError> {
    for (param, value) in given {
        let Expr::Prim(scalar) = value else { continue };
        if let Some(inferred) = dims.insert(param.clone(), scalar.value.clone())
            && !relaxide_ir::arith::dims::equal(&inferred, &scalar.value)
        {
            return Err(PassError::arguments(
                NAME,
                format!(
                    "the symbolic variable {} is bound to two values: {} by the shape of a parameter, and {}",
                    param.name,
                    display::dim_text(&inferred),
                    display::dim_text(&scalar.value)
                ),
            ));
        }
    }
    Ok(())
}

/// A function with values in the place of parameters. Where more is known of a value than of its parameter, what uses it is typed anew.
fn put(module: &IRModule, f: &Ref<Function>, mut values: ExprMap) -> Result<Ref<Function>, BuildError> {
    let params = f.params.iter().filter(|p| !values.contains_key(&AnyVar::Var((*p).clone()))).cloned().collect();
    if values.iter().all(|(param, value)| same_type(param.ty(), &value.ty())) {
        let body = VarReplacer(values).mutate_seq(&f.body);
        return Ok(Ref::new(Function { params, body, ..Function::clone(f) }));
    }
    let mut b = BlockBuilder::with_module(module.clone());
    bound_names(&f.body).iter().for_each(|name| b.reserve(name));
    let body = rewrite_seq(&mut b, &f.body, &mut Keep, &mut values)?;
    Ok(Ref::new(Function { ret_ty: body.body.ty(), params, body, ..Function::clone(f) }))
}

struct Keep;

impl Rewrite for Keep {
    fn value(&mut self, _: &mut BlockBuilder, _: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        Ok(Action::Bind(value))
    }
}

/// A value of another type than its parameter's.
#[derive(Debug, thiserror::Error)]
#[error("a value of type {} does not fit {}", display::type_text(.have), display::type_text(.want))]
struct Unfit {
    have: Type,
    want: Type,
}

fn fits(value: &Expr, ty: &Type) -> Result<(), Unfit> {
    let have = value.ty();
    let fits = match (&have, ty) {
        (Type::Tensor(have), Type::Tensor(want)) => {
            (want.dtype.is_void() || want.dtype == have.dtype)
                && (want.ndim < 0 || want.ndim == have.ndim)
                && known_dims_agree(&want.shape, &have.shape)
        }
        (Type::Shape(have), Type::Shape(want)) => {
            (want.ndim < 0 || want.ndim == have.ndim) && known_dims_agree(&want.values, &have.values)
        }
        (Type::Prim(have), Type::Prim(want)) => have.dtype == want.dtype,
        (_, Type::Any(_)) => true,
        _ => false,
    };
    fits.then_some(()).ok_or_else(|| Unfit { have, want: ty.clone() })
}

fn known_dims_agree(want: &Option<Vec<PrimExpr>>, have: &Option<Vec<PrimExpr>>) -> bool {
    let pairs = want.iter().flatten().zip(have.iter().flatten());
    pairs.filter_map(|(want, have)| Some((want.as_int()?, have.as_int()?))).all(|(want, have)| want == have)
}
