//! What each expression says of the devices of its parts.
//!
//! An operator's operands and its result are on one device; so are the fields of a tuple and it, a value and the variable that it is
//! bound to, the branches of a choice and what it gives, arguments and parameters. `on_device` parts its operand from its result
//! unless it says that it does not: where they come out on different devices, a copy is made. The value of a binding and the body
//! of a function are bound to what `on_device` says, as the reference has it. A constant is wherever it is used.
//!
//! A condition is read by the host. It is wished to be there, and copied where it cannot be.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::Span;

use super::domain::{Conflict, Domain, Domains};
use super::{DeviceConfig, OnDevice, RESULT, VirtualDevice, copy_ends};
use crate::stack::deep;
use crate::transform::TransformError;
use crate::*;

/// Where the values of a program are, by their nodes.
#[derive(Debug, Clone)]
pub struct Placement {
    by_node: HashMap<usize, usize>,
    /// Constants are where they are used: by call and place among the operands.
    operands: HashMap<(usize, usize), usize>,
    /// The devices of the program; the first is the host.
    pub devices: Vec<VirtualDevice>,
}

impl Default for Placement {
    fn default() -> Placement {
        Placement { by_node: HashMap::new(), operands: HashMap::new(), devices: vec![VirtualDevice::cpu()] }
    }
}

impl Placement {
    /// The device of an expression, by number.
    pub fn of(&self, expr: &Expr) -> usize {
        self.by_node.get(&expr.address()).copied().unwrap_or(0)
    }

    /// The device of a variable.
    pub fn of_var(&self, var: &Ref<Var>) -> usize {
        self.by_node.get(&Ref::as_ptr(var).addr()).copied().unwrap_or(0)
    }

    /// Where a call takes an operand.
    pub fn of_operand(&self, call: &Ref<Call>, index: usize) -> usize {
        self.operands.get(&(Ref::as_ptr(call).addr(), index)).copied().unwrap_or(0)
    }
}

/// Where the values of a program are that was planned.
pub fn placement(module: &Module, types: &Types, config: &DeviceConfig) -> Result<Placement, TransformError> {
    deep(|| {
        let solved = solve(module, types, config)?;
        let at = |domain: &Domain| solved.domains.known(*domain).unwrap_or(0);
        Ok(Placement {
            by_node: solved.by_node.iter().map(|(node, domain)| (*node, at(domain))).collect(),
            operands: solved.operands.iter().map(|(place, domain)| (*place, at(domain))).collect(),
            devices: solved.domains.devices,
        })
    })
}

/// The domains of a program, all of them known.
pub(super) struct Solved {
    pub domains: Domains,
    pub by_node: HashMap<usize, Domain>,
    operands: HashMap<(usize, usize), Domain>,
    /// The operand of each `on_device` and its result, where they may differ.
    pub crossings: HashMap<usize, (Domain, Domain)>,
    /// Where the function's result is in which a binding or a call without operands stands.
    pub around: HashMap<usize, Domain>,
}

pub(super) fn solve(module: &Module, types: &Types, config: &DeviceConfig) -> Result<Solved, TransformError> {
    let mut domains = Domains::new(config.host.clone());
    let default = domains.device(&config.default);
    let mut collector = Collector {
        module,
        types,
        solved: Solved {
            domains,
            by_node: HashMap::new(),
            operands: HashMap::new(),
            crossings: HashMap::new(),
            around: HashMap::new(),
        },
        globals: HashMap::new(),
        results: Vec::new(),
        conditions: Vec::new(),
        made: Vec::new(),
    };
    for name in module.functions.keys() {
        collector.global(name)?;
    }
    Ok(collector.finish(default))
}

struct Collector<'m> {
    module: &'m Module,
    types: &'m Types,
    solved: Solved,
    globals: HashMap<String, Domain>,
    /// The results of the functions that are being looked at.
    results: Vec<Domain>,
    conditions: Vec<Domain>,
    /// What was made, with the result of the function around it.
    made: Vec<(Domain, Domain)>,
}

fn place(span: Option<&Ref<Span>>) -> String {
    span.map_or_else(String::new, |s| format!(" at {}:{}:{}", s.source, s.line, s.column))
}

impl Collector<'_> {
    fn finish(mut self, default: usize) -> Solved {
        let domains = &mut self.solved.domains;
        // Conditions go to the host where nothing else says where they are.
        for condition in self.conditions {
            domains.default_to(condition, 0);
        }
        let globals: Vec<Domain> = self.globals.values().copied().collect();
        // What a function says nothing of is where its result is.
        for global in globals {
            if let Some((params, result)) = domains.parts(global) {
                let device = domains.known(result).unwrap_or(default);
                domains.default_to(result, device);
                params.into_iter().for_each(|param| domains.default_to(param, device));
            }
        }
        for (domain, around) in self.made.into_iter().rev() {
            let device = domains.known(around).unwrap_or(default);
            domains.default_to(domain, device);
        }
        self.solved
    }

    fn free(&mut self) -> Domain {
        let domain = self.solved.domains.free();
        self.note(domain)
    }

    fn of_type(&mut self, ty: Option<&Type>) -> Domain {
        let domain = self.solved.domains.of_type(ty);
        self.note(domain)
    }

    fn note(&mut self, domain: Domain) -> Domain {
        let around = self.results.last().copied().unwrap_or(domain);
        self.made.push((domain, around));
        domain
    }

    fn unify(&mut self, a: Domain, b: Domain, span: Option<&Ref<Span>>) -> Result<(), TransformError> {
        self.solved.domains.unify(a, b).map_err(|Conflict { devices: [(x, one), (y, other)] }| {
            let (x, y) = (&self.solved.domains.devices[x], &self.solved.domains.devices[y]);
            let meet = span.map_or_else(String::new, |_| format!(", which meet{}", place(span)));
            TransformError::Refused(format!(
                "a value would have to be on {x}, as is said{}, and on {y}, as is said{}{meet}; write \
                 on_device(…, constrain_result=False) where it may be copied",
                place(one.as_ref()),
                place(other.as_ref()),
            ))
        })
    }

    fn fix(&mut self, domain: Domain, device: &VirtualDevice, span: Option<&Ref<Span>>) -> Result<(), TransformError> {
        let number = self.solved.domains.device(device);
        let fixed = self.solved.domains.fixed(number, span);
        // Of a function, where its result is.
        let target = self.solved.domains.parts(domain).map_or(domain, |(_, result)| result);
        self.unify(target, fixed, span)
    }

    fn global(&mut self, name: &str) -> Result<Domain, TransformError> {
        if let Some(domain) = self.globals.get(name) {
            return Ok(*domain);
        }
        let Some(function) = self.module.functions.get(name).cloned() else {
            return Err(TransformError::Refused(format!("the module has no function `@{name}`")));
        };
        let domain = self.signature(&function)?;
        self.globals.insert(name.to_string(), domain);
        let outer = std::mem::take(&mut self.results);
        self.body(&function, domain)?;
        self.results = outer;
        Ok(domain)
    }

    /// The domain of a function from what it says of itself.
    fn signature(&mut self, function: &Ref<Function>) -> Result<Domain, TransformError> {
        let expr = Expr::Function(function.clone());
        let mut params = Vec::new();
        for param in &function.params {
            params.push(self.var(param)?);
        }
        let ret = match self.types.of(&expr) {
            Some(Type::Func(f)) => Some(f.ret.clone()),
            _ => function.ret_type.clone(),
        };
        let result = self.solved.domains.of_type(ret.as_ref());
        let domain = self.solved.domains.func(params, result);
        self.note(domain);
        if let Some(device) = device_of(function.attrs.get(RESULT))? {
            self.fix(result, &device, function.span.as_ref())?;
        }
        self.solved.by_node.insert(expr.address(), domain);
        Ok(domain)
    }

    fn body(&mut self, function: &Ref<Function>, domain: Domain) -> Result<(), TransformError> {
        let Some((_, result)) = self.solved.domains.parts(domain) else { return Ok(()) };
        self.results.push(result);
        let body = self.expr(&function.body)?;
        self.unify(body, result, function.span.as_ref())?;
        self.bound(&function.body)?;
        self.results.pop();
        Ok(())
    }

    /// What is bound, or given by a function, is where its own `on_device` says.
    fn bound(&mut self, value: &Expr) -> Result<(), TransformError> {
        let mut value = value;
        while let Expr::Let(l) = value {
            value = &l.body;
        }
        if let Some((call, "on_device")) = value.as_op_call()
            && let Some((body, result)) = self.solved.crossings.get(&value.address()).copied()
            && self.solved.domains.known(result).is_none()
        {
            return self.unify(body, result, call.span.as_ref());
        }
        Ok(())
    }

    fn var(&mut self, var: &Ref<Var>) -> Result<Domain, TransformError> {
        let key = Ref::as_ptr(var).addr();
        if let Some(domain) = self.solved.by_node.get(&key) {
            return Ok(*domain);
        }
        let domain = self.of_type(self.types.of_var(var).as_ref());
        self.solved.by_node.insert(key, domain);
        if let Some(device) = &var.device {
            self.fix(domain, device, var.span.as_ref())?;
        }
        Ok(domain)
    }

    fn expr(&mut self, expr: &Expr) -> Result<Domain, TransformError> {
        match expr {
            // Wherever it is used.
            Expr::Constant(_) => return Ok(self.free()),
            Expr::Var(var) => return self.var(var),
            Expr::Global(g) => return self.global(&g.name),
            Expr::Op(_) | Expr::Constructor(_) => return Ok(self.of_type(self.types.of(expr).as_ref())),
            _ => {}
        }
        if let Some(domain) = self.solved.by_node.get(&expr.address()) {
            return Ok(*domain);
        }
        let domain = self.inside(expr)?;
        self.solved.by_node.insert(expr.address(), domain);
        Ok(domain)
    }

    fn inside(&mut self, expr: &Expr) -> Result<Domain, TransformError> {
        let span = expr.span().cloned();
        let span = span.as_ref();
        match expr {
            Expr::Tuple(t) => self.together(&t.fields, span),
            Expr::TupleGetItem(t) => {
                let tuple = self.expr(&t.tuple)?;
                let field = self.of_type(self.types.of(expr).as_ref());
                self.unify(field, tuple, span)?;
                Ok(field)
            }
            Expr::Function(f) => {
                let domain = self.signature(f)?;
                self.body(f, domain)?;
                Ok(domain)
            }
            Expr::Call(call) => self.call(expr, call),
            Expr::Let(_) => self.lets(expr),
            Expr::If(i) => {
                let condition = self.expr(&i.cond)?;
                self.conditions.push(condition);
                let (then, other) = (self.expr(&i.then)?, self.expr(&i.other)?);
                self.unify(then, other, span)?;
                Ok(then)
            }
            Expr::RefCreate(r) => self.together(std::slice::from_ref(&r.value), span),
            Expr::RefRead(r) => {
                let reference = self.expr(&r.reference)?;
                let value = self.of_type(self.types.of(expr).as_ref());
                self.unify(value, reference, span)?;
                Ok(value)
            }
            Expr::RefWrite(r) => {
                let (reference, value) = (self.expr(&r.reference)?, self.expr(&r.value)?);
                self.unify(value, reference, span)?;
                Ok(self.free())
            }
            Expr::Match(m) => {
                let data = self.expr(&m.data)?;
                let result = self.of_type(self.types.of(expr).as_ref());
                for clause in &m.clauses {
                    for var in clause.pattern.vars() {
                        let var = self.var(&var)?;
                        self.unify(var, data, span)?;
                    }
                    let body = self.expr(&clause.body)?;
                    self.unify(body, result, span)?;
                }
                Ok(result)
            }
            _ => Ok(self.free()),
        }
    }

    /// What is made of values, and is where they are.
    fn together(&mut self, parts: &[Expr], span: Option<&Ref<Span>>) -> Result<Domain, TransformError> {
        let whole = self.free();
        for part in parts {
            let part = self.expr(part)?;
            self.unify(part, whole, span)?;
        }
        Ok(whole)
    }

    /// Bindings that follow each other, in a loop.
    fn lets(&mut self, expr: &Expr) -> Result<Domain, TransformError> {
        let (mut chain, mut expr) = (Vec::new(), expr);
        let around = self.results.last().copied();
        while let Expr::Let(l) = expr {
            // A function is visible in its own body.
            let var = self.var(&l.var)?;
            let value = self.expr(&l.value)?;
            self.unify(var, value, l.span.as_ref())?;
            self.bound(&l.value)?;
            if let Some(around) = around {
                self.solved.around.insert(expr.address(), around);
            }
            chain.push(expr.address());
            expr = &l.body;
        }
        let body = self.expr(expr)?;
        for node in chain {
            self.solved.by_node.insert(node, body);
        }
        Ok(body)
    }

    fn call(&mut self, expr: &Expr, call: &Ref<Call>) -> Result<Domain, TransformError> {
        let span = call.span.as_ref();
        match &call.op {
            Expr::Op(op) => self.operator(expr, call, &op.name),
            Expr::Constructor(_) => {
                let mut parts = Vec::new();
                let whole = self.free();
                for arg in &call.args {
                    parts.push(self.expr(arg)?);
                }
                for (i, part) in parts.into_iter().enumerate() {
                    self.operand(call, i, part);
                    self.unify(part, whole, span)?;
                }
                Ok(whole)
            }
            callee => {
                let callee = self.expr(callee)?;
                let mut args = Vec::new();
                for (i, arg) in call.args.iter().enumerate() {
                    let arg = self.expr(arg)?;
                    self.operand(call, i, arg);
                    args.push(arg);
                }
                let result = self.of_type(self.types.of(expr).as_ref());
                let called = self.solved.domains.func(args, result);
                self.unify(called, callee, span)?;
                Ok(result)
            }
        }
    }

    fn operand(&mut self, call: &Ref<Call>, index: usize, domain: Domain) {
        self.solved.operands.insert((Ref::as_ptr(call).addr(), index), domain);
    }

    fn operator(&mut self, expr: &Expr, call: &Ref<Call>, name: &str) -> Result<Domain, TransformError> {
        let span = call.span.as_ref();
        let mut args = Vec::new();
        for (i, arg) in call.args.iter().enumerate() {
            let arg = self.expr(arg)?;
            self.operand(call, i, arg);
            args.push(arg);
        }
        match (name, args.as_slice()) {
            ("on_device", [body]) => self.on_device(expr, call, *body),
            ("device_copy", [body]) => {
                let (from, to) =
                    copy_ends(&call.attrs).map_err(|e| TransformError::Refused(e.to_string() + &place(span)))?;
                self.fix(*body, &from, span)?;
                let result = self.free();
                self.fix(result, &to, span)?;
                Ok(result)
            }
            ("vm.shape_of", _) => {
                let result = self.free();
                self.host(result, span)?;
                Ok(result)
            }
            ("vm.reshape_tensor" | "memory.alloc_tensor", [data, numbers @ ..]) => {
                numbers.iter().try_for_each(|domain| self.host(*domain, span))?;
                Ok(*data)
            }
            ("memory.alloc_storage", sizes) => {
                sizes.iter().try_for_each(|domain| self.host(*domain, span))?;
                let result = self.free();
                if let Some(device) = device_of(call.attrs.get("virtual_device"))? {
                    self.fix(result, &device, span)?;
                }
                Ok(result)
            }
            ("memory.kill", _) => Ok(self.free()),
            _ => {
                let result = self.free();
                if args.is_empty()
                    && let Some(around) = self.results.last()
                {
                    self.solved.around.insert(expr.address(), *around);
                }
                args.into_iter().try_for_each(|arg| self.unify(arg, result, span))?;
                Ok(result)
            }
        }
    }

    fn host(&mut self, domain: Domain, span: Option<&Ref<Span>>) -> Result<(), TransformError> {
        let host = self.solved.domains.fixed(0, span);
        self.unify(domain, host, span)
    }

    fn on_device(&mut self, expr: &Expr, call: &Ref<Call>, body: Domain) -> Result<Domain, TransformError> {
        let span = call.span.as_ref();
        let said = OnDevice::of(&call.attrs).map_err(|e| TransformError::Refused(e.to_string() + &place(span)))?;
        let Some(device) = said.device else { return Ok(body) };
        if said.constrain_body {
            self.fix(body, &device, span)?;
        }
        // Functions are not copied, nor is a value that is to stay.
        if self.solved.domains.parts(body).is_some() || (said.constrain_body && said.constrain_result) {
            return Ok(body);
        }
        let result = self.free();
        if said.constrain_result {
            self.fix(result, &device, span)?;
        }
        self.solved.crossings.insert(expr.address(), (body, result));
        Ok(result)
    }
}

fn device_of(value: Option<&relaxide_ir::AttrValue>) -> Result<Option<VirtualDevice>, TransformError> {
    value.map_or(Ok(None), VirtualDevice::of_attr).map_err(|e| TransformError::Refused(e.to_string()))
}
