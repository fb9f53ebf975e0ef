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
    /// Anything.
    Any,
}

const fn row(name: &'static str, kind: ConfigKind, doc: &'static str) -> ConfigOption {
    ConfigOption { name, kind, doc }
}

const NOT_READ: &str = "Accepted for programs that set it; no pass reads it.";

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
    row("s_tir.HoistExpression", ConfigKind::Any, NOT_READ),
    row("s_tir.HoistIfThenElse", ConfigKind::Any, NOT_READ),
    row("s_tir.InjectDoubleBuffer", ConfigKind::Any, NOT_READ),
    row("s_tir.LoopPartition", ConfigKind::Any, "Of its entries, `partition_const_loop` lets LoopPartition look at loops of constant extent."),
    row("s_tir.instr_siblings", ConfigKind::Bool, NOT_READ),
    row("s_tir.lwp_disable_func_prof", ConfigKind::Bool, NOT_READ),
    row("s_tir.lwp_max_depth", ConfigKind::Int, NOT_READ),
    row("s_tir.lwp_min_height", ConfigKind::Int, NOT_READ),
    row("s_tir.reset_start_id", ConfigKind::Bool, NOT_READ),
    row("tirx.RemoveNoOp", ConfigKind::Any, NOT_READ),
    row("tirx.StmtSimplify", ConfigKind::Any, NOT_READ),
    row("tirx.UnrollLoop", ConfigKind::Any, NOT_READ),
    row("tirx.add_lower_pass", ConfigKind::Any, NOT_READ),
    row("tirx.debug_keep_trivial_loop", ConfigKind::Bool, NOT_READ),
    row("tirx.disable_assert", ConfigKind::Bool, NOT_READ),
    row("tirx.disable_cse_tir", ConfigKind::Bool, NOT_READ),
    row("tirx.disable_storage_rewrite", ConfigKind::Bool, NOT_READ),
    row("tirx.disable_vectorize", ConfigKind::Bool, NOT_READ),
    row("tirx.enable_buffer_level_predication", ConfigKind::Bool, NOT_READ),
    row("tirx.enable_debug", ConfigKind::Bool, NOT_READ),
    row("tirx.enable_fast_math", ConfigKind::Bool, NOT_READ),
    row("tirx.instrument_bound_checkers", ConfigKind::Bool, "Accesses of kernels outside of their buffers become errors."),
    row("tirx.instrument_lwp", ConfigKind::Bool, NOT_READ),
    row("tirx.is_entry_func", ConfigKind::Bool, NOT_READ),
    row("tirx.merge_static_smem", ConfigKind::Bool, NOT_READ),
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
        (ConfigKind::Any, value) => Ok(value),
        (kind, value) => refuse(format!("option {name:?} is of kind {kind:?}, not {value:?}")),
    }
}
