//! ToBasicBlockNormalForm: what several scopes share gets a name in the innermost scope around all of them; what one scope
//! uses stays an expression.
//!
//! ```text
//! if (%c) { add(%s, %s) } else { %s }    with %s shared    becomes    let %x = %s; if (%c) { … } else { %x }
//! ```
//!
//! A-normal form names every computation; this form names what crosses a scope's border only. It is found by way of the
//! first: a name that is used once, in the scope that binds it, is taken away again.

use std::collections::HashMap;

use relaxide_ffi::Ref;

use super::anf::function_to_anf;
use super::simplify::is_pure;
use crate::*;

/// The module in basic-block normal form.
pub fn to_basic_block_normal_form(module: &Module) -> Module {
    let mut out = module.clone();
    for function in out.functions.values_mut() {
        let named = function_to_anf(function);
        *function = named.with_body(NormalForm::default().scope(&named.body));
    }
    out
}

#[derive(Default)]
struct NormalForm {
    /// How often each variable is used in the scope that binds it, and in others.
    values: HashMap<usize, Expr>,
}

fn address(var: &Ref<Var>) -> usize {
    Ref::as_ptr(var).addr()
}

/// The variables that a scope uses itself, and those that its inner scopes use, each as often as it stands there.
fn uses(expr: &Expr, inside: bool, own: &mut HashMap<usize, usize>, inner: &mut HashMap<usize, usize>) {
    match expr {
        Expr::Var(v) => *(if inside { inner } else { own }).entry(address(v)).or_default() += 1,
        Expr::Function(f) => uses(&f.body, true, own, inner),
        Expr::If(i) => {
            uses(&i.cond, inside, own, inner);
            uses(&i.then, true, own, inner);
            uses(&i.other, true, own, inner);
        }
        Expr::Match(m) => {
            uses(&m.data, inside, own, inner);
            m.clauses.iter().for_each(|c| uses(&c.body, true, own, inner));
        }
        other => other.children().into_iter().for_each(|child| uses(child, inside, own, inner)),
    }
}

impl NormalForm {
    /// A scope in A-normal form: bindings, then an atom.
    fn scope(&mut self, body: &Expr) -> Expr {
        let (mut own, mut inner) = (HashMap::new(), HashMap::new());
        let mut chain = Vec::new();
        let mut expr = body;
        while let Expr::Let(l) = expr {
            uses(&l.value, false, &mut own, &mut inner);
            chain.push(l.clone());
            expr = &l.body;
        }
        uses(expr, false, &mut own, &mut inner);
        let mut kept = Vec::new();
        for l in &chain {
            let value = self.value(&l.value);
            let key = address(&l.var);
            // Shared inside of one scope, an expression needs no name: the node itself is shared.
            let local = !inner.contains_key(&key) && is_pure(&l.value) && !matches!(l.value, Expr::Function(_));
            match local {
                true => drop(self.values.insert(key, value)),
                false => kept.push((l.clone(), value)),
            }
        }
        let result = self.atom(expr);
        kept.into_iter().rev().fold(result, |body, (l, value)| {
            Ref::new(Let { var: l.var.clone(), value, body, span: l.span.clone() }).into()
        })
    }

    fn atom(&self, expr: &Expr) -> Expr {
        match expr {
            Expr::Var(v) => self.values.get(&address(v)).cloned().unwrap_or_else(|| expr.clone()),
            other => other.clone(),
        }
    }

    fn value(&mut self, expr: &Expr) -> Expr {
        match expr {
            Expr::Function(f) => f.with_body(self.scope(&f.body)).into(),
            Expr::If(i) => {
                let (cond, then, other) = (self.atom(&i.cond), self.scope(&i.then), self.scope(&i.other));
                Ref::new(If { cond, then, other, span: i.span.clone() }).into()
            }
            Expr::Match(m) => {
                let data = self.atom(&m.data);
                let clause = |c: &Ref<Clause>, form: &mut NormalForm| {
                    Ref::new(Clause { pattern: c.pattern.clone(), body: form.scope(&c.body) })
                };
                let clauses = m.clauses.iter().map(|c| clause(c, self)).collect();
                Ref::new(Match { data, clauses, complete: m.complete, span: m.span.clone() }).into()
            }
            other => crate::rewrite::rewrite(other, &mut |new, _| match new {
                Expr::Var(v) => self.values.get(&address(v)).cloned(),
                _ => None,
            }),
        }
    }
}
