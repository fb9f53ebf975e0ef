//! [`Exports`]: what this end gave the other handles and addresses of.
//!
//! A handle is a number that this table made up; it carries one reference, and is given back once. An address lies in a range that
//! stands for a tensor's memory; arithmetic on it stays in the range or is refused. Neither says where anything is in this process, and
//! a number that was never given out is an error, not an access.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use relaxide_ffi::{Any, DataType, Device, Error, ErrorKind, Tensor};
use relaxide_runtime::device::{empty_tensor, view_at};

use crate::wire::WireTensor;

/// Ranges begin at multiples of this, so that data is as aligned there as it is here.
const PAGE: u64 = 4096;
/// Where ranges begin: no small number is an address.
const FIRST: u64 = 1 << 32;

/// The handles and addresses of one session.
#[derive(Default)]
pub struct Exports(Mutex<ExportTable>);

struct ExportTable {
    objects: HashMap<u64, ExportedObject>,
    ranges: BTreeMap<u64, Range>,
    next_handle: u64,
    next_address: u64,
    /// Bytes of memory that the other end has allocated, and may.
    allocated: u64,
    quota: u64,
}

struct ExportedObject {
    object: Any,
    /// The range of a tensor's memory, which goes with it.
    range: Option<u64>,
}

struct Range {
    /// All of its bytes.
    bytes: Tensor,
    size: u64,
    /// The handle of the tensor that it belongs to; none if it was allocated by address.
    handle: Option<u64>,
}

impl Default for ExportTable {
    fn default() -> Self {
        ExportTable {
            objects: HashMap::new(),
            ranges: BTreeMap::new(),
            next_handle: 1,
            next_address: FIRST,
            allocated: 0,
            quota: u64::MAX,
        }
    }
}

impl ExportTable {
    fn reserve(&mut self, bytes: Tensor, size: u64, handle: Option<u64>) -> Result<u64, Error> {
        let base = self.next_address;
        // A page stays free behind each, so that the end of one is not the start of another.
        let next = size.checked_next_multiple_of(PAGE).and_then(|size| base.checked_add(size)?.checked_add(PAGE));
        self.next_address = next.ok_or_else(|| Error::new(ErrorKind::MemoryError, "the addresses are used up"))?;
        self.ranges.insert(base, Range { bytes, size, handle });
        Ok(base)
    }

    fn new_handle(&mut self) -> u64 {
        self.next_handle += 1;
        self.next_handle - 1
    }
}

fn unknown(what: &str, number: u64) -> Error {
    let message =
        format!("there is no {what} {number:#x} in this session: it was never given out, or given back already");
    Error::new(ErrorKind::ValueError, message)
}

impl Exports {
    fn table(&self) -> MutexGuard<'_, ExportTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Limits the bytes that the other end may allocate.
    pub fn set_quota(&self, bytes: u64) {
        self.table().quota = bytes;
    }

    /// A handle for an object.
    pub fn give(&self, object: Any) -> u64 {
        let mut table = self.table();
        let handle = table.new_handle();
        table.objects.insert(handle, ExportedObject { object, range: None });
        handle
    }

    /// A handle and a description for a tensor, which must be compact. Its offset is in its address.
    pub fn give_tensor(&self, tensor: &Tensor) -> Result<(WireTensor, u64), Error> {
        if !tensor.is_contiguous() {
            let message = format!(
                "kInvalidDLTensorFieldStride: {tensor:?} has the strides {:?}, and only compact tensors are sent",
                tensor.strides()
            );
            return Err(Error::new(ErrorKind::ValueError, message));
        }
        let size = tensor.byte_size();
        let bytes = view_at(tensor, &[size as i64], DataType::uint(8), 0)?;
        let mut table = self.table();
        let handle = table.new_handle();
        let data = table.reserve(bytes, size as u64, Some(handle))?;
        table.objects.insert(handle, ExportedObject { object: tensor.into(), range: Some(data) });
        let (device, dtype) = (tensor.device(), tensor.dtype());
        Ok((WireTensor { data, device, dtype, shape: tensor.shape().to_vec(), byte_offset: 0 }, handle))
    }

    /// The object of a handle.
    pub fn object(&self, handle: u64) -> Result<Any, Error> {
        let table = self.table();
        table.objects.get(&handle).map(|entry| entry.object.clone()).ok_or_else(|| unknown("handle", handle))
    }

    /// Takes a handle back. That of nothing is taken back by doing nothing.
    pub fn take_back(&self, handle: u64) -> Result<(), Error> {
        if handle == 0 {
            return Ok(());
        }
        let taken = {
            let mut table = self.table();
            let entry = table.objects.remove(&handle).ok_or_else(|| unknown("handle", handle))?;
            let range = entry.range.and_then(|base| table.ranges.remove(&base));
            (entry, range.map(|range| range.bytes))
        };
        // Not under the lock: what ends here may run anything.
        drop(taken);
        Ok(())
    }

    /// Allocates memory on a device, zeroed where the host can do that.
    pub fn allocate(&self, device: Device, size: u64) -> Result<u64, Error> {
        {
            let mut table = self.table();
            let total = table.allocated.checked_add(size).filter(|total| *total <= table.quota);
            table.allocated = total.ok_or_else(|| {
                let message = format!(
                    "{size} bytes cannot be allocated: the session has {} and may have {}",
                    table.allocated, table.quota
                );
                Error::new(ErrorKind::MemoryError, message)
            })?;
        }
        let made = i64::try_from(size).map_err(|_| Error::new(ErrorKind::ValueError, "more bytes than memory has"));
        let made = made.and_then(|count| match device.device_type {
            Device::CPU => Tensor::zeros(&[count], DataType::uint(8)),
            _ => empty_tensor(&[count], DataType::uint(8), device),
        });
        let mut table = self.table();
        let reserved = made.and_then(|bytes| table.reserve(bytes, size, None));
        if reserved.is_err() {
            table.allocated -= size;
        }
        reserved
    }

    /// Frees memory that was allocated by address.
    pub fn free(&self, address: u64) -> Result<(), Error> {
        if address == 0 {
            return Ok(());
        }
        let range = {
            let mut table = self.table();
            match table.ranges.get(&address) {
                Some(range) if range.handle.is_none() => {}
                Some(_) => {
                    let message = format!("the address {address:#x} is that of a tensor, which is freed by its handle");
                    return Err(Error::new(ErrorKind::ValueError, message));
                }
                None => return Err(unknown("address", address)),
            }
            let range = table.ranges.remove(&address);
            table.allocated -= range.as_ref().map_or(0, |range| range.size);
            range
        };
        drop(range);
        Ok(())
    }

    /// The tensor that a description stands for. It shares the memory, and keeps it.
    pub fn tensor(&self, wire: &WireTensor) -> Result<Tensor, Error> {
        let size = wire.byte_size().ok_or_else(|| {
            Error::new(ErrorKind::ValueError, format!("a tensor of shape {:?} is larger than memory", wire.shape))
        })?;
        let (bytes, offset) = self.range(wire, size)?;
        view_at(&bytes, &wire.shape, wire.dtype, offset)
    }

    /// Some bytes of the memory that a description begins in.
    pub fn bytes(&self, wire: &WireTensor, count: u64) -> Result<Tensor, Error> {
        let (bytes, offset) = self.range(wire, count)?;
        view_at(&bytes, &[count as i64], DataType::uint(8), offset)
    }

    fn range(&self, wire: &WireTensor, count: u64) -> Result<(Tensor, usize), Error> {
        let table = self.table();
        let begin = wire.data.checked_add(wire.byte_offset);
        let found = begin.and_then(|begin| {
            let (base, range) = table.ranges.range(..=wire.data).next_back()?;
            // The address itself must be of this range too, else an offset could lead from one to another.
            (wire.data - base <= range.size).then_some((begin - base, range))
        });
        let (offset, range) = found.ok_or_else(|| unknown("memory at the address", wire.data))?;
        if offset.checked_add(count).is_none_or(|end| end > range.size) {
            let message = format!(
                "{count} bytes at offset {offset} do not lie in the {} bytes of memory at {:#x}",
                range.size, wire.data
            );
            return Err(Error::new(ErrorKind::ValueError, message));
        }
        if range.bytes.device() != wire.device && range.bytes.device().device_type != Device::CPU {
            let message =
                format!("the memory at {:#x} is on {}, not on {}", wire.data, range.bytes.device(), wire.device);
            return Err(Error::new(ErrorKind::ValueError, message));
        }
        Ok((range.bytes.clone(), offset as usize))
    }

    /// How many handles and ranges are out, and the bytes that are allocated by address.
    pub fn usage(&self) -> (usize, usize, u64) {
        let table = self.table();
        (table.objects.len(), table.ranges.len(), table.allocated)
    }

    /// Takes everything back, at the end of a session.
    pub fn clear(&self) {
        let (objects, ranges) = {
            let mut table = self.table();
            table.allocated = 0;
            (std::mem::take(&mut table.objects), std::mem::take(&mut table.ranges))
        };
        drop((objects, ranges));
    }
}
