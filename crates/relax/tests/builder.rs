//! The builder names, types and normalizes what it is given, and says what is wrong with what it refuses.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::prim::PrimExpr;
use relaxide_ir::{Attrs, Type, Var};
use relaxide_relax::builder::OpenDims;
use relaxide_relax::display::type_text;
use relaxide_relax::{Binding, BlockBuilder, BuildError, Expr, Function, op, wellformed};
use relaxide_tir::te;

fn tensor(dims: &[PrimExpr]) -> Type {
    Type::tensor(dims.iter().cloned(), DataType::float(32))
}

fn build(
    mut b: BlockBuilder,
    params: &[Ref<Var>],
    body: impl FnOnce(&mut BlockBuilder) -> Result<Expr, BuildError>,
) -> (BlockBuilder, Ref<Function>) {
    let main = b.function(params.to_vec(), Attrs::new(), body).expect("the function is right");
    b.module_mut().insert("main", main.clone());
    assert!(wellformed::check_module(b.module()).is_empty());
    (b, main)
}

fn bindings(func: &Function) -> Vec<(String, String)> {
    let all = func.body.blocks.iter().flat_map(|b| &b.bindings);
    all.map(|b| (b.var().name().to_string(), type_text(b.var().ty()))).collect()
}

#[test]
fn nested_calls_get_variables_of_their_own() {
    let x = Var::new("x", tensor(&[2.into()]));
    let (_, main) = build(BlockBuilder::new(), std::slice::from_ref(&x), |b| {
        let exp = || op::call("exp", [x.clone().into()], Attrs::new());
        b.emit(op::call("add", [exp()?, exp()?], Attrs::new())?)
    });
    let names: Vec<String> = bindings(&main).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["gv", "gv1", "gv2"]);
}

#[test]
fn a_call_that_stands_twice_is_bound_once() {
    let x = Var::new("x", tensor(&[2.into()]));
    let (_, main) = build(BlockBuilder::new(), std::slice::from_ref(&x), |b| {
        let inner = op::call("exp", [x.clone().into()], Attrs::new())?;
        b.emit(op::call("add", [inner.clone(), inner], Attrs::new())?)
    });
    let names: Vec<String> = bindings(&main).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["gv", "gv1"]);
}

#[test]
fn names_are_unique_beside_parameters() {
    let gv = Var::new("gv", tensor(&[2.into()]));
    let (_, main) =
        build(BlockBuilder::new(), std::slice::from_ref(&gv), |b| b.op("exp", [gv.clone().into()], Attrs::new()));
    assert_eq!(bindings(&main)[0].0, "gv1");
}

#[test]
fn dimensions_that_may_or_may_not_fit_leave_the_shape_open() {
    let (n, m) = (Var::dim("n"), Var::dim("m"));
    let (x, y) = (Var::new("x", tensor(&[(&n).into(), 4.into()])), Var::new("y", tensor(&[(&m).into(), 4.into()])));
    let (_, main) =
        build(BlockBuilder::new(), &[x.clone(), y.clone()], |b| b.op("add", [x.into(), y.into()], Attrs::new()));
    assert_eq!(bindings(&main)[0].1, "R.Tensor(dtype=\"float32\", ndim=2)");
}

#[test]
fn dimensions_that_are_asserted_to_fit_are_checked_when_run() {
    let (n, m) = (Var::dim("n"), Var::dim("m"));
    let (x, y) = (Var::new("x", tensor(&[(&n).into(), 4.into()])), Var::new("y", tensor(&[(&m).into(), 4.into()])));
    let b = BlockBuilder::new().open_dims(OpenDims::AssertEqual);
    let (_, main) = build(b, &[x.clone(), y.clone()], |b| b.op("add", [x.into(), y.into()], Attrs::new()));
    let Some(Binding::MatchCast(cast)) = main.body.blocks[0].bindings.first() else { panic!("no check was written") };
    assert_eq!(type_text(&cast.ty), "R.Tensor((n, 4), dtype=\"float32\")");
    assert_eq!(bindings(&main)[1].1, "R.Tensor((n, 4), dtype=\"float32\")");
}

#[test]
fn equal_kernels_are_one() {
    let x = Var::new("x", tensor(&[2.into()]));
    let (b, _) = build(BlockBuilder::new(), std::slice::from_ref(&x), |b| {
        let double = |t: &[te::Tensor]| vec![te::compute("double", t[0].shape(), |i| t[0].at(i) + t[0].at(i))];
        let once = b.emit_te("double", vec![x.clone().into()], double)?;
        b.emit_te("double", vec![once], double)
    });
    assert_eq!(b.module().functions.keys().collect::<Vec<_>>(), ["double", "main"]);
}

#[test]
fn refusals_name_operator_argument_and_finding() {
    let x: Expr = Var::new("x", tensor(&[2.into(), 3.into()])).into();
    let y: Expr = Var::new("y", tensor(&[4.into()])).into();
    let i: Expr = Var::new("i", Type::tensor([2i64], DataType::int(32))).into();
    let cases = [
        (op::call("ad", [x.clone(), x.clone()], Attrs::new()), "no operator is called `ad`"),
        (op::call("add", [x.clone()], Attrs::new()), "add: takes 2 arguments, 1 were given"),
        (
            op::call("add", [x.clone(), y.clone()], Attrs::new()),
            "add: shapes (2, 3) and (4,) cannot be broadcast: they differ at dimension 1 of the result",
        ),
        (
            op::call("add", [y, i.clone()], Attrs::new()),
            "add: both sides must have one dtype, but they have float32 and int32; convert one with astype",
        ),
        (
            op::call("exp", [i], Attrs::new()),
            "exp: needs a floating-point tensor, but its dtype is int32; convert it with astype",
        ),
        (
            op::call("sum", [x.clone()], Attrs::new().with("axes", vec![1i64])),
            "sum: attribute `axes` does not exist; there are: axis, keepdims",
        ),
        (
            op::call("sum", [x.clone()], Attrs::new().with("axis", vec![2i64])),
            "sum: axis 2 is not one of the 2 axes of the tensor",
        ),
        (
            op::call("sum", [x.clone()], Attrs::new().with("keepdims", "yes")),
            "sum: attribute `keepdims` must be True or False",
        ),
        (
            op::call("exp", [Expr::tuple([x])], Attrs::new()),
            "exp: argument `x` must be a tensor, but its type is R.Tuple(R.Tensor((2, 3), dtype=\"float32\"))",
        ),
    ];
    for (result, message) in cases {
        // The types of the arguments follow where these do not fit each other.
        let found = result.err().map(|e| e.to_string()).unwrap_or_default();
        assert!(found.starts_with(message), "{found}");
    }
}
