//! FuseOps: kernels that belong into one loop nest become one function.
//!
//! Within a dataflow block, calls of kernels are grouped by their patterns (see AnnotateTIROpPattern), and each group of
//! more than one becomes a private function with the attribute `Primitive`, which FuseTIR turns into one kernel.
//!
//! ```text
//! with R.dataflow():
//!     lv = R.call_tir(cls.conv2d, (x, w), …)               with R.dataflow():
//!     lv1 = R.call_tir(cls.add, (lv, b), …)        →           gv = cls.fused_conv2d_add_relu(x, w, b)
//!     gv = R.call_tir(cls.relu, (lv1,), …)                     R.output(gv)
//!     R.output(gv)
//!
//! @R.function(private=True)
//! def fused_conv2d_add_relu(x, w, b):                      # R.func_attr({"Primitive": True})
//!     with R.dataflow(): …
//! ```
//!
//! **Model.** The block is a graph of values. A node may only join its *post-dominator*, the first node that every way to
//! an output passes, and all nodes between them join too: so nothing that a group computes is needed outside, except its
//! last value, and a value that is used twice (`x * clip(x + 3, 0, 6)`) is no obstacle. What may join what is in
//! [`groups`]:
//!
//! - a sum of products (convolution, matrix product) takes what follows it element by element at equal shape;
//! - element-wise and broadcasting kernels join each other, injective ones, and reductions that they feed;
//! - a reduction takes what follows it, across further reductions along the same rows: a layer norm or a softmax that is
//!   written as ten operators is one group;
//! - where it is asked for, two products with a softmax between them are one group ([`back_to_back`]);
//! - injective kernels (concatenations, transpositions) join injective ones, when the others are done.
//!
//! A group has one kernel that is more than injective, or several reductions along the same rows, or is such a chain. Kernels that only copy
//! elements in order stay alone, since RewriteDataflowReshape makes views of them; only where all that they do is to add or
//! drop dimensions of size one may they stand between others.
//!
//! A kernel with several outputs is a node like any other, whose value is a tuple; the fields that the block takes of it
//! join with it. A group that ends in one gives a tuple.
//!
//! **Needs** `op_pattern` on kernels; without it a kernel is opaque. **Gives** parameters for what a group uses from
//! outside, in order of first use, one shape parameter for symbolic variables that no tensor parameter binds, fresh
//! symbolic variables, and one function for equal groups. Constants are parameters `p0`, `p1` …, one for each use; with
//! `keep_scalars` those of one element go inside.
//!
//! **Options.** `relax.FuseOps.max_depth`: the most kernels in a group, 256 unless given.

mod back_to_back;
mod dominators;
mod graph;
mod groups;
mod outline;

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::pass::{ParamDefault, ParamKind, PassContext, PassInfo, PassParam, PassResult};
use relaxide_ir::{Attrs, IRModule};

use self::graph::{Graph, Kernels};
use self::groups::Groups;
use self::outline::Outliner;
use crate::*;

pub(super) const PASS: PassInfo = PassInfo::new("FuseOps", "Groups kernels that belong into one loop nest.", run)
    .params(&[
        PassParam::new(
            "fuse_opt_level",
            ParamKind::Int,
            ParamDefault::Int(-1),
            "At level 0 nothing is grouped; -1 takes the context's level.",
        ),
        PassParam::new(
            "keep_scalars",
            ParamKind::Bool,
            ParamDefault::Bool(false),
            "Whether constants of one element go inside, where they become literals; otherwise they are parameters.",
        ),
        PassParam::new(
            "products",
            ParamKind::Bool,
            ParamDefault::Bool(false),
            "Whether two products of matrices with a softmax between them are one kernel, where what lies between is large.",
        ),
    ])
    .ready(relaxide_tir::lower::module_of_unit_steps);

/// The attribute of a function that FuseTIR turns into one kernel.
pub const PRIMITIVE_ATTR: &str = "Primitive";

/// The most kernels in a group, unless the option says otherwise.
const MAX_DEPTH: i64 = 256;

fn run(module: IRModule, context: &PassContext, args: &Attrs) -> PassResult {
    let level = args.int("fuse_opt_level").and_then(|level| u32::try_from(level).ok()).unwrap_or(context.opt_level);
    if level == 0 {
        return Ok(module);
    }
    let limit = context.config.int("relax.FuseOps.max_depth").unwrap_or(MAX_DEPTH);
    let keep_scalars = args.bool("keep_scalars") == Some(true);
    let functions: Vec<_> = module.functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
    let mut fuse = FuseOps {
        kernels: Kernels::of(&module),
        outliner: Outliner::new(module, keep_scalars),
        limit: usize::try_from(limit).unwrap_or(0),
        products: args.bool("products") == Some(true) && !context.target.is_gpu(),
    };
    for (name, func) in functions {
        if func.attrs.bool(PRIMITIVE_ATTR) == Some(true) {
            continue;
        }
        let new = fuse.mutate_function(&func);
        if new != func {
            fuse.outliner.module.insert(name, new);
        }
    }
    Ok(fuse.outliner.module)
}

struct FuseOps {
    kernels: Kernels,
    outliner: Outliner,
    limit: usize,
    products: bool,
}

impl ExprMutator for FuseOps {
    fn mutate_block(&mut self, block: &Ref<BindingBlock>) -> Ref<BindingBlock> {
        if !block.dataflow {
            let bindings: Vec<Binding> = block.bindings.iter().map(|b| self.remake_binding(b)).collect();
            return match bindings == block.bindings {
                true => block.clone(),
                false => Ref::new(BindingBlock { bindings, dataflow: false }),
            };
        }
        let graph = Graph::of(block, &self.kernels);
        let groups = Groups::of(&graph, self.limit, self.products);
        let mut replaced: HashMap<usize, Binding> = HashMap::new();
        let mut dropped = vec![false; block.bindings.len()];
        for members in groups.lists().into_iter().filter_map(|members| Outliner::members(block, members)) {
            let Some((last, others)) = members.split_last().filter(|(_, others)| !others.is_empty()) else { continue };
            let Some(call) = self.outliner.outline(block, &members) else { continue };
            let var = block.bindings[*last].var().clone();
            replaced.insert(*last, Ref::new(VarBinding { var, value: call }).into());
            others.iter().for_each(|m| dropped[*m] = true);
        }
        if replaced.is_empty() {
            return block.clone();
        }
        let kept = block.bindings.iter().enumerate().filter(|(i, _)| !dropped[*i]);
        let bindings = kept.map(|(i, b)| replaced.remove(&i).unwrap_or_else(|| b.clone())).collect();
        Ref::new(BindingBlock { bindings, dataflow: true })
    }
}
