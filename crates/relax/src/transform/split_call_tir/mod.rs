//! SplitCallTIRByPattern: the stages of kernels that patterns describe become calls of a library.
//!
//! A kernel that was fused of several operators is a row of stages. The first of them that patterns match may be a library's,
//! such as a product with what is done to its result; the others are left to a kernel of their own:
//!
//! ```text
//! gv = R.call_tir(cls.fused_matmul_relu, (x, w), …)
//!                                 ↓
//! lv = R.call_dps_packed("fused_matmul_relu", (x, w), …)     # its source is an attribute of the external function
//! gv = R.call_tir(cls.unfused_epilogue, (lv,), …)
//! ```
//!
//! Stages are compared with the patterns in order, until one matches none ([`Pattern`] says how). A code generator is given
//! what matched, and says how many stages its source stands for, none of them included, and which buffers it takes. The name
//! of the kernel, which the library function has, is put in the place of `{global_symbol}` in the source; the external
//! function carries it as `c_source`, with `c_source_fmt = "cu"`. A build here does not compile it: the function is found by
//! its name when the program runs. Where the library takes a whole kernel, the external function takes its place in the
//! module too.
//!
//! On the command line a pattern is given by its name in the module, and in the place of the generator stands the source of
//! all stages that match.
//!
//! **Leaves alone** a call where the first stage matches no pattern; where the rest reads or writes what the library computes
//! besides its last result, or needs a dimension that only the library's arguments say; a kernel of several outputs; calls with
//! `tir_vars`.
//!
//! **Refuses** a pattern that is no loop nest over one block; one whose body does not say what a symbol stands for; a
//! generator that stands for more stages than matched, or takes a buffer that its stages do not read.
//!
//! **Differs from TVM**: there a buffer with symbolic dimensions matches none of literal ones, though a pattern may have both;
//! a symbol that a pattern does not use has the value `None`; a kernel is cut also where the rest reads what the library keeps
//! to itself, which nothing holds then; the generator is asked at each call and not once for each
//! kernel; a kernel that came apart stays in the module until dead code goes, also a public one, which loses its name.

mod cut;
mod matching;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use relaxide_ffi::Ref;
use relaxide_ir::pass::{ParamKind, Pass, PassError, PassInfo, PassParam, PassResult};
use relaxide_ir::{Attrs, BaseFunc, Buffer, GlobalVar, IRModule, Type};
use relaxide_tir::{PrimFunc, Stmt};

use self::cut::{Cut, Uses, cut};
pub use self::matching::MatchResult;
use self::matching::{Pattern, PatternError};
use super::callees::{callees, drop_uncalled};
use super::emit::call_dps_packed;
use super::fuse_by_pattern::strings;
use super::root_block::{root_block, statements};
use crate::op::core::{CallTir, call_tir};
use crate::op::device::beside;
use crate::rewrite::{Action, Rewrite, rewrite_module};
use crate::*;

const NAME: &str = "SplitCallTIRByPattern";

/// What the kernel of the stages that are left is called.
const REST: &str = "unfused_epilogue";

/// What the name of a library function takes the place of in its source.
const SYMBOL: &str = "{global_symbol}";

pub(super) const PASS: PassInfo = PassInfo::new(
    NAME,
    "The stages of kernels that patterns describe become calls of a library.",
    |module, _, args| {
        let named = |name: String| {
            let found = module.get_as::<PrimFunc>(&name);
            found.ok_or_else(|| PassError::arguments(NAME, format!("the module has no kernel {name:?} for a pattern")))
        };
        let patterns = strings(args.get("patterns")).into_iter().map(named).collect::<Result<Vec<_>, _>>()?;
        let source = args.str("fcodegen").unwrap_or_default().to_string();
        run(module, &patterns, &move |matched| Ok(LibraryCode::of_all(source.clone(), matched)))
    },
)
.params(&[
    PassParam::required("patterns", ParamKind::Strs, "Kernels of the module, by name, each of one loop nest."),
    PassParam::required("fcodegen", ParamKind::Str, "The source of the library function that all matches become."),
])
.ready(relaxide_tir::lower::module_of_unit_steps);

/// What a code generator makes of the first stages of a kernel.
#[derive(Clone, Debug, Default)]
pub struct LibraryCode {
    /// The source, in which `{global_symbol}` stands for the name of the function.
    pub source: String,
    /// How many stages it stands for; none, where the kernel stays as it is.
    pub stages: usize,
    /// The buffers that it takes, parameters of the kernel.
    pub args: Vec<Ref<Buffer>>,
}

impl LibraryCode {
    /// A source for all stages that matched, which takes what they read from outside.
    fn of_all(source: String, matched: &[Ref<MatchResult>]) -> LibraryCode {
        let (mut args, mut written) = (Vec::new(), Vec::new());
        for one in matched {
            let stages = root_block(&one.pattern).map(|root| statements(root)).unwrap_or_default();
            let uses = Uses::of(&stages);
            let params = one.pattern.buffers.iter().flatten().zip(&one.matched_buffers);
            let actual = |of: &Ref<Buffer>| params.clone().find(|(p, _)| *p == of).map(|(_, given)| given.clone());
            for buffer in uses.inputs().filter_map(&actual) {
                if !written.contains(&buffer) && !args.contains(&buffer) {
                    args.push(buffer);
                }
            }
            written.extend(uses.writes.iter().filter_map(&actual));
        }
        LibraryCode { source, stages: matched.len(), args }
    }
}

/// A code generator: what it makes of stages that matched patterns, one after another.
pub type LibraryCodegen = dyn Fn(&[Ref<MatchResult>]) -> Result<LibraryCode, PassError> + Send + Sync;

/// The pass over patterns and a code generator.
pub fn split_call_tir_by_pattern(
    patterns: Vec<Ref<PrimFunc>>,
    codegen: impl Fn(&[Ref<MatchResult>]) -> Result<LibraryCode, PassError> + Send + Sync + 'static,
) -> Pass {
    let codegen: Arc<LibraryCodegen> = Arc::new(codegen);
    Pass::new(NAME, move |module, _| run(module, &patterns, &*codegen))
}

fn run(module: IRModule, patterns: &[Ref<PrimFunc>], codegen: &LibraryCodegen) -> PassResult {
    let pattern = |(place, kernel): (usize, &Ref<PrimFunc>)| {
        Pattern::new(kernel.clone()).map_err(|why| PassError::new(NAME, format!("pattern {place}: {why}")))
    };
    let patterns = patterns.iter().enumerate().map(pattern).collect::<Result<Vec<_>, _>>()?;
    let called: HashSet<String> = module.functions_of::<Function>().flat_map(|(_, f)| callees(&f.body)).collect();
    let kernels: Vec<_> = module.functions_of::<PrimFunc>().filter(|(name, _)| called.contains(*name)).collect();
    let mut taken = HashMap::new();
    for (name, kernel) in kernels {
        let within = |why: PatternError| PassError::new(NAME, format!("in kernel `{name}`: {why}"));
        let matched = matches_of(&kernel, &patterns).map_err(within)?;
        if matched.is_empty() {
            continue;
        }
        let code = codegen(&matched)?;
        if code.stages > matched.len() {
            let (stages, matched) = (code.stages, matched.len());
            return Err(within(PatternError::Stages { stages, matched }));
        }
        let cut = if code.stages == 0 { None } else { cut(&kernel, &code).map_err(within)? };
        if let Some(cut) = cut {
            taken.insert(name.to_string(), Taken { library: library(name, &code.source), cut });
        }
    }
    let mut calls = LibraryCalls { taken };
    let mut module = rewrite_module(NAME, module, &mut calls)?;
    put_in_place(&mut module, calls.taken);
    Ok(module)
}

/// What the first stages of a kernel are, until one matches no pattern.
fn matches_of(kernel: &PrimFunc, patterns: &[Pattern]) -> Result<Vec<Ref<MatchResult>>, PatternError> {
    let stages = root_block(kernel).map(|root| statements(root)).unwrap_or_default();
    let mut matched = Vec::new();
    for stage in &stages {
        match first_match(stage, patterns)? {
            Some(found) => matched.push(Ref::new(found)),
            None => break,
        }
    }
    Ok(matched)
}

fn first_match(stage: &Stmt, patterns: &[Pattern]) -> Result<Option<MatchResult>, PatternError> {
    for (place, pattern) in patterns.iter().enumerate() {
        let found = pattern.matches(stage);
        let found = found.map_err(|source| PatternError::OfPattern { place, source: Box::new(source) })?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// The library function of a kernel.
fn library(name: &str, source: &str) -> Ref<ExternFunc> {
    let attrs = Attrs::new().with("c_source", source.replace(SYMBOL, name)).with("c_source_fmt", "cu");
    Ref::new(ExternFunc { global_symbol: name.to_string(), attrs, ty: Type::packed_func(Type::any(), false) })
}

/// Library functions that took whole kernels stand where these stood; kernels that came apart go, unless they are called
/// otherwise.
fn put_in_place(module: &mut IRModule, taken: HashMap<String, Taken>) {
    let still: HashSet<String> = module.functions_of::<Function>().flat_map(|(_, f)| callees(&f.body)).collect();
    let mut apart = HashSet::new();
    for (name, taken) in taken {
        match taken.cut {
            Cut::Whole if !still.contains(&name) => {
                if let Some(func) = module.functions.get_mut(&name) {
                    *func = BaseFunc::from(taken.library);
                }
            }
            Cut::Whole => {}
            Cut::Front { .. } => drop(apart.insert(name)),
        }
    }
    drop_uncalled(module, &apart);
}

/// A kernel of which a library takes stages.
struct Taken {
    library: Ref<ExternFunc>,
    cut: Cut,
}

struct LibraryCalls {
    taken: HashMap<String, Taken>,
}

impl Rewrite for LibraryCalls {
    fn value(&mut self, b: &mut BlockBuilder, _: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let (Expr::Call(call), Some(tir)) = (&value, CallTir::of(&value)) else { return Ok(Action::Bind(value)) };
        let Some(Taken { library, cut }) = self.taken.get(&tir.func.name) else { return Ok(Action::Bind(value)) };
        let args =
            |places: &[usize]| -> Option<Vec<Expr>> { places.iter().map(|i| tir.args.get(*i).cloned()).collect() };
        match cut {
            Cut::Whole => {
                Ok(Action::Bind(call_dps_packed(library.clone(), tir.args, call.ty.clone(), call.span.clone())))
            }
            Cut::Front { library: places, between, rest, others } if tir.outputs.len() == 1 => {
                let (Some(first), Some(others)) = (args(places), args(others)) else { return Ok(Action::Bind(value)) };
                let between = beside(&first, between.clone());
                let first = b.emit(call_dps_packed(library.clone(), first, between, call.span.clone()))?;
                let rest: Ref<GlobalVar> = b.add_kernel((**rest).clone(), REST);
                let ty: Type = call.ty.clone();
                Ok(Action::Bind(call_tir(rest, [vec![first], others].concat(), ty)?))
            }
            Cut::Front { .. } => Ok(Action::Bind(value)),
        }
    }
}
