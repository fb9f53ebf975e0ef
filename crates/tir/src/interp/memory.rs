//! The memory of an execution: tensors of the caller and scratch.
//!
//! Elements of less than a byte share bytes, as DLPack has them, in the order in which numpy arrays become tensors: the first
//! has the upper bits.

use std::rc::Rc;

use relaxide_ffi::{DataType, Ref, Tensor};
use relaxide_ir::{Buffer, Var};

use super::scalar::Scalar;
use super::{ByNode, Interp, InterpError, Result};

/// Bytes behind one or several buffers.
#[derive(Debug)]
struct Storage {
    bytes: Vec<u8>,
    /// Which bits of each byte hold a value; `None` if all do.
    written: Option<Vec<u8>>,
    /// Where they came from and go back to.
    tensor: Option<Tensor>,
    /// Of memory that threads share: who used each byte last, from the first use on by threads that wait for each other.
    users: Option<Vec<Users>>,
}

/// Who used a byte last: in which phase, from one barrier to the next, and which thread.
#[derive(Clone, Copy, Debug, Default)]
struct Users {
    written: Option<(u64, u32)>,
    read: Option<(u64, u32)>,
    /// Whether several threads read it in that phase.
    read_by_many: bool,
}

/// An address: a byte of some storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pointer {
    storage: usize,
    byte: i64,
}

/// All memory, by the pointer variables of buffers: buffers with one pointer are views of the same bytes.
#[derive(Debug, Default)]
pub(super) struct Memory {
    storages: Vec<Storage>,
    pub by_pointer: ByNode<Var, Pointer>,
    /// The phase and the thread that runs, while threads of a block wait for each other.
    pub running: Option<(u64, u32)>,
    /// How many phases blocks have had, so that two blocks have none in common.
    pub phases: u64,
}

/// A buffer with its dimensions evaluated.
#[derive(Clone, Debug)]
pub(super) struct View {
    pointer: Pointer,
    buffer: Ref<Buffer>,
    dtype: DataType,
    pub shape: Vec<i64>,
    pub strides: Vec<i64>,
    pub offset: i64,
}

impl Memory {
    /// Takes over a tensor's contents; two tensors over the same memory share them.
    pub fn adopt(&mut self, buffer: &Ref<Buffer>, tensor: &Tensor) -> Result<()> {
        let same = |s: &Storage| {
            s.tensor.as_ref().is_some_and(|t| t.data_ptr() == tensor.data_ptr() && t.byte_size() == tensor.byte_size())
        };
        let at = match self.storages.iter().position(same) {
            Some(at) => at,
            None => {
                let bytes = tensor.to_bytes()?;
                let (written, users) = (None, Some(Vec::new()));
                self.storages.push(Storage { bytes, written, tensor: Some(tensor.clone()), users });
                self.storages.len() - 1
            }
        };
        self.by_pointer.insert(buffer.data.clone(), Pointer { storage: at, byte: 0 });
        Ok(())
    }

    /// Fresh, unwritten memory of that many bytes for a buffer.
    pub fn allocate(&mut self, buffer: &Ref<Buffer>, size: usize) {
        let users = (buffer.scope != "local").then(Vec::new);
        let fresh = Storage { bytes: vec![0; size], written: Some(vec![0; size]), tensor: None, users };
        // A buffer that is allocated again, as in a loop, gives up what it had.
        match self.by_pointer.get(&buffer.data).filter(|at| self.storages[at.storage].tensor.is_none()) {
            Some(at) => self.storages[at.storage] = fresh,
            None => {
                self.storages.push(fresh);
                self.by_pointer.insert(buffer.data.clone(), Pointer { storage: self.storages.len() - 1, byte: 0 });
            }
        }
    }

    /// How much memory there is, for [`Memory::release`].
    pub fn mark(&self) -> usize {
        self.storages.len()
    }

    /// Gives up what was allocated since a mark. No pointer to it may be left.
    pub fn release(&mut self, mark: usize) {
        self.storages.truncate(mark);
    }

    /// Notes that the thread at hand uses an element of memory that threads share.
    fn note_use(&mut self, view: &View, indices: &[i64], first_bit: usize, writes: bool) -> Result<()> {
        let storage = &mut self.storages[view.pointer.storage];
        let (Some(now), Some(users)) = (self.running, &mut storage.users) else {
            return Ok(());
        };
        users.resize(storage.bytes.len(), Users::default());
        let user = &mut users[first_bit / 8];
        let other =
            |then: Option<(u64, u32)>| then.filter(|then| then.0 == now.0 && then.1 != now.1).map(|then| then.1);
        let by_many = user.read_by_many && user.read.is_some_and(|read| read.0 == now.0);
        let reader = other(user.read).or_else(|| by_many.then_some(u32::MAX));
        let before = other(user.written).or(reader.filter(|_| writes));
        if let Some(before) = before {
            let (buffer, indices) = (view.buffer.name.clone(), indices.to_vec());
            return Err(InterpError::Race { buffer, indices, threads: [before, now.1] });
        }
        if writes {
            user.written = Some(now);
        } else {
            user.read_by_many = by_many || other(user.read).is_some();
            user.read = Some(now);
        }
        Ok(())
    }

    /// A copy of some elements behind a pointer, as a tensor, and where they lie.
    pub fn copy_of(
        &self,
        pointer: &Ref<Var>,
        offset: i64,
        shape: &[i64],
        dtype: DataType,
    ) -> Result<(Tensor, (usize, usize))> {
        let outside =
            || InterpError::Malformed(format!("a tensor of {shape:?} does not lie behind `{}`", pointer.name));
        let at = self.by_pointer.get(pointer).copied().ok_or_else(outside)?;
        let count = shape.iter().try_fold(1i64, |n, d| n.checked_mul(*d)).ok_or_else(outside)?;
        let size = |elements: i64| usize::try_from(elements).ok().and_then(|n| dtype.bytes_of(n));
        if dtype.is_packed() && offset.checked_mul(i64::from(dtype.bits)).is_none_or(|bits| bits % 8 != 0) {
            return Err(InterpError::Unsupported("tensors that begin inside of a byte".to_string()));
        }
        let (start, length) = size(offset).zip(size(count)).ok_or_else(outside)?;
        let start = usize::try_from(at.byte).ok().and_then(|byte| byte.checked_add(start)).ok_or_else(outside)?;
        let end = start.checked_add(length).ok_or_else(outside)?;
        let bytes = self.storages[at.storage].bytes.get(start..end).ok_or_else(outside)?;
        Ok((Tensor::from_bytes(bytes, shape, dtype)?, (at.storage, start)))
    }

    /// Puts back what [`Memory::copy_of`] copied.
    pub fn take_back(&mut self, storage: usize, start: usize, tensor: &Tensor) -> Result<()> {
        let bytes = tensor.to_bytes()?;
        let storage = &mut self.storages[storage];
        storage.bytes[start..start + bytes.len()].copy_from_slice(&bytes);
        if let Some(written) = &mut storage.written {
            written[start..start + bytes.len()].fill(u8::MAX);
        }
        Ok(())
    }

    /// Gives the contents back to the tensors that they came from.
    pub fn write_back(&self) -> Result<()> {
        for storage in &self.storages {
            if let Some(tensor) = &storage.tensor {
                tensor.copy_from_bytes(&storage.bytes)?;
            }
        }
        Ok(())
    }

    /// Lets a buffer stand for the memory of another.
    pub fn alias(&mut self, buffer: &Ref<Buffer>, source: &View) {
        self.point(&buffer.data, source.pointer);
    }

    /// Lets a variable stand for an address.
    pub fn point(&mut self, var: &Ref<Var>, at: Pointer) {
        self.by_pointer.insert(var.clone(), at);
    }

    /// The address that a variable stands for.
    pub fn pointer(&self, var: &Ref<Var>) -> Option<Pointer> {
        self.by_pointer.get(var).copied()
    }

    /// The bits of a lane of an element.
    fn place(&self, access: &'static str, view: &View, indices: &[i64], lane: usize) -> Result<Bits> {
        let outside = || InterpError::OutOfBounds {
            access,
            buffer: view.buffer.name.clone(),
            indices: indices.to_vec(),
            shape: view.shape.clone(),
        };
        if view.dtype.is_packed() && view.dtype.bits > 8 {
            return Err(InterpError::Unsupported(format!("elements of type {}", view.dtype)));
        }
        let (element, lanes) = (view.position(indices).ok_or_else(outside)?, usize::from(view.dtype.lanes.max(1)));
        let number = usize::try_from(element).ok().and_then(|e| e.checked_mul(lanes)?.checked_add(lane));
        let width =
            if view.dtype.is_packed() { usize::from(view.dtype.bits) } else { view.dtype.element().bytes() * 8 };
        let first = number.and_then(|n| n.checked_mul(width)).ok_or_else(outside)?;
        let first = usize::try_from(view.pointer.byte).ok().and_then(|byte| first.checked_add(byte.checked_mul(8)?));
        let first = first.ok_or_else(outside)?;
        let place = Bits { first, width };
        if first.checked_add(width).is_none_or(|end| end > self.storages[view.pointer.storage].bytes.len() * 8) {
            return Err(outside());
        }
        Ok(place)
    }

    /// Reads a lane of an element.
    pub fn load(&mut self, view: &View, indices: &[i64], lane: usize) -> Result<Scalar> {
        let place = self.place("load", view, indices, lane)?;
        self.note_use(view, indices, place.first, false)?;
        let storage = &self.storages[view.pointer.storage];
        if storage.written.as_ref().is_some_and(|written| !place.all_set(written)) {
            return Err(InterpError::Unwritten { buffer: view.buffer.name.clone(), indices: indices.to_vec() });
        }
        let value = match place.width {
            0..8 => Scalar::from_bytes(view.dtype.element(), &[place.part(&storage.bytes)]),
            _ => Scalar::from_bytes(view.dtype.element(), &storage.bytes[place.bytes()]),
        };
        value.ok_or_else(|| InterpError::Unsupported(format!("elements of type {}", view.dtype)))
    }

    /// Writes a lane of an element.
    pub fn store(&mut self, view: &View, indices: &[i64], lane: usize, value: Scalar) -> Result<()> {
        let place = self.place("store", view, indices, lane)?;
        self.note_use(view, indices, place.first, true)?;
        let (bytes, count) = value.encoded(view.dtype.element());
        if count != place.width.div_ceil(8) {
            let (name, dtype) = (&view.buffer.name, view.dtype);
            let message = format!("{count} bytes stored to an element of {dtype} of `{name}`");
            return Err(InterpError::Malformed(message));
        }
        let storage = &mut self.storages[view.pointer.storage];
        place.write(&mut storage.bytes, &bytes);
        if let Some(written) = &mut storage.written {
            place.write(written, &[u8::MAX; 8]);
        }
        Ok(())
    }
}

/// Where an element lies: whole bytes, or fewer than eight bits, counted from the upper end of the first byte.
struct Bits {
    first: usize,
    width: usize,
}

impl Bits {
    /// The bytes that it has a part in.
    fn bytes(&self) -> std::ops::Range<usize> {
        self.first / 8..(self.first + self.width).div_ceil(8)
    }

    /// Of an element of less than a byte, by what it is shifted within the sixteen bits from its first byte on.
    fn shift(&self) -> usize {
        16 - self.first % 8 - self.width
    }

    fn word(&self, memory: &[u8]) -> u16 {
        let bytes = &memory[self.bytes()];
        u16::from_be_bytes([bytes[0], bytes.get(1).copied().unwrap_or(0)])
    }

    fn mask(&self) -> u16 {
        (1 << self.width) - 1
    }

    /// What is less than a byte.
    fn part(&self, memory: &[u8]) -> u8 {
        (self.word(memory) >> self.shift() & self.mask()) as u8
    }

    /// Writes the first bytes, or bits, of some.
    fn write(&self, memory: &mut [u8], bytes: &[u8]) {
        let range = self.bytes();
        if self.width >= 8 {
            return memory[range.clone()].copy_from_slice(&bytes[..range.len()]);
        }
        let kept = self.word(memory) & !(self.mask() << self.shift());
        let word = (kept | (u16::from(bytes[0]) & self.mask()) << self.shift()).to_be_bytes();
        memory[range.clone()].copy_from_slice(&word[..range.len()]);
    }

    fn all_set(&self, written: &[u8]) -> bool {
        match self.width {
            0..8 => self.word(written) >> self.shift() & self.mask() == self.mask(),
            _ => written[self.bytes()].iter().all(|bits| *bits == u8::MAX),
        }
    }
}

impl View {
    /// The element's distance from the beginning of the memory; `None` where an index is outside.
    fn position(&self, indices: &[i64]) -> Option<i64> {
        if let [flat] = indices
            && self.shape.len() != 1
        {
            let count = self.shape.iter().try_fold(1i64, |n, d| n.checked_mul(*d))?;
            // With strides of its own a buffer's elements may lie further apart; the memory's size limits them.
            let inside = *flat >= 0 && (*flat < count || !self.is_compact());
            return if inside { self.offset.checked_add(*flat) } else { None };
        }
        let mut position = self.offset;
        for ((index, size), stride) in indices.iter().zip(&self.shape).zip(&self.strides) {
            if index < &0 || index >= size {
                return None;
            }
            position = position.checked_add(index.checked_mul(*stride)?)?;
        }
        (indices.len() == self.shape.len()).then_some(position)
    }

    /// How many lanes each element has.
    pub fn lanes(&self) -> usize {
        usize::from(self.dtype.lanes.max(1))
    }

    /// Whether its elements are more than 32 bits count, or no index says how many.
    pub fn is_large(&self) -> bool {
        let mut steps = self.shape.iter().zip(&self.strides);
        let farthest =
            steps.try_fold(0i64, |sum, (size, stride)| sum.checked_add(size.checked_mul(stride.checked_abs()?)?));
        farthest.is_none_or(|farthest| farthest > i64::from(i32::MAX))
    }

    fn is_compact(&self) -> bool {
        compact_strides(&self.shape).is_some_and(|strides| strides == self.strides)
    }

    /// How many bytes a compact buffer of this shape takes, if that can be had.
    pub fn byte_size(&self) -> Option<usize> {
        let count = self.shape.iter().try_fold(1usize, |n, d| n.checked_mul(usize::try_from(*d).ok()?))?;
        self.dtype.bytes_of(count).filter(|bytes| *bytes <= isize::MAX as usize / 4)
    }

    /// The address of an element, which may be one behind the last.
    pub fn address(&self, indices: &[i64]) -> Option<Pointer> {
        let compact = self.shape.len() != 1 && indices.len() == 1;
        let steps: &[i64] = if compact { &[1] } else { &self.strides };
        let step = |at: i64, (index, stride): (&i64, &i64)| at.checked_add(index.checked_mul(*stride)?);
        let element = indices.iter().zip(steps).try_fold(self.offset, step)?;
        let bits = element.checked_mul(i64::from(self.dtype.bits) * i64::from(self.dtype.lanes.max(1)))?;
        (bits % 8 == 0).then_some(())?;
        Some(Pointer { byte: self.pointer.byte.checked_add(bits / 8)?, ..self.pointer })
    }

    /// The part of this buffer that begins at some indices, with other dimensions.
    pub fn part(&self, begin: &[i64], shape: Vec<i64>) -> Option<View> {
        let moved =
            begin.iter().zip(&self.strides).try_fold(self.offset, |at, (i, s)| at.checked_add(i.checked_mul(*s)?))?;
        let skipped = self.strides.len().checked_sub(shape.len())?;
        let strides = self.strides[skipped..].to_vec();
        Some(View { shape, strides, offset: moved, ..self.clone() })
    }
}

fn compact_strides(shape: &[i64]) -> Option<Vec<i64>> {
    let mut strides = vec![1; shape.len()];
    for d in (1..shape.len()).rev() {
        strides[d - 1] = shape[d].checked_mul(strides[d])?;
    }
    Some(strides)
}

impl Pointer {
    /// The address so many bytes behind.
    pub fn behind(self, bytes: i64) -> Option<Pointer> {
        Some(Pointer { byte: self.byte.checked_add(bytes)?, ..self })
    }
}

impl Interp {
    /// A buffer as it is now: its dimensions may depend on variables.
    pub(super) fn view_of(&mut self, buffer: &Ref<Buffer>) -> Result<Rc<View>> {
        if let Some(known) = self.views.get(buffer) {
            return Ok(known.clone());
        }
        let view = Rc::new(self.make_view(buffer)?);
        let mut dims = buffer.shape.iter().chain(&buffer.strides).chain([&buffer.elem_offset]);
        if dims.all(|d| d.as_int().is_some() || d.as_var().is_some_and(|var| self.fixed.contains(var))) {
            self.views.insert(buffer.clone(), view.clone());
        }
        Ok(view)
    }

    fn make_view(&mut self, buffer: &Ref<Buffer>) -> Result<View> {
        let Some(pointer) = self.memory.pointer(&buffer.data) else {
            return Err(InterpError::Malformed(format!("buffer `{}` has no memory here", buffer.name)));
        };
        let shape = buffer.shape.iter().map(|d| self.eval_int(d)).collect::<Result<Vec<i64>>>()?;
        let strides = match buffer.strides.is_empty() {
            true => compact_strides(&shape),
            false => Some(buffer.strides.iter().map(|s| self.eval_int(s)).collect::<Result<_>>()?),
        };
        let strides = strides.filter(|s| s.len() == shape.len()).ok_or_else(|| {
            InterpError::Malformed(format!("the strides of buffer `{}` do not go with its shape", buffer.name))
        })?;
        let offset = self.eval_int(&buffer.elem_offset)?;
        Ok(View { pointer, buffer: buffer.clone(), dtype: buffer.dtype, shape, strides, offset })
    }

    /// Gives a buffer fresh memory.
    pub(super) fn allocate(&mut self, buffer: &Ref<Buffer>) -> Result<()> {
        self.views.remove(buffer);
        self.memory.allocate(buffer, 0);
        let view = self.view_of(buffer)?;
        let size = view.byte_size().ok_or_else(|| {
            InterpError::Malformed(format!("buffer `{}` of shape {:?} cannot be allocated", buffer.name, view.shape))
        })?;
        self.memory.allocate(buffer, size);
        Ok(())
    }
}
