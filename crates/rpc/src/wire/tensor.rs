//! [`WireTensor`]: how a tensor is described. No strides: what crosses is compact.

use relaxide_ffi::{DataType, Device};

use super::{Malformed, Reader, Writer};

/// More dimensions than any tensor has; TVM's own limit is the packet.
const MAX_NDIM: i32 = 64;

/// A description of a tensor's memory, where the receiver of a request or the sender of a reply has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireTensor {
    /// The address, as its owner knows it.
    pub data: u64,
    /// The device, as its owner knows it.
    pub device: Device,
    /// The type of one element.
    pub dtype: DataType,
    /// The extents of the dimensions.
    pub shape: Vec<i64>,
    /// How many bytes behind the address the first element lies.
    pub byte_offset: u64,
}

impl WireTensor {
    /// Bytes that the description of a tensor of that many dimensions takes in a copy's packet, the code and the number of bytes
    /// among them, the length in front not.
    pub fn copy_overhead(ndim: usize) -> u64 {
        44 + 8 * ndim as u64
    }

    /// The bytes of all elements; nothing if no memory is that large.
    pub fn byte_size(&self) -> Option<u64> {
        let count =
            self.shape.iter().try_fold(1_usize, |product, dim| product.checked_mul(usize::try_from(*dim).ok()?))?;
        // Not `bytes_of`: the wire has whole bytes for each element.
        let bits = usize::from(self.dtype.bits) * usize::from(self.dtype.lanes);
        count.checked_mul(bits.div_ceil(8)).map(|bytes| bytes as u64)
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<WireTensor, Malformed> {
        let data = reader.u64("a tensor's address")?;
        let device = Device::new(reader.i32("a tensor's device type")?, reader.i32("a tensor's device")?);
        let ndim = reader.i32("a tensor's number of dimensions")?;
        if !(0..=MAX_NDIM).contains(&ndim) {
            return Err(reader.wrong(format!("a tensor claims {ndim} dimensions, and may have {MAX_NDIM}")));
        }
        let dtype = read_dtype(reader)?;
        let shape = (0..ndim).map(|_| reader.i64("a tensor's dimension")).collect::<Result<Vec<_>, _>>()?;
        let byte_offset = reader.u64("a tensor's offset")?;
        Ok(WireTensor { data, device, dtype, shape, byte_offset })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.u64(self.data);
        writer.i32(self.device.device_type);
        writer.i32(self.device.device_id);
        writer.i32(self.shape.len() as i32);
        write_dtype(writer, self.dtype);
        self.shape.iter().for_each(|dim| writer.i64(*dim));
        writer.u64(self.byte_offset);
    }
}

pub(crate) fn read_dtype(reader: &mut Reader<'_>) -> Result<DataType, Malformed> {
    let (code, bits) = (reader.u8("an element type's code")?, reader.u8("an element type's bits")?);
    Ok(DataType { code, bits, lanes: reader.u16("an element type's lanes")? })
}

pub(crate) fn write_dtype(writer: &mut Writer, dtype: DataType) {
    writer.u8(dtype.code);
    writer.u8(dtype.bits);
    writer.u16(dtype.lanes);
}
