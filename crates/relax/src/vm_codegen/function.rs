//! One function: registers, bindings, branches.

use std::collections::HashMap;

use relaxide_ffi::{Any, Shape};
use relaxide_ir::pass::Refusal;
use relaxide_ir::prim::PrimExpr;
use relaxide_ir::span::MaybeSpan;
use relaxide_ir::{Code, IRModule, Type};
use relaxide_vm::{Arg, BuildError, FuncKind, Register};

use super::emit::{Callee, Emit};
use super::{CodegenError, callee_of, tail};
use crate::op::{self, Lowering};
use crate::transform::legalize;
use crate::*;

/// Emits the body of a function: parameters are in the first registers, `first` is the first that is free.
pub fn generate(
    out: &mut dyn Emit,
    module: &IRModule,
    symbol: &str,
    f: &Function,
    first: i64,
) -> Result<(), CodegenError> {
    let registers = f.params.iter().enumerate().map(|(i, p)| (p.clone().into(), Register(i as i64))).collect();
    let mut g = Generator { out, module, symbol, registers, next: first, span: f.span.clone() };
    if g.out.can_restart() && tail::ending(&f.body, symbol).is_some() {
        return g.tail(&f.body, f.params.len(), &[]);
    }
    let result = g.seq(&f.body)?;
    let next = &mut g.next;
    g.out.ret(result, &mut || fresh(next)).map_err(|e| g.refused(e))
}

fn fresh(next: &mut i64) -> Register {
    *next += 1;
    Register(*next - 1)
}

/// The nodes of a model that a binding was made of.
fn origin(binding: &Binding) -> Option<&str> {
    let of_call = match binding.value() {
        Expr::Call(call) => call.span.as_ref(),
        _ => None,
    };
    let span = of_call.filter(|span| span.is_node()).or_else(|| binding.var().span().filter(|span| span.is_node()));
    span.map(|span| span.source.as_str())
}

struct Generator<'a> {
    out: &'a mut dyn Emit,
    module: &'a IRModule,
    symbol: &'a str,
    registers: HashMap<AnyVar, Register>,
    next: i64,
    /// Where the binding was written that is being generated.
    span: MaybeSpan,
}

impl Generator<'_> {
    fn refused(&self, source: BuildError) -> CodegenError {
        CodegenError::Build { function: self.symbol.into(), source }
    }

    fn refuse<T>(&self, refusal: Refusal) -> Result<T, CodegenError> {
        let refusal = Box::new(refusal.at(self.span.clone()));
        Err(CodegenError::NotLowered { function: self.symbol.into(), refusal })
    }

    fn not_lowered<T>(&self, message: impl Into<String>) -> Result<T, CodegenError> {
        self.refuse(
            Refusal::new(Code::Bytecode, message).help("compile with the pipeline `default` or `default_build`"),
        )
    }

    fn fresh(&mut self) -> Register {
        fresh(&mut self.next)
    }

    /// Emits a call of a function of the runtime.
    fn emit(&mut self, callee: &str, args: &[Arg], dst: Register) -> Result<(), CodegenError> {
        self.out.call(Callee::Runtime(callee), args, dst).map_err(|e| self.refused(e))
    }

    /// Emits the bindings of a sequence; its result as an argument.
    fn seq(&mut self, seq: &SeqExpr) -> Result<Arg, CodegenError> {
        for binding in seq.blocks.iter().flat_map(|block| &block.bindings) {
            self.binding(binding)?;
        }
        match &seq.body {
            Expr::Tuple(_) | Expr::TupleGetItem(_) | Expr::Call(_) | Expr::If(_) => {
                let dst = self.fresh();
                self.value_into(&seq.body, dst)?;
                Ok(Arg::Register(dst))
            }
            body => self.arg(body),
        }
    }

    /// Emits a sequence that the function ends with: it returns, or begins again.
    fn tail(&mut self, seq: &SeqExpr, params: usize, kills: &[&Call]) -> Result<(), CodegenError> {
        let Some(tail::Ending { before, last, kills: own }) = tail::ending(seq, self.symbol) else {
            let result = self.seq(seq)?;
            let next = &mut self.next;
            return self.out.ret(result, &mut || fresh(next)).map_err(|e| self.refused(e));
        };
        for binding in before {
            self.binding(binding)?;
        }
        let kills: Vec<&Call> = own.into_iter().chain(kills.iter().copied()).collect();
        match last {
            Expr::If(choice) => {
                let condition = self.arg(&choice.condition)?;
                let next = &mut self.next;
                self.out.begin_if(condition, &mut || fresh(next)).map_err(|e| self.refused(e))?;
                let known = self.registers.clone();
                self.tail(&choice.true_branch, params, &kills)?;
                self.registers = known;
                self.out.end_if().map_err(|e| self.refused(e))?;
                self.tail(&choice.false_branch, params, &kills)
            }
            Expr::Call(call) => self.again(call, params, &kills),
            _ => self.not_lowered("a function cannot end like this"),
        }
    }

    /// Begins the function again with the arguments of a call as its parameters.
    fn again(&mut self, call: &Call, params: usize, kills: &[&Call]) -> Result<(), CodegenError> {
        let mut args = self.args(&call.args)?;
        if args.len() != params {
            return self.not_lowered(format!("{} takes {params} arguments, not {}", self.symbol, args.len()));
        }
        // A parameter that goes into another place would be overwritten before it is read.
        let mut spare = Vec::new();
        for (i, arg) in args.iter_mut().enumerate() {
            if let Arg::Register(register) = *arg
                && register.0 != i as i64
                && usize::try_from(register.0).is_ok_and(|r| r < params)
            {
                let place = self.fresh();
                self.emit("vm.builtin.copy", &[Arg::Register(register)], place)?;
                spare.push(place);
                *arg = Arg::Register(place);
            }
        }
        for (i, arg) in args.into_iter().enumerate() {
            let place = Register(i as i64);
            if arg != Arg::Register(place) {
                self.emit("vm.builtin.copy", &[arg], place)?;
            }
        }
        for place in spare {
            self.emit("vm.builtin.null_value", &[], place)?;
        }
        for kill in kills {
            // A parameter has its new value by now.
            if let Some(Arg::Register(register)) = kill.args.first().map(|arg| self.arg(arg)).transpose()?
                && !usize::try_from(register.0).is_ok_and(|r| r < params)
            {
                self.emit("vm.builtin.null_value", &[], register)?;
            }
        }
        self.out.restart().map_err(|e| self.refused(e))
    }

    fn binding(&mut self, binding: &Binding) -> Result<(), CodegenError> {
        if let Expr::Call(call) = binding.value()
            && call.op_name() == Some("vm.kill_object")
        {
            return self.kill(call);
        }
        self.span = binding.var().span().cloned().or_else(|| self.span.take());
        if let Expr::Call(call) = binding.value()
            && call.op_name() == Some("null_value")
        {
            self.registers.insert(binding.var().clone(), Register::VOID);
            return Ok(());
        }
        let effect_only = matches!(binding.value(), Expr::Call(_))
            && matches!(binding.var().ty(), Type::Tuple(t) if t.fields.is_empty());
        let dst = if effect_only { Register::VOID } else { self.fresh() };
        self.value_into(binding.value(), dst)?;
        // What lowering put in front of a binding, such as its checks and its memory, belongs to it.
        if let Some(words) = origin(binding) {
            self.out.origin(words);
        }
        self.registers.insert(binding.var().clone(), dst);
        Ok(())
    }

    fn kill(&mut self, call: &Call) -> Result<(), CodegenError> {
        match call.args.first().map(|arg| self.arg(arg)).transpose()? {
            Some(Arg::Register(register)) => self.emit("vm.builtin.null_value", &[], register),
            _ => self.not_lowered("vm.kill_object takes a variable"),
        }
    }

    /// Emits what puts the value of an expression into a register.
    fn value_into(&mut self, value: &Expr, dst: Register) -> Result<(), CodegenError> {
        match value {
            Expr::Call(call) => self.call(call, dst),
            Expr::Tuple(tuple) => {
                let args = self.args(&tuple.fields)?;
                self.emit("vm.builtin.make_tuple", &args, dst)
            }
            Expr::TupleGetItem(item) => {
                let tuple = self.arg(&item.tuple)?;
                self.emit("vm.builtin.tuple_getitem", &[tuple, Arg::Immediate(item.index)], dst)
            }
            Expr::If(choice) => self.branch(choice, dst),
            Expr::Seq(seq) => {
                let result = self.seq(seq)?;
                self.emit("vm.builtin.copy", &[result], dst)
            }
            other => {
                let arg = self.arg(other)?;
                self.emit("vm.builtin.copy", &[arg], dst)
            }
        }
    }

    fn branch(&mut self, choice: &If, dst: Register) -> Result<(), CodegenError> {
        let condition = self.arg(&choice.condition)?;
        let next = &mut self.next;
        self.out.begin_if(condition, &mut || fresh(next)).map_err(|e| self.refused(e))?;
        let result = self.seq(&choice.true_branch)?;
        self.emit("vm.builtin.copy", &[result], dst)?;
        self.out.otherwise().map_err(|e| self.refused(e))?;
        let result = self.seq(&choice.false_branch)?;
        self.emit("vm.builtin.copy", &[result], dst)?;
        self.out.end_if().map_err(|e| self.refused(e))
    }

    fn call(&mut self, call: &Call, dst: Register) -> Result<(), CodegenError> {
        match &call.op {
            Expr::Op(op) => self.op_call(&op.name, call, dst),
            Expr::Extern(f) => {
                let args = self.args(&call.args)?;
                self.out.call(Callee::Extern(&f.global_symbol), &args, dst).map_err(|e| self.refused(e))
            }
            Expr::Global(gv) => {
                let Some((symbol, kind)) = callee_of(self.module, &gv.name) else {
                    return self.not_lowered(format!("the module has no function {:?}", gv.name));
                };
                let args = self.args(&call.args)?;
                if kind == FuncKind::Packed {
                    return self.out.call(Callee::Kernel(&symbol), &args, dst).map_err(|e| self.refused(e));
                }
                // A function of the VM writes its result into a register, even where nobody looks at it.
                let dst = if dst == Register::VOID { self.fresh() } else { dst };
                self.out.call(Callee::Function(&symbol), &args, dst).map_err(|e| self.refused(e))
            }
            callee @ (Expr::Var(_) | Expr::DataflowVar(_)) => {
                let mut args = vec![Arg::Register(Register::VM), self.arg(callee)?];
                args.extend(self.args(&call.args)?);
                self.emit("vm.builtin.invoke_closure", &args, dst)
            }
            other => self.not_lowered(format!("{other:?} cannot be called; nested functions need LambdaLift")),
        }
    }

    fn op_call(&mut self, name: &str, call: &Call, dst: Register) -> Result<(), CodegenError> {
        let vm = Arg::Register(Register::VM);
        match (name, call.args.as_slice()) {
            ("vm.alloc_storage", args) => {
                let args =
                    std::iter::once(Ok(vm)).chain(args.iter().map(|a| self.arg(a))).collect::<Result<Vec<_>, _>>()?;
                self.emit("vm.builtin.alloc_storage", &args, dst)
            }
            ("vm.alloc_tensor", [storage, offset, shape, dtype, ..]) => {
                let args = [self.arg(storage)?, self.arg(offset)?, self.arg(shape)?, self.arg(dtype)?];
                self.emit("vm.builtin.alloc_tensor", &args, dst)
            }
            ("vm.call_tir_dyn", [callee, Expr::Tuple(tuple)]) => {
                let mut args = vec![self.arg(callee)?];
                args.extend(self.args(&tuple.fields)?);
                self.emit("vm.builtin.call_tir_dyn", &args, dst)
            }
            ("call_builtin_with_ctx", [Expr::Extern(f), Expr::Tuple(tuple)]) => {
                let mut args = vec![vm];
                args.extend(self.args(&tuple.fields)?);
                self.emit(&f.global_symbol, &args, dst)
            }
            ("null_value", []) => self.emit("vm.builtin.null_value", &[], dst),
            _ => self.operator_left(call, name),
        }
    }

    /// An operator that is left: mostly because not enough is known of its arguments.
    fn operator_left<T>(&self, call: &Call, name: &str) -> Result<T, CodegenError> {
        let args: Vec<String> = call.args.iter().map(|arg| display::type_text(&arg.ty())).collect();
        let can = op::lookup(name).is_some_and(|def| matches!(def.lower, Lowering::Scalar(_) | Lowering::Compute(_)));
        if !can || legalize::is_known(call) {
            return self
                .not_lowered(format!("operator {name} is left; LegalizeOps and LowerRuntimeBuiltin come first"));
        }
        let message = format!("no kernel of operator {name} is made of what is known: {name}({})", args.join(", "));
        let help = "R.match_cast gives a value of unknown shape a shape with symbolic dimensions";
        self.refuse(Refusal::new(Code::NoLowering, message).help(help))
    }

    fn args(&mut self, list: &[Expr]) -> Result<Vec<Arg>, CodegenError> {
        list.iter().map(|e| self.arg(e)).collect()
    }

    /// An operand as an argument word.
    fn arg(&mut self, e: &Expr) -> Result<Arg, CodegenError> {
        if let Some(var) = e.as_var() {
            return match self.registers.get(&var) {
                Some(register) => Ok(Arg::Register(*register)),
                None => self.not_lowered(format!("variable {} is used before it is bound", var.name())),
            };
        }
        let constant: Any = match e {
            Expr::Constant(c) => c.value.clone().into(),
            Expr::Str(s) => s.value.as_str().into(),
            Expr::DType(d) => d.value.into(),
            Expr::Prim(p) => return self.scalar(&p.value),
            Expr::Shape(shape) => {
                let dims: Option<Vec<i64>> = shape.values.iter().map(PrimExpr::as_int).collect();
                match dims {
                    Some(dims) => Shape::new(&dims).into(),
                    None => return self.not_lowered("a symbolic shape is left; VMShapeLower comes first"),
                }
            }
            Expr::Global(gv) => {
                let Some((symbol, kind)) = callee_of(self.module, &gv.name) else {
                    return self.not_lowered(format!("the module has no function {:?}", gv.name));
                };
                return Ok(self.out.function(&symbol, kind));
            }
            Expr::Extern(f) => return Ok(self.out.function(&f.global_symbol, FuncKind::Packed)),
            Expr::Call(call) if call.op_name() == Some("null_value") => return Ok(Arg::Register(Register::VOID)),
            Expr::Tuple(_) | Expr::TupleGetItem(_) | Expr::Call(_) | Expr::If(_) | Expr::Seq(_) => {
                let dst = self.fresh();
                self.value_into(e, dst)?;
                return Ok(Arg::Register(dst));
            }
            other => return self.not_lowered(format!("{other:?} cannot be an argument")),
        };
        Ok(self.out.constant(constant))
    }

    fn scalar(&mut self, value: &PrimExpr) -> Result<Arg, CodegenError> {
        match value {
            PrimExpr::Int(imm) => Ok(self.out.constant(imm.value.into())),
            PrimExpr::Float(imm) => Ok(self.out.constant(imm.value.into())),
            PrimExpr::Str(imm) => Ok(self.out.constant(imm.value.as_str().into())),
            PrimExpr::Var(var) if self.registers.contains_key(&AnyVar::Var(var.clone())) => {
                Ok(Arg::Register(self.registers[&AnyVar::Var(var.clone())]))
            }
            other => self.not_lowered(format!(
                "the scalar {} is left; ComputePrimValue and VMShapeLower come first",
                display::dim_text(other)
            )),
        }
    }
}
