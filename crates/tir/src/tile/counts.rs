//! Whether the scope ids of a kernel can be true together: units of units are as many as the units of the whole.

use std::collections::HashMap;

use relaxide_ir::layout::ScopeBinding;
use relaxide_ir::prim::PrimVisitor;

use crate::functor::StmtVisitor;
use crate::{PrimFunc, Stmt};

/// Units within a whole that are those of a part, for each of the parts.
const PRODUCTS: [[ScopeBinding; 3]; 5] = [
    [ScopeBinding::KernelCta, ScopeBinding::KernelCluster, ScopeBinding::ClusterCta],
    [ScopeBinding::CtaThread, ScopeBinding::CtaWarp, ScopeBinding::WarpThread],
    [ScopeBinding::CtaThread, ScopeBinding::CtaWarpgroup, ScopeBinding::WarpgroupThread],
    [ScopeBinding::CtaWarp, ScopeBinding::CtaWarpgroup, ScopeBinding::WarpgroupWarp],
    [ScopeBinding::WarpgroupThread, ScopeBinding::WarpgroupWarp, ScopeBinding::WarpThread],
];

/// Why the numbers of a kernel's scope ids contradict each other; nothing where they do not, as far as they are numbers.
pub fn contradiction(func: &PrimFunc) -> Option<String> {
    let mut counts = Counts::default();
    counts.visit_stmt(&func.body);
    PRODUCTS.iter().find_map(|[whole, outer, inner]| {
        let total = *counts.0.get(whole)?;
        let (outer_count, inner_count) = (counts.0.get(outer), counts.0.get(inner));
        let said = |binding: &ScopeBinding, count: i64| {
            format!("{count} units of {} in a {}", binding.cur(), binding.parent())
        };
        match (outer_count, inner_count) {
            (Some(a), Some(b)) if a.checked_mul(*b) != Some(total) => {
                Some(format!("{} are not {} by {}", said(whole, total), said(outer, *a), said(inner, *b)))
            }
            (Some(part), None) if total % part.max(&1) != 0 => {
                Some(format!("{} are no multiple of {}", said(whole, total), said(outer, *part)))
            }
            (None, Some(part)) if total % part.max(&1) != 0 => {
                Some(format!("{} are no multiple of {}", said(whole, total), said(inner, *part)))
            }
            _ => None,
        }
    })
}

/// How many units each binding counts, where that is a number.
#[derive(Default)]
struct Counts(HashMap<ScopeBinding, i64>);

impl PrimVisitor for Counts {}
impl StmtVisitor for Counts {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        if let Stmt::ScopeIds(n) = stmt
            && let Some(extents) = &n.def.extents
            && let Some(count) = extents.iter().try_fold(1i64, |count, e| count.checked_mul(e.as_int()?))
        {
            self.0.insert(n.def.scope, count);
        }
        self.walk_stmt(stmt);
    }
}

#[cfg(test)]
mod tests {
    use relaxide_ffi::{DataType, Ref};
    use relaxide_ir::layout::ScopeIdDef;
    use relaxide_ir::{Attrs, Type, Var, prim};

    use super::*;
    use crate::tile::ScopeIdDefStmt;

    fn kernel(ids: &[(ScopeBinding, i64)]) -> PrimFunc {
        let define = |(binding, count): &(ScopeBinding, i64)| {
            let var = Var::prim("v", DataType::int(32));
            let extents = Some(vec![prim::int_of(DataType::int(32), *count)]);
            let def = ScopeIdDef::new(vec![var], extents, *binding, None).unwrap();
            Stmt::ScopeIds(Ref::new(ScopeIdDefStmt { def: Ref::new(def) }))
        };
        let body = Stmt::seq(ids.iter().map(define));
        PrimFunc { params: vec![], ret_type: Type::void(), buffers: vec![], attrs: Attrs::new(), body }
    }

    #[test]
    fn units_of_units_are_those_of_the_whole() {
        use ScopeBinding::*;
        for (ids, agrees) in [
            (vec![(CtaThread, 128), (CtaWarp, 4), (WarpThread, 32)], true),
            (vec![(CtaThread, 128), (CtaWarp, 4)], true),
            (vec![(CtaThread, 100), (CtaWarp, 3)], false),
            (vec![(CtaThread, 128), (CtaWarp, 2), (WarpThread, 32)], false),
            (vec![(KernelCta, 1), (ClusterCta, 4)], false),
            (vec![(KernelCta, 8), (ClusterCta, 2), (KernelCluster, 4)], true),
            (vec![(CtaWarpgroup, 2), (WarpgroupThread, 128), (CtaThread, 256)], true),
        ] {
            let told = contradiction(&kernel(&ids));
            assert_eq!(told.is_none(), agrees, "{ids:?}: {told:?}");
        }
    }
}
