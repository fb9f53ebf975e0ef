//! EtaExpand: an operator that stands as a value becomes a function that calls it; if it is asked for, constructors and functions
//! of the module, too.
//!
//! ```text
//! @map(nn.relu, %xs)    becomes    @map(fn (%x) { nn.relu(%x) }, %xs)
//! @map(Some, %xs)       becomes    @map(fn (%x) { Some(%x) }, %xs)         expand_constructor
//! @map(@f, %xs)         becomes    @map(fn (%x) { @f(%x) }, %xs)           expand_global_var
//! ```
//!
//! The compiler needs it of operators only: the machine makes functions of constructors where they are values.

use relaxide_ffi::Ref;

use crate::stack::deep;
use crate::*;

/// What becomes functions beside operators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EtaOptions {
    /// Constructors with fields.
    pub constructors: bool,
    /// Functions of the module.
    pub globals: bool,
}

/// A module whose operators are all called.
pub fn eta_expand(module: &Module) -> Module {
    eta_expand_with(module, EtaOptions::default())
}

/// A module whose operators are all called, and what else is asked for.
pub fn eta_expand_with(module: &Module, options: EtaOptions) -> Module {
    deep(|| {
        let mut out = module.clone();
        for function in out.functions.values_mut() {
            let body = crate::rewrite::rewrite(&function.body, &mut |new, old| match (new, old) {
                // What is called stays what it is.
                (Expr::Call(new), Expr::Call(call)) if expanded(module, options, &call.op).is_some() => {
                    Some(called(new, call, old))
                }
                _ => expanded(module, options, old),
            });
            *function = function.with_body(body);
        }
        out
    })
}

/// The function in the place of a value, if it becomes one.
fn expanded(module: &Module, options: EtaOptions, e: &Expr) -> Option<Expr> {
    let count = match e {
        Expr::Op(op) => return Some(as_function(op)),
        Expr::Constructor(c) if options.constructors && !c.inputs.is_empty() => c.inputs.len(),
        Expr::Global(g) if options.globals => module.functions.get(&g.name)?.params.len(),
        _ => return None,
    };
    let names = (0..count).map(|i| if count == 1 { "x".to_string() } else { format!("x{i}") });
    let params: Vec<Ref<Var>> = names.map(|name| Var::new(name, None)).collect();
    let args: Vec<Expr> = params.iter().map(Expr::from).collect();
    Some(Function::new(params, Expr::call(e.clone(), args), None).into())
}

/// A call of what it called before, with its new arguments.
fn called(new: &Ref<Call>, call: &Ref<Call>, old: &Expr) -> Expr {
    if new.args.iter().zip(&call.args).all(|(new, old)| new.ptr_eq(old)) {
        return old.clone();
    }
    let (op, attrs, type_args, span) = (call.op.clone(), call.attrs.clone(), call.type_args.clone(), call.span.clone());
    Ref::new(Call { op, args: new.args.clone(), attrs, type_args, span }).into()
}

fn as_function(op: &Ref<Op>) -> Expr {
    let def = crate::op::lookup(&op.name);
    let names: Vec<&str> = def.map_or(vec!["x"], |def| def.args.to_vec());
    let params: Vec<Ref<Var>> = names.iter().map(|name| Var::new(*name, None)).collect();
    let args: Vec<Expr> = params.iter().map(Expr::from).collect();
    let attrs = def.and_then(|def| def.complete_attrs(&relaxide_ir::Attrs::new()).ok()).unwrap_or_default();
    Function::new(params, Expr::call_with(op, args, attrs), None).into()
}
