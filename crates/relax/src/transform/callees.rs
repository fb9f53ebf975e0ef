//! Which functions of the module a program mentions.

use std::collections::HashSet;

use relaxide_ir::IRModule;
use relaxide_tir::PrimFunc;

use crate::*;

/// The functions of the module that a sequence mentions.
pub fn callees(seq: &SeqExpr) -> HashSet<String> {
    struct Names(HashSet<String>);
    impl ExprVisitor for Names {
        fn visit_expr(&mut self, e: &Expr) {
            if let Expr::Global(g) = e {
                self.0.insert(g.name.clone());
            }
            self.walk_expr(e);
        }
    }
    let mut names = Names(HashSet::new());
    names.visit_seq(seq);
    names.0
}

/// Drops those kernels among the candidates that are private and that nothing mentions any more.
pub fn drop_uncalled(module: &mut IRModule, candidates: &HashSet<String>) {
    let still: HashSet<String> = module.functions_of::<Function>().flat_map(|(_, f)| callees(&f.body)).collect();
    module.functions.retain(|name, func| {
        let private = func.downcast::<PrimFunc>().is_some_and(|f| f.global_symbol().is_none());
        !(private && candidates.contains(name) && !still.contains(name))
    });
}
