//! Text to a module. A recursive descent; bindings that follow each other are read in a loop, so that a program may be long.
//!
//! Differences from TVM 0.16, each for the better: an external type does not end the definitions; a name that is bound again
//! shadows the first; the value of a `let` sees the name only if it is a function; `match`, blocks and branches may stand as
//! values of bindings, as the printer writes them; `ref(T)` is a type.

use std::collections::HashMap;
use std::sync::Arc;

use relaxide_ffi::Ref;
use relaxide_ir::diagnostic::Lines;
use relaxide_ir::{Attrs, Code, Diagnostic, Span};

use super::lex::{Tok, Token, tokens};
use super::{OLDER_VERSION, VERSION};
use crate::json::{Graph, MetaTable};
use crate::module::ConstructorDef;
use crate::stack::deep;
use crate::{Constructor, Expr, Function, Module, Type, TypeData, TypeVar, Var};

/// How deep text may be nested.
const MAX_NESTING: usize = 2_000;

/// A text with its name.
#[derive(Clone, Debug)]
pub struct Source {
    /// The file, or whatever names the text.
    pub name: String,
    /// The text.
    pub text: Arc<str>,
}

impl Source {
    /// A text that came from no file.
    pub fn new(name: impl Into<String>, text: impl Into<Arc<str>>) -> Source {
        Source { name: name.into(), text: text.into() }
    }

    /// A problem at a span of it.
    pub fn diagnostic(&self, code: Code, message: impl Into<String>, span: Option<&Span>) -> Diagnostic {
        let d = Diagnostic::new(code, message);
        match span {
            Some(span) => d.with_span(span, (span.source == self.name).then_some(&*self.text)),
            None => d,
        }
    }
}

/// Reads a module. Types are not inferred here.
pub fn parse(source: &Source) -> Result<Module, Diagnostic> {
    deep(|| {
        let mut parser = Parser::new(source, Module::new())?;
        parser.version(true)?;
        parser.definitions()?;
        Ok(parser.module)
    })
}

/// Reads a module whose definitions may use those of another, and which holds them then. What the text defines itself
/// takes the place of a definition of the same name.
pub fn parse_in(source: &Source, known: &Module) -> Result<Module, Diagnostic> {
    deep(|| {
        let start = known.without(&defined_names(&source.text));
        let mut parser = Parser::new(source, start)?;
        parser.version(true)?;
        parser.definitions()?;
        Ok(parser.module)
    })
}

/// The names that a text defines.
fn defined_names(text: &str) -> Vec<String> {
    let tokens = tokens(text).unwrap_or_default();
    tokens
        .windows(2)
        .filter_map(|pair| match (&pair[0].kind, &pair[1].kind) {
            (Tok::Name(def), Tok::Global(name)) if def == "def" => Some(name.clone()),
            (Tok::Name(def), Tok::Name(name) | Tok::Quoted(name)) if def == "type" => Some(name.clone()),
            _ => None,
        })
        .collect()
}

/// Reads an expression, with the types and functions of a module at hand.
pub fn parse_expr(source: &Source, module: &Module) -> Result<Expr, Diagnostic> {
    deep(|| {
        let mut parser = Parser::new(source, module.clone())?;
        parser.version(false)?;
        let expr = parser.block()?;
        parser.expect_end()?;
        Ok(expr)
    })
}

pub(super) struct Parser<'a> {
    source: &'a Source,
    lines: Lines<'a>,
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    pub module: Module,
    /// Variables in scope, the last one first.
    pub vars: Vec<Ref<Var>>,
    /// Type parameters in scope.
    pub type_vars: Vec<Ref<TypeVar>>,
    /// Nodes that have a number.
    pub graph: HashMap<u64, Expr>,
    pub meta: MetaTable,
    /// Whether the text says that it is of release 0.6.
    pub older: bool,
}

impl<'a> Parser<'a> {
    fn new(source: &'a Source, module: Module) -> Result<Parser<'a>, Diagnostic> {
        let lines = Lines::of(&source.text);
        let tokens = match tokens(&source.text) {
            Ok(tokens) => tokens,
            Err(e) => {
                return Err(Diagnostic::at(Code::Syntax, e.message, &source.name, &lines, e.start, e.end));
            }
        };
        let (vars, type_vars, graph, meta) = Default::default();
        let mut parser =
            Parser { source, lines, tokens, at: 0, depth: 0, module, vars, type_vars, graph, meta, older: false };
        let metadata: Vec<Token> = parser.tokens.iter().filter(|t| t.kind == Tok::Metadata).cloned().collect();
        if let [token] = metadata.as_slice() {
            let json = source.text.get(token.end..).unwrap_or_default();
            let read = Graph::parse(json).and_then(|graph| graph.meta_table(&parser.module));
            parser.meta = read.map_err(|error| parser.error_at(token, Code::Metadata, error.to_string()))?;
        }
        Ok(parser)
    }

    // Tokens.

    pub fn peek(&self) -> &Tok {
        self.peek_at(0)
    }

    pub fn peek_at(&self, ahead: usize) -> &Tok {
        self.tokens.get(self.at + ahead).map_or(&Tok::End, |t| &t.kind)
    }

    pub fn token(&self) -> Token {
        let end = self.source.text.len();
        self.tokens.get(self.at).cloned().unwrap_or(Token { kind: Tok::End, start: end, end })
    }

    pub fn advance(&mut self) -> Token {
        let token = self.token();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        token
    }

    pub fn is(&self, symbol: &str) -> bool {
        matches!(self.peek(), Tok::Sym(s) if *s == symbol)
    }

    pub fn is_name(&self, name: &str) -> bool {
        matches!(self.peek(), Tok::Name(s) if s == name)
    }

    pub fn eat(&mut self, symbol: &str) -> bool {
        let found = self.is(symbol);
        if found {
            self.advance();
        }
        found
    }

    pub fn expect(&mut self, symbol: &'static str) -> Result<Token, Diagnostic> {
        if self.is(symbol) {
            return Ok(self.advance());
        }
        Err(self.unexpected(&format!("`{symbol}`")))
    }

    pub fn expect_name(&mut self, what: &str) -> Result<(String, Token), Diagnostic> {
        match self.peek().clone() {
            Tok::Name(name) | Tok::Quoted(name) => Ok((name, self.advance())),
            _ => Err(self.unexpected(what)),
        }
    }

    pub fn expect_local(&mut self) -> Result<(String, Token), Diagnostic> {
        match self.peek().clone() {
            Tok::Local(name) => Ok((name, self.advance())),
            _ => Err(self.unexpected("a local variable such as `%x`")),
        }
    }

    fn expect_end(&mut self) -> Result<(), Diagnostic> {
        match self.peek() {
            Tok::End | Tok::Metadata => Ok(()),
            _ => Err(self.unexpected("the end of the text")),
        }
    }

    // Errors and spans.

    pub fn error_at(&self, token: &Token, code: Code, message: impl std::fmt::Display) -> Diagnostic {
        Diagnostic::at(code, message.to_string(), &self.source.name, &self.lines, token.start, token.end)
    }

    pub fn unexpected(&self, wanted: &str) -> Diagnostic {
        let token = self.token();
        self.error_at(&token, Code::Syntax, format!("expected {wanted}, found {}", token.kind.shown()))
    }

    /// The span from a token to the one that was read last.
    pub fn span_from(&self, first: &Token) -> Option<Ref<Span>> {
        let end = self.at.checked_sub(1).and_then(|i| self.tokens.get(i)).map_or(first.end, |t| t.end.max(first.end));
        let (from, to) = (self.lines.place(first.start), self.lines.place(end));
        Some(Ref::new(Span {
            source: self.source.name.clone(),
            line: from.line as i64,
            end_line: to.line as i64,
            column: from.column as i64,
            end_column: to.column as i64,
            notes: Vec::new(),
        }))
    }

    /// One level deeper.
    pub fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Diagnostic>) -> Result<T, Diagnostic> {
        if self.depth >= MAX_NESTING {
            let token = self.token();
            let message = format!("the text is nested deeper than {MAX_NESTING} levels; bind parts to names");
            return Err(self.error_at(&token, Code::Limit, message));
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    /// Items with commas between, up to `close`, which is read too; a comma may stand behind the last.
    pub fn list<T>(
        &mut self,
        close: &'static str,
        mut item: impl FnMut(&mut Self) -> Result<T, Diagnostic>,
    ) -> Result<Vec<T>, Diagnostic> {
        let mut items = Vec::new();
        while !self.eat(close) {
            items.push(item(self)?);
            if !self.is(close) {
                self.expect(",")?;
            }
        }
        Ok(items)
    }

    // Definitions.

    fn version(&mut self, required: bool) -> Result<(), Diagnostic> {
        let token = self.token();
        match &token.kind {
            Tok::Version(version) if version == VERSION || version == OLDER_VERSION => {
                self.older = version == OLDER_VERSION;
                self.advance();
                Ok(())
            }
            Tok::Version(version) => {
                let message = format!("invalid semantic version `{version}`, this reads `{VERSION}`");
                Err(self.error_at(&token, Code::Syntax, message))
            }
            _ if required => Err(self
                .error_at(&token, Code::Syntax, "expected a version header")
                .with_help(format!("begin the text with `#[version = \"{VERSION}\"]`"))),
            _ => Ok(()),
        }
    }

    fn definitions(&mut self) -> Result<(), Diagnostic> {
        loop {
            let token = self.token();
            match self.peek().clone() {
                Tok::Name(name) if name == "def" => self.function_def()?,
                Tok::Name(name) if name == "type" => self.type_def(false)?,
                Tok::Name(name) if name == "extern" => {
                    self.advance();
                    if !self.is_name("type") {
                        return Err(self.unexpected("`type`"));
                    }
                    self.type_def(true)?;
                }
                Tok::Metadata | Tok::End => return Ok(()),
                _ if self.older && self.at == 1 => {
                    self.lone_expression(&token)?;
                    return self.expect_end();
                }
                _ => {
                    let message =
                        format!("expected a definition (`def`, `type` or `extern type`), found {}", token.kind.shown());
                    return Err(self.error_at(&token, Code::Syntax, message));
                }
            }
        }
    }

    /// A program that is an expression becomes `main`, with parameters for what is free in it.
    fn lone_expression(&mut self, token: &Token) -> Result<(), Diagnostic> {
        let function = match self.block()? {
            Expr::Function(function) => function,
            expr => {
                let (params, span) = (crate::visit::free_vars(&expr), self.span_from(token));
                let (type_params, ret_type, attrs) = Default::default();
                Ref::new(Function { type_params, params, body: expr, ret_type, attrs, span })
            }
        };
        self.module.functions.insert("main".into(), function);
        Ok(())
    }

    fn function_def(&mut self) -> Result<(), Diagnostic> {
        self.advance();
        let token = self.token();
        let Tok::Global(name) = token.kind.clone() else {
            return Err(self.unexpected("the name of a function such as `@main`"));
        };
        self.advance();
        if self.module.functions.contains_key(&name) {
            let message = format!("a function with the name `@{name}` was previously defined");
            return Err(self.error_at(&token, Code::BoundTwice, message));
        }
        self.graph.clear();
        let function = self.function_rest(&token)?;
        self.module.functions.insert(name, function);
        Ok(())
    }

    /// A function behind `fn` or its name.
    pub fn function_rest(&mut self, first: &Token) -> Result<Ref<Function>, Diagnostic> {
        let (outer_vars, outer_types) = (self.vars.len(), self.type_vars.len());
        let type_params = self.type_params()?;
        self.expect("(")?;
        let (mut params, mut attrs) = (Vec::new(), Attrs::new());
        while !self.eat(")") {
            if matches!(self.peek(), Tok::Local(_)) {
                let param = self.bound_var()?;
                self.vars.push(param.clone());
                params.push(param);
            } else {
                let (name, value) = self.attribute()?;
                attrs = attrs.with(name, value);
            }
            if !self.is(")") {
                self.expect(",")?;
            }
        }
        let ret_type = if self.eat("->") { self.annotation()? } else { None };
        self.expect("{")?;
        let body = self.nested(Self::block)?;
        self.expect("}")?;
        self.vars.truncate(outer_vars);
        self.type_vars.truncate(outer_types);
        let span = self.span_from(first);
        Ok(Ref::new(Function { type_params, params, body, ret_type, attrs, span }))
    }

    fn type_params(&mut self) -> Result<Vec<Ref<TypeVar>>, Diagnostic> {
        if !self.eat("[") {
            return Ok(Vec::new());
        }
        self.list("]", |p| {
            let (name, _) = p.expect_name("a type parameter")?;
            let var = Ref::new(TypeVar { name });
            p.type_vars.push(var.clone());
            Ok(var)
        })
    }

    /// A variable where it is bound: a parameter, a name of `let` or of a pattern, or one that is free.
    pub fn bound_var(&mut self) -> Result<Ref<Var>, Diagnostic> {
        let (name, token) = self.expect_local()?;
        let mut device = None;
        if self.eat("{") {
            // Where it lives: `{virtual_device=meta[VirtualDevice][0]}`.
            while !self.eat("}") {
                let (attribute, value) = self.attribute()?;
                if attribute == "virtual_device" {
                    let read = crate::VirtualDevice::of_attr(&value);
                    device = read.map_err(|why| self.error_at(&token, Code::Syntax, why))?.map(Ref::new);
                }
                self.eat(",");
            }
        }
        let annotation = if self.eat(":") { self.annotation()? } else { None };
        let span = self.span_from(&token);
        Ok(Ref::new(Var { name, annotation, device, span }))
    }

    /// A type; `_` is none.
    pub fn annotation(&mut self) -> Result<Option<Type>, Diagnostic> {
        if self.is_name("_") {
            self.advance();
            return Ok(None);
        }
        self.ty().map(Some)
    }

    fn type_def(&mut self, external: bool) -> Result<(), Diagnostic> {
        self.advance();
        let (name, token) = self.expect_name("the name of a type")?;
        if self.module.types.contains_key(&name) {
            let message = format!("a type with the name `{name}` was previously defined");
            return Err(self.error_at(&token, Code::BoundTwice, message));
        }
        let outer = self.type_vars.len();
        let type_vars = self.type_params()?;
        let mut constructors = Vec::new();
        if self.eat("{") {
            if external {
                return Err(self.error_at(&token, Code::Structure, "an external type may not have any constructors"));
            }
            constructors = self.list("}", Self::constructor_def)?;
        }
        self.type_vars.truncate(outer);
        let mut names: Vec<&str> =
            constructors.iter().map(|(c, _): &(ConstructorDef, Token)| c.name.as_str()).collect();
        names.sort_unstable();
        let twice = names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].to_string());
        for (def, token) in &constructors {
            if self.module.constructor(&def.name).is_some() || twice.as_ref() == Some(&def.name) {
                let message = format!("a constructor with the name `{}` was previously defined", def.name);
                return Err(self.error_at(token, Code::BoundTwice, message));
            }
        }
        let defs = constructors.into_iter().map(|(def, _)| def).collect();
        let data = if external {
            Ref::new(TypeData { name: name.clone(), type_vars, constructors: Vec::new(), external })
        } else {
            TypeData::new(&name, type_vars, defs)
        };
        let clash = data.constructors.first().and_then(|c| self.module.constructor_of_tag(c.tag));
        if let Some(other) = clash {
            let message = format!(
                "the types `{name}` and `{}` would have the same tags, which are made from a hash of the name; choose another \
                 name",
                other.belong_to
            );
            return Err(self.error_at(&token, Code::BoundTwice, message));
        }
        self.module.types.insert(name, data);
        Ok(())
    }

    fn constructor_def(&mut self) -> Result<(ConstructorDef, Token), Diagnostic> {
        let (name, token) = self.expect_name("a constructor")?;
        let inputs = if self.eat("(") { self.list(")", Self::ty)? } else { Vec::new() };
        Ok((ConstructorDef { name, inputs }, token))
    }

    /// The constructor of a name.
    pub fn constructor(&self, name: &str) -> Option<Ref<Constructor>> {
        self.module.constructor(name).cloned()
    }
}
