//! Schedule primitives to Python: steps by the names of their kinds, traces, and what random variables stand for.
//!
//! All steps go through [`PySchedule::step`]; the Python package gives each its method and its signature.

use std::sync::{Arc, Mutex, MutexGuard};

use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use relaxide::ffi::{Any, Array, Error, Field, FromAny, Object, Ref};
use relaxide::ir::PrimExpr;
use relaxide::ir::attrs::AttrValue;
use relaxide::tir::s_tir::instruction::{Instruction, kind};
use relaxide::tir::s_tir::{LoopRV, Mark, Replacement, Rv, SBlockRV, Schedule, ScheduleError, StepError, Trace};
use relaxide::tir::{For, SBlock, SBlockRealize, Stmt};

use super::module::IRModule;
use crate::{convert, error};

/// A schedule. Steps on one schedule take turns.
#[pyclass(frozen, subclass, name = "Schedule", module = "relaxide.s_tir")]
pub struct PySchedule(Mutex<Schedule>);

/// The steps of a schedule.
#[pyclass(frozen, subclass, name = "Trace", module = "relaxide.s_tir")]
pub struct PyTrace(Mutex<Arc<Trace>>);

/// The kind, inputs, constants, results and decision of a step.
type StepRow<'py> =
    (String, Vec<Bound<'py, PyAny>>, Vec<Bound<'py, PyAny>>, Vec<Bound<'py, PyAny>>, Option<Bound<'py, PyAny>>);

/// A step that Python describes.
fn step_of(row: StepRow<'_>) -> PyResult<(Instruction, Option<AttrValue>)> {
    let (name, inputs, attrs, outputs, decision) = row;
    let kind = relaxide::tir::s_tir::instruction::kind(&name)
        .ok_or_else(|| PyValueError::new_err(format!("there is no step {name}")))?;
    let no_rv = || PyTypeError::new_err(format!("a result of {name} is no random variable"));
    let outputs = values(outputs)?.iter().map(|rv| Rv::of(rv).ok_or_else(no_rv)).collect::<PyResult<Vec<_>>>()?;
    let plain = |given| Ok::<_, PyErr>(values(given)?.into_iter().map(literal).collect());
    let decision = decision.filter(|d| !d.is_none()).map(|d| value(&d)).transpose()?;
    Ok((Instruction { kind, inputs: plain(inputs)?, attrs: plain(attrs)?, outputs }, decision.map(literal)))
}

/// An integer or a bool that was given as an expression.
fn literal(given: AttrValue) -> AttrValue {
    match given {
        AttrValue::List(list) => AttrValue::List(list.into_iter().map(literal).collect()),
        AttrValue::Prim(e) => match e.as_int() {
            Some(value) if e.dtype().is_bool() => AttrValue::Bool(value != 0),
            Some(value) => AttrValue::Int(value),
            None => AttrValue::Prim(e),
        },
        other => other,
    }
}

fn refused(error: StepError) -> PyErr {
    error::to_py(Error::new("ScheduleError", error.to_string()))
}

fn not_there(error: ScheduleError) -> PyErr {
    let kind = match &error {
        ScheduleError::UnknownVariable { .. } => "UnknownVariable",
        _ => "ScheduleError",
    };
    error::to_py(Error::new(kind, error.to_string()))
}

fn value(given: &Bound<'_, PyAny>) -> PyResult<AttrValue> {
    if given.is_none() {
        return Ok(AttrValue::None);
    }
    AttrValue::from_any(convert::from_py(given)?.as_view()).map_err(error::to_py)
}

fn values(given: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<AttrValue>> {
    given.iter().map(value).collect()
}

fn give<'py>(py: Python<'py>, value: impl Into<Any>) -> PyResult<Bound<'py, PyAny>> {
    convert::to_py(py, value.into())
}

fn object<T: Object>(given: &Bound<'_, PyAny>) -> Option<Ref<T>> {
    convert::from_py(given).ok()?.to().ok()
}

fn rv_to_py<'py>(py: Python<'py>, rv: &Rv) -> PyResult<Bound<'py, PyAny>> {
    convert::to_py(py, AttrValue::from(rv).to_any())
}

impl PySchedule {
    fn lock(&self) -> PyResult<MutexGuard<'_, Schedule>> {
        self.0.lock().map_err(|_| PyRuntimeError::new_err("an earlier step of this schedule did not finish"))
    }
}

#[pymethods]
impl PySchedule {
    #[new]
    #[pyo3(signature = (module, seed, checked))]
    fn new(module: &Bound<'_, PyAny>, seed: i64, checked: bool) -> PyResult<PySchedule> {
        let module = module.cast::<IRModule>().map_err(|_| PyTypeError::new_err("a schedule needs an IRModule"))?;
        let module = relaxide::IRModule::clone(&module.get().get());
        let module =
            relaxide::tir::lower::module_of_unit_steps(module, "Schedule").map_err(super::transform::refused)?;
        let mut schedule = Schedule::new(module);
        schedule.seed(seed);
        schedule.set_checked(checked);
        Ok(PySchedule(Mutex::new(schedule)))
    }

    /// Executes a step; the random variables of its results.
    #[pyo3(signature = (name, inputs, attrs, decision=None))]
    fn _step<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        inputs: Vec<Bound<'py, PyAny>>,
        attrs: Vec<Bound<'py, PyAny>>,
        decision: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let kind = kind(name).ok_or_else(|| PyValueError::new_err(format!("there is no step {name}")))?;
        let decision = decision.as_ref().map(value).transpose()?;
        let (inputs, attrs) = (values(inputs)?, values(attrs)?);
        let made = py.detach(|| self.lock()?.step(kind, inputs, attrs, decision).map_err(refused))?;
        made.iter().map(|rv| rv_to_py(py, rv)).collect()
    }

    /// The module as it is now.
    #[getter]
    fn _module(&self) -> PyResult<IRModule> {
        Ok(IRModule::of(Ref::new(self.lock()?.module().clone())))
    }

    /// What was done so far.
    #[getter]
    fn trace(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let trace = PyTrace::of(self.lock()?.trace().clone());
        Ok(py.import("relaxide.s_tir")?.getattr("Trace")?.call1((trace,))?.unbind())
    }

    /// The name of the function that blocks are looked for in.
    #[getter]
    fn _working_on(&self) -> PyResult<Option<String>> {
        Ok(self.lock()?.func_working_on().map(str::to_string))
    }

    fn _work_on(&self, func_name: &str) -> PyResult<()> {
        self.lock()?.work_on(func_name).map_err(not_there)
    }

    /// A schedule of a class at the same point.
    fn _copy<'py>(&self, class: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let made = class.call1((IRModule::of(Ref::default()),))?;
        *made.cast::<PySchedule>()?.get().lock()? = self.lock()?.clone();
        Ok(made)
    }

    /// Whether steps are checked of which legality is asked of the caller.
    #[getter]
    fn _checked(&self) -> PyResult<bool> {
        Ok(self.lock()?.is_checked())
    }

    fn _seed(&self, seed: i64) -> PyResult<()> {
        self.lock()?.seed(seed);
        Ok(())
    }

    fn _fork_seed(&self) -> PyResult<i64> {
        Ok(self.lock()?.fork_seed())
    }

    /// The block, the loop or the number that a random variable stands for.
    fn _get<'py>(&self, py: Python<'py>, rv: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let schedule = self.lock()?;
        if let Some(block) = object::<SBlockRV>(rv) {
            return give(py, schedule.block(&block).map_err(not_there)?);
        }
        if let Some(loop_) = object::<LoopRV>(rv) {
            return give(py, schedule.loop_(&loop_).map_err(not_there)?);
        }
        let e = convert::from_py(rv)?.to::<PrimExpr>().map_err(error::to_py)?;
        match schedule.number(&e) {
            Some(number) => give(py, number),
            None => Err(PyValueError::new_err(format!("the value of {e} is not known"))),
        }
    }

    /// Where a block was sampled to be computed, if that is no loop: `root` or `inline`.
    fn _mark(&self, rv: &Bound<'_, PyAny>) -> PyResult<Option<&'static str>> {
        let mark = object::<LoopRV>(rv).map(|rv| Ok::<_, PyErr>(self.lock()?.mark(&rv))).transpose()?.flatten();
        Ok(mark.map(|mark| if mark == Mark::Root { "root" } else { "inline" }))
    }

    /// Puts a loop or a block in the place of another; pairs of blocks say which took whose place.
    fn _replace(
        &self,
        old: &Bound<'_, PyAny>,
        new: &Bound<'_, PyAny>,
        reuse: Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
    ) -> PyResult<()> {
        let of_block = |block: Ref<SBlock>| {
            let predicate = relaxide::ir::prim::int_of(relaxide::ir::DataType::bool(), 1);
            Stmt::Block(Ref::new(SBlockRealize { iter_values: Vec::new(), predicate, block }))
        };
        let statement = |given: &Bound<'_, PyAny>| {
            let of_loop = object::<For>(given).map(Stmt::For);
            of_loop.or_else(|| object::<SBlockRealize>(given).map(Stmt::Block))
        };
        let place = statement(old).or_else(|| object::<SBlock>(old).map(of_block));
        let place = place.ok_or_else(|| PyTypeError::new_err("what is replaced is a loop or a block"))?;
        let new = match (object::<SBlock>(new), statement(new)) {
            (Some(block), _) => Replacement::Block(block),
            (None, Some(stmt)) => Replacement::Stmt(stmt),
            _ => return Err(PyTypeError::new_err("what takes the place is a loop, a block or an executed block")),
        };
        let pair = |(old, new): &(Bound<'_, PyAny>, Bound<'_, PyAny>)| object::<SBlock>(old).zip(object::<SBlock>(new));
        let reuse: Option<Vec<_>> = reuse.iter().map(pair).collect();
        let reuse = reuse.ok_or_else(|| PyTypeError::new_err("what is reused is a map from blocks to blocks"))?;
        self.lock()?.replace(&place, new, &reuse).map_err(not_there)
    }

    /// Whether a block can be taken apart in what pads and what copies, in front of a loop.
    fn _can_decompose_padding(&self, block: &Bound<'_, PyAny>, loop_: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (Some(block), Some(loop_)) = (object::<SBlockRV>(block), object::<LoopRV>(loop_)) else {
            return Err(PyTypeError::new_err("a block and a loop are needed"));
        };
        Ok(self.lock()?.can_decompose_padding(&block, &loop_))
    }

    /// Forgets a random variable.
    fn _remove(&self, rv: &Bound<'_, PyAny>) -> PyResult<()> {
        let rv = Rv::of(&value(rv)?).ok_or_else(|| PyTypeError::new_err("no random variable"))?;
        self.lock()?.remove_rv(&rv).map_err(not_there)
    }

    /// Executes the steps of a trace.
    fn _apply(&self, py: Python<'_>, trace: &PyTrace, remove_postproc: bool) -> PyResult<()> {
        let trace = trace.now()?;
        py.detach(|| trace.apply_to(&mut *self.lock()?, remove_postproc).map_err(refused))
    }

    /// Executes the steps that lists of names say.
    fn _apply_json(&self, py: Python<'_>, json: &Bound<'_, PyAny>) -> PyResult<()> {
        let json = value(json)?;
        py.detach(|| {
            let mut schedule = self.lock()?;
            Trace::apply_json(&json, &mut schedule).map_err(refused)
        })
    }
}

impl PyTrace {
    fn of(trace: Trace) -> PyTrace {
        PyTrace(Mutex::new(Arc::new(trace)))
    }

    fn lock(&self) -> PyResult<MutexGuard<'_, Arc<Trace>>> {
        self.0.lock().map_err(|_| PyRuntimeError::new_err("a change of this trace did not finish"))
    }

    /// The steps as they are now.
    fn now(&self) -> PyResult<Arc<Trace>> {
        Ok(self.lock()?.clone())
    }
}

#[pymethods]
impl PyTrace {
    #[new]
    #[pyo3(signature = (other))]
    fn new(other: PyRef<'_, PyTrace>) -> PyResult<PyTrace> {
        Ok(PyTrace(Mutex::new(other.now()?)))
    }

    /// A trace of steps that are described.
    #[staticmethod]
    fn _of_rows(rows: Vec<StepRow<'_>>) -> PyResult<PyTrace> {
        let mut trace = Trace::default();
        for row in rows {
            let (step, decision) = step_of(row)?;
            trace.append(step, decision);
        }
        Ok(PyTrace::of(trace))
    }

    /// Adds a step.
    fn _append(&self, row: StepRow<'_>) -> PyResult<()> {
        let (step, decision) = step_of(row)?;
        Arc::make_mut(&mut *self.lock()?).append(step, decision);
        Ok(())
    }

    /// Takes the last step away.
    fn _pop(&self) -> PyResult<()> {
        Arc::make_mut(&mut *self.lock()?).pop();
        Ok(())
    }

    fn as_python(&self, remove_postproc: bool) -> PyResult<Vec<String>> {
        Ok(self.now()?.as_python(remove_postproc))
    }

    fn _as_json<'py>(&self, py: Python<'py>, remove_postproc: bool) -> PyResult<Bound<'py, PyAny>> {
        convert::to_py(py, self.now()?.as_json(remove_postproc).to_any())
    }

    fn _simplified(&self, remove_postproc: bool) -> PyResult<PyTrace> {
        Ok(PyTrace::of(self.now()?.simplified(remove_postproc)))
    }

    /// Kind, inputs, constants, results and decision of each step.
    fn _steps<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let list = |values: &[AttrValue]| Any::from(values.iter().map(Field::to_any).collect::<Array>());
        let row = |(step, decision): &(Instruction, Option<AttrValue>)| {
            let outputs: Vec<AttrValue> = step.outputs.iter().map(AttrValue::from).collect();
            let decision = decision.as_ref().map_or_else(Any::none, Field::to_any);
            let parts = [step.kind.name.into(), list(&step.inputs), list(&step.attrs), list(&outputs), decision];
            convert::to_py(py, parts.into_iter().collect::<Array>().into())
        };
        self.now()?.steps().iter().map(row).collect()
    }

    /// The same steps, of which one decides otherwise.
    fn _with_decision(&self, index: usize, decision: &Bound<'_, PyAny>) -> PyResult<PyTrace> {
        Ok(PyTrace::of(self.now()?.with_decision(index, value(decision)?)))
    }

    /// The steps in front of the mark behind which postprocessing begins.
    fn _before_postproc(&self) -> PyResult<PyTrace> {
        Ok(PyTrace::of(self.now()?.before_postproc()))
    }

    fn __str__(&self) -> PyResult<String> {
        Ok(self.now()?.to_string())
    }
}

/// Names, methods and purity of all kinds of steps.
#[pyfunction]
fn schedule_kinds() -> Vec<(&'static str, &'static str, bool)> {
    relaxide::tir::s_tir::instruction::KINDS.iter().map(|kind| (kind.name, kind.method, kind.is_pure)).collect()
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    SBlockRV::type_index();
    LoopRV::type_index();
    m.add_class::<PySchedule>()?;
    m.add_class::<PyTrace>()?;
    m.add_function(wrap_pyfunction!(schedule_kinds, m)?)
}
