//! Errors both ways: kinds become exception types, and a Python exception that passes through compiled code comes out as
//! the very same object, with its traceback.

use pyo3::exceptions::*;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTraceback, PyTuple, PyType};
use relaxide::ffi::Error;
use relaxide::vm::SHAPE_GUARD_ERROR;

use crate::opaque;

/// The exception types of kinds, those of Python and those that users registered.
fn classes(py: Python<'_>) -> &Bound<'_, PyDict> {
    static CLASSES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let fill = || {
        let classes = PyDict::new(py);
        let own: [Bound<'_, PyType>; 24] = [
            py.get_type::<PyValueError>(),
            py.get_type::<PyTypeError>(),
            py.get_type::<PyIndexError>(),
            py.get_type::<PyKeyError>(),
            py.get_type::<PyAttributeError>(),
            py.get_type::<PyRuntimeError>(),
            py.get_type::<PyNotImplementedError>(),
            py.get_type::<PyOverflowError>(),
            py.get_type::<PyMemoryError>(),
            py.get_type::<PyOSError>(),
            py.get_type::<PySyntaxError>(),
            py.get_type::<PyAssertionError>(),
            py.get_type::<PyStopIteration>(),
            py.get_type::<PyBufferError>(),
            py.get_type::<PyRecursionError>(),
            py.get_type::<PyTimeoutError>(),
            py.get_type::<PyFileNotFoundError>(),
            py.get_type::<PyFileExistsError>(),
            py.get_type::<PyPermissionError>(),
            py.get_type::<PyIsADirectoryError>(),
            py.get_type::<PyNotADirectoryError>(),
            py.get_type::<PyConnectionError>(),
            py.get_type::<PyEOFError>(),
            py.get_type::<PyZeroDivisionError>(),
        ];
        for class in own {
            classes.set_item(class.name()?, class)?;
        }
        let (shape, guard) = shape_errors(py)?;
        classes.set_item("ShapeError", shape)?;
        classes.set_item(SHAPE_GUARD_ERROR, guard)?;
        Ok::<_, PyErr>(classes.unbind())
    };
    // A dictionary of names cannot fail to be made but for lack of memory, which leaves it empty.
    CLASSES.get_or_try_init(py, fill).unwrap_or_else(|_| CLASSES.get_or_init(py, || PyDict::new(py).unbind())).bind(py)
}

/// The classes of errors about the shapes of a call: the first is what TVM raises, and what Python users expect; the second is of lengths
/// that the program was not compiled for, though its model allows them.
fn shape_errors(py: Python<'_>) -> PyResult<(Bound<'_, PyAny>, Bound<'_, PyAny>)> {
    let bases = PyTuple::new(py, [py.get_type::<PyValueError>(), py.get_type::<PyRuntimeError>()])?;
    let shape = class(py, "ShapeError", &bases, "A value has another shape than the program expects.")?;
    let doc = "A value has lengths that the program was not compiled for, though its model allows them.";
    let guard = class(py, SHAPE_GUARD_ERROR, &PyTuple::new(py, [&shape])?, doc)?;
    Ok((shape, guard))
}

fn class<'py>(py: Python<'py>, name: &str, bases: &Bound<'py, PyTuple>, doc: &str) -> PyResult<Bound<'py, PyAny>> {
    let members = PyDict::new(py);
    members.set_item("__module__", "relaxide")?;
    members.set_item("__doc__", doc)?;
    py.get_type::<PyType>().call1((name, bases, members))
}

/// An error as an exception.
#[cold]
pub fn to_py(error: Error) -> PyErr {
    Python::attach(|py| {
        if let Some(original) = opaque::exception_of(py, &error) {
            return PyErr::from_value(original);
        }
        // The interpreter has its exception set already, an interrupt for example.
        if error.kind() == relaxide::ffi::signal::ALREADY_SET
            && let Some(pending) = PyErr::take(py)
        {
            return pending;
        }
        match classes(py).get_item(error.kind()) {
            Ok(Some(class)) => class.call1((error.message(),)).map_or_else(|failed| failed, PyErr::from_value),
            _ => PyRuntimeError::new_err(format!("{}: {}", error.kind(), error.message())),
        }
    })
}

/// An exception as an error. The exception itself goes along, so that its traceback is not lost.
#[cold]
pub fn from_py(py: Python<'_>, exception: PyErr) -> Error {
    let kind = exception.get_type(py).name().map_or_else(|_| "RuntimeError".into(), |name| name.to_string());
    let message = exception.value(py).str().map_or_else(|_| String::new(), |text| text.to_string());
    let trace = exception.traceback(py);
    if let Some(trace) = &trace {
        // Before 3.12 an exception on its way does not know its own traceback; it comes out again as an object alone.
        let _ = exception.value(py).setattr("__traceback__", trace);
    }
    let trace = trace.and_then(|trace| backtrace(&trace).ok()).unwrap_or_default();
    let original = opaque::wrap(exception.value(py).as_any()).ok();
    Error::with_backtrace(kind, message, &trace, None, original)
}

/// A traceback as text, most recent call first, in the form that the interface prescribes.
fn backtrace(trace: &Bound<'_, PyTraceback>) -> PyResult<String> {
    let mut lines = Vec::new();
    let mut next = Some(trace.clone().into_any());
    while let Some(entry) = next {
        let code = entry.getattr("tb_frame")?.getattr("f_code")?;
        let (file, function) = (code.getattr("co_filename")?, code.getattr("co_name")?);
        lines.push(format!("  File \"{file}\", line {}, in {function}\n", entry.getattr("tb_lineno")?));
        next = Some(entry.getattr("tb_next")?).filter(|next| !next.is_none());
    }
    lines.reverse();
    Ok(lines.concat())
}

/// Makes a class the exception of a kind.
#[pyfunction]
fn register_error_class(name: &str, class: &Bound<'_, PyType>) -> PyResult<()> {
    classes(class.py()).set_item(name, class)
}

/// The text that a program was read from: a file's, a notebook's, whatever Python's line cache knows.
pub fn program_text(path: &str) -> Option<String> {
    Python::attach(|py| {
        let lines = py.import("linecache").ok()?.call_method1("getlines", (path,)).ok()?;
        let lines: Vec<String> = lines.extract().ok()?;
        (!lines.is_empty()).then(|| lines.concat())
    })
}

/// Any of the compiler's errors as an exception.
pub fn compiler(error: relaxide::Error) -> PyErr {
    let text = error.diagnostic(program_text).to_string();
    Python::attach(|py| match classes(py).get_item(error.kind()) {
        Ok(Some(class)) => class.call1((text,)).map_or_else(|failed| failed, PyErr::from_value),
        _ => PyRuntimeError::new_err(text),
    })
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("ShapeGuardError", classes(m.py()).get_item(SHAPE_GUARD_ERROR)?)?;
    m.add_function(wrap_pyfunction!(register_error_class, m)?)
}
