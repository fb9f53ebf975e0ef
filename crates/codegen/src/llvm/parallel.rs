//! Parallel loops.
//!
//! The loop becomes a function of its own, `int f(int task, group *, void *environment)`, which executes one task's
//! share: with `n` iterations and `t` tasks, task `i` has the iterations from `i * n / t` below `(i + 1) * n / t`.
//! What it needs from around the loop travels in a structure on the launching thread's stack. The runtime's thread pool
//! decides how many tasks there are. It is reached through one of two slots: `__RelaxideParallelFor`, which is told the
//! number of iterations and may make more tasks than there are threads, or else `__TVMBackendParallelLaunch`, which every
//! runtime of this interface fills. Where neither is filled, one task does everything. A loop inside a parallel loop is
//! executed by the thread that meets it.

use relaxide_ir::{BinaryOp, Ref, Var};
use relaxide_tir::{For, Stmt};

use super::{
    function::join,
    kernel::Body,
    module::global_name,
    stmt::LoopShape,
    value::{Overflow, Ty, Val},
};
use crate::{error::CodegenError, uses::Uses};

/// The structure that carries values into a parallel loop.
struct Environment {
    ty: String,
    fields: Vec<Val>,
}

impl Environment {
    fn new(fields: Vec<Val>) -> Self {
        Self { ty: format!("{{ {} }}", join(fields.iter().map(|field| field.ty))), fields }
    }
}

impl Body<'_, '_> {
    /// The loop on all threads of the pool; by this thread alone where `worth` is given and false.
    pub fn parallel_loop(&mut self, n: &Ref<For>, worth: Option<&Val>) -> Result<(), CodegenError> {
        let ty = self.kernel.ty(n.var.dtype())?;
        let (min, extent) = (self.index_typed(&n.min)?, self.index(&n.extent)?);
        let min = self.f.convert(&min, ty);
        self.forget_values();
        let captured: Vec<(Ref<Var>, Val)> = Uses::of(&n.body)
            .into_iter()
            .filter_map(|var| self.vars.get(&var).cloned().map(|value| (var, value)))
            .collect();
        let fields = captured.iter().map(|(_, value)| value.clone()).chain([min, extent]).collect();
        let environment = Environment::new(fields);
        let vars: Vec<Ref<Var>> = captured.into_iter().map(|(var, _)| var).collect();
        let task = self.task_function(n, &vars, &environment)?;

        let extent = environment.fields.last().cloned();
        let extent = extent.ok_or_else(|| self.kernel.malformed("a parallel loop without bounds"))?;
        let memory = self.f.stack_slot(&environment.ty, 1, 8);
        for (index, field) in environment.fields.iter().enumerate() {
            let place = self.field(&environment, &memory, index);
            self.f.effect(format_args!("store {field}, {place}"));
        }
        self.launch(&task, &memory, &extent, worth)
    }

    /// Runs the task function on the pool, or here if there is none or it is not worth it.
    fn launch(&mut self, task: &str, memory: &Val, extent: &Val, worth: Option<&Val>) -> Result<(), CodegenError> {
        let (done, alone, share) = (self.f.label(), self.f.label(), self.f.label());
        let (divide, other, pool) = (self.f.label(), self.f.label(), self.f.label());
        match worth {
            Some(worth) => self.f.branch_if(worth, share, alone),
            None => self.f.branch(share),
        }
        self.f.start(share);
        let parallel_for = self.runtime_function("RelaxideParallelFor");
        let missing = self.f.icmp("eq", &parallel_for, &Val::zero(Ty::PTR));
        self.f.branch_if(&missing, other, divide);

        self.f.start(divide);
        let call = format_args!("call i32 {}(ptr {task}, {memory}, {extent})", parallel_for.text);
        let code_divide = self.f.emit(Ty::I32, call);
        let from_divide = self.f.current();
        self.f.branch(done);

        self.f.start(other);
        let launch = self.runtime_function("TVMBackendParallelLaunch");
        let missing = self.f.icmp("eq", &launch, &Val::zero(Ty::PTR));
        self.f.branch_if(&missing, alone, pool);

        self.f.start(pool);
        let code_pool = self.f.emit(Ty::I32, format_args!("call i32 {}(ptr {task}, {memory}, i32 0)", launch.text));
        let from_pool = self.f.current();
        self.f.branch(done);

        self.f.start(alone);
        let group = self.f.stack_slot("{ ptr, i32 }", 1, 8);
        self.f.effect(format_args!("store {{ ptr, i32 }} {{ ptr null, i32 1 }}, {group}"));
        let code_alone = self.f.emit(Ty::I32, format_args!("call i32 {task}(i32 0, {group}, {memory})"));
        let from_alone = self.f.current();
        self.f.branch(done);

        self.f.start(done);
        let codes = [(code_divide, from_divide), (code_pool, from_pool), (code_alone, from_alone)];
        let code = self.f.phi(Ty::I32, &codes);
        self.leave_unless_zero(&code);
        Ok(())
    }

    /// Writes the function of one task; returns its name.
    fn task_function(
        &mut self,
        n: &Ref<For>,
        vars: &[Ref<Var>],
        environment: &Environment,
    ) -> Result<String, CodegenError> {
        let number = self.f.module.fresh_number();
        let name = global_name(&format!("{}.parallel{number}", self.kernel.name));
        let mut task = Body::new(self.kernel, &mut *self.f.module);
        task.in_parallel = true;
        let line = task.f.line_of(&Stmt::For(n.clone()));
        let symbol = name.trim_matches(['@', '"']);
        task.f.describe(&self.kernel.name, symbol, line);
        let memory = Val::new(Ty::PTR, "%environment");
        let invariant = task.f.module.metadata("!{}");
        let mut fields = Vec::with_capacity(environment.fields.len());
        for (index, field) in environment.fields.iter().enumerate() {
            let place = task.field(environment, &memory, index);
            fields.push(task.f.emit(field.ty, format_args!("load {}, {place}, !invariant.load {invariant}", field.ty)));
        }
        for (var, field) in vars.iter().zip(&fields) {
            task.vars.insert(var.clone(), field.clone());
        }
        let [.., min, extent] = fields.as_slice() else {
            return Err(self.kernel.malformed("a parallel loop without bounds"));
        };
        let (start, stop) = task.share(extent);
        let (start, stop) = (task.f.convert(&start, min.ty), task.f.convert(&stop, min.ty));
        let begin = task.f.binary(BinaryOp::Add, min, &start, Overflow::Never);
        let end = task.f.binary(BinaryOp::Add, min, &stop, Overflow::Never);
        let vectors = LoopShape::of(&n.body).has_vectors;
        task.counted_loop(n, &begin, &end, None, vectors)?;
        task.leave(0);
        let head = format!("define internal i32 {name}(i32 %task, ptr %group, ptr noalias readonly %environment) #0");
        let text = task.f.finish(&head);
        self.f.module.function(&text);
        Ok(name)
    }

    /// The first iteration of this task, and the first that is no longer its own.
    fn share(&mut self, extent: &Val) -> (Val, Val) {
        let place = self.f.emit(Ty::PTR, "getelementptr inbounds { ptr, i32 }, ptr %group, i64 0, i32 1");
        let tasks = self.f.emit(Ty::I32, format_args!("load i32, {place}"));
        let tasks = self.f.convert(&tasks, Ty::I64);
        let task = self.f.convert(&Val::new(Ty::I32, "%task"), Ty::I64);
        let one = Val::int(Ty::I64, 1);
        let tasks = self.f.binary(BinaryOp::Max, &tasks, &one, Overflow::Never);
        let next = self.f.binary(BinaryOp::Add, &task, &one, Overflow::Never);
        let [start, stop] = [task, next].map(|task| {
            let done = self.f.binary(BinaryOp::Mul, &task, extent, Overflow::Never);
            self.f.op("sdiv", &done, &tasks)
        });
        (start, stop)
    }

    fn field(&mut self, environment: &Environment, memory: &Val, index: usize) -> Val {
        let ty = &environment.ty;
        self.f.emit(Ty::PTR, format_args!("getelementptr inbounds {ty}, {memory}, i64 0, i32 {index}"))
    }
}
