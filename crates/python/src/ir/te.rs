//! The compute language to Python: tensors by an expression for each element, and kernels of them.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use relaxide::ffi::{Any, DataType, Field, Ref};
use relaxide::ir::Buffer;
use relaxide::ir::prim::{self, PrimExpr};
use relaxide::relax::op::KernelForm;
use relaxide::tir::{Stmt, te};

use super::args;
use crate::device::data_type;
use crate::{convert, error};

/// A tensor of a compute graph.
#[pyclass(frozen, subclass, from_py_object, module = "relaxide.te")]
#[derive(Clone)]
pub struct TeTensor(pub te::Tensor);

/// An axis that a reduction runs over, and the value that it begins at.
#[pyclass(frozen, from_py_object, module = "relaxide.te")]
#[derive(Clone)]
pub struct ReduceAxis(te::ReduceAxis, PrimExpr);

impl ReduceAxis {
    /// The axis as an index.
    fn index(&self) -> PrimExpr {
        prim::add(self.0.var(), self.1.clone())
    }
}

/// A reduction, which is the whole body of a compute.
#[pyclass(frozen, from_py_object, module = "relaxide.te")]
#[derive(Clone)]
pub struct Reduction(te::Reduction);

fn scalar(value: &Bound<'_, PyAny>) -> PyResult<PrimExpr> {
    if let Ok(axis) = value.extract::<ReduceAxis>() {
        return Ok(axis.index());
    }
    args::prim_expr(convert::from_py(value)?.as_view()).map_err(error::to_py)
}

fn scalars(value: &Bound<'_, PyAny>) -> PyResult<Vec<PrimExpr>> {
    let items = value.try_iter()?.map(|item| scalar(&item?)).collect::<PyResult<Vec<_>>>()?;
    Ok(items)
}

fn give<'py>(py: Python<'py>, value: impl Into<Any>) -> PyResult<Bound<'py, PyAny>> {
    convert::to_py(py, value.into())
}

#[pymethods]
impl TeTensor {
    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// Its element type.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        convert::data_type(py, self.0.dtype())
    }

    /// How many dimensions it has.
    #[getter]
    fn ndim(&self) -> usize {
        self.0.ndim()
    }

    /// Its dimensions.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.shape().iter().map(|dim| give(py, dim.clone())).collect::<PyResult<Vec<_>>>()?)
    }

    /// One element.
    #[pyo3(signature = (*indices))]
    fn __call__<'py>(&self, py: Python<'py>, indices: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        if indices.len() != self.0.ndim() {
            let message = format!("{} has {} dimensions, not {}", self.0.name(), self.0.ndim(), indices.len());
            return Err(PyValueError::new_err(message));
        }
        let index = |(index, dim): (PrimExpr, &PrimExpr)| match index.as_int() {
            // A plain number counts as the dimension does.
            Some(number) if prim::holds(dim.dtype(), number) => prim::int_of(dim.dtype(), number),
            _ => index,
        };
        let indices: Vec<PrimExpr> = scalars(indices)?.into_iter().zip(self.0.shape()).map(index).collect();
        give(py, self.0.at(&indices))
    }

    /// The name of the stage that produces it.
    #[getter]
    fn _stage_name(&self) -> &str {
        self.0.stage_name()
    }

    /// Which of its stage's outputs it is.
    #[getter]
    fn value_index(&self) -> usize {
        self.0.index()
    }

    /// How its stage makes it: `placeholder`, `compute`, `extern` or `scan`.
    #[getter]
    fn _stage_form(&self) -> &'static str {
        match self.0.form() {
            te::StageForm::Placeholder => "placeholder",
            te::StageForm::Compute => "compute",
            te::StageForm::Extern => "extern",
            te::StageForm::Scan => "scan",
        }
    }

    /// The buffer that names it in what is said of a compute.
    #[getter]
    fn _buffer<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        give(py, self.0.buffer().clone())
    }

    /// The annotations of its stage.
    #[getter]
    fn _stage_attrs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        convert::to_py(py, self.0.attrs().to_any())
    }

    /// The tag of its stage.
    #[getter]
    fn _stage_tag(&self) -> &str {
        self.0.tag()
    }

    /// What its stage computes for an element.
    #[getter]
    fn _stage_body<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        match self.0.body() {
            None => Ok(Vec::new()),
            Some(te::Bodies::Elements(values)) => values.into_iter().map(|value| give(py, value)).collect(),
            Some(te::Bodies::Reduction(made)) => Ok(vec![Bound::new(py, Reduction(made))?.into_any()]),
        }
    }

    /// The tensors that its stage reads.
    #[getter]
    fn _stage_inputs(&self) -> Vec<TeTensor> {
        self.0.inputs().into_iter().map(TeTensor).collect()
    }

    /// The buffers that the statements of its stage were written over: those of inputs, and those of outputs.
    #[getter]
    fn _written_over<'py>(&self, py: Python<'py>) -> PyResult<Vec<Vec<Bound<'py, PyAny>>>> {
        let list = |buffers: Vec<Ref<Buffer>>| buffers.into_iter().map(|buffer| give(py, buffer)).collect();
        self.0.written_over().into_iter().map(list).collect()
    }

    /// The axes over its elements.
    #[getter]
    fn _axes<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.0.axes().into_iter().map(|axis| give(py, axis)).collect()
    }

    /// The axes that its elements are combined over.
    #[getter]
    fn _reduce_axes(&self) -> Vec<ReduceAxis> {
        self.0
            .reduce_axes()
            .into_iter()
            .map(|axis| {
                let begin = prim::int_of(axis.extent().dtype(), 0);
                ReduceAxis(axis, begin)
            })
            .collect()
    }

    fn __repr__(&self) -> String {
        let dims: Vec<String> = self.0.shape().iter().map(relaxide::script::print_prim).collect();
        format!("Tensor(shape=[{}], name={}, dtype={})", dims.join(", "), self.0.name(), self.0.dtype())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.extract::<TeTensor>().is_ok_and(|other| other.0 == self.0)
    }

    fn __hash__(&self) -> usize {
        Ref::as_ptr(self.0.buffer()) as usize >> 4
    }
}

#[pymethods]
impl ReduceAxis {
    /// The variable.
    #[getter]
    fn var<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        give(py, self.0.var())
    }

    /// How many values it takes.
    #[getter]
    fn extent<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        give(py, self.0.extent().clone())
    }

    /// The axis as an index, where it stands in an expression.
    fn asobject<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        give(py, self.index())
    }
}

#[pyfunction]
fn te_placeholder(shape: &Bound<'_, PyAny>, dtype: &Bound<'_, PyAny>, name: &str) -> PyResult<TeTensor> {
    Ok(TeTensor(te::placeholder(name, scalars(shape)?, data_type(dtype)?)))
}

/// What a body gives for each output.
fn bodies(value: &Bound<'_, PyAny>) -> PyResult<te::Bodies> {
    if let Ok(reduction) = value.extract::<Reduction>() {
        return Ok(te::Bodies::Reduction(reduction.0));
    }
    if value.is_instance_of::<PyTuple>() || value.is_instance_of::<PyList>() {
        return Ok(te::Bodies::Elements(scalars(value)?));
    }
    Ok(te::Bodies::Elements(vec![scalar(value)?]))
}

/// The tensors whose elements at some axis values are what a function says: one, or as many as it gives at once.
#[pyfunction]
fn te_compute<'py>(
    py: Python<'py>,
    shape: &Bound<'py, PyAny>,
    axes: Vec<String>,
    fcompute: &Bound<'py, PyAny>,
    name: &str,
    tag: &str,
    attrs: &Bound<'py, PyAny>,
) -> PyResult<Vec<TeTensor>> {
    let names: Vec<&str> = axes.iter().map(String::as_str).collect();
    let mut compute = te::Compute::new(name, scalars(shape)?).axes(&names).tagged(tag);
    for (key, value) in args::attrs(convert::from_py(attrs)?.as_view()).map_err(error::to_py)?.0 {
        compute = compute.annotate(key, value);
    }
    let call = |axes: &[PrimExpr]| {
        let axes = axes.iter().map(|axis| give(py, axis.clone())).collect::<PyResult<Vec<_>>>()?;
        bodies(&fcompute.call1(PyTuple::new(py, axes)?)?)
    };
    // The function runs inside of the builder, which takes no errors from it: one waits here.
    let mut failed = None;
    let tensors = compute.build_multi(|axes| {
        call(axes).unwrap_or_else(|error| {
            failed = Some(error);
            te::Bodies::Elements(Vec::new())
        })
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(tensors.into_iter().map(TeTensor).collect()),
    }
}

/// Buffers that a program has, if it gives any.
type Buffers<'py> = Option<Vec<Bound<'py, PyAny>>>;

/// The tensors that statements fill: `body` gets buffers for the inputs and for the outputs and gives a statement.
#[pyfunction]
fn te_extern<'py>(
    py: Python<'py>,
    name: &str,
    inputs: Vec<TeTensor>,
    outputs: Vec<(String, Bound<'py, PyAny>, Bound<'py, PyAny>)>,
    given: (Buffers<'py>, Buffers<'py>),
    body: &Bound<'py, PyAny>,
) -> PyResult<Vec<TeTensor>> {
    let inputs: Vec<te::Tensor> = inputs.into_iter().map(|tensor| tensor.0).collect();
    let described = outputs.into_iter().map(|(name, shape, dtype)| Ok((name, scalars(&shape)?, data_type(&dtype)?)));
    let described = described.collect::<PyResult<Vec<_>>>()?;
    let call = |ins: &[Ref<Buffer>], outs: &[Ref<Buffer>]| {
        let list = |buffers: &[Ref<Buffer>]| {
            let buffers = buffers.iter().map(|buffer| give(py, buffer.clone())).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, buffers)
        };
        let made = body.call1((list(ins)?, list(outs)?))?;
        convert::from_py(&made)?.to::<Stmt>().map_err(error::to_py)
    };
    let buffers = |list: Buffers<'py>| {
        let buffer = |object: Bound<'py, PyAny>| convert::from_py(&object)?.to::<Ref<Buffer>>().map_err(error::to_py);
        list.map(|list| list.into_iter().map(buffer).collect::<PyResult<Vec<_>>>()).transpose()
    };
    let given = [buffers(given.0)?, buffers(given.1)?];
    let mut failed = None;
    let tensors = te::extern_stage_over(name, &inputs, described, given, |ins, outs| {
        call(ins, outs).unwrap_or_else(|error| {
            failed = Some(error);
            Stmt::nop()
        })
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(tensors.into_iter().map(TeTensor).collect()),
    }
}

/// The results of a scan, one for each state.
#[pyfunction]
fn te_scan(name: &str, init: Vec<TeTensor>, update: Vec<TeTensor>, state: Vec<TeTensor>) -> PyResult<Vec<TeTensor>> {
    let of = |tensors: Vec<TeTensor>| tensors.into_iter().map(|tensor| tensor.0).collect::<Vec<_>>();
    let made = te::scan(name, &of(init), &of(update), &of(state));
    let made = made.map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(made.into_iter().map(TeTensor).collect())
}

/// A reduction of one's own: `fcombine` makes new results of those so far and of the values.
#[pyfunction]
fn te_combine<'py>(
    py: Python<'py>,
    values: &Bound<'py, PyAny>,
    identities: &Bound<'py, PyAny>,
    axes: Vec<ReduceAxis>,
    fcombine: &Bound<'py, PyAny>,
) -> PyResult<Reduction> {
    let mut failed = None;
    let call = |so_far: &[PrimExpr], values: &[PrimExpr]| {
        let list = |values: &[PrimExpr]| {
            let values = values.iter().map(|value| give(py, value.clone())).collect::<PyResult<Vec<_>>>()?;
            PyTuple::new(py, values)
        };
        scalars(&fcombine.call1((list(so_far)?, list(values)?))?)
    };
    let axes: Vec<te::ReduceAxis> = axes.into_iter().map(|axis| axis.0).collect();
    let made = te::combine(scalars(identities)?, scalars(values)?, axes, |so_far, values| {
        call(so_far, values).unwrap_or_else(|error| {
            failed = Some(error);
            Vec::new()
        })
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(Reduction(made)),
    }
}

#[pyfunction]
fn te_reduce_axis(begin: &Bound<'_, PyAny>, extent: &Bound<'_, PyAny>, name: &str) -> PyResult<ReduceAxis> {
    let extent = scalar(extent)?;
    let begin = prim::cast(extent.dtype(), scalar(begin)?);
    Ok(ReduceAxis(te::reduce_axis_named(name, extent), begin))
}

#[pyfunction]
fn te_reduce(kind: &str, value: &Bound<'_, PyAny>, axes: Vec<ReduceAxis>) -> PyResult<Reduction> {
    let value = scalar(value)?;
    let axes: Vec<te::ReduceAxis> = axes.into_iter().map(|axis| axis.0).collect();
    Ok(Reduction(match kind {
        "sum" => te::sum(value, axes),
        "prod" => te::prod(value, axes),
        "max" => te::max(value, axes),
        "min" => te::min(value, axes),
        _ => return Err(PyValueError::new_err(format!("there is no reduction {kind}"))),
    }))
}

/// What changes nothing in a reduction of scalars like one.
#[pyfunction]
fn te_identity<'py>(py: Python<'py>, kind: &str, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let dtype = scalar(value)?.dtype();
    give(
        py,
        match kind {
            "sum" => prim::constant(dtype, 0.0),
            "prod" => prim::constant(dtype, 1.0),
            "max" => prim::lowest(dtype),
            "min" => prim::highest(dtype),
            _ => return Err(PyValueError::new_err(format!("there is no reduction {kind}"))),
        },
    )
}

/// The kernel of tensors: inputs first, then outputs.
#[pyfunction]
fn te_create_prim_func<'py>(
    py: Python<'py>,
    args: Vec<Bound<'py, PyAny>>,
    index_dtype: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let tensors = args.iter().filter_map(|arg| arg.extract::<TeTensor>().ok().map(|tensor| tensor.0));
    let tensors: Vec<te::Tensor> = tensors.collect();
    let mut kernel = te::create_simplified_over(&tensors, Vec::new(), DataType::int(32))
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    // Scalars that are given among the tensors are parameters where they are given.
    for (at, arg) in args.iter().enumerate().filter(|(_, arg)| arg.extract::<TeTensor>().is_err()) {
        let PrimExpr::Var(var) = scalar(arg)? else {
            return Err(PyTypeError::new_err("the arguments of a kernel are tensors and variables"));
        };
        if let Some(now) = kernel.params.iter().position(|param| *param == var) {
            kernel.params.remove(now);
            kernel.buffers.remove(now);
        }
        kernel.params.insert(at, var);
        kernel.buffers.insert(at, None);
    }
    let Some(index_dtype) = index_dtype else { return give(py, Ref::new(kernel)) };
    let dtype = data_type(&index_dtype)?;
    if !dtype.is_int() || dtype.lanes != 1 {
        return Err(PyValueError::new_err(format!("indices are integers such as int64, not {dtype}")));
    }
    give(py, Ref::new(te::with_index_type(&kernel, dtype)))
}

/// The kernel of inputs and outputs, and the scalars that it takes between them.
#[pyfunction]
fn te_make_kernel<'py>(
    py: Python<'py>,
    name: &str,
    inputs: Vec<TeTensor>,
    outputs: Vec<TeTensor>,
) -> PyResult<(Bound<'py, PyAny>, Vec<Bound<'py, PyAny>>)> {
    let of = |tensors: Vec<TeTensor>| tensors.into_iter().map(|tensor| tensor.0).collect();
    let (kernel, scalars) =
        relaxide::relax::builder::make_kernel(name, of(inputs), of(outputs), Vec::new(), KernelForm::Plain)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
    let scalars = scalars.into_iter().map(|var| give(py, var)).collect::<PyResult<Vec<_>>>()?;
    Ok((give(py, Ref::new(kernel))?, scalars))
}

/// The element type of a scalar expression.
#[pyfunction]
fn te_dtype<'py>(py: Python<'py>, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let dtype: DataType = scalar(value)?.dtype();
    convert::data_type(py, dtype)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<TeTensor>()?;
    m.add_class::<ReduceAxis>()?;
    m.add_class::<Reduction>()?;
    m.add_function(wrap_pyfunction!(te_placeholder, m)?)?;
    m.add_function(wrap_pyfunction!(te_compute, m)?)?;
    for function in [
        wrap_pyfunction!(te_extern, m)?,
        wrap_pyfunction!(te_scan, m)?,
        wrap_pyfunction!(te_combine, m)?,
        wrap_pyfunction!(te_identity, m)?,
    ] {
        m.add_function(function)?;
    }
    m.add_function(wrap_pyfunction!(te_reduce_axis, m)?)?;
    m.add_function(wrap_pyfunction!(te_reduce, m)?)?;
    m.add_function(wrap_pyfunction!(te_create_prim_func, m)?)?;
    m.add_function(wrap_pyfunction!(te_make_kernel, m)?)?;
    m.add_function(wrap_pyfunction!(te_dtype, m)?)
}
