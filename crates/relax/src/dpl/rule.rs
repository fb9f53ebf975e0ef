//! Rules that are written as programs: a function to match, and one to put in its place.
//!
//! ```text
//! def pattern(x: R.Tensor(("n",)), y: R.Tensor(("n",))):      def replacement(x: R.Tensor(("n",)), y: R.Tensor(("n",))):
//!     a = R.add(x, y)                                             return R.call_pure_packed("add_subtract", x, y, …)
//!     b = R.subtract(x, y)
//!     return (a, b)
//! ```
//!
//! Parameters of the pattern become wildcards, and its values patterns. A result that is a tuple is matched field by field:
//! the values may stand anywhere in one block. Symbolic dimensions stand for one expression wherever they occur.

use relaxide_ffi::{FreeVars, Ref, structural_equal};
use relaxide_ir::prim::VarMap;
use relaxide_ir::{Attrs, IRModule, Type};

use super::matcher::is_of_type;
use super::{Matches, Pattern, PatternKind, is_expr, is_extern, is_op, is_tuple, is_tuple_get_item, wildcard};
use crate::shape::{bind_dims, erase_type, substitute_type, vars_of};
use crate::*;

/// The function of a module that says what is matched.
const PATTERN: &str = "pattern";

/// The function of a module that says what takes its place.
const REPLACEMENT: &str = "replacement";

/// A rule that is two functions.
#[derive(Clone)]
pub(crate) struct Rule {
    /// What is matched: one value, or each of several in one block.
    pub parts: Vec<Pattern>,
    /// Whether the result is a tuple of the parts.
    pub is_tuple: bool,
    /// What the parameters stand for, in order.
    params: Vec<Pattern>,
    /// Types that parts must have; they may share symbolic dimensions.
    types: Vec<(Pattern, Type)>,
    /// What takes the place.
    pub replacement: Ref<Function>,
}

impl Rule {
    /// The rule that the functions `pattern` and `replacement` of a module are.
    pub fn from_module(module: &IRModule) -> Result<Rule, BuildError> {
        let (pattern, replacement) = (function(module, PATTERN)?, function(module, REPLACEMENT)?);
        for (name, func) in module.functions_of::<Function>() {
            if name != PATTERN && name != REPLACEMENT && func.attrs.get("global_symbol").is_some() {
                return Err(program(format!(
                    "a rule's functions other than `pattern` and `replacement` are private, and `{name}` is not"
                )));
            }
        }
        let (from, to) = (pattern.ty(), replacement.ty());
        if structural_equal(&from, &to, FreeVars::Mapped).is_err() {
            return Err(program(format!(
                "`pattern` and `replacement` must have one signature: the pattern has {}, the replacement {}",
                display::type_text(&from),
                display::type_text(&to)
            )));
        }
        PatternMaker::default().rule(&pattern, replacement)
    }

    /// The same rule with another replacement.
    pub fn with_replacement(&self, replacement: Ref<Function>) -> Rule {
        Rule { replacement, ..self.clone() }
    }

    /// What is passed to the replacement for a match; `None` where types do not fit.
    pub fn args(&self, found: &Matches) -> Option<Vec<Expr>> {
        let mut dims = VarMap::new();
        let typed = || self.types.iter().filter_map(|(part, ty)| Some((found.operand(part)?.ty(), ty)));
        typed().for_each(|(have, ty)| bind_dims(ty, &have, &mut dims));
        let fits = typed().all(|(have, ty)| is_of_type(&have, &substitute_type(ty, &dims)));
        let args = || self.params.iter().map(|param| found.operand(param).cloned()).collect();
        if fits { args() } else { None }
    }
}

fn function(module: &IRModule, name: &str) -> Result<Ref<Function>, BuildError> {
    module.get_as::<Function>(name).ok_or_else(|| {
        let known: Vec<&str> = module.functions_of::<Function>().map(|(name, _)| name).collect();
        let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
        program(format!("a rule needs a Relax function `{name}`; the module's are: {known}"))
    })
}

fn program(message: impl Into<String>) -> BuildError {
    BuildError::Program(message.into())
}

/// Makes patterns of values.
#[derive(Default)]
struct PatternMaker {
    known: std::collections::HashMap<AnyVar, Pattern>,
    types: Vec<(Pattern, Type)>,
}

impl PatternMaker {
    fn rule(mut self, pattern: &Function, replacement: Ref<Function>) -> Result<Rule, BuildError> {
        let params: Vec<Pattern> = pattern.params.iter().map(|param| self.typed(wildcard(), &param.ty)).collect();
        for (param, part) in pattern.params.iter().zip(&params) {
            self.known.insert(AnyVar::Var(param.clone()), part.clone());
        }
        for binding in pattern.body.blocks.iter().flat_map(|block| &block.bindings) {
            let value = self.value(binding.value())?;
            let value = match binding {
                Binding::Var(_) => value,
                Binding::MatchCast(cast) => self.typed(value, &cast.ty),
            };
            self.known.insert(binding.var().clone(), value);
        }
        let result = self.value(&pattern.body.body)?;
        let (parts, is_tuple) = match result.kind() {
            PatternKind::Tuple(fields) => (fields.clone(), true),
            _ => (vec![result], false),
        };
        if parts.is_empty() || parts.iter().any(|part| params.contains(part)) {
            return Err(program("the result of `pattern` must be a value that it computes, or a tuple of such values"));
        }
        for (param, part) in pattern.params.iter().zip(&params) {
            if !parts.iter().any(|whole| contains(whole, part)) {
                return Err(program(format!(
                    "the result of `pattern` does not depend on its parameter `{}`",
                    param.name
                )));
            }
        }
        Ok(Rule { parts, is_tuple, params, types: self.types, replacement })
    }

    /// A part of a type. What symbolic dimensions stand for is known only of a whole match.
    fn typed(&mut self, part: Pattern, ty: &Type) -> Pattern {
        let part = part.has_type(erase_type(ty, &|_| false));
        if !vars_of([ty]).is_empty() {
            self.types.push((part.clone(), ty.clone()));
        }
        part
    }

    fn values(&mut self, list: &[Expr]) -> Result<Vec<Pattern>, BuildError> {
        list.iter().map(|e| self.value(e)).collect()
    }

    fn value(&mut self, e: &Expr) -> Result<Pattern, BuildError> {
        if let Some(known) = e.as_var().and_then(|var| self.known.get(&var)) {
            return Ok(known.clone());
        }
        Ok(match e {
            Expr::Call(call) => {
                let callee = self.value(&call.op)?;
                let made = callee.call(self.values(&call.args)?);
                if call.attrs == Attrs::new() { made } else { made.has_attrs(call.attrs.clone()) }
            }
            Expr::Tuple(tuple) => is_tuple(self.values(&tuple.fields)?),
            Expr::TupleGetItem(item) => is_tuple_get_item(self.value(&item.tuple)?, usize::try_from(item.index).ok()),
            Expr::Op(op) => is_op(op.name.clone()),
            Expr::Extern(func) => is_extern(func.global_symbol.clone()),
            Expr::Constant(_) | Expr::Str(_) | Expr::DType(_) => is_expr(e.clone()),
            Expr::Shape(_) => self.typed(wildcard(), &e.ty()),
            Expr::Prim(p) if relaxide_ir::prim::free_vars(&p.value).is_empty() => is_expr(e.clone()),
            other => {
                let what = match other {
                    Expr::Global(g) => format!("a call of the function `{}`", g.name),
                    Expr::If(_) => "a branch".into(),
                    Expr::Function(_) => "a local function".into(),
                    Expr::Prim(_) => "a scalar of symbolic dimensions".into(),
                    _ => "such a value".into(),
                };
                return Err(program(format!("{what} is nothing that a pattern can be made of")));
            }
        })
    }
}

/// Whether a pattern is a part of another.
fn contains(whole: &Pattern, part: &Pattern) -> bool {
    whole == part || whole.parts().into_iter().any(|p| contains(p, part))
}
