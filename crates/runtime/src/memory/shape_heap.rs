//! The small tensor in which a program keeps the values of its symbolic dimensions.

use relaxide_ffi::{DataType, Device, Error, ErrorKind, Tensor};

/// A tensor of `int64` in the host's memory, read and written one value at a time, by the VM and by compiled code.
pub struct ShapeHeap<'a> {
    tensor: &'a Tensor,
}

/// Values on a cache line of their own: compiled code may rely on the alignment of every tensor.
#[derive(Clone, Copy)]
#[repr(align(64))]
#[expect(dead_code, reason = "the values are read through the tensor's address")]
struct Line([i64; LINE]);

const LINE: usize = crate::device::ALIGNMENT / size_of::<i64>();

impl<'a> ShapeHeap<'a> {
    /// Takes a tensor as heap, if it can be one.
    pub fn new(tensor: &'a Tensor) -> Result<Self, Error> {
        let fits = tensor.dtype() == DataType::int(64)
            && tensor.device().device_type == Device::CPU
            && tensor.ndim() == 1
            && tensor.is_contiguous();
        if fits { Ok(Self { tensor }) } else { Err(Self::unfit(tensor)) }
    }

    /// A tensor that can be a heap of `size` values, all zero.
    pub fn allocate(size: usize) -> Result<Tensor, Error> {
        let mut values = vec![Line([0; LINE]); size.div_ceil(LINE)].into_boxed_slice();
        let data = values.as_mut_ptr().cast();
        // SAFETY: the lines hold at least `size` values, and the tensor keeps them; they do not move with their box.
        unsafe { Tensor::from_parts(data, &[size as i64], DataType::int(64), Device::cpu(0), 0, values) }
    }

    #[cold]
    fn unfit(tensor: &Tensor) -> Error {
        let message = format!("a shape heap is a compact tensor of int64 on the CPU, not {tensor:?}");
        Error::new(ErrorKind::TypeError, message)
    }

    fn place(&self, index: i64) -> Result<*mut i64, Error> {
        match usize::try_from(index) {
            Ok(place) if index < self.tensor.shape().first().copied().unwrap_or(0) => {
                Ok(self.tensor.data_ptr().cast::<i64>().wrapping_add(place))
            }
            _ => {
                let message = format!("place {index} is not in the shape heap {:?}", self.tensor);
                Err(Error::new(ErrorKind::IndexError, message))
            }
        }
    }

    /// Makes all values zero.
    pub fn clear(&self) {
        let size = self.tensor.shape().first().copied().unwrap_or(0);
        // SAFETY: a heap is compact, so these are its values; see `get`.
        unsafe { self.tensor.data_ptr().write_bytes(0, size as usize * size_of::<i64>()) };
    }

    /// The value at a place.
    #[inline]
    pub fn get(&self, index: i64) -> Result<i64, Error> {
        let place = self.place(index)?;
        // SAFETY: the place is one of the tensor's elements, which it keeps; heaps belong to one call of a program.
        Ok(unsafe { place.read_unaligned() })
    }

    /// Changes the value at a place.
    #[inline]
    pub fn set(&self, index: i64, value: i64) -> Result<(), Error> {
        let place = self.place(index)?;
        // SAFETY: as in `get`.
        unsafe { place.write_unaligned(value) };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_outside_are_refused() {
        let tensor = ShapeHeap::allocate(2).unwrap();
        assert!((tensor.data_ptr() as usize).is_multiple_of(crate::device::ALIGNMENT));
        let heap = ShapeHeap::new(&tensor).unwrap();
        heap.set(1, 7).unwrap();
        assert_eq!((heap.get(0).unwrap(), heap.get(1).unwrap()), (0, 7));
        for index in [-1, 2, i64::MAX, i64::MIN] {
            assert!(heap.get(index).is_err() && heap.set(index, 1).is_err(), "{index}");
        }
        assert!(ShapeHeap::new(&Tensor::zeros(&[2], DataType::int(32)).unwrap()).is_err());
    }
}
