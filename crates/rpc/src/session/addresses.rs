//! The addresses that remote memory has in this process.
//!
//! A tensor that lies elsewhere needs an address here: views add to it, the runtime hands it on. The far side's own would not do, for two
//! far sides may have the same. So each piece of remote memory gets a range of numbers that no memory of this process has, and this
//! table leads from a number back to session and far address. Nothing follows them but through the table.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Once, PoisonError};

use relaxide_ffi::{Any, DataType, Device, Error, ErrorKind, Shape, Tensor};
use relaxide_runtime::device::remote::{RemoteMemory, set_remote_memory, tensor};
use relaxide_runtime::device::{Attribute, Stream};

use super::client::SessionCore;
use super::peer::Peer;
use super::remote::slot_session;
use crate::wire::{Code, Copy, Request, SystemCall, Value, WireTensor};

/// The numbers begin here: no system gives a process addresses as high.
const FIRST: usize = 0x4000_0000_0000_0000;
const PAGE: usize = 4096;

/// How far memory is given back.
enum Release {
    /// By its address, on its device.
    Data(Device, u64),
    /// By the handle of the tensor that it is of.
    Handle(u64),
}

/// A piece of remote memory, which it gives back at its end.
pub struct Piece {
    base: usize,
    peer: Arc<Peer>,
    release: Release,
}

struct KnownAddress {
    peer: std::sync::Weak<Peer>,
    /// The device, as the far side knows it.
    device: Device,
    far: u64,
    bytes: usize,
}

#[derive(Default)]
struct AddressTable {
    pieces: BTreeMap<usize, KnownAddress>,
    /// Pieces that the runtime allocated: it frees them by their address.
    held: HashMap<usize, Piece>,
    next: usize,
}

static TABLE: LazyLock<Mutex<AddressTable>> = LazyLock::new(Mutex::default);

fn table() -> MutexGuard<'static, AddressTable> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Piece {
    fn new(peer: &Arc<Peer>, device: Device, far: u64, bytes: usize, release: Release) -> Result<Piece, Error> {
        enter();
        let mut table = table();
        let base = table.next.max(FIRST);
        let next = bytes.checked_next_multiple_of(PAGE).and_then(|size| base.checked_add(size)?.checked_add(PAGE));
        table.next = next
            .filter(|next| *next <= isize::MAX as usize)
            .ok_or_else(|| Error::new(ErrorKind::MemoryError, "the addresses for remote memory are used up"))?;
        table.pieces.insert(base, KnownAddress { peer: Arc::downgrade(peer), device, far, bytes });
        Ok(Piece { base, peer: Arc::clone(peer), release })
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        table().pieces.remove(&self.base);
        let (code, args) = match self.release {
            Release::Data(device, far) => (Code::DevFreeData, vec![Value::Device(device), Value::Ptr(far)]),
            Release::Handle(handle) => (Code::FreeHandle, vec![Value::Ptr(handle)]),
        };
        self.peer.discard(Request::System(SystemCall { code, args }));
    }
}

/// The device of this process that stands for one of the far side's.
pub fn masked(peer: &Peer, device: Device) -> Result<Device, Error> {
    let slot = super::remote::slot_of(peer)?;
    if !(0..Device::SESSION_STRIDE).contains(&device.device_type) {
        return Err(Error::new(ErrorKind::ValueError, format!("there is no device type {}", device.device_type)));
    }
    Ok(Device::new(device.device_type + (slot as i32 + 1) * Device::SESSION_STRIDE, device.device_id))
}

/// A tensor that the far side gave a handle of.
pub fn given_tensor(peer: &Arc<Peer>, wire: &WireTensor, handle: u64) -> Result<Tensor, Error> {
    // First of all, so that the handle goes back whatever is wrong with the rest.
    let size = wire.byte_size().and_then(|size| usize::try_from(size).ok());
    let far = wire.data.wrapping_add(wire.byte_offset);
    let piece = Piece::new(peer, wire.device, far, size.unwrap_or(0), Release::Handle(handle))?;
    if size.is_none() {
        let message = format!("{} sends a tensor of shape {:?}, which is larger than memory", peer.name(), wire.shape);
        return Err(Error::new(ErrorKind::ValueError, message));
    }
    tensor(piece.base, &wire.shape, wire.dtype, masked(peer, wire.device)?, piece)
}

/// An uninitialised tensor on a device of the far side, in one of its memory scopes.
pub fn empty_tensor(
    peer: &Arc<Peer>,
    shape: &[i64],
    dtype: DataType,
    device: Device,
    scope: Option<&str>,
) -> Result<Tensor, Error> {
    let wire = WireTensor { data: 0, device, dtype, shape: shape.to_vec(), byte_offset: 0 };
    let bytes = wire.byte_size().and_then(|size| usize::try_from(size).ok()).ok_or_else(|| {
        Error::new(ErrorKind::ValueError, format!("a tensor of shape {shape:?} and type {dtype} cannot exist"))
    })?;
    let args = vec![Value::Tensor(wire), scope.map_or(Value::None, Value::text)];
    let far = peer.system(Code::DevAllocDataWithScope, args)?.address()?;
    let piece = Piece::new(peer, device, far, bytes, Release::Data(device, far))?;
    tensor(piece.base, shape, dtype, masked(peer, device)?, piece)
}

/// What an address leads to: session, device, far address, and how many bytes lie there.
fn find(address: usize) -> Result<(Arc<Peer>, Device, u64, usize), Error> {
    let table = table();
    let lost = || Error::new(ErrorKind::ValueError, format!("there is no remote memory at {address:#x}"));
    let (base, known) = table.pieces.range(..=address).next_back().ok_or_else(lost)?;
    let offset = address - base;
    let left = known.bytes.checked_sub(offset).ok_or_else(lost)?;
    let peer = known.peer.upgrade().ok_or_else(lost)?;
    Ok((peer, known.device, known.far.wrapping_add(offset as u64), left))
}

/// The description of a tensor of that session, for its far side.
pub fn describe(peer: &Arc<Peer>, tensor: &Tensor) -> Result<WireTensor, Error> {
    if !tensor.is_contiguous() {
        let message = format!(
            "kInvalidDLTensorFieldStride: {tensor:?} has the strides {:?}, and only compact tensors are sent",
            tensor.strides()
        );
        return Err(Error::new(ErrorKind::ValueError, message));
    }
    let (owner, device, data, left) = find(tensor.data_ptr().addr())?;
    if !Arc::ptr_eq(&owner, peer) {
        let message = format!("Can not pass in device with a different remote session: {tensor:?} is of another");
        return Err(Error::new(ErrorKind::ValueError, message));
    }
    let wire = WireTensor { data, device, dtype: tensor.dtype(), shape: tensor.shape().to_vec(), byte_offset: 0 };
    match wire.byte_size().is_some_and(|size| size <= left as u64) {
        true => Ok(wire),
        false => Err(Error::new(ErrorKind::ValueError, format!("{tensor:?} does not lie in its memory"))),
    }
}

/// Bytes at an address, as the far side is told of them.
fn span(device: Device, far: u64, bytes: usize) -> WireTensor {
    WireTensor { data: far, device, dtype: DataType::uint(8), shape: vec![bytes as i64], byte_offset: 0 }
}

/// The runtime's way to remote memory.
struct Memory;

/// Tells the runtime that there is remote memory.
pub fn enter() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| set_remote_memory(&Memory));
}

fn session(device: Device) -> Result<(Arc<Peer>, Device), Error> {
    let lost = || Error::new(ErrorKind::RuntimeError, format!("the session of device {device} has ended"));
    let (slot, there) = device.remote().ok_or_else(lost)?;
    Ok((slot_session(slot).ok_or_else(lost)?, there))
}

fn checked(left: usize, bytes: usize) -> Result<(), Error> {
    match bytes <= left {
        true => Ok(()),
        false => Err(Error::new(ErrorKind::ValueError, format!("{bytes} bytes do not lie in remote memory of {left}"))),
    }
}

impl RemoteMemory for Memory {
    fn exists(&self, device: Device) -> bool {
        self.attribute(device, Attribute::Exists)
            .is_ok_and(|value| value.is_some_and(|value| value.as_int().is_some_and(|exists| exists != 0)))
    }

    fn allocate(&self, device: Device, bytes: usize) -> Result<usize, Error> {
        let (peer, there) = session(device)?;
        let args = vec![
            Value::Device(there),
            Value::Int(bytes as i64),
            Value::Int(relaxide_runtime::device::ALIGNMENT as i64),
            Value::DataType(DataType::uint(8)),
        ];
        let far = peer.system(Code::DevAllocData, args)?.address()?;
        let piece = Piece::new(&peer, there, far, bytes, Release::Data(there, far))?;
        let base = piece.base;
        table().held.insert(base, piece);
        Ok(base)
    }

    fn free(&self, address: usize) {
        let piece = table().held.remove(&address);
        drop(piece);
    }

    fn write(&self, address: usize, bytes: &[u8]) -> Result<(), Error> {
        let (peer, device, far, left) = find(address)?;
        checked(left, bytes.len())?;
        let block = peer.copy_block(1)?;
        for (index, part) in bytes.chunks(block).enumerate() {
            let mut tensor = span(device, far, bytes.len());
            tensor.byte_offset = (index * block) as u64;
            peer.copy_to(Copy { tensor, bytes: part.len() as u64 }, part)?;
        }
        Ok(())
    }

    fn read(&self, address: usize, bytes: &mut [u8]) -> Result<(), Error> {
        let (peer, device, far, left) = find(address)?;
        checked(left, bytes.len())?;
        let (block, whole) = (peer.copy_block(1)?, bytes.len());
        for (index, part) in bytes.chunks_mut(block).enumerate() {
            let mut tensor = span(device, far, whole);
            tensor.byte_offset = (index * block) as u64;
            peer.copy_from(Copy { tensor, bytes: part.len() as u64 }, part)?;
        }
        Ok(())
    }

    fn copy(&self, from: usize, to: usize, bytes: usize) -> Result<(), Error> {
        let ((source, source_device, near, left), (target, target_device, far, room)) = (find(from)?, find(to)?);
        checked(left.min(room), bytes)?;
        if !Arc::ptr_eq(&source, &target) {
            let mut passing = vec![0; bytes];
            self.read(from, &mut passing)?;
            return self.write(to, &passing);
        }
        let args = vec![
            Value::Tensor(span(source_device, near, bytes)),
            Value::Tensor(span(target_device, far, bytes)),
            Value::Ptr(0),
        ];
        source.system(Code::CopyAmongRemote, args).map(drop)
    }

    fn attribute(&self, device: Device, attribute: Attribute) -> Result<Option<Any>, Error> {
        let (peer, there) = session(device)?;
        if (attribute, there.device_type) == (Attribute::Exists, Device::CPU) {
            return Ok(Some(1_i64.into()));
        }
        let args = vec![Value::Device(there), Value::Int(attribute as i64)];
        Ok(match peer.system(Code::DevGetAttr, args)? {
            Value::None => None,
            Value::Int(value) => Some(value.into()),
            Value::Bool(value) => Some(i64::from(value).into()),
            Value::Float(value) => Some(value.into()),
            Value::Shape(dims) => Some(Shape::new(&dims).into()),
            other => match other.as_text() {
                Some(text) => Some(String::from_utf8_lossy(text).into_owned().into()),
                None => return Err(Error::type_mismatch("a device's attribute", other.kind())),
            },
        })
    }

    fn create_stream(&self, device: Device) -> Result<Stream, Error> {
        let (peer, there) = session(device)?;
        let stream = peer.system(Code::DevCreateStream, vec![Value::Device(there)])?.address()?;
        Ok(Stream(stream as usize))
    }

    fn free_stream(&self, device: Device, stream: Stream) -> Result<(), Error> {
        of_stream(Code::DevFreeStream, device, stream)
    }

    fn set_stream(&self, device: Device, stream: Stream) -> Result<(), Error> {
        of_stream(Code::DevSetStream, device, stream)
    }

    fn synchronize(&self, device: Device, stream: Stream) -> Result<(), Error> {
        of_stream(Code::DevStreamSync, device, stream)
    }
}

fn of_stream(code: Code, device: Device, stream: Stream) -> Result<(), Error> {
    let (peer, there) = session(device)?;
    peer.system(code, vec![Value::Device(there), Value::Ptr(stream.0 as u64)]).map(drop)
}
