//! Several panels of a matrix at once, where the rows are so few that the vectors of one panel do not cover the latency of multiply-adds.
//!
//! ```text
//! for group of 4 panels of 16 columns:
//!     for k:  a = A(m, k);  for j in 0 .. 8:  acc[j] += a * B[4 group + j / 2, k, 8 (j % 2) ..]
//!     C(m, 64 group ..) = epilogue(acc)
//! ```
//!
//! The columns of a group are one axis, so that what is done with the sums is as before. Each panel is still read from its beginning to its end.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{PrimExpr, VarMap, add, floordiv, floormod, int, mul, sub, substitute};

use super::super::contraction::Contraction;
use super::super::register_tile::ONE_ROW_VECTORS;
use crate::schedule::Axis;
use crate::schedule::affine::same;

/// Numbers of panels of a group, the best first.
const PANELS: [i64; 2] = [4, 2];

/// Panels of a group, whose columns are one axis.
#[derive(Clone, Debug)]
pub(super) struct PanelGroup {
    /// The axis of the panels, in the matrix alone.
    panel: Ref<Var>,
    /// The first panel of a group.
    first: PrimExpr,
    /// Columns of a panel.
    width: i64,
}

impl PanelGroup {
    /// A product with so many rows whose panels are taken several at a time, if it has too few rows for one.
    pub(super) fn of(c: &Contraction, rows: i64, lanes: i64) -> Option<(Contraction, PanelGroup)> {
        let ([panel], Some(width)) = (c.columns.as_slice(), c.x.extent.as_int()) else { return None };
        let count = panel.extent.as_int()?;
        if width % lanes != 0 || !c.column_is_panel(width) || !are_one_axis(c, panel, width) {
            return None;
        }
        let most = ONE_ROW_VECTORS / rows.max(1);
        let fits = |panels: &i64| count % panels == 0 && panels * width / lanes <= most;
        let panels = PANELS.into_iter().find(fits)?;
        let group = Axis { var: Var::dim("group"), extent: int(count / panels) };
        let first = mul(PrimExpr::from(&group.var), int(panels));
        let own = PanelGroup { panel: panel.var.clone(), first: first.clone(), width };
        let mut grouped = c.clone();
        grouped.x.extent = int(panels * width);
        grouped.columns = vec![group.clone()];
        let map: VarMap = [(panel.var.clone(), first)].into();
        let reduce = &mut grouped.reduce;
        reduce.epilogue = substitute(&reduce.epilogue, &map);
        reduce.indices = reduce.indices.iter().map(|index| substitute(index, &map)).collect();
        for axis in &mut reduce.stage.spatial {
            if axis.var == panel.var {
                *axis = group.clone();
            } else if axis.var == c.x.var {
                axis.extent = grouped.x.extent.clone();
            }
        }
        Some((grouped, own))
    }

    /// Where a column of the group lies: which panel it is in goes into the map.
    pub(super) fn place(&self, column: &PrimExpr, map: &mut VarMap) -> PrimExpr {
        map.insert(self.panel.clone(), add(&self.first, floordiv(column, int(self.width))));
        floormod(column, int(self.width))
    }
}

/// Whether a product's results depend on panel and column by the number of the column in the matrix alone.
fn are_one_axis(c: &Contraction, panel: &Axis, width: i64) -> bool {
    let next: VarMap = [
        (panel.var.clone(), add(PrimExpr::from(&panel.var), int(1))),
        (c.x.var.clone(), sub(PrimExpr::from(&c.x.var), int(width))),
    ]
    .into();
    let mut analyzer = Analyzer::new();
    let mut is_one = |e: &PrimExpr| same(&analyzer.simplify(e), &analyzer.simplify(&substitute(e, &next)));
    c.reduce.indices.iter().all(&mut is_one) && is_one(&c.reduce.epilogue)
}
