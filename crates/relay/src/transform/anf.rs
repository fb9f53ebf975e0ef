//! ToANormalForm: every computation gets a name.
//!
//! ```text
//! add(nn.relu(%x), %y)    becomes    let %x_0 = nn.relu(%x);
//!                                    let %x_1 = add(%x_0, %y);
//!                                    %x_1
//! ```
//!
//! A node that several scopes share is bound in the innermost scope that holds all of its uses, so it is still computed once.
//! Operands are variables, functions of the module, operators, constructors and constants. The first walk finds the scope of
//! each node, the second emits bindings into the scopes, which are open while what is inside of them is emitted.

use std::collections::HashMap;

use relaxide_ffi::Ref;

use crate::stack::deep;
use crate::*;

/// A module in A-normal form.
pub fn to_a_normal_form(module: &Module) -> Module {
    deep(|| {
        let mut out = module.clone();
        for function in out.functions.values_mut() {
            *function = function_to_anf(function);
        }
        out
    })
}

/// A function in A-normal form.
pub fn function_to_anf(function: &Ref<Function>) -> Ref<Function> {
    let mut scopes = Scopes::default();
    let root = scopes.open(None);
    scopes.place(&function.body, root);
    let mut emitter =
        Emitter { scopes, open: vec![(root, Vec::new())], done: HashMap::new(), next: 0, keep: Vec::new() };
    let body = emitter.finish_scope(&function.body);
    function.with_body(body)
}

/// The scope of each node.
#[derive(Default)]
struct Scopes {
    parents: Vec<Option<usize>>,
    depths: Vec<usize>,
    of: HashMap<usize, usize>,
    /// The scopes that a node opens, in order: a function's body, branches, cases.
    inner: HashMap<usize, Vec<usize>>,
}

impl Scopes {
    fn open(&mut self, parent: Option<usize>) -> usize {
        self.parents.push(parent);
        self.depths.push(parent.map_or(0, |p| self.depths[p] + 1));
        self.parents.len() - 1
    }

    /// The innermost scope around both.
    fn common(&self, mut a: usize, mut b: usize) -> usize {
        while a != b {
            if self.depths[a] >= self.depths[b] {
                match self.parents[a] {
                    Some(parent) => a = parent,
                    None => return a,
                }
            } else if let Some(parent) = self.parents[b] {
                b = parent;
            }
        }
        a
    }

    /// A node is used in a scope.
    fn place(&mut self, expr: &Expr, scope: usize) {
        let mut expr = expr;
        let mut scope = scope;
        loop {
            if expr.is_leaf() {
                return;
            }
            let first = match self.of.get(&expr.address()) {
                None => true,
                Some(before) => {
                    scope = self.common(*before, scope);
                    if scope == *before {
                        return;
                    }
                    false
                }
            };
            self.of.insert(expr.address(), scope);
            match expr {
                // The next binding follows in the same scope, without recursion.
                Expr::Let(l) => {
                    self.place(&l.value, scope);
                    expr = &l.body;
                    continue;
                }
                Expr::Function(f) => self.place_inner(expr, &[&f.body], scope, first),
                Expr::If(i) => {
                    self.place(&i.cond, scope);
                    self.place_inner(expr, &[&i.then, &i.other], scope, first);
                }
                Expr::Match(m) => {
                    self.place(&m.data, scope);
                    let bodies: Vec<&Expr> = m.clauses.iter().map(|c| &c.body).collect();
                    self.place_inner(expr, &bodies, scope, first);
                }
                _ => {
                    for child in expr.children() {
                        self.place(child, scope);
                    }
                }
            }
            return;
        }
    }

    fn place_inner(&mut self, expr: &Expr, bodies: &[&Expr], scope: usize, first: bool) {
        if first {
            let opened: Vec<usize> = bodies.iter().map(|_| self.open(Some(scope))).collect();
            self.inner.insert(expr.address(), opened.clone());
            for (body, inner) in bodies.iter().zip(opened) {
                self.place(body, inner);
            }
            return;
        }
        // The node moves out, and its scopes with it; what they hold stays where it is unless it is shared.
        for inner in self.inner.get(&expr.address()).cloned().unwrap_or_default() {
            self.parents[inner] = Some(scope);
            self.set_depth(inner);
        }
    }

    fn set_depth(&mut self, scope: usize) {
        self.depths[scope] = self.parents[scope].map_or(0, |p| self.depths[p] + 1);
        let children: Vec<usize> = (0..self.parents.len()).filter(|s| self.parents[*s] == Some(scope)).collect();
        for child in children {
            self.set_depth(child);
        }
    }
}

/// The bindings of a scope.
type Bindings = Vec<(Ref<Var>, Expr)>;

/// The bindings of scopes under construction.
struct Emitter {
    scopes: Scopes,
    open: Vec<(usize, Bindings)>,
    done: HashMap<usize, Expr>,
    next: usize,
    /// Keeps nodes whose addresses are keys.
    keep: Vec<Expr>,
}

impl Emitter {
    /// Emits an expression as the result of the scope that was opened last, and closes it.
    fn finish_scope(&mut self, expr: &Expr) -> Expr {
        let result = self.atom(expr);
        let (_, bindings) = self.open.pop().unwrap_or_default();
        bindings.into_iter().rev().fold(result, |body, (var, value)| Expr::bind(var, value, body))
    }

    fn inner(&mut self, expr: &Expr, which: usize, body: &Expr) -> Expr {
        let scope = self.scopes.inner.get(&expr.address()).and_then(|list| list.get(which)).copied().unwrap_or(0);
        self.open.push((scope, Vec::new()));
        self.finish_scope(body)
    }

    /// Binds a value in the scope of its node.
    fn bind(&mut self, node: &Expr, var: Option<Ref<Var>>, value: Expr) -> Expr {
        let var = var.unwrap_or_else(|| {
            self.next += 1;
            Var::new(format!("x_{}", self.next - 1), None)
        });
        let scope = self.scopes.of.get(&node.address()).copied();
        let place = self.open.iter().rposition(|(open, _)| Some(*open) == scope).unwrap_or(self.open.len() - 1);
        self.open[place].1.push((var.clone(), value));
        var.into()
    }

    /// What stands for an expression as an operand.
    fn atom(&mut self, expr: &Expr) -> Expr {
        let mut expr = expr.clone();
        // Bindings that follow each other.
        let mut chain = Vec::new();
        while let Expr::Let(l) = &expr {
            if let Some(done) = self.done.get(&expr.address()) {
                let done = done.clone();
                return self.close(chain, done);
            }
            self.bind_let(&expr, l);
            let body = l.body.clone();
            chain.push(expr);
            expr = body;
        }
        let atom = match self.done.get(&expr.address()) {
            _ if expr.is_leaf() => expr.clone(),
            Some(done) => done.clone(),
            None => {
                let value = self.value(&expr);
                let atom = self.bind(&expr, None, value);
                self.done.insert(expr.address(), atom.clone());
                self.keep.push(expr.clone());
                atom
            }
        };
        self.close(chain, atom)
    }

    fn close(&mut self, chain: Vec<Expr>, atom: Expr) -> Expr {
        for expr in chain {
            self.done.insert(expr.address(), atom.clone());
            self.keep.push(expr);
        }
        atom
    }

    fn bind_let(&mut self, node: &Expr, l: &Ref<Let>) {
        let known = self.done.get(&l.value.address()).cloned();
        // A value that others share has its name already; a leaf is one.
        let value = match known {
            Some(atom) => atom,
            None if l.value.is_leaf() => l.value.clone(),
            None if matches!(l.value, Expr::Let(_)) => self.atom(&l.value),
            None => {
                let value = self.value(&l.value);
                let atom = self.bind(node, Some(l.var.clone()), value);
                self.done.insert(l.value.address(), atom);
                self.keep.push(l.value.clone());
                return;
            }
        };
        self.bind(node, Some(l.var.clone()), value);
    }

    /// The expression with atoms in the place of its parts.
    fn value(&mut self, expr: &Expr) -> Expr {
        match expr {
            Expr::Tuple(t) => {
                let fields = t.fields.iter().map(|e| self.atom(e)).collect();
                Ref::new(Tuple { fields, span: t.span.clone() }).into()
            }
            Expr::TupleGetItem(t) => {
                let tuple = self.atom(&t.tuple);
                Ref::new(TupleGetItem { tuple, index: t.index, span: t.span.clone() }).into()
            }
            Expr::Call(c) => {
                let op = self.atom(&c.op);
                let args = c.args.iter().map(|e| self.atom(e)).collect();
                let attrs = super::attrs_of_call(&c.op, &op, &c.attrs);
                let (type_args, span) = (c.type_args.clone(), c.span.clone());
                Ref::new(Call { op, args, attrs, type_args, span }).into()
            }
            Expr::Function(f) => f.with_body(self.inner(expr, 0, &f.body)).into(),
            Expr::If(i) => {
                let cond = self.atom(&i.cond);
                let (then, other) = (self.inner(expr, 0, &i.then), self.inner(expr, 1, &i.other));
                Ref::new(If { cond, then, other, span: i.span.clone() }).into()
            }
            Expr::Match(m) => {
                let data = self.atom(&m.data);
                let mut clauses = Vec::new();
                for (i, clause) in m.clauses.iter().enumerate() {
                    let body = self.inner(expr, i, &clause.body);
                    clauses.push(Ref::new(Clause { pattern: clause.pattern.clone(), body }));
                }
                Ref::new(Match { data, clauses, complete: m.complete, span: m.span.clone() }).into()
            }
            Expr::RefCreate(r) => Ref::new(RefCreate { value: self.atom(&r.value), span: r.span.clone() }).into(),
            Expr::RefRead(r) => Ref::new(RefRead { reference: self.atom(&r.reference), span: r.span.clone() }).into(),
            Expr::RefWrite(r) => {
                let (reference, value) = (self.atom(&r.reference), self.atom(&r.value));
                Ref::new(RefWrite { reference, value, span: r.span.clone() }).into()
            }
            leaf => leaf.clone(),
        }
    }
}
