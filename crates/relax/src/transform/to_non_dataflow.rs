//! ToNonDataflow: dataflow blocks become ordinary ones.
//!
//! The passes behind it write statements with effects (allocations, calls of kernels that write their outputs), which a
//! dataflow block may not hold. Every dataflow variable becomes an ordinary one of the same name.
//!
//! ```text
//! with R.dataflow():                         lv = R.add(x, x)
//!     lv = R.add(x, x)                 →     gv = R.exp(lv)
//!     gv = R.exp(lv)                         return gv
//!     R.output(gv)
//! return gv
//! ```

use relaxide_ffi::Ref;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::{IRModule, Var};

use crate::rewrite::{Action, ExprMap, Rewrite, in_function, replace, rewrite_function};
use crate::*;

pub(super) const PASS: PassInfo =
    PassInfo::new("ToNonDataflow", "Dataflow blocks become ordinary ones.", |module, _, _| run(module));

struct ToNonDataflow {
    map: ExprMap,
}

impl Rewrite for ToNonDataflow {
    fn value(&mut self, b: &mut BlockBuilder, var: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let value = replace(&value, &self.map)?;
        let AnyVar::Dataflow(old) = var else { return Ok(Action::Bind(value)) };
        let new = self.plain(old);
        b.push_binding(Ref::new(VarBinding { var: AnyVar::Var(new), value }).into())?;
        Ok(Action::Drop)
    }

    fn cast(&mut self, b: &mut BlockBuilder, cast: Ref<MatchCast>) -> Result<(), BuildError> {
        let value = replace(&cast.value, &self.map)?;
        let var = match &cast.var {
            AnyVar::Dataflow(old) => AnyVar::Var(self.plain(old)),
            plain => plain.clone(),
        };
        b.push_binding(Ref::new(MatchCast { var, value, ty: cast.ty.clone() }).into())
    }

    fn result(&mut self, _: &mut BlockBuilder, result: Expr) -> Result<Expr, BuildError> {
        replace(&result, &self.map)
    }

    fn keep_dataflow(&self) -> bool {
        false
    }
}

impl ToNonDataflow {
    fn plain(&mut self, old: &Ref<DataflowVar>) -> Ref<Var> {
        let new = Ref::new(Var { name: old.name.clone(), ty: old.ty.clone(), span: old.span.clone() });
        self.map.insert(AnyVar::Dataflow(old.clone()), Expr::Var(new.clone()));
        new
    }
}

fn run(module: IRModule) -> relaxide_ir::pass::PassResult {
    let mut b = BlockBuilder::with_module(module);
    let functions: Vec<_> = b.module().functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
    for (name, func) in functions {
        let mut rewrite = ToNonDataflow { map: ExprMap::new() };
        let new = rewrite_function(&mut b, &func, &mut rewrite).map_err(|e| in_function(PASS.name, &name, e))?;
        b.module_mut().insert(name, new);
    }
    Ok(b.finish())
}
