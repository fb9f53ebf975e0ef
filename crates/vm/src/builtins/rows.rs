//! [`Rows`]: what the iterations of a loop give, row by row, and the tensor that it makes.
//!
//! A loop that gives a small row in each of 10⁵ iterations must not keep 10⁵ tensors: each has a header, an allocation of its own and
//! a place in a list, which is many times the row. So rows are copied into pieces of memory as they come, and their tensor is
//! filled from those, each of which is given back when it was read. What is no tensor is kept as the value that it is.
//!
//! Rows have one shape and one type, which the first of them says. They are joined once.

use std::sync::{Mutex, MutexGuard, PoisonError};

use relaxide_ffi::{Any, AnyView, DataType, Device, Error, ErrorKind, Object, Ref, Shape, Tensor};
use relaxide_runtime::device;

use super::{Args, Builtin};

pub(super) const TABLE: &[Builtin] = &[
    Builtin::plain("vm.builtin.rows_new", rows_new),
    Builtin::plain("vm.builtin.rows_append", rows_append),
    Builtin::plain("vm.builtin.rows_stack", rows_stack),
];

/// Bytes of the first piece, and most bytes of any that holds more than a row.
const PIECES: (usize, usize) = (1 << 10, 1 << 20);

/// Rows of a loop.
#[derive(Object)]
#[object(key = "relaxide.vm.Rows")]
pub struct Rows {
    #[field(hidden)]
    kept: Mutex<RowStorage>,
}

/// How rows are kept.
enum RowStorage {
    /// There are none yet.
    Empty,
    Tensors(Pieces),
    Values(Vec<Any>),
    /// They are one tensor now.
    Joined,
}

/// Rows of tensors, one after the other.
struct Pieces {
    shape: Vec<i64>,
    dtype: DataType,
    device: Device,
    count: usize,
    /// Bytes of a row.
    size: usize,
    /// Each holds whole rows.
    pieces: Vec<Vec<u8>>,
}

impl Pieces {
    fn of(first: &Tensor) -> Pieces {
        Pieces {
            shape: first.shape().to_vec(),
            dtype: first.dtype(),
            device: first.device(),
            count: 0,
            size: first.byte_size(),
            pieces: Vec::new(),
        }
    }

    fn add(&mut self, row: &Tensor) -> Result<(), Error> {
        if row.shape() != self.shape || row.dtype() != self.dtype {
            let (i, dtype, shape) = (self.count, self.dtype, &self.shape);
            let message = format!("row {i} is {row:?}, and those before it are {dtype} of shape {shape:?}");
            return Err(Error::new(ErrorKind::ValueError, message));
        }
        let room = self.pieces.last().is_some_and(|piece| piece.capacity() - piece.len() >= self.size);
        if !room {
            let wanted = self.pieces.last().map_or(PIECES.0, |piece| piece.capacity().saturating_mul(2)).min(PIECES.1);
            let mut piece = Vec::new();
            piece.try_reserve_exact(wanted.max(self.size)).map_err(|e| {
                Error::new(ErrorKind::MemoryError, format!("{} rows of {} bytes: {e}", self.count + 1, self.size))
            })?;
            self.pieces.push(piece);
        }
        if let Some(piece) = self.pieces.last_mut() {
            match row.as_bytes() {
                Ok(bytes) => piece.extend_from_slice(bytes),
                Err(_) => piece.extend(device::on_host(row)?.to_bytes()?),
            }
        }
        self.count += 1;
        Ok(())
    }

    /// The tensor of all rows, along a new first dimension.
    fn joined(mut self, from_end: bool) -> Result<Tensor, Error> {
        let dims: Vec<i64> = std::iter::once(self.count as i64).chain(self.shape).collect();
        let stacked = Tensor::zeros(&dims, self.dtype)?;
        if from_end {
            self.pieces.reverse();
        }
        let mut offset = 0;
        for piece in self.pieces {
            let bytes = if from_end && self.size > 0 {
                piece.chunks_exact(self.size).rev().flatten().copied().collect()
            } else {
                piece
            };
            if !bytes.is_empty() {
                stacked.view(&[bytes.len() as i64], DataType::uint(8), offset)?.copy_from_bytes(&bytes)?;
            }
            offset += bytes.len();
        }
        if self.device.device_type == Device::CPU { Ok(stacked) } else { device::to_device(&stacked, self.device) }
    }
}

impl Rows {
    fn kept(&self) -> MutexGuard<'_, RowStorage> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, value: AnyView<'_>) -> Result<(), Error> {
        let mut kept = self.kept();
        let row = value.as_tensor().filter(|tensor| !tensor.dtype().is_packed());
        if let (RowStorage::Empty, Some(row)) = (&*kept, row) {
            *kept = RowStorage::Tensors(Pieces::of(row));
        }
        match (&mut *kept, row) {
            (RowStorage::Tensors(pieces), Some(row)) => pieces.add(row),
            (RowStorage::Tensors(_), None) => {
                let message = format!("a row is {}, and those before it are tensors", value.type_key());
                Err(Error::new(ErrorKind::TypeError, message))
            }
            (RowStorage::Values(values), _) => {
                values.push(value.to_owned());
                Ok(())
            }
            (RowStorage::Joined, _) => Err(joined_before()),
            (RowStorage::Empty, _) => {
                *kept = RowStorage::Values(vec![value.to_owned()]);
                Ok(())
            }
        }
    }

    /// The values, which are no tensors; none where there are no rows.
    pub(super) fn take_values(&self) -> Result<Vec<Any>, Error> {
        match std::mem::replace(&mut *self.kept(), RowStorage::Joined) {
            RowStorage::Empty => Ok(Vec::new()),
            RowStorage::Values(values) => Ok(values),
            RowStorage::Tensors(_) => Err(Error::new(ErrorKind::TypeError, "the rows are tensors of numbers")),
            RowStorage::Joined => Err(joined_before()),
        }
    }
}

#[cold]
fn joined_before() -> Error {
    Error::new(ErrorKind::ValueError, "the rows have been joined before")
}

/// An argument that is such rows.
pub(super) fn rows_of(args: &Args<'_, '_>, index: usize) -> Result<Ref<Rows>, Error> {
    let view = args.view(index, "rows")?;
    let found = view.downcast_ref::<Rows>().cloned();
    found.ok_or_else(|| args.error(ErrorKind::TypeError, format_args!("{} are no rows of a loop", view.type_key())))
}

/// `()`: no rows.
fn rows_new(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(0, 0)?;
    Ok(Ref::new(Rows { kept: Mutex::new(RowStorage::Empty) }).into())
}

/// `(rows, value)`: adds a row at the end.
fn rows_append(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(2, 2)?;
    let view = args.view(0, "rows")?;
    match view.downcast_ref::<Rows>() {
        Some(rows) => rows.add(args.view(1, "value")?)?,
        None => return rows_of(args, 0).map(|_| Any::none()),
    }
    Ok(Any::none())
}

/// `(rows, dtype, shape, from the end)`: one tensor of the rows, along a new first dimension. Where there are none, they would
/// have `shape`. The rows are gone then.
fn rows_stack(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(4, 4)?;
    let rows = rows_of(args, 0)?;
    let dtype: DataType = args.get(1, "dtype")?;
    let shape: Shape = args.get(2, "shape")?;
    let from_end = args.get::<bool>(3, "from the end")?;
    let kept = std::mem::replace(&mut *rows.kept(), RowStorage::Joined);
    match kept {
        RowStorage::Empty => {
            let dims: Vec<i64> = std::iter::once(0).chain(shape.iter().copied()).collect();
            Tensor::zeros(&dims, dtype).map(Any::from)
        }
        RowStorage::Tensors(pieces) if pieces.dtype == dtype => pieces.joined(from_end).map(Any::from),
        RowStorage::Tensors(pieces) => {
            let message = format_args!("the rows are {}, where {dtype} is expected", pieces.dtype);
            Err(args.error(ErrorKind::ValueError, message))
        }
        RowStorage::Values(values) => {
            let kind = values.first().map_or_else(|| "nothing".into(), |value| value.type_key().to_owned());
            let message = format_args!("rows of {dtype} ({kind}) share bytes or are no tensors, and cannot be joined");
            Err(args.error(ErrorKind::TypeError, message))
        }
        RowStorage::Joined => Err(joined_before()),
    }
}
