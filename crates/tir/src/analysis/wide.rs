//! Index arithmetic in 64 bits.
//!
//! Counters and dimensions may have 32 bits, and then so has what is computed of them. An index into more than 2^31 elements
//! does not fit that, nor does the product of two such dimensions:
//!
//! ```text
//! i * 65536 + j     of 32 bits     ->     int64(i) * 65536 + int64(j)
//! ```
//!
//! The conversion goes to the leaves, so nothing in between can overflow. What depends on memory is data and keeps its type,
//! in which it may be meant to wrap around.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, BinaryOp, Let, PrimExpr, PrimMutator, VarMap, is_data};
use relaxide_ir::{Buffer, Var};

use crate::functor::StmtMutator;
use crate::stmt::{BufferStore, For, Stmt};

/// What indices are computed in where fewer bits may not do.
const WIDE: DataType = DataType::int(64);

/// An index computed in 64 bits.
pub fn in_64_bits(e: &PrimExpr) -> PrimExpr {
    let wide = WIDE.with_lanes(e.dtype().lanes);
    if is_data(e) {
        return prim::cast(wide, e.clone());
    }
    match e {
        PrimExpr::Cast(n) if n.dtype == wide && n.value.dtype().is_int() => in_64_bits(&n.value),
        PrimExpr::Ramp(n) => prim::ramp(in_64_bits(&n.base), in_64_bits(&n.stride), n.lanes),
        PrimExpr::Broadcast(n) => prim::broadcast(in_64_bits(&n.value), n.lanes),
        PrimExpr::Binary(n) if e.dtype().is_int() && n.op != BinaryOp::And && n.op != BinaryOp::Or => {
            prim::binary(n.op, in_64_bits(&n.a), in_64_bits(&n.b))
        }
        _ => prim::cast(wide, e.clone()),
    }
}

/// Whether an integer expression, whose value is at least zero, is known to be no more than a signed type of so many bits holds.
pub fn fits(e: &PrimExpr, bits: u8, analyzer: &mut Analyzer) -> bool {
    let max = analyzer.bounds(&in_64_bits(e)).max;
    bits >= 64 || max.is_some_and(|max| prim::holds(DataType::int(bits), max))
}

/// Whether every flat index into a buffer is known to fit a signed type of so many bits.
pub fn holds_indices_of(buffer: &Buffer, bits: u8, analyzer: &mut Analyzer) -> bool {
    if bits >= 64 {
        return true;
    }
    // An extent fits its own type, whatever its value.
    if let ([extent], [] | [_]) = (buffer.shape.as_slice(), buffer.strides.as_slice())
        && extent.dtype().bits <= bits
        && extent.as_var().is_some()
        && buffer.strides.iter().all(|stride| stride.is_int(1))
    {
        return true;
    }
    if buffer.strides.is_empty() {
        let count = buffer.shape.iter().fold(prim::int(1), |count, d| count * in_64_bits(d));
        return fits(&count, bits, analyzer);
    }
    // Some strides may be negative; no part of the sum may leave the type either.
    let mut stays_within = |sign: i64| {
        let step = |(d, s): (&PrimExpr, &PrimExpr)| in_64_bits(d) * prim::max(in_64_bits(s) * sign, 0);
        let sum = buffer.shape.iter().zip(&buffer.strides).map(step).fold(prim::int(0), |sum, term| sum + term);
        fits(&sum, bits, analyzer)
    };
    stays_within(1) && stays_within(-1)
}

/// Replaces variables by wider ones. What is stored, bound or passed on keeps its type; a value that something is combined
/// with becomes as wide.
#[derive(Debug, Default)]
pub(crate) struct Widen(pub VarMap);

impl Widen {
    fn kept(&mut self, e: &PrimExpr) -> PrimExpr {
        prim::cast(e.dtype(), self.mutate_prim(e))
    }
}

impl PrimMutator for Widen {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Var(var) => self.0.get(var).cloned().unwrap_or_else(|| e.clone()),
            PrimExpr::Binary(n) => {
                let (a, b) = (self.mutate_prim(&n.a), self.mutate_prim(&n.b));
                if a == n.a && b == n.b {
                    return e.clone();
                }
                match a.dtype() == n.a.dtype() && b.dtype() == n.b.dtype() {
                    true => prim::binary(n.op, a, b),
                    false => prim::binary(n.op, in_64_bits(&a), in_64_bits(&b)),
                }
            }
            PrimExpr::Call(n) => {
                let args: Vec<PrimExpr> = n.args.iter().map(|arg| self.kept(arg)).collect();
                if args == n.args { e.clone() } else { prim::call(n.dtype, n.op.clone(), args) }
            }
            PrimExpr::Let(n) => {
                let (value, body) = (self.kept(&n.value), self.mutate_prim(&n.body));
                Ref::new(Let { var: n.var.clone(), value, body }).into()
            }
            _ => self.remake_prim(e),
        }
    }
}

impl StmtMutator for Widen {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::Store(n) => {
                let value = self.kept(&n.value);
                let indices = self.mutate_prims(&n.indices);
                let predicate = n.predicate.as_ref().map(|p| self.mutate_prim(p));
                Ref::new(BufferStore { buffer: n.buffer.clone(), value, indices, predicate }).into()
            }
            Stmt::Bind(n) => Stmt::bind(n.var.clone(), self.kept(&n.value)),
            Stmt::For(n) => {
                let (min, extent) = (self.kept(&n.min), self.kept(&n.extent));
                let body = self.mutate_stmt(&n.body);
                Ref::new(For { min, extent, body, ..For::clone(n) }).into()
            }
            _ => self.remake_stmt(stmt),
        }
    }
}

/// A variable of 64 bits in place of another.
pub(crate) fn wider(var: &Ref<Var>) -> Ref<Var> {
    Var::prim(var.name.clone(), WIDE)
}
