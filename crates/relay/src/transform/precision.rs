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
        let mut mixed = Mixed { types: &types, half, casts: HashMap::new(), halves: HashMap::new(), keep: Vec::new() };
        let body = rewrite(&function.body, &mut |new, old| {
            let changed = mixed.changed(new, old)?;
            mixed.keep.push(changed.clone());
            Some(changed)
        });
        let body = match (mixed.is_half(&body), types.of(&function.body)) {
            (false, _) => body,
            (true, Some(Type::Tensor(_))) => mixed.cast(&body, FULL).unwrap_or(body),
            (true, _) => {
                let message = "a tuple in half precision cannot be a function's result yet";
                return Err(TransformError::Refused(message.into()));
            }
        };
        *function = function.with_body(body);
    }
    Ok(out)
}

/// The type that is traded for a narrower one.
const FULL: DataType = DataType::float(32);

/// One function on its way into mixed precision.
struct Mixed<'t> {
    types: &'t Types,
    half: DataType,
    /// Casts that were made, by what is cast and to what.
    casts: HashMap<(usize, DataType), Expr>,
    /// What is in half precision now, by the node that stands for it; tuples hold such tensors.
    halves: HashMap<usize, bool>,
    /// Nodes whose addresses are keys.
    keep: Vec<Expr>,
}

impl Mixed<'_> {
    fn is_half(&self, e: &Expr) -> bool {
        self.halves.get(&e.address()).copied().unwrap_or(false)
    }

    /// Whether a value of the program as it was has floats of single precision in it.
    fn is_float(&self, e: &Expr) -> bool {
        let tensors = self.types.of(e).and_then(|ty| ty.flat_tensors());
        tensors.is_some_and(|list| list.iter().any(|t| t.dtype == FULL))
    }

    /// What an expression becomes whose parts are rewritten; nothing where it stays.
    fn changed(&mut self, new: &Expr, old: &Expr) -> Option<Expr> {
        match (new, old) {
            (Expr::Call(new_call), Expr::Call(before)) => self.call(new, new_call, old, before),
            (Expr::TupleGetItem(get), _) => {
                let here = self.is_half(&get.tuple);
                self.halves.insert(new.address(), here);
                Some(new.clone())
            }
            (Expr::Tuple(t), _) => self.tuple(new, t),
            // Scopes begin and end in single precision.
            _ => None,
        }
    }

    fn call(&mut self, new: &Expr, new_call: &Call, old: &Expr, before: &Call) -> Option<Expr> {
        let name = new.as_op_call().map_or("", |(_, name)| name);
        let wanted = match precision(name) {
            Precision::Half => self.is_float(old) && before.args.iter().all(|arg| self.is_float(arg)),
            Precision::Follows => new_call.args.iter().any(|arg| self.is_half(arg)),
            Precision::Single => false,
        };
        let (mut args, mut same) = (Vec::new(), true);
        for (arg, was) in new_call.args.iter().zip(&before.args) {
            let made = if self.is_half(arg) == wanted || !self.is_float(was) {
                arg.clone()
            } else {
                self.cast(arg, if wanted { self.half } else { FULL })?
            };
            same &= made.ptr_eq(arg);
            args.push(made);
        }
        let mut attrs = new_call.attrs.clone();
        if wanted && attrs.get("out_dtype").is_some() && attrs.dtype("out_dtype").is_some_and(|d| d == FULL) {
            attrs = attrs.with("out_dtype", self.half);
            same = false;
        }
        let made: Expr = match same {
            true => new.clone(),
            false => {
                let (op, type_args, span) = (new_call.op.clone(), new_call.type_args.clone(), new_call.span.clone());
                relaxide_ffi::Ref::new(Call { op, args, attrs, type_args, span }).into()
            }
        };
        self.halves.insert(made.address(), wanted);
        Some(made)
    }

    /// All fields or none: one operator takes them together.
    fn tuple(&mut self, new: &Expr, t: &Tuple) -> Option<Expr> {
        let all = t.fields.iter().all(|e| self.is_half(e));
        if all || !t.fields.iter().any(|e| self.is_half(e)) {
            self.halves.insert(new.address(), all && !t.fields.is_empty());
            return Some(new.clone());
        }
        let mut field = |e: &Expr| if self.is_half(e) { self.cast(e, FULL) } else { Some(e.clone()) };
        Some(Expr::tuple(t.fields.iter().map(&mut field).collect::<Option<Vec<_>>>()?))
    }

    /// A value in another precision; each is cast once.
    fn cast(&mut self, e: &Expr, to: DataType) -> Option<Expr> {
        if let Some(done) = self.casts.get(&(e.address(), to)) {
            return Some(done.clone());
        }
        // Back to where it came from.
        if let Some((inner, "cast")) = e.as_op_call()
            && self.casts.iter().any(|((from, _), made)| made.ptr_eq(e) && *from == inner.args[0].address())
        {
            return Some(inner.args[0].clone());
        }
        self.keep.push(e.clone());
        let made = match e {
            // A tuple's fields are brought over one by one.
            Expr::Tuple(t) => Expr::tuple(t.fields.iter().map(|f| self.cast(f, to)).collect::<Option<Vec<_>>>()?),
            _ => call("cast", [e.clone()], Attrs::new().with("dtype", to))?,
        };
        self.casts.insert((e.address(), to), made.clone());
        Some(made)
    }
}
