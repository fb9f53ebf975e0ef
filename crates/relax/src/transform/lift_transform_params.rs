//! LiftTransformParams: what depends on weights only becomes a function of its own, to be run once.
//!
//! ```text
//! def main(x, w):  # num_input = 1        def main_transform_params(model_params):     # (w,)
//!     lv = R.permute_dims(w)                  w = model_params[0]
//!     gv = R.matmul(x, lv)        →           lv = R.permute_dims(w)
//!     return gv                               return (lv,)
//!
//!                                         def main(x, lv):
//!                                             gv = R.matmul(x, lv)
//!                                             return gv
//! ```
//!
//! The attribute `num_input` says how many parameters are inputs; the others are weights. The new function takes the
//! weights as one tuple and returns a tuple: the weights that the program still uses, then what it uses of what was
//! computed. With `shared_transform` there is one such function for several programs that share their weights, called
//! `transform_params`; each of them takes all of its results. The option `relax.lift_transform_params.consume_params` makes
//! it drop each weight from the tuple once it is taken.
//!
//! **Keeps** a weight as a parameter where its type says a symbolic variable that the program still uses.
//!
//! **Refuses** `shared_transform` over programs whose weights differ in number or type.
//!
//! **Differs from TVM**: a weight is taken from the tuple once, not at each use.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::pass::{ParamDefault, ParamKind, PassContext, PassError, PassInfo, PassParam, PassResult};
use relaxide_ir::{AttrValue, Attrs, IRModule, Var};

use super::common_subexpr;
use super::fuse_by_pattern::strings;
use crate::analysis::compile_time::{NUM_INPUT_ATTR, computable_at_compile_time, num_inputs};
use crate::analysis::free_symbols;
use crate::functor::{VarReplacer, used_vars};
use crate::rewrite::in_function;
use crate::shape::{defined_vars, same_type};
use crate::*;

const NAME: &str = "LiftTransformParams";

/// The option that makes the new function drop weights once they are taken.
const CONSUME: &str = "relax.lift_transform_params.consume_params";

pub(super) const PASS: PassInfo =
    PassInfo::new(NAME, "What depends on weights only becomes a function of its own.", |module, context, args| {
        run(module, context, args.get("shared_transform"))
    })
    .params(&[PassParam::new(
        "shared_transform",
        ParamKind::Any,
        ParamDefault::Bool(false),
        "Whether all programs share one such function, or the names of those that do.",
    )]);

/// A program, and what it is called.
type Program = (String, Ref<Function>);

fn run(mut module: IRModule, context: &PassContext, shared: Option<&AttrValue>) -> PassResult {
    let consume = context.config.bool(CONSUME) == Some(true);
    let programs: Vec<(String, Ref<Function>)> = module
        .functions_of::<Function>()
        // What has no inputs is such a function already.
        .filter(|(_, f)| num_inputs(f).is_some() && !is_transform(f))
        .map(|(n, f)| (n.to_string(), f))
        .collect();
    let together: Vec<String> = match shared {
        Some(AttrValue::Bool(true)) => programs.iter().map(|(n, _)| n.clone()).collect(),
        Some(list @ AttrValue::List(_)) => strings(Some(list)),
        _ => Vec::new(),
    };
    if let Some(unknown) = together.iter().find(|name| programs.iter().all(|(n, _)| n != *name)) {
        return Err(PassError::arguments(
            NAME,
            format!("function `{unknown}` does not exist or has no {NUM_INPUT_ATTR}"),
        ));
    }
    let (joint, alone): (Vec<_>, Vec<_>) = programs.into_iter().partition(|(name, _)| together.contains(name));
    let mut groups: Vec<(String, Vec<Program>)> =
        alone.into_iter().map(|(name, f)| (format!("{name}_transform_params"), vec![(name, f)])).collect();
    if !joint.is_empty() {
        groups.push(("transform_params".into(), joint));
    }
    for (hint, programs) in groups {
        lift(&mut module, &hint, &programs, consume)?;
    }
    Ok(module)
}

/// Whether a function is what this pass makes: it takes all weights as one tuple, and no input.
fn is_transform(func: &Function) -> bool {
    num_inputs(func) == Some(0)
        && matches!(func.params.as_slice(), [one] if matches!(one.ty, relaxide_ir::Type::Tuple(_)))
}

/// Lifts out of programs that share their weights.
fn lift(
    module: &mut IRModule,
    hint: &str,
    programs: &[(String, Ref<Function>)],
    consume: bool,
) -> Result<(), PassError> {
    let Some((first_name, first)) = programs.first() else { return Ok(()) };
    let weights = weights_of(first);
    let mut joint = Joint::new(weights);
    let mut plans = Vec::with_capacity(programs.len());
    for (name, func) in programs {
        let own = weights_of(func);
        let alike = own.len() == weights.len() && own.iter().zip(weights).all(|(a, b)| same_weight(a, b));
        if !alike {
            let message = format!("its weights are not those of `{first_name}`, with which it is to share them");
            return Err(in_function(NAME, name, message));
        }
        plans.push(joint.add(func));
    }
    // Applied again, the pass finds nothing more.
    if joint.bindings.is_empty() && module.get(hint).is_some() {
        return Ok(());
    }
    let transform = joint.finish(consume);
    let outputs = joint.outputs;
    for ((name, func), plan) in programs.iter().zip(plans) {
        module.insert(name.clone(), remaining(func, &plan, &outputs));
    }
    let name = module.fresh_name(hint);
    let attrs = Attrs::new().with(NUM_INPUT_ATTR, 0);
    let exported = programs.iter().any(|(_, f)| f.attrs.get("global_symbol").is_some());
    let attrs = if exported { attrs.with("global_symbol", name.as_str()) } else { attrs };
    module.insert(name, Ref::new(Function { attrs, ..transform }));
    Ok(())
}

fn weights_of(func: &Function) -> &[Ref<Var>] {
    num_inputs(func).and_then(|n| func.params.get(n..)).unwrap_or_default()
}

/// Whether two weights have one type; dimensions that are symbolic are taken by their names.
fn same_weight(a: &Ref<Var>, b: &Ref<Var>) -> bool {
    same_type(&a.ty, &b.ty) || display::type_text(&a.ty) == display::type_text(&b.ty)
}

/// The function that computes on weights, for several programs.
struct Joint {
    weights: Vec<Ref<Var>>,
    bindings: Vec<Binding>,
    /// Values that are computed already, by structure.
    known: HashMap<u64, Vec<(Expr, AnyVar)>>,
    /// What the programs need: weights, then computed values.
    outputs: Vec<AnyVar>,
}

/// What becomes of one program.
struct LiftedProgram {
    lifted: HashSet<AnyVar>,
    /// The joint function's variable for each of the program's.
    joint: HashMap<AnyVar, AnyVar>,
}

impl Joint {
    fn new(weights: &[Ref<Var>]) -> Joint {
        Joint { weights: weights.to_vec(), bindings: Vec::new(), known: HashMap::new(), outputs: Vec::new() }
    }

    fn add(&mut self, func: &Ref<Function>) -> LiftedProgram {
        let lifted: HashSet<AnyVar> = computable_at_compile_time(func).into_iter().collect();
        let own: Vec<AnyVar> = weights_of(func).iter().map(|w| AnyVar::Var(w.clone())).collect();
        let mut joint: HashMap<AnyVar, AnyVar> =
            own.iter().cloned().zip(self.weights.iter().map(|w| AnyVar::Var(w.clone()))).collect();
        let mut replace = VarReplacer(joint.iter().map(|(a, b)| (a.clone(), Expr::from(b.clone()))).collect());
        for binding in func.body.blocks.iter().flat_map(|b| &b.bindings).filter(|b| lifted.contains(b.var())) {
            let Binding::Var(bound) = binding else { continue };
            let value = replace.mutate_expr(&bound.value);
            let var = self.computed(&bound.var, value);
            replace.0.insert(bound.var.clone(), var.clone().into());
            joint.insert(bound.var.clone(), var);
        }
        let needed = needed_outside(func, &lifted);
        let weights = own.iter().filter(|w| needed.contains(*w));
        let computed = func.body.blocks.iter().flat_map(|b| &b.bindings).map(Binding::var);
        let computed = computed.filter(|v| lifted.contains(*v) && needed.contains(*v));
        for var in weights.chain(computed) {
            if let Some(var) = joint.get(var)
                && !self.outputs.contains(var)
            {
                self.outputs.push(var.clone());
            }
        }
        LiftedProgram { lifted, joint }
    }

    /// The variable that holds a value.
    fn computed(&mut self, var: &AnyVar, value: Expr) -> AnyVar {
        let alike = self.known.entry(relaxide_ffi::structural_hash(&value, false)).or_default();
        if let Some((_, known)) = alike.iter().find(|(e, _)| relaxide_ffi::structural_equal(e, &value, false).is_ok()) {
            return known.clone();
        }
        let new = Ref::new(DataflowVar { name: var.name().to_string(), ty: var.ty().clone(), span: None });
        let new = AnyVar::Dataflow(new);
        if common_subexpr::is_candidate(&value) {
            alike.push((value.clone(), new.clone()));
        }
        self.bindings.push(Ref::new(VarBinding { var: new.clone(), value }).into());
        new
    }

    fn finish(&mut self, consume: bool) -> Function {
        let types: Vec<_> = self.weights.iter().map(|w| w.ty.clone()).collect();
        let tuple = Var::new("model_params", relaxide_ir::Type::tuple(types));
        let used: HashSet<AnyVar> =
            self.bindings.iter().flat_map(|b| used_vars(b.value())).chain(self.outputs.iter().cloned()).collect();
        let mut bindings = Vec::new();
        let mut replace = VarReplacer::default();
        for (i, weight) in self.weights.iter().enumerate() {
            if !used.contains(&AnyVar::Var(weight.clone())) {
                continue;
            }
            let own = Ref::new(DataflowVar { name: weight.name.clone(), ty: weight.ty.clone(), span: None });
            let value = Expr::field(tuple.clone(), i);
            bindings.push(Binding::from(Ref::new(VarBinding { var: own.clone().into(), value })));
            replace.0.insert(AnyVar::Var(weight.clone()), own.into());
            if consume {
                bindings.push(reset_item(&tuple, i));
            }
        }
        for binding in &self.bindings {
            bindings.push(replace.remake_binding(binding));
        }
        let fields: Vec<Expr> = self.outputs.iter().map(|v| replace.mutate_expr(&v.clone().into())).collect();
        let value = Expr::tuple(fields);
        let output = Var::new("output_tuple", value.ty());
        bindings.push(Ref::new(VarBinding { var: output.clone().into(), value }).into());
        let block = Ref::new(BindingBlock { bindings, dataflow: true });
        let body = Ref::new(SeqExpr { blocks: vec![block], body: output.clone().into() });
        let ret_ty = output.ty.clone();
        let func = Function { params: vec![tuple], body, ret_ty, pure: true, attrs: Attrs::new(), span: None };
        Function::clone(&super::fresh::fresh_copy(&Ref::new(func)))
    }
}

/// Drops an item of the tuple of weights, so that its memory can go.
fn reset_item(tuple: &Ref<Var>, i: usize) -> Binding {
    let args = vec![Expr::external("vm.builtin.tuple_reset_item"), tuple.clone().into(), Expr::prim(i as i64)];
    let ty = relaxide_ir::Type::void();
    let value = Ref::new(Call {
        op: op::Op::get("call_pure_packed").into(),
        args,
        attrs: Attrs::new(),
        ty_args: vec![ty.clone()],
        ty: ty.clone(),
        span: None,
    });
    let var = Ref::new(DataflowVar { name: "_".into(), ty, span: None });
    Ref::new(VarBinding { var: var.into(), value: value.into() }).into()
}

/// The variables that what stays in a program uses.
fn needed_outside(func: &Function, lifted: &HashSet<AnyVar>) -> HashSet<AnyVar> {
    let mut needed: HashSet<AnyVar> = used_vars(&func.body.body).into_iter().collect();
    let mut rest = Vec::new();
    for block in &func.body.blocks {
        let bindings: Vec<Binding> = block.bindings.iter().filter(|b| !lifted.contains(b.var())).cloned().collect();
        needed.extend(bindings.iter().flat_map(|b| used_vars(b.value())));
        rest.push(Ref::new(BindingBlock { bindings, dataflow: block.dataflow }));
    }
    // Symbolic variables that only a weight's type says keep the weight.
    let inputs = num_inputs(func).and_then(|n| func.params.get(..n)).unwrap_or_default().to_vec();
    let body = Ref::new(SeqExpr { blocks: rest, body: func.body.body.clone() });
    let rest = Ref::new(Function { params: inputs, body, ..func.clone() });
    let mut open: HashSet<Ref<Var>> = free_symbols(&rest.into()).into_iter().collect();
    open.extend(crate::shape::vars_of([&func.ret_ty]));
    for weight in weights_of(func) {
        if defined_vars([&weight.ty]).iter().any(|s| open.contains(s)) {
            needed.insert(AnyVar::Var(weight.clone()));
        }
    }
    needed
}

/// A program without what was lifted: it takes what the joint function returns.
fn remaining(func: &Ref<Function>, plan: &LiftedProgram, outputs: &[AnyVar]) -> Ref<Function> {
    let inputs = num_inputs(func).unwrap_or(func.params.len());
    let mut params: Vec<Ref<Var>> = func.params.iter().take(inputs).cloned().collect();
    let mut replace = VarReplacer::default();
    for output in outputs {
        // The program's own variable where it has one: several may be one value.
        let mut own: Vec<&AnyVar> =
            plan.joint.iter().filter(|(_, joint)| *joint == output).map(|(own, _)| own).collect();
        own.sort_by_key(|v| v.name().to_string());
        let weight = own.iter().find_map(|v| match v {
            AnyVar::Var(v) if func.params.contains(v) => Some(v.clone()),
            _ => None,
        });
        let param = weight.unwrap_or_else(|| {
            let like = own.first().copied().unwrap_or(output);
            Var::new(like.name().to_string(), like.ty().clone())
        });
        for var in own.into_iter().filter(|v| **v != AnyVar::Var(param.clone())) {
            replace.0.insert(var.clone(), param.clone().into());
        }
        params.push(param);
    }
    let mut blocks = Vec::with_capacity(func.body.blocks.len());
    for block in &func.body.blocks {
        let kept = block.bindings.iter().filter(|b| !plan.lifted.contains(b.var()));
        let bindings: Vec<Binding> = kept.map(|b| replace.remake_binding(b)).collect();
        if !bindings.is_empty() {
            blocks.push(Ref::new(BindingBlock { bindings, dataflow: block.dataflow }));
        }
    }
    let body = Ref::new(SeqExpr { blocks, body: replace.mutate_expr(&func.body.body) });
    Ref::new(Function { params, body, ..Function::clone(func) })
}
