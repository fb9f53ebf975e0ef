//! The options that a context can hold.
//!
//! One row an option. An option that has no row is refused, so that a misspelt name is no silent default. Rows whose doc
//! says so are read by no pass of ours: programs written for TVM set them, and what they would turn off or tune does not
//! exist here.

use super::PassError;
use crate::{AttrValue, Attrs};

/// One option.
#[derive(Clone, Copy, Debug)]
pub struct ConfigOption {
    /// Its name.
    pub name: &'static str,
    /// What its value is.
    pub kind: ConfigKind,
    /// What it changes.
    pub doc: &'static str,
}

/// Options that were set, by name.
#[derive(Clone, Debug, Default)]
pub struct PassConfig(Attrs);

impl PassConfig {
    /// Sets an option. A name that no pass knows, or a value of another kind, is refused.
    pub fn set(&mut self, name: &str, value: impl Into<AttrValue>) -> Result<(), PassError> {
        let value = check(name, value.into())?;
        self.0.0.insert(name.to_string(), value);
        Ok(())
    }

    /// The options that were set, such as `relax.FuseOps.max_depth`.
    pub fn attrs(&self) -> &Attrs {
        &self.0
    }

    /// An option that is an integer, if it was set.
    pub fn int(&self, name: &str) -> Option<i64> {
        self.0.int(name)
    }

    /// An option that is a bool, if it was set.
    pub fn bool(&self, name: &str) -> Option<bool> {
        self.0.bool(name)
    }

    /// An entry of an option of several: what was set, or else its default. Bools count as 0 and 1.
    pub fn entry(&self, name: &str, key: &str) -> i64 {
        let number = |value: &AttrValue| match value {
            AttrValue::Bool(value) => Some(i64::from(*value)),
            AttrValue::Int(value) => Some(*value),
            _ => None,
        };
        let given = match self.0.0.get(name) {
            Some(AttrValue::Map(entries)) => entries.get(key).and_then(number),
            _ => None,
        };
        let row = || CONFIG.iter().find(|option| option.name == name)?.kind.entries().iter().find(|e| e.name == key);
        given.or_else(|| row().map(|entry| entry.default.number())).unwrap_or_default()
    }

    /// An option that is text, if it was set.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.str(name)
    }
}

/// What the value of an option is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigKind {
    /// `True` or `False`.
    Bool,
    /// An integer.
    Int,
    /// Text.
    Text,
    /// Several numbers and bools by name.
    Entries(&'static [ConfigEntry]),
    /// Anything.
    Any,
}

impl ConfigKind {
    /// What an option of several has.
    pub fn entries(self) -> &'static [ConfigEntry] {
        if let ConfigKind::Entries(entries) = self { entries } else { &[] }
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            ConfigKind::Bool => "Bool",
            ConfigKind::Int => "Int",
            ConfigKind::Text => "Text",
            ConfigKind::Entries(_) => "Entries",
            ConfigKind::Any => "Any",
        }
    }
}

/// An entry of an option of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigEntry {
    /// Its name.
    pub name: &'static str,
    /// What it is where nothing is said.
    pub default: EntryDefault,
    /// What it changes.
    pub doc: &'static str,
}

/// The value of an entry where nothing is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryDefault {
    /// A bool.
    Bool(bool),
    /// A number.
    Int(i64),
}

impl EntryDefault {
    fn number(self) -> i64 {
        match self {
            EntryDefault::Bool(value) => i64::from(value),
            EntryDefault::Int(value) => value,
        }
    }
}

const fn flag(name: &'static str, default: bool, doc: &'static str) -> ConfigEntry {
    ConfigEntry { name, default: EntryDefault::Bool(default), doc }
}

const fn count(name: &'static str, default: i64, doc: &'static str) -> ConfigEntry {
    ConfigEntry { name, default: EntryDefault::Int(default), doc }
}

const fn row(name: &'static str, kind: ConfigKind, doc: &'static str) -> ConfigOption {
    ConfigOption { name, kind, doc }
}

const NOT_READ: &str = "Accepted for programs that set it; no pass reads it.";

#[rustfmt::skip]
const UNROLL_LOOP: &[ConfigEntry] = &[
    count("auto_max_step", 0, "Most statements that a loop is unrolled to."),
    count("auto_max_depth", 8, "Most loops inside of each other that are unrolled."),
    count("auto_max_extent", 0, "Most iterations of a loop that is unrolled whatever is in it."),
    count("explicit_unroll", 1, "Whether loops are unrolled, not marked only."),
    count("unroll_local_access", 0, "Whether loops are unrolled whose variable is an index of a thread's own memory."),
];

#[rustfmt::skip]
const STMT_SIMPLIFY: &[ConfigEntry] = &[
    count("apply_constraints_to_boolean_branches", 0, "Whether each side of and and or is simplified under the other one."),
    count("transitively_prove_inequalities", 0, "Whether conditions are proved by cases where the rules do not suffice."),
    count("convert_boolean_to_and_of_ors", 0, "Conditions become an `and` of `or`s, in which parts that decide each other are found."),
    count("propagate_knowns_to_prove_conditional", 0, "Accepted for programs that set it; what is stored is not followed."),
    count("propagate_knowns_to_simplify_expressions", 0, "Accepted for programs that set it; what is stored is not followed."),
];

#[rustfmt::skip]
const HOIST_EXPRESSION: &[ConfigEntry] = &[
    count("hoisted_conditionals", 7, "Which conditions leave loops: 1 of statements, 2 of if_then_else, 4 sides of and and or, 8 those about threads."),
    count("hoisted_let_bindings", 7, "Which names leave loops: 1 those that conditions need, 2 of statements, 4 of expressions."),
];

#[rustfmt::skip]
const HOIST_IF: &[ConfigEntry] =
    &[flag("support_block_scope_hoisting", false, "Whether conditions leave loops over threads.")];

#[rustfmt::skip]
const LOOP_PARTITION: &[ConfigEntry] = &[
    flag("partition_const_loop", false, "Whether loops of constant extent are looked at."),
    flag("no_unroll_loop_with_extent_one", false, "Whether parts of one iteration stay loops."),
    flag("unroll_loop_with_partition_hint_no_interval", false, "Whether loops that ask to be parted and cannot are unrolled."),
];

/// Every option.
#[rustfmt::skip]
pub static CONFIG: &[ConfigOption] = &[
    row("relax.FuseOps.max_depth", ConfigKind::Int, "The most operators that FuseOps puts into one group."),
    row("relax.FoldConstant.max_work", ConfigKind::Int, "The most scalar operations that FoldConstant spends on one constant."),
    row("relax.lift_transform_params.consume_params", ConfigKind::Bool, "The function that LiftTransformParams makes frees parameters once they are used."),
    row("relaxide.schedule", ConfigKind::Text, "A file of decisions for kernels in the place of the schedule rules' guesses, as `compile --explain --json` prints it."),
    row("relaxide.debug_info", ConfigKind::Text, "The file that kernels are printed to; native code then says which of its lines instructions come from."),
    row("relax.fallback_device_type", ConfigKind::Int, "The device type for what names no device."),
    row("relay.fallback_device_type", ConfigKind::Int, "The device type for what a program of Relay says nothing of."),
    row("relax.backend.use_cuda_graph", ConfigKind::Bool, "RewriteCUDAGraph makes graphs of kernel calls."),
    row("relax.transform.apply_legalize_ops", ConfigKind::Bool, NOT_READ),
    row("testing.immutable_module", ConfigKind::Bool, NOT_READ),
    row("s_tir.HoistExpression", ConfigKind::Entries(HOIST_EXPRESSION), "What HoistExpression takes out of loops."),
    row("s_tir.HoistIfThenElse", ConfigKind::Entries(HOIST_IF), "Which loops HoistIfThenElse takes conditions out of."),
    row("s_tir.InjectDoubleBuffer", ConfigKind::Any, NOT_READ),
    row("s_tir.LoopPartition", ConfigKind::Entries(LOOP_PARTITION), "Which loops LoopPartition parts."),
    row("s_tir.instr_siblings", ConfigKind::Bool, "Whether InstrumentProfileIntrinsics takes loops beside others, or those of a depth."),
    row("s_tir.lwp_disable_func_prof", ConfigKind::Bool, "InstrumentProfileIntrinsics leaves kernels themselves out."),
    row("s_tir.lwp_max_depth", ConfigKind::Int, "How many loops may be around one that InstrumentProfileIntrinsics takes."),
    row("s_tir.lwp_min_height", ConfigKind::Int, "How many loops one has below it that InstrumentProfileIntrinsics takes."),
    row("s_tir.reset_start_id", ConfigKind::Bool, "InstrumentProfileIntrinsics numbers from zero again."),
    row("tirx.RemoveNoOp", ConfigKind::Any, NOT_READ),
    row("tirx.StmtSimplify", ConfigKind::Entries(STMT_SIMPLIFY), "What StmtSimplify does beside the usual."),
    row("tirx.UnrollLoop", ConfigKind::Entries(UNROLL_LOOP), "Which loops UnrollLoop unrolls that nobody has marked."),
    row("tirx.add_lower_pass", ConfigKind::Any, NOT_READ),
    row("tirx.debug_keep_trivial_loop", ConfigKind::Bool, NOT_READ),
    row("tirx.disable_assert", ConfigKind::Bool, NOT_READ),
    row("tirx.disable_cse_tir", ConfigKind::Bool, NOT_READ),
    row("tirx.disable_storage_rewrite", ConfigKind::Bool, "StorageRewrite leaves allocations where they are."),
    row("tirx.disable_vectorize", ConfigKind::Bool, "VectorizeLoop makes serial loops of those that were to become vectors."),
    row("tirx.enable_buffer_level_predication", ConfigKind::Bool, "VectorizeLoop, run by itself, makes predicates of conditions."),
    row("tirx.enable_debug", ConfigKind::Bool, NOT_READ),
    row("tirx.enable_fast_math", ConfigKind::Bool, NOT_READ),
    row("tirx.instrument_bound_checkers", ConfigKind::Bool, "Accesses of kernels outside of their buffers become errors."),
    row("tirx.instrument_lwp", ConfigKind::Bool, NOT_READ),
    row("tirx.is_entry_func", ConfigKind::Bool, NOT_READ),
    row("tirx.merge_static_smem", ConfigKind::Bool, "MergeSharedMemoryAllocations merges memory of fixed size, too."),
    row("tirx.noalias", ConfigKind::Bool, NOT_READ),
    row("tirx.s_tir.ldg32", ConfigKind::Bool, NOT_READ),
    row("tirx.use_async_copy", ConfigKind::Bool, NOT_READ),
    row("tirx.vtcm_capacity", ConfigKind::Int, NOT_READ),
];

/// The value as an option holds it.
fn check(name: &str, value: AttrValue) -> Result<AttrValue, PassError> {
    let refuse = |message: String| Err(PassError::arguments("PassContext", message));
    let Some(option) = CONFIG.iter().find(|option| option.name == name) else {
        let close = CONFIG.iter().filter(|o| o.name.rsplit('.').next() == name.rsplit('.').next());
        let close: Vec<&str> = close.map(|o| o.name).collect();
        let help = if close.is_empty() { String::new() } else { format!("; did you mean {}?", close.join(", ")) };
        return refuse(format!("there is no option {name:?}{help}"));
    };
    match (option.kind, value) {
        (ConfigKind::Bool, AttrValue::Bool(v)) => Ok(AttrValue::Bool(v)),
        (ConfigKind::Bool, AttrValue::Int(v)) => Ok(AttrValue::Bool(v != 0)),
        (ConfigKind::Int, AttrValue::Int(v)) => Ok(AttrValue::Int(v)),
        (ConfigKind::Text, AttrValue::Str(v)) => Ok(AttrValue::Str(v)),
        (ConfigKind::Entries(known), AttrValue::Map(given)) => {
            let wrong = |(key, value): &(&String, &AttrValue)| {
                !known.iter().any(|entry| entry.name == *key)
                    || !matches!(value, AttrValue::Bool(_) | AttrValue::Int(_))
            };
            let Some((key, value)) = given.iter().find(wrong) else { return Ok(AttrValue::Map(given)) };
            let names: Vec<&str> = known.iter().map(|entry| entry.name).collect();
            refuse(format!("option {name:?} has no entry {key:?} of value {value:?}; numbers are {}", names.join(", ")))
        }
        (ConfigKind::Any, value) => Ok(value),
        (kind, value) => refuse(format!("option {name:?} is of kind {}, not {value:?}", kind.name())),
    }
}
