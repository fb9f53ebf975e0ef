//! `PlanDevices`: every value has a device, and copies stand where values cross.
//!
//! ```text
//! def @main(%a, %b, %c, %d) { subtract(on_device(add(%a, %b), cpu), add(%c, %d)) }      // the rest is on the device 12
//!
//! def @main(%a {cpu}, %b {cpu}, %c {ext}, %d {ext}, virtual_device=ext) {
//!   subtract(device_copy(add(%a, %b), cpu, ext), add(%c, %d))
//! }
//! ```
//!
//! Parameters and functions say where they are, bindings say it where they are not on the device of the function's result, so that
//! planning again changes nothing. Fewest copies: a value is copied to a device once, however often it is used there; a copy back
//! is the value itself; a copy to where the value is already is none; a constant is put where it is used when it is loaded, and not
//! copied at a call. Where the reference copies a condition to another device to read it from there, here it stays with the host.
//!
//! A value that would have to be on two devices is an error. A tuple that crosses is copied field by field; closures and values of
//! data types cannot cross, because nothing says how many tensors they hold.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::Attrs;

use super::collect::{Solved, solve};
use super::{DeviceConfig, RESULT, VirtualDevice, copy_ends};
use crate::rewrite::rewrite;
use crate::stack::deep;
use crate::transform::TransformError;
use crate::*;

/// Whether a program says anything of devices.
pub fn mentions_devices(module: &Module) -> bool {
    let mut found = false;
    for function in module.functions.values() {
        visit::each(&Expr::Function(function.clone()), |expr| {
            found |= match expr {
                Expr::Call(_) => matches!(expr.as_op_call(), Some((_, "on_device" | "device_copy"))),
                Expr::Function(f) => f.attrs.get(RESULT).is_some() || f.params.iter().any(|p| p.device.is_some()),
                _ => false,
            };
        });
    }
    found
}

/// Finds the device of every value, and writes the copies.
pub fn plan_devices(module: &Module, config: &DeviceConfig) -> Result<Module, TransformError> {
    deep(|| {
        let module = &transform::eta_expand(module);
        let types = infer(module).map_err(TransformError::Types)?;
        let solved = solve(module, &types, config)?;
        let mut planner = Planner { solved, types, params: HashMap::new(), copies: HashMap::new(), failed: None };
        let mut out = module.clone();
        for function in out.functions.values_mut() {
            visit::each(&Expr::Function(function.clone()), |expr| planner.note_params(expr));
            let made = rewrite(&Expr::Function(function.clone()), &mut |new, old| planner.rule(new, old));
            if let Expr::Function(f) = made {
                *function = f;
            }
        }
        match planner.failed {
            Some(message) => Err(TransformError::Refused(message)),
            None => Ok(out),
        }
    })
}

struct Planner {
    solved: Solved,
    types: Types,
    /// Parameters with their devices.
    params: HashMap<usize, Expr>,
    /// The copies that were made: of which value, to which device. The value is kept, whose address is the key.
    copies: HashMap<(usize, usize), (Expr, Expr)>,
    failed: Option<String>,
}

impl Planner {
    fn device(&self, node: usize) -> usize {
        self.solved.by_node.get(&node).and_then(|domain| self.solved.domains.known(*domain)).unwrap_or(0)
    }

    fn note_params(&mut self, expr: &Expr) {
        let Expr::Function(f) = expr else { return };
        for param in &f.params {
            let address = Ref::as_ptr(param).addr();
            let device = self.solved.domains.devices[self.device(address)].clone();
            let (name, annotation, span) = (param.name.clone(), param.annotation.clone(), param.span.clone());
            let new = Var { name, annotation, device: Some(Ref::new(device)), span };
            self.params.insert(address, Ref::new(new).into());
        }
    }

    fn rule(&mut self, new: &Expr, old: &Expr) -> Option<Expr> {
        match (new, old) {
            (Expr::Var(_), Expr::Var(_)) => self.params.get(&old.address()).cloned(),
            (Expr::Function(f), Expr::Function(_)) => Some(self.function(f, old)),
            (Expr::If(i), Expr::If(old)) => {
                let at = self.cond_device(&old.cond);
                if at == 0 {
                    return None;
                }
                let cond = self.copied(&i.cond, self.types.of(&old.cond).as_ref(), at, 0);
                let (then, other, span) = (i.then.clone(), i.other.clone(), i.span.clone());
                Some(Ref::new(If { cond, then, other, span }).into())
            }
            (Expr::Let(l), Expr::Let(old_let)) => {
                let at = self.device(Ref::as_ptr(&old_let.var).addr());
                let value = self.noted(&l.value, &old_let.value, at, old.address())?;
                Some(Ref::new(Let { var: l.var.clone(), value, body: l.body.clone(), span: l.span.clone() }).into())
            }
            (Expr::Call(call), Expr::Call(_)) => match old.as_op_call() {
                Some((_, "on_device")) => Some(self.crossing(call, old)),
                Some((_, "device_copy")) => {
                    let (from, to) = copy_ends(&call.attrs).ok()?;
                    let (from, to) = (self.solved.domains.device(&from), self.solved.domains.device(&to));
                    let old_arg = old.as_op_call()?.0.args.first()?;
                    let ty = self.types.of(old_arg);
                    Some(self.copied(call.args.first()?, ty.as_ref(), from, to))
                }
                Some((call, _)) if call.args.is_empty() => {
                    self.noted(new, old, self.device(old.address()), old.address())
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn cond_device(&self, cond: &Expr) -> usize {
        match cond {
            Expr::Constant(_) => 0,
            other => self.device(other.address()),
        }
    }

    fn function(&mut self, f: &Ref<Function>, old: &Expr) -> Expr {
        let params = f.params.iter().map(|param| match self.params.get(&Ref::as_ptr(param).addr()) {
            Some(Expr::Var(var)) => var.clone(),
            _ => param.clone(),
        });
        let result = &self.solved.domains.devices[self.device(old.address())];
        Ref::new(Function {
            type_params: f.type_params.clone(),
            params: params.collect(),
            body: f.body.clone(),
            ret_type: f.ret_type.clone(),
            attrs: f.attrs.clone().with(RESULT, result.to_attr()),
            span: f.span.clone(),
        })
        .into()
    }

    /// The value, saying where it is if that is not where the function's result is.
    fn noted(&self, value: &Expr, old: &Expr, at: usize, around: usize) -> Option<Expr> {
        let around = self.solved.around.get(&around).and_then(|domain| self.solved.domains.known(*domain));
        let said = matches!(value.as_op_call(), Some((_, "on_device" | "device_copy")));
        if around.is_none_or(|around| around == at) || said || matches!(old, Expr::Function(_)) {
            return None;
        }
        let attrs = Attrs::new()
            .with("virtual_device", self.solved.domains.devices[at].to_attr())
            .with("constrain_result", true)
            .with("constrain_body", true);
        Some(Expr::call_with(Expr::op("on_device"), [value.clone()], attrs))
    }

    fn crossing(&mut self, call: &Ref<Call>, old: &Expr) -> Expr {
        let body = call.args.first().cloned().unwrap_or_else(|| Expr::tuple([]));
        let Some((from, to)) = self.solved.crossings.get(&old.address()).copied() else { return body };
        let known = |domain| self.solved.domains.known(domain).unwrap_or(0);
        let (from, to) = (known(from), known(to));
        let ty = old.as_op_call().and_then(|(call, _)| self.types.of(call.args.first()?));
        self.copied(&body, ty.as_ref(), from, to)
    }

    /// A value on another device.
    fn copied(&mut self, value: &Expr, ty: Option<&Type>, from: usize, to: usize) -> Expr {
        // A constant is loaded to wherever it is used.
        if from == to || matches!(value, Expr::Constant(_)) {
            return value.clone();
        }
        if let Some((call, "device_copy")) = value.as_op_call()
            && let (Ok((first, _)), Some(source)) = (copy_ends(&call.attrs), call.args.first())
            && first == self.solved.domains.devices[to]
        {
            return source.clone();
        }
        if let Some((_, copy)) = self.copies.get(&(value.address(), to)) {
            return copy.clone();
        }
        let copy = match ty {
            Some(Type::Tuple(t)) => {
                let fields = t.fields.iter().enumerate().map(|(i, ty)| {
                    let field = match value {
                        Expr::Tuple(tuple) => tuple.fields[i].clone(),
                        _ => Expr::field(value.clone(), i as i64),
                    };
                    self.copied(&field, Some(ty), from, to)
                });
                Expr::tuple(fields.collect::<Vec<_>>())
            }
            Some(Type::Tensor(_)) | None => {
                let device = |i: usize| -> &VirtualDevice { &self.solved.domains.devices[i] };
                let attrs = Attrs::new()
                    .with("src_virtual_device", device(from).to_attr())
                    .with("dst_virtual_device", device(to).to_attr());
                Expr::call_with(Expr::op("device_copy"), [value.clone()], attrs)
            }
            Some(other) => {
                let devices = &self.solved.domains.devices;
                self.failed.get_or_insert_with(|| {
                    format!(
                        "a value of type {other} would have to be copied from {} to {}; tensors and tuples of them can be: copy \
                         what it holds",
                        devices[from], devices[to]
                    )
                });
                value.clone()
            }
        };
        self.copies.insert((value.address(), to), (value.clone(), copy.clone()));
        copy
    }
}
