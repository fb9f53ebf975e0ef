//! Steps to instructions.

use std::collections::HashMap;

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::{IRModule, PrimExpr, Type as RxType, Var as RxVar};
use relaxide_relay_vm::{Executable, Instruction, VmFunction};
use relaxide_tir::PrimFunc;

use super::arena;
use super::blocks::{Block, PlannedFunction, PlannedModule, Step};
use super::lifetime::{Listing, with_kills};
use super::lines::{Label, Line, resolve};
use super::{CompileError, Compiled, constants, renamed, unsupported};
use crate::devices::copy_ends;
use crate::*;

/// What a variable of a region's function is.
#[derive(Clone)]
pub(super) enum Value {
    Register(i64),
    Constant(relaxide_ffi::Tensor),
    Tuple(Vec<Value>),
}

pub(super) struct Emitter<'p> {
    plan: &'p PlannedModule,
    pub(super) lowered: &'p IRModule,
    executable: Executable,
    pub(super) kernels: Vec<(String, Ref<PrimFunc>)>,
    /// Kernels of the lowered module that are called, with their places.
    called: HashMap<String, i64>,
    pool: constants::Pool,
    /// Constructors that stand as values.
    helpers: Vec<VmFunction>,
}

/// Makes the executable of a plan whose regions were lowered.
pub(super) fn emit(plan: &PlannedModule, lowered: &IRModule) -> Result<Compiled, CompileError> {
    let mut emitter = Emitter {
        plan,
        lowered,
        executable: Executable {
            virtual_devices: plan.placement.devices.iter().map(VirtualDevice::for_machine).collect(),
            ..Executable::default()
        },
        kernels: Vec::new(),
        called: HashMap::new(),
        pool: constants::Pool::default(),
        helpers: Vec::new(),
    };
    for function in &plan.functions {
        let made = emitter.function(function)?;
        emitter.executable.functions.push(made);
    }
    let helpers = std::mem::take(&mut emitter.helpers);
    emitter.executable.functions.extend(helpers);
    emitter.executable.globals = emitter.executable.functions.iter().map(|f| f.name.clone()).collect();
    Ok(Compiled { executable: emitter.executable, kernels: renamed(emitter.kernels) })
}

impl Emitter<'_> {
    fn function(&mut self, function: &PlannedFunction) -> Result<VmFunction, CompileError> {
        let mut emitter = FunctionEmitter {
            shared: self,
            lines: Vec::new(),
            registers: HashMap::new(),
            next: 0,
            labels: 0,
            region_device: 0,
        };
        for param in &function.params {
            let register = emitter.fresh();
            emitter.bind(param, register);
        }
        let result = emitter.block(&function.body, function.device)?;
        emitter.push(Instruction::Ret { result });
        let (lines, mut registers) = (std::mem::take(&mut emitter.lines), emitter.next);
        let own: Vec<bool> = self.executable.primitives.iter().map(|name| name.starts_with("relay.vm.")).collect();
        let is_own = |index: i64| own.get(index as usize) == Some(&true);
        let mut constants = constants::Constants { executable: &mut self.executable, pool: &mut self.pool };
        let lines = arena::joined(lines, &mut registers, &mut constants, &is_own)?;
        let listing = Listing { code: resolve(&lines), params: function.params.len() };
        let instructions = with_kills(listing, &|i| match i {
            // What the machine does itself writes a register.
            Instruction::InvokePacked { index, args, .. } if is_own(*index) => {
                args.last().copied().into_iter().collect()
            }
            // A kill is put where liveness says; the code has none before.
            other => other.writes().into_iter().collect(),
        });
        let mut names: Vec<String> = Vec::new();
        for param in &function.params {
            let mut name = if param.name.is_empty() { "v".to_string() } else { param.name.clone() };
            while names.contains(&name) {
                name.push('_');
            }
            names.push(name);
        }
        Ok(VmFunction {
            name: function.name.clone(),
            param_devices: function.params.iter().map(|p| self.plan.placement.of_var(p) as i64).collect(),
            params: names,
            register_file_size: registers,
            instructions,
        })
    }

    /// The place of a kernel of the machine itself.
    fn intrinsic(&mut self, name: &str) -> i64 {
        if let Some(index) = self.called.get(name) {
            return *index;
        }
        self.primitive(name.to_string(), name)
    }

    pub(super) fn primitive(&mut self, key: String, name: &str) -> i64 {
        let index = self.executable.primitives.len() as i64;
        self.executable.primitives.push(name.to_string());
        self.called.insert(key, index);
        index
    }

    /// The place of a kernel of the lowered module.
    pub(super) fn kernel(&mut self, name: &str) -> Result<i64, CompileError> {
        if let Some(index) = self.called.get(name) {
            return Ok(*index);
        }
        let Some(kernel) = self.lowered.get_as::<PrimFunc>(name) else {
            return unsupported(format!("the function {name} is no kernel"), None);
        };
        let kernel = over_tensors(&kernel);
        let shown = if name.starts_with("fused_") { name.to_string() } else { format!("fused_{name}") };
        let shown = self.fresh_kernel_name(&format!("vm_mod_{shown}"));
        self.kernels.push((shown.clone(), kernel));
        Ok(self.primitive(name.to_string(), &shown))
    }

    pub(super) fn fresh_kernel_name(&self, name: &str) -> String {
        let taken = |name: &str| self.executable.primitives.iter().any(|p| p == name);
        if !taken(name) {
            return name.to_string();
        }
        (1..).map(|i| format!("{name}_{i}")).find(|name| !taken(name)).unwrap_or_default()
    }

    /// A function that makes a value of a constructor, for constructors that stand as values.
    fn constructor_function(&mut self, c: &Ref<Constructor>) -> i64 {
        let name = format!("constructor_{}", c.name);
        let base = self.plan.functions.len();
        if let Some(place) = self.helpers.iter().position(|f| f.name == name) {
            return (base + place) as i64;
        }
        let count = c.inputs.len() as i64;
        let instructions = vec![
            Instruction::AllocAdt { tag: c.tag, dst: count, fields: (0..count).collect() },
            Instruction::Ret { result: count },
        ];
        let params: Vec<String> = (0..count).map(|i| format!("a{i}")).collect();
        let param_devices = vec![0; params.len()];
        self.helpers.push(VmFunction { name, params, register_file_size: count + 1, instructions, param_devices });
        (base + self.helpers.len() - 1) as i64
    }
}

/// A kernel whose scalars come as the first dimensions of tensors without elements: the machine passes tensors only.
fn over_tensors(kernel: &Ref<PrimFunc>) -> Ref<PrimFunc> {
    if kernel.buffers.iter().all(Option::is_some) {
        return kernel.clone();
    }
    let mut out = (**kernel).clone();
    for (param, buffer) in out.params.iter_mut().zip(&mut out.buffers) {
        if buffer.is_none() {
            let shape = vec![PrimExpr::Var(param.clone()), relaxide_ir::prim::int(0)];
            let name = format!("{}_dim", param.name);
            *param = RxVar::new(format!("var_{name}"), RxType::prim(DataType::handle()));
            *buffer = Some(relaxide_ir::Buffer::new(name, DataType::int(8), shape));
        }
    }
    Ref::new(out)
}

pub(super) struct FunctionEmitter<'e, 'p> {
    pub(super) shared: &'e mut Emitter<'p>,
    lines: Vec<Line>,
    registers: HashMap<usize, i64>,
    next: i64,
    labels: usize,
    /// Where the kernels of the region run that is being emitted.
    pub(super) region_device: usize,
}

fn address(var: &Ref<Var>) -> usize {
    Ref::as_ptr(var).addr()
}

impl FunctionEmitter<'_, '_> {
    pub(super) fn fresh(&mut self) -> i64 {
        self.next += 1;
        self.next - 1
    }

    pub(super) fn new_label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    pub(super) fn push(&mut self, instruction: Instruction) {
        self.lines.push(Line::Plain(instruction));
    }

    pub(super) fn goto(&mut self, label: Label) {
        self.lines.push(Line::Goto(label));
    }

    pub(super) fn label(&mut self, label: Label) {
        self.lines.push(Line::Here(label));
    }

    pub(super) fn choice(&mut self, test: i64, target: i64, then: Label, other: Label) {
        self.lines.push(Line::Choice { test, target, then, other });
    }

    pub(super) fn bind(&mut self, var: &Ref<Var>, register: i64) {
        self.registers.insert(address(var), register);
    }

    /// A constant on a device.
    pub(super) fn constant_on(&mut self, tensor: &relaxide_ffi::Tensor, device: usize) -> i64 {
        let Emitter { pool, executable, .. } = &mut *self.shared;
        let index = constants::Constants { executable, pool }.index_of(tensor, device);
        let dst = self.fresh();
        self.push(Instruction::LoadConst { index, device: device as i64, dst });
        dst
    }

    /// A number that the machine itself reads: on the host.
    pub(super) fn number(&mut self, tensor: &relaxide_ffi::Tensor) -> i64 {
        self.constant_on(tensor, 0)
    }

    pub(super) fn device(&self, var: &Ref<Var>) -> usize {
        self.shared.plan.placement.of_var(var)
    }

    fn function_index(&self, name: &str) -> Result<i64, CompileError> {
        let found = self.shared.plan.functions.iter().position(|f| f.name == name);
        match found {
            Some(index) => Ok(index as i64),
            None => unsupported(format!("the module has no function `@{name}`"), None),
        }
    }

    /// The register that holds an operand; a constant is put on the device.
    pub(super) fn atom(&mut self, expr: &Expr, device: usize) -> Result<i64, CompileError> {
        match expr {
            Expr::Var(var) => match self.registers.get(&address(var)) {
                Some(register) => Ok(*register),
                None => unsupported(format!("the variable %{} is not bound here", var.name), var.span.as_deref()),
            },
            Expr::Constant(c) => Ok(self.constant_on(&c.data, device)),
            Expr::Global(g) => {
                let (func, dst) = (self.function_index(&g.name)?, self.fresh());
                self.push(Instruction::AllocClosure { func, dst, free: Vec::new() });
                Ok(dst)
            }
            Expr::Constructor(c) => {
                let (func, dst) = (self.shared.constructor_function(c), self.fresh());
                self.push(Instruction::AllocClosure { func, dst, free: Vec::new() });
                Ok(dst)
            }
            other => unsupported(
                "an operand is not in A-normal form; this is a defect of Relaxide",
                other.span().map(|s| &**s),
            ),
        }
    }

    pub(super) fn atoms(&mut self, exprs: &[Expr], device: usize) -> Result<Vec<i64>, CompileError> {
        exprs.iter().map(|e| self.atom(e, device)).collect()
    }

    /// The code of a scope; the register of its result.
    pub(super) fn block(&mut self, block: &Block, device: usize) -> Result<i64, CompileError> {
        for step in &block.steps {
            self.step(step)?;
        }
        self.atom(&block.result, device)
    }

    fn step(&mut self, step: &Step) -> Result<(), CompileError> {
        match step {
            Step::Region(region) => self.region(region),
            Step::Bind(var, value) => {
                let register = self.value(value, self.device(var))?;
                self.bind(var, register);
                Ok(())
            }
            Step::Closure { var, func, captures } => {
                let captures: Vec<Expr> = captures.iter().map(Expr::from).collect();
                let (free, dst) = (self.atoms(&captures, 0)?, self.fresh());
                self.push(Instruction::AllocClosure { func: *func as i64, dst, free });
                self.bind(var, dst);
                Ok(())
            }
            Step::If { var, cond, then, other } => self.conditional(var, cond, then, other),
            Step::Match { var, data, clauses } => self.matching(var, data, clauses),
            Step::Filled { region, places, what } => self.filled(region, places, *what),
        }
    }

    fn conditional(&mut self, var: &Ref<Var>, cond: &Expr, then: &Block, other: &Block) -> Result<(), CompileError> {
        let (test, target, result) = (self.atom(cond, 0)?, self.fresh(), self.fresh());
        let (yes, no, end) = (self.new_label(), self.new_label(), self.new_label());
        self.push(Instruction::LoadConsti { value: 1, dst: target });
        self.choice(test, target, yes, no);
        self.label(yes);
        let value = self.block(then, self.device(var))?;
        self.push(Instruction::Move { from: value, dst: result });
        self.goto(end);
        self.label(no);
        let value = self.block(other, self.device(var))?;
        self.push(Instruction::Move { from: value, dst: result });
        self.label(end);
        self.bind(var, result);
        Ok(())
    }

    fn value(&mut self, value: &Expr, device: usize) -> Result<i64, CompileError> {
        if value.is_leaf() {
            return self.atom(value, device);
        }
        let dst;
        match value {
            Expr::Tuple(t) => {
                let fields = self.atoms(&t.fields, device)?;
                dst = self.fresh();
                self.push(Instruction::AllocAdt { tag: 0, dst, fields });
            }
            Expr::TupleGetItem(t) => {
                let object = self.atom(&t.tuple, device)?;
                dst = self.fresh();
                self.push(Instruction::GetField { object, index: t.index, dst });
            }
            Expr::Call(call) => return self.call(call),
            Expr::RefCreate(r) => {
                let value = self.atom(&r.value, device)?;
                return Ok(self.machine("relay.vm.ref_create", vec![value]));
            }
            Expr::RefRead(r) => {
                let reference = self.atom(&r.reference, device)?;
                return Ok(self.machine("relay.vm.ref_read", vec![reference]));
            }
            Expr::RefWrite(r) => {
                let at = self.shared.plan.placement.of(&r.reference);
                let args = vec![self.atom(&r.reference, at)?, self.atom(&r.value, at)?];
                return Ok(self.machine("relay.vm.ref_write", args));
            }
            other => return unsupported("this expression cannot stand here", other.span().map(|s| &**s)),
        }
        Ok(dst)
    }

    /// A call of what the machine does itself.
    fn machine(&mut self, name: &str, mut args: Vec<i64>) -> i64 {
        let index = self.shared.intrinsic(name);
        let dst = self.fresh();
        args.push(dst);
        self.push(Instruction::InvokePacked { index, outputs: 1, args });
        dst
    }

    fn call(&mut self, call: &Ref<Call>) -> Result<i64, CompileError> {
        if let Expr::Op(op) = &call.op
            && super::memory::takes(&op.name)
        {
            return self.memory(call, &op.name);
        }
        let place = |index| self.shared.plan.placement.of_operand(call, index);
        let devices: Vec<usize> = (0..call.args.len()).map(place).collect();
        let args = call.args.iter().zip(devices).map(|(arg, device)| self.atom(arg, device));
        let args = args.collect::<Result<Vec<_>, _>>()?;
        match &call.op {
            Expr::Global(g) => {
                let (func, dst) = (self.function_index(&g.name)?, self.fresh());
                self.push(Instruction::Invoke { func, dst, args });
                Ok(dst)
            }
            Expr::Constructor(c) => {
                let dst = self.fresh();
                self.push(Instruction::AllocAdt { tag: c.tag, dst, fields: args });
                Ok(dst)
            }
            Expr::Op(op) if op.name == "device_copy" && args.len() == 1 => {
                let (from, to) = copy_ends(&call.attrs).or_else(|why| unsupported(why, call.span.as_deref()))?;
                let (src_device, dst_device) = (self.device_number(&from)?, self.device_number(&to)?);
                let dst = self.fresh();
                self.push(Instruction::DeviceCopy { src: args[0], src_device, dst_device, dst });
                Ok(dst)
            }
            Expr::Op(op) => {
                unsupported(format!("{} cannot stand in a program that is compiled", op.name), call.span.as_deref())
            }
            callee => {
                let (closure, dst) = (self.atom(callee, 0)?, self.fresh());
                self.push(Instruction::InvokeClosure { closure, dst, args });
                Ok(dst)
            }
        }
    }

    pub(super) fn device_number(&self, device: &VirtualDevice) -> Result<i64, CompileError> {
        let found = self.shared.plan.placement.devices.iter().position(|d| d == device);
        found.map_or_else(
            || unsupported(format!("the program does not name the device {device}"), None),
            |i| Ok(i as i64),
        )
    }

    // Regions.
}
