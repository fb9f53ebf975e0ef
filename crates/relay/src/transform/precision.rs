//! ToMixedPrecision: what gains by it is computed in half precision, what would lose stays in single precision.
//!
//! Operators are of three kinds: those of products and sums of many terms, which take half precision always; those that take
//! what their operands have; and those that need single precision. Casts stand between kinds, once for each value.

use std::collections::HashMap;

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;

use super::arithmetic::call;
use super::table::TransformError;
use crate::op::properties::{Precision, has_precision, precision};
use crate::rewrite::rewrite;
use crate::*;

/// What happens to an operator of which nothing is said: TVM's `missing_op_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingOps {
    /// The program is refused.
    Refuse,
    /// It stays in single precision.
    Keep,
}

impl MissingOps {
    /// Of TVM's number: 0 refuses, 1 and 2 keep (there 1 also warns).
    pub fn of_number(number: i64) -> Result<MissingOps, TransformError> {
        match number {
            0 => Ok(MissingOps::Refuse),
            1 | 2 => Ok(MissingOps::Keep),
            other => Err(TransformError::Refused(format!("missing_op_mode is 0, 1 or 2, not {other}"))),
        }
    }
}

/// Refuses a program with operators of floats of which nothing is said.
fn refuse_missing(module: &Module) -> Result<(), TransformError> {
    let mut missing: Vec<String> = Vec::new();
    for function in module.functions.values() {
        visit::each(&function.body, |expr| {
            if let Some((_, name)) = expr.as_op_call()
                && !has_precision(name)
                && !missing.iter().any(|known| known == name)
            {
                missing.push(name.to_string());
            }
        });
    }
    if missing.is_empty() {
        return Ok(());
    }
    missing.sort_unstable();
    Err(TransformError::Refused(format!(
        "nothing is said of the precision of {}; missing_op_mode=1 keeps them in single precision",
        missing.join(", ")
    )))
}

/// The program with products in another precision. What a function gives is in single precision as before.
pub fn to_mixed_precision(module: &Module, half: DataType, missing: MissingOps) -> Result<Module, TransformError> {
    if missing == MissingOps::Refuse {
        refuse_missing(module)?;
    }
    let types = infer(&prelude::with_prelude(module).map_err(TransformError::Value)?).map_err(TransformError::Types)?;
    let mut out = module.clone();
    for function in out.functions.values_mut() {
        let mut casts: HashMap<(usize, DataType), Expr> = HashMap::new();
        // What is in half precision now, by the node that stands for it; tuples hold such tensors.
        let mut halves: HashMap<usize, bool> = HashMap::new();
        let mut keep: Vec<Expr> = Vec::new();
        let full = DataType::float(32);
        let body = rewrite(&function.body, &mut |new, old| {
            let is_float = |e: &Expr| {
                let tensors = types.of(e).and_then(|ty| ty.flat_tensors());
                tensors.is_some_and(|list| !list.is_empty() && list.iter().any(|t| t.dtype == full))
            };
            let changed = match new {
                Expr::Call(call_) => {
                    let before = match old {
                        Expr::Call(before) => before.clone(),
                        _ => return None,
                    };
                    let name = new.as_op_call().map_or("", |(_, name)| name);
                    let any = call_.args.iter().any(|a| halves.get(&a.address()).copied().unwrap_or(false));
                    let wanted = match precision(name) {
                        Precision::Half => is_float(old) && before.args.iter().all(&is_float),
                        Precision::Follows => any,
                        Precision::Single => false,
                    };
                    let mut args = Vec::new();
                    let mut same = true;
                    for (arg, was) in call_.args.iter().zip(&before.args) {
                        let here = halves.get(&arg.address()).copied().unwrap_or(false);
                        let made = if here == wanted || !is_float(was) {
                            arg.clone()
                        } else {
                            cast(&mut casts, &mut keep, arg, if wanted { half } else { full })?
                        };
                        same &= made.ptr_eq(arg);
                        args.push(made);
                    }
                    let mut attrs = call_.attrs.clone();
                    if wanted && attrs.get("out_dtype").is_some() && attrs.dtype("out_dtype").is_some_and(|d| d == full)
                    {
                        attrs = attrs.with("out_dtype", half);
                        same = false;
                    }
                    let made: Expr = match same {
                        true => new.clone(),
                        false => {
                            let (op, type_args, span) = (call_.op.clone(), call_.type_args.clone(), call_.span.clone());
                            relaxide_ffi::Ref::new(Call { op, args, attrs, type_args, span }).into()
                        }
                    };
                    halves.insert(made.address(), wanted);
                    made
                }
                Expr::TupleGetItem(get) => {
                    let here = halves.get(&get.tuple.address()).copied().unwrap_or(false);
                    halves.insert(new.address(), here);
                    new.clone()
                }
                Expr::Tuple(t) => {
                    // All or none: one operator takes them together.
                    let of = |e: &Expr| halves.get(&e.address()).copied().unwrap_or(false);
                    let all = t.fields.iter().all(of);
                    if all || !t.fields.iter().any(of) {
                        halves.insert(new.address(), all && !t.fields.is_empty());
                        new.clone()
                    } else {
                        let part = |e: &Expr, casts: &mut HashMap<_, _>, keep: &mut Vec<Expr>| match of(e) {
                            true => cast(casts, keep, e, full),
                            false => Some(e.clone()),
                        };
                        let fields: Option<Vec<Expr>> =
                            t.fields.iter().map(|e| part(e, &mut casts, &mut keep)).collect();
                        Expr::tuple(fields?)
                    }
                }
                // Scopes begin and end in single precision.
                Expr::Let(_) | Expr::If(_) | Expr::Match(_) | Expr::Function(_) => return None,
                _ => return None,
            };
            keep.push(changed.clone());
            Some(changed)
        });
        let body = match halves.get(&body.address()).copied().unwrap_or(false) {
            true => match types.of(&function.body) {
                Some(Type::Tensor(_)) => cast(&mut casts, &mut keep, &body, full).unwrap_or(body),
                _ => {
                    return Err(TransformError::Refused(
                        "a tuple in half precision cannot be a function's result yet".into(),
                    ));
                }
            },
            false => body,
        };
        *function = function.with_body(body);
    }
    Ok(out)
}

fn cast(casts: &mut HashMap<(usize, DataType), Expr>, keep: &mut Vec<Expr>, e: &Expr, to: DataType) -> Option<Expr> {
    if let Some(done) = casts.get(&(e.address(), to)) {
        return Some(done.clone());
    }
    // Back to where it came from.
    if let Some((inner, "cast")) = e.as_op_call()
        && casts.iter().any(|((from, _), made)| made.ptr_eq(e) && *from == inner.args[0].address())
    {
        return Some(inner.args[0].clone());
    }
    keep.push(e.clone());
    let made = match e {
        // A tuple's fields are brought over one by one.
        Expr::Tuple(t) => Expr::tuple(t.fields.iter().map(|f| cast(casts, keep, f, to)).collect::<Option<Vec<_>>>()?),
        _ => call("cast", [e.clone()], Attrs::new().with("dtype", to))?,
    };
    casts.insert((e.address(), to), made.clone());
    Some(made)
}
