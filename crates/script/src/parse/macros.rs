//! Macros: statements of another text that take the place of a call.

use std::collections::HashMap;

use relaxide_relax::Expr as Relax;
use ruff_python_ast::{self as ast, Expr, Stmt};
use ruff_text_size::Ranged;

use super::host::Macro;
use super::value::Value;
use super::{Language, Parsed, Parser, limits};
use relaxide_ir::diagnostic::{Code, Lines};

/// Calls of macros in macros.
const MAX_DEPTH: usize = 64;

impl<'s> Parser<'s> {
    /// The macro of a name, and its place, unless the text gives the name another meaning.
    pub(super) fn macro_of(&self, name: &str) -> Option<(usize, &'s Macro)> {
        if self.lookup(name).is_some() {
            return None;
        }
        let at = self.macros.iter().position(|known| known.name == name)?;
        self.macros.get(at).map(|found| (at + 1, found))
    }

    /// The macro that a call calls.
    pub(super) fn macro_call(&self, e: &Expr) -> Option<(usize, &'s Macro)> {
        let Expr::Call(call) = e else { return None };
        let Expr::Name(name) = &*call.func else { return None };
        self.macro_of(&name.id)
    }

    /// Writes a macro's statements in the place of a call; its value is what the macro returns.
    pub(super) fn expand(&mut self, place: usize, source: &'s Macro, call: &ast::ExprCall) -> Parsed<Value> {
        if self.expansions >= MAX_DEPTH {
            let message = format!("macros call each other more than {MAX_DEPTH} levels deep");
            return Err(self.error(Code::Limit, message, call.range()));
        }
        let mut given = Vec::new();
        for arg in &call.arguments.args {
            given.push(self.argument(arg)?);
        }
        let mut named = Vec::new();
        for keyword in &call.arguments.keywords {
            let Some(name) = &keyword.arg else {
                return Err(self.unsupported("`**` in a call of a macro", keyword.range));
            };
            named.push((name.to_string(), self.argument(&keyword.value)?));
        }
        let range = call.range();
        let wrong = |p: &Self, message: String| Err(p.error(Code::Arguments, message, range));
        if let Err(refusal) = limits::check(&source.text) {
            return wrong(self, format!("the macro `{}`: {}", source.name, refusal.message));
        }
        let parsed = match ruff_python_parser::parse_module(&source.text) {
            Ok(parsed) => parsed,
            Err(error) => return wrong(self, format!("the macro `{}` cannot be read: {error}", source.name)),
        };
        let Some(Stmt::FunctionDef(def)) = parsed.syntax().body.first() else {
            return wrong(self, format!("`{}` is no function", source.name));
        };
        let mut scope = HashMap::new();
        let names: Vec<String> = def.parameters.args.iter().map(|p| p.parameter.name.to_string()).collect();
        if given.len() > names.len() {
            let message = format!("`{}` takes {} arguments, not {}", source.name, names.len(), given.len());
            return wrong(self, message);
        }
        scope.extend(names.iter().cloned().zip(given));
        for (name, value) in named {
            if !names.contains(&name) || scope.contains_key(&name) {
                return wrong(self, format!("`{}` takes no argument `{name}` here", source.name));
            }
            scope.insert(name, value);
        }
        let missing =
            |p: &&ast::ParameterWithDefault| !scope.contains_key(p.parameter.name.as_str()) && p.default.is_none();
        if let Some(lacking) = def.parameters.args.iter().find(missing) {
            return wrong(self, format!("`{}` needs the argument `{}`", source.name, lacking.parameter.name));
        }
        self.inside_macro(place, source, def, scope)
    }

    fn argument(&mut self, e: &Expr) -> Parsed<Value> {
        match self.expr(e)? {
            Value::Relax(value) => Ok(Value::Relax(self.leaf(value)?)),
            value => Ok(value),
        }
    }

    /// Reads a macro's body with its own text, names and surroundings in the place of the caller's.
    fn inside_macro(
        &mut self,
        place: usize,
        source: &'s Macro,
        def: &ast::StmtFunctionDef,
        mut scope: HashMap<String, Value>,
    ) -> Parsed<Value> {
        let outer_text = (self.source, self.file, std::mem::replace(&mut self.lines, Lines::of(&source.text)));
        (self.source, self.file) = (&source.text, &source.file);
        let outer_place = self.place;
        let outer_scopes = match source.hygienic {
            true => {
                self.place = place;
                Some((std::mem::take(&mut self.scopes), std::mem::take(&mut self.symbol_scope)))
            }
            false => None,
        };
        self.expansions += 1;
        let result = (|p: &mut Self| {
            for parameter in &def.parameters.args {
                if let (None, Some(default)) = (scope.get(parameter.parameter.name.as_str()), &parameter.default) {
                    scope.insert(parameter.parameter.name.to_string(), p.expr(default)?);
                }
            }
            p.scopes.push(scope);
            let result = p.macro_body(&def.body);
            p.scopes.pop();
            result
        })(self);
        self.expansions -= 1;
        if let Some((scopes, symbols)) = outer_scopes {
            (self.scopes, self.symbol_scope) = (scopes, symbols);
        }
        self.place = outer_place;
        (self.source, self.file, self.lines) = outer_text;
        result
    }

    fn macro_body(&mut self, body: &[Stmt]) -> Parsed<Value> {
        for stmt in body {
            match stmt {
                Stmt::Return(ret) => {
                    let Some(value) = &ret.value else { return Ok(Value::None) };
                    return self.argument(value);
                }
                stmt if self.language == Language::Tir => self.tir_stmt(stmt)?,
                stmt => self.statement(stmt)?,
            }
        }
        Ok(Value::Relax(Relax::tuple([])))
    }
}
