//! Caches of keys or values that grow with each call (`vm.builtin.attention_kv_cache_*`): rows one behind the other in one
//! tensor, which is replaced by one of twice the size when it is full.
//!
//! A view is of the cache's own memory: it shows the rows that were there when it was made, and later rows do not move them, but
//! rows that take the place of removed ones are written over them. Caches of several sequences are [`kv_state`](super::kv_state)'s.

use std::sync::{Mutex, PoisonError};

use relaxide_ffi::{Any, Array, Error, ErrorKind, Object, Ref, Shape, Tensor};
use relaxide_runtime::device;

use super::{Args, Builtin};

pub(super) const TABLE: &[Builtin] = &[
    Builtin::plain("vm.builtin.attention_kv_cache_create", create),
    Builtin::plain("vm.builtin.attention_kv_cache_append", append),
    Builtin::plain("vm.builtin.attention_kv_cache_update", update),
    Builtin::plain("vm.builtin.attention_kv_cache_view", view),
    Builtin::plain("vm.builtin.attention_kv_cache_array_popn", pop),
    Builtin::plain("vm.builtin.attention_kv_cache_array_clear", clear),
];

/// A cache as a program's value.
#[derive(Object)]
#[object(key = "relax.vm.AttentionKVCacheLegacy")]
struct KvCache {
    #[field(hidden)]
    rows: Mutex<Rows>,
}

/// The rows of a cache: the first `filled` of `data`.
struct Rows {
    data: Tensor,
    filled: usize,
}

/// How many rows a tensor has; none where it has no dimensions.
pub(super) fn rows_of(tensor: &Tensor) -> usize {
    tensor.shape().first().map_or(0, |rows| usize::try_from(*rows).unwrap_or(0))
}

impl Rows {
    /// The rows of `data` from one on, as a tensor of the same memory.
    fn part(&self, from: usize, count: usize) -> Result<Tensor, Error> {
        let row: usize = self.data.byte_size().checked_div(rows_of(&self.data)).unwrap_or(0);
        let mut shape = self.data.shape().to_vec();
        if let Some(rows) = shape.first_mut() {
            *rows = count as i64;
        }
        device::view_at(&self.data, &shape, self.data.dtype(), from * row)
    }

    /// Writes rows behind those that are there, in a larger tensor where they do not fit.
    fn push(&mut self, value: &Tensor) -> Result<(), Error> {
        let (count, room) = (rows_of(value), rows_of(&self.data));
        let needed = self.filled + count;
        if needed > room {
            let mut shape = self.data.shape().to_vec();
            if let Some(rows) = shape.first_mut() {
                *rows = needed.max(room.saturating_mul(2)) as i64;
            }
            let kept = self.part(0, self.filled)?;
            self.data = device::empty_tensor(&shape, self.data.dtype(), self.data.device())?;
            device::copy_into(&kept, &self.part(0, self.filled)?)?;
        }
        device::copy_into(value, &self.part(self.filled, count)?)?;
        self.filled = needed;
        Ok(())
    }
}

impl KvCache {
    fn with<T>(&self, work: impl FnOnce(&mut Rows) -> Result<T, Error>) -> Result<T, Error> {
        work(&mut self.rows.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A tensor whose rows are like those of the cache.
fn rows_like(args: &Args<'_, '_>, index: usize, name: &str, data: &Tensor) -> Result<Tensor, Error> {
    let value: Tensor = args.get(index, name)?;
    let rest = |tensor: &Tensor| tensor.shape().get(1..).map(<[i64]>::to_vec);
    if value.dtype() != data.dtype() || rest(&value) != rest(data) {
        let message = format_args!("rows of {value:?} do not belong into a cache of {data:?}");
        return Err(args.error(ErrorKind::ValueError, message));
    }
    Ok(value)
}

/// `(first rows, shape, how many of them count)`: a cache with room for `shape`.
fn create(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(3, 3)?;
    let first: Tensor = args.get(0, "init_data")?;
    let shape: Shape = args.get(1, "reserve_shape")?;
    let filled = args.index(2, "init_fill_count")?;
    let data = device::empty_tensor(&shape, first.dtype(), first.device())?;
    if filled > rows_of(&data).min(rows_of(&first)) || shape.is_empty() {
        let message = format_args!("{filled} rows of {first:?} do not fit into {:?}", shape.as_slice());
        return Err(args.error(ErrorKind::ValueError, message));
    }
    let mut rows = Rows { data, filled: 0 };
    if filled > 0 {
        let first = rows_like(args, 0, "init_data", &rows.data)?;
        let given = Rows { data: first, filled };
        rows.push(&given.part(0, filled)?)?;
    }
    Ok(Ref::new(KvCache { rows: Mutex::new(rows) }).into())
}

/// `(cache, rows)`: the cache with rows added at the end.
fn append(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(2, 2)?;
    let cache: Ref<KvCache> = args.get(0, "cache")?;
    cache.with(|rows| {
        let value = rows_like(args, 1, "value", &rows.data)?;
        rows.push(&value)
    })?;
    Ok(cache.into())
}

/// `(cache, rows)`: the cache with these rows alone.
fn update(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(2, 2)?;
    let cache: Ref<KvCache> = args.get(0, "cache")?;
    cache.with(|rows| {
        let value = rows_like(args, 1, "value", &rows.data)?;
        rows.filled = 0;
        rows.push(&value)
    })?;
    Ok(cache.into())
}

/// `(cache, shape)`: all rows as a tensor of that shape.
fn view(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(2, 2)?;
    let cache: Ref<KvCache> = args.get(0, "cache")?;
    let shape: Shape = args.get(1, "shape")?;
    cache.with(|rows| {
        let part = rows.part(0, rows.filled)?;
        if part.shape() != shape.as_slice() {
            let message = format_args!("the cache holds {part:?}, not {:?}", shape.as_slice());
            return Err(args.error(ErrorKind::ValueError, message));
        }
        Ok(part.into())
    })
}

/// The caches in an array.
fn caches(args: &Args<'_, '_>) -> Result<Vec<Ref<KvCache>>, Error> {
    let caches: Array = args.get(0, "caches")?;
    caches.iter().map(|cache| cache.as_view().to::<Ref<KvCache>>()).collect()
}

/// `(caches, count)`: removes the last rows of each.
fn pop(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(2, 2)?;
    let count = args.index(1, "count")?;
    for cache in caches(args)? {
        cache.with(|rows| {
            let message = format_args!("{count} rows cannot be removed from {}", rows.filled);
            rows.filled = rows.filled.checked_sub(count).ok_or_else(|| args.error(ErrorKind::ValueError, message))?;
            Ok(())
        })?;
    }
    Ok(Any::none())
}

/// `(caches)`: removes all rows of each.
fn clear(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(1, 1)?;
    for cache in caches(args)? {
        cache.with(|rows| {
            rows.filled = 0;
            Ok(())
        })?;
    }
    Ok(Any::none())
}
