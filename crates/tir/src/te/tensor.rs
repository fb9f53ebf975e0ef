//! Tensors and the stages that produce them.

use relaxide_ffi::{DataType, Object, ObjectRef, Ref};
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{Attrs, Buffer, Var};

use super::access::reads_of_expr;
use super::reduce::{Bodies, ReduceAxis, Reduction};
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

/// How a stage makes its tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageForm {
    /// Not at all: it is an input.
    Placeholder,
    /// Element by element.
    Compute,
    /// By statements.
    Extern,
    /// Elements from those before them.
    Scan,
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
    /// What kind of compute it is said to be; nothing is decided by it.
    #[field(hidden)]
    pub tag: String,
    /// How it makes its tensors.
    #[field(hidden)]
    pub form: StageForm,
    /// The buffers that whoever wrote its statements had for its inputs and outputs.
    #[field(hidden)]
    pub given: [Vec<Ref<Buffer>>; 2],
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
            layout: relaxide_ir::layout::Placement::Strided,
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

    /// How its stage makes it.
    pub fn form(&self) -> StageForm {
        output_link(&self.buffer).map_or(StageForm::Placeholder, |link| link.stage.form)
    }

    /// The annotations of its stage.
    pub fn attrs(&self) -> Attrs {
        output_link(&self.buffer).map_or_else(Attrs::new, |link| link.stage.attrs.clone())
    }

    /// The tag of its stage; empty where it has none.
    pub fn tag(&self) -> &str {
        output_link(&self.buffer).map_or("", |link| &link.stage.tag)
    }

    /// What its stage computes for an element: values, or a reduction; of inputs and statements nothing.
    pub fn body(&self) -> Option<Bodies> {
        match &output_link(&self.buffer)?.stage.kind {
            StageKind::Elements(values) => Some(Bodies::Elements(values.clone())),
            StageKind::Reduction(reduction) => Some(Bodies::Reduction(reduction.clone())),
            StageKind::Placeholder | StageKind::Extern { .. } => None,
        }
    }

    /// The tensors that its stage reads, each once; of a scan those that give its first elements.
    pub fn inputs(&self) -> Vec<Tensor> {
        let Some(link) = output_link(&self.buffer) else { return Vec::new() };
        let read: Vec<Ref<Buffer>> = match &link.stage.kind {
            StageKind::Placeholder => Vec::new(),
            StageKind::Elements(values) => buffers_of(values),
            StageKind::Reduction(reduction) => buffers_of(reduction.values.iter().chain(&reduction.combined)),
            StageKind::Extern { inputs, .. } => inputs.clone(),
        };
        let mut tensors: Vec<Tensor> = Vec::new();
        for buffer in read.into_iter().filter(|buffer| output_link(buffer).is_some()) {
            let tensor = Tensor { buffer };
            if !tensors.contains(&tensor) {
                tensors.push(tensor);
            }
        }
        tensors
    }

    /// The buffers that the statements of its stage were written over, those of inputs and those of outputs; of other stages none.
    pub fn written_over(&self) -> [Vec<Ref<Buffer>>; 2] {
        output_link(&self.buffer).map(|link| link.stage.given.clone()).unwrap_or_default()
    }

    /// The buffer that loads of it name until a kernel is made.
    pub fn buffer(&self) -> &Ref<Buffer> {
        &self.buffer
    }
}

/// The buffers that expressions read.
fn buffers_of<'a>(exprs: impl IntoIterator<Item = &'a PrimExpr>) -> Vec<Ref<Buffer>> {
    reads_of_expr(exprs).into_iter().map(|region| region.buffer.clone()).collect()
}

/// The stage and the output's place in it, of a buffer that belongs to a tensor.
pub(super) fn output_link(buffer: &Buffer) -> Option<&Ref<Output>> {
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
    let stage = Stage {
        name: name.clone(),
        kind: StageKind::Placeholder,
        axes: Vec::new(),
        attrs: Attrs::new(),
        tag: String::new(),
        form: StageForm::Placeholder,
        given: Default::default(),
    };
    Tensor::output_of(Ref::new(stage), 0, name, dtype, &shape)
}
