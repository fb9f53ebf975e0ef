//! EtaExpand: an operator that stands as a value becomes a function that calls it.
//!
//! ```text
//! @map(nn.relu, %xs)    becomes    @map(fn (%x) { nn.relu(%x) }, %xs)
//! ```
//!
//! Constructors stay: the machine makes functions of them where they are values.

use std::collections::HashMap;

use relaxide_ffi::Ref;

use crate::stack::deep;
use crate::*;

/// A module whose operators are all called.
pub fn eta_expand(module: &Module) -> Module {
    deep(|| {
        let mut out = module.clone();
        for function in out.functions.values_mut() {
            let body = crate::rewrite::rewrite(&function.body, &mut |expr, _| expand(expr));
            *function = function.with_body(body);
        }
        out
    })
}

/// The expression with functions in the place of operators among its parts.
fn expand(expr: &Expr) -> Option<Expr> {
    let mut made: HashMap<usize, Expr> = HashMap::new();
    let mut value = |e: &Expr| match e {
        Expr::Op(op) => made.entry(e.address()).or_insert_with(|| as_function(op)).clone(),
        other => other.clone(),
    };
    match expr {
        Expr::Call(c) if c.args.iter().any(|e| matches!(e, Expr::Op(_))) => {
            let args = c.args.iter().map(&mut value).collect();
            let (op, attrs, type_args, span) = (c.op.clone(), c.attrs.clone(), c.type_args.clone(), c.span.clone());
            Some(Ref::new(Call { op, args, attrs, type_args, span }).into())
        }
        Expr::Tuple(t) if t.fields.iter().any(|e| matches!(e, Expr::Op(_))) => {
            let fields = t.fields.iter().map(&mut value).collect();
            Some(Ref::new(Tuple { fields, span: t.span.clone() }).into())
        }
        Expr::Let(l) if matches!(l.value, Expr::Op(_)) => {
            Some(Expr::bind(l.var.clone(), value(&l.value), l.body.clone()))
        }
        _ => None,
    }
}

fn as_function(op: &Ref<Op>) -> Expr {
    let def = crate::op::lookup(&op.name);
    let names: Vec<&str> = def.map_or(vec!["x"], |def| def.args.to_vec());
    let params: Vec<Ref<Var>> = names.iter().map(|name| Var::new(*name, None)).collect();
    let args: Vec<Expr> = params.iter().map(Expr::from).collect();
    let attrs = def.and_then(|def| def.complete_attrs(&relaxide_ir::Attrs::new()).ok()).unwrap_or_default();
    Function::new(params, Expr::call_with(op, args, attrs), None).into()
}
