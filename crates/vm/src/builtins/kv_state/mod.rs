//! What a language model keeps of its sequences between calls (`vm.builtin.kv_state_*`): keys and values of all tokens
//! ([`paged`]), or states of a fixed size with a history ([`rnn_state`]).
//!
//! Sequences have numbers. A pass over a batch of them stands between `begin_forward` and `end_forward`; sequences are added, forked,
//! shortened and removed between passes.

mod batch;
mod create;
mod paged;
mod rnn_state;
mod tokens;
mod tree;

use relaxide_ffi::{Any, Error, ErrorKind, Ref, Shape};

use super::{Args, Builtin};
use paged::PagedCache;
use rnn_state::RnnState;

pub(super) const TABLE: &[Builtin] = &[
    Builtin::plain("vm.builtin.kv_state_clear", clear),
    Builtin::plain("vm.builtin.kv_state_add_sequence", add_sequence),
    Builtin::plain("vm.builtin.kv_state_remove_sequence", remove_sequence),
    Builtin::plain("vm.builtin.kv_state_fork_sequence", fork_sequence),
    Builtin::plain("vm.builtin.kv_state_popn", pop),
    Builtin::plain("vm.builtin.kv_state_begin_forward", begin_forward),
    Builtin::plain("vm.builtin.kv_state_end_forward", end_forward),
    Builtin::plain("vm.builtin.rnn_state_create", rnn_state::create),
    Builtin::plain("vm.builtin.rnn_state_get", rnn_state::get),
    Builtin::plain("vm.builtin.rnn_state_set", rnn_state::set),
    Builtin::plain("vm.builtin.rnn_state_debug_get", rnn_state::debug_get),
    Builtin::plain("vm.builtin.paged_attention_kv_cache_create", create::create),
    Builtin::plain("vm.builtin.attention_kv_cache_attention_with_fused_qkv", paged::with_fused_qkv),
    Builtin::plain("vm.builtin.attention_kv_cache_attention_with_shared_kv", paged::with_shared_kv),
    Builtin::plain("vm.builtin.attention_kv_cache_self_attention", paged::self_attention),
    Builtin::plain("vm.builtin.attention_kv_cache_cross_attention", no_compressed_keys),
    Builtin::plain("vm.builtin.attention_kv_cache_append_mla_kv", no_compressed_keys),
    Builtin::plain("vm.builtin.attention_kv_cache_merge_attn_output_inplace", paged::merge),
    Builtin::plain("vm.builtin.attention_kv_cache_get_query_positions", paged::query_positions),
    Builtin::plain("vm.builtin.attention_kv_cache_debug_get_kv", paged::debug_get_kv),
    Builtin::plain("vm.builtin.attention_kv_cache_enable_sliding_window_for_seq", paged::enable_window),
    Builtin::plain("vm.builtin.attention_kv_cache_commit_accepted_token_tree_nodes", paged::commit),
    Builtin::plain("vm.builtin.attention_kv_cache_empty", paged::is_empty),
    Builtin::plain("vm.builtin.attention_kv_cache_get_num_available_pages", paged::available_pages),
    Builtin::plain("vm.builtin.attention_kv_cache_get_total_sequence_length", paged::total_length),
    Builtin::plain("vm.builtin.attention_kv_cache_get_sequence_length", paged::sequence_length),
];

/// What is done to either kind.
trait State {
    /// Forgets all sequences.
    fn clear(&self) -> Result<(), Error>;
    /// Adds a sequence.
    fn add(&self, id: i64) -> Result<(), Error>;
    /// Forgets one.
    fn remove(&self, id: i64) -> Result<(), Error>;
    /// Adds one that begins as another does, up to a position; -1: all of it.
    fn fork(&self, parent: i64, child: i64, position: i64) -> Result<(), Error>;
    /// Takes back the last tokens of a sequence.
    fn pop(&self, id: i64, count: i64) -> Result<(), Error>;
    /// Begins a pass that appends so many tokens to each of some sequences; `parents` makes trees of them.
    fn begin(&self, ids: &[i64], lengths: &[i64], parents: Option<&[i64]>) -> Result<(), Error>;
    /// Ends it.
    fn end(&self) -> Result<(), Error>;
}

/// Does something to the first argument.
fn with(args: &Args<'_, '_>, work: impl FnOnce(&dyn State) -> Result<(), Error>) -> Result<Any, Error> {
    let given = args.view(0, "state")?;
    match given.to::<Ref<PagedCache>>() {
        Ok(cache) => work(&*cache)?,
        Err(_) => match given.to::<Ref<RnnState>>() {
            Ok(state) => work(&*state)?,
            Err(_) => {
                let message = format_args!("argument 0 (state) is neither a KV cache nor an RNN state");
                return Err(args.error(ErrorKind::TypeError, message));
            }
        },
    }
    Ok(Any::none())
}

fn clear(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(1, 1)?;
    with(args, |state| state.clear())
}

fn add_sequence(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(2, 2)?;
    with(args, |state| state.add(args.get(1, "seq_id")?))
}

fn remove_sequence(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(2, 2)?;
    with(args, |state| state.remove(args.get(1, "seq_id")?))
}

fn fork_sequence(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(3, 4)?;
    let position = if args.len() > 3 { args.get(3, "fork_pos")? } else { -1 };
    with(args, |state| state.fork(args.get(1, "parent_seq_id")?, args.get(2, "child_seq_id")?, position))
}

fn pop(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(3, 3)?;
    with(args, |state| state.pop(args.get(1, "seq_id")?, args.get(2, "n")?))
}

fn begin_forward(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(3, 4)?;
    let (ids, lengths): (Shape, Shape) = (args.get(1, "seq_ids")?, args.get(2, "append_lengths")?);
    let parents: Option<Shape> = match args.len() {
        4 if !args.view(3, "token_tree_parent_ptr")?.is_none() => Some(args.get(3, "token_tree_parent_ptr")?),
        _ => None,
    };
    with(args, |state| state.begin(ids.as_slice(), lengths.as_slice(), parents.as_ref().map(Shape::as_slice)))
}

fn end_forward(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(1, 1)?;
    with(args, |state| state.end())
}

fn no_compressed_keys(args: &Args<'_, '_>) -> Result<Any, Error> {
    Err(args.error(ErrorKind::ValueError, format_args!("caches of compressed keys (MLA) are not supported")))
}
