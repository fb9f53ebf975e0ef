//! Statements of computes that no expression over axes can say: sorts, scans, selections in order.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{Buffer, Var};
use relaxide_tir::Stmt;

/// Fresh axes over a shape, as variables and as an index.
pub fn axes(dims: &[PrimExpr], name: &str) -> (Vec<Ref<Var>>, Vec<PrimExpr>) {
    let vars: Vec<Ref<Var>> = (0..dims.len()).map(|i| Var::dim(format!("{name}{i}"))).collect();
    let at = vars.iter().map(PrimExpr::from).collect();
    (vars, at)
}

/// Loops over every axis.
pub fn nest(vars: &[Ref<Var>], dims: &[PrimExpr], body: Stmt) -> Stmt {
    vars.iter().zip(dims).rev().fold(body, |body, (var, dim)| Stmt::serial(var.clone(), dim.clone(), body))
}

/// A number that statements change: an element of a buffer.
#[derive(Clone)]
pub struct Cell {
    buffer: Ref<Buffer>,
    at: i64,
}

impl Cell {
    /// Element `at` of a buffer of one dimension.
    pub fn new(buffer: &Ref<Buffer>, at: i64) -> Cell {
        Cell { buffer: buffer.clone(), at }
    }

    /// Its value.
    pub fn get(&self) -> PrimExpr {
        prim::load(&self.buffer, [self.at])
    }

    /// Changes it.
    pub fn set(&self, value: impl Into<PrimExpr>) -> Stmt {
        Stmt::store(&self.buffer, [self.at], prim::cast(self.buffer.dtype, value.into()))
    }

    /// Makes it larger by one.
    pub fn next(&self) -> Stmt {
        self.set(self.get() + prim::constant(self.buffer.dtype, 1.0))
    }
}
