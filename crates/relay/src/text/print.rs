//! A module to text.
//!
//! A node that stands in one place and at the end of a scope is printed there; any other gets a number, `%0 = …;`, in front of
//! what uses it, so that what is shared is shared in the text too. Numbers are given out when the user is printed, in the
//! order of its operands, as TVM does. Unlike TVM's, a text that is printed can always be read: a `let` that is the value of
//! another stands in parentheses.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use relaxide_ffi::Ref;
use relaxide_ir::Span;

use super::VERSION;
use super::names;
use super::print_type::TypeNames;
use crate::json::MetaWriter;
use crate::stack::deep;
use crate::*;

/// What a text shows.
#[derive(Clone, Copy, Default)]
pub struct PrintOptions<'a> {
    /// Types that were inferred, shown behind expressions and at bindings.
    pub types: Option<&'a Types>,
    /// Whether comments name the place that a node was read from.
    pub spans: bool,
    /// Whether the header is left out.
    pub bare: bool,
    /// Whether constants that are no plain numbers are left out of the text: it cannot be read then.
    pub no_metadata: bool,
}

/// The text of a module.
pub fn print_module(module: &Module, options: PrintOptions<'_>) -> String {
    deep(|| {
        let mut printer = Printer::new(options);
        printer.types.data.extend(module.types.keys().cloned());
        printer.constructors.extend(module.types.values().flat_map(|ty| &ty.constructors).map(|c| c.name.clone()));
        let mut parts: Vec<String> = module.types.values().map(|ty| printer.type_data(ty)).collect();
        for (name, function) in &module.functions {
            printer.count(&function.body);
            parts.push(printer.definition(name, function));
        }
        printer.finish(&parts.join("\n\n"))
    })
}

/// The text of an expression. Variables that it does not bind are declared in front.
pub fn print_expr(expr: &Expr, options: PrintOptions<'_>) -> String {
    deep(|| {
        let mut printer = Printer::new(options);
        printer.count(expr);
        let mut text = String::new();
        for var in crate::visit::free_vars(expr) {
            let bound = printer.binding(&var);
            let _ = writeln!(text, "free_var {bound};");
        }
        text += &printer.scope(expr);
        printer.finish(&text)
    })
}

pub(super) struct Printer<'a> {
    pub options: PrintOptions<'a>,
    names: HashMap<usize, String>,
    taken: HashSet<String>,
    types: TypeNames,
    /// The names of the module's constructors.
    constructors: HashSet<String>,
    /// How many users a node has.
    uses: HashMap<usize, usize>,
    /// Texts of nodes.
    texts: HashMap<usize, String>,
    /// Numbers of nodes.
    temps: HashMap<usize, String>,
    next: usize,
    /// The lines of the scopes that are open.
    scopes: Vec<Vec<String>>,
    /// Nodes that had their comment.
    shown: HashSet<usize>,
    pub meta: MetaWriter,
}

impl<'a> Printer<'a> {
    fn new(options: PrintOptions<'a>) -> Printer<'a> {
        Printer {
            options,
            names: HashMap::new(),
            taken: HashSet::new(),
            types: TypeNames::default(),
            constructors: HashSet::new(),
            uses: HashMap::new(),
            texts: HashMap::new(),
            temps: HashMap::new(),
            next: 0,
            scopes: Vec::new(),
            shown: HashSet::new(),
            meta: MetaWriter::default(),
        }
    }

    fn finish(self, body: &str) -> String {
        let mut text = String::new();
        if !self.options.bare {
            let _ = writeln!(text, "#[version = \"{VERSION}\"]");
        }
        text += body;
        text.push('\n');
        if let (Some(json), false) = (self.meta.finish(), self.options.no_metadata) {
            let _ = write!(text, "\n#[metadata]\n{json}\n");
        }
        text
    }

    /// Counts the users of what an expression is made of.
    fn count(&mut self, root: &Expr) {
        let mut work = vec![root];
        let mut seen = HashSet::new();
        *self.uses.entry(root.address()).or_default() += 1;
        while let Some(expr) = work.pop() {
            if !seen.insert(expr.address()) {
                continue;
            }
            for child in expr.children() {
                *self.uses.entry(child.address()).or_default() += 1;
                work.push(child);
            }
        }
    }

    fn is_unique(&self, expr: &Expr) -> bool {
        self.uses.get(&expr.address()).copied().unwrap_or(0) <= 1
    }

    // Names.

    fn fresh_name(&mut self, hint: &str, prefix: char) -> String {
        let mut base: String =
            hint.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
        if !base.starts_with(|c: char| c.is_ascii_alphabetic()) {
            base.insert(0, prefix);
        }
        let mut name = base.clone();
        let mut number = 0;
        while self.taken.contains(&name) {
            number += 1;
            name = format!("{base}{number}");
        }
        self.taken.insert(name.clone());
        name
    }

    fn name(&mut self, var: &Ref<Var>) -> String {
        let address = Ref::as_ptr(var).addr();
        if let Some(name) = self.names.get(&address) {
            return name.clone();
        }
        let name = format!("%{}", self.fresh_name(&var.name, 'v'));
        self.names.insert(address, name.clone());
        name
    }

    /// A variable where it is bound.
    pub fn binding(&mut self, var: &Ref<Var>) -> String {
        let name = self.name(var);
        let ty = self.options.types.and_then(|types| types.of_var(var)).or_else(|| var.annotation.clone());
        let mut text = name;
        if let Some(device) = &var.device {
            let device = self.meta.add_attr("VirtualDevice", &device.to_attr());
            let _ = write!(text, " {{virtual_device={device}}}");
        }
        if let Some(ty) = ty.filter(|ty| !matches!(ty, Type::Incomplete(_))) {
            let _ = write!(text, ": {}", self.types.text(&ty));
        }
        let comment = self.comment(&Expr::Var(var.clone()));
        text + &comment
    }

    /// What is known of a node, once.
    fn comment(&mut self, expr: &Expr) -> String {
        let Some(types) = self.options.types else { return String::new() };
        if !self.shown.insert(expr.address()) {
            return String::new();
        }
        let Some(ty) = types.of(expr) else { return String::new() };
        let mut text = format!(" /* ty={}", self.types.text(&ty));
        if let (Some(span), true) = (expr.span(), self.options.spans) {
            let Span { source, line, column, .. } = &**span;
            let _ = write!(text, " span={source}:{line}:{column}");
        }
        text + " */"
    }

    // Scopes.

    /// The lines and the result of what stands between braces.
    pub fn scope(&mut self, expr: &Expr) -> String {
        self.scopes.push(Vec::new());
        let mut expr = expr;
        while let Expr::Let(l) = expr {
            if !self.is_unique(expr) && self.temps.contains_key(&expr.address()) {
                break;
            }
            let var = self.binding(&l.var);
            let value = self.tail(&l.value);
            self.line(format!("let {var} = {value};"));
            expr = &l.body;
        }
        let result = if self.is_unique(expr) || expr.is_leaf() { self.text(expr) } else { self.operand(expr) };
        let mut lines = self.scopes.pop().unwrap_or_default();
        lines.push(result);
        lines.join("\n")
    }

    fn line(&mut self, line: String) {
        if let Some(lines) = self.scopes.last_mut() {
            lines.push(line);
        }
    }

    /// A value at the end of a binding.
    fn tail(&mut self, expr: &Expr) -> String {
        if self.is_unique(expr) && !matches!(expr, Expr::Let(_)) {
            self.text(expr)
        } else {
            self.operand_or_block(expr)
        }
    }

    fn operand_or_block(&mut self, expr: &Expr) -> String {
        match expr {
            Expr::Let(_) if self.is_unique(expr) => self.text(expr),
            _ => self.operand(expr),
        }
    }

    fn braced(&mut self, expr: &Expr) -> String {
        format!("{{\n{}\n}}", indented(&self.scope(expr)))
    }

    // Expressions.

    /// A node as an operand: itself if it is a leaf, else its number.
    fn operand(&mut self, expr: &Expr) -> String {
        if expr.is_leaf() {
            return self.text(expr);
        }
        if let Some(temp) = self.temps.get(&expr.address()) {
            return temp.clone();
        }
        let text = self.text(expr);
        let temp = format!("%{}", self.next);
        self.next += 1;
        self.temps.insert(expr.address(), temp.clone());
        self.line(format!("{temp} = {text};"));
        temp
    }

    /// Operands in order: first what they are made of gets its numbers, then they do.
    fn operands<'e>(&mut self, exprs: impl IntoIterator<Item = &'e Expr>) -> Vec<String> {
        let exprs: Vec<&Expr> = exprs.into_iter().collect();
        for expr in &exprs {
            if !expr.is_leaf() && !self.temps.contains_key(&expr.address()) {
                self.text(expr);
            }
        }
        exprs.into_iter().map(|expr| self.operand(expr)).collect()
    }

    /// The text of a node.
    fn text(&mut self, expr: &Expr) -> String {
        if let Some(text) = self.texts.get(&expr.address()) {
            return text.clone();
        }
        let text = self.written(expr);
        let commented = matches!(
            expr,
            Expr::Constant(_) | Expr::Call(_) | Expr::Function(_) | Expr::Tuple(_) | Expr::TupleGetItem(_)
        );
        let text = if commented { text + &self.comment(expr) } else { text };
        // A leaf has its comment where it is met first only.
        if !expr.is_leaf() {
            self.texts.insert(expr.address(), text.clone());
        }
        text
    }

    fn written(&mut self, expr: &Expr) -> String {
        match expr {
            Expr::Constant(c) => self.constant(c),
            Expr::Var(var) => self.name(var),
            Expr::Global(g) => names::global(&g.name),
            Expr::Op(op) => self.operator(op, expr),
            Expr::Constructor(c) => names::name(&c.name).into_owned(),
            Expr::Tuple(t) => {
                let fields = self.operands(&t.fields);
                let comma = if fields.len() == 1 { "," } else { "" };
                format!("({}{comma})", fields.join(", "))
            }
            Expr::TupleGetItem(t) => {
                let tuple = self.operands([&t.tuple]).concat();
                format!("{tuple}.{}", t.index)
            }
            Expr::Call(call) => self.call(call),
            Expr::Function(f) => format!("fn {}", self.function_rest(f)),
            Expr::Let(_) => format!("(\n{}\n)", indented(&self.scope(expr))),
            Expr::If(i) => {
                let cond = self.operands([&i.cond]).concat();
                let (then, other) = (self.braced(&i.then), self.braced(&i.other));
                format!("if ({cond}) {then} else {other}")
            }
            Expr::Match(m) => self.matching(m),
            Expr::RefCreate(r) => format!("ref({})", self.operands([&r.value]).concat()),
            Expr::RefRead(r) => format!("ref_read({})", self.operands([&r.reference]).concat()),
            Expr::RefWrite(r) => format!("ref_write({})", self.operands([&r.reference, &r.value]).join(", ")),
        }
    }

    /// An operator by its name, unless that begins like the name of a constructor, which a reader takes it for then.
    fn operator(&mut self, op: &Ref<Op>, expr: &Expr) -> String {
        let first = op.name.split('.').next().unwrap_or_default();
        if self.constructors.contains(first) { self.meta.add("Op", expr.as_object()) } else { op.name.clone() }
    }

    fn call(&mut self, call: &Ref<Call>) -> String {
        let mut parts = self.operands(std::iter::once(&call.op).chain(&call.args));
        let op = parts.remove(0);
        if let Expr::Constructor(c) = &call.op
            && c.inputs.is_empty()
            && parts.is_empty()
        {
            return op;
        }
        parts.extend(self.call_attrs(call));
        format!("{op}({})", parts.join(", "))
    }

    fn matching(&mut self, m: &Match) -> String {
        let data = self.operands([&m.data]).concat();
        let mut text = format!("match{} ({data}) {{", if m.complete { "" } else { "?" });
        for clause in &m.clauses {
            let pattern = self.pattern(&clause.pattern);
            let body = self.braced(&clause.body);
            let _ = write!(text, "\n{},", indented(&format!("{pattern} => {body}")));
        }
        text + "\n}"
    }

    fn pattern(&mut self, pattern: &Pattern) -> String {
        let list = |printer: &mut Self, patterns: &[Pattern]| {
            patterns.iter().map(|p| printer.pattern(p)).collect::<Vec<_>>().join(", ")
        };
        match pattern {
            Pattern::Wildcard(_) => "_".into(),
            Pattern::Var(p) => self.binding(&p.var),
            Pattern::Constructor(p) => {
                let name = names::name(&p.constructor.name);
                if p.patterns.is_empty() { name.into_owned() } else { format!("{name}({})", list(self, &p.patterns)) }
            }
            Pattern::Tuple(p) => {
                let comma = if p.patterns.len() == 1 { "," } else { "" };
                format!("({}{comma})", list(self, &p.patterns))
            }
        }
    }

    // Definitions.

    fn definition(&mut self, name: &str, function: &Ref<Function>) -> String {
        format!("def {}{}", names::global(name), self.function_rest(function))
    }

    fn function_rest(&mut self, f: &Ref<Function>) -> String {
        let (mut text, outer) = self.types.enter(&f.type_params);
        let mut params: Vec<String> = f.params.iter().map(|p| self.binding(p)).collect();
        params.extend(self.function_attrs(f));
        let _ = write!(text, "({})", params.join(", "));
        let ret = self.options.types.and_then(|types| types.of(&Expr::Function(f.clone())));
        let ret = match ret {
            Some(Type::Func(ty)) => Some(ty.ret.clone()),
            _ => f.ret_type.clone(),
        };
        if let Some(ty) = ret {
            let _ = write!(text, " -> {}", self.types.text(&ty));
        }
        let body = self.braced(&f.body);
        self.types.leave(outer);
        format!("{text} {body}")
    }

    fn type_data(&mut self, ty: &TypeData) -> String {
        let (params, outer) = self.types.enter(&ty.type_vars);
        let head = format!("{}{params}", names::name(&ty.name));
        let mut text = format!("type {head} {{");
        for c in &ty.constructors {
            let inputs = self.types.list(&c.inputs);
            let inputs = if inputs.is_empty() { inputs } else { format!("({inputs})") };
            let _ = write!(text, "\n  {}{inputs},", names::name(&c.name));
        }
        self.types.leave(outer);
        if ty.external { format!("extern type {head}") } else { text + "\n}" }
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}
