//! `Inverse` of matrices, and `Unique` as ONNX had it first.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::Buffer;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::{Stmt, te};

use crate::dims;
use crate::error::NodeError;
use crate::node::Node;
use crate::ops::{Outputs, one, order};
use crate::scope::Scope;

/// `Unique` of a vector: elements in the order of their first occurrence, for each element the place of its like, and counts.
pub fn unique(scope: &mut Scope, node: &Node) -> Outputs {
    let found = order::unique_in(scope, node, order::Arrangement::First)?;
    let mut found = found.into_iter();
    let elements = found.next();
    Ok(elements.into_iter().chain(found.skip(1)).collect())
}

/// `Inverse`: elimination with the largest pivot of each column, in the type of the elements or float32.
///
/// ```text
/// for each matrix:
///     left, right = x, 1
///     for c in columns:
///         swap row c with that below it which has the largest element in column c
///         divide row c by its element in column c
///         subtract multiples of it from all other rows, so that they are zero in column c
///     the result is right
/// ```
pub fn inverse(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let shape = scope.dims(&x)?;
    let dtype = scope.dtype(&x);
    let work = if dtype.bits < 32 { DataType::float(32) } else { dtype };
    let Some((front, [rows, columns])) = shape.split_last_chunk::<2>().map(|(front, last)| (front.to_vec(), last))
    else {
        return Err(NodeError::invalid("the input is no matrix"));
    };
    if !dims::equal(rows, columns) {
        return Err(NodeError::invalid(format!("a matrix of {rows} rows and {columns} columns has no inverse")));
    }
    let (count, size) = (dims::product(&front), rows.clone());
    let square = vec![count.clone(), size.clone(), size.clone()];
    let x = scope.reshape(x, square.clone())?;
    let x = scope.cast(x, work)?;
    let outs = [
        ("right".to_string(), square.clone(), work),
        ("left".to_string(), square, work),
        ("pivot".to_string(), vec![count.clone()], DataType::int(64)),
        ("factor".to_string(), vec![count.clone()], work),
    ];
    let result = scope.te("inverse", vec![x], |inputs| {
        te::extern_stage("inverse", inputs, outs, |source, target| {
            Stmt::each("b", &count, |b| {
                Elimination { source: &source[0], target, b: b.clone(), n: size.clone(), work }.body()
            })
        })
    })?;
    let y = scope.emit(Expr::field(result, 0))?;
    let y = scope.cast(y, dtype)?;
    one(scope.reshape(y, shape)?)
}

/// The statements for one matrix.
struct Elimination<'a> {
    source: &'a Ref<Buffer>,
    target: &'a [Ref<Buffer>],
    b: PrimExpr,
    n: PrimExpr,
    work: DataType,
}

const RIGHT: usize = 0;
const LEFT: usize = 1;

impl Elimination<'_> {
    fn cell(&self, i: &PrimExpr, j: &PrimExpr) -> [PrimExpr; 3] {
        [self.b.clone(), i.clone(), j.clone()]
    }

    fn at(&self, side: usize, i: &PrimExpr, j: &PrimExpr) -> PrimExpr {
        prim::load(&self.target[side], self.cell(i, j))
    }

    fn set(&self, side: usize, i: &PrimExpr, j: &PrimExpr, value: PrimExpr) -> Stmt {
        Stmt::store(&self.target[side], self.cell(i, j), value)
    }

    fn number(&self, value: f64) -> PrimExpr {
        prim::constant(self.work, value)
    }

    fn pivot(&self) -> PrimExpr {
        prim::load(&self.target[2], [self.b.clone()])
    }

    fn factor(&self) -> PrimExpr {
        prim::load(&self.target[3], [self.b.clone()])
    }

    fn set_factor(&self, value: PrimExpr) -> Stmt {
        Stmt::store(&self.target[3], [self.b.clone()], value)
    }

    /// Something for each column of either side.
    fn along(&self, f: impl Fn(usize, &PrimExpr) -> Stmt) -> Stmt {
        Stmt::each("j", &self.n, |j| Stmt::seq([f(LEFT, j), f(RIGHT, j)]))
    }

    fn body(&self) -> Stmt {
        let start = Stmt::each("i", &self.n, |i| {
            Stmt::each("j", &self.n, |j| {
                let unit = prim::select(prim::eq(i, j), self.number(1.0), self.number(0.0));
                let copied = self.set(LEFT, i, j, prim::load(self.source, self.cell(i, j)));
                Stmt::seq([copied, self.set(RIGHT, i, j, unit)])
            })
        });
        let columns =
            Stmt::each("c", &self.n, |c| Stmt::seq([self.find(c), self.swap(c), self.scale(c), self.clear(c)]));
        Stmt::seq([start, columns])
    }

    /// The row from `c` on with the largest element in column `c`.
    fn find(&self, c: &PrimExpr) -> Stmt {
        let size = |i: &PrimExpr| prim::math("fabs", self.at(LEFT, i, c));
        let set = |i: &PrimExpr| Stmt::store(&self.target[2], [self.b.clone()], i.clone());
        let larger = |i: &PrimExpr| prim::and(prim::gt(i, c), prim::gt(size(i), size(&self.pivot())));
        Stmt::seq([set(c), Stmt::each("i", &self.n, |i| Stmt::when(larger(i), set(i)))])
    }

    fn swap(&self, c: &PrimExpr) -> Stmt {
        let rows = self.along(|side, j| {
            let kept = self.set_factor(self.at(side, c, j));
            let up = self.set(side, c, j, self.at(side, &self.pivot(), j));
            Stmt::seq([kept, up, self.set(side, &self.pivot(), j, self.factor())])
        });
        Stmt::when(prim::ne(self.pivot(), c), rows)
    }

    fn scale(&self, c: &PrimExpr) -> Stmt {
        let divided = self.along(|side, j| self.set(side, c, j, prim::div(self.at(side, c, j), self.factor())));
        Stmt::seq([self.set_factor(self.at(LEFT, c, c)), divided])
    }

    fn clear(&self, c: &PrimExpr) -> Stmt {
        Stmt::each("i", &self.n, |i| {
            let less =
                self.along(|side, j| self.set(side, i, j, self.at(side, i, j) - self.factor() * self.at(side, c, j)));
            Stmt::when(prim::ne(i, c), Stmt::seq([self.set_factor(self.at(LEFT, i, c)), less]))
        })
    }
}
