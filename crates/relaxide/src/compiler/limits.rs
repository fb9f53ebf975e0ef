//! Below what the elements of an integer input have to be: the number of rows of the tables that they choose from.
//!
//! ```text
//! def main(ids: R.Tensor(("n",), "int64")):
//!     lv = R.where(R.less(ids, 0), R.add(ids, 30522), ids)        ==>   ids: below 30522
//!     gv = R.take(table, lv, axis=0)      # table of 30522 rows
//! ```
//!
//! Followed are operators whose elements are those of their argument. Nothing is proven: a program may want smaller numbers for
//! another reason, or none. It is for whoever makes inputs up.

use std::collections::HashMap;

use relaxide_relax::functor::ExprVisitor;
use relaxide_relax::{AnyVar, Binding, Call, Expr, Function};

/// Operators that hand on the elements of their first argument.
const MOVES: &[&str] = &[
    "astype",
    "reshape",
    "flatten",
    "squeeze",
    "expand_dims",
    "permute_dims",
    "broadcast_to",
    "strided_slice",
    "memory.view",
];

/// The limit of each parameter, where the function shows one.
pub(crate) fn below(f: &Function) -> Vec<Option<i64>> {
    let origins = f.params.iter().enumerate().map(|(i, param)| (AnyVar::Var(param.clone()), i)).collect();
    let mut flow = Flow { origins, below: vec![None; f.params.len()] };
    flow.visit_seq(&f.body);
    flow.below
}

struct Flow {
    /// The parameter whose elements a variable has.
    origins: HashMap<AnyVar, usize>,
    below: Vec<Option<i64>>,
}

impl Flow {
    /// The parameter whose elements an expression has.
    fn origin(&self, e: &Expr) -> Option<usize> {
        if let Some(var) = e.as_var() {
            return self.origins.get(&var).copied();
        }
        let (call, op) = e.as_op_call()?;
        match op {
            // Negative indices count from the end: what is chosen otherwise is the input itself.
            "where" => self.origin(call.args.get(2)?),
            op if MOVES.contains(&op) => self.origin(call.args.first()?),
            _ => None,
        }
    }

    fn limit(&mut self, call: &Call, op: &str) -> Option<()> {
        let [table, indices, ..] = &call.args[..] else { return None };
        let axis = match op {
            "take" | "gather_elements" => call.attrs.int("axis"),
            _ => return None,
        };
        let place = self.origin(indices)?;
        let ty = table.ty();
        let dims = ty.as_tensor()?.shape.as_ref()?;
        let axis = usize::try_from(axis.unwrap_or(0)).ok()?;
        let rows = dims.get(axis)?.as_int().filter(|rows| *rows > 0)?;
        let below = self.below.get_mut(place)?;
        *below = Some(below.map_or(rows, |known| known.min(rows)));
        Some(())
    }
}

impl ExprVisitor for Flow {
    fn visit_binding(&mut self, binding: &Binding) {
        if let Some(origin) = self.origin(binding.value()) {
            self.origins.insert(binding.var().clone(), origin);
        }
        self.visit_expr(binding.value());
    }

    fn visit_expr(&mut self, e: &Expr) {
        if let Some((call, op)) = e.as_op_call() {
            // What shows no limit is passed over.
            let _ = self.limit(call, op);
        }
        self.walk_expr(e);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(body: &str) -> Vec<Option<i64>> {
        let text = format!(
            "@I.ir_module\nclass Module:\n    @R.function\n    def main(a: R.Tensor((2, \"n\"), \"int64\"), b: R.Tensor((2,), \
             \"int32\"), t: R.Tensor((7, 5), \"float32\")):\n        with R.dataflow():\n{body}            R.output(gv)\n        return gv\n"
        );
        let module = relaxide_script::parse_module(&text, "test").unwrap();
        below(&module.get_as::<Function>("main").unwrap())
    }

    #[test]
    fn tables_limit_their_indices() {
        let wrapped = "            lv = R.less(a, R.const(0, \"int64\"))\n            lv1 = R.add(a, R.const(7, \"int64\"))\n            \
                       lv2 = R.where(lv, lv1, a)\n            gv = R.take(t, lv2, axis=0)\n";
        assert_eq!(limits(wrapped), [Some(7), None, None]);
        let cast = "            lv = R.astype(b, \"int64\")\n            lv1 = R.take(t, lv, axis=0)\n            \
                    gv = R.take(lv1, R.reshape(b, (2,)), axis=1)\n";
        assert_eq!(limits(cast), [None, Some(5), None]);
        let other = "            lv = R.multiply(b, b)\n            gv = R.take(t, lv, axis=0)\n";
        assert_eq!(limits(other), [None, None, None]);
    }
}
