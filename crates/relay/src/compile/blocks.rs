//! Functions as steps.
//!
//! A block is what a scope of A-normal form becomes: steps in order, and the atom that is its result. Operators are collected
//! into a region as long as nothing that is not an operator needs one of its values; what stands between and does not need
//! them comes before the region, which is sound because operators have no effects. A function inside of a function becomes
//! one of the program with what it captures in front of its parameters.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::IRModule;
use relaxide_relax as rx;

use super::region::{Item, Region, RegionBuilder};
use super::{CompileError, memory, unsupported};
use crate::devices::Placement;
use crate::op::{self, Mapping};
use crate::visit::free_vars;
use crate::*;

/// A program as steps.
pub(super) struct PlannedModule {
    pub functions: Vec<PlannedFunction>,
    pub regions: IRModule,
    pub placement: Placement,
}

/// A function as steps.
pub(super) struct PlannedFunction {
    pub name: String,
    pub params: Vec<Ref<Var>>,
    pub body: Block,
    /// Where its result is.
    pub device: usize,
}

/// A scope.
pub(super) struct Block {
    pub steps: Vec<Step>,
    pub result: Expr,
}

/// What is done.
pub(super) enum Step {
    /// Operators that became a function of Relax.
    Region(Region),
    /// A value without operators: a tuple, a field, a call, data, a reference, another name.
    Bind(Ref<Var>, Expr),
    /// A closure of a function of the program.
    Closure { var: Ref<Var>, func: usize, captures: Vec<Ref<Var>> },
    /// A choice by a condition.
    If { var: Ref<Var>, cond: Expr, then: Block, other: Block },
    /// A choice by form.
    Match { var: Ref<Var>, data: Expr, clauses: Vec<(Pattern, Block)> },
    /// Operators whose results, or the shapes of them, are written into tensors that the program took.
    Filled { region: Region, places: Expr, what: Filling },
}

/// What is written into tensors that the program took.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Filling {
    /// Results.
    Results,
    /// Shapes of results.
    Shapes,
}

fn address(var: &Ref<Var>) -> usize {
    Ref::as_ptr(var).addr()
}

/// Makes steps of a module in A-normal form.
pub(super) fn plan(module: &Module, types: &Types, placement: Placement) -> Result<PlannedModule, CompileError> {
    let mut planner = Planner {
        types,
        placement,
        builder: rx::BlockBuilder::new(),
        functions: module.functions.keys().map(|_| None).collect(),
        regions: 0,
        uses: HashMap::new(),
        uses_of_kernels: HashMap::new(),
        known: HashMap::new(),
    };
    for (index, (name, function)) in module.functions.iter().enumerate() {
        planner.count_uses(&function.body);
        let body = planner.block(&function.body, Vec::new())?;
        let (name, params) = (name.clone(), function.params.clone());
        let device = planner.placement.of(&Expr::Function(function.clone()));
        planner.functions[index] = Some(PlannedFunction { name, params, body, device });
    }
    let functions = planner.functions.into_iter().flatten().collect();
    Ok(PlannedModule { functions, regions: planner.builder.finish(), placement: planner.placement })
}

struct Planner<'a> {
    types: &'a Types,
    placement: Placement,
    builder: rx::BlockBuilder,
    functions: Vec<Option<PlannedFunction>>,
    regions: usize,
    /// How often each variable is mentioned in the function at hand.
    uses: HashMap<usize, usize>,
    /// How often by calls of kernels in memory that the program took: as the kernel, and as the lists of operands and results.
    uses_of_kernels: HashMap<usize, usize>,
    /// Tuples and primitive functions by their names, for these calls.
    known: HashMap<usize, Expr>,
}

/// The operators that wait to become a region, in order.
#[derive(Default)]
struct PendingRegion {
    items: Vec<(Ref<Var>, Item)>,
    defined: HashMap<usize, ()>,
    /// How often each variable is mentioned inside.
    inside: HashMap<usize, usize>,
    /// Where the operators are executed: all of a region on one device.
    device: usize,
}

impl PendingRegion {
    fn defines(&self, expr: &Expr) -> bool {
        matches!(expr, Expr::Var(v) if self.defined.contains_key(&address(v)))
    }
}

impl Planner<'_> {
    /// The operators of a kernel, those of kernels that it calls among them; its result.
    fn kernel_items(
        &self,
        function: &Ref<Function>,
        given: Vec<Expr>,
        items: &mut Vec<(Ref<Var>, Item)>,
    ) -> Result<Expr, CompileError> {
        if given.len() != function.params.len() {
            let message = format!("a kernel of {} parameters is given {} operands", function.params.len(), given.len());
            return unsupported(message, function.span.as_deref());
        }
        items.extend(function.params.iter().cloned().zip(given.into_iter().map(Item::Bound)));
        let mut inner: HashMap<usize, Ref<Function>> = HashMap::new();
        let mut body = &function.body;
        while let Expr::Let(l) = body {
            body = &l.body;
            let item = match &l.value {
                Expr::Function(f) => {
                    inner.insert(address(&l.var), f.clone());
                    continue;
                }
                value @ (Expr::Tuple(_) | Expr::TupleGetItem(_) | Expr::Var(_) | Expr::Constant(_)) => {
                    Item::Alias(value.clone())
                }
                Expr::Call(call) if passes_through(call) => Item::Alias(call.args[0].clone()),
                Expr::Call(call) if matches!(&call.op, Expr::Var(v) if inner.contains_key(&address(v))) => {
                    let Expr::Var(callee) = &call.op else { continue };
                    Item::Bound(self.kernel_items(&inner[&address(callee)], call.args.clone(), items)?)
                }
                value => match self.operator(value) {
                    Some(call) => Item::Call(call.clone()),
                    None => return unsupported("a kernel is made of operators", value.span().map(|s| &**s)),
                },
            };
            items.push((l.var.clone(), item));
        }
        Ok(body.clone())
    }

    fn count_uses(&mut self, root: &Expr) {
        let mut seen = std::collections::HashSet::new();
        let mut work = vec![root];
        if let Expr::Var(v) = root {
            *self.uses.entry(address(v)).or_default() += 1;
        }
        while let Some(expr) = work.pop() {
            if !seen.insert(expr.address()) {
                continue;
            }
            for child in expr.children() {
                match child {
                    Expr::Var(v) => *self.uses.entry(address(v)).or_default() += 1,
                    other => work.push(other),
                }
            }
            if let Some((call, _)) = filling(expr) {
                for arg in &call.args {
                    if let Expr::Var(v) = arg {
                        *self.uses_of_kernels.entry(address(v)).or_default() += 1;
                    }
                }
            }
        }
    }

    /// The steps of a scope, behind some that are given.
    fn block(&mut self, expr: &Expr, steps: Vec<Step>) -> Result<Block, CompileError> {
        let (mut steps, mut waiting, mut expr) = (steps, PendingRegion::default(), expr);
        while let Expr::Let(l) = expr {
            self.binding(&l.var, &l.value, &mut steps, &mut waiting)?;
            expr = &l.body;
        }
        self.flush(&mut steps, &mut waiting)?;
        match expr {
            atom if atom.is_leaf() => Ok(Block { steps, result: atom.clone() }),
            other => unsupported(
                "an expression is not in A-normal form; this is a defect of Relaxide",
                other.span().map(|s| &**s),
            ),
        }
    }

    fn binding(
        &mut self,
        var: &Ref<Var>,
        value: &Expr,
        steps: &mut Vec<Step>,
        waiting: &mut PendingRegion,
    ) -> Result<(), CompileError> {
        if let Some(call) = self.operator(value) {
            let device = self.placement.of_var(var);
            if self.shape_is_waiting(call, waiting) || (device != waiting.device && !waiting.items.is_empty()) {
                self.flush(steps, waiting)?;
            }
            waiting.device = device;
            self.wait(var, Item::Call(call.clone()), &call.args, waiting);
            return Ok(());
        }
        match value {
            Expr::Tuple(t) if t.fields.iter().any(|e| waiting.defines(e)) => {
                self.wait(var, Item::Alias(value.clone()), &t.fields, waiting);
            }
            Expr::TupleGetItem(t) if waiting.defines(&t.tuple) => {
                self.wait(var, Item::Alias(value.clone()), std::slice::from_ref(&t.tuple), waiting);
            }
            Expr::Call(call) if passes_through(call) && waiting.defines(&call.args[0]) => {
                self.wait(var, Item::Alias(call.args[0].clone()), &call.args, waiting);
            }
            Expr::Var(_) if waiting.defines(value) => {
                self.wait(var, Item::Alias(value.clone()), std::slice::from_ref(value), waiting);
            }
            _ => {
                // What waits may read memory that a kernel writes into.
                if filling(value).is_some() || self.needs(value, waiting) {
                    self.flush(steps, waiting)?;
                }
                if matches!(value, Expr::Tuple(_) | Expr::Function(_)) {
                    self.known.insert(address(var), value.clone());
                    let count = |uses: &HashMap<usize, usize>| uses.get(&address(var)).copied().unwrap_or(0);
                    if count(&self.uses) > 0 && count(&self.uses) == count(&self.uses_of_kernels) {
                        return Ok(());
                    }
                }
                let step = self.step(var, value)?;
                steps.push(step);
            }
        }
        Ok(())
    }

    /// A kernel in memory that the program took: operators become a region whose results have their places.
    fn filled(&mut self, call: &Ref<Call>, what: Filling) -> Result<Step, CompileError> {
        let span = call.span.as_deref();
        let [kernel, operands, places] = call.args.as_slice() else {
            return unsupported("a kernel, its operands and its results are expected", span);
        };
        let known = |e: &Expr| match e {
            Expr::Var(v) => self.known.get(&address(v)).cloned().unwrap_or_else(|| e.clone()),
            other => other.clone(),
        };
        let (kernel, operands, places) = (known(kernel), known(operands), known(places));
        let Expr::Function(function) = kernel else {
            return unsupported("the kernel is not a function that stands in the program", span);
        };
        let given: Vec<Expr> = match &operands {
            Expr::Tuple(t) => t.fields.clone(),
            other => (0..function.params.len() as i64).map(|i| Expr::field(other.clone(), i)).collect(),
        };
        let mut items: Vec<(Ref<Var>, Item)> = Vec::new();
        let result = match self.kernel_items(&function, given, &mut items)? {
            Expr::Var(var) => var,
            other => {
                let var = Var::new("result", self.types.of(&other));
                items.push((var.clone(), Item::Alias(other)));
                var
            }
        };
        let name = format!("region{}", self.regions);
        self.regions += 1;
        let region = RegionBuilder::new(&mut self.builder, self.types).build(&name, &items, vec![result], 0)?;
        Ok(Step::Filled { region, places, what })
    }

    /// The call, if it is of an operator that becomes kernels.
    fn operator<'e>(&self, value: &'e Expr) -> Option<&'e Ref<Call>> {
        let (call, name) = value.as_op_call()?;
        let def = op::lookup(name)?;
        (!matches!(def.mapping, Mapping::Machine)).then_some(call)
    }

    /// Whether an operator takes its shape from a value that a region would have to compute first.
    fn shape_is_waiting(&self, call: &Call, waiting: &PendingRegion) -> bool {
        let Expr::Op(op) = &call.op else { return false };
        op::shape_is_data(&op.name) && call.args.iter().any(|arg| waiting.defines(arg))
    }

    fn wait(&self, var: &Ref<Var>, item: Item, args: &[Expr], waiting: &mut PendingRegion) {
        for arg in args {
            if let Expr::Var(v) = arg {
                *waiting.inside.entry(address(v)).or_default() += 1;
            }
        }
        waiting.defined.insert(address(var), ());
        waiting.items.push((var.clone(), item));
    }

    /// Whether a value mentions what waits.
    fn needs(&self, value: &Expr, waiting: &PendingRegion) -> bool {
        if waiting.items.is_empty() {
            return false;
        }
        waiting.defines(value) || free_vars(value).iter().any(|v| waiting.defined.contains_key(&address(v)))
    }

    /// Makes a region of what waits.
    fn flush(&mut self, steps: &mut Vec<Step>, waiting: &mut PendingRegion) -> Result<(), CompileError> {
        let PendingRegion { items, inside, device, .. } = std::mem::take(waiting);
        if items.is_empty() {
            return Ok(());
        }
        let total = |var: &Ref<Var>| self.uses.get(&address(var)).copied().unwrap_or(0);
        // What is used outside: names of other values first, because these are then used outside too.
        let mut outside: HashMap<usize, ()> = HashMap::new();
        let mut behind = Vec::new();
        for (var, item) in items.iter().rev() {
            let used = total(var) > inside.get(&address(var)).copied().unwrap_or(0);
            if !used && !outside.contains_key(&address(var)) {
                continue;
            }
            match item {
                Item::Alias(value) => {
                    let parts = match value {
                        Expr::Var(_) => vec![value],
                        other => other.children(),
                    };
                    for part in parts {
                        if let Expr::Var(v) = part {
                            outside.insert(address(v), ());
                        }
                    }
                    behind.push(Step::Bind(var.clone(), value.clone()));
                }
                Item::Call(_) | Item::Bound(_) => {
                    outside.insert(address(var), ());
                }
            }
        }
        let outputs: Vec<Ref<Var>> = items
            .iter()
            .filter(|(var, item)| matches!(item, Item::Call(_)) && outside.contains_key(&address(var)))
            .map(|(var, _)| var.clone())
            .collect();
        if !outputs.is_empty() {
            let name = format!("region{}", self.regions);
            self.regions += 1;
            let region = RegionBuilder::new(&mut self.builder, self.types).build(&name, &items, outputs, device)?;
            steps.push(Step::Region(region));
        }
        steps.extend(behind.into_iter().rev());
        Ok(())
    }

    fn step(&mut self, var: &Ref<Var>, value: &Expr) -> Result<Step, CompileError> {
        let span = value.span().map(|s| &**s);
        if let Some((call, what)) = filling(value) {
            return self.filled(call, what);
        }
        Ok(match value {
            Expr::Function(f) => self.closure(var, f)?,
            Expr::If(i) => {
                let (then, other) = (self.block(&i.then, Vec::new())?, self.block(&i.other, Vec::new())?);
                Step::If { var: var.clone(), cond: i.cond.clone(), then, other }
            }
            Expr::Match(m) => {
                let clauses = m.clauses.iter().map(|c| Ok((c.pattern.clone(), self.block(&c.body, Vec::new())?)));
                let clauses = clauses.collect::<Result<Vec<_>, CompileError>>()?;
                Step::Match { var: var.clone(), data: m.data.clone(), clauses }
            }
            Expr::Call(call) if passes_through(call) => Step::Bind(var.clone(), call.args[0].clone()),
            Expr::Call(call) => match &call.op {
                Expr::Op(op) if op.name != "device_copy" && !memory::takes(&op.name) => {
                    return unsupported(format!("{} cannot stand in a program that is compiled", op.name), span);
                }
                _ => Step::Bind(var.clone(), value.clone()),
            },
            _ => Step::Bind(var.clone(), value.clone()),
        })
    }

    /// A function inside of a function, as one of the program.
    fn closure(&mut self, var: &Ref<Var>, f: &Ref<Function>) -> Result<Step, CompileError> {
        let expr = Expr::Function(f.clone());
        let mut captures = free_vars(&expr);
        let recursive = captures.iter().any(|v| Ref::ptr_eq(v, var));
        captures.retain(|v| !Ref::ptr_eq(v, var));
        let func = self.functions.len();
        self.functions.push(None);
        // In its own body the function is a closure again, of the same values.
        let own = Step::Closure { var: var.clone(), func, captures: captures.clone() };
        let body = self.block(&f.body, if recursive { vec![own] } else { Vec::new() })?;
        let params = captures.iter().chain(&f.params).cloned().collect();
        let name = f.attrs.str("global_symbol").map_or_else(|| format!("lifted_name{func}"), str::to_string);
        let device = self.placement.of(&expr);
        self.functions[func] = Some(PlannedFunction { name, params, body, device });
        Ok(Step::Closure { var: var.clone(), func, captures })
    }
}

/// The call, if it has kernels write into memory that the program took.
fn filling(value: &Expr) -> Option<(&Ref<Call>, Filling)> {
    match value.as_op_call()? {
        (call, "vm.invoke_tvm_op") => Some((call, Filling::Results)),
        (call, "vm.shape_func") => Some((call, Filling::Shapes)),
        _ => None,
    }
}

/// Whether a call says something of its argument and is its argument.
fn passes_through(call: &Call) -> bool {
    matches!(&call.op, Expr::Op(op) if matches!(op.name.as_str(), "on_device" | "debug")) && !call.args.is_empty()
}
