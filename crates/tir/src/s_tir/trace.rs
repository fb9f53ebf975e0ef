//! Traces: the steps of a schedule, written as Python, executed again on another module, freed of what has no effect.

use std::collections::{HashMap, HashSet};
use std::fmt;

use relaxide_ir::attrs::AttrValue;
use relaxide_ir::prim::{PrimExpr, VarMap, free_vars, substitute};
use relaxide_ir::{DataType, Var};

use super::instruction::{Instruction, Param, Results, kind};
use super::rv::Rv;
use super::{Schedule, ScheduleError, StepError, factor, map_json, text};

/// The steps of a schedule, each with what it decided at random.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    steps: Vec<(Instruction, Option<AttrValue>)>,
}

impl Trace {
    /// Adds a step, and what it decided.
    pub fn append(&mut self, instruction: Instruction, decision: Option<AttrValue>) {
        self.steps.push((instruction, decision));
    }

    /// Takes the last step away.
    pub fn pop(&mut self) -> Option<Instruction> {
        self.steps.pop().map(|(instruction, _)| instruction)
    }

    /// The steps with their decisions, in order.
    pub fn steps(&self) -> &[(Instruction, Option<AttrValue>)] {
        &self.steps
    }

    /// The same steps, of which one decides otherwise.
    pub fn with_decision(&self, index: usize, decision: AttrValue) -> Trace {
        let mut changed = self.clone();
        if let Some((_, slot)) = changed.steps.get_mut(index) {
            *slot = Some(decision);
        }
        changed
    }

    /// Steps up to the mark behind which postprocessing begins, or all.
    fn upto_postproc(&self, remove_postproc: bool) -> &[(Instruction, Option<AttrValue>)] {
        let mark = self.steps.iter().position(|(step, _)| step.kind.name == "EnterPostproc");
        match mark.filter(|_| remove_postproc) {
            Some(end) => self.steps.get(..end).unwrap_or_default(),
            None => &self.steps,
        }
    }

    /// The steps in front of the mark behind which postprocessing begins.
    pub fn before_postproc(&self) -> Trace {
        Trace { steps: self.upto_postproc(true).to_vec() }
    }

    /// Carries the steps out on a schedule, with the decisions that were made.
    pub fn apply_to(&self, schedule: &mut Schedule, remove_postproc: bool) -> Result<(), StepError> {
        let mut renamed: HashMap<Rv, Rv> = HashMap::new();
        for (step, decision) in self.upto_postproc(remove_postproc) {
            let inputs = step.inputs.iter().map(|input| rename(input, &renamed)).collect();
            let made = schedule.step(step.kind, inputs, step.attrs.clone(), decision.clone())?;
            renamed.extend(step.outputs.iter().cloned().zip(made));
        }
        Ok(())
    }

    /// Without the steps that change nothing and whose results nothing uses.
    pub fn simplified(&self, remove_postproc: bool) -> Trace {
        let mut used: HashSet<Rv> = HashSet::new();
        let mut kept = Vec::new();
        for (step, decision) in self.upto_postproc(remove_postproc).iter().rev() {
            if step.kind.is_pure && !step.outputs.iter().any(|rv| used.contains(rv)) {
                continue;
            }
            step.inputs.iter().for_each(|input| mentions(input, &mut used));
            kept.push((step.clone(), decision.clone()));
        }
        kept.reverse();
        Trace { steps: kept }
    }

    /// One line of Python for each step.
    pub fn as_python(&self, remove_postproc: bool) -> Vec<String> {
        let mut names = RandomNames::default();
        let steps = self.upto_postproc(remove_postproc).iter();
        steps.map(|(step, decision)| names.line(step, decision.as_ref())).collect()
    }

    /// The steps as lists of names, inputs, constants and results, and the decisions by the numbers of their steps.
    pub fn as_json(&self, remove_postproc: bool) -> AttrValue {
        let mut names = RandomNames::default();
        let (mut steps, mut decisions) = (Vec::new(), Vec::new());
        for (i, (step, decision)) in self.upto_postproc(remove_postproc).iter().enumerate() {
            let inputs: Vec<AttrValue> = step.inputs.iter().map(|input| names.json(input)).collect();
            let outputs: Vec<AttrValue> = step.outputs.iter().map(|rv| names.define(rv).into()).collect();
            let row = vec![
                AttrValue::from(step.kind.name),
                AttrValue::List(inputs),
                AttrValue::List(step.attrs.iter().map(map_to_json).collect()),
                AttrValue::List(outputs),
            ];
            steps.push(AttrValue::List(row));
            if let Some(decision) = decision {
                decisions.push(AttrValue::List(vec![AttrValue::Int(i as i64), decision.clone()]));
            }
        }
        AttrValue::List(vec![AttrValue::List(steps), AttrValue::List(decisions)])
    }

    /// Executes the steps that [`Trace::as_json`] wrote.
    pub fn apply_json(json: &AttrValue, schedule: &mut Schedule) -> Result<(), StepError> {
        let wrong = |schedule: &Schedule, what: &str| {
            let error = ScheduleError::Operand(format!("the lists are no trace: {what}"));
            StepError::new("apply_json_to_schedule", error, schedule)
        };
        let (steps, decisions) = match json {
            AttrValue::List(parts) => match parts.as_slice() {
                [AttrValue::List(steps), AttrValue::List(decisions)] => (steps, decisions),
                _ => return Err(wrong(schedule, "steps and decisions are expected")),
            },
            _ => return Err(wrong(schedule, "a list is expected")),
        };
        let mut known: HashMap<String, Rv> = HashMap::new();
        for (i, step) in steps.iter().enumerate() {
            let AttrValue::List(parts) = step else { return Err(wrong(schedule, "a step is a list")) };
            let [AttrValue::Str(name), AttrValue::List(inputs), AttrValue::List(attrs), AttrValue::List(outputs)] =
                parts.as_slice()
            else {
                return Err(wrong(schedule, "a step is its name, inputs, constants and results"));
            };
            let kind = kind(name).ok_or_else(|| wrong(schedule, &format!("there is no step {name}")))?;
            let read: Option<Vec<AttrValue>> = inputs.iter().map(|input| from_json(input, &known)).collect();
            let inputs = read.ok_or_else(|| wrong(schedule, &format!("an input of step {i} cannot be read")))?;
            let decision = decisions.iter().find_map(|row| match row {
                AttrValue::List(pair) => match pair.as_slice() {
                    [AttrValue::Int(at), decision] if *at == i as i64 => Some(decision.clone()),
                    _ => None,
                },
                _ => None,
            });
            let attrs = attrs.iter().map(map_from_json).collect();
            let made = schedule.step(kind, inputs, attrs, decision)?;
            let names = outputs
                .iter()
                .filter_map(|name| if let AttrValue::Str(name) = name { Some(name.clone()) } else { None });
            known.extend(names.zip(made));
        }
        Ok(())
    }
}

/// A constant in JSON: a map of indices is the text of a graph.
fn map_to_json(value: &AttrValue) -> AttrValue {
    match value {
        AttrValue::Object(object) => {
            let map = object.downcast_ref::<crate::IndexMap>().and_then(|map| map_json::write(map));
            map.map_or_else(|| value.clone(), AttrValue::Str)
        }
        other => other.clone(),
    }
}

fn map_from_json(value: &AttrValue) -> AttrValue {
    let map = match value {
        AttrValue::Str(text) if text.starts_with('{') => map_json::read(text),
        _ => None,
    };
    map.map_or_else(
        || value.clone(),
        |map| AttrValue::Object(relaxide_ffi::ObjectRef::from(&relaxide_ffi::Ref::new(map))),
    )
}

/// An input as [`Trace::as_json`] wrote it: a name, a text in quotes, `None`, a number, or a list of them.
fn from_json(value: &AttrValue, known: &HashMap<String, Rv>) -> Option<AttrValue> {
    Some(match value {
        AttrValue::List(list) => AttrValue::List(list.iter().map(|v| from_json(v, known)).collect::<Option<_>>()?),
        AttrValue::Str(text) => match (known.get(text), text.as_str()) {
            (Some(rv), _) => rv.into(),
            (None, "None" | "_") => AttrValue::None,
            (None, quoted) if quoted.starts_with('"') => {
                AttrValue::Str(quoted.strip_prefix('"')?.strip_suffix('"')?.to_string())
            }
            (None, graph) if graph.starts_with('{') => map_from_json(&AttrValue::Str(graph.to_string())),
            (None, text) => AttrValue::Prim(factor::read(text, known)?),
        },
        other => other.clone(),
    })
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "# from tvm import s_tir\ndef apply_trace(sch: s_tir.Schedule) -> None:\n")?;
        let lines = self.as_python(false);
        if lines.is_empty() {
            return write!(f, "  pass");
        }
        write!(f, "  {}", lines.join("\n  "))
    }
}

/// An operand with other random variables.
fn rename(operand: &AttrValue, renamed: &HashMap<Rv, Rv>) -> AttrValue {
    match operand {
        AttrValue::List(list) => AttrValue::List(list.iter().map(|item| rename(item, renamed)).collect()),
        AttrValue::Map(map) => AttrValue::Map(map.iter().map(|(k, v)| (k.clone(), rename(v, renamed))).collect()),
        AttrValue::Prim(e) => {
            let known: VarMap = free_vars(e)
                .into_iter()
                .filter_map(|var| match renamed.get(&Rv::Number(var.clone()))? {
                    Rv::Number(new) => Some((var, PrimExpr::from(new))),
                    _ => None,
                })
                .collect();
            AttrValue::Prim(substitute(e, &known))
        }
        _ => match Rv::of(operand).and_then(|rv| renamed.get(&rv)) {
            Some(new) => new.into(),
            None => operand.clone(),
        },
    }
}

/// The random variables of an operand.
fn mentions(operand: &AttrValue, found: &mut HashSet<Rv>) {
    match operand {
        AttrValue::List(list) => list.iter().for_each(|item| mentions(item, found)),
        AttrValue::Map(map) => map.values().for_each(|item| mentions(item, found)),
        AttrValue::Prim(e) => found.extend(free_vars(e).into_iter().map(Rv::Number)),
        _ => found.extend(Rv::of(operand)),
    }
}

/// The names of random variables in a text.
#[derive(Default)]
struct RandomNames(HashMap<Rv, String>);

impl RandomNames {
    fn define(&mut self, rv: &Rv) -> String {
        let name = match rv {
            Rv::Open => "_".to_string(),
            _ => format!("{}{}", rv.letter(), self.0.len()),
        };
        self.0.insert(rv.clone(), name.clone());
        name
    }

    fn of(&self, rv: &Rv) -> String {
        self.0.get(rv).cloned().unwrap_or_else(|| "_".to_string())
    }

    fn line(&mut self, step: &Instruction, decision: Option<&AttrValue>) -> String {
        let (mut inputs, mut attrs) = (step.inputs.iter(), step.attrs.iter());
        let mut args = Vec::new();
        for param in step.kind.params {
            match param {
                Param::Input(name) => args.extend(inputs.next().map(|v| format!("{name}={}", self.text(v)))),
                Param::Inputs(name) => {
                    let list: Vec<String> = inputs.by_ref().map(|v| self.text(v)).collect();
                    args.push(format!("{name}=[{}]", list.join(", ")));
                }
                Param::Splat => args.extend(inputs.by_ref().map(|v| self.text(v))),
                Param::Attr(name) => args.extend(attrs.next().map(|v| format!("{name}={}", self.text(v)))),
                Param::Buffer(name) => {
                    let index = attrs.next().map_or_else(String::new, |v| self.text(v));
                    args.push(format!("{name}=({}, {index})", text::side(attrs.next())));
                }
                Param::Consumers(name) => {
                    let some = inputs.next().filter(|v| !matches!(v, AttrValue::List(list) if list.is_empty()));
                    args.extend(some.map(|v| format!("{name}={}", self.text(v))));
                }
                Param::Side(name) => args.push(format!("{name}={}", text::side(inputs.next()))),
                Param::Ranges(name) => args.extend(inputs.next().map(|v| format!("{name}={}", text::ranges(v)))),
                Param::Decision => args.extend(decision.map(|v| format!("decision={}", self.text(v)))),
            }
        }
        let call = format!("sch.{}({})", step.kind.method, args.join(", "));
        let outputs: Vec<String> = step.outputs.iter().map(|rv| self.define(rv)).collect();
        match (step.kind.results, outputs.as_slice()) {
            (_, []) | (Results::None, _) => call,
            (Results::List, [only]) => format!("{only}, = {call}"),
            _ => format!("{} = {call}", outputs.join(", ")),
        }
    }

    /// An operand as Python.
    fn text(&self, value: &AttrValue) -> String {
        if let Some(rv) = Rv::of(value) {
            return self.of(&rv);
        }
        let list = |items: &[AttrValue]| items.iter().map(|v| self.text(v)).collect::<Vec<_>>().join(", ");
        match value {
            AttrValue::None => "None".into(),
            AttrValue::Bool(v) => if *v { "True" } else { "False" }.into(),
            AttrValue::Int(v) => v.to_string(),
            AttrValue::Float(v) => float(*v),
            AttrValue::Str(v) => format!("{v:?}"),
            AttrValue::DType(v) => format!("\"{v}\""),
            AttrValue::List(items) => format!("[{}]", list(items)),
            AttrValue::Map(map) => {
                let rows: Vec<String> = map.iter().map(|(k, v)| format!("{k:?}: {}", self.text(v))).collect();
                format!("{{{}}}", rows.join(", "))
            }
            AttrValue::Prim(e) => self.expression(e),
            AttrValue::Object(object) => text::object(object),
        }
    }

    /// An expression over sampled numbers.
    fn expression(&self, e: &PrimExpr) -> String {
        let named = |var| (Var::prim(self.of(&Rv::Number(var)), DataType::int(32)), ());
        let known: VarMap = free_vars(e).into_iter().map(|v| (v.clone(), PrimExpr::from(&named(v).0))).collect();
        match e {
            PrimExpr::Float(n) => float(n.value),
            _ => text::expression(&substitute(e, &known)),
        }
    }

    fn json(&self, value: &AttrValue) -> AttrValue {
        match value {
            AttrValue::List(list) => AttrValue::List(list.iter().map(|item| self.json(item)).collect()),
            AttrValue::Object(object) => {
                let map = object.downcast_ref::<crate::IndexMap>().and_then(|map| map_json::write(map));
                AttrValue::Str(map.unwrap_or_else(|| self.text(value)))
            }
            AttrValue::None | AttrValue::Prim(_) => AttrValue::Str(self.text(value)),
            // As it is between quotes, quotes within it among them: what is read is what stands between the outer ones.
            AttrValue::Str(text) => AttrValue::Str(format!("\"{text}\"")),
            other => other.clone(),
        }
    }
}

/// A number with all digits that tell it apart, of which there are seventeen.
fn float(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let exponent = value.abs().log10().floor() as i32;
    if !(-5..17).contains(&exponent) {
        return format!("{value:.16e}");
    }
    let digits = usize::try_from(16 - exponent).unwrap_or(0);
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}
