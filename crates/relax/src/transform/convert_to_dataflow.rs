//! ConvertToDataflow: bindings without effects and control flow become dataflow blocks.
//!
//! ```text
//! lv = R.matmul(x, w)                 with R.dataflow():
//! gv = R.nn.relu(lv)            →         lv = R.matmul(x, w)
//! R.print(gv, format="{}")                gv = R.nn.relu(lv)
//!                                         R.output(gv)
//!                                     R.print(gv, format="{}")
//! ```
//!
//! Bindings that stand together make a block if there are at least `min_size` of them, those of a dataflow block beside them
//! counted. What is used behind the block stays visible, and so do functions; the rest becomes dataflow variables. A block that is one stays, and is joined with its neighbours.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::IRModule;
use relaxide_ir::pass::{ParamDefault, ParamKind, PassInfo, PassParam, PassResult};

use super::normalize::JoinBlocks;
use super::{canonicalize, emit::map_functions};
use crate::builder::is_pure;
use crate::functor::{VarReplacer, used_vars};
use crate::*;

const NAME: &str = "ConvertToDataflow";

pub(super) const PASS: PassInfo =
    PassInfo::new(NAME, "Bindings without effects and control flow become dataflow blocks.", |module, _, args| {
        let min_size = args.int("min_size").and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        run(module, min_size)
    })
    .params(&[PassParam::new(
        "min_size",
        ParamKind::Int,
        ParamDefault::Int(2),
        "The least number of bindings of a block.",
    )]);

fn run(module: IRModule, min_size: usize) -> PassResult {
    let module = map_functions(module, |_, func| {
        let mut convert = Convert { min_size, replace: VarReplacer::default() };
        Ok(JoinBlocks.mutate_function(&convert.mutate_function(func)))
    })?;
    canonicalize::run(NAME, module)
}

struct Convert {
    min_size: usize,
    replace: VarReplacer,
}

impl ExprMutator for Convert {
    fn mutate_expr(&mut self, e: &Expr) -> Expr {
        match e.as_var() {
            Some(_) => self.replace.mutate_expr(e),
            None => self.remake_expr(e),
        }
    }

    fn mutate_seq(&mut self, seq: &Ref<SeqExpr>) -> Ref<SeqExpr> {
        let mut last_uses: HashMap<AnyVar, usize> = HashMap::new();
        for (i, block) in seq.blocks.iter().enumerate() {
            note_uses(&block.bindings, i, &mut last_uses);
        }
        last_uses.extend(used_vars(&seq.body).into_iter().map(|var| (var, usize::MAX)));
        let mut blocks = Vec::new();
        for (i, block) in seq.blocks.iter().enumerate() {
            if block.dataflow {
                blocks.push(self.mutate_block(block));
                continue;
            }
            let length = |block: Option<&Ref<BindingBlock>>| {
                block.filter(|block| block.dataflow).map(|block| block.bindings.len()).filter(|length| *length > 0)
            };
            let beside = Beside { before: length(blocks.last()), behind: length(seq.blocks.get(i + 1)) };
            self.split(block, &beside, &|var| last_uses.get(var).is_some_and(|last| *last > i), &mut blocks);
        }
        let body = self.mutate_expr(&seq.body);
        Ref::new(SeqExpr { blocks, body })
    }
}

/// How many bindings the dataflow blocks have that a block stands between, where there are any.
struct Beside {
    before: Option<usize>,
    behind: Option<usize>,
}

impl Beside {
    /// How many bindings a run of a block is joined with.
    fn of(&self, run: usize, runs: usize) -> usize {
        let before = self.before.filter(|_| run == 0).unwrap_or_default();
        before + self.behind.filter(|_| run + 1 == runs).unwrap_or_default()
    }
}

/// Notes that what bindings use is used at a place.
fn note_uses(bindings: &[Binding], place: usize, last_uses: &mut HashMap<AnyVar, usize>) {
    last_uses.extend(bindings.iter().flat_map(|b| used_vars(b.value())).map(|var| (var, place)));
}

impl Convert {
    /// A block as several: runs of bindings that may stand in a dataflow block, and the rest.
    fn split(
        &mut self,
        block: &BindingBlock,
        beside: &Beside,
        is_used_behind: &dyn Fn(&AnyVar) -> bool,
        out: &mut Vec<Ref<BindingBlock>>,
    ) {
        let runs: Vec<&[Binding]> = block.bindings.chunk_by(|a, b| is_plain(a) == is_plain(b)).collect();
        let mut last_uses = HashMap::new();
        for (at, run) in runs.iter().enumerate() {
            note_uses(run, at, &mut last_uses);
        }
        let mut parts: Vec<(bool, Vec<Binding>)> = Vec::new();
        let count = runs.len();
        for (at, run) in runs.into_iter().enumerate() {
            let length = run.len() + beside.of(at, count);
            let dataflow = length >= self.min_size && run.first().is_some_and(is_plain);
            let is_used = |var: &AnyVar| is_used_behind(var) || last_uses.get(var).is_some_and(|last| *last > at);
            let is_function = |b: &Binding| matches!(b.value(), Expr::Function(_));
            let bindings = run.iter().map(|b| self.binding(b, dataflow && !is_used(b.var()) && !is_function(b)));
            match parts.last_mut() {
                Some((false, last)) if !dataflow => last.extend(bindings),
                _ => parts.push((dataflow, bindings.collect())),
            }
        }
        out.extend(parts.into_iter().map(|(dataflow, bindings)| Ref::new(BindingBlock { bindings, dataflow })));
    }

    fn binding(&mut self, binding: &Binding, local: bool) -> Binding {
        let new = self.remake_binding(binding);
        if !local {
            return new;
        }
        let own = new.var().to_local();
        self.replace.0.insert(binding.var().clone(), own.clone().into());
        match &new {
            Binding::Var(b) => Ref::new(VarBinding { var: own, value: b.value.clone() }).into(),
            Binding::MatchCast(c) => Ref::new(MatchCast { var: own, value: c.value.clone(), ty: c.ty.clone() }).into(),
        }
    }
}

/// Whether a binding may stand in a dataflow block.
fn is_plain(binding: &Binding) -> bool {
    matches!(binding.value(), Expr::Function(_)) || !matches!(binding.value(), Expr::If(_)) && is_pure(binding.value())
}
