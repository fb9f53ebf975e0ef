//! Analyses to Python: global functions that answer questions about programs.

use relaxide::ffi::{Any, Array, Error, ErrorKind, Map, Ref};
use relaxide::ir::prim::PrimExpr;
use relaxide::ir::{GlobalVar, IRModule, Type, Var};
use relaxide::relax::binding_rewrite::BlockRewrite;
use relaxide::relax::{AnyVar, Call, Expr, Function, SeqExpr, analysis, derived, shape};
use relaxide::tir::PrimFunc;

use super::{Args, Row};

pub(super) const TABLE: &[Row] = &[
    ("relax.analysis.free_vars", |args| Ok(vars(analysis::free_vars(&args.expr(0)?)))),
    ("relax.analysis.bound_vars", |args| Ok(vars(analysis::bound_vars(&args.expr(0)?)))),
    ("relax.analysis.all_vars", |args| Ok(vars(analysis::all_vars(&args.expr(0)?)))),
    ("relax.analysis.all_global_vars", |args| Ok(list(analysis::all_global_vars(&args.expr(0)?)))),
    ("relax.analysis.used_vars", |args| Ok(vars(relaxide::relax::functor::used_vars(&args.expr(0)?)))),
    ("relax.analysis.defined_symbolic_vars", |args| Ok(list(analysis::defined_symbols(&args.expr(0)?)))),
    ("relax.analysis.free_symbolic_vars", |args| Ok(list(analysis::free_symbols(&args.expr(0)?)))),
    ("relax.analysis.contains_impure_call", |args| {
        let own = args.optional::<AnyVar>(1)?;
        Ok(analysis::contains_impure_call(&args.expr(0)?, own.as_ref()).into())
    }),
    ("relax.analysis.computable_at_compile_time", |args| {
        Ok(vars(analysis::computable_at_compile_time(&*args.get::<Ref<Function>>(0)?)))
    }),
    ("relax.analysis.detect_recursion", |args| {
        let groups = analysis::detect_recursion(&*args.get::<Ref<IRModule>>(0)?);
        Ok(list(groups.into_iter().map(|names| list(names.into_iter().map(GlobalVar::new)))))
    }),
    ("relax.analysis.estimate_memory_usage", |args| {
        let estimates = analysis::estimate_memory_usage(&*args.get::<Ref<IRModule>>(0)?);
        Ok(estimates.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n").as_str().into())
    }),
    ("relax.analysis.use_def", |args| {
        let seq: Ref<SeqExpr> = args.get(0)?;
        let uses = analysis::use_def(&seq);
        let users = uses.users.iter().map(|(var, users)| (Any::from(var), list(users.clone())));
        Ok(list([Any::from(users.collect::<Map>()), list(uses.outputs)]))
    }),
    ("relax.analysis.has_reshape_pattern", |args| {
        Ok(analysis::has_reshape_pattern(&*args.get::<Ref<PrimFunc>>(0)?).into())
    }),
    ("relax.analysis.type_lca", |args| Ok(shape::unify(&args.ty(0)?, &args.ty(1)?).into())),
    ("relax.analysis.type_is_of", |args| {
        let (derived, base) = (args.ty(0)?, args.ty(1)?);
        Ok(relaxide::relax::dpl::matcher::is_of_type(&derived, &base).into())
    }),
    ("relax.analysis.same_type", |args| Ok(shape::same_type(&args.ty(0)?, &args.ty(1)?).into())),
    ("relax.analysis.tir_vars_in_type", |args| Ok(list(shape::vars_of([&args.ty(0)?])))),
    ("relax.analysis.definable_tir_vars_in_type", |args| Ok(list(shape::defined_vars([&args.ty(0)?])))),
    ("relax.analysis.erase_to_well_defined", erase),
    ("relax.analysis.remove_all_unused", |args| {
        Ok(relaxide::relax::transform::remove_unused(&args.get::<Ref<Function>>(0)?).into())
    }),
    ("relax.BlockRewriteNew", |args| edit(args, |_| Ok(()))),
    ("relax.BlockRewriteReplaceAllUses", |args| {
        edit(args, |rewrite| {
            let replaced = rewrite.replace_all_uses(args.var(2)?, args.var(3)?);
            replaced.map_err(|error| Error::new(ErrorKind::RuntimeError, error.to_string()))
        })
    }),
    ("relax.BlockRewriteAddBinding", |args| {
        edit(args, |rewrite| {
            rewrite.add_binding(args.get(2)?);
            Ok(())
        })
    }),
    ("relax.BlockRewriteAdd", |args| {
        edit(args, |rewrite| {
            rewrite.add(args.expr(2)?, args.optional::<String>(3)?.as_deref(), args.get(4)?);
            Ok(())
        })
    }),
    ("relax.BlockRewriteRemoveUnused", |args| {
        edit(args, |rewrite| {
            let removed = rewrite.remove_unused(&args.var(2)?, args.get(3)?);
            removed.map_err(|error| Error::new(ErrorKind::RuntimeError, error.to_string()))
        })
    }),
    ("relax.BlockRewriteRemoveAllUnused", |args| {
        edit(args, |rewrite| {
            rewrite.remove_all_unused();
            Ok(())
        })
    }),
    ("relax.analysis.call_type", |args| {
        let Type::Func(func) = args.ty(0)? else {
            return Err(Error::new(ErrorKind::TypeError, "the type of a function is expected"));
        };
        let call: Ref<Call> = args.get(1)?;
        if let Some(rule) = &func.derive {
            let ty = derived::type_of(rule, &call);
            return ty.map(Into::into).map_err(|error| Error::new(ErrorKind::ValueError, error.to_string()));
        }
        let types: Vec<Type> = call.args.iter().map(Expr::ty).collect();
        Ok(shape::call_type(&func, &types).into())
    }),
];

fn list<T: Into<Any>>(items: impl IntoIterator<Item = T>) -> Any {
    Array::from_vec(items.into_iter().map(Into::into).collect()).into()
}

fn vars(vars: Vec<AnyVar>) -> Any {
    list(vars)
}

/// `(type, shape variables that are known)`: dimensions over other variables are forgotten.
fn erase(args: &Args<'_>) -> Result<Any, Error> {
    let known: Vec<Ref<Var>> = args
        .prims(1)?
        .unwrap_or_default()
        .into_iter()
        .filter_map(|known| if let PrimExpr::Var(var) = known { Some(var) } else { None })
        .collect();
    Ok(shape::erase_type(&args.ty(0)?, &|var| known.contains(var)).into())
}

/// `(block, function, …)`: both after an edit.
fn edit(args: &Args<'_>, edit: impl FnOnce(&mut BlockRewrite) -> Result<(), Error>) -> Result<Any, Error> {
    let mut rewrite = BlockRewrite::new(args.get(0)?, args.get(1)?)
        .map_err(|error| Error::new(ErrorKind::ValueError, error.to_string()))?;
    edit(&mut rewrite)?;
    Ok(list([Any::from(rewrite.block), Any::from(rewrite.function)]))
}
