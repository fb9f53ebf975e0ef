//! The one way that all steps go: look up, apply, name the results, write the trace.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::attrs::AttrValue;
use relaxide_ir::prim::PrimExpr;

use super::instruction::{Instruction, InstructionKind};
use super::rv::{LoopRV, Rv, SBlockRV, Value};
use super::{Schedule, ScheduleError, StepError};

/// What a step is given.
pub struct Call<'a> {
    /// Random variables, expressions over them, numbers …
    pub inputs: &'a [AttrValue],
    /// Constants.
    pub attrs: &'a [AttrValue],
    /// What a sampling step is to decide; what it did decide, behind it.
    pub decision: Option<AttrValue>,
}

fn missing(what: &str, index: usize) -> ScheduleError {
    ScheduleError::Operand(format!("{what} {} is missing or not of the kind that is expected", index + 1))
}

impl Call<'_> {
    /// The block at an input.
    pub fn block(&self, index: usize) -> Result<Ref<SBlockRV>, ScheduleError> {
        self.inputs.get(index).and_then(block_rv).ok_or_else(|| missing("a block: operand", index))
    }

    /// The loop at an input.
    pub fn loop_(&self, index: usize) -> Result<Ref<LoopRV>, ScheduleError> {
        self.inputs.get(index).and_then(loop_rv).ok_or_else(|| missing("a loop: operand", index))
    }

    /// All inputs as loops.
    pub fn loops(&self) -> Result<Vec<Ref<LoopRV>>, ScheduleError> {
        (0..self.inputs.len()).map(|i| self.loop_(i)).collect()
    }

    /// An integer at an input.
    pub fn input_int(&self, index: usize) -> Result<i64, ScheduleError> {
        match self.inputs.get(index) {
            Some(AttrValue::Int(v)) => Ok(*v),
            Some(AttrValue::Prim(e)) => e.as_int().ok_or_else(|| missing("an integer: operand", index)),
            _ => Err(missing("an integer: operand", index)),
        }
    }

    /// An object at an input.
    pub fn input_object<T: relaxide_ffi::Object>(&self, index: usize) -> Result<Ref<T>, ScheduleError> {
        match self.inputs.get(index) {
            Some(AttrValue::Object(object)) => object.downcast_ref().cloned().ok_or_else(|| missing("operand", index)),
            _ => Err(missing("operand", index)),
        }
    }

    /// A list of blocks at an input.
    pub fn blocks(&self, index: usize) -> Result<Vec<Ref<SBlockRV>>, ScheduleError> {
        let Some(AttrValue::List(list)) = self.inputs.get(index) else { return Err(missing("blocks: operand", index)) };
        list.iter().map(|item| block_rv(item).ok_or_else(|| missing("blocks: operand", index))).collect()
    }

    /// A flag among the constants.
    pub fn flag(&self, index: usize) -> Result<bool, ScheduleError> {
        self.int(index).map(|v| v != 0)
    }

    /// An integer among the constants.
    pub fn int(&self, index: usize) -> Result<i64, ScheduleError> {
        match self.attrs.get(index) {
            Some(AttrValue::Int(v)) => Ok(*v),
            Some(AttrValue::Bool(v)) => Ok(i64::from(*v)),
            Some(AttrValue::Prim(e)) => e.as_int().ok_or_else(|| missing("an integer: constant", index)),
            _ => Err(missing("an integer: constant", index)),
        }
    }

    /// Text among the constants.
    pub fn str(&self, index: usize) -> Result<&str, ScheduleError> {
        match self.attrs.get(index) {
            Some(AttrValue::Str(v)) => Ok(v),
            _ => Err(missing("a text: constant", index)),
        }
    }

    /// Text among the constants that may be absent.
    pub fn optional_str(&self, index: usize) -> Option<&str> {
        self.attrs.get(index).and(self.str(index).ok())
    }

    /// Integers among the constants.
    pub fn ints(&self, index: usize) -> Result<Vec<i64>, ScheduleError> {
        self.attrs.get(index).and_then(ints_of).ok_or_else(|| missing("integers: constant", index))
    }

    /// An object among the constants.
    pub fn object<T: relaxide_ffi::Object>(&self, index: usize) -> Result<Ref<T>, ScheduleError> {
        match self.attrs.get(index) {
            Some(AttrValue::Object(object)) => object.downcast_ref().cloned().ok_or_else(|| missing("constant", index)),
            _ => Err(missing("constant", index)),
        }
    }
}

/// A list of integers.
pub fn ints_of(value: &AttrValue) -> Option<Vec<i64>> {
    let AttrValue::List(list) = value else { return None };
    list.iter()
        .map(|item| match item {
            AttrValue::Int(v) => Some(*v),
            AttrValue::Prim(e) => e.as_int(),
            _ => None,
        })
        .collect()
}

fn block_rv(operand: &AttrValue) -> Option<Ref<SBlockRV>> {
    match Rv::of(operand)? {
        Rv::Block(block) => Some(block),
        _ => None,
    }
}

fn loop_rv(operand: &AttrValue) -> Option<Ref<LoopRV>> {
    match Rv::of(operand)? {
        Rv::Loop(loop_) => Some(loop_),
        _ => None,
    }
}

impl Schedule {
    /// Executes a step and writes it into the trace.
    pub fn step(
        &mut self,
        kind: &'static InstructionKind,
        inputs: Vec<AttrValue>,
        attrs: Vec<AttrValue>,
        decision: Option<AttrValue>,
    ) -> Result<Vec<Rv>, StepError> {
        let mut call = Call { inputs: &inputs, attrs: &attrs, decision };
        super::early_end::refuse(self, kind, &inputs).map_err(|error| StepError::new(kind.method, error, self))?;
        super::storage_scope::check(kind, &attrs).map_err(|error| StepError::new(kind.method, error, self))?;
        let made = (kind.apply)(self, &mut call).map_err(|error| StepError::new(kind.method, error, self))?;
        let decision = call.decision.take();
        let outputs: Vec<Rv> = made.into_iter().map(|value| self.name(value)).collect();
        self.trace.append(Instruction { kind, inputs, attrs, outputs: outputs.clone() }, decision);
        Ok(outputs)
    }

    /// A random variable for a result.
    fn name(&mut self, value: Value) -> Rv {
        let rv = Rv::fresh(&value);
        match (&rv, value) {
            (Rv::Block(b), Value::Block(func, block)) => drop(self.blocks.insert(b.clone(), (func, Some(block)))),
            (Rv::Loop(l), Value::Loop(func, var)) => drop(self.loops.insert(l.clone(), (func, var))),
            (Rv::Loop(l), Value::Mark(mark)) => drop(self.marks.insert(l.clone(), mark)),
            (Rv::Number(v), Value::Number(number)) => drop(self.numbers.insert(v.clone(), number)),
            _ => {}
        }
        rv
    }

    /// A step that makes blocks.
    pub fn step_blocks(
        &mut self,
        kind: &'static InstructionKind,
        inputs: Vec<AttrValue>,
        attrs: Vec<AttrValue>,
    ) -> Result<Vec<Ref<SBlockRV>>, StepError> {
        let made = self.step(kind, inputs, attrs, None)?;
        Ok(made.into_iter().filter_map(|rv| if let Rv::Block(b) = rv { Some(b) } else { None }).collect())
    }

    /// A step that makes one block.
    pub fn step_block(
        &mut self,
        kind: &'static InstructionKind,
        inputs: Vec<AttrValue>,
        attrs: Vec<AttrValue>,
    ) -> Result<Ref<SBlockRV>, StepError> {
        let made = self.step_blocks(kind, inputs, attrs)?.into_iter().next();
        made.ok_or_else(|| StepError::new(kind.method, ScheduleError::Operand("no block was made".into()), self))
    }

    /// A step that makes loops.
    pub fn step_loops(
        &mut self,
        kind: &'static InstructionKind,
        inputs: Vec<AttrValue>,
        attrs: Vec<AttrValue>,
    ) -> Result<Vec<Ref<LoopRV>>, StepError> {
        let made = self.step(kind, inputs, attrs, None)?;
        Ok(made.into_iter().filter_map(|rv| if let Rv::Loop(l) = rv { Some(l) } else { None }).collect())
    }

    /// A step that makes one loop.
    pub fn step_loop(
        &mut self,
        kind: &'static InstructionKind,
        inputs: Vec<AttrValue>,
        attrs: Vec<AttrValue>,
    ) -> Result<Ref<LoopRV>, StepError> {
        let made = self.step_loops(kind, inputs, attrs)?.into_iter().next();
        made.ok_or_else(|| StepError::new(kind.method, ScheduleError::Operand("no loop was made".into()), self))
    }

    /// A step that makes nothing.
    pub fn step_only(
        &mut self,
        kind: &'static InstructionKind,
        inputs: Vec<AttrValue>,
        attrs: Vec<AttrValue>,
    ) -> Result<(), StepError> {
        self.step(kind, inputs, attrs, None).map(drop)
    }

    /// A step that makes numbers, and what it is to decide.
    pub fn step_numbers(
        &mut self,
        kind: &'static InstructionKind,
        inputs: Vec<AttrValue>,
        attrs: Vec<AttrValue>,
        decision: Option<AttrValue>,
    ) -> Result<Vec<Ref<Var>>, StepError> {
        let made = self.step(kind, inputs, attrs, decision)?;
        Ok(made.into_iter().filter_map(|rv| if let Rv::Number(v) = rv { Some(v) } else { None }).collect())
    }

    /// An operand that is a number, an expression over sampled numbers, or `None`.
    pub(crate) fn factor(&self, operand: &AttrValue) -> Result<Option<PrimExpr>, ScheduleError> {
        match operand {
            AttrValue::None => Ok(None),
            AttrValue::Int(v) => Ok(Some(PrimExpr::from(*v))),
            AttrValue::Prim(e) => Ok(Some(self.evaluate(e))),
            other => Err(ScheduleError::Operand(format!("{other:?} is no number"))),
        }
    }
}

/// A block as an operand.
pub fn operand(rv: &Ref<SBlockRV>) -> AttrValue {
    AttrValue::from(&Rv::Block(rv.clone()))
}

/// A loop as an operand.
pub fn loop_operand(rv: &Ref<LoopRV>) -> AttrValue {
    AttrValue::from(&Rv::Loop(rv.clone()))
}
