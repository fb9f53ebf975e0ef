//! FuseOps: operators that one kernel can execute become a function that is marked `Primitive`; DefuseOps and
//! InlinePrimitives take such functions away again.
//!
//! ```text
//! nn.relu(add(nn.conv2d(%x, %w), %b))    becomes    fn (%p0, %p1, %p2, Primitive=1) { … }(%x, %w, %b)
//! ```
//!
//! An operator joins the one that reads it if that is its only reader and both patterns allow it: element by element into
//! anything but an opaque operator, a convolution into what is element by element behind it, a reduction into nothing. The
//! compiler does not need the pass: it fuses with Relax's own. It is here for programs that ask for the form.

use std::collections::HashMap;

use relaxide_ffi::Ref;

use super::simplify::renamed;
use super::table::TransformError;
use crate::op::Mapping;
use crate::op::properties::{Pattern, is_read_through, pattern};
use crate::rewrite::rewrite;
use crate::*;

/// A call of an operator that a kernel executes.
fn computed(expr: &Expr) -> Option<(&Ref<Call>, &str)> {
    let (call, name) = expr.as_op_call()?;
    let kernel = op::lookup(name).is_some_and(|def| !matches!(def.mapping, Mapping::Machine | Mapping::Missing));
    kernel.then_some((call, name))
}

/// Every operator becomes part of a function of one kernel.
pub fn fuse_ops(module: &Module, level: i64) -> Result<Module, TransformError> {
    let types = infer(&prelude::with_prelude(module).map_err(TransformError::Value)?).map_err(TransformError::Types)?;
    let mut out = module.clone();
    for function in out.functions.values_mut() {
        if !function.is_primitive() {
            let body = fuse(&function.body, &types, level);
            *function = function.with_body(body);
        }
    }
    Ok(out)
}

struct Groups {
    /// The group of each call, by address: the address of its last call.
    of: HashMap<usize, usize>,
    /// The pattern of a group by its last call.
    pattern: HashMap<usize, Pattern>,
}

fn fuse(body: &Expr, types: &Types, level: i64) -> Expr {
    let mut readers: HashMap<usize, Vec<Expr>> = HashMap::new();
    let mut order = Vec::new();
    visit::each(body, |expr| {
        order.push(expr.clone());
        for child in expr.children() {
            readers.entry(child.address()).or_default().push(expr.clone());
        }
    });
    // What reads comes in front of what it reads only along one path: users are done first by depth.
    let mut groups = Groups { of: HashMap::new(), pattern: HashMap::new() };
    let mut done = std::collections::HashSet::new();
    for expr in &order {
        place(expr, &readers, level, &mut groups, &mut done);
    }
    let mut made: HashMap<usize, Expr> = HashMap::new();
    rewrite(body, &mut |new, old| {
        let own = *groups.of.get(&old.address())?;
        made.insert(old.address(), new.clone());
        if own != old.address() {
            return None;
        }
        function_of(old, new, &groups, types)
    })
}

/// Finds the group of a call: that of its only reader where they fit, else one of its own.
fn place(
    expr: &Expr,
    readers: &HashMap<usize, Vec<Expr>>,
    level: i64,
    groups: &mut Groups,
    done: &mut std::collections::HashSet<usize>,
) {
    let Some((_, name)) = computed(expr) else { return };
    if !done.insert(expr.address()) {
        return;
    }
    let own = pattern(name);
    let reader = match readers.get(&expr.address()).map(Vec::as_slice) {
        Some([one]) if level != 0 => computed(one).map(|_| one),
        _ => None,
    };
    let mut group = expr.address();
    if let Some(reader) = reader {
        place(reader, readers, level, groups, done);
        let theirs = groups.of.get(&reader.address()).copied().unwrap_or(reader.address());
        let reader_name = computed(reader).map_or("", |(_, name)| name);
        let there = groups.pattern.get(&theirs).copied().unwrap_or(Pattern::Opaque);
        let direct = pattern(reader_name);
        let fits = match own {
            // Into anything whose kernel can compute its operand in place.
            Pattern::Injective => direct < Pattern::Opaque && (direct < Pattern::Product || is_read_through(name)),
            Pattern::Product => direct == Pattern::Injective && there == Pattern::Injective,
            Pattern::Reduction | Pattern::Opaque => false,
        };
        // A product's kernel computes its operands once; what is in front of it is a kernel of its own.
        let fits = fits && !(own == Pattern::Injective && direct == Pattern::Product);
        if fits {
            group = theirs;
        }
    }
    groups.of.insert(expr.address(), group);
    let known = groups.pattern.get(&group).copied().unwrap_or(own);
    groups.pattern.insert(group, known.max(own));
}

/// The function of a group, called: what the group takes becomes its parameters.
fn function_of(last: &Expr, new: &Expr, groups: &Groups, types: &Types) -> Option<Expr> {
    let own = last.address();
    let (mut params, mut args): (Vec<Ref<Var>>, Vec<Expr>) = (Vec::new(), Vec::new());
    let mut known: HashMap<usize, Expr> = HashMap::new();
    let mut walk = Walk { own, groups, types, params: &mut params, args: &mut args, known: &mut known };
    let body = walk.inside(last, new)?;
    let attrs = relaxide_ir::Attrs::new().with("Primitive", 1i64);
    let ret_type = types.of(last);
    let function = Function { type_params: Vec::new(), params, body, ret_type, attrs, span: None };
    Some(Expr::call(Ref::new(function), args))
}

struct Walk<'a> {
    own: usize,
    groups: &'a Groups,
    types: &'a Types,
    params: &'a mut Vec<Ref<Var>>,
    args: &'a mut Vec<Expr>,
    known: &'a mut HashMap<usize, Expr>,
}

impl Walk<'_> {
    /// A call of the group over parameters; `new` is the same call with its parts rebuilt.
    fn inside(&mut self, old: &Expr, new: &Expr) -> Option<Expr> {
        if let Some(done) = self.known.get(&old.address()) {
            return Some(done.clone());
        }
        let (before, after) = (old.as_op_call()?.0.clone(), new.as_op_call()?.0.clone());
        let mut args = Vec::new();
        for (old, new) in before.args.iter().zip(&after.args) {
            args.push(self.operand(old, new)?);
        }
        let (op, attrs) = (after.op.clone(), after.attrs.clone());
        let (type_args, span) = (after.type_args.clone(), after.span.clone());
        let made: Expr = Ref::new(Call { op, args, attrs, type_args, span }).into();
        self.known.insert(old.address(), made.clone());
        Some(made)
    }

    fn operand(&mut self, old: &Expr, new: &Expr) -> Option<Expr> {
        if self.groups.of.get(&old.address()) == Some(&self.own) {
            return self.inside(old, new);
        }
        if let Some(done) = self.known.get(&old.address()) {
            return Some(done.clone());
        }
        let made: Expr = match (old, new) {
            // Scalars stay in the kernel.
            (Expr::Constant(c), _) if c.data.shape().is_empty() => new.clone(),
            (Expr::Tuple(old), Expr::Tuple(new)) => {
                let fields = old.fields.iter().zip(&new.fields);
                Expr::tuple(fields.map(|(o, n)| self.operand(o, n)).collect::<Option<Vec<_>>>()?)
            }
            _ => {
                let var = Var::new(format!("p{}", self.params.len()), self.types.of(old));
                self.params.push(var.clone());
                self.args.push(new.clone());
                var.into()
            }
        };
        self.known.insert(old.address(), made.clone());
        Some(made)
    }
}

/// Functions of one kernel become what they compute, where they are called.
pub fn defuse_ops(module: &Module) -> Module {
    let mut out = module.clone();
    let primitives: HashMap<String, Ref<Function>> =
        module.functions.iter().filter(|(_, f)| f.is_primitive()).map(|(name, f)| (name.clone(), f.clone())).collect();
    for function in out.functions.values_mut() {
        let body = rewrite(&function.body, &mut |new, _| {
            let Expr::Call(call) = new else { return None };
            let callee = match &call.op {
                Expr::Function(f) if f.is_primitive() => f.clone(),
                Expr::Global(g) => primitives.get(&g.name)?.clone(),
                _ => return None,
            };
            inlined(&callee, &call.args)
        });
        if !body.ptr_eq(&function.body) {
            *function = function.with_body(body);
        }
    }
    out
}

/// A function's body with arguments in the place of its parameters, shared where they are used more than once.
fn inlined(function: &Ref<Function>, args: &[Expr]) -> Option<Expr> {
    let Expr::Function(fresh) = renamed(&Expr::Function(function.clone())) else { return None };
    if fresh.params.len() != args.len() {
        return None;
    }
    let values: HashMap<usize, Expr> =
        fresh.params.iter().zip(args).map(|(p, a)| (Ref::as_ptr(p).addr(), a.clone())).collect();
    Some(rewrite(&fresh.body, &mut |new, _| match new {
        Expr::Var(v) => values.get(&Ref::as_ptr(v).addr()).cloned(),
        _ => None,
    }))
}

/// InlinePrimitives: a function of one kernel that a variable names stands where it is called.
pub fn inline_primitives(module: &Module) -> Module {
    let mut out = module.clone();
    for function in out.functions.values_mut() {
        let mut named: HashMap<usize, Ref<Function>> = HashMap::new();
        visit::each(&function.body, |expr| {
            if let Expr::Let(l) = expr
                && let Expr::Function(f) = &l.value
                && f.is_primitive()
            {
                named.insert(Ref::as_ptr(&l.var).addr(), f.clone());
            }
        });
        if named.is_empty() {
            continue;
        }
        let body = rewrite(&function.body, &mut |new, _| match new {
            Expr::Call(call) => {
                let Expr::Var(v) = &call.op else { return None };
                let f = named.get(&Ref::as_ptr(v).addr())?;
                Some(Expr::call(f.clone(), call.args.clone()))
            }
            Expr::Let(l) => {
                let own = named.contains_key(&Ref::as_ptr(&l.var).addr());
                let used = visit::free_vars(&l.body).iter().any(|v| Ref::ptr_eq(v, &l.var));
                (own && !used).then(|| l.body.clone())
            }
            _ => None,
        });
        *function = function.with_body(body);
    }
    out
}
