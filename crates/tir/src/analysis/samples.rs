//! Kernels for the tests of analyses and schedules.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::prim::{self, PrimExpr, PrimVisitor};

use crate::functor::StmtVisitor;
pub use crate::s_tir::state::copy_block as copy;
use crate::stmt::*;
use crate::{PrimFunc, te};

const F32: DataType = DataType::float(32);

/// `C = A @ B`, of `n × n`.
pub fn matmul(n: i64) -> PrimFunc {
    let (a, b) = (te::placeholder("A", [n, n], F32), te::placeholder("B", [n, n], F32));
    let k = te::reduce_axis(n);
    let product = |i: &[PrimExpr]| a.at(&[i[0].clone(), k.var()]) * b.at(&[k.var(), i[1].clone()]);
    let c = te::compute("C", [n, n], |i| te::sum(product(i), [&k]));
    te::create_prim_func(&[a.clone(), b.clone(), c]).unwrap()
}

/// `B = A * 2`, then `C = B + 1`, of `n × n`.
pub fn chain(n: i64) -> PrimFunc {
    let a = te::placeholder("A", [n, n], F32);
    let b = te::compute("B", [n, n], |i| a.at(i) * prim::float_of(F32, 2.0));
    let c = te::compute("C", [n, n], |i| b.at(i) + prim::float_of(F32, 1.0));
    te::create_prim_func(&[a, c]).unwrap()
}

/// The block of a name.
pub fn block(func: &PrimFunc, name: &str) -> Ref<SBlock> {
    struct Find<'a>(&'a str, Option<Ref<SBlock>>);
    impl PrimVisitor for Find<'_> {}
    impl StmtVisitor for Find<'_> {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            if let Stmt::Block(n) = stmt
                && n.block.name == self.0
            {
                self.1 = Some(n.block.clone());
            }
            self.walk_stmt(stmt);
        }
    }
    let mut find = Find(name, None);
    find.visit_stmt(&func.body);
    find.1.unwrap()
}
