//! Expressions in text.

use relaxide_ffi::Ref;
use relaxide_ir::diagnostic::closest;
use relaxide_ir::{AttrValue, Attrs, Code, Diagnostic, GlobalVar, Span};

use super::lex::{Tok, Token};
use super::parse::Parser;
use crate::json::MetaValue;
use crate::op;
use crate::*;

/// What stands before an expression.
enum Prefix {
    Bind(Ref<Var>, Expr, Option<Ref<Span>>),
}

/// Operators between operands, with how tightly they bind and what they call.
const INFIX: &[(&str, u8, &str)] = &[
    ("*", 12, "multiply"),
    ("/", 12, "divide"),
    ("+", 10, "add"),
    ("-", 10, "subtract"),
    ("<", 8, "less"),
    ("<=", 8, "less_equal"),
    (">", 8, "greater"),
    (">=", 8, "greater_equal"),
    ("==", 7, "equal"),
    ("!=", 7, "not_equal"),
];

impl Parser<'_> {
    /// Bindings and an expression.
    pub fn block(&mut self) -> Result<Expr, Diagnostic> {
        let outer = self.vars.len();
        let mut prefixes = Vec::new();
        let body = loop {
            let token = self.token();
            match self.peek().clone() {
                Tok::Name(name) if name == "let" => prefixes.push(self.let_binding(&token)?),
                Tok::Name(name) if name == "free_var" => {
                    self.advance();
                    let var = self.bound_var()?;
                    self.vars.push(var);
                    // 0.6 ends it with the line.
                    self.eat(";");
                }
                Tok::Graph(number) if matches!(self.peek_at(1), Tok::Sym("=")) => {
                    self.advance();
                    self.advance();
                    let value = self.nested(Self::value)?;
                    self.expect(";")?;
                    self.graph.insert(number, value);
                }
                _ => {
                    let expr = self.nested(Self::value)?;
                    if !self.eat(";") {
                        break expr;
                    }
                    // A value that is not used, before others: a binding without a name.
                    let span = expr.span().cloned();
                    prefixes.push(Prefix::Bind(Var::new("", None), expr, span));
                }
            }
        };
        self.vars.truncate(outer);
        Ok(prefixes
            .into_iter()
            .rev()
            .fold(body, |body, Prefix::Bind(var, value, span)| Ref::new(Let { var, value, body, span }).into()))
    }

    fn let_binding(&mut self, first: &Token) -> Result<Prefix, Diagnostic> {
        self.advance();
        let var = self.bound_var()?;
        self.expect("=")?;
        // A function is visible in its own body.
        let recursive = self.is_name("fn");
        if recursive {
            self.vars.push(var.clone());
        }
        let value = self.nested(Self::value)?;
        if !recursive {
            self.vars.push(var.clone());
        }
        let span = self.span_from(first);
        self.expect(";")?;
        Ok(Prefix::Bind(var, value, span))
    }

    /// An expression without bindings in front.
    fn value(&mut self) -> Result<Expr, Diagnostic> {
        if self.is("{") {
            self.advance();
            let expr = self.nested(Self::block)?;
            self.expect("}")?;
            return Ok(expr);
        }
        self.infix(0)
    }

    fn infix(&mut self, tightness: u8) -> Result<Expr, Diagnostic> {
        let first = self.token();
        let mut left = self.call()?;
        loop {
            let Tok::Sym(symbol) = self.peek() else { return Ok(left) };
            let Some((_, own, name)) = INFIX.iter().find(|(s, own, _)| s == symbol && *own > tightness) else {
                return Ok(left);
            };
            self.advance();
            let right = self.nested(|p| p.infix(*own))?;
            let span = self.span_from(&first);
            let (op, args) = (Expr::op(*name), vec![left, right]);
            left = Ref::new(Call { op, args, attrs: Attrs::new(), type_args: Vec::new(), span }).into();
        }
    }

    /// An operand with the calls behind it.
    fn call(&mut self) -> Result<Expr, Diagnostic> {
        let first = self.token();
        let mut expr = self.atom()?;
        let mut called = false;
        loop {
            if self.is("(") {
                expr = self.call_rest(expr, &first)?;
                called = true;
            } else if let (Tok::Sym("."), Tok::Int(index, _), true) = (self.peek(), self.peek_at(1).clone(), called) {
                // A field of what a call gives, which TVM's parser wants in parentheses.
                self.advance();
                self.advance();
                let span = self.span_from(&first);
                expr = Ref::new(TupleGetItem { tuple: expr, index, span }).into();
            } else {
                break;
            }
        }
        if let (Expr::Constructor(c), false) = (&expr, called)
            && c.inputs.is_empty()
        {
            // A constructor without fields is a value by its name alone.
            let (op, span) = (expr.clone(), self.span_from(&first));
            return Ok(Ref::new(Call { op, args: vec![], attrs: Attrs::new(), type_args: vec![], span }).into());
        }
        Ok(expr)
    }

    fn call_rest(&mut self, op: Expr, first: &Token) -> Result<Expr, Diagnostic> {
        self.advance();
        let (mut args, mut attrs) = (Vec::new(), Attrs::new());
        while !self.eat(")") {
            if self.at_attribute() {
                let (name, value) = self.attribute()?;
                attrs = attrs.with(name, value);
            } else if let (Tok::Meta(key, index), true) = (self.peek().clone(), self.at_meta_attributes()) {
                self.advance();
                if let Some(MetaValue::Attrs(found)) = self.meta.get(&key, index) {
                    attrs.0.extend(found.0);
                }
            } else {
                args.push(self.nested(Self::value)?);
            }
            if !self.is(")") {
                self.expect(",")?;
            }
        }
        if let Expr::Op(node) = &op {
            if self.older {
                let moved = op::older::quantized(&node.name, &mut args, &mut attrs);
                moved.map_err(|why| self.error_at(first, Code::Operator, format!("{}: {why}", node.name)))?;
            }
            attrs = self.checked_attrs(&node.name, &attrs, first)?;
        }
        let span = self.span_from(first);
        Ok(Ref::new(Call { op, args, attrs, type_args: Vec::new(), span }).into())
    }

    fn checked_attrs(&self, name: &str, attrs: &Attrs, first: &Token) -> Result<Attrs, Diagnostic> {
        let Some(def) = op::lookup(name) else { return Ok(attrs.clone()) };
        def.complete_attrs(attrs).map_err(|problem| self.error_at(first, Code::Operator, format!("{name}: {problem}")))
    }

    /// Whether an attribute follows: a name, perhaps of several parts, and `=`.
    fn at_attribute(&self) -> bool {
        if !matches!(self.peek(), Tok::Name(_) | Tok::Quoted(_)) {
            return false;
        }
        let mut ahead = 1;
        while matches!((self.peek_at(ahead), self.peek_at(ahead + 1)), (Tok::Sym("."), Tok::Name(_))) {
            ahead += 2;
        }
        matches!(self.peek_at(ahead), Tok::Sym("="))
    }

    /// Whether the metadata that follow are attributes and no value.
    fn at_meta_attributes(&self) -> bool {
        let Tok::Meta(key, index) = self.peek() else { return false };
        matches!(self.meta.get(key, *index), Some(MetaValue::Attrs(_)))
    }

    /// `name=value`.
    pub fn attribute(&mut self) -> Result<(String, AttrValue), Diagnostic> {
        let mut name = match self.peek().clone() {
            Tok::Str(name) => {
                self.advance();
                name
            }
            _ => self.expect_name("an attribute")?.0,
        };
        while self.eat(".") {
            name = format!("{name}.{}", self.expect_name("the rest of the attribute's name")?.0);
        }
        self.expect("=")?;
        let value = self.nested(Self::attribute_value)?;
        Ok((name, value))
    }

    fn attribute_value(&mut self) -> Result<AttrValue, Diagnostic> {
        let token = self.token();
        let value = match token.kind.clone() {
            Tok::Int(v, _) => AttrValue::Int(v),
            Tok::Float(v, _) => AttrValue::Float(v),
            Tok::Str(text) => AttrValue::Str(text),
            Tok::Name(name) if name == "True" => AttrValue::Bool(true),
            Tok::Name(name) if name == "False" => AttrValue::Bool(false),
            Tok::Name(name) if name == "None" || name == "nullptr" => AttrValue::None,
            Tok::Global(name) => AttrValue::Object(GlobalVar::new(name).into()),
            Tok::Meta(key, index) => match self.meta.get(&key, index) {
                Some(found) => found.as_attr(),
                None => return Err(self.no_meta(&token, &key, index)),
            },
            Tok::Sym("[") => {
                self.advance();
                return self.list("]", |p| p.nested(Self::attribute_value)).map(AttrValue::List);
            }
            Tok::Sym("{") => {
                self.advance();
                return Ok(AttrValue::Map(self.list("}", Self::attribute)?.into_iter().collect()));
            }
            Tok::Sym("(") => {
                self.advance();
                let value = self.nested(Self::attribute_value)?;
                self.expect(")")?;
                return Ok(value);
            }
            _ => return Err(self.unexpected("the value of an attribute")),
        };
        self.advance();
        Ok(value)
    }

    fn no_meta(&self, token: &Token, key: &str, index: usize) -> Diagnostic {
        let message = match self.meta.len(key) {
            None => format!("no entry in the meta table for `{key}`"),
            Some(_) => format!("the node index `{index}` is out of bounds for `{key}`"),
        };
        self.error_at(token, Code::Metadata, message)
    }

    /// An operand.
    fn atom(&mut self) -> Result<Expr, Diagnostic> {
        let first = self.token();
        let base = self.nested(Self::base)?;
        let mut expr = base;
        while self.is(".") {
            let Tok::Int(index, _) = self.peek_at(1).clone() else { break };
            self.advance();
            self.advance();
            let span = self.span_from(&first);
            expr = Ref::new(TupleGetItem { tuple: expr, index, span }).into();
        }
        Ok(expr)
    }

    fn base(&mut self) -> Result<Expr, Diagnostic> {
        let token = self.token();
        match token.kind.clone() {
            Tok::Int(value, dtype) => {
                self.advance();
                let data = crate::scalar::int(value, dtype);
                let data = data.map_err(|e| self.error_at(&token, Code::Syntax, e.to_string()))?;
                Ok(Ref::new(Constant { data, span: self.span_from(&token) }).into())
            }
            Tok::Float(value, dtype) => {
                self.advance();
                let data = crate::scalar::float(value, dtype);
                let data = data.map_err(|e| self.error_at(&token, Code::Syntax, e.to_string()))?;
                Ok(Ref::new(Constant { data, span: self.span_from(&token) }).into())
            }
            Tok::Local(name) => {
                self.advance();
                let found = self.vars.iter().rev().find(|v| v.name == name).cloned();
                found.map(Expr::from).ok_or_else(|| {
                    let message = "this local variable has not been previously declared";
                    let known = closest(&name, self.vars.iter().map(|v| v.name.as_str())).map(str::to_string);
                    let error = self.error_at(&token, Code::UnknownName, message);
                    match known {
                        Some(known) => error.with_help(format!("did you mean `%{known}`?")),
                        None => error,
                    }
                })
            }
            Tok::Graph(number) => {
                self.advance();
                let missing =
                    || self.error_at(&token, Code::UnknownName, format!("there is no `%{number}` before this"));
                self.graph.get(&number).cloned().ok_or_else(missing)
            }
            Tok::Global(name) => {
                self.advance();
                Ok(GlobalVar::new(name).into())
            }
            Tok::Meta(key, index) => {
                self.advance();
                match self.meta.get(&key, index) {
                    Some(MetaValue::Expr(expr)) => Ok(expr),
                    Some(_) => {
                        Err(self.error_at(&token, Code::Metadata, format!("meta[{key}][{index}] is no expression")))
                    }
                    None => Err(self.no_meta(&token, &key, index)),
                }
            }
            Tok::Sym("(") => self.parenthesized(),
            Tok::Name(name) => self.named(&name, &token),
            Tok::Quoted(name) => {
                self.advance();
                let undefined = || self.error_at(&token, Code::UnknownName, format!("undefined constructor `{name}`"));
                self.constructor(&name).map(Expr::from).ok_or_else(undefined)
            }
            _ => Err(self.unexpected("an expression")),
        }
    }

    fn parenthesized(&mut self) -> Result<Expr, Diagnostic> {
        let first = self.advance();
        let (mut fields, mut commas) = (Vec::new(), false);
        while !self.eat(")") {
            fields.push(self.nested(Self::block)?);
            if !self.is(")") {
                self.expect(",")?;
                commas = true;
            }
        }
        match fields.as_slice() {
            [only] if !commas => Ok(only.clone()),
            _ => Ok(Ref::new(Tuple { fields, span: self.span_from(&first) }).into()),
        }
    }

    fn named(&mut self, name: &str, token: &Token) -> Result<Expr, Diagnostic> {
        self.advance();
        match name {
            "True" | "False" => {
                let data = crate::scalar::int(i64::from(name == "True"), relaxide_ffi::DataType::bool());
                let data = data.map_err(|e| self.error_at(token, Code::Syntax, e.to_string()))?;
                Ok(Ref::new(Constant { data, span: self.span_from(token) }).into())
            }
            "fn" => self.function_rest(token).map(Expr::from),
            "if" => self.choice(token),
            "match" => self.matching(token, true),
            "match?" => self.matching(token, false),
            "ref" => {
                let value = self.one_argument()?;
                Ok(Ref::new(RefCreate { value, span: self.span_from(token) }).into())
            }
            "ref_read" => {
                let reference = self.one_argument()?;
                Ok(Ref::new(RefRead { reference, span: self.span_from(token) }).into())
            }
            "ref_write" => {
                self.expect("(")?;
                let reference = self.nested(Self::block)?;
                self.expect(",")?;
                let value = self.nested(Self::block)?;
                self.expect(")")?;
                Ok(Ref::new(RefWrite { reference, value, span: self.span_from(token) }).into())
            }
            _ => self.operator_or_constructor(name, token),
        }
    }

    fn one_argument(&mut self) -> Result<Expr, Diagnostic> {
        self.expect("(")?;
        let value = self.nested(Self::block)?;
        self.expect(")")?;
        Ok(value)
    }

    fn operator_or_constructor(&mut self, first: &str, token: &Token) -> Result<Expr, Diagnostic> {
        if let Some(constructor) = self.constructor(first) {
            return Ok(constructor.into());
        }
        let mut name = first.to_string();
        let mut last = token.clone();
        while self.is(".") && matches!(self.peek_at(1), Tok::Name(_)) {
            self.advance();
            let (part, part_token) = self.expect_name("the rest of the operator's name")?;
            name = format!("{name}.{part}");
            last = part_token;
        }
        if op::lookup(&name).is_some() {
            return Ok(Expr::op(name));
        }
        let whole = Token { kind: token.kind.clone(), start: token.start, end: last.end };
        let error = self.error_at(
            &whole,
            Code::UnknownName,
            format!("operator `{name}` not found, perhaps you forgot to register it?"),
        );
        let known = op::all()
            .map(|def| def.name)
            .chain(self.module.types.values().flat_map(|t| t.constructors.iter().map(|c| c.name.as_str())));
        Err(match closest(&name, known) {
            Some(known) => error.with_help(format!("did you mean `{known}`?")),
            None => error,
        })
    }

    fn braced(&mut self) -> Result<Expr, Diagnostic> {
        self.expect("{")?;
        let expr = self.nested(Self::block)?;
        self.expect("}")?;
        Ok(expr)
    }

    fn choice(&mut self, first: &Token) -> Result<Expr, Diagnostic> {
        let cond = self.one_argument()?;
        let then = self.braced()?;
        if !self.is_name("else") {
            return Err(self.unexpected("`else`"));
        }
        self.advance();
        let other = self.braced()?;
        Ok(Ref::new(If { cond, then, other, span: self.span_from(first) }).into())
    }

    fn matching(&mut self, first: &Token, complete: bool) -> Result<Expr, Diagnostic> {
        let data = self.nested(Self::atom)?;
        self.expect("{")?;
        let clauses = self.list("}", |p| {
            let outer = p.vars.len();
            let pattern = p.pattern()?;
            p.expect("=>")?;
            let body = if p.is("{") { p.braced()? } else { p.nested(Self::value)? };
            p.vars.truncate(outer);
            Ok(Ref::new(Clause { pattern, body }))
        })?;
        Ok(Ref::new(Match { data, clauses, complete, span: self.span_from(first) }).into())
    }

    fn pattern(&mut self) -> Result<Pattern, Diagnostic> {
        self.nested(Self::pattern_inside)
    }

    fn pattern_inside(&mut self) -> Result<Pattern, Diagnostic> {
        let token = self.token();
        match token.kind.clone() {
            Tok::Local(_) => {
                let var = self.bound_var()?;
                self.vars.push(var.clone());
                Ok(Pattern::var(var))
            }
            Tok::Sym("(") => {
                self.advance();
                let patterns = self.list(")", Self::pattern)?;
                Ok(Ref::new(PatternTuple { patterns }).into())
            }
            Tok::Name(name) if name == "_" => {
                self.advance();
                Ok(Pattern::wildcard())
            }
            Tok::Name(name) | Tok::Quoted(name) => {
                self.advance();
                let Some(constructor) = self.constructor(&name) else {
                    let message = format!(
                        "undefined constructor name `{name}`, perhaps you intended to write a pattern variable, considering \
                         changing this to `%{name}`"
                    );
                    return Err(self.error_at(&token, Code::UnknownName, message));
                };
                let patterns = if self.eat("(") { self.list(")", Self::pattern)? } else { Vec::new() };
                Ok(Ref::new(PatternConstructor { constructor, patterns }).into())
            }
            _ => Err(self.unexpected("a pattern")),
        }
    }
}
