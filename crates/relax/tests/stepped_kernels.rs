//! To every pass over programs, kernels whose loops have steps are the kernels whose loops count by one.

use relaxide_ffi::{DataType, FreeVars, Ref, structural_equal};
use relaxide_ir::pass::PassContext;
use relaxide_ir::prim::{self, PrimExpr, PrimMutator, VarMap};
use relaxide_ir::{Attrs, BaseFunc, IRModule, Type, Var};
use relaxide_relax::{BlockBuilder, BuildError, Expr, transform};
use relaxide_tir::functor::substitute_stmt;
use relaxide_tir::lower::module_of_unit_steps;
use relaxide_tir::testing::Random;
use relaxide_tir::{For, ForKind, PrimFunc, Stmt, StmtMutator};

/// Gives loops steps: `for i in range(4): f(i)` becomes `for i in range(2, 14, 3): f((i - 2) // 3)`.
struct Stepping {
    random: Random,
    stepped: usize,
}

impl PrimMutator for Stepping {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        e.clone()
    }
}

impl StmtMutator for Stepping {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        let made = self.remake_stmt(stmt);
        let Stmt::For(n) = &made else { return made };
        if n.kind != ForKind::Serial || !n.min.is_int(0) || self.random.one_in(4) {
            return made;
        }
        self.stepped += 1;
        let number = |value: i64| prim::int_of(n.var.dtype(), value);
        let (begin, step) = (self.random.between(0, 3), self.random.between(2, 4));
        let short = self.random.between(0, step - 1);
        let iteration = prim::floordiv(PrimExpr::from(&n.var) - number(begin), number(step));
        let body = substitute_stmt(&n.body, &VarMap::from([(n.var.clone(), iteration)]));
        let extent = &n.extent * number(step) - number(short);
        Ref::new(For { min: number(begin), extent, step: Some(number(step)), body, ..For::clone(n) }).into()
    }
}

/// A program of some operators, random in which and in how many, legalized: kernels that are elementwise, reshapes, reductions and
/// products, of known lengths and of one that has a name.
fn program(random: &mut Random) -> Result<IRModule, BuildError> {
    let n = Var::dim("n");
    let dims = [if random.one_in(2) { PrimExpr::from(&n) } else { 6.into() }, 8.into()];
    let x = Var::new("x", Type::tensor(dims, DataType::float(32)));
    let mut b = BlockBuilder::new();
    let main = b.function::<BuildError>(vec![x.clone()], Attrs::new(), |b| {
        b.begin_dataflow()?;
        let mut value = Expr::Var(x);
        for _ in 0..random.between(2, 5) {
            let of = |name: &str, b: &mut BlockBuilder| b.op(name, [value.clone()], Attrs::new());
            value = match random.below(5) {
                0 => of("nn.relu", b)?,
                1 => of("exp", b)?,
                2 => b.op("add", [value.clone(), value.clone()], Attrs::new())?,
                3 => {
                    let transposed = of("permute_dims", b)?;
                    b.op("permute_dims", [transposed], Attrs::new())?
                }
                _ => b.op("nn.softmax", [value.clone()], Attrs::new())?,
            };
        }
        let result = b.emit_output(value)?;
        b.end_dataflow()?;
        Ok(result)
    })?;
    b.module_mut().insert("main", main);
    Ok(b.finish())
}

fn stepping(module: &IRModule, seed: u64) -> (IRModule, usize) {
    let mut stepping = Stepping { random: Random::new(seed), stepped: 0 };
    let mut made = module.clone();
    for (symbol, kernel) in module.functions_of::<PrimFunc>() {
        let body = stepping.mutate_stmt(&kernel.body);
        made.functions.insert(symbol.to_string(), BaseFunc::from(Ref::new(kernel.with_body(body))));
    }
    (made, stepping.stepped)
}

/// What a pass with its default parameters makes, its loops counting by one; `None` where it wants parameters or refuses.
fn made(pass: &relaxide_ir::pass::PassInfo, module: &IRModule) -> Option<IRModule> {
    let made = pass.run(module.clone(), &PassContext::default()).ok()?;
    Some(module_of_unit_steps(made, pass.name).expect("steps are positive"))
}

#[test]
fn passes_take_steps_for_what_they_are() {
    let mut stepped = 0;
    for seed in 0..8 {
        let module = program(&mut Random::new(seed)).expect("the program is right");
        let legalized = transform::pass("LegalizeOps").expect("it exists").run(module, &PassContext::default());
        let (with_steps, steps) = stepping(&legalized.expect("it is legalized"), seed);
        stepped += steps;
        let unit = module_of_unit_steps(with_steps.clone(), "test").expect("steps are positive");
        // Loops that are timed have numbers which no two kernels share.
        for pass in transform::all_passes().filter(|pass| pass.name != "s_tir.transform.InstrumentProfileIntrinsics") {
            match (made(pass, &with_steps), made(pass, &unit)) {
                (None, None) => {}
                (Some(a), Some(b)) => {
                    let (a, b) = (Ref::new(a), Ref::new(b));
                    let equal = structural_equal(&a, &b, FreeVars::Mapped);
                    assert!(equal.is_ok(), "{} makes another program of steps (seed {seed}): {equal:?}", pass.name);
                }
                (a, _) => panic!("{} refuses one of two (seed {seed}): that with steps: {}", pass.name, a.is_none()),
            }
        }
    }
    assert!(stepped > 20, "{stepped} loops had steps");
}
