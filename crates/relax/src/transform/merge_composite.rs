//! MergeCompositeFunctions: calls of composite functions of one backend that follow each other become one function for it.
//!
//! ```text
//! lv = cls.fused_conv2d(x, w)          # Composite = "dnnl.conv2d"
//! lv1 = cls.fused_relu(lv)             # Composite = "dnnl.relu"       →   gv = cls.fused_conv2d_relu_dnnl(x, w)
//! ```
//!
//! The new function carries `Codegen = "dnnl"` and `global_symbol`; the composite functions are local functions in it, so
//! that the backend sees what was matched. A call joins the function of an argument's call; fields of its result and tuples
//! go with it. A call that nothing joins makes a function too, and equal functions are one.
//!
//! **Refuses** to join where something outside would stand between: `f(a, g(a))` with `f`'s backend and `g` outside of it.
//!
//! **Needs** composite functions, as [`FuseOpsByPattern`](super::fuse_by_pattern) makes them without `annotate_codegen`.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::{FreeVars, Ref, structural_equal, structural_key};
use relaxide_ir::pass::{PassInfo, PassResult};
use relaxide_ir::{Attrs, GlobalVar, IRModule, Type, Var};

use super::block_pass::each_dataflow_block;
use super::fuse_by_pattern::{CODEGEN_ATTR, COMPOSITE_ATTR, backend_attrs, backend_of, local};
use super::outline::{Constants, outline};
use super::partition::Groups;
use crate::rewrite::in_function;
use crate::*;

const NAME: &str = "MergeCompositeFunctions";

pub(super) const PASS: PassInfo =
    PassInfo::new(NAME, "Composite functions of one backend that follow each other become one.", |module, _, _| {
        run(module)
    });

fn run(module: IRModule) -> PassResult {
    let composites: HashMap<String, Ref<Function>> = module
        .functions_of::<Function>()
        .filter(|(_, f)| f.attrs.get(COMPOSITE_ATTR).is_some())
        .map(|(n, f)| (n.to_string(), f))
        .collect();
    let functions: Vec<_> = module.functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
    let mut merge = Merge { module, composites, made: HashMap::new() };
    for (name, func) in functions {
        if merge.composites.contains_key(&name) {
            continue;
        }
        let new = each_dataflow_block(&func, |block| merge.block(block));
        let new = new.map_err(|error| in_function(NAME, &name, error))?;
        if new != func {
            merge.module.insert(name, new);
        }
    }
    Ok(drop_unused(merge.module, &merge.composites))
}

/// The module without composite functions that nothing calls any more.
fn drop_unused(mut module: IRModule, composites: &HashMap<String, Ref<Function>>) -> IRModule {
    struct Called(HashSet<String>);
    impl ExprVisitor for Called {
        fn visit_expr(&mut self, e: &Expr) {
            if let Expr::Global(g) = e {
                self.0.insert(g.name.clone());
            }
            self.walk_expr(e);
        }
    }
    let mut called = Called(HashSet::new());
    module.functions_of::<Function>().for_each(|(_, f)| called.visit_seq(&f.body));
    module.functions.retain(|name, _| !composites.contains_key(name) || called.0.contains(name));
    module
}

/// A function, and what it is called by.
type Named = (Ref<Function>, Ref<GlobalVar>);

struct Merge {
    module: IRModule,
    composites: HashMap<String, Ref<Function>>,
    /// Functions that were made, without their symbols, by structural hash.
    made: HashMap<u64, Vec<Named>>,
}

impl Merge {
    fn backend(&self, value: &Expr) -> Option<String> {
        let Expr::Call(call) = value else { return None };
        let Expr::Global(g) = &call.op else { return None };
        backend_of(self.composites.get(&g.name)?)
    }

    fn block(&mut self, block: &Ref<BindingBlock>) -> Result<Ref<BindingBlock>, BuildError> {
        let mut groups = Groups::of(block);
        let mut backends: HashMap<usize, String> = HashMap::new();
        for (at, binding) in block.bindings.iter().enumerate() {
            let value = binding.value();
            if let (Expr::TupleGetItem(_), [from]) = (value, groups.used(at)) {
                // A field goes with the call whose result it is taken from.
                if let Some(group) = groups.of_binding(*from)
                    && let Some(own) = groups.add(&[at])
                {
                    groups.merge(group, own);
                }
                continue;
            }
            let Some(backend) = self.backend(value) else { continue };
            let from: Vec<usize> = groups.used(at).iter().filter_map(|used| groups.of_binding(*used)).collect();
            let Some(mut own) = groups.add(&[at]) else { continue };
            for group in from.into_iter().filter(|g| backends.get(g) == Some(&backend)) {
                if groups.merge(group, own) {
                    own = group;
                }
            }
            backends.insert(own, backend);
        }
        if backends.is_empty() {
            return Ok(block.clone());
        }
        groups.replace(block, |members, outputs| self.call(members, outputs))
    }

    fn call(&mut self, members: &[&Ref<VarBinding>], outputs: &[AnyVar]) -> Result<Option<Expr>, BuildError> {
        let Some(backend) = members.iter().find_map(|m| self.backend(&m.value)) else { return Ok(None) };
        let made = outline(members, outputs, Constants::Keep, Attrs::new());
        let body = self.with_locals(&made.function.body);
        let nameless =
            Ref::new(Function { body, attrs: Attrs::new().with(CODEGEN_ATTR, backend.as_str()), ..made.function });
        let callee = self.named(&nameless, members, &backend);
        let ty = match outputs {
            [one] => one.ty().clone(),
            _ => Type::tuple(outputs.iter().map(|v| v.ty().clone()).collect::<Vec<_>>()),
        };
        let (attrs, ty_args) = (Attrs::new(), Vec::new());
        Ok(Some(Ref::new(Call { op: callee.into(), args: made.args, attrs, ty_args, ty, span: None }).into()))
    }

    /// The name of an equal function, or of this one, which is added to the module.
    fn named(&mut self, nameless: &Ref<Function>, members: &[&Ref<VarBinding>], backend: &str) -> Ref<GlobalVar> {
        let hash = structural_key(nameless, FreeVars::Mapped);
        let mut alike = self.made.get(&hash).into_iter().flatten();
        if let Some((_, callee)) = alike.find(|(known, _)| structural_equal(known, nameless, FreeVars::Mapped).is_ok())
        {
            return callee.clone();
        }
        let hint = self.module.fresh_name(&self.name_of(members));
        let symbol = self.module.fresh_name(&format!("{hint}_{backend}"));
        let attrs = backend_attrs(backend, &symbol);
        let func = Ref::new(Function { attrs, ..Function::clone(nameless) });
        let callee = GlobalVar::typed(symbol.clone(), func.ty());
        self.module.insert(symbol, func);
        self.made.entry(hash).or_default().push((nameless.clone(), callee.clone()));
        callee
    }

    /// The names of the composite functions, joined.
    fn name_of(&self, members: &[&Ref<VarBinding>]) -> String {
        let mut name = String::from("fused");
        for member in members {
            if let Expr::Call(call) = &member.value
                && let Expr::Global(g) = &call.op
            {
                name.push('_');
                name.push_str(g.name.strip_prefix("fused_").unwrap_or(&g.name));
            }
        }
        name
    }

    /// The body with each composite function as a local one in front of its first call. Nothing in it is a dataflow block: a
    /// local function is no value of one.
    fn with_locals(&self, body: &Ref<SeqExpr>) -> Ref<SeqExpr> {
        let mut bindings = Vec::new();
        let mut plain = functor::VarReplacer::default();
        let mut locals: HashMap<&str, Ref<Var>> = HashMap::new();
        for binding in body.blocks.iter().flat_map(|b| &b.bindings) {
            let Binding::Var(bound) = binding else { continue };
            let mut value = plain.mutate_expr(&bound.value);
            if let Expr::Call(call) = &value
                && let Expr::Global(g) = &call.op
                && let Some((name, func)) = self.composites.get_key_value(&g.name)
            {
                let count = locals.len();
                let var = locals.entry(name).or_insert_with(|| {
                    let own = if count == 0 { "local_func".into() } else { format!("local_func{count}") };
                    let var = Var::new(own, func.ty());
                    bindings.push(Ref::new(VarBinding { var: var.clone().into(), value: local(func) }).into());
                    var
                });
                let var = var.clone();
                value = Ref::new(call.rebuilt(var.into(), call.args.clone())).into();
            }
            let var = match &bound.var {
                AnyVar::Var(_) => bound.var.clone(),
                AnyVar::Dataflow(v) => AnyVar::Var(Var::new(v.name.clone(), v.ty.clone())),
            };
            if var != bound.var {
                plain.0.insert(bound.var.clone(), var.clone().into());
            }
            bindings.push(Ref::new(VarBinding { var, value }).into());
        }
        let body = plain.mutate_expr(&body.body);
        Ref::new(SeqExpr { blocks: vec![Ref::new(BindingBlock { bindings, dataflow: false })], body })
    }
}
