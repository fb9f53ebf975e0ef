//! CanonicalizeBindings: names that only rename are resolved.
//!
//! ```text
//! y = x                                   lv = R.add(x, x)
//! lv = R.add(y, y)                   →    return lv
//! t = (lv, x)
//! z = t[0]
//! return z
//! ```
//!
//! A field of a tuple that is known is the field itself. A `match_cast` to a type that the value is known to have is only a
//! renaming, and symbolic variables that it would bind stand for the dimensions that the value has, unless those are long
//! expressions, which the variables keep short. What is bound and then not used is left to dead code elimination, except tuples that
//! were taken apart.
//!
//! A result of a dataflow block that is another name of one of its variables becomes that variable; one that nothing behind the block
//! uses is none.

use relaxide_ffi::Ref;
use relaxide_ir::arith::dims::is_long;
use relaxide_ir::pass::{PassInfo, PassResult};
use relaxide_ir::prim::{PrimExpr, VarMap};
use relaxide_ir::{IRModule, Type, Var};

use super::bind_symbols::SymbolMutator;
use super::convert_layout::refined;
use super::promote_outputs::promote_outputs;
use crate::rewrite::{Action, ExprMap, Rewrite, in_function, replace, rewrite_function};
use crate::shape::{bind_dims, same_dims, same_type, substitute_type, vars_of};
use crate::*;

pub(super) const PASS: PassInfo =
    PassInfo::new("CanonicalizeBindings", "Names that only rename are resolved.", |module, _, _| {
        run("CanonicalizeBindings", module)
    })
    .opt_level(1);

/// Runs the pass on behalf of another.
pub(super) fn run(pass: &str, module: IRModule) -> PassResult {
    let mut b = BlockBuilder::with_module(module);
    let functions: Vec<_> = b.module().functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
    for (name, func) in functions {
        let new = canonicalize_function(&mut b, &func).map_err(|e| in_function(pass, &name, e))?;
        b.module_mut().insert(name, new);
    }
    Ok(b.finish())
}

/// A function whose names that only rename are resolved.
pub fn canonicalize_function(b: &mut BlockBuilder, func: &Ref<Function>) -> Result<Ref<Function>, BuildError> {
    let params: Vec<Type> = func.params.iter().map(|p| p.ty.clone()).collect();
    let original = func;
    let mut func = func.clone();
    for _ in 0..MAX_ROUNDS {
        let mut canonicalize = Canonicalize { bound: vars_of(&params), ..Canonicalize::default() };
        let new = rewrite_function(b, &func, &mut canonicalize)?;
        if canonicalize.symbols.is_empty() {
            let new = promote_outputs(&new);
            if func == *original {
                return Ok(new);
            }
            // What is known of the result now was not when the function was written.
            let ret_ty = refined(&new.ret_ty, &new.body.body.ty());
            return Ok(Ref::new(Function { ret_ty, ..Function::clone(&new) }));
        }
        // What a variable stands for is put everywhere before casts go: a value whose cast is gone and one that still has the
        // variable in its type would be strangers to each other, and what is computed of both would lose its shape.
        func = SymbolMutator::new(canonicalize.symbols).function_body(&func);
    }
    Ok(promote_outputs(&func))
}

/// How often variables are looked for. A variable that stands for what another stands for takes a round of its own.
const MAX_ROUNDS: usize = 16;

#[derive(Default)]
struct Canonicalize {
    /// Tuples by the variable that holds them.
    tuples: ExprMap,
    /// Symbolic variables that turned out to be known dimensions.
    symbols: VarMap,
    /// Symbolic variables that are bound already: a cast that mentions them checks them.
    bound: Vec<Ref<Var>>,
    /// Variables of casts that turned out to be renamings.
    casts: ExprMap,
}

impl Rewrite for Canonicalize {
    fn value(&mut self, _: &mut BlockBuilder, var: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let value = replace(&value, &self.casts)?;
        let resolved = match &value {
            Expr::TupleGetItem(item) => {
                let known = item.tuple.as_var().and_then(|t| self.tuples.get(&t));
                match (known, usize::try_from(item.index)) {
                    (Some(Expr::Tuple(tuple)), Ok(i)) => tuple.fields.get(i).cloned().unwrap_or_else(|| value.clone()),
                    _ => value.clone(),
                }
            }
            _ => value.clone(),
        };
        if let Expr::Tuple(_) = &resolved {
            self.tuples.insert(var.clone(), resolved.clone());
        }
        Ok(match resolved.as_var() {
            Some(target) if may_stand_for(var, &target) => Action::Replace(resolved),
            _ => Action::Bind(resolved),
        })
    }

    fn cast(&mut self, b: &mut BlockBuilder, cast: Ref<MatchCast>) -> Result<(), BuildError> {
        let value = replace(&cast.value, &self.casts)?;
        if let Some(target) = value.as_var()
            && self.learn(target.ty(), &cast.ty)
        {
            if may_stand_for(&cast.var, &target) {
                self.casts.insert(cast.var.clone(), value);
                return Ok(());
            }
            // The result of a block is another name of a variable of it, which may become it.
            return b.push_binding(Ref::new(VarBinding { var: cast.var.clone(), value }).into());
        }
        self.bound.extend(vars_of([&cast.ty]));
        b.push_binding(Ref::new(MatchCast { var: cast.var.clone(), value, ty: cast.ty.clone() }).into())
    }

    fn result(&mut self, _: &mut BlockBuilder, result: Expr) -> Result<Expr, BuildError> {
        replace(&result, &self.casts)
    }
}

impl Canonicalize {
    /// Whether a value of type `known` has the type `cast` for certain, once variables that `cast` binds stand for what
    /// `known` has in their place. Those are remembered.
    fn learn(&mut self, known: &Type, cast: &Type) -> bool {
        let mut bound = self.symbols.clone();
        bind_dims(cast, known, &mut bound);
        bound.retain(|var, dim| {
            let new = self.symbols.contains_key(var) || !self.bound.contains(var);
            new && !matches!(dim, PrimExpr::Var(v) if v == var)
        });
        if bound.iter().any(|(var, dim)| !self.symbols.contains_key(var) && is_long(dim)) {
            return false;
        }
        let cast = substitute_type(cast, &bound);
        let holds = match (&cast, known) {
            (Type::Tensor(c), Type::Tensor(k)) => match (&c.shape, &k.shape) {
                (Some(c_dims), Some(k_dims)) => c.dtype == k.dtype && same_dims(c_dims, k_dims),
                _ => same_type(&cast, known),
            },
            _ => same_type(&cast, known),
        };
        if holds {
            self.symbols = bound;
        }
        holds
    }
}

/// Whether `target` is visible wherever `var` is and says no less about its value.
fn may_stand_for(var: &AnyVar, target: &AnyVar) -> bool {
    let visible = !matches!((var, target), (AnyVar::Var(_), AnyVar::Dataflow(_)));
    let informed = !matches!(target.ty(), Type::Any(_) | Type::Missing(_)) || same_type(target.ty(), var.ty());
    visible && informed
}
