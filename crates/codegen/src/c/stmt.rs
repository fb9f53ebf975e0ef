//! Statements.

use relaxide_ir::prim::is_data;
use relaxide_ir::{PrimExpr, Type};
use relaxide_runtime::device::Axis;
use relaxide_tir::schedule::nest::PARALLEL_IF;
use relaxide_tir::{EarlyExit, For, ForKind, IfThenElse, SeqStmt, Stmt, While};

use super::{
    body::{Body, Known},
    code::Code,
    shared::{has_effects, shared},
    types::value_type,
};
use crate::{
    error::CodegenError,
    shared::{Overflow, Ty, first_line},
};

impl Body<'_, '_> {
    /// Writes one statement.
    pub fn stmt(&mut self, stmt: &Stmt) -> Result<(), CodegenError> {
        self.write(stmt).map_err(|error| error.in_statement(|| first_line(stmt)))
    }

    fn write(&mut self, stmt: &Stmt) -> Result<(), CodegenError> {
        self.forget();
        match stmt.early_exit() {
            Some(jump @ (EarlyExit::Break | EarlyExit::Continue)) => return self.leave_loop(jump),
            Some(EarlyExit::Return(value)) => {
                self.begin(value);
                return self.return_value(value);
            }
            None => {}
        }
        match stmt {
            Stmt::For(n) => self.for_loop(n),
            Stmt::While(n) => self.while_loop(n),
            Stmt::Seq(n) => self.block_of(n),
            Stmt::If(n) => self.branch(n),
            Stmt::Store(n) => self.store(n),
            Stmt::Bind(n) => self.bind(&n.var, &n.value),
            Stmt::Evaluate(n) => self.evaluate(&n.value),
            Stmt::Assert(n) => {
                self.begin([&n.condition]);
                let condition = self.condition(&n.condition)?;
                self.block(format_args!("if ({})", Code::not(&condition).text), |this| match n.told() {
                    Some((texts, numbers)) if this.kernel.device.is_none() => {
                        this.fail_with_numbers(&n.error_kind, texts, numbers)
                    }
                    _ => {
                        this.fail(&n.error_kind, &n.said());
                        Ok(())
                    }
                })
            }
            Stmt::Attr(n) => match &n.body {
                Stmt::For(inner) if n.key == PARALLEL_IF && inner.kind == ForKind::Parallel && !self.in_parallel => {
                    self.begin([&n.value]);
                    let worth = self.condition(&n.value)?;
                    self.parallel_loop(inner, Some(&worth))
                }
                body => self.stmt(body),
            },
            // Memory that nothing follows is memory that nothing uses.
            Stmt::Alloc(_) => Ok(()),
            Stmt::Decl(n) if n.is_view() => Ok(()),
            Stmt::Decl(n) => self.bind(&n.buffer.data, &n.data),
            // EarlyExits, which were written above.
            Stmt::Break(_) | Stmt::Continue(_) | Stmt::Return(_) => Ok(()),
            Stmt::ScopeIds(_) | Stmt::Tile(_) => {
                Err(self.kernel.malformed("a statement about tiles was not lowered".to_string()))
            }
            Stmt::Block(n) => {
                Err(self.kernel.malformed(format!("block `{}` was not lowered to statements", n.block.name)))
            }
        }
    }

    /// Prepares for the expressions of a statement.
    pub fn begin<'e>(&mut self, expressions: impl IntoIterator<Item = &'e PrimExpr> + Clone) {
        self.shared = shared(expressions.clone());
        self.in_order = has_effects(expressions);
    }

    fn evaluate(&mut self, value: &PrimExpr) -> Result<(), CodegenError> {
        self.begin([value]);
        if value.dtype().lanes > 1 {
            self.vector("vector", value)?;
            return Ok(());
        }
        // What has a name was computed for its effect; the rest has none but that.
        let code = self.eval(value)?;
        let is_call = matches!(value, PrimExpr::Call(_)) && code.text.ends_with(')');
        if is_call {
            self.line(format_args!("(void){};", code.inside(super::code::Level::Unary)));
        }
        Ok(())
    }

    fn bind(&mut self, var: &relaxide_ir::Ref<relaxide_ir::Var>, value: &PrimExpr) -> Result<(), CodegenError> {
        if !self.kernel.pointers.uses(var) {
            return self.evaluate(value);
        }
        self.begin([value]);
        // What only serves indices is integer and does not overflow.
        let index_like = matches!(&var.ty, Type::Prim(ty) if ty.dtype.is_int()) && !is_data(value);
        let promise = if index_like { Overflow::Never } else { Overflow::Wraps };
        let outer = std::mem::replace(&mut self.overflow, promise);
        let known = self.bound(&var.name, value);
        self.overflow = outer;
        self.vars.insert(var.clone(), known?);
        Ok(())
    }

    /// Statements in order; what is defined among them is not known behind them.
    fn block_of(&mut self, n: &SeqStmt) -> Result<(), CodegenError> {
        let defines = n.seq.iter().any(|stmt| matches!(stmt, Stmt::Alloc(_) | Stmt::Bind(_)));
        // The whole of a function, a loop or a choice is between braces already.
        if !defines || self.at_beginning() {
            return self.sequence(n);
        }
        self.block("", |this| this.sequence(n))
    }

    fn sequence(&mut self, n: &SeqStmt) -> Result<(), CodegenError> {
        let mark = self.workspaces.len();
        for stmt in &n.seq {
            match stmt {
                Stmt::Alloc(alloc) => {
                    self.allocate(&alloc.buffer).map_err(|error| error.in_statement(|| first_line(stmt)))?;
                }
                other => self.stmt(other)?,
            }
        }
        for workspace in self.workspaces.split_off(mark).iter().rev() {
            self.free_workspace(workspace);
        }
        Ok(())
    }

    fn branch(&mut self, n: &IfThenElse) -> Result<(), CodegenError> {
        if n.condition.dtype().lanes > 1 {
            return Err(self.kernel.malformed("a statement under a vector of conditions"));
        }
        self.begin([&n.condition]);
        let condition = self.index_condition(&n.condition)?;
        self.block(format_args!("if ({})", condition.text), |this| this.stmt(&n.then_case))?;
        match &n.else_case {
            Some(other) => self.block("else", |this| this.stmt(other)),
            None => Ok(()),
        }
    }

    fn for_loop(&mut self, n: &For) -> Result<(), CodegenError> {
        match n.kind {
            ForKind::Parallel if !self.in_parallel => return self.parallel_loop(n, None),
            ForKind::ThreadBinding if self.kernel.device.is_some() => return self.thread_axis(n),
            ForKind::ThreadBinding => {
                return Err(self.kernel.unsupported(format!("a loop bound to `{}`", n.thread_tag)));
            }
            ForKind::Serial | ForKind::Parallel | ForKind::Vectorized | ForKind::Unrolled => {}
        }
        if n.extent.as_int().is_some_and(|count| count <= 0) {
            return Ok(());
        }
        self.begin([&n.min, &n.extent]);
        let ty = self.kernel.ty(n.var.dtype())?;
        let (min_kind, extent_kind) = (self.kernel.ty(n.min.dtype())?.kind, self.kernel.ty(n.extent.dtype())?.kind);
        let (min, extent) = (self.index(&n.min)?, self.index(&n.extent)?);
        let (mut min, extent) = (self.convert(min, min_kind, ty.kind), self.convert(extent, extent_kind, ty.kind));
        let names = self.mark_names();
        let c_type = value_type(ty.kind);
        let is_natural = self.is_natural(&n.min) && ty.kind.is_signed();
        let body = |this: &mut Self, name: &str| {
            let known = Known { is_natural, ..Known::scalar(name, c_type) };
            this.vars.insert(n.var.clone(), known);
            this.stmt(&n.body)
        };
        // Bounds are computed once, and what they read may change meanwhile.
        if is_data(&n.min) {
            min = Code::atom(self.define(&format!("{}_min", n.var.name), c_type, &min));
        }
        let mut end = self.end_of(n, ty, &min, extent);
        if is_data(&n.extent) || is_data(&n.min) {
            end = Code::atom(self.define(&format!("{}_end", n.var.name), c_type, &end));
        }
        let name = self.fresh(&n.var.name);
        let end = end.inside(super::code::Level::Add);
        self.loops.push(self.workspaces.len());
        let done = self.block(format_args!("for ({c_type} {name} = {}; {name} < {end}; ++{name})", min.text), |this| {
            body(this, &name)
        });
        self.loops.pop();
        self.release_names(names);
        done
    }

    /// A loop whose iterations are threads of a device, or blocks of them.
    fn thread_axis(&mut self, n: &For) -> Result<(), CodegenError> {
        let (function, axis) = match Axis::of(&n.thread_tag) {
            Some(Axis::Block(axis)) => ("get_group_id", axis),
            Some(Axis::Thread(axis)) => ("get_local_id", axis),
            None => return Err(self.kernel.unsupported(format!("a loop bound to `{}`", n.thread_tag))),
        };
        let c_type = value_type(self.kernel.ty(n.var.dtype())?.kind);
        let name = self.fresh(&n.var.name);
        self.line(format_args!("const {c_type} {name} = ({c_type}){function}({axis});"));
        self.vars.insert(n.var.clone(), Known { is_natural: true, ..Known::scalar(name, c_type) });
        self.stmt(&n.body)
    }

    /// The first value that a loop's counter does not have.
    fn end_of(&mut self, n: &For, ty: Ty, min: &Code, extent: Code) -> Code {
        match (n.min.as_int(), n.extent.as_int()) {
            (Some(0), _) => extent,
            (Some(min), Some(extent)) => super::code::integer(ty, min.wrapping_add(extent)),
            _ => Code::infix(min, "+", &extent, super::code::Level::Add),
        }
    }

    fn while_loop(&mut self, n: &While) -> Result<(), CodegenError> {
        self.begin([&n.condition]);
        let (condition, lines) = self.apart(|this| this.condition(&n.condition));
        let condition = condition?;
        self.loops.push(self.workspaces.len());
        let done = match lines.is_empty() {
            true => self.block(format_args!("while ({})", condition.text), |this| this.stmt(&n.body)),
            false => self.block("for (;;)", |this| {
                this.add(&lines);
                this.line(format_args!("if ({}) break;", Code::not(&condition).text));
                this.stmt(&n.body)
            }),
        };
        self.loops.pop();
        done
    }

    /// Goes to the end of the innermost loop, or of its iteration; memory that was allocated inside of it is freed before.
    fn leave_loop(&mut self, jump: EarlyExit<'_>) -> Result<(), CodegenError> {
        let Some(outside) = self.loops.last().copied() else {
            return Err(self.kernel.malformed(format!("`{}` outside of a loop", jump.word())));
        };
        for workspace in self.workspaces[outside..].to_vec().iter().rev() {
            self.free_workspace(workspace);
        }
        self.line(format_args!("{};", jump.word()));
        Ok(())
    }
}
