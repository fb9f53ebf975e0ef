//! How threads combine values: `T.comm_reducer(lambda x, y: x + y, [T.float32(0)])`, what `reduce_scope` is about.

use relaxide_ffi::Ref;
use relaxide_ir::diagnostic::Code;
use relaxide_ir::{PrimExpr, Var};
use relaxide_tir::CommReducer;
use ruff_python_ast::{self as ast, Expr};
use ruff_text_size::Ranged;

use super::args::Args;
use super::value::Value;
use super::{Parsed, Parser};

impl Parser<'_> {
    /// The reducer that an expression is, where it is one.
    pub(super) fn reducer(&mut self, e: &Expr) -> Parsed<Option<Ref<CommReducer>>> {
        match e {
            Expr::Call(call) if self.call_path(e).as_deref() == Some("T.comm_reducer") => {
                self.comm_reducer(call).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn comm_reducer(&mut self, call: &ast::ExprCall) -> Parsed<Ref<CommReducer>> {
        let mut args = Args::of(self, "T.comm_reducer", call)?;
        let (combiner, identities) = (args.required(self, "combiner")?, args.required(self, "identity")?);
        args.finish(self)?;
        let identity_element = match identities {
            Expr::List(list) => list.elts.iter().map(|e| self.scalar_expr(e)).collect::<Parsed<Vec<_>>>()?,
            Expr::Tuple(list) => list.elts.iter().map(|e| self.scalar_expr(e)).collect::<Parsed<Vec<_>>>()?,
            one => vec![self.scalar_expr(one)?],
        };
        let Expr::Lambda(lambda) = combiner else {
            return Err(self.error(Code::Type, "how values are combined is written as a lambda", combiner.range()));
        };
        let names: Vec<String> =
            lambda.parameters.iter().flat_map(|list| list.iter()).map(|p| p.name().to_string()).collect();
        let count = identity_element.len();
        if names.len() != 2 * count {
            let problem = format!("{count} values are combined with as many, and the lambda has {} names", names.len());
            return Err(self.error(Code::Type, problem, lambda.range()));
        }
        let types = identity_element.iter().chain(&identity_element).map(PrimExpr::dtype);
        let vars: Vec<Ref<Var>> =
            names.iter().zip(types).map(|(name, dtype)| Var::prim(name.as_str(), dtype)).collect();
        let result = self.scoped(|p| {
            for (name, var) in names.iter().zip(&vars) {
                p.define(name, Value::Prim(PrimExpr::Var(var.clone())));
            }
            match &*lambda.body {
                Expr::Tuple(tuple) => tuple.elts.iter().map(|e| p.scalar_expr(e)).collect::<Parsed<Vec<_>>>(),
                one => Ok(vec![p.scalar_expr(one)?]),
            }
        })?;
        if result.len() != count {
            let problem = format!("{count} values are combined, and the lambda gives {}", result.len());
            return Err(self.error(Code::Type, problem, lambda.range()));
        }
        let (lhs, rhs) = (vars[..count].to_vec(), vars[count..].to_vec());
        Ok(Ref::new(CommReducer { lhs, rhs, result, identity_element }))
    }
}
