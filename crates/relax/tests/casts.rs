//! What a cast says where it fails stays with it, whatever passes do to the function that it is in.

use std::collections::BTreeSet;

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::pass::PassContext;
use relaxide_ir::prim::PrimExpr;
use relaxide_ir::{Attrs, IRModule, Span, Type, Var};
use relaxide_relax::{Binding, BlockBuilder, BuildError, Call, Expr, ExprVisitor, Function, MatchCast, transform};

/// No other tensor has as many columns.
const COLUMNS: i64 = 4321;
const NOTE: &str = "there is more to say of {0} rows";

fn matrix(rows: impl Into<PrimExpr>) -> Type {
    Type::tensor([rows.into(), PrimExpr::from(COLUMNS)], DataType::float(32))
}

/// What the functions of a module are made of besides their casts.
#[derive(Clone, Copy, PartialEq)]
enum Block {
    Dataflow,
    Plain,
}

/// A function of an input and a weight, of each of which a cast binds the number of rows.
fn casting(b: &mut BlockBuilder, block: Block, attrs: Attrs) -> Ref<Function> {
    let open = || Type::tensor_ndim(2, DataType::float(32));
    let (x, w) = (Var::new("x", open()), Var::new("w", open()));
    b.function::<BuildError>(vec![x.clone(), w.clone()], attrs, |b| {
        if block == Block::Dataflow {
            b.begin_dataflow()?;
        }
        let origin = b.set_origin(Some(Span::of_node("Squeeze `s`")));
        let mut cast = |rows: &str, value: Ref<Var>| {
            let rows = PrimExpr::Var(Var::new(rows, Type::prim(DataType::int(64))));
            b.match_cast_with(vec![NOTE.to_owned()], value, matrix(rows))
        };
        let (x, w) = (cast("n", x)?, cast("m", w)?);
        b.set_origin(origin);
        let x = b.op("nn.relu", [x], Attrs::new())?;
        let w = b.op("nn.relu", [w], Attrs::new())?;
        let pair = Expr::tuple([x, w]);
        if block == Block::Dataflow {
            let pair = b.emit_output(pair)?;
            b.end_dataflow()?;
            return Ok(pair);
        }
        b.emit(pair)
    })
    .expect("the function is right")
}

/// Functions with casts, with and without dataflow blocks, and one that calls a private one of them.
fn module() -> IRModule {
    let mut b = BlockBuilder::new();
    let own = |name: &str| Attrs::new().with("global_symbol", name).with("num_input", 1i64);
    for (name, block) in [("flow", Block::Dataflow), ("plain", Block::Plain)] {
        let function = casting(&mut b, block, own(name));
        b.module_mut().insert(name, function);
    }
    let private = casting(&mut b, Block::Dataflow, Attrs::new());
    let ty = private.ret_ty.clone();
    let callee = b.add_function(private, "private");
    let open = || Type::tensor_ndim(2, DataType::float(32));
    let (x, w) = (Var::new("x", open()), Var::new("w", open()));
    let main = b
        .function::<BuildError>(vec![x.clone(), w.clone()], own("main"), |b| {
            b.begin_dataflow()?;
            let args = vec![Expr::Var(x), Expr::Var(w)];
            let pair = b.emit(Ref::new(Call {
                op: callee.into(),
                args,
                attrs: Attrs::new(),
                ty_args: Vec::new(),
                ty,
                span: None,
            }))?;
            let pair = b.emit_output(pair)?;
            b.end_dataflow()?;
            Ok(pair)
        })
        .expect("the function is right");
    b.module_mut().insert("main", main);
    b.finish()
}

/// The casts of [`casting`], wherever they are.
#[derive(Default)]
struct Casts(Vec<Ref<MatchCast>>);

impl ExprVisitor for Casts {
    fn visit_binding(&mut self, binding: &Binding) {
        if let Binding::MatchCast(cast) = binding
            && let Type::Tensor(ty) = &cast.ty
            && ty.shape.as_ref().and_then(|dims| dims.last()).is_some_and(|columns| columns.is_int(COLUMNS))
        {
            self.0.push(cast.clone());
        }
        self.visit_expr(binding.value());
    }
}

fn casts(module: &IRModule) -> Vec<Ref<MatchCast>> {
    let mut found = Casts::default();
    for (_, function) in module.functions_of::<Function>() {
        found.visit_seq(&function.body);
    }
    found.0
}

#[test]
fn every_pass_keeps_what_casts_say() {
    let (mut changed, mut lost) = (BTreeSet::new(), Vec::new());
    for info in transform::all_passes() {
        let before = module();
        let Ok(pass) = info.make(&Attrs::new()) else { continue };
        let Ok(after) = pass.run(before.clone(), &PassContext::default()) else { continue };
        let left = casts(&after);
        if left.iter().any(|cast| casts(&before).iter().all(|old| !Ref::ptr_eq(old, cast))) {
            changed.insert(info.name);
        }
        let says = |cast: &MatchCast| cast.var.span().is_some_and(|span| span.is_node() && span.notes == [NOTE]);
        lost.extend(left.iter().filter(|cast| !says(cast)).map(|cast| format!("{}: {}", info.name, cast.var.name())));
    }
    assert!(lost.is_empty(), "{lost:#?}");
    // These make the casts anew.
    for name in ["ConvertToDataflow", "InlinePrivateFunctions", "LiftTransformParams", "LazyGetInput", "ToNonDataflow"]
    {
        assert!(changed.contains(name), "{name} is not among {changed:?}");
    }
}
