//! A cache of keys and values that many sequences share, and attention over it (`vm.builtin.attention_kv_cache_*`).
//!
//! What a model does with it, for each batch of sequences:
//!
//! ```text
//! kv_state_begin_forward(cache, sequences, how many tokens each gets)    finds places and positions
//!     attention_with_fused_qkv(cache, layer, …)                          for each layer: appends, then attends
//! kv_state_end_forward(cache)                                            lets windows slide
//! ```
//!
//! All arithmetic is in kernels that come with the model ([`Kernels`]); here is what they are called with. A kernel is called while
//! nothing is locked, so that one of the caller's own may use the cache. Tensors are `(length, heads, head size)`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use relaxide_ffi::{Any, AnyView, Device, Error, ErrorKind, Function, Object, Ref, Tensor};
use relaxide_runtime::device;

use super::batch::Batch;
use super::tokens::{PlaceError, Places};
use super::{Args, State};

/// The kind of a layer over whose keys a window slides.
const SLIDING: i64 = 3;
/// When positions get into queries and keys: before keys are kept, or each time they are attended to.
pub(super) const NORMAL: i64 = 1;
const INLINE: i64 = 2;

/// The kernels of a cache, by what they do.
pub(super) struct Kernels {
    pub append: Option<Function>,
    pub ragged: Option<Function>,
    pub prefill: Option<Function>,
    pub prefill_sliding: Option<Function>,
    pub tree: Option<Function>,
    pub merge: Option<Function>,
    pub split_rotary: Option<Function>,
    pub debug_get_kv: Option<Function>,
}

/// How positions get into queries and keys.
pub(super) struct Rope {
    pub mode: i64,
    pub scale: f64,
    pub theta: f64,
    /// Factors of frequencies.
    pub factors: Option<Tensor>,
}

/// A cache as a program's value.
#[derive(Object)]
#[object(key = "relax.vm.PagedAttentionKVCache")]
pub(super) struct PagedCache {
    #[field(hidden)]
    pub shape: Shape,
    #[field(hidden)]
    pub rope: Rope,
    #[field(hidden)]
    pub kernels: Kernels,
    /// Keys and values of each layer: `[pages, 2, heads, tokens of a page, head size]`.
    #[field(hidden)]
    pub pages: Vec<Tensor>,
    #[field(hidden)]
    pub state: Mutex<Passes>,
}

/// What a cache is for.
pub(super) struct Shape {
    pub first_layer: i64,
    /// What each layer's attention is like.
    pub kinds: Vec<i64>,
    pub heads: i64,
    pub kv_heads: i64,
    pub head_size: i64,
    pub page_size: i64,
    /// Whether windows may slide.
    pub slides: bool,
    pub like: Tensor,
}

/// The sequences, and the pass that is being computed.
pub(super) struct Passes {
    places: Places,
    ids: Vec<i64>,
    batch: Option<Arc<Batch>>,
}

impl Passes {
    pub fn new(places: Places) -> Passes {
        Passes { places, ids: Vec::new(), batch: None }
    }
}

fn refused(error: PlaceError) -> Error {
    Error::new(ErrorKind::ValueError, error.to_string())
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::ValueError, message)
}

impl State for PagedCache {
    fn clear(&self) -> Result<(), Error> {
        let mut passes = self.passes();
        passes.places.clear();
        (passes.ids, passes.batch) = (Vec::new(), None);
        Ok(())
    }

    fn add(&self, id: i64) -> Result<(), Error> {
        self.passes().places.add(id).map_err(refused)
    }

    fn remove(&self, id: i64) -> Result<(), Error> {
        self.passes().places.remove(id).map_err(refused)
    }

    fn fork(&self, parent: i64, child: i64, position: i64) -> Result<(), Error> {
        self.passes().places.fork(parent, child, position).map_err(refused)
    }

    fn pop(&self, id: i64, count: i64) -> Result<(), Error> {
        self.passes().places.pop(id, count).map_err(refused)
    }

    fn begin(&self, ids: &[i64], lengths: &[i64], parents: Option<&[i64]>) -> Result<(), Error> {
        if parents.is_some() && self.rope.mode == INLINE {
            return Err(invalid(
                "trees of tokens need the RoPE mode NORMAL or NONE: keys of one depth have one position",
            ));
        }
        let mut passes = self.passes();
        passes.places.begin(ids, lengths, parents).map_err(refused)?;
        let sequences = ids.iter().map(|id| passes.places.get(*id)).collect::<Result<Vec<_>, _>>().map_err(refused)?;
        let batch = Batch::new(&sequences, lengths, parents.is_some(), self.device())?;
        (passes.ids, passes.batch) = (ids.to_vec(), Some(Arc::new(batch)));
        Ok(())
    }

    fn end(&self) -> Result<(), Error> {
        let mut passes = self.passes();
        let ids = std::mem::take(&mut passes.ids);
        passes.places.end(&ids);
        passes.batch = None;
        Ok(())
    }
}

impl PagedCache {
    fn passes(&self) -> MutexGuard<'_, Passes> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn device(&self) -> Device {
        self.shape.like.device()
    }

    fn batch(&self) -> Result<Arc<Batch>, Error> {
        let batch = self.passes().batch.clone();
        batch.ok_or_else(|| invalid("attention is computed between begin_forward and end_forward"))
    }

    fn pages_of(&self, layer: i64) -> Result<&Tensor, Error> {
        let (first, count) = (self.shape.first_layer, self.pages.len() as i64);
        let at = layer.checked_sub(first).and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| self.pages.get(at)).ok_or_else(|| {
            invalid(format!("the KV cache has the layers {first} to {}, not {layer}", first + count - 1))
        })
    }

    /// Queries, keys and values of this pass.
    fn parts(&self, rows: i64) -> Result<[Tensor; 3], Error> {
        let part = |heads: i64| {
            device::empty_tensor(&[rows, heads, self.shape.head_size], self.shape.like.dtype(), self.device())
        };
        Ok([part(self.shape.heads)?, part(self.shape.kv_heads)?, part(self.shape.kv_heads)?])
    }

    /// Queries, keys and values of a fused tensor, with positions.
    fn split(&self, fused: AnyView<'_>, batch: &Batch) -> Result<[Tensor; 3], Error> {
        let parts = self.parts(batch.rows)?;
        let [q, k, v] = &parts;
        let last = match &self.rope.factors {
            Some(factors) => Any::from(factors.clone()),
            None => Any::from(i64::from(self.rope.mode == NORMAL)),
        };
        let args = [fused, (&batch.positions).into(), q.into(), k.into(), v.into(), last.as_view()];
        run(&self.kernels.split_rotary, "split_rotary", &args)?;
        Ok(parts)
    }

    fn attend(&self, batch: &Batch, layer: i64, factor: f64, q: AnyView<'_>, output: AnyView<'_>) -> Result<(), Error> {
        let kind = usize::try_from(layer).ok().and_then(|layer| self.shape.kinds.get(layer));
        let slides =
            *kind.ok_or_else(|| invalid(format!("the KV cache knows no kind of the layer {layer}")))? == SLIDING;
        let sums =
            device::empty_tensor(&[batch.rows, self.shape.heads], relaxide_ffi::DataType::float(32), self.device())?;
        let pages = self.pages_of(layer)?;
        let mut args: Vec<AnyView<'_>> =
            vec![q, (&batch.query_indptr).into(), pages.into(), (&batch.place_indptr).into()];
        args.extend([(&batch.places).into(), (&batch.positions).into(), output, (&sums).into()]);
        match &batch.tree {
            Some(_) if slides => {
                let message = format!("the layer {layer} has a sliding window, which trees of tokens do not go with");
                Err(invalid(message))
            }
            Some(tree) => {
                args.extend(self.how(factor));
                args.extend([AnyView::from(&tree.indptr), AnyView::from(&tree.order)]);
                run(&self.kernels.tree, "tree", &args)
            }
            None => {
                args.push(AnyView::from(1i64));
                args.extend(self.how(factor));
                match slides {
                    true => run(&self.kernels.prefill_sliding, "prefill_sliding", &args),
                    false => run(&self.kernels.prefill, "prefill", &args),
                }
            }
        }
    }

    /// How scores are computed.
    fn how(&self, factor: f64) -> [AnyView<'static>; 4] {
        let inline = i64::from(self.rope.mode == INLINE);
        [inline.into(), self.rope.scale.into(), self.rope.theta.into(), factor.into()]
    }
}

/// Calls a kernel.
fn run(kernel: &Option<Function>, name: &str, args: &[AnyView<'_>]) -> Result<(), Error> {
    let kernel =
        kernel.as_ref().ok_or_else(|| invalid(format!("the KV cache was made without the kernel `{name}`")))?;
    kernel.call(args).map(drop)
}

fn cache(args: &Args<'_, '_>) -> Result<Ref<PagedCache>, Error> {
    args.get(0, "cache")
}

/// `(cache, layer, factor of scores, qkv, output)`: appends the keys and values of a layer, and attends to all of the sequence.
pub(super) fn with_fused_qkv(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(5, 5)?;
    let cache = cache(args)?;
    let (layer, factor): (i64, f64) = (args.get(1, "layer_id")?, args.get(2, "sm_scale")?);
    let (qkv, batch): (Tensor, _) = (args.get(3, "qkv_data")?, cache.batch()?);
    let pages = cache.pages_of(layer)?;
    if qkv.shape().first() != Some(&batch.rows) {
        let rows = qkv.shape().first().copied().unwrap_or(1);
        let message = format_args!("qkv has {rows} tokens, but {} were announced to begin_forward", batch.rows);
        return Err(args.error(ErrorKind::ValueError, message));
    }
    let [q, k, v] = cache.split((&qkv).into(), &batch)?;
    run(&cache.kernels.append, "append", &[pages.into(), (&k).into(), (&v).into(), (&batch.new).into()])?;
    cache.attend(&batch, layer, factor, (&q).into(), args.view(4, "o_data")?)?;
    Ok(Any::none())
}

/// `(cache, layer, factor of scores, q, k, v, output)`: attends to the keys and values of a layer that has been computed in this
/// pass. Positions are put in as for that layer.
pub(super) fn with_shared_kv(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(7, 7)?;
    let cache = cache(args)?;
    let (layer, factor): (i64, f64) = (args.get(1, "layer_id")?, args.get(2, "sm_scale")?);
    let (q, batch): (Tensor, _) = (args.get(3, "q_data")?, cache.batch()?);
    let q = match cache.rope.mode {
        NORMAL => {
            let fused = padded(&q, cache.shape.heads + 2 * cache.shape.kv_heads, cache.device())?;
            let [q, ..] = cache.split((&fused).into(), &batch)?;
            q
        }
        _ => q,
    };
    cache.attend(&batch, layer, factor, (&q).into(), args.view(6, "o_data")?)?;
    Ok(Any::none())
}

/// Queries with heads of zeros behind them.
fn padded(q: &Tensor, heads: i64, place: Device) -> Result<Tensor, Error> {
    let [rows, own, size] = *q.shape() else {
        return Err(invalid(format!("queries have {} dimensions, not 3", q.ndim())));
    };
    let bytes = device::on_host(q)?.to_bytes()?;
    let row = bytes.len().checked_div(usize::try_from(rows).unwrap_or(0)).unwrap_or(0);
    let whole = row.checked_div(usize::try_from(own).unwrap_or(0)).unwrap_or(0) * usize::try_from(heads).unwrap_or(0);
    let mut fused = Vec::with_capacity(whole * usize::try_from(rows).unwrap_or(0));
    for part in bytes.chunks(row.max(1)) {
        let end = fused.len() + whole;
        fused.extend_from_slice(part);
        fused.resize(end, 0);
    }
    device::to_device(&Tensor::from_bytes(&fused, &[rows, heads, size], q.dtype())?, place)
}

/// `(cache, layer, factor of scores, q, k, v, output, logarithms of sums)`: attends to the tokens of this pass alone.
pub(super) fn self_attention(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(8, 8)?;
    let cache = cache(args)?;
    let (factor, batch): (f64, _) = (args.get(2, "sm_scale")?, cache.batch()?);
    let indptr = AnyView::from(&batch.query_indptr);
    let mut with = vec![args.view(3, "q_data")?, indptr, args.view(4, "k_data")?, args.view(5, "v_data")?, indptr];
    with.extend([AnyView::from(&batch.positions), AnyView::from(&batch.starts)]);
    with.extend([args.view(6, "o_data")?, args.view(7, "lse_data")?, AnyView::from(1i64)]);
    with.extend(cache.how(factor));
    run(&cache.kernels.ragged, "ragged", &with)?;
    Ok(Any::none())
}

/// `(cache, output, sums, other output, other sums)`: two outputs for the same queries as one, in the place of the first.
pub(super) fn merge(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(5, 5)?;
    run(&cache(args)?.kernels.merge, "merge", args.rest(1))?;
    let pair = [args.get::<Tensor>(1, "o_self_attn")?, args.get::<Tensor>(2, "lse_self_attn")?];
    Ok(relaxide_ffi::Array::from_vec(pair.map(Any::from).to_vec()).into())
}

/// `(cache)`: the position of each token of this pass.
pub(super) fn query_positions(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(1, 1)?;
    Ok(cache(args)?.batch()?.positions.clone().into())
}

/// `(cache, sequence, start, end, keys, values)`: the keys and values of a sequence's tokens, those of all layers.
pub(super) fn debug_get_kv(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(6, 6)?;
    let cache = cache(args)?;
    let (id, start, end): (i64, i64, i64) =
        (args.get(1, "seq_id")?, args.get(2, "start_pos")?, args.get(3, "end_pos")?);
    let places = cache.passes().places.part(id, start, end).map_err(refused)?.to_vec();
    let at = super::batch::ints(&places, cache.device())?;
    for (layer, pages) in cache.pages.iter().enumerate() {
        let with =
            [pages.into(), (&at).into(), args.view(4, "k_data")?, args.view(5, "v_data")?, (layer as i64).into()];
        run(&cache.kernels.debug_get_kv, "debug_get_kv", &with)?;
    }
    Ok(Any::none())
}

/// `(cache, sequence, window, sink)`: lets a window slide over a sequence.
pub(super) fn enable_window(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(4, 4)?;
    let cache = cache(args)?;
    if !cache.shape.slides {
        return Err(invalid("The KV cache does not support sliding window."));
    }
    let (id, window, sink) =
        (args.get(1, "seq_id")?, args.get(2, "sliding_window_size")?, args.get(3, "attn_sink_size")?);
    cache.passes().places.enable_window(id, window, sink).map_err(refused)?;
    Ok(Any::none())
}

/// `(cache, sequences, nodes)`: keeps the path to a node of each sequence's tree.
pub(super) fn commit(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(3, 3)?;
    let (ids, leaves): (relaxide_ffi::Shape, relaxide_ffi::Shape) =
        (args.get(1, "seq_ids")?, args.get(2, "leaf_indices")?);
    cache(args)?.passes().places.commit(ids.as_slice(), leaves.as_slice()).map_err(refused)?;
    Ok(Any::none())
}

/// `(cache)`: whether no token is kept.
pub(super) fn is_empty(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(1, 1)?;
    Ok(cache(args)?.passes().places.is_empty().into())
}

/// `(cache)`: how many pages are left.
pub(super) fn available_pages(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(1, 1)?;
    let cache = cache(args)?;
    let room = cache.passes().places.room() as i64;
    Ok((room / cache.shape.page_size).into())
}

/// `(cache)`: how many tokens all sequences have together.
pub(super) fn total_length(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(1, 1)?;
    Ok((cache(args)?.passes().places.total() as i64).into())
}

/// `(cache, sequence)`: how many tokens a sequence has.
pub(super) fn sequence_length(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(2, 2)?;
    let length = cache(args)?.passes().places.get(args.get(1, "seq_id")?).map_err(refused)?.places.len();
    Ok((length as i64).into())
}
