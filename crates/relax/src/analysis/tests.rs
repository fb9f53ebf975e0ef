//! Analyses of small functions.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::{Attrs, GlobalVar, IRModule, Type, Var};

use super::*;
use crate::*;

fn vector(dim: impl Into<relaxide_ir::PrimExpr>) -> Type {
    Type::tensor([dim.into()], DataType::float(32))
}

fn function(
    params: Vec<Ref<Var>>,
    attrs: Attrs,
    body: impl FnOnce(&mut BlockBuilder) -> Result<Expr, BuildError>,
) -> Ref<Function> {
    BlockBuilder::new().function(params, attrs, body).expect("the function is right")
}

fn call(name: &str, args: &[Expr]) -> Expr {
    op::call(name, args.to_vec(), Attrs::new()).expect("the call is right")
}

fn names(vars: &[AnyVar]) -> Vec<&str> {
    vars.iter().map(AnyVar::name).collect()
}

#[test]
fn variables_are_bound_used_or_free() {
    let n = Var::dim("n");
    let (x, y) = (Var::new("x", vector(&n)), Var::new("y", vector(&n)));
    let outer = Expr::Var(y);
    let func = function(vec![x.clone()], Attrs::new(), |b| b.emit(call("add", &[Expr::Var(x), outer])));
    let e = Expr::Function(func);
    assert_eq!(names(&bound_vars(&e)), ["x", "gv"]);
    assert_eq!(names(&free_vars(&e)), ["y"]);
    assert_eq!(names(&all_vars(&e)), ["x", "gv", "y"]);
    assert_eq!(defined_symbols(&e), [n]);
    assert!(free_symbols(&e).is_empty());
}

#[test]
fn functions_that_call_each_other_are_one_group() {
    let calls = |name: &str| {
        let x = Var::new("x", vector(4));
        let callee = GlobalVar::typed(name, Type::func([vector(4)], vector(4), true));
        function(vec![x.clone()], Attrs::new(), |b| {
            let ty = vector(4);
            b.emit(Ref::new(Call {
                op: callee.into(),
                args: vec![x.into()],
                attrs: Attrs::new(),
                ty_args: vec![],
                ty,
                span: None,
            }))
        })
    };
    let mut module = IRModule::new();
    for (name, callee) in [("a", "b"), ("b", "c"), ("c", "a"), ("d", "d"), ("e", "a")] {
        module.insert(name, calls(callee));
    }
    assert_eq!(detect_recursion(&module), [vec!["a", "b", "c"], vec!["d"]]);
    let graph = call_graph(&module);
    assert_eq!(graph.callees("e"), ["a"]);
    assert!(!graph.is_recursive("e") && graph.is_recursive("d"));
    assert_eq!(graph.reachable(["e"]).len(), 4);
}

#[test]
fn a_call_with_an_effect_is_found() {
    let x = Var::new("x", vector(4));
    let pure = function(vec![x.clone()], Attrs::new(), |b| b.emit(call("exp", &[Expr::Var(x.clone())])));
    assert!(!contains_impure_call(&pure.into(), None));
    let impure = function(vec![x.clone()], Attrs::new(), |b| {
        b.emit(call("print", &[Expr::Var(x.clone())]))?;
        Ok(Expr::Var(x.clone()))
    });
    let found = find_impure_call(&impure.into(), None).expect("it prints");
    assert_eq!(found.as_op_call().map(|(_, name)| name.to_string()).as_deref(), Some("print"));
}

#[test]
fn what_weights_alone_decide_is_known_when_the_program_is_built() {
    let (x, w) = (Var::new("x", vector(4)), Var::new("w", vector(4)));
    let attrs = Attrs::new().with("num_input", 1);
    let func = function(vec![x.clone(), w.clone()], attrs, |b| {
        let a = b.emit_named("a", call("exp", &[w.into()]))?;
        let s = b.emit_named("s", call("add", &[x.into(), a.clone()]))?;
        let c = b.emit_named("c", call("negative", &[a]))?;
        b.emit_named("r", call("multiply", &[s, c]))
    });
    assert_eq!(names(&computable_at_compile_time(&func)), ["w", "a", "c"]);
    assert_eq!(num_inputs(&func), Some(1));
}

#[test]
fn uses_are_counted() {
    let x = Var::new("x", vector(4));
    let func = function(vec![x.clone()], Attrs::new(), |b| {
        let a = b.emit_named("a", call("exp", &[x.clone().into()]))?;
        b.emit_named("c", call("add", &[a.clone(), a]))
    });
    let uses = use_def(&func.body);
    let a = func.body.blocks[0].bindings[0].var();
    assert_eq!(names(uses.users(a)), ["c", "c"]);
    assert_eq!(uses.count(&x.into()), 1);
    assert_eq!(names(&uses.outputs), ["c"]);
}

#[test]
fn what_is_overwritten_through_a_view_or_a_tuple_is_overwritten() {
    let x = Var::new("x", vector(4));
    let func = function(vec![x.clone()], Attrs::new(), |b| {
        let x = Expr::Var(x);
        let source = b.emit_named("source", call("exp", std::slice::from_ref(&x)))?;
        let kept = b.emit_named("kept", call("exp", std::slice::from_ref(&x)))?;
        let pair = b.emit_named("pair", Expr::tuple([source, kept.clone()]))?;
        let field = b.emit_named("field", Expr::from(Ref::new(TupleGetItem { tuple: pair, index: 0 })))?;
        let view = b.emit_named("view", call("reshape", &[field, Expr::shape(&[relaxide_ir::PrimExpr::from(4)])]))?;
        let other = b.emit_named("other", call("exp", &[kept]))?;
        let attrs = Attrs::new().with("inplace_indices", vec![1i64]);
        let args = [Expr::from(GlobalVar::new("f")), Expr::tuple([other, view.clone()])];
        b.emit_named("sum", op::call_typed("call_tir_inplace", args, attrs, vec![view.ty()])?)
    });
    let found = overwritten_vars(&func);
    let mut found: Vec<&str> = found.iter().map(AnyVar::name).collect();
    found.sort_unstable();
    // Which field of the tuple it is, is not asked.
    assert_eq!(found, ["field", "kept", "pair", "source", "view"]);
}
