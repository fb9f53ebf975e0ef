//! Rebuilding expressions.
//!
//! Parts come before what they are part of; a node that is shared is rebuilt once, and one whose parts stay is kept.

use std::collections::HashMap;

use relaxide_ffi::Ref;

use crate::transform::attrs_of_call;
use crate::*;

/// Rebuilds an expression: `rule` sees each node with its parts rebuilt, and the node that it was.
pub fn rewrite(root: &Expr, rule: &mut dyn FnMut(&Expr, &Expr) -> Option<Expr>) -> Expr {
    rewrite_bindings(root, rule, &mut |_, _| {})
}

/// As [`rewrite`]; `bound` sees each binding with its value rebuilt, before what follows it is rebuilt.
pub fn rewrite_bindings(
    root: &Expr,
    rule: &mut dyn FnMut(&Expr, &Expr) -> Option<Expr>,
    bound: &mut dyn FnMut(&Ref<Let>, &Expr),
) -> Expr {
    Rewriter { done: HashMap::new(), keep: Vec::new(), rule, bound }.expr(root)
}

struct Rewriter<'r> {
    done: HashMap<usize, Expr>,
    keep: Vec<Expr>,
    rule: &'r mut dyn FnMut(&Expr, &Expr) -> Option<Expr>,
    bound: &'r mut dyn FnMut(&Ref<Let>, &Expr),
}

impl Rewriter<'_> {
    fn finish(&mut self, old: &Expr, new: Expr) -> Expr {
        let new = (self.rule)(&new, old).unwrap_or(new);
        // One node of these may stand at many places, and it is looked at for each of them.
        if !matches!(old, Expr::Op(_) | Expr::Constructor(_) | Expr::Global(_) | Expr::Var(_)) {
            self.done.insert(old.address(), new.clone());
            self.keep.push(old.clone());
        }
        new
    }

    fn list(&mut self, list: &[Expr]) -> (Vec<Expr>, bool) {
        let new: Vec<Expr> = list.iter().map(|e| self.expr(e)).collect();
        let same = new.iter().zip(list).all(|(a, b)| a.ptr_eq(b));
        (new, same)
    }

    fn expr(&mut self, expr: &Expr) -> Expr {
        if let Some(done) = self.done.get(&expr.address()) {
            return done.clone();
        }
        if matches!(expr, Expr::Let(_)) {
            return self.lets(expr);
        }
        let new = self.rebuilt(expr);
        self.finish(expr, new)
    }

    /// Bindings that follow each other, in a loop.
    fn lets(&mut self, first: &Expr) -> Expr {
        let (mut chain, mut expr) = (Vec::new(), first.clone());
        while let Expr::Let(l) = &expr {
            if self.done.contains_key(&expr.address()) {
                break;
            }
            let value = self.expr(&l.value);
            (self.bound)(l, &value);
            let body = l.body.clone();
            chain.push((expr, value));
            expr = body;
        }
        let mut body = self.expr(&expr);
        for (old, value) in chain.into_iter().rev() {
            let Expr::Let(l) = &old else { continue };
            let new = if value.ptr_eq(&l.value) && body.ptr_eq(&l.body) {
                old.clone()
            } else {
                Ref::new(Let { var: l.var.clone(), value, body, span: l.span.clone() }).into()
            };
            body = self.finish(&old, new);
        }
        body
    }

    fn rebuilt(&mut self, expr: &Expr) -> Expr {
        match expr {
            Expr::Tuple(t) => match self.list(&t.fields) {
                (_, true) => expr.clone(),
                (fields, _) => Ref::new(Tuple { fields, span: t.span.clone() }).into(),
            },
            Expr::TupleGetItem(t) => {
                let tuple = self.expr(&t.tuple);
                if tuple.ptr_eq(&t.tuple) {
                    return expr.clone();
                }
                Ref::new(TupleGetItem { tuple, index: t.index, span: t.span.clone() }).into()
            }
            Expr::Call(c) => {
                let op = self.expr(&c.op);
                let (args, same) = self.list(&c.args);
                if same && op.ptr_eq(&c.op) {
                    return expr.clone();
                }
                let attrs = attrs_of_call(&c.op, &op, &c.attrs);
                let (type_args, span) = (c.type_args.clone(), c.span.clone());
                Ref::new(Call { op, args, attrs, type_args, span }).into()
            }
            Expr::Function(f) => {
                let body = self.expr(&f.body);
                if body.ptr_eq(&f.body) { expr.clone() } else { f.with_body(body).into() }
            }
            Expr::If(i) => {
                let (cond, then, other) = (self.expr(&i.cond), self.expr(&i.then), self.expr(&i.other));
                if cond.ptr_eq(&i.cond) && then.ptr_eq(&i.then) && other.ptr_eq(&i.other) {
                    return expr.clone();
                }
                Ref::new(If { cond, then, other, span: i.span.clone() }).into()
            }
            Expr::Match(m) => {
                let data = self.expr(&m.data);
                let bodies: Vec<Expr> = m.clauses.iter().map(|c| self.expr(&c.body)).collect();
                if data.ptr_eq(&m.data) && bodies.iter().zip(&m.clauses).all(|(b, c)| b.ptr_eq(&c.body)) {
                    return expr.clone();
                }
                let clause = |(c, body): (&Ref<Clause>, Expr)| Ref::new(Clause { pattern: c.pattern.clone(), body });
                let clauses = m.clauses.iter().zip(bodies).map(clause).collect();
                Ref::new(Match { data, clauses, complete: m.complete, span: m.span.clone() }).into()
            }
            Expr::RefCreate(r) => {
                let value = self.expr(&r.value);
                if value.ptr_eq(&r.value) {
                    return expr.clone();
                }
                Ref::new(RefCreate { value, span: r.span.clone() }).into()
            }
            Expr::RefRead(r) => {
                let reference = self.expr(&r.reference);
                if reference.ptr_eq(&r.reference) {
                    return expr.clone();
                }
                Ref::new(RefRead { reference, span: r.span.clone() }).into()
            }
            Expr::RefWrite(r) => {
                let (reference, value) = (self.expr(&r.reference), self.expr(&r.value));
                if reference.ptr_eq(&r.reference) && value.ptr_eq(&r.value) {
                    return expr.clone();
                }
                Ref::new(RefWrite { reference, value, span: r.span.clone() }).into()
            }
            leaf => leaf.clone(),
        }
    }
}
