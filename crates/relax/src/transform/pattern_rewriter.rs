//! Sets of rewriting rules, applied to functions and modules until nothing matches.
//!
//! ```text
//! let rewriter = Rewriter::from_module(&module)?.or(other);
//! let module = rewriter.apply_module(module)?;
//! ```
//!
//! A rule is a pattern with a closure that makes what takes its place, or a module with the functions `pattern` and
//! `replacement`, which is what `R.rewriter` makes. Where several rules match a value, the first takes it. Private functions
//! of a rule's module that the replacement calls become functions of the module that is rewritten.
//!
//! A replacement of several values stands in front of the first of them, or behind what it needs where that comes later; in
//! a dataflow block, what uses the values moves behind it. Elsewhere such a match is left alone.
//!
//! **Differs from TVM**: attributes of the operators that a rule's pattern calls must be equal (TVM looks at the operator and
//! its arguments only), constants and shapes may stand in a pattern, and several values are replaced wherever the order of a
//! dataflow block allows it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use relaxide_ffi::{FreeVars, Ref, structural_equal};
use relaxide_ir::{BaseFunc, GlobalVar, IRModule};

use super::{canonicalize_function, drop_uncalled, inline_body, remove_unused};
use crate::builder::is_pure;
use crate::dpl::rewrite::{MAX_REWRITES, MAX_ROUNDS, in_order};
use crate::dpl::rule::Rule;
use crate::dpl::{Matches, Pattern, VarValues, is_tuple, match_expr, values_of};
use crate::functor::{bound_names, used_vars};
use crate::rewrite::{Action, Rewrite, rewrite_function};
use crate::shape::same_type;
use crate::*;

/// What makes the expression that takes the place of a match; the same expression keeps it.
pub type Replace = dyn Fn(&Expr, &Matches) -> Result<Expr, BuildError> + Send + Sync;

/// Rules, in the order in which they are tried.
#[derive(Clone)]
pub struct Rewriter {
    rules: Vec<RewriteRule>,
}

#[derive(Clone)]
struct RewriteRule {
    make: Make,
    /// Private functions that the replacement calls.
    needs: Vec<(String, BaseFunc)>,
}

#[derive(Clone)]
enum Make {
    Closure(Pattern, Arc<Replace>),
    Function(Rule),
}

impl Rewriter {
    /// One rule: what matches a pattern, and a closure.
    pub fn from_pattern(
        pattern: Pattern,
        replace: impl Fn(&Expr, &Matches) -> Result<Expr, BuildError> + Send + Sync + 'static,
    ) -> Rewriter {
        let make = Make::Closure(pattern, Arc::new(replace));
        Rewriter { rules: vec![RewriteRule { make, needs: Vec::new() }] }
    }

    /// One rule: the functions `pattern` and `replacement` of a module, which have one signature.
    pub fn from_module(module: &IRModule) -> Result<Rewriter, BuildError> {
        let rule = Rule::from_module(module)?;
        let needs = module.functions.iter().filter(|(name, _)| !matches!(name.as_str(), "pattern" | "replacement"));
        let needs = needs.map(|(name, func)| (name.clone(), func.clone())).collect();
        Ok(Rewriter { rules: vec![RewriteRule { make: Make::Function(rule), needs }] })
    }

    /// These rules, then others.
    pub fn or(mut self, other: Rewriter) -> Rewriter {
        self.rules.extend(other.rules);
        self
    }

    /// The names of functions that replacements call, which only a module can hold.
    pub fn needs(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().flat_map(|entry| entry.needs.iter().map(|(name, _)| name.as_str()))
    }

    /// A module whose Relax functions are rewritten.
    pub fn apply_module(&self, module: IRModule) -> Result<IRModule, BuildError> {
        let mut extended = module.clone();
        let mut added = HashSet::new();
        let rules = self.rules.iter().map(|entry| entry.installed(&mut extended, &mut added)).collect();
        let rewriter = Rewriter { rules };
        let mut b = BlockBuilder::with_module(extended);
        let mut changed = false;
        for (name, func) in module.functions_of::<Function>() {
            let new = rewriter.rewritten(&func, &mut b)?;
            if new != func {
                changed = true;
                b.module_mut().insert(name, new);
            }
        }
        if !changed {
            return Ok(module);
        }
        let mut module = b.finish();
        drop_uncalled(&mut module, &added);
        Ok(module)
    }

    /// A function rewritten by itself. Rules whose replacements call functions of their own are refused.
    pub fn apply_function(&self, func: &Ref<Function>) -> Result<Ref<Function>, BuildError> {
        if let Some(name) = self.needs().next() {
            return Err(BuildError::Program(format!(
                "a replacement calls `{name}`, a function that only a module can hold: rewrite the module"
            )));
        }
        self.rewritten(func, &mut BlockBuilder::new())
    }

    fn rewritten(&self, func: &Ref<Function>, b: &mut BlockBuilder) -> Result<Ref<Function>, BuildError> {
        let mut func = func.clone();
        let mut left = MAX_REWRITES.saturating_mul(values_of(&func).len() + 1);
        for _ in 0..MAX_ROUNDS {
            let mut singles = Singles { rules: &self.rules, values: VarValues::new(), rewrites: 0 };
            let mut new = rewrite_function(b, &func, &mut singles)?;
            let mut rewrites = singles.rewrites;
            for entry in &self.rules {
                if let Make::Function(rule) = &entry.make
                    && rule.is_tuple
                {
                    func.params.iter().for_each(|p| b.reserve(&p.name));
                    bound_names(&new.body).iter().for_each(|name| b.reserve(name));
                    let mut tuples = Tuples { rule, values: values_of(&new), b, rewrites: 0, error: None };
                    new = tuples.mutate_function(&new);
                    rewrites += tuples.rewrites;
                    tuples.error.map_or(Ok(()), Err)?;
                }
            }
            if rewrites == 0 || structural_equal(&new, &func, FreeVars::Same).is_ok() {
                return Ok(if rewrites == 0 { func } else { new });
            }
            let Some(rest) = left.checked_sub(rewrites) else { break };
            left = rest;
            func = remove_unused(&canonicalize_function(b, &new)?);
        }
        Err(BuildError::Program("the rewriting does not come to rest: what the rules make, they match again".into()))
    }
}

impl RewriteRule {
    /// The rule with what it needs in a module, under names that the module does not have.
    fn installed(&self, module: &mut IRModule, added: &mut HashSet<String>) -> RewriteRule {
        let Make::Function(rule) = &self.make else { return self.clone() };
        let mut rename = Rename(HashMap::new());
        for (name, func) in &self.needs {
            let known = module
                .functions
                .get(name)
                .is_some_and(|have| structural_equal(&have.0, &func.0, FreeVars::Mapped).is_ok());
            let own = if known { name.clone() } else { module.fresh_name(name) };
            if !known {
                // Holds the name; what it calls may be renamed yet.
                module.insert(own.clone(), func.clone());
                added.insert(own.clone());
            }
            rename.0.insert(name.clone(), GlobalVar::new(own));
        }
        for own in rename.0.values().filter(|own| added.contains(&own.name)).cloned().collect::<Vec<_>>() {
            if let Some(func) = module.get_as::<Function>(&own.name) {
                module.insert(own.name.clone(), rename.mutate_function(&func));
            }
        }
        let replacement = rename.mutate_function(&rule.replacement);
        RewriteRule { make: Make::Function(rule.with_replacement(replacement)), needs: Vec::new() }
    }
}

struct Rename(HashMap<String, Ref<GlobalVar>>);

impl ExprMutator for Rename {
    fn mutate_expr(&mut self, e: &Expr) -> Expr {
        match e {
            Expr::Global(g) => self.0.get(&g.name).map_or_else(|| e.clone(), |own| own.clone().into()),
            _ => self.remake_expr(e),
        }
    }
}

/// Replaces values one by one.
struct Singles<'a> {
    rules: &'a [RewriteRule],
    values: VarValues,
    rewrites: usize,
}

impl Singles<'_> {
    /// What takes the place of a value, by the first rule that matches.
    fn replacement(&self, b: &mut BlockBuilder, value: &Expr) -> Result<Option<Expr>, BuildError> {
        for entry in self.rules {
            match &entry.make {
                Make::Closure(pattern, replace) => {
                    if let Some(found) = match_expr(pattern, value, &self.values) {
                        return replace(value, &found).map(Some);
                    }
                }
                Make::Function(rule) if !rule.is_tuple => {
                    let [pattern] = rule.parts.as_slice() else { continue };
                    let args = match_expr(pattern, value, &self.values).and_then(|found| rule.args(&found));
                    if let Some(args) = args
                        && let Some(made) = inline_body(b, &rule.replacement, &args)?
                    {
                        return Ok(Some(made));
                    }
                }
                Make::Function(_) => {}
            }
        }
        Ok(None)
    }
}

impl Rewrite for Singles<'_> {
    fn value(&mut self, b: &mut BlockBuilder, var: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        match self.replacement(b, &value)? {
            Some(new) if new != value => {
                self.rewrites += 1;
                Ok(Action::Bind(new))
            }
            _ => {
                self.values.insert(var.clone(), value.clone());
                Ok(Action::Bind(value))
            }
        }
    }
}

/// Replaces several values of a block at once.
struct Tuples<'a> {
    rule: &'a Rule,
    values: VarValues,
    b: &'a mut BlockBuilder,
    rewrites: usize,
    error: Option<BuildError>,
}

impl ExprMutator for Tuples<'_> {
    fn mutate_seq(&mut self, seq: &Ref<SeqExpr>) -> Ref<SeqExpr> {
        let mut blocks: Vec<Ref<BindingBlock>> = Vec::with_capacity(seq.blocks.len());
        for block in &seq.blocks {
            let block = self.mutate_block(block);
            match self.block(&block) {
                Ok(Some(new)) => blocks.extend(new),
                Ok(None) => blocks.push(block),
                Err(error) => {
                    self.error = Some(error);
                    blocks.push(block);
                }
            }
        }
        if blocks == seq.blocks {
            return seq.clone();
        }
        Ref::new(SeqExpr { blocks: joined(blocks), body: seq.body.clone() })
    }
}

impl Tuples<'_> {
    /// The blocks that take the place of one in which the rule matches.
    fn block(&mut self, block: &BindingBlock) -> Result<Option<Vec<Ref<BindingBlock>>>, BuildError> {
        let parts = &self.rule.parts;
        let is_candidate = |part: &Pattern, binding: &Binding| match binding {
            Binding::Var(bound) => is_pure(&bound.value) && match_expr(part, &bound.value, &self.values).is_some(),
            Binding::MatchCast(_) => false,
        };
        let candidates = parts.iter().map(|part| {
            let fitting = block.bindings.iter().enumerate().filter(|(_, binding)| is_candidate(part, binding));
            fitting.map(|(at, _)| at).collect::<Vec<usize>>()
        });
        let candidates: Vec<Vec<usize>> = candidates.collect();
        let mut chosen = Vec::with_capacity(parts.len());
        let Some(args) = self.choose(block, &candidates, &mut chosen) else { return Ok(None) };
        self.replace(block, &chosen, &args)
    }

    /// Bindings of the block that match the parts together, and what is passed for them.
    fn choose(&self, block: &BindingBlock, candidates: &[Vec<usize>], chosen: &mut Vec<usize>) -> Option<Vec<Expr>> {
        let vars: Vec<Expr> =
            chosen.iter().filter_map(|at| Some(Expr::from(block.bindings.get(*at)?.var().clone()))).collect();
        let parts = self.rule.parts.get(..chosen.len())?;
        let found = match_expr(&is_tuple(parts), &Expr::tuple(vars), &self.values)?;
        let Some(next) = candidates.get(chosen.len()) else {
            let args = self.rule.args(&found)?;
            return place(block, chosen, &args).is_some().then_some(args);
        };
        for at in next {
            if !chosen.contains(at) {
                chosen.push(*at);
                if let Some(args) = self.choose(block, candidates, chosen) {
                    return Some(args);
                }
                chosen.pop();
            }
        }
        None
    }

    fn replace(
        &mut self,
        block: &BindingBlock,
        chosen: &[usize],
        args: &[Expr],
    ) -> Result<Option<Vec<Ref<BindingBlock>>>, BuildError> {
        let Some(at) = place(block, chosen, args) else { return Ok(None) };
        self.b.begin_scope();
        if block.dataflow {
            self.b.begin_dataflow()?;
        }
        let result = inline_body(self.b, &self.rule.replacement, args)?;
        let new = self.b.end_scope(Expr::tuple([]))?;
        let Some(result) = result else { return Ok(None) };
        let fields = chosen.iter().enumerate().filter_map(|(i, at)| {
            let var = block.bindings.get(*at)?.var().clone();
            let value = match &result {
                Expr::Tuple(tuple) => tuple.fields.get(i)?.clone(),
                whole => Expr::field(whole.clone(), i),
            };
            Some(if same_type(&value.ty(), var.ty()) {
                Binding::from(Ref::new(VarBinding { var, value }))
            } else {
                let ty = var.ty().clone();
                Ref::new(MatchCast { var, value, ty }).into()
            })
        });
        let mut fields: Vec<Binding> = fields.collect();
        let kept = |range: std::ops::Range<usize>| {
            let own = block.bindings.iter().enumerate().filter(|(i, _)| range.contains(i) && !chosen.contains(i));
            own.map(|(_, binding)| binding.clone()).collect::<Vec<Binding>>()
        };
        let (mut before, mut after) = (kept(0..at), kept(at..block.bindings.len()));
        self.rewrites += 1;
        if block.dataflow {
            before.extend(new.blocks.iter().flat_map(|block| block.bindings.iter().cloned()));
            before.append(&mut fields);
            before.append(&mut after);
            return Ok(Some(vec![Ref::new(BindingBlock { bindings: in_order(before)?, dataflow: true })]));
        }
        let plain = |bindings: Vec<Binding>| Ref::new(BindingBlock { bindings, dataflow: false });
        fields.append(&mut after);
        let all = std::iter::once(plain(before)).chain(new.blocks.iter().cloned()).chain([plain(fields)]);
        Ok(Some(all.filter(|block| !block.bindings.is_empty()).collect()))
    }
}

/// Blocks of which no two in a row are plain.
fn joined(blocks: Vec<Ref<BindingBlock>>) -> Vec<Ref<BindingBlock>> {
    let mut list: Vec<Ref<BindingBlock>> = Vec::with_capacity(blocks.len());
    for block in blocks {
        match list.last_mut() {
            Some(last) if !last.dataflow && !block.dataflow => {
                let bindings = last.bindings.iter().chain(&block.bindings).cloned().collect();
                *last = Ref::new(BindingBlock { bindings, dataflow: false });
            }
            _ => list.push(block),
        }
    }
    list
}

/// Where in a block the replacement of chosen bindings can stand: behind what it is passed. `None` where something that must
/// stay in front of it needs one of them.
fn place(block: &BindingBlock, chosen: &[usize], args: &[Expr]) -> Option<usize> {
    let needed: HashSet<AnyVar> = args.iter().flat_map(used_vars).collect();
    let behind = block.bindings.iter().rposition(|binding| needed.contains(binding.var())).map_or(0, |at| at + 1);
    let at = behind.max(chosen.iter().copied().min()?);
    let replaced: HashSet<&AnyVar> = chosen.iter().filter_map(|i| Some(block.bindings.get(*i)?.var())).collect();
    // What depends on the replaced values, of which none may be passed.
    let mut late: HashSet<AnyVar> = replaced.iter().map(|var| (*var).clone()).collect();
    for binding in block.bindings.get(..at)? {
        let uses = used_vars(binding.value()).iter().any(|var| late.contains(var));
        if uses && !replaced.contains(binding.var()) {
            if !block.dataflow || needed.contains(binding.var()) {
                return None;
            }
            late.insert(binding.var().clone());
        }
    }
    if needed.iter().any(|var| replaced.contains(var)) { None } else { Some(at) }
}
