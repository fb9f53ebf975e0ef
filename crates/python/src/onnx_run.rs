//! A run of a session of `relaxide.onnxruntime`, from arrays to arrays, without steps in Python: the usual call, of which the most is
//! asked. What is not usual (lists, values of other libraries, wrong lengths, texts) is left to Python, which has the words for it.

use std::collections::BTreeMap;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyType};
use relaxide::ffi::{Any, AnyView, Array, DataType};
use relaxide::onnx::signature::{Extent, ValueSignature};

use crate::array::{Plain, array_of};
use crate::function::Function;
use crate::{convert, error};

/// What a session takes and gives, and how it is checked.
#[pyclass(frozen)]
struct OnnxRun {
    inputs: Vec<Input>,
    /// How many values the program gives.
    outputs: usize,
    /// Lengths of named dimensions that were fixed.
    fixed: BTreeMap<String, i64>,
    /// The class of what is raised for a value that does not fit.
    refused: Py<PyType>,
    /// What makes arrays of results that are no plain tensors.
    to_numpy: Py<PyAny>,
}

struct Input {
    name: Py<PyString>,
    signature: ValueSignature,
    /// The elements of a tensor, where it is one that numpy has.
    dtype: Option<DataType>,
}

/// Each as name, type, its elements as the runtime names them (or nothing), and dimensions: numbers, names, and `None`.
type Described<'py> = (Bound<'py, PyString>, String, Option<String>, Vec<Bound<'py, PyAny>>);

fn input(described: Described<'_>) -> PyResult<Input> {
    let (name, type_name, element, dims) = described;
    let extent = |dim: Bound<'_, PyAny>| match dim.extract::<i64>() {
        Ok(number) => Extent::Known(number),
        Err(_) => dim.extract::<String>().map_or(Extent::Unknown, Extent::Named),
    };
    let shape = dims.into_iter().map(extent).collect();
    let dtype = element.map(|element| element.parse::<DataType>()).transpose().map_err(error::to_py)?;
    Ok(Input { signature: ValueSignature { name: name.to_string(), type_name, shape }, name: name.unbind(), dtype })
}

#[pymethods]
impl OnnxRun {
    #[new]
    fn new(
        inputs: Vec<Described<'_>>,
        outputs: usize,
        fixed: BTreeMap<String, i64>,
        refused: Py<PyType>,
        to_numpy: Py<PyAny>,
    ) -> PyResult<OnnxRun> {
        let inputs = inputs.into_iter().map(input).collect::<PyResult<_>>()?;
        Ok(OnnxRun { inputs, outputs, fixed, refused, to_numpy })
    }

    /// Refuses tensors of other ranks or lengths than the model's; false where a name stands for two lengths. Values are in the order of
    /// the inputs.
    fn fits(&self, py: Python<'_>, values: &Bound<'_, PyList>) -> PyResult<bool> {
        let (mut named, mut fits) = (Vec::new(), true);
        for (input, value) in self.inputs.iter().zip(values) {
            if !input.signature.type_name.starts_with("tensor(") || value.is_none() {
                continue;
            }
            let shape: Vec<i64> = value.getattr("shape")?.extract()?;
            let fit = input.signature.fits(&shape, &self.fixed, &mut named);
            fits &= fit.map_err(|misfit| PyErr::from_type(self.refused.bind(py).clone(), misfit.to_string()))?;
        }
        Ok(fits)
    }

    /// Calls a function with the arrays of a dictionary and gives the outputs of those numbers as arrays; `None`, without a call, where
    /// that is not as simple.
    fn run<'py>(
        &self,
        py: Python<'py>,
        function: &Bound<'py, Function>,
        feed: &Bound<'py, PyDict>,
        wanted: &Bound<'py, PyList>,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        let Some(args) = self.arguments(py, feed)? else { return Ok(None) };
        let views: Vec<AnyView<'_>> = args.iter().map(Any::as_view).collect();
        let function = &function.get().0;
        let result = py.detach(|| function.call(&views)).map_err(error::to_py)?;
        let results: Vec<Any> = match self.outputs {
            1 => vec![result],
            _ => result.to::<Array>().map_err(error::to_py)?.to_vec(),
        };
        let made = PyList::empty(py);
        for number in wanted {
            let number: usize = number.extract()?;
            let missing = || PyTypeError::new_err(format!("the program gave {} values", results.len()));
            made.append(self.array(py, results.get(number).ok_or_else(missing)?)?)?;
        }
        Ok(Some(made))
    }
}

impl OnnxRun {
    /// Arguments in the order of the inputs; nothing where one is not an array as the model wants it.
    fn arguments(&self, py: Python<'_>, feed: &Bound<'_, PyDict>) -> PyResult<Option<Vec<Any>>> {
        if feed.len() != self.inputs.len() {
            return Ok(None);
        }
        let mut args = Vec::with_capacity(self.inputs.len());
        let mut named = Vec::new();
        for input in &self.inputs {
            let Some(value) = feed.get_item(input.name.bind(py))? else { return Ok(None) };
            let Some(array) = Plain::of(&value).filter(|array| Some(array.dtype) == input.dtype) else {
                return Ok(None);
            };
            if !matches!(input.signature.fits(array.shape, &self.fixed, &mut named), Ok(true)) {
                return Ok(None);
            }
            args.push(array.argument()?.into());
        }
        Ok(Some(args))
    }

    fn array<'py>(&self, py: Python<'py>, result: &Any) -> PyResult<Bound<'py, PyAny>> {
        if let Some(tensor) = result.as_tensor()
            && let Some(array) = array_of(py, tensor)?
        {
            return Ok(array);
        }
        self.to_numpy.bind(py).call1((convert::to_py(py, result.clone())?,))
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<OnnxRun>()
}
