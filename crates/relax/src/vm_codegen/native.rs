//! Relax functions as native ones: `__vmtir__<name>(ctx_ptr, r, c, f)`.
//!
//! The function works on lists of values that the machine owns: registers (arguments first, the result behind them, then what
//! the function needs), constants, functions. A call takes values of the lists and puts what comes back into one:
//!
//! ```text
//! T.anylist_setitem_call_packed(r, 3, "vm.builtin.make_tuple", T.anylist_getitem(r, 0), T.anylist_getitem(c, 1))
//! T.call_cpacked("add", T.anylist_getitem(r, 0), T.anylist_getitem(r, 0), T.anylist_getitem(r, 6))
//! ```
//!
//! Kernels are called directly, other Relax functions through the machine.

use relaxide_ffi::{Any, DataType, Ref};
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{Attrs, Type, Var};
use relaxide_tir::{PrimFunc, Stmt};
use relaxide_vm::{Arg, BuildError, ExecBuilder, FuncKind, Register, is_builtin};

use super::emit::{Callee, Emit};

/// Emits a native function.
pub struct Native<'a> {
    builder: &'a mut ExecBuilder,
    num_params: i64,
    /// The machine and the lists of registers, constants and functions.
    params: [Ref<Var>; 4],
    /// Statements of the open branches, the function's own first.
    open: Vec<Vec<Stmt>>,
    /// The conditions of the open branches, and what happens where each holds.
    conditions: Vec<(PrimExpr, Option<Stmt>)>,
    /// How many registers there are.
    registers: i64,
}

impl<'a> Native<'a> {
    /// Begins a function with that many parameters.
    pub fn new(builder: &'a mut ExecBuilder, num_params: usize) -> Self {
        let params = ["ctx_ptr", "r", "c", "f"].map(|name| Var::new(name, Type::prim(DataType::handle())));
        let num_params = num_params as i64;
        Self { builder, num_params, params, open: vec![Vec::new()], conditions: Vec::new(), registers: num_params + 1 }
    }

    /// The first register that is free.
    pub fn first_free(&self) -> i64 {
        self.num_params + 1
    }

    /// The function, and how many registers it works on.
    pub fn finish(self, symbol: &str) -> (PrimFunc, i64) {
        let body = Stmt::seq(self.open.into_iter().flatten());
        let mut function = PrimFunc::over_buffers(&[], &self.params, body);
        function.attrs = Attrs::new().with("global_symbol", symbol);
        (function, self.registers)
    }

    fn push(&mut self, stmt: Stmt) {
        if let Some(block) = self.open.last_mut() {
            block.push(stmt);
        }
    }

    fn param(&self, at: usize) -> PrimExpr {
        PrimExpr::from(&self.params[at])
    }

    fn item(&mut self, list: usize, index: i64) -> PrimExpr {
        prim::call(DataType::handle(), "tirx.anylist_getitem", vec![self.param(list), place(index)])
    }

    fn register(&mut self, register: Register) -> i64 {
        self.registers = self.registers.max(register.0 + 1);
        register.0
    }

    fn value(&mut self, arg: Arg) -> PrimExpr {
        match arg {
            Arg::Register(Register::VM) => self.param(0),
            Arg::Register(Register::VOID) => {
                prim::call(DataType::handle(), "tirx.reinterpret", vec![prim::int_of(DataType::int(64), 0)])
            }
            Arg::Register(register) => {
                let index = self.register(register);
                self.item(1, index)
            }
            Arg::Immediate(value) => prim::int_of(DataType::int(64), value),
            Arg::Constant(index) => self.item(2, index),
            Arg::Function(index) => self.item(3, index),
        }
    }

    /// A call, with its result put into a register if there is one.
    fn emit(&mut self, kind: &str, name: &str, args: Vec<PrimExpr>, dst: Register) {
        let mut all = Vec::new();
        let op = if dst == Register::VOID {
            format!("tirx.call_{kind}")
        } else {
            let index = self.register(dst);
            all.extend([self.param(1), place(index)]);
            format!("tirx.anylist_setitem_call_{kind}")
        };
        all.push(prim::string(name));
        all.extend(args);
        self.push(Stmt::evaluate(prim::call(DataType::int(32), op, all)));
    }
}

fn place(index: i64) -> PrimExpr {
    prim::int_of(DataType::int(32), index)
}

impl Emit for Native<'_> {
    fn constant(&mut self, value: Any) -> Arg {
        self.builder.constant(value)
    }

    fn function(&mut self, symbol: &str, kind: FuncKind) -> Arg {
        let kind = if kind == FuncKind::Vm { FuncKind::VmTir } else { kind };
        Arg::Function(self.builder.declare_function(symbol, kind) as i64)
    }

    fn call(&mut self, callee: Callee<'_>, args: &[Arg], dst: Register) -> Result<(), BuildError> {
        let values: Vec<PrimExpr> = args.iter().map(|arg| self.value(*arg)).collect();
        match callee {
            Callee::Runtime(name) => self.emit("packed", name, values, dst),
            // What it returns may have to be released, even if nobody asked for it.
            Callee::Extern(name) if dst == Register::VOID && !is_builtin(name) => {
                let unused = Register(self.registers);
                self.emit("packed", name, values, unused);
            }
            Callee::Extern(name) => self.emit("packed", name, values, dst),
            Callee::Kernel(name) => self.emit("cpacked", name, values, dst),
            Callee::Function(name) => {
                let function = self.function(name, FuncKind::Vm);
                let mut all = vec![self.param(0), self.value(function)];
                all.extend(values);
                self.emit("packed", "vm.builtin.invoke_closure", all, dst);
            }
        }
        Ok(())
    }

    fn begin_if(&mut self, condition: Arg, _: &mut dyn FnMut() -> Register) -> Result<(), BuildError> {
        let args = vec![prim::string("vm.builtin.read_if_cond"), self.value(condition)];
        self.conditions.push((prim::call(DataType::bool(), "tirx.call_packed", args), None));
        self.open.push(Vec::new());
        Ok(())
    }

    fn otherwise(&mut self) -> Result<(), BuildError> {
        let then = self.open.pop().ok_or(BuildError::OutsideFunction)?;
        let (_, place) = self.conditions.last_mut().ok_or(BuildError::OutsideFunction)?;
        *place = Some(Stmt::seq(then));
        self.open.push(Vec::new());
        Ok(())
    }

    fn end_if(&mut self) -> Result<(), BuildError> {
        let last = self.open.pop().ok_or(BuildError::OutsideFunction)?;
        match self.conditions.pop().ok_or(BuildError::OutsideFunction)? {
            (condition, Some(then)) => self.push(Stmt::if_else(condition, then, Stmt::seq(last))),
            (condition, None) => self.push(Stmt::when(condition, Stmt::seq(last))),
        }
        Ok(())
    }

    fn ret(&mut self, result: Arg, _: &mut dyn FnMut() -> Register) -> Result<(), BuildError> {
        let (name, args) = match result {
            Arg::Register(Register::VOID) => ("vm.builtin.null_value", vec![]),
            other => ("vm.builtin.copy", vec![self.value(other)]),
        };
        self.emit("packed", name, args, Register(self.num_params));
        Ok(())
    }
}
