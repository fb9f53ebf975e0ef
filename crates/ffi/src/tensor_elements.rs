//! The elements of tensors in the host's memory: read, copied, overwritten.

use crate::{Element, Error, ErrorKind, Tensor};

impl Tensor {
    /// The elements of a compact tensor in the host's memory. Nobody may write to them meanwhile; see the module.
    pub fn as_slice<T: Element>(&self) -> Result<&[T], Error> {
        if !T::matches(self.dtype()) {
            return Err(Error::type_mismatch(&T::DTYPE.to_string(), &self.dtype().to_string()));
        }
        let bytes = self.as_bytes()?;
        if bytes.is_empty() {
            return Ok(&[]);
        }
        if !(bytes.as_ptr() as usize).is_multiple_of(align_of::<T>()) {
            return Err(Error::new(ErrorKind::ValueError, "the tensor's data is not aligned to its elements"));
        }
        // SAFETY: the bytes are aligned, their number is a multiple of the element's size, and every bit pattern is an
        // element.
        Ok(unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<T>()) })
    }

    /// The bytes of a compact tensor in the host's memory. Nobody may write to them meanwhile; see the module.
    pub fn as_bytes(&self) -> Result<&[u8], Error> {
        self.require_host()?;
        self.require_contiguous()?;
        match self.byte_size() {
            0 => Ok(&[]),
            // SAFETY: the description is true by construction.
            size => Ok(unsafe { std::slice::from_raw_parts(self.data_ptr(), size) }),
        }
    }

    /// Copies of the elements, in row-major order, of a tensor in the host's memory with any strides.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>, Error> {
        if !T::matches(self.dtype()) {
            return Err(Error::type_mismatch(&T::DTYPE.to_string(), &self.dtype().to_string()));
        }
        let bytes = self.to_bytes()?;
        let size = size_of::<T>();
        // SAFETY: each chunk has the size of an element, read without regard to alignment, and every bit pattern is one.
        Ok(bytes.chunks_exact(size).map(|chunk| unsafe { chunk.as_ptr().cast::<T>().read_unaligned() }).collect())
    }

    /// Copies of the elements' bytes, in row-major order, of a tensor in the host's memory with any strides.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        if self.is_contiguous() {
            return self.as_bytes().map(<[u8]>::to_vec);
        }
        let mut bytes = Vec::with_capacity(self.byte_size());
        self.blocks(self.outer_dims())?.for_each(|block| bytes.extend_from_slice(block));
        Ok(bytes)
    }

    /// The bytes of a tensor in the host's memory, in row-major order, in blocks of all elements that have the same place in the first
    /// `outer` dimensions, which are those of [`outer_dims`](Self::outer_dims) or more. Nobody may write to them meanwhile; see the module.
    pub fn blocks(&self, outer: usize) -> Result<impl Iterator<Item = &[u8]>, Error> {
        self.require_host()?;
        if self.dtype().is_packed() {
            let message =
                format!("elements of {} share bytes: a tensor of them must be compact to be copied", self.dtype());
            return Err(Error::new(ErrorKind::ValueError, message));
        }
        if outer > self.ndim() || outer < self.outer_dims() {
            let message = format!("the strides {:?} leave gaps behind dimension {outer}", self.strides());
            return Err(Error::new(ErrorKind::ValueError, message));
        }
        let (dims, rest) = self.shape().split_at(outer);
        let element = self.dtype().bytes();
        let length = rest.iter().product::<i64>() as usize * element;
        let count = if length == 0 { 0 } else { dims.iter().product::<i64>() };
        let mut index = vec![0; outer];
        Ok((0..count).map(move |_| {
            let offset: i64 = index.iter().zip(self.strides()).map(|(i, stride): (&i64, &i64)| i * stride).sum();
            advance(&mut index, dims);
            // SAFETY: the index is inside of the shape, so the strides lead to one of the elements, behind which the others of its
            // block follow.
            unsafe { std::slice::from_raw_parts(self.data_ptr().offset(offset as isize * element as isize), length) }
        }))
    }

    /// Overwrites all elements of a compact tensor in the host's memory. Nobody may use them meanwhile; see the module.
    pub fn copy_from_bytes(&self, bytes: &[u8]) -> Result<(), Error> {
        self.require_host()?;
        self.require_contiguous()?;
        if bytes.len() != self.byte_size() {
            let message = format!("{} bytes for a tensor of {}", bytes.len(), self.byte_size());
            return Err(Error::new(ErrorKind::ValueError, message));
        }
        // SAFETY: the tensor has that many bytes. The source may be a view of the same memory, so the copy tolerates it.
        unsafe { self.data_ptr().copy_from(bytes.as_ptr(), bytes.len()) };
        Ok(())
    }

    /// Overwrites all elements of a compact tensor in the host's memory. Nobody may use them meanwhile; see the module.
    pub fn copy_from_slice<T: Element>(&self, values: &[T]) -> Result<(), Error> {
        if !T::matches(self.dtype()) {
            return Err(Error::type_mismatch(&self.dtype().to_string(), &T::DTYPE.to_string()));
        }
        // SAFETY: elements are plain data without padding.
        let bytes = unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values)) };
        self.copy_from_bytes(bytes)
    }

    /// How many dimensions stand in front of those whose elements follow each other in row-major order.
    pub fn outer_dims(&self) -> usize {
        let (mut outer, mut run) = (self.ndim(), 1);
        while let Some((dim, stride)) = outer.checked_sub(1).map(|i| (self.shape()[i], self.strides()[i])) {
            if dim != 1 && stride != run {
                break;
            }
            (outer, run) = (outer - 1, run * dim);
        }
        outer
    }
}

/// The next index in row-major order.
fn advance(index: &mut [i64], shape: &[i64]) {
    for (i, dim) in index.iter_mut().zip(shape).rev() {
        *i += 1;
        if *i < *dim {
            return;
        }
        *i = 0;
    }
}
