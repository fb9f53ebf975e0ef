//! Probabilities of classes from those of pairs of them.
//!
//! `r[i, j]` is how likely class `i` is where only `i` and `j` are possible. What is looked for are the probabilities `p` that
//! contradict these least: the least `Σ (r[j, i] p[i] - r[i, j] p[j])²` with `Σ p = 1`. It is found step by step, one class
//! after the other, until no class is further from the solution than a small part:
//!
//! ```text
//! q[t, t] = Σ r[j, t]²        q[t, j] = -r[j, t] r[t, j]
//! repeat at most max(100, classes) times:
//!     g = q p;  s = p · g
//!     stop if all |g[t] - s| < 0.005 / classes
//!     for t in classes:
//!         d = (s - g[t]) / q[t, t]
//!         p[t] += d;  s = (s + d (d q[t, t] + 2 g[t])) / (1 + d)²
//!         g = (g + d q[t]) / (1 + d);  p = p / (1 + d)
//! ```
//!
//! Source: Wu, Lin, Weng, *Probability Estimates for Multi-class Classification by Pairwise Coupling*, 2004, algorithm 2. The
//! result depends on where it stops, so the limits are those that other implementations have.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{Buffer, Var};
use relaxide_relax::Expr;
use relaxide_tir::{ForKind, Stmt, te};

use crate::error::NodeError;
use crate::scope::Scope;

const FLOAT: DataType = DataType::float(32);
const LEAST_ITERATIONS: i64 = 100;
const NEAR: f64 = 0.005;

/// Probabilities, a column for each class, from `[rows, classes, classes]` of pairs.
pub fn coupled(scope: &mut Scope, pairs: Expr, classes: i64) -> Result<Expr, NodeError> {
    let rows = scope.dims(&pairs)?.into_iter().next().ok_or_else(|| NodeError::invalid("there are no rows"))?;
    let k = prim::int(classes);
    let outs = [
        ("p".to_string(), vec![rows.clone(), k.clone()], FLOAT),
        ("q".to_string(), vec![rows.clone(), k.clone(), k.clone()], FLOAT),
        ("g".to_string(), vec![rows.clone(), k], FLOAT),
        ("cells".to_string(), vec![rows.clone(), prim::int(4)], FLOAT),
    ];
    let result = scope.te("coupled", vec![pairs], |inputs| {
        te::extern_stage("coupled", inputs, outs, |source, target| {
            let row = Var::dim("n");
            let body = RowStatements { classes, row: PrimExpr::from(&row), pairs: &source[0], target }.body();
            Stmt::for_loop(ForKind::Parallel, row, rows, body)
        })
    })?;
    scope.emit(Expr::field(result, 0))
}

/// The statements for one row.
struct RowStatements<'a> {
    classes: i64,
    row: PrimExpr,
    pairs: &'a Ref<Buffer>,
    target: &'a [Ref<Buffer>],
}

/// Numbers of a row.
#[derive(Clone, Copy)]
enum Cell {
    /// `p · q p`.
    Product = 0,
    /// How far the furthest class is.
    Furthest = 1,
    /// 1 until the solution is near.
    Going = 2,
    /// The step of a class.
    Step = 3,
}

fn number(value: f64) -> PrimExpr {
    prim::constant(FLOAT, value)
}

impl RowStatements<'_> {
    fn each(&self, name: &str, body: impl FnOnce(&PrimExpr) -> Stmt) -> Stmt {
        Stmt::each(name, self.classes, body)
    }

    fn r(&self, i: &PrimExpr, j: &PrimExpr) -> PrimExpr {
        prim::load(self.pairs, [self.row.clone(), i.clone(), j.clone()])
    }

    fn p(&self, t: &PrimExpr) -> PrimExpr {
        prim::load(&self.target[0], [self.row.clone(), t.clone()])
    }

    fn set_p(&self, t: &PrimExpr, value: PrimExpr) -> Stmt {
        Stmt::store(&self.target[0], [self.row.clone(), t.clone()], value)
    }

    fn q(&self, t: &PrimExpr, j: &PrimExpr) -> PrimExpr {
        prim::load(&self.target[1], [self.row.clone(), t.clone(), j.clone()])
    }

    fn set_q(&self, t: &PrimExpr, j: &PrimExpr, value: PrimExpr) -> Stmt {
        Stmt::store(&self.target[1], [self.row.clone(), t.clone(), j.clone()], value)
    }

    fn g(&self, t: &PrimExpr) -> PrimExpr {
        prim::load(&self.target[2], [self.row.clone(), t.clone()])
    }

    fn set_g(&self, t: &PrimExpr, value: PrimExpr) -> Stmt {
        Stmt::store(&self.target[2], [self.row.clone(), t.clone()], value)
    }

    fn cell(&self, cell: Cell) -> PrimExpr {
        prim::load(&self.target[3], [self.row.clone(), prim::int(cell as i64)])
    }

    fn set(&self, cell: Cell, value: PrimExpr) -> Stmt {
        Stmt::store(&self.target[3], [self.row.clone(), prim::int(cell as i64)], value)
    }

    fn body(&self) -> Stmt {
        let start = self.each("t", |t| self.set_p(t, number(1.0 / self.classes as f64)));
        let going = prim::gt(self.cell(Cell::Going), number(0.0));
        let iteration = Stmt::when(going.clone(), Stmt::seq([self.measure(), Stmt::when(going, self.improve())]));
        let iterations = Stmt::each("iteration", self.classes.max(LEAST_ITERATIONS), |_| iteration);
        Stmt::seq([start, self.products(), self.set(Cell::Going, number(1.0)), iterations])
    }

    fn products(&self) -> Stmt {
        self.each("t", |t| {
            let apart = self.each("j", |j| self.set_q(t, j, number(0.0) - self.r(j, t) * self.r(t, j)));
            let squares = self.each("j", |j| {
                let square = self.r(j, t) * self.r(j, t);
                Stmt::when(prim::ne(j, t), self.set_q(t, t, self.q(t, t) + square))
            });
            Stmt::seq([apart, self.set_q(t, t, number(0.0)), squares])
        })
    }

    /// How far the solution is; it stops going where that is little.
    fn measure(&self) -> Stmt {
        let gradient = self.each("t", |t| {
            let sum = self.each("j", |j| self.set_g(t, self.g(t) + self.q(t, j) * self.p(j)));
            let whole = self.set(Cell::Product, self.cell(Cell::Product) + self.p(t) * self.g(t));
            Stmt::seq([self.set_g(t, number(0.0)), sum, whole])
        });
        let furthest = self.each("t", |t| {
            let apart = prim::math("fabs", self.g(t) - self.cell(Cell::Product));
            self.set(Cell::Furthest, prim::max(self.cell(Cell::Furthest), apart))
        });
        let near = prim::lt(self.cell(Cell::Furthest), number(NEAR / self.classes as f64));
        Stmt::seq([
            self.set(Cell::Product, number(0.0)),
            gradient,
            self.set(Cell::Furthest, number(0.0)),
            furthest,
            Stmt::when(near, self.set(Cell::Going, number(0.0))),
        ])
    }

    fn improve(&self) -> Stmt {
        self.each("t", |t| {
            let step = || self.cell(Cell::Step);
            let rest = || step() + number(1.0);
            let product = self.cell(Cell::Product);
            let moved = product.clone() + step() * (step() * self.q(t, t) + number(2.0) * self.g(t));
            let scaled = self.each("j", |j| {
                let gradient = prim::div(self.g(j) + step() * self.q(t, j), rest());
                Stmt::seq([self.set_g(j, gradient), self.set_p(j, prim::div(self.p(j), rest()))])
            });
            Stmt::seq([
                self.set(Cell::Step, prim::div(product - self.g(t), self.q(t, t))),
                self.set_p(t, self.p(t) + step()),
                self.set(Cell::Product, prim::div(moved, rest() * rest())),
                scaled,
            ])
        })
    }
}
