//! [`IndexMap`]: how the index of an element changes where a tensor is laid out anew.

mod inverse;

use relaxide_ffi::{Object, ObjectRef, Ref};
use relaxide_ir::Var;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, BinaryOp, PrimExpr, VarMap, substitute};

pub use inverse::Inverse;

/// A map from indices to indices, as `lambda i, j: (i, j // 4, j % 4)`.
#[derive(Object, Debug)]
#[object(key = "tirx.IndexMap")]
pub struct IndexMap {
    /// The index in the old layout.
    #[field(def)]
    pub initial_indices: Vec<Ref<Var>>,
    /// The index in the new one, over the old.
    pub final_indices: Vec<PrimExpr>,
    /// The map back, where somebody has worked it out.
    pub inverse_index_map: Option<ObjectRef>,
}

impl IndexMap {
    /// The same map over variables of its own: two operators do not share one.
    pub fn renewed(&self) -> IndexMap {
        let vars: Vec<Ref<Var>> = self.initial_indices.iter().map(|v| Var::new(v.name.clone(), v.ty.clone())).collect();
        let map: VarMap = self.initial_indices.iter().cloned().zip(vars.iter().map(PrimExpr::from)).collect();
        let final_indices = self.final_indices.iter().map(|e| substitute(e, &map)).collect();
        IndexMap { initial_indices: vars, final_indices, inverse_index_map: None }
    }

    /// The new index of an element; `None` where the index is of another rank.
    pub fn apply(&self, index: &[PrimExpr]) -> Option<Vec<PrimExpr>> {
        if index.len() != self.initial_indices.len() {
            return None;
        }
        let map: VarMap = self.initial_indices.iter().cloned().zip(index.iter().cloned()).collect();
        Some(self.final_indices.iter().map(|e| substitute(e, &map)).collect())
    }

    /// The new dimensions of a tensor: the largest new index along each, and one more. `None` where it is of another rank, or
    /// where an index is computed in a way of which the largest value is not known.
    pub fn apply_to_shape(&self, dims: &[PrimExpr]) -> Option<Vec<PrimExpr>> {
        if dims.len() != self.initial_indices.len() {
            return None;
        }
        let ranges = Ranges { vars: &self.initial_indices, dims };
        let mut analyzer = Analyzer::new();
        self.final_indices.iter().map(|e| Some(analyzer.simplify(&(ranges.bounds(e)?.1 + 1)))).collect()
    }
}

/// Indices from zero up to dimensions.
struct Ranges<'a> {
    vars: &'a [Ref<Var>],
    dims: &'a [PrimExpr],
}

impl Ranges<'_> {
    /// The least and the largest value.
    fn bounds(&self, e: &PrimExpr) -> Option<(PrimExpr, PrimExpr)> {
        if e.as_int().is_some() {
            return Some((e.clone(), e.clone()));
        }
        match e {
            PrimExpr::Var(var) => {
                let dim = self.vars.iter().position(|v| v == var).and_then(|i| self.dims.get(i));
                // A variable from outside is itself.
                Some(dim.map_or_else(|| (e.clone(), e.clone()), |d| (PrimExpr::from(0), d - 1)))
            }
            PrimExpr::Binary(node) => {
                let ((a0, a1), (b0, b1)) = (self.bounds(&node.a)?, self.bounds(&node.b)?);
                let factor = node.b.as_int();
                match (node.op, factor) {
                    (BinaryOp::Add, _) => Some((a0 + b0, a1 + b1)),
                    (BinaryOp::Sub, _) => Some((a0 - b1, a1 - b0)),
                    (BinaryOp::Mul, Some(c)) if c >= 0 => Some((a0 * c, a1 * c)),
                    (BinaryOp::FloorDiv, Some(c)) if c > 0 => Some((prim::floordiv(a0, c), prim::floordiv(a1, c))),
                    // A dimension that is shorter than the factor is filled up to it.
                    (BinaryOp::FloorMod, Some(c)) if c > 0 => Some((PrimExpr::from(0), PrimExpr::from(c - 1))),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_layout_rounds_up() {
        let (i, j, n) = (Var::dim("i"), Var::dim("j"), Var::dim("n"));
        let j_expr = PrimExpr::from(&j);
        let map = IndexMap {
            initial_indices: vec![i.clone(), j],
            final_indices: vec![PrimExpr::from(&i), prim::floordiv(&j_expr, 4), prim::floormod(&j_expr, 4)],
            inverse_index_map: None,
        };
        let shape = map.apply_to_shape(&[PrimExpr::from(&n), 14.into()]).unwrap();
        assert_eq!(shape[0], PrimExpr::from(&n));
        assert_eq!(shape[1..].iter().map(PrimExpr::as_int).collect::<Vec<_>>(), [Some(4), Some(4)]);
        let index = map.apply(&[2.into(), 13.into()]).unwrap();
        assert_eq!(index.iter().map(PrimExpr::as_int).collect::<Vec<_>>(), [Some(2), Some(3), Some(1)]);
        assert!(map.apply(&[2.into()]).is_none());
    }
}
