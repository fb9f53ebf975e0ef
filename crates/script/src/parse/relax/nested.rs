//! Functions within functions.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::diagnostic::Code;
use relaxide_relax::functor::used_vars;
use relaxide_relax::{AnyVar, Binding, Expr as Relax, VarBinding};
use ruff_python_ast as ast;

use super::super::module::FunctionKind;
use super::super::value::Value;
use super::super::{Parsed, Parser};

impl Parser<'_> {
    /// A function that stands in another's body, bound to a variable of its name.
    pub(super) fn local_function(&mut self, def: &ast::StmtFunctionDef) -> Parsed<()> {
        let FunctionKind::Relax { pure, .. } = self.kind(def)? else {
            return Err(self.error(
                Code::Structure,
                "a kernel stands in the module, not in a function",
                def.name.range,
            ));
        };
        // The function may call itself: its variable exists while the body is read.
        let ty = self.signature_type(def, pure)?;
        let var = Ref::new(Var { name: def.name.to_string(), ty, span: self.span(def.name.range) });
        self.define(&def.name, Value::Relax(var.clone().into()));
        let func = Ref::new(self.relax_function(def, pure, None)?);
        let mut var = AnyVar::Var(var);
        let value = Relax::Function(func.clone());
        // What the signature leaves open, the body says, unless it speaks of the function itself.
        if self.declared_result(def).is_none() && !used_vars(&value).contains(&var) {
            let known = Ref::new(Var { name: def.name.to_string(), ty: func.ty(), span: self.span(def.name.range) });
            self.define(&def.name, Value::Relax(known.clone().into()));
            var = AnyVar::Var(known);
        }
        self.frame().open.push(Binding::Var(Ref::new(VarBinding { var, value })));
        Ok(())
    }
}
