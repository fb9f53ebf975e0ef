//! Macros: statements of another text that take the place of a call.

use std::collections::HashMap;
use std::rc::Rc;

use relaxide_relax::Expr as Relax;
use ruff_python_ast::{self as ast, Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};

use super::host::{Macro, ScopeIndex};
use super::value::Value;
use super::{Language, Parsed, Parser, limits};
use relaxide_ir::diagnostic::{Code, Lines};

/// Calls of macros in macros.
const MAX_DEPTH: usize = 64;

/// What a call of a macro calls.
#[derive(Clone, Copy)]
pub(super) enum Callee<'s> {
    /// One of the surroundings, and its place.
    Outer(usize, &'s Macro),
    /// One that the program itself defines.
    Inner(usize),
}

/// A macro that a program defines in its own body. Its names are those of where it stands, with the values that they have
/// when it is called.
pub(super) struct Inner<'s> {
    def: ast::StmtFunctionDef,
    source: &'s str,
    file: &'s str,
    place: ScopeIndex,
    /// The scopes around it.
    scopes: usize,
    /// How many hygienic macros were being written out around it, each of which has scopes of its own.
    level: usize,
}

impl<'s> Parser<'s> {
    /// The macro of a name of the surroundings, and its place, unless the text gives the name another meaning.
    pub(super) fn macro_of(&self, name: &str) -> Option<(usize, &'s Macro)> {
        if self.lookup(name).is_some() {
            return None;
        }
        let at = self.macros.iter().position(|known| known.name == name)?;
        self.macros.get(at).map(|found| (at + 1, found))
    }

    /// The macro that a call calls.
    pub(super) fn macro_call(&self, e: &Expr) -> Option<Callee<'s>> {
        let Expr::Call(call) = e else { return None };
        let Expr::Name(name) = &*call.func else { return None };
        match self.lookup(&name.id) {
            Some(Value::Inline(at)) => Some(Callee::Inner(*at)),
            Some(Value::Macro(at)) => self.macros.get(*at).map(|found| Callee::Outer(at + 1, found)),
            Some(_) => None,
            None => self.macro_of(&name.id).map(|(place, found)| Callee::Outer(place, found)),
        }
    }

    /// Handles a function within a kernel, which is a macro.
    pub(super) fn define_inline(&mut self, def: &ast::StmtFunctionDef) -> Parsed<()> {
        let is_macro = |decorator: &ast::Decorator| {
            let path = match &decorator.expression {
                Expr::Call(call) => self.path(&call.func),
                other => self.path(other),
            };
            matches!(path.as_deref(), Some("T.inline" | "T.macro"))
        };
        if def.decorator_list.len() != 1 || !def.decorator_list.iter().all(is_macro) {
            let error = self.unsupported("a function in a kernel", def.range());
            return Err(error
                .with_help("write @T.inline above it: its statements then stand where it is called")
                .into());
        }
        let scopes = self.scopes.len();
        let (source, file, place, level) = (self.source, self.file, self.place, self.level);
        self.inlines.push(Rc::new(Inner { def: def.clone(), source, file, place, scopes, level }));
        self.define(&def.name, Value::Inline(self.inlines.len() - 1));
        Ok(())
    }

    /// Writes a macro's statements in the place of a call; its value is what the macro returns.
    pub(super) fn expand(&mut self, callee: Callee<'s>, call: &ast::ExprCall) -> Parsed<Value> {
        if self.expansions >= MAX_DEPTH {
            let message = format!("macros call each other more than {MAX_DEPTH} levels deep");
            return Err(self.error(Code::Limit, message, call.range()));
        }
        let given = self.given(call)?;
        let range = call.range();
        match callee {
            Callee::Outer(place, source) => {
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
                let scope = self.arguments_of(def, given, range)?;
                self.inside_macro(place, source, def, scope)
            }
            Callee::Inner(at) => {
                let Some(inner) = self.inlines.get(at).cloned() else { return Ok(Value::None) };
                let scope = self.arguments_of(&inner.def, given, range)?;
                if inner.level != self.level {
                    let message = format!("`{}` is called by a macro that it was handed to", inner.def.name);
                    let error = self.error(Code::Structure, message, range);
                    return Err(error.with_help("call it in the kernel that defines it").into());
                }
                self.inside_inline(&inner, scope)
            }
        }
    }

    /// The arguments of a call, and those that it names.
    fn given(&mut self, call: &ast::ExprCall) -> Parsed<Given> {
        let mut given = Given::default();
        for arg in &call.arguments.args {
            match arg {
                Expr::Starred(starred) => given.values.extend(self.spread(&starred.value)?),
                arg => given.values.push(self.argument(arg)?),
            }
        }
        for keyword in &call.arguments.keywords {
            match &keyword.arg {
                Some(name) => given.named.push((name.to_string(), self.argument(&keyword.value)?)),
                None => match self.expr(&keyword.value)? {
                    Value::Map(items) => given.named.extend(items),
                    other => {
                        let message = format!("`**` stands before {}, not before a dictionary", other.describe());
                        return Err(self.error(Code::Type, message, keyword.range));
                    }
                },
            }
        }
        Ok(given)
    }

    /// What the parameters of a macro stand for in a call.
    fn arguments_of(
        &self,
        def: &ast::StmtFunctionDef,
        given: Given,
        range: TextRange,
    ) -> Parsed<HashMap<String, Value>> {
        let wrong = |message: String| Err(self.error(Code::Arguments, message, range));
        let list = &def.parameters;
        let places: Vec<&str> = list.posonlyargs.iter().chain(&list.args).map(|p| p.parameter.name.as_str()).collect();
        let only_named: Vec<&str> = list.kwonlyargs.iter().map(|p| p.parameter.name.as_str()).collect();
        let mut scope = HashMap::new();
        let count = given.values.len();
        let mut values = given.values.into_iter();
        scope.extend(places.iter().map(|name| name.to_string()).zip(values.by_ref()));
        match &list.vararg {
            Some(rest) => {
                scope.insert(rest.name.to_string(), Value::Tuple(values.collect()));
            }
            None if count > places.len() => {
                return wrong(format!("`{}` takes {} arguments, not {count}", def.name, places.len()));
            }
            None => {}
        }
        let mut others = Vec::new();
        for (name, value) in given.named {
            let is_free = !scope.contains_key(&name);
            if is_free && (places.contains(&name.as_str()) || only_named.contains(&name.as_str())) {
                scope.insert(name, value);
            } else if is_free && list.kwarg.is_some() {
                others.push((name, value));
            } else {
                return wrong(format!("`{}` takes no argument `{name}` here", def.name));
            }
        }
        if let Some(rest) = &list.kwarg {
            scope.insert(rest.name.to_string(), Value::Map(others));
        }
        let lacks =
            |p: &&ast::ParameterWithDefault| !scope.contains_key(p.parameter.name.as_str()) && p.default.is_none();
        match with_defaults(list).find(lacks) {
            Some(lacking) => wrong(format!("`{}` needs the argument `{}`", def.name, lacking.parameter.name)),
            None => Ok(scope),
        }
    }

    fn argument(&mut self, e: &Expr) -> Parsed<Value> {
        if let Expr::Name(name) = e
            && let Some((place, _)) = self.macro_of(&name.id)
        {
            return Ok(Value::Macro(place - 1));
        }
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
        scope: HashMap<String, Value>,
    ) -> Parsed<Value> {
        let outer_text = (self.source, self.file, std::mem::replace(&mut self.lines, Lines::of(&source.text)));
        (self.source, self.file) = (&source.text, &source.file);
        let outer_place = self.place;
        let outer_scopes = match source.hygienic {
            true => {
                self.place = place;
                self.level += 1;
                Some((std::mem::take(&mut self.scopes), std::mem::take(&mut self.symbol_scope)))
            }
            false => None,
        };
        self.expansions += 1;
        let result = self.body_of(def, scope);
        self.expansions -= 1;
        if let Some((scopes, symbols)) = outer_scopes {
            self.level -= 1;
            (self.scopes, self.symbol_scope) = (scopes, symbols);
        }
        self.place = outer_place;
        (self.source, self.file, self.lines) = outer_text;
        result
    }

    /// Reads the body of a macro of the program, among the names of where it stands.
    fn inside_inline(&mut self, inner: &Inner<'s>, scope: HashMap<String, Value>) -> Parsed<Value> {
        let outer_text = (self.source, self.file, std::mem::replace(&mut self.lines, Lines::of(inner.source)));
        (self.source, self.file) = (inner.source, inner.file);
        let outer_place = std::mem::replace(&mut self.place, inner.place);
        let hidden = self.scopes.split_off(inner.scopes.min(self.scopes.len()));
        self.expansions += 1;
        let result = self.body_of(&inner.def, scope);
        self.expansions -= 1;
        self.scopes.extend(hidden);
        self.place = outer_place;
        (self.source, self.file, self.lines) = outer_text;
        result
    }

    /// The statements of a macro, in a scope that holds its arguments.
    fn body_of(&mut self, def: &ast::StmtFunctionDef, mut scope: HashMap<String, Value>) -> Parsed<Value> {
        for parameter in with_defaults(&def.parameters) {
            if let (None, Some(default)) = (scope.get(parameter.parameter.name.as_str()), &parameter.default) {
                scope.insert(parameter.parameter.name.to_string(), self.expr(default)?);
            }
        }
        self.scopes.push(scope);
        let result = self.macro_body(&def.body);
        self.scopes.pop();
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

/// The values of a call, and those that it names.
#[derive(Default)]
struct Given {
    values: Vec<Value>,
    named: Vec<(String, Value)>,
}

/// The parameters that may have a value of their own.
fn with_defaults(list: &ast::Parameters) -> impl Iterator<Item = &ast::ParameterWithDefault> {
    list.posonlyargs.iter().chain(&list.args).chain(&list.kwonlyargs)
}
