//! Tensors and the stages that produce them.

use relaxide_ffi::{DataType, Object, ObjectRef, Ref};
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{Attrs, Buffer, Var};

use super::reduce::{ReduceAxis, Reduction};
use crate::Stmt;

/// A tensor of a compute graph: an input or an output of a stage. Clones are the same tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tensor {
    buffer: Ref<Buffer>,
}

/// What a stage does.
#[derive(Debug)]
pub(super) enum StageKind {
    /// An input.
    Placeholder,
    /// Elements by expression, one list entry for each output.
    Elements(Vec<PrimExpr>),
    /// Elements by reduction.
    Reduction(Reduction),
    /// Statements over the buffers of inputs and formal output buffers.
    Extern { inputs: Vec<Ref<Buffer>>, outputs: Vec<Ref<Buffer>>, body: Stmt },
}

/// A node of the compute graph.
#[derive(Object, Debug)]
#[object(key = "tirx.te.Stage")]
pub(super) struct Stage {
    /// The name that its block gets.
    pub name: String,
    /// What it does.
    #[field(hidden)]
    pub kind: StageKind,
    /// Spatial axes; they count through the outputs' shape.
    #[field(hidden)]
    pub axes: Vec<Ref<Var>>,
    /// Annotations of the block.
    #[field(hidden)]
    pub attrs: Attrs,
}

/// The link from a tensor's buffer to its stage.
#[derive(Object, Debug)]
#[object(key = "tirx.te.Output")]
pub(super) struct Output {
    /// The stage.
    pub stage: Ref<Stage>,
    /// Which of its outputs.
    pub index: usize,
}

impl Tensor {
    pub(super) fn output_of(
        stage: Ref<Stage>,
        index: usize,
        name: String,
        dtype: DataType,
        shape: &[PrimExpr],
    ) -> Tensor {
        let producer = Some(ObjectRef::from(Ref::new(Output { stage, index })));
        let plain = Buffer::new(name, dtype, shape);
        let buffer = Ref::new(Buffer {
            name: plain.name.clone(),
            data: plain.data.clone(),
            dtype,
            shape: plain.shape.clone(),
            strides: Vec::new(),
            elem_offset: plain.elem_offset.clone(),
            scope: plain.scope.clone(),
            alignment: plain.alignment,
            offset_factor: plain.offset_factor,
            producer,
        });
        Tensor { buffer }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.buffer.name
    }

    /// Its element type.
    pub fn dtype(&self) -> DataType {
        self.buffer.dtype
    }

    /// Its dimensions.
    pub fn shape(&self) -> &[PrimExpr] {
        &self.buffer.shape
    }

    /// Its rank.
    pub fn ndim(&self) -> usize {
        self.buffer.shape.len()
    }

    /// One element. [`create_prim_func`](super::create_prim_func) refuses a wrong number of indices.
    pub fn at(&self, indices: &[PrimExpr]) -> PrimExpr {
        prim::load(&self.buffer, indices)
    }

    /// The name of the stage that produces it.
    pub fn stage_name(&self) -> &str {
        output_link(&self.buffer).map_or(self.name(), |link| &link.stage.name)
    }

    /// Which of its stage's outputs it is.
    pub fn index(&self) -> usize {
        output_link(&self.buffer).map_or(0, |link| link.index)
    }

    /// The axes over its elements; none for inputs and for what statements fill.
    pub fn axes(&self) -> Vec<Ref<Var>> {
        output_link(&self.buffer).map_or_else(Vec::new, |link| link.stage.axes.clone())
    }

    /// The axes that its elements are combined over.
    pub fn reduce_axes(&self) -> Vec<ReduceAxis> {
        match output_link(&self.buffer).map(|link| &link.stage.kind) {
            Some(StageKind::Reduction(reduction)) => reduction.axes.clone(),
            _ => Vec::new(),
        }
    }

    /// The buffer that loads of it name until a kernel is made.
    pub fn buffer(&self) -> &Ref<Buffer> {
        &self.buffer
    }
}

/// The stage and the output's place in it, of a buffer that belongs to a tensor.
pub(super) fn output_link(buffer: &Ref<Buffer>) -> Option<&Ref<Output>> {
    buffer.producer.as_ref()?.downcast_ref::<Output>()
}

/// An input of a kernel.
pub fn placeholder(
    name: impl Into<String>,
    shape: impl IntoIterator<Item = impl Into<PrimExpr>>,
    dtype: DataType,
) -> Tensor {
    let name = name.into();
    let shape: Vec<PrimExpr> = shape.into_iter().map(Into::into).collect();
    let stage = Stage { name: name.clone(), kind: StageKind::Placeholder, axes: Vec::new(), attrs: Attrs::new() };
    Tensor::output_of(Ref::new(stage), 0, name, dtype, &shape)
}
