//! Tensors that grow along one axis where they are.
//!
//! A decoder lengthens its caches of keys and values by a few rows at each call, gives them back, and is handed them at the next call.
//! [`append`] writes the new elements behind the old ones, in memory that has room for more, and [`part`] gives the longer tensor as a view
//! of that memory: one with gaps, wherever the axis is not the first. The old tensor is a view of the same memory and stays what it was,
//! since nothing is written where it has elements.
//!
//! Where a tensor is handed in that is no such view, whose memory is full, or behind which somebody else has appended, its elements are
//! copied to memory of their own first. Views are known by their address, so that they may come back by way of DLPack.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock, Weak};

use relaxide_ffi::fork::{self, Held};
use relaxide_ffi::{Device, Error, ErrorKind, Tensor, error_slot};

use super::{Buffer, Storage, bytes_of};
use crate::threads::{self, ParallelGroupEnv};

/// Whether memory that is taken has room for more than what is written to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spare {
    /// It has not, so that tensors in it have no gaps.
    None,
    /// It has half as much again.
    Half,
}

/// The least number of elements along the axis that [`Spare::Half`] leaves room for.
const LEAST_SPARE: i64 = 32;

/// Memory that tensors grow in.
struct Room {
    /// All of it, compact.
    memory: Tensor,
    axis: usize,
    /// How many elements along the axis some view has.
    used: AtomicI64,
}

/// The rooms that are alive, by their addresses.
static ROOMS: LazyLock<RwLock<HashMap<usize, Weak<Room>>>> = LazyLock::new(RwLock::default);

/// Holds the table across a fork.
pub(crate) fn hold() -> Option<Held> {
    fork::hold_table(&ROOMS)
}

impl Drop for Room {
    fn drop(&mut self) {
        // The memory is still taken, so the address is not another room's yet.
        ROOMS.write().unwrap_or_else(PoisonError::into_inner).remove(&(self.memory.data_ptr() as usize));
    }
}

impl Room {
    /// A room with `used` elements along the axis, entered into the table.
    fn enter(memory: Tensor, axis: usize, used: i64) -> Arc<Room> {
        let address = memory.data_ptr() as usize;
        let room = Arc::new(Room { memory, axis, used: AtomicI64::new(used) });
        ROOMS.write().unwrap_or_else(PoisonError::into_inner).insert(address, Arc::downgrade(&room));
        room
    }

    /// The room whose first elements along its axis a tensor is.
    fn of(tensor: &Tensor) -> Option<Arc<Room>> {
        if tensor.device().device_type != Device::CPU || tensor.numel() == 0 {
            return None;
        }
        let rooms = ROOMS.read().unwrap_or_else(PoisonError::into_inner);
        let room = rooms.get(&(tensor.data_ptr() as usize)).and_then(Weak::upgrade)?;
        let memory = &room.memory;
        let is_alike = (memory.ndim(), memory.dtype()) == (tensor.ndim(), tensor.dtype());
        let is_part = is_alike
            && (0..memory.ndim()).all(|i| {
                let (dim, whole) = (tensor.shape()[i], memory.shape()[i]);
                let fits = dim == whole || (i == room.axis && dim < whole);
                fits && (dim == 1 || tensor.strides()[i] == memory.strides()[i])
            });
        // Let go of the table first: the last handle of a room takes its lock.
        drop(rooms);
        is_part.then_some(room)
    }

    /// A view of the memory, which keeps the room.
    fn view(self: &Arc<Self>, shape: &[i64]) -> Result<Tensor, Error> {
        self.memory.strided_view(shape, self.memory.strides(), Arc::clone(self))
    }
}

/// Whether a tensor is a view of memory in which it may grow, as [`part`] gives them.
pub fn may_grow(tensor: &Tensor) -> bool {
    Room::of(tensor).is_some()
}

/// The memory of a tensor with the elements of `new` written behind its own along an axis. The memory is a compact tensor, whose axis may be longer than what is written; [`part`] gives the part that is.
///
/// `take` takes memory of the host.
pub fn append(
    past: &Tensor,
    new: &Tensor,
    axis: usize,
    spare: Spare,
    take: impl FnOnce(usize) -> Result<Buffer, Error>,
) -> Result<Tensor, Error> {
    let needed = length_of_both(past, new, axis)?;
    let room = if spare == Spare::Half { Room::of(past).filter(|room| room.axis == axis) } else { None };
    if let Some(room) = &room
        && needed <= room.memory.shape()[axis]
        && room.used.compare_exchange(past.shape()[axis], needed, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    {
        write_along(new, &room.memory, axis, past.shape()[axis])?;
        return room.view(room.memory.shape());
    }
    let mut shape = past.shape().to_vec();
    shape[axis] = match spare {
        Spare::None => needed,
        Spare::Half => needed.saturating_add((needed / 2).max(LEAST_SPARE)),
    };
    let bytes = bytes_of(&shape, past.dtype())?;
    let memory = Storage::tensor(&Storage::new(take(bytes)?), 0, &shape, past.dtype())?;
    write_along(past, &memory, axis, 0)?;
    write_along(new, &memory, axis, past.shape()[axis])?;
    match spare {
        Spare::None => Ok(memory),
        Spare::Half => Room::enter(memory, axis, needed).view(&shape),
    }
}

/// The part of what [`append`] gave that has elements.
pub fn part(memory: &Tensor, shape: &[i64]) -> Result<Tensor, Error> {
    match Room::of(memory) {
        Some(room) => room.view(shape),
        None => memory.reshape(shape),
    }
}

/// How long two tensors are behind each other.
fn length_of_both(past: &Tensor, new: &Tensor, axis: usize) -> Result<i64, Error> {
    let rest = |tensor: &Tensor| {
        let dims = tensor.shape().iter().enumerate().filter(|(i, _)| *i != axis);
        dims.map(|(_, dim)| *dim).collect::<Vec<_>>()
    };
    let is_host = |tensor: &Tensor| tensor.device().device_type == Device::CPU;
    let fits = axis < past.ndim() && past.dtype() == new.dtype() && rest(past) == rest(new);
    if !fits || past.ndim() != new.ndim() || !is_host(past) || !is_host(new) || past.dtype().is_packed() {
        let message = format!(
            "{new:?} cannot be appended to {past:?} along axis {axis}: both must be in the host's memory, of one type, and equal in \
             all other dimensions"
        );
        return Err(Error::new(ErrorKind::ValueError, message));
    }
    past.shape()[axis].checked_add(new.shape()[axis]).ok_or_else(|| {
        Error::new(ErrorKind::ValueError, format!("{past:?} and {new:?} together are longer than a tensor can be"))
    })
}

/// Writes the elements of `from` into the part of `to` that begins at `begin` along an axis. Both are in the host's memory, alike but for the
/// axis, `to` is compact and long enough, and nobody uses that part of it meanwhile.
fn write_along(from: &Tensor, to: &Tensor, axis: usize, begin: i64) -> Result<(), Error> {
    if from.numel() == 0 {
        return Ok(());
    }
    let gathered;
    let from = match from.outer_dims() <= axis {
        true => from,
        false => {
            gathered = Tensor::from_bytes(&from.to_bytes()?, from.shape(), from.dtype())?;
            &gathered
        }
    };
    let size = |dims: &[i64]| dims.iter().product::<i64>() as usize * from.dtype().bytes();
    let place = to.data_ptr().wrapping_add(begin as usize * size(&to.shape()[axis + 1..]));
    let (block, step, bytes) = (size(&from.shape()[axis..]), size(&to.shape()[axis..]), from.byte_size());
    let copy = Copy { from, axis, block, step, place, bytes };
    if bytes < PARALLEL_FROM {
        return copy.part(0..bytes);
    }
    // SAFETY: the task reads a `Copy`, which lives until all tasks are done, and each writes a part of its own.
    unsafe { threads::parallel_for(copy_share, (&raw const copy).cast_mut().cast(), bytes.div_ceil(PARALLEL_FROM)) }
}

/// Copies of fewer bytes are one thread's.
const PARALLEL_FROM: usize = 1 << 18;

/// Blocks of a tensor on their way to places that are `step` bytes apart.
struct Copy<'a> {
    from: &'a Tensor,
    axis: usize,
    block: usize,
    step: usize,
    /// Where the first block goes.
    place: *mut u8,
    bytes: usize,
}

impl Copy<'_> {
    /// Copies those bytes of all blocks behind each other.
    fn part(&self, bytes: Range<usize>) -> Result<(), Error> {
        for (number, block) in self.from.blocks(self.axis)?.enumerate() {
            let first = number * self.block;
            let (begin, end) = (bytes.start.max(first), bytes.end.min(first + self.block));
            if begin < end {
                let part = &block[begin - first..end - first];
                let place = self.place.wrapping_add(number * self.step + begin - first);
                // SAFETY: the target has as many elements at this place, which the caller of `write_along` vouches for. Both may be
                // parts of one memory, but not of the same elements; `copy` would take even those.
                unsafe { std::ptr::copy(part.as_ptr(), place, part.len()) };
            }
        }
        Ok(())
    }
}

/// A thread's share of a [`Copy`].
unsafe extern "C" fn copy_share(task: c_int, env: *mut ParallelGroupEnv, data: *mut c_void) -> c_int {
    // SAFETY: the launch passes an environment, and `write_along` a `Copy`.
    let (copy, tasks) = unsafe { (&*data.cast::<Copy<'_>>(), (*env).num_task as usize) };
    let share = copy.bytes.div_ceil(tasks.max(1));
    let begin = (task as usize).saturating_mul(share).min(copy.bytes);
    match copy.part(begin..(begin + share).min(copy.bytes)) {
        Ok(()) => 0,
        Err(error) => {
            error_slot::set(error);
            -1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{AllocatorKind, allocator};

    fn take(bytes: usize) -> Result<Buffer, Error> {
        Buffer::new(&allocator(Device::cpu(0), AllocatorKind::Naive)?, bytes)
    }

    fn rows(from: i32, shape: &[i64]) -> Tensor {
        let count = shape.iter().product::<i64>() as i32;
        Tensor::from_slice(&(from..from + count).collect::<Vec<_>>(), shape).unwrap()
    }

    /// The longer tensor, and whether it is in the same memory.
    fn longer(past: &Tensor, new: &Tensor, axis: usize) -> (Tensor, bool) {
        let memory = append(past, new, axis, Spare::Half, take).unwrap();
        let mut shape = past.shape().to_vec();
        shape[axis] += new.shape()[axis];
        let whole = part(&memory, &shape).unwrap();
        let is_same = whole.data_ptr() == past.data_ptr();
        (whole, is_same)
    }

    /// What `longer` is to give, element by element.
    fn both(past: &Tensor, new: &Tensor, axis: usize) -> Vec<i32> {
        let inner = |t: &Tensor| t.shape()[axis..].iter().product::<i64>().max(1) as usize;
        let (a, b) = (past.to_vec::<i32>().unwrap(), new.to_vec::<i32>().unwrap());
        let blocks = a.chunks(inner(past)).zip(b.chunks(inner(new)));
        blocks.flat_map(|(a, b)| a.iter().chain(b)).copied().collect()
    }

    #[test]
    fn what_comes_behind_is_written_where_it_is() {
        for axis in 0..3 {
            let mut now = rows(0, &[2, 3, 4]);
            let mut moved = 0;
            for step in 0..100 {
                let mut shape = [2, 3, 4];
                shape[axis] = 1 + step % 3;
                let new = rows(1000 * (step as i32 + 1), &shape);
                let (next, is_same) = longer(&now, &new, axis);
                assert_eq!(next.to_vec::<i32>().unwrap(), both(&now, &new, axis), "axis {axis}, step {step}");
                moved += i32::from(!is_same);
                now = next;
            }
            assert!(moved < 10, "axis {axis} was moved {moved} times");
            assert_eq!(now.is_contiguous(), axis == 0);
        }
    }

    #[test]
    fn large_tensors_are_copied_by_all_threads() {
        // Blocks that no thread's share begins with.
        let (past, new) = (rows(0, &[7, 30_011, 3]), rows(1, &[7, 1, 3]));
        for spare in [Spare::None, Spare::Half] {
            let memory = append(&past, &new, 1, spare, take).unwrap();
            assert_eq!(part(&memory, &[7, 30_012, 3]).unwrap().to_vec::<i32>().unwrap(), both(&past, &new, 1));
        }
    }

    #[test]
    fn who_appends_second_gets_memory_of_its_own() {
        let (first, _) = longer(&rows(0, &[2, 3]), &rows(10, &[2, 1]), 1);
        let (a, is_same) = longer(&first, &rows(100, &[2, 1]), 1);
        let (b, is_own) = longer(&first, &rows(200, &[2, 1]), 1);
        assert!(is_same && !is_own);
        assert_eq!(a.to_vec::<i32>().unwrap(), [0, 1, 2, 10, 100, 3, 4, 5, 11, 101]);
        assert_eq!(b.to_vec::<i32>().unwrap(), [0, 1, 2, 10, 200, 3, 4, 5, 11, 201]);
        assert_eq!(first.to_vec::<i32>().unwrap(), [0, 1, 2, 10, 3, 4, 5, 11]);
    }

    #[test]
    fn a_view_that_came_back_by_dlpack_is_known_and_another_is_not() {
        let (first, _) = longer(&rows(0, &[2, 3]), &rows(10, &[2, 1]), 1);
        let shorter = first.clone();
        assert!(may_grow(&shorter) && !may_grow(&rows(0, &[2, 3])));
        let compact = Tensor::from_bytes(&first.to_bytes().unwrap(), first.shape(), first.dtype()).unwrap();
        assert!(!longer(&compact, &rows(0, &[2, 1]), 1).1);
        // Its memory is gone with the last view of it.
        let address = first.data_ptr() as usize;
        drop((first, shorter));
        assert!(!ROOMS.read().unwrap().contains_key(&address));
    }

    #[test]
    fn without_room_to_spare_there_are_no_gaps() {
        let (past, new) = (rows(0, &[2, 3]), rows(10, &[2, 2]));
        let memory = append(&past, &new, 1, Spare::None, take).unwrap();
        assert!(memory.is_contiguous() && !may_grow(&memory));
        assert_eq!(part(&memory, &[2, 5]).unwrap().to_vec::<i32>().unwrap(), both(&past, &new, 1));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let past = rows(0, &[2, 3]);
        let floats = Tensor::from_slice(&[0.0_f32; 2], &[2, 1]).unwrap();
        for (new, axis) in [(&rows(0, &[3, 1]), 1), (&rows(0, &[2]), 1), (&rows(0, &[2, 1]), 2), (&floats, 1)] {
            let error = append(&past, new, axis, Spare::Half, take).unwrap_err();
            assert!(error.message().contains("cannot be appended"), "{error}");
        }
    }
}
