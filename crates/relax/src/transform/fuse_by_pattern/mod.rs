//! FuseOpsByPattern: what matches a pattern becomes a function of its own, for a library or a backend to execute.
//!
//! ```text
//! pattern "blas.matmul_relu": relax.nn.relu(relax.matmul(*, *))
//!
//! lv = R.matmul(x, w)                    gv = cls.fused_relax_matmul_relax_nn_relu(x, w)
//! gv = R.nn.relu(lv)
//!                                        def fused_relax_matmul_relax_nn_relu(x, w):     # Composite = "blas.matmul_relu"
//!                                    →       gv = R.matmul(x, w)
//!                                            gv1 = R.nn.relu(gv)
//!                                            return gv1
//! ```
//!
//! Patterns are tried in order; what one took, a later one does not see. A match takes the calls, tuples and fields that
//! parts of the pattern stand for, and the variables that hold them; what wildcards stand for stays outside. What of a
//! match is used elsewhere becomes a result too. With `annotate_codegen`, each function is wrapped in one that carries
//! `Codegen` and can be given to [`RunCodegen`](super::run_codegen).
//!
//! **Works on** dataflow blocks only; `ConvertToDataflow` makes them. Functions that carry `Primitive`, `Composite` or
//! `Codegen` are left alone.
//!
//! **Refuses** a match that shares a binding with an earlier match of which it does not take all, one whose function would need its own result (an
//! operation outside stands between two inside), and what the pattern's check refuses.
//!
//! **Differs from TVM**: there, a match that shares bindings with an earlier one of the same pattern still makes a
//! function, of what is left of it (a `relu` alone, called a `matmul_relu`); here it makes none.

mod annotate;
mod pattern;

pub(super) use self::annotate::{backend_attrs, backend_of, local};

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::pass::{ParamDefault, ParamKind, Pass, PassContext, PassError, PassInfo, PassParam, PassResult};
use relaxide_ir::{AttrValue, Attrs, IRModule};

pub use self::pattern::{FusionPattern, PatternCheck};
use super::block_pass::each_dataflow_block;
use super::fuse_ops::PRIMITIVE_ATTR;
use super::outline::{Constants, outline};
use super::partition::{Groups, Made};
use crate::dpl::{Matches, PatternKind, VarValues, match_expr, parse_pattern, values_of};
use crate::rewrite::in_function;
use crate::*;

const NAME: &str = "FuseOpsByPattern";

/// The attribute that names the pattern that a function was made by.
pub const COMPOSITE_ATTR: &str = "Composite";

/// The attribute that names the backend that compiles a function.
pub const CODEGEN_ATTR: &str = "Codegen";

pub(super) const PASS: PassInfo =
    PassInfo::new(NAME, "What matches a pattern becomes a function of its own.", |module, context, args| {
        let options = FuseByPattern {
            bind_constants: args.bool("bind_constants") != Some(false),
            annotate_codegen: args.bool("annotate_codegen") == Some(true),
            entry_functions: strings(args.get("entry_functions")),
        };
        fuse_ops_by_pattern(patterns_of(args.get("patterns"))?, options).run(module, context)
    })
    .params(&[
        PassParam::required(
            "patterns",
            ParamKind::List,
            "Pairs of a name, such as `blas.matmul`, and a pattern as text.",
        ),
        PassParam::new("bind_constants", ParamKind::Bool, ParamDefault::Bool(true), "Constants stay in the functions."),
        PassParam::new(
            "annotate_codegen",
            ParamKind::Bool,
            ParamDefault::Bool(false),
            "Each function is wrapped in one for RunCodegen.",
        ),
        PassParam::optional(
            "entry_functions",
            ParamKind::Strs,
            "The functions to work on; all, where nothing is said.",
        ),
    ]);

/// Options of the pass.
#[derive(Clone, Debug)]
pub struct FuseByPattern {
    /// Constants stay in the functions; else they become parameters.
    pub bind_constants: bool,
    /// Each function is wrapped in one that carries `Codegen`.
    pub annotate_codegen: bool,
    /// The functions to work on; all, where there are none.
    pub entry_functions: Vec<String>,
}

impl Default for FuseByPattern {
    fn default() -> Self {
        FuseByPattern { bind_constants: true, annotate_codegen: false, entry_functions: Vec::new() }
    }
}

/// The pass over given patterns.
pub fn fuse_ops_by_pattern(patterns: Vec<FusionPattern>, options: FuseByPattern) -> Pass {
    Pass::new(NAME, move |module, context| run(module, context, &patterns, &options))
}

/// Texts of a list.
pub(super) fn strings(value: Option<&AttrValue>) -> Vec<String> {
    match value {
        Some(AttrValue::List(items)) => items
            .iter()
            .filter_map(|item| match item {
                AttrValue::Str(text) => Some(text.clone()),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn patterns_of(value: Option<&AttrValue>) -> Result<Vec<FusionPattern>, PassError> {
    let wrong = || PassError::new(NAME, "a pattern is given as [name, text]");
    let Some(AttrValue::List(items)) = value else { return Err(wrong()) };
    let pattern = |item: &AttrValue| match item {
        AttrValue::List(pair) => match pair.as_slice() {
            [AttrValue::Str(name), AttrValue::Str(text)] => Ok(FusionPattern::new(name, parse_pattern(text)?.0)),
            _ => Err(wrong()),
        },
        _ => Err(wrong()),
    };
    items.iter().map(pattern).collect()
}

fn run(module: IRModule, _: &PassContext, patterns: &[FusionPattern], options: &FuseByPattern) -> PassResult {
    let is_open =
        |f: &Function| [PRIMITIVE_ATTR, COMPOSITE_ATTR, CODEGEN_ATTR].iter().all(|a| f.attrs.get(a).is_none());
    let wanted = |name: &str| options.entry_functions.is_empty() || options.entry_functions.iter().any(|n| n == name);
    let mut fuse = Fuse { module, made: Made::default(), bind_constants: options.bind_constants };
    for pattern in patterns {
        let functions: Vec<_> = fuse.module.functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
        for (name, func) in functions.into_iter().filter(|(name, f)| is_open(f) && wanted(name)) {
            let new = fuse.function(&func, pattern).map_err(|e| in_function(NAME, &name, e))?;
            if new != func {
                fuse.module.insert(name, new);
            }
        }
    }
    Ok(if options.annotate_codegen { annotate::wrap(fuse.module) } else { fuse.module })
}

struct Fuse {
    module: IRModule,
    made: Made,
    bind_constants: bool,
}

impl Fuse {
    fn function(&mut self, func: &Ref<Function>, pattern: &FusionPattern) -> Result<Ref<Function>, BuildError> {
        let values = values_of(func);
        let users = pattern.check.as_ref().map(|_| users_of(func));
        let mut blocks = FusedBlocks { fuse: self, pattern, values, users: users.unwrap_or_default() };
        each_dataflow_block(func, |block| blocks.block(block))
    }

    /// The call of a new function for a match.
    fn call(
        &mut self,
        members: &[&Ref<VarBinding>],
        outputs: &[AnyVar],
        attrs: Attrs,
    ) -> Result<Option<Expr>, BuildError> {
        let constants = if self.bind_constants { Constants::Keep } else { Constants::Lift };
        let made = outline(members, outputs, constants, attrs);
        let ty = if let [one] = outputs {
            one.ty().clone()
        } else {
            relaxide_ir::Type::tuple(outputs.iter().map(|v| v.ty().clone()).collect::<Vec<_>>())
        };
        let callee = self.made.add(&mut self.module, made.function, &name_of(members));
        let (attrs, ty_args) = (Attrs::new(), Vec::new());
        Ok(Some(Ref::new(Call { op: callee.into(), args: made.args, attrs, ty_args, ty, span: None }).into()))
    }
}

/// `fused_relax_matmul_relax_nn_relu`.
fn name_of(members: &[&Ref<VarBinding>]) -> String {
    let mut name = String::from("fused");
    for member in members {
        match &member.value {
            Expr::Call(call) => match &call.op {
                Expr::Op(op) => {
                    name.push_str("_relax_");
                    name.push_str(&op.name.trim_start_matches("relax.").replace('.', "_"));
                }
                Expr::Global(g) => {
                    name.push('_');
                    name.push_str(&g.name);
                }
                _ => name.push_str("_call"),
            },
            Expr::Tuple(_) => name.push_str("_tuple"),
            Expr::TupleGetItem(_) => name.push_str("_get"),
            _ => {}
        }
    }
    name
}

/// The variables whose values use each variable.
fn users_of(func: &Function) -> HashMap<AnyVar, Vec<AnyVar>> {
    struct Collect(HashMap<AnyVar, Vec<AnyVar>>);
    impl ExprVisitor for Collect {
        fn visit_binding(&mut self, binding: &Binding) {
            for used in functor::used_vars(binding.value()) {
                self.0.entry(used).or_default().push(binding.var().clone());
            }
            self.visit_expr(binding.value());
        }
    }
    let mut collect = Collect(HashMap::new());
    collect.visit_seq(&func.body);
    collect.0
}

struct FusedBlocks<'a> {
    fuse: &'a mut Fuse,
    pattern: &'a FusionPattern,
    values: VarValues,
    users: HashMap<AnyVar, Vec<AnyVar>>,
}

impl FusedBlocks<'_> {
    fn block(&mut self, block: &Ref<BindingBlock>) -> Result<Ref<BindingBlock>, BuildError> {
        let index: HashMap<&AnyVar, usize> = block.bindings.iter().enumerate().map(|(i, b)| (b.var(), i)).collect();
        // A value is shared only if two variables hold one node; the first holds it.
        let mut holder: HashMap<&Expr, usize> = HashMap::new();
        for (i, binding) in block.bindings.iter().enumerate() {
            holder.entry(binding.value()).or_insert(i);
        }
        let mut groups = Groups::of(block);
        let mut attrs: HashMap<usize, Attrs> = HashMap::new();
        for (at, binding) in block.bindings.iter().enumerate() {
            let Binding::Var(bound) = binding else { continue };
            let Some(found) = match_expr(&self.pattern.pattern, &bound.value, &self.values) else { continue };
            let members = members(&found, at, &index, &holder);
            let all_bound = members.iter().all(|m| matches!(block.bindings.get(*m), Some(Binding::Var(_))));
            if !all_bound || !self.accepts(block, &bound.value, &found, &members)? {
                continue;
            }
            if let Some(group) = groups.add(&members) {
                attrs.insert(group, self.attrs(&found)?);
            }
        }
        if attrs.is_empty() {
            return Ok(block.clone());
        }
        let by_first: HashMap<AnyVar, Attrs> = groups
            .lists()
            .iter()
            .filter_map(|members| {
                let first = *members.first()?;
                let attrs = attrs.get(&groups.of_binding(first)?)?;
                Some((block.bindings.get(first)?.var().clone(), attrs.clone()))
            })
            .collect();
        groups.replace(block, |members, outputs| {
            let attrs = members.first().and_then(|m| by_first.get(&m.var)).cloned().unwrap_or_default();
            self.fuse.call(members, outputs, attrs)
        })
    }

    fn accepts(
        &self,
        block: &BindingBlock,
        value: &Expr,
        found: &Matches,
        members: &[usize],
    ) -> Result<bool, BuildError> {
        let Some(check) = &self.pattern.check else { return Ok(true) };
        let bindings = members.iter().filter_map(|m| block.bindings.get(*m));
        let bindings = bindings.map(|b| (b.var().clone(), b.value().clone())).collect();
        let context = PatternCheck {
            matched: value.clone(),
            annotated: self.pattern.annotated(found),
            bindings,
            users: &self.users,
            values: &self.values,
        };
        check(&context).map_err(|e| BuildError::Program(e.to_string()))
    }

    fn attrs(&self, found: &Matches) -> Result<Attrs, BuildError> {
        let attrs = Attrs::new().with(COMPOSITE_ATTR, self.pattern.name.as_str()).with(PRIMITIVE_ATTR, true);
        let Some(more) = &self.pattern.attrs else { return Ok(attrs) };
        let more = more(&self.pattern.annotated(found)).map_err(|e| BuildError::Program(e.to_string()))?;
        Ok(more.0.into_iter().fold(attrs, |attrs, (name, value)| attrs.with(name, value)))
    }
}

/// The bindings of the block that a match takes, in order.
fn members(found: &Matches, at: usize, index: &HashMap<&AnyVar, usize>, holder: &HashMap<&Expr, usize>) -> Vec<usize> {
    let mut members: HashSet<usize> = HashSet::from([at]);
    for (part, operand, value) in found.iter() {
        let takes = matches!(
            part.kind(),
            PatternKind::Call { .. }
                | PatternKind::Tuple(_)
                | PatternKind::UnorderedTuple(_)
                | PatternKind::TupleGetItem(..)
        );
        if takes && let Some(i) = operand.as_var().and_then(|v| index.get(&v)).or_else(|| holder.get(value)) {
            members.insert(*i);
        }
    }
    let mut members: Vec<usize> = members.into_iter().collect();
    members.sort_unstable();
    members
}
