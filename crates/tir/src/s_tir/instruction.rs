//! Kinds of steps, and one step as a trace keeps it.
//!
//! A kind is one row of [`KINDS`]: its name in traces, the method that Python calls it by, how its operands are written,
//! whether it changes the program, and the function that executes it. Each lies in the file of its primitive.

use relaxide_ir::attrs::AttrValue;

use super::primitive as p;
use super::rv::{Rv, Value};
use super::step::Call;
use super::{Schedule, ScheduleError};

/// How an operand is written in the text of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Param {
    /// The next input, by keyword.
    Input(&'static str),
    /// All inputs that are left, as a list by keyword.
    Inputs(&'static str),
    /// All inputs that are left, one after another.
    Splat,
    /// The next constant, by keyword.
    Attr(&'static str),
    /// The next two constants, the index of a buffer and whether it is read (0) or written (1), by keyword: `("read", 0)`.
    Buffer(&'static str),
    /// The next input, a list of blocks, by keyword where there are any.
    Consumers(&'static str),
    /// The next input, 0 or 1, by keyword as `"read"` or `"write"`.
    Side(&'static str),
    /// The next input, a map of indices that gives where ranges begin and end, by keyword as the function that Python takes.
    Ranges(&'static str),
    /// What was decided, where that is known.
    Decision,
}

/// How results are written in the text of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Results {
    /// There are none.
    None,
    /// One: `b0 = …`.
    One,
    /// A list: `b0, = …`, `l1, l2 = …`.
    List,
}

/// What executes a step.
pub type Apply = fn(&mut Schedule, &mut Call<'_>) -> Result<Vec<Value>, ScheduleError>;

/// A kind of step.
pub struct InstructionKind {
    /// Its name in traces: `GetSBlock`.
    pub name: &'static str,
    /// Its name in Python: `get_sblock`.
    pub method: &'static str,
    /// Whether it leaves the program as it is.
    pub is_pure: bool,
    /// How its operands are written.
    pub params: &'static [Param],
    /// How its results are written.
    pub results: Results,
    /// What executes it.
    pub apply: Apply,
}

impl std::fmt::Debug for InstructionKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// All kinds of steps.
pub static KINDS: &[&InstructionKind] = &[
    &p::get_sblock::KIND,
    &p::get_loops::KIND,
    &p::neighbours::CHILD_BLOCKS,
    &p::neighbours::PRODUCERS,
    &p::neighbours::CONSUMERS,
    &p::neighbours::OUTPUT_BLOCKS,
    &p::sample::CATEGORICAL,
    &p::sample::PERFECT_TILE,
    &p::sample::PARTITIONED_TILE,
    &p::sample_compute_location::KIND,
    &p::split::KIND,
    &p::loop_partition::KIND,
    &p::fuse::KIND,
    &p::reorder::KIND,
    &p::reorder_block_iter_var::KIND,
    &p::add_unit_loop::KIND,
    &p::for_kind::PARALLEL,
    &p::for_kind::VECTORIZE,
    &p::for_kind::UNROLL,
    &p::for_kind::BIND,
    &p::compute_inline::KIND,
    &p::reverse_compute_inline::KIND,
    &p::annotate::ANNOTATE,
    &p::annotate::UNANNOTATE,
    &p::enter_postproc::KIND,
    &p::decompose_reduction::KIND,
    &p::compute_at::KIND,
    &p::reverse_compute_at::KIND,
    &p::cache_read::KIND,
    &p::cache_write::KIND,
    &p::reindex_cache_read::KIND,
    &p::reindex_cache_write::KIND,
    &p::cache_inplace::KIND,
    &p::cache_index::KIND,
    &p::read_at::KIND,
    &p::write_at::KIND,
    &p::rfactor::KIND,
    &p::blockize::KIND,
    &p::transform_layout::KIND,
    &p::transform_block_layout::KIND,
    &p::set_scope::KIND,
    &p::storage_align::KIND,
    &p::unsafe_set_dtype::KIND,
    &p::reindex::KIND,
    &p::pad_einsum::KIND,
    &p::tensorize::KIND,
    &p::merge::KIND,
    &p::decompose_padding::KIND,
    &p::rolling_buffer::KIND,
    &p::fuse_reduction_epilogue::KIND,
    &p::annotate_buffer_access::KIND,
    &p::unsafe_hide_buffer_access::KIND,
];

/// The kind of a name, as traces write it.
pub fn kind(name: &str) -> Option<&'static InstructionKind> {
    KINDS.iter().copied().find(|kind| kind.name == name)
}

/// A step that was executed.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// Which.
    pub kind: &'static InstructionKind,
    /// Random variables, expressions over them, numbers …
    pub inputs: Vec<AttrValue>,
    /// Constants.
    pub attrs: Vec<AttrValue>,
    /// Random variables for its results.
    pub outputs: Vec<Rv>,
}
