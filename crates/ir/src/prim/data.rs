//! What depends on memory, and what on the program's text and its dimensions alone.

use super::{PrimExpr, PrimVisitor};

/// Whether an expression depends on memory or on what a function returns. Such values are data: nobody has promised that
/// arithmetic on them does not overflow, as it is promised of index arithmetic.
pub fn is_data(e: &PrimExpr) -> bool {
    struct Data(bool);
    impl PrimVisitor for Data {
        fn visit_prim(&mut self, e: &PrimExpr) {
            self.0 |= match e {
                PrimExpr::Load(_) => true,
                PrimExpr::Call(n) => !matches!(n.op.as_str(), "tirx.if_then_else" | "tirx.likely"),
                _ => false,
            };
            if !self.0 {
                self.walk_prim(e);
            }
        }
    }
    let mut data = Data(false);
    data.visit_prim(e);
    data.0
}
