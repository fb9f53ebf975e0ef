//! Symbolic dimensions: the names that stand for sizes.
//!
//! A name becomes a variable of the function when it is first met: as a `TypeVar` of the module, as text in a signature
//! (`"n"`), or through a declaration in the body (`n = T.int64()`), which may stand behind the signature that uses it.

use std::collections::HashMap;

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::{PrimExpr, Var};
use ruff_python_ast::{self as ast, Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};

use super::value::Value;
use super::{Parsed, Parser, limits};
use relaxide_ir::diagnostic::Code;

impl Parser<'_> {
    /// Runs `f` for a function: in a scope that its symbolic dimensions belong to, with what its body declares.
    pub(super) fn in_function<T>(&mut self, body: &[Stmt], f: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let declared = self.declarations(body);
        let outer_declared = std::mem::replace(&mut self.declared, declared);
        let outer_scope = std::mem::replace(&mut self.symbol_scope, self.scopes.len());
        let result = self.scoped(f);
        self.symbol_scope = outer_scope;
        self.declared = outer_declared;
        result
    }

    /// The variables that a body declares at its top level: `n = T.int64()`.
    fn declarations(&self, body: &[Stmt]) -> HashMap<String, DataType> {
        let mut found = HashMap::new();
        let mut pair = |target: &Expr, value: &Expr| {
            if let (Expr::Name(name), Some(dtype)) = (target, self.declared_dtype(value)) {
                found.insert(name.id.to_string(), dtype);
            }
        };
        for stmt in body {
            let Stmt::Assign(assign) = stmt else { continue };
            match (assign.targets.as_slice(), &*assign.value) {
                ([Expr::Tuple(targets)], Expr::Tuple(values)) => {
                    targets.elts.iter().zip(&values.elts).for_each(|(target, value)| pair(target, value));
                }
                ([target], value) => pair(target, value),
                _ => {}
            }
        }
        found
    }

    /// The dtype that `T.int64()` or `T.var("int64")` declares a variable of.
    pub(super) fn declared_dtype(&self, value: &Expr) -> Option<DataType> {
        let Expr::Call(call) = value else { return None };
        if self.is_te_variable(&call.func) {
            return match (&*call.arguments.args, &*call.arguments.keywords) {
                ([] | [Expr::StringLiteral(_)], []) => Some(DataType::int(32)),
                ([_, Expr::StringLiteral(dtype)], []) => dtype.value.to_str().parse().ok(),
                _ => None,
            };
        }
        let path = self.path(&call.func)?;
        let name = path.strip_prefix("T.")?;
        if !call.arguments.keywords.is_empty() {
            return None;
        }
        match (name, &*call.arguments.args) {
            ("var", [Expr::StringLiteral(dtype)]) => dtype.value.to_str().parse().ok(),
            ("var", []) => Some(DataType::int(64)),
            (dtype, []) if dtype != "handle" => dtype_name(dtype),
            _ => None,
        }
    }

    /// Whether a function is one of `te`'s that make variables: `te.var`, `te.size_var`.
    fn is_te_variable(&self, function: &Expr) -> bool {
        let Expr::Attribute(attr) = function else { return false };
        let of_te = match &*attr.value {
            Expr::Name(name) => name.id.as_str() == "te" && self.is_outer("te"),
            Expr::Attribute(inner) => inner.attr.as_str() == "te" && matches!(&*inner.value, Expr::Name(_)),
            _ => false,
        };
        of_te && matches!(attr.attr.as_str(), "var" | "size_var")
    }

    /// The symbolic dimension of a name, where the name can be one.
    pub(super) fn symbol(&mut self, name: &str) -> Option<PrimExpr> {
        let dtype = match (self.declared.get(name), self.type_vars.get(name)) {
            (Some(dtype), _) | (None, Some(dtype)) => *dtype,
            (None, None) if self.defining && self.inside.is_some() => DataType::int(64),
            (None, None) => return None,
        };
        Some(self.define_symbol(name, dtype))
    }

    /// A fresh symbolic dimension of the function.
    pub(super) fn define_symbol(&mut self, name: &str, dtype: DataType) -> PrimExpr {
        let var = PrimExpr::Var(Var::prim(name, dtype));
        self.taken.insert(name.to_string());
        let index = self.symbol_scope;
        if let Some(scope) = self.scopes.get_mut(index) {
            scope.insert(name.to_string(), Value::Prim(var.clone()));
        }
        var
    }

    /// Handles `n = T.int64()`: the variable exists from here on, and perhaps did before.
    pub(super) fn declare(&mut self, name: &str, dtype: DataType, range: TextRange) -> Parsed<()> {
        match self.scopes.get(self.symbol_scope).and_then(|scope| scope.get(name)) {
            Some(Value::Prim(PrimExpr::Var(var))) if var.dtype() == dtype => Ok(()),
            Some(other) => {
                let message = format!("`{name}` is declared as {dtype}, but it is {} already", other.describe());
                Err(self.error(Code::Type, message, range))
            }
            None => {
                self.define_symbol(name, dtype);
                Ok(())
            }
        }
    }

    /// An expression that is written as text, such as the dimension `"n * 2"`.
    pub(super) fn text_expr(&mut self, text: &ast::ExprStringLiteral) -> Parsed<Value> {
        let source = text.value.to_str();
        if let Err(refusal) = limits::check(source) {
            return Err(self.error(refusal.code, refusal.message, text.range()));
        }
        let parsed = ruff_python_parser::parse_expression(source)
            .map_err(|e| self.error(Code::Syntax, format!("in this text: {}", e.error), text.range()))?;
        let outer = self.inside.replace(self.inside.unwrap_or(text.range()));
        let result = self.expr(parsed.expr());
        self.inside = outer;
        result
    }
}

/// The dtype that a name behind `T.` stands for.
pub(super) fn dtype_name(name: &str) -> Option<DataType> {
    // Short names of the newer kernel dialect.
    const SHORT: [(&str, &str); 4] = [("bf", "bfloat"), ("f", "float"), ("i", "int"), ("u", "uint")];
    let short = SHORT.iter().find_map(|(short, family)| Some((family, name.strip_prefix(short)?)));
    if let Some((family, bits)) = short.filter(|(_, bits)| matches!(*bits, "8" | "16" | "32" | "64")) {
        return format!("{family}{bits}").parse().ok();
    }
    match name {
        "bool" | "boolean" => return Some(DataType::bool()),
        "handle" => return Some(DataType::handle()),
        _ => {}
    }
    let starts = ["int", "uint", "float", "bfloat"]
        .iter()
        .any(|family| name.strip_prefix(family).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())));
    if starts { name.parse().ok() } else { None }
}

/// The variable that an expression is.
pub(super) fn variable(value: &Value) -> Option<&Ref<Var>> {
    match value {
        Value::Prim(PrimExpr::Var(var)) => Some(var),
        _ => None,
    }
}
