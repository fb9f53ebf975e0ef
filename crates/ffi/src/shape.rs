//! [`Shape`]: an immutable tuple of integers, as dimensions and strides are.

use std::fmt;
use std::ops::Deref;

use crate::abi::type_index;
use crate::handle::object_handle;
use crate::object::{Ref, allocate, deleter};
use crate::{AnyView, Error, FromAny, StructuralEqual, StructuralHash};

/// The cell of a shape. The integers follow it in the same allocation.
#[repr(C)]
pub(crate) struct ShapeObj {
    data: *const i64,
    size: usize,
}

// SAFETY: the address is that of immutable integers in the same allocation.
unsafe impl Send for ShapeObj {}
// SAFETY: as above.
unsafe impl Sync for ShapeObj {}

impl ShapeObj {
    fn dims(&self) -> &[i64] {
        // SAFETY: the cell addresses the integers behind it, which live as long as the object and never change.
        unsafe { std::slice::from_raw_parts(self.data, self.size) }
    }

    fn content_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
        self.dims() == other.dims() || eq.fail(format_args!("{:?} differs from {:?}", self.dims(), other.dims()))
    }

    fn content_hash(&self, hash: &mut StructuralHash) {
        hash.combine(self.size as u64);
        self.dims().iter().for_each(|dim| hash.combine(*dim as u64));
    }
}

/// An immutable tuple of integers. Copies share it; `==` compares content.
#[derive(Clone)]
#[repr(transparent)]
pub struct Shape(Ref<ShapeObj>);

object_handle!(Shape, ShapeObj, "ffi.Shape", type_index::SHAPE, by content);

impl AnyView<'_> {
    /// The shape, if the value is one, without taking a reference.
    #[inline]
    pub fn as_shape(&self) -> Option<&Shape> {
        let object = std::ptr::from_ref(self.downcast_ref::<ShapeObj>()?);
        // SAFETY: a `Shape` is a transparent wrapper of the reference.
        Some(unsafe { &*object.cast::<Shape>() })
    }
}

impl Shape {
    /// A shape of those integers.
    pub fn new(dims: &[i64]) -> Shape {
        let object = allocate::<ShapeObj>(type_index::SHAPE, size_of_val(dims), deleter::<ShapeObj>);
        // SAFETY: the allocation has room for the cell and the integers behind it, which are written before the handle
        // exists.
        unsafe {
            let cell = &raw mut (*object.as_ptr()).value;
            let data = cell.add(1).cast::<i64>();
            data.copy_from_nonoverlapping(dims.as_ptr(), dims.len());
            cell.write(ShapeObj { data, size: dims.len() });
            Shape(Ref::from_box(object))
        }
    }

    /// The integers.
    pub fn as_slice(&self) -> &[i64] {
        self.0.dims()
    }
}

impl Deref for Shape {
    type Target = [i64];

    fn deref(&self) -> &[i64] {
        self.as_slice()
    }
}

impl From<&[i64]> for Shape {
    fn from(dims: &[i64]) -> Shape {
        Shape::new(dims)
    }
}

impl<const N: usize> From<[i64; N]> for Shape {
    fn from(dims: [i64; N]) -> Shape {
        Shape::new(&dims)
    }
}

impl From<Vec<i64>> for Shape {
    fn from(dims: Vec<i64>) -> Shape {
        Shape::new(&dims)
    }
}

impl PartialEq for Shape {
    fn eq(&self, other: &Shape) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Shape {}

impl std::hash::Hash for Shape {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_slice(), f)
    }
}

/// Sequences of integers convert too.
impl FromAny for Shape {
    fn from_any(value: AnyView<'_>) -> Result<Self, Error> {
        match value.type_index() {
            type_index::ARRAY | type_index::LIST => Ok(Shape::new(&value.to::<Vec<i64>>()?)),
            _ => crate::convert::handle_from_any(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Any;

    #[test]
    fn shapes_are_values() {
        let shape = Shape::from([2, 3, 4]);
        assert_eq!(shape, Shape::new(&[2, 3, 4]));
        assert_eq!(Any::from(&shape).to::<Shape>().unwrap().as_slice(), [2, 3, 4]);
        assert_eq!(Any::from(vec![2i64, 3]).to::<Shape>().unwrap().as_slice(), [2, 3]);
        assert!(Any::from(vec!["a"]).to::<Shape>().is_err());
        assert!(Shape::new(&[]).is_empty());
        assert!(crate::structural_equal(&shape, &Shape::from([2, 3, 5]), crate::FreeVars::Same).is_err());
    }
}
