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
//! `transform_params`, which has what all of them compute; each of them takes all of its results. The option `relax.lift_transform_params.consume_params` makes
//! it drop each weight from the tuple once it is taken.
//!
//! **Keeps** a weight as a parameter where its type says a symbolic variable that the program still uses.
//!
//! **Refuses** `shared_transform` over programs whose weights differ in number or type.
//!
//! A weight is taken from the tuple where it is first used. What depends on no weight is computed on both sides. Behind
//! `R.builtin.stop_lift_params` nothing is lifted.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::pass::{ParamDefault, ParamKind, PassContext, PassError, PassInfo, PassParam, PassResult};
use relaxide_ir::{AttrValue, Attrs, IRModule, Var};

use super::common_subexpr;
use super::fuse_by_pattern::strings;
use super::take_weights::WeightTuple;
use crate::analysis::compile_time::{NUM_INPUT_ATTR, computable_at_compile_time, is_stop, num_inputs};
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
    for (name, func) in programs {
        let own = weights_of(func);
        let alike = own.len() == weights.len() && own.iter().zip(weights).all(|(a, b)| same_weight(a, b));
        if !alike {
            let message = format!("its weights are not those of `{first_name}`, with which it is to share them");
            return Err(in_function(NAME, name, message));
        }
    }
    let (mut joint, plans) = plan(weights, programs);
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
    /// What depends on weights, and leaves the program.
    lifted: HashSet<AnyVar>,
    /// The joint function's variable for each of the program's.
    joint: HashMap<AnyVar, AnyVar>,
}

/// The joint function of some programs, and what becomes of each. Several lift what all of them compute.
fn plan(weights: &[Ref<Var>], programs: &[Program]) -> (Joint, Vec<LiftedProgram>) {
    let candidates: Vec<HashSet<AnyVar>> =
        programs.iter().map(|(_, func)| computable_at_compile_time(func).into_iter().collect()).collect();
    let all = |lifted: Vec<HashSet<AnyVar>>| {
        let mut joint = Joint::new(weights);
        let plans = programs.iter().zip(lifted).map(|((_, func), lifted)| joint.add(func, lifted)).collect::<Vec<_>>();
        (joint, plans)
    };
    if programs.len() < 2 {
        return all(candidates);
    }
    let (_, plans) = all(candidates.clone());
    let common = |var: &AnyVar, own: &LiftedProgram| {
        own.joint.get(var).is_some_and(|v| plans.iter().all(|plan| plan.joint.values().any(|other| other == v)))
    };
    let restricted = candidates.into_iter().zip(&plans).map(|(mut lifted, own)| {
        lifted.retain(|var| common(var, own));
        lifted
    });
    all(restricted.collect())
}

impl Joint {
    fn new(weights: &[Ref<Var>]) -> Joint {
        Joint { weights: weights.to_vec(), bindings: Vec::new(), known: HashMap::new(), outputs: Vec::new() }
    }

    fn add(&mut self, func: &Ref<Function>, mut lifted: HashSet<AnyVar>) -> LiftedProgram {
        let own: Vec<AnyVar> = weights_of(func).iter().map(|w| AnyVar::Var(w.clone())).collect();
        let mut joint: HashMap<AnyVar, AnyVar> =
            own.iter().cloned().zip(self.weights.iter().map(|w| AnyVar::Var(w.clone()))).collect();
        let mut replace = VarReplacer(joint.iter().map(|(a, b)| (a.clone(), Expr::from(b.clone()))).collect());
        for binding in func.body.blocks.iter().flat_map(|b| &b.bindings).filter(|b| lifted.contains(b.var())) {
            let value = replace.mutate_expr(binding.value());
            let var = match binding {
                Binding::Var(bound) => self.computed(&bound.var, value),
                Binding::MatchCast(cast) => self.matched(cast, value),
            };
            replace.0.insert(binding.var().clone(), var.clone().into());
            joint.insert(binding.var().clone(), var);
        }
        keep_constants(func, &own, &mut lifted);
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
        let alike = self.known.entry(relaxide_ffi::structural_key(&value, relaxide_ffi::FreeVars::Same)).or_default();
        if let Some((_, known)) =
            alike.iter().find(|(e, _)| relaxide_ffi::structural_equal(e, &value, relaxide_ffi::FreeVars::Same).is_ok())
        {
            return known.clone();
        }
        let new = fresh(var);
        if common_subexpr::is_candidate(&value) {
            alike.push((value.clone(), new.clone()));
        }
        self.bindings.push(Ref::new(VarBinding { var: new.clone(), value }).into());
        new
    }

    /// The variable of a value whose type is matched, which says symbolic variables.
    fn matched(&mut self, cast: &MatchCast, value: Expr) -> AnyVar {
        let var = fresh(&cast.var);
        self.bindings.push(Ref::new(MatchCast { var: var.clone(), value, ty: cast.ty.clone() }).into());
        var
    }

    fn finish(&mut self, consume: bool) -> Function {
        let all: Vec<AnyVar> = self.weights.iter().map(|w| AnyVar::Var(w.clone())).collect();
        // One program may need a weight after another needed what is computed of it.
        self.outputs.sort_by_key(|output| !all.contains(output));
        let mut weights = WeightTuple::new("model_params", &self.weights, consume);
        let mut bindings = Vec::new();
        for binding in live(&self.bindings, &self.outputs) {
            weights.take(&used_vars(binding.value()), |_| false, &mut bindings);
            bindings.push(weights.replace.remake_binding(binding));
        }
        let (blocks, result) = match bindings.is_empty() && self.outputs == all {
            // There is nothing to do.
            true if all.is_empty() => (Vec::new(), Expr::tuple([])),
            true => (Vec::new(), weights.tuple.clone().into()),
            false => {
                weights.take(&self.outputs, |_| false, &mut bindings);
                let fields: Vec<Expr> =
                    self.outputs.iter().map(|v| weights.replace.mutate_expr(&v.clone().into())).collect();
                let value = Expr::tuple(fields);
                let output = Var::new("output_tuple", value.ty());
                bindings.push(Ref::new(VarBinding { var: output.clone().into(), value }).into());
                (vec![Ref::new(BindingBlock { bindings, dataflow: true })], output.into())
            }
        };
        let ret_ty = result.ty();
        let body = Ref::new(SeqExpr { blocks, body: result });
        let params = vec![weights.tuple];
        let func = Function { params, body, ret_ty, pure: true, attrs: Attrs::new(), span: None };
        Function::clone(&super::fresh::fresh_copy(&Ref::new(func)))
    }
}

fn fresh(var: &AnyVar) -> AnyVar {
    var.to_local()
}

/// The bindings that some results need; a cast is needed for what its type says.
fn live<'a>(bindings: &'a [Binding], outputs: &[AnyVar]) -> Vec<&'a Binding> {
    let mut needed: HashSet<AnyVar> = outputs.iter().cloned().collect();
    let mut kept: Vec<&Binding> = Vec::with_capacity(bindings.len());
    for binding in bindings.iter().rev() {
        if matches!(binding, Binding::MatchCast(_)) || needed.contains(binding.var()) {
            needed.extend(used_vars(binding.value()));
            kept.push(binding);
        }
    }
    kept.reverse();
    kept
}

/// Takes out of what is lifted what depends on no weight and is needed by what stays: each side makes its own.
fn keep_constants(func: &Function, weights: &[AnyVar], lifted: &mut HashSet<AnyVar>) {
    let mut depends: HashSet<AnyVar> = weights.iter().cloned().collect();
    let bindings: Vec<&Binding> = func.body.blocks.iter().flat_map(|b| &b.bindings).collect();
    for binding in &bindings {
        let on_weights = used_vars(binding.value()).iter().any(|v| depends.contains(v));
        if on_weights || !free_symbols(binding.value()).is_empty() {
            depends.insert(binding.var().clone());
        }
    }
    let needed = needed_outside(func, lifted);
    let mut wanted: HashSet<AnyVar> = needed.into_iter().filter(|v| !depends.contains(v)).collect();
    for binding in bindings.iter().rev() {
        if wanted.contains(binding.var()) && lifted.remove(binding.var()) {
            wanted.extend(used_vars(binding.value()));
        }
    }
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
    // What is handed over says symbolic variables too.
    let own: HashSet<AnyVar> = weights_of(func).iter().map(|w| AnyVar::Var(w.clone())).collect();
    let handed_over = needed.iter().filter(|v| lifted.contains(*v) || own.contains(*v)).map(AnyVar::ty);
    let said = defined_vars(handed_over);
    open.retain(|s| !said.contains(s));
    let said = func.body.blocks.iter().flat_map(|b| &b.bindings).filter(|b| lifted.contains(b.var()));
    let said = said.filter_map(|b| if let Binding::MatchCast(cast) = b { Some(cast.var.clone()) } else { None });
    let weights = weights_of(func).iter().map(|w| AnyVar::Var(w.clone()));
    for var in weights.chain(said).collect::<Vec<_>>() {
        if defined_vars([var.ty()]).iter().any(|s| open.contains(s)) {
            needed.insert(var);
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
        let mut bindings = Vec::with_capacity(block.bindings.len());
        for binding in block.bindings.iter().filter(|b| !plan.lifted.contains(b.var())) {
            let value = replace.mutate_expr(binding.value());
            match stopped(&value) {
                // What said where to stop has done its part.
                Some(AnyVar::Var(arg)) => {
                    replace.0.insert(binding.var().clone(), arg.into());
                }
                _ => bindings.push(replace.remake_binding(binding)),
            }
        }
        if !bindings.is_empty() {
            blocks.push(Ref::new(BindingBlock { bindings, dataflow: block.dataflow }));
        }
    }
    let body = Ref::new(SeqExpr { blocks, body: replace.mutate_expr(&func.body.body) });
    Ref::new(Function { params, body, ..Function::clone(func) })
}

/// What `stop_lift_params` is told of.
fn stopped(value: &Expr) -> Option<AnyVar> {
    let Expr::Call(call) = value else { return None };
    if is_stop(value) { call.args.first().and_then(Expr::as_var) } else { None }
}
