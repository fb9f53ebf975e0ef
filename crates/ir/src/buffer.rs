//! Buffers: typed, shaped views of memory that kernels read and write.

use relaxide_ffi::{DataType, Object, ObjectRef, Ref};

use crate::layout::Placement;
use crate::{PrimExpr, Type, Var};

/// A view of memory. Identity is the node's address, as with variables.
#[derive(Object, Debug, Clone)]
#[object(key = "tirx.Buffer", var)]
pub struct Buffer {
    /// The name it prints by.
    #[field(ignore)]
    pub name: String,
    /// Pointer to the memory.
    #[field(def)]
    pub data: Ref<Var>,
    /// Element type.
    pub dtype: DataType,
    /// Dimensions.
    #[field(def)]
    pub shape: Vec<PrimExpr>,
    /// Elements between neighbours along each dimension; empty means compact, row-major.
    #[field(def)]
    pub strides: Vec<PrimExpr>,
    /// Elements between the pointer and the first element.
    #[field(def)]
    pub elem_offset: PrimExpr,
    /// Memory scope: `"global"`, `"local"`, `"shared"` …
    pub scope: String,
    /// Alignment of the data in bytes.
    pub alignment: i64,
    /// A number of elements of which the offset is a multiple.
    pub offset_factor: i64,
    /// Where its elements lie, over threads too.
    pub layout: Placement,
    /// The stage that computes it, while a kernel is being described as a graph of computes; none in a finished kernel.
    #[field(hidden)]
    pub producer: Option<ObjectRef>,
}

impl Buffer {
    /// A compact buffer in global memory.
    pub fn new(
        name: impl Into<String>,
        dtype: DataType,
        shape: impl IntoIterator<Item = impl Into<PrimExpr>>,
    ) -> Ref<Buffer> {
        Buffer::scoped(name, dtype, shape, "global")
    }

    /// A compact buffer in a given scope.
    pub fn scoped(
        name: impl Into<String>,
        dtype: DataType,
        shape: impl IntoIterator<Item = impl Into<PrimExpr>>,
        scope: &str,
    ) -> Ref<Buffer> {
        let name = name.into();
        Ref::new(Buffer {
            data: Var::new(name.clone(), Type::pointer(dtype, scope)),
            name,
            dtype,
            shape: shape.into_iter().map(Into::into).collect(),
            strides: Vec::new(),
            elem_offset: PrimExpr::from(0),
            scope: scope.to_string(),
            alignment: 64,
            offset_factor: 1,
            layout: Placement::Strided,
            producer: None,
        })
    }

    /// Rank.
    pub fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// How many elements a compact buffer has.
    pub fn num_elements(&self) -> PrimExpr {
        self.shape.iter().fold(PrimExpr::from(1), |n, d| n * d)
    }
}
