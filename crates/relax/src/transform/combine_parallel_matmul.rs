//! CombineParallelMatmul: products of one left factor are one product with the right factors side by side.
//!
//! ```text
//! q = R.matmul(x, wq)               lv = R.concat((wq, wk), axis=1)
//! k = R.matmul(x, wk)         →     lv1 = R.matmul(x, lv)
//!                                   lv2 = R.split(lv1, [columns of wq], axis=-1)
//!                                   q = lv2[0];  k = lv2[1]
//! ```
//!
//! Where every product has a bias behind it, the biases are put side by side too, and where all have one activation
//! (`relu`, `gelu`, `silu`) behind that, it is applied once. Right factors must have one rank, equal outer dimensions and
//! equal rows, and numbers of columns that are known; one may have a number of columns that is computed, and stands behind the
//! others, since the places of a split are numbers.
//!
//! **Refuses** to combine where a right factor or bias needs one of the products, and where the program that runs the pass
//! says so ([`combine_parallel_matmul`]).

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::pass::{ParamKind, Pass, PassError, PassInfo, PassParam, PassResult};
use relaxide_ir::prim::PrimExpr;
use relaxide_ir::{Attrs, IRModule};

use crate::dpl::rewrite::{NewValues, replace_values};
use crate::functor::used_vars;
use crate::rewrite::in_function;
use crate::shape::{dims, same_dims};
use crate::*;

const NAME: &str = "CombineParallelMatmul";

pub(super) const PASS: PassInfo = PassInfo::new(
    NAME,
    "Products of one left factor become one product.",
    |module, _, _| run(module, &|_| Ok(true)),
)
.params(&[PassParam::optional(
    "check",
    ParamKind::Absent,
    "A function of the left factor, the right factors, the biases and the values of the block's variables, which says \
             whether the products are combined.",
)]);

/// Products that can be combined.
pub struct ParallelMatmul<'a> {
    /// The left factor of all.
    pub left: &'a Expr,
    /// The right factors.
    pub right: Vec<Expr>,
    /// The biases; none where not every product has one.
    pub bias: Vec<Expr>,
    /// The values of the variables of the block.
    pub values: &'a HashMap<AnyVar, Expr>,
}

/// Decides whether products are combined.
pub type MatmulCheck = dyn Fn(&ParallelMatmul<'_>) -> Result<bool, PassError> + Send + Sync;

/// The pass with someone who may refuse.
pub fn combine_parallel_matmul(
    check: impl Fn(&ParallelMatmul<'_>) -> Result<bool, PassError> + Send + Sync + 'static,
) -> Pass {
    Pass::new(NAME, move |module, _| run(module, &check))
}

/// Operators that are applied element by element and may stand behind a product.
const ACTIVATIONS: [&str; 3] = ["nn.relu", "nn.gelu", "nn.silu"];

fn run(module: IRModule, check: &MatmulCheck) -> PassResult {
    let mut b = BlockBuilder::with_module(module);
    let functions: Vec<_> = b.module().functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
    for (name, func) in functions {
        let wanted = wanted(&func, check)?;
        let new = combine(&mut b, &func, &wanted).map_err(|e| in_function(NAME, &name, e))?;
        if new != func {
            b.module_mut().insert(name, new);
        }
    }
    Ok(b.finish())
}

/// The products of each dataflow block that are combined.
fn wanted(func: &Function, check: &MatmulCheck) -> Result<Vec<Vec<Vec<Branch>>>, PassError> {
    let mut all = Vec::new();
    for block in func.body.blocks.iter().filter(|block| block.dataflow) {
        let values: HashMap<AnyVar, Expr> =
            block.bindings.iter().map(|b| (b.var().clone(), b.value().clone())).collect();
        let mut wanted = Vec::new();
        for group in groups(block) {
            let Some(left) = group.first().and_then(|branch| branch.product.args.first()).cloned() else { continue };
            let right = group.iter().map(|branch| branch.right.clone()).collect();
            let all_biased = group.iter().all(Branch::has_bias);
            let bias = group.iter().filter_map(|branch| branch.bias.clone()).filter(|_| all_biased).collect();
            if check(&ParallelMatmul { left: &left, right, bias, values: &values })? {
                wanted.push(group);
            }
        }
        all.push(wanted);
    }
    Ok(all)
}

fn combine(
    b: &mut BlockBuilder,
    func: &Ref<Function>,
    wanted: &[Vec<Vec<Branch>>],
) -> Result<Ref<Function>, BuildError> {
    let mut blocks = func.body.blocks.clone();
    let mut changed = false;
    for (block, groups) in blocks.iter_mut().filter(|block| block.dataflow).zip(wanted) {
        for group in groups {
            let new = combined(group)?;
            *block = replace_values(b, func, block, &new)?;
            changed = true;
        }
    }
    if !changed {
        return Ok(func.clone());
    }
    let body = Ref::new(SeqExpr { blocks, body: func.body.body.clone() });
    transform::clean_up(b, &Ref::new(Function { body, ..Function::clone(func) }))
}

/// A product, and what stands behind it and behind nothing else.
#[derive(Clone)]
struct Branch {
    product: Ref<Call>,
    right: Expr,
    columns: PrimExpr,
    bias: Option<Expr>,
    activation: Option<Ref<Call>>,
    /// The variables that hold the product, the sum and the activation.
    held: Vec<AnyVar>,
}

impl Branch {
    fn has_bias(&self) -> bool {
        self.bias.is_some()
    }

    fn is_of_any_width(&self) -> bool {
        self.columns.as_int().is_none()
    }
}

/// Branches of a block that can be combined.
fn groups(block: &BindingBlock) -> Vec<Vec<Branch>> {
    let mut users: HashMap<AnyVar, Vec<&Ref<VarBinding>>> = HashMap::new();
    let mut needs: HashMap<AnyVar, HashSet<AnyVar>> = HashMap::new();
    let mut by_left: indexmap::IndexMap<Expr, Vec<Branch>> = indexmap::IndexMap::new();
    let bound: Vec<&Ref<VarBinding>> = block
        .bindings
        .iter()
        .filter_map(|b| match b {
            Binding::Var(b) => Some(b),
            Binding::MatchCast(_) => None,
        })
        .collect();
    for binding in &bound {
        let used = used_vars(&binding.value);
        let mut all: HashSet<AnyVar> = used.iter().cloned().collect();
        used.iter().filter_map(|v| needs.get(v)).for_each(|more| all.extend(more.iter().cloned()));
        needs.insert(binding.var.clone(), all);
        used.into_iter().for_each(|v| users.entry(v).or_default().push(binding));
    }
    for binding in &bound {
        if let Some((left, branch)) = branch(binding, &users) {
            by_left.entry(left).or_default().push(branch);
        }
    }
    let mut out = Vec::new();
    for (_, branches) in by_left {
        let mut alike: Vec<Vec<Branch>> = Vec::new();
        for branch in branches {
            let joins = |group: &Vec<Branch>| {
                let with: Vec<Branch> = group.iter().cloned().chain([branch.clone()]).collect();
                let any_width = with.iter().filter(|branch| branch.is_of_any_width()).count();
                group.first().is_some_and(|first| fits(first, &branch)) && any_width <= 1 && independent(&with, &needs)
            };
            match alike.iter_mut().find(|group| joins(group)) {
                Some(group) => group.push(branch),
                None => alike.push(vec![branch]),
            }
        }
        alike.iter_mut().for_each(|group| group.sort_by_key(Branch::is_of_any_width));
        out.extend(alike.into_iter().filter(|group| group.len() > 1));
    }
    out
}

fn branch(binding: &Ref<VarBinding>, users: &HashMap<AnyVar, Vec<&Ref<VarBinding>>>) -> Option<(Expr, Branch)> {
    let (product, "matmul") = binding.value.as_op_call()? else { return None };
    let [left, right] = product.args.as_slice() else { return None };
    left.as_var()?;
    let shape = dims(right).filter(|d| d.len() >= 2)?;
    let columns = shape.last()?.clone();
    let mut branch = Branch {
        product: product.clone(),
        right: right.clone(),
        columns,
        bias: None,
        activation: None,
        held: vec![binding.var.clone()],
    };
    let sole_user = |var: &AnyVar| match (var, users.get(var).map(Vec::as_slice)) {
        (AnyVar::Dataflow(_), Some([user])) => Some(*user),
        _ => None,
    };
    if let Some(user) = sole_user(&binding.var)
        && let Some((add, "add")) = user.value.as_op_call()
        && let [a, bias] = add.args.as_slice()
        && a.as_var().as_ref() == Some(&binding.var)
        && dims(bias).is_some_and(|d| same_dims(&d, std::slice::from_ref(&branch.columns)))
    {
        branch.bias = Some(bias.clone());
        branch.held.push(user.var.clone());
    }
    let last = branch.held.last()?.clone();
    if let Some(user) = sole_user(&last)
        && let Some((activation, name)) = user.value.as_op_call()
        && ACTIVATIONS.contains(&name)
    {
        branch.activation = Some(activation.clone());
        branch.held.push(user.var.clone());
    }
    Some((left.clone(), branch))
}

/// Whether right factors can stand side by side.
fn fits(a: &Branch, b: &Branch) -> bool {
    match (dims(&a.right), dims(&b.right)) {
        (Some(x), Some(y)) if x.len() == y.len() => {
            let outer = |d: &[PrimExpr]| d.get(..d.len().saturating_sub(1)).unwrap_or_default().to_vec();
            same_dims(&outer(&x), &outer(&y))
                && a.product.ty.as_tensor().map(|t| t.dtype) == b.product.ty.as_tensor().map(|t| t.dtype)
        }
        _ => false,
    }
}

/// Whether no right factor or bias needs what one of the products gives.
fn independent(group: &[Branch], needs: &HashMap<AnyVar, HashSet<AnyVar>>) -> bool {
    let held: HashSet<&AnyVar> = group.iter().flat_map(|branch| &branch.held).collect();
    let operands = group.iter().flat_map(|branch| std::iter::once(&branch.right).chain(&branch.bias));
    operands.filter_map(Expr::as_var).all(|var| {
        !held.contains(&var) && needs.get(&var).is_none_or(|all| all.iter().all(|need| !held.contains(need)))
    })
}

fn combined(group: &[Branch]) -> Result<NewValues, BuildError> {
    let Some(first) = group.first() else { return Ok(NewValues::new()) };
    let rank = dims(&first.right).map_or(2, |d| d.len()) as i64;
    let right = Expr::tuple(group.iter().map(|b| b.right.clone()).collect::<Vec<_>>());
    let right = op::call("concat", [right], Attrs::new().with("axis", rank - 1))?;
    let Some(dtype) = first.product.ty.as_tensor().map(|t| t.dtype) else { return Ok(NewValues::new()) };
    let left = first.product.args.first().cloned().unwrap_or_else(|| Expr::tuple([]));
    let mut whole = op::call("matmul", [left, right], Attrs::new().with("out_dtype", dtype))?;
    let mut depth = 0;
    if group.iter().all(Branch::has_bias) {
        let bias = Expr::tuple(group.iter().filter_map(|b| b.bias.clone()).collect::<Vec<_>>());
        let bias = op::call("concat", [bias], Attrs::new().with("axis", 0))?;
        whole = op::call("add", [whole, bias], Attrs::new())?;
        depth += 1;
    }
    let one_kind = depth == 1 || group.iter().all(|b| !b.has_bias());
    let name = |b: &Branch| b.activation.as_ref().and_then(|a| a.op_name().map(str::to_string));
    let same_activation = one_kind && name(first).is_some() && group.iter().all(|b| name(b) == name(first));
    if same_activation && let Some(activation) = &first.activation {
        whole = op::call(&name(first).unwrap_or_default(), [whole], activation.attrs.clone())?;
        depth += 1;
    }
    let ndim = whole.ty().as_tensor().map_or(rank, |t| t.ndim);
    let mut sections: Vec<i64> = Vec::with_capacity(group.len());
    for columns in group[..group.len() - 1].iter().filter_map(|branch| branch.columns.as_int()) {
        sections.push(sections.last().copied().unwrap_or(0) + columns);
    }
    let attrs = Attrs::new().with("indices_or_sections", sections).with("axis", ndim - 1);
    let parts = op::call("split", [whole], attrs)?;
    let held = |b: &Branch| b.held.get(depth).or(b.held.last()).cloned();
    Ok(group.iter().enumerate().filter_map(|(i, b)| Some((held(b)?, Expr::field(parts.clone(), i)))).collect())
}
