//! Computes: tensors given by an expression for each element.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, PrimExpr, PrimMutator};
use relaxide_ir::{AttrValue, Attrs, Buffer, Var};

use super::reduce::{Bodies, Body};
use super::tensor::{Stage, StageForm, StageKind, Tensor};
use crate::Stmt;

/// A compute under construction, for those that name their axes or annotate their block.
#[derive(Debug)]
pub struct Compute {
    name: String,
    shape: Vec<PrimExpr>,
    axes: Vec<Ref<Var>>,
    attrs: Attrs,
    tag: String,
    simplified: bool,
}

impl Compute {
    /// A compute of a given shape with axes `ax0`, `ax1` …
    pub fn new(name: impl Into<String>, shape: impl IntoIterator<Item = impl Into<PrimExpr>>) -> Compute {
        let shape: Vec<PrimExpr> = shape.into_iter().map(Into::into).collect();
        let axes = shape.iter().enumerate().map(|(i, dim)| axis_over(format!("ax{i}"), dim)).collect();
        Compute { name: name.into(), shape, axes, attrs: Attrs::new(), tag: String::new(), simplified: false }
    }

    /// The same with other axis names; axes beyond the list keep theirs.
    pub fn axes(mut self, names: &[&str]) -> Compute {
        for (axis, name) in self.axes.iter_mut().zip(names) {
            *axis = Var::new(*name, axis.ty.clone());
        }
        self
    }

    /// The same under a tag, which says what kind of compute it is to whoever asks.
    pub fn tagged(mut self, tag: impl Into<String>) -> Compute {
        self.tag = tag.into();
        self
    }

    /// The same with an annotation on the block. Tensors in it are named by their buffers, in whose place the kernel's own come.
    pub fn annotate(mut self, key: impl Into<String>, value: impl Into<AttrValue>) -> Compute {
        self.attrs = self.attrs.with(key, value);
        self
    }

    /// The same with the indices of what it reads simplified, given how far its axes run. For computes that put indices
    /// together and take them apart again, as those over blocks of an axis do.
    pub fn simplified(mut self) -> Compute {
        self.simplified = true;
        self
    }

    /// The tensor whose element at some axis values is what `f` says.
    pub fn build<B: Into<Body>>(self, f: impl FnOnce(&[PrimExpr]) -> B) -> Tensor {
        let body = f(&self.places()).into();
        self.of_body(body)
    }

    /// The axes as the indices that a body is made from.
    fn places(&self) -> Vec<PrimExpr> {
        self.axes.iter().map(PrimExpr::from).collect()
    }

    fn of_body(self, body: Body) -> Tensor {
        let body = if self.simplified { simplify_reads(&self.axes, &self.shape, body) } else { body };
        let (kind, dtype) = match body {
            Body::Element(value) => {
                let dtype = value.dtype();
                (StageKind::Elements(vec![value]), dtype)
            }
            Body::Reduction(reduction) => {
                let dtype = reduction.values.first().map_or(DataType::void(), PrimExpr::dtype);
                (StageKind::Reduction(reduction), dtype)
            }
        };
        let (name, shape) = (self.name.clone(), self.shape.clone());
        Tensor::output_of(self.into_stage(kind), 0, name, dtype, &shape)
    }

    /// The tensors of one shape whose elements at some axis values are what `f` says: `NAME`, or several that are named
    /// `NAME_v0`, `NAME_v1` …
    pub fn build_multi<B: Into<Bodies>>(self, f: impl FnOnce(&[PrimExpr]) -> B) -> Vec<Tensor> {
        let bodies = f(&self.places()).into();
        self.of_bodies(bodies)
    }

    fn of_bodies(self, bodies: Bodies) -> Vec<Tensor> {
        let (kind, dtypes) = match bodies {
            Bodies::Elements(values) => {
                let dtypes: Vec<DataType> = values.iter().map(PrimExpr::dtype).collect();
                (StageKind::Elements(values), dtypes)
            }
            Bodies::Reduction(reduction) => {
                let dtypes = reduction.values.iter().map(PrimExpr::dtype).collect();
                (StageKind::Reduction(reduction), dtypes)
            }
        };
        let (name, shape) = (self.name.clone(), self.shape.clone());
        let stage = self.into_stage(kind);
        let alone = dtypes.len() == 1;
        let output = |(i, dtype): (usize, DataType)| {
            let name = if alone { name.clone() } else { format!("{name}_v{i}") };
            Tensor::output_of(stage.clone(), i, name, dtype, &shape)
        };
        dtypes.into_iter().enumerate().map(output).collect()
    }

    fn into_stage(self, kind: StageKind) -> Ref<Stage> {
        let (form, given) = (StageForm::Compute, Default::default());
        Ref::new(Stage { name: self.name, kind, axes: self.axes, attrs: self.attrs, tag: self.tag, form, given })
    }
}

/// A variable that counts what an extent counts, in its type.
pub(super) fn axis_over(name: impl Into<String>, extent: &PrimExpr) -> Ref<Var> {
    Var::prim(name, extent.dtype())
}

/// A body with the indices of its reads simplified.
fn simplify_reads(axes: &[Ref<Var>], shape: &[PrimExpr], body: Body) -> Body {
    let mut reads = Reads(Analyzer::new());
    axes.iter()
        .zip(shape)
        .for_each(|(axis, extent)| reads.0.bind(axis, prim::int_of(extent.dtype(), 0), extent.clone()));
    match body {
        Body::Element(value) => Body::Element(reads.mutate_prim(&value)),
        Body::Reduction(mut reduction) => {
            for axis in &reduction.axes {
                reads.0.bind(&axis.var, prim::int_of(axis.extent.dtype(), 0), axis.extent.clone());
            }
            reduction.values = reads.mutate_prims(&reduction.values);
            reduction.combined = reads.mutate_prims(&reduction.combined);
            Body::Reduction(reduction)
        }
    }
}

/// Simplifies the indices of loads, and nothing else.
struct Reads(Analyzer);

impl PrimMutator for Reads {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Load(load) => {
                let indices: Vec<PrimExpr> = load.indices.iter().map(|i| self.0.simplify(i)).collect();
                prim::load(&load.buffer, indices)
            }
            other => self.remake_prim(other),
        }
    }
}

/// The tensor whose element at the given axis values is what `f` says.
pub fn compute<B: Into<Body>>(
    name: impl Into<String>,
    shape: impl IntoIterator<Item = impl Into<PrimExpr>>,
    f: impl FnOnce(&[PrimExpr]) -> B,
) -> Tensor {
    Compute::new(name, shape).build(f)
}

/// Several tensors of one shape from one block, as an argmax computes its index and its value together.
pub fn compute_multi<B: Into<Bodies>>(
    name: impl Into<String>,
    shape: impl IntoIterator<Item = impl Into<PrimExpr>>,
    f: impl FnOnce(&[PrimExpr]) -> B,
) -> Vec<Tensor> {
    Compute::new(name, shape).build_multi(f)
}

/// Tensors that statements fill: `body` gets the buffers of the inputs and of the outputs, in order. For what no
/// expression over axes can say, such as a sort or a running sum. `outputs` are name, shape and dtype of each result.
pub fn extern_stage(
    name: impl Into<String>,
    inputs: &[Tensor],
    outputs: impl IntoIterator<Item = (String, Vec<PrimExpr>, DataType)>,
    body: impl FnOnce(&[Ref<Buffer>], &[Ref<Buffer>]) -> Stmt,
) -> Vec<Tensor> {
    extern_stage_over(name, inputs, outputs, [None, None], body)
}

/// What [`extern_stage`] makes of statements over buffers of one's own, which are kept with it ([`Tensor::written_over`]).
pub fn extern_stage_over(
    name: impl Into<String>,
    inputs: &[Tensor],
    outputs: impl IntoIterator<Item = (String, Vec<PrimExpr>, DataType)>,
    given: [Option<Vec<Ref<Buffer>>>; 2],
    body: impl FnOnce(&[Ref<Buffer>], &[Ref<Buffer>]) -> Stmt,
) -> Vec<Tensor> {
    filled(StageForm::Extern, name, inputs, outputs, given, body)
}

/// What [`extern_stage`] makes, in a form that is said.
pub(super) fn filled(
    form: StageForm,
    name: impl Into<String>,
    inputs: &[Tensor],
    outputs: impl IntoIterator<Item = (String, Vec<PrimExpr>, DataType)>,
    given: [Option<Vec<Ref<Buffer>>>; 2],
    body: impl FnOnce(&[Ref<Buffer>], &[Ref<Buffer>]) -> Stmt,
) -> Vec<Tensor> {
    let formal: Vec<Ref<Buffer>> =
        outputs.into_iter().map(|(name, shape, dtype)| Buffer::new(name, dtype, shape)).collect();
    let sources: Vec<Ref<Buffer>> = inputs.iter().map(|t| t.buffer().clone()).collect();
    let body = body(&sources, &formal);
    let [ins, outs] = given;
    let given = [ins.unwrap_or_else(|| sources.clone()), outs.unwrap_or_else(|| formal.clone())];
    let kind = StageKind::Extern { inputs: sources, outputs: formal.clone(), body };
    let stage = Ref::new(Stage {
        name: name.into(),
        kind,
        axes: Vec::new(),
        attrs: Attrs::new(),
        tag: String::new(),
        form,
        given,
    });
    let output = |(i, b): (usize, &Ref<Buffer>)| Tensor::output_of(stage.clone(), i, b.name.clone(), b.dtype, &b.shape);
    formal.iter().enumerate().map(output).collect()
}
