//! RealizeVDevice, UpdateVDevice: where tensors live, before and after.
//!
//! ```text
//! lv = R.hint_on_device(x, cuda(0))        lv: R.Tensor((2, 4), "float32", "cuda:0") = x
//! gv = R.add(lv, lv)                 →     gv: R.Tensor((2, 4), "float32", "cuda:0") = R.add(lv, lv)
//! ```
//!
//! `RealizeVDevice` gives every tensor the device that hints, types and copies (`to_vdevice`) say: the operands and the
//! result of an operator live on one device, so what is known of one holds for all, forwards and backwards.
//!
//! `UpdateVDevice` puts another device in the place of one of the module's, everywhere.
//!
//! **Refuses** operands that would have to live on two devices (`to_vdevice` copies between them), a hint for a device
//! that the module does not list, and an index that it does not have.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::pass::{ParamKind, PassError, PassInfo, PassParam, PassResult};
use relaxide_ir::target::TargetError;
use relaxide_ir::{AttrValue, Attrs, IRModule, Target, TensorType, Type, VDevice, same_place};

use crate::rewrite::in_function;
use crate::*;

pub(super) const REALIZE: PassInfo =
    PassInfo::new("RealizeVDevice", "Every tensor gets the device that hints and copies say.", |module, _, _| {
        realize(module)
    });

const UPDATE_NAME: &str = "UpdateVDevice";

pub(super) const UPDATE: PassInfo =
    PassInfo::new(UPDATE_NAME, "Another device takes the place of one of the module's.", |module, _, args| {
        let device = match args.get("new_vdevice") {
            Some(AttrValue::Object(object)) => object.clone().downcast::<VDevice>().ok(),
            Some(AttrValue::Str(target)) => {
                let target: Target = target
                    .parse()
                    .map_err(|error: TargetError| PassError::arguments(UPDATE_NAME, error.to_string()))?;
                Some(VDevice::new(target, 0, "global"))
            }
            _ => None,
        };
        let Some(device) = device else {
            return Err(PassError::arguments("UpdateVDevice", "new_vdevice is a device, or the text of a target"));
        };
        update(module, device, args.int("index").unwrap_or(0))
    })
    .params(&[
        PassParam::required("new_vdevice", ParamKind::Any, "The device, or the text of a target."),
        PassParam::required("index", ParamKind::Int, "Which of the module's devices it replaces."),
    ]);

fn update(module: IRModule, device: Ref<VDevice>, index: i64) -> PassResult {
    let mut vdevices = module.vdevices.clone();
    let Some(slot) = usize::try_from(index).ok().and_then(|i| vdevices.get_mut(i)) else {
        let message = format!("the module has {} devices, and none of index {index}", module.vdevices.len());
        return Err(PassError::arguments(UPDATE.name, message));
    };
    let old = std::mem::replace(slot, device.clone());
    let module = IRModule { vdevices, ..module };
    let place = |_: &AnyVar, ty: &Type| on(ty, &|d| if d.as_ref() == Some(&old) { Some(device.clone()) } else { d });
    super::emit::map_functions(module, |_, func| {
        let mut retype = Retype { place: &place, vars: HashMap::new(), replaced: Some((&old, &device)) };
        Ok(retype.whole(func))
    })
}

/// A type whose tensors live where `device` says.
fn on(ty: &Type, device: &dyn Fn(Option<Ref<VDevice>>) -> Option<Ref<VDevice>>) -> Type {
    match ty {
        Type::Tensor(t) => {
            let vdevice = device(t.vdevice.clone());
            if same_place(vdevice.as_deref(), t.vdevice.as_deref()) {
                return ty.clone();
            }
            Ref::new(TensorType { shape: t.shape.clone(), dtype: t.dtype, ndim: t.ndim, vdevice }).into()
        }
        Type::Tuple(t) => Type::tuple(t.fields.iter().map(|f| on(f, device)).collect::<Vec<_>>()),
        _ => ty.clone(),
    }
}

/// Gives variables other types.
struct Retype<'a> {
    place: &'a dyn Fn(&AnyVar, &Type) -> Type,
    vars: HashMap<AnyVar, AnyVar>,
    /// A device that attributes and types of calls name, and the one that takes its place.
    replaced: Option<(&'a Ref<VDevice>, &'a Ref<VDevice>)>,
}

impl Retype<'_> {
    fn whole(&mut self, func: &Ref<Function>) -> Ref<Function> {
        let params = func
            .params
            .iter()
            .map(|p| match self.var(&AnyVar::Var(p.clone())) {
                AnyVar::Var(new) => new,
                AnyVar::Dataflow(_) => p.clone(),
            })
            .collect();
        let body = self.mutate_seq(&func.body);
        let ret_ty = body.body.ty();
        Ref::new(Function { params, ret_ty, body, ..Function::clone(func) })
    }

    fn var(&mut self, var: &AnyVar) -> AnyVar {
        let ty = (self.place)(var, var.ty());
        if ty == *var.ty() {
            return var.clone();
        }
        let new = var.with_type(ty);
        self.vars.insert(var.clone(), new.clone());
        new
    }

    fn attrs(&self, attrs: &Attrs) -> Attrs {
        let Some((old, new)) = self.replaced else { return attrs.clone() };
        let mut attrs = attrs.clone();
        for value in attrs.0.values_mut() {
            let is_old =
                matches!(value, AttrValue::Object(o) if o.clone().downcast::<VDevice>().is_ok_and(|d| d == *old));
            if is_old {
                *value = AttrValue::Object(new.clone().into());
            }
        }
        attrs
    }
}

impl ExprMutator for Retype<'_> {
    fn mutate_expr(&mut self, e: &Expr) -> Expr {
        if let Some(var) = e.as_var() {
            return self.vars.get(&var).map_or_else(|| e.clone(), |new| new.clone().into());
        }
        self.remake_expr(e)
    }

    fn mutate_binding(&mut self, binding: &Binding, out: &mut Vec<Binding>) {
        let value = self.mutate_expr(binding.value());
        let var = self.var(binding.var());
        let value = match &value {
            Expr::Call(call) => {
                let ty = var.ty().clone();
                let attrs = self.attrs(&call.attrs);
                if ty == call.ty && attrs == call.attrs {
                    value
                } else {
                    Ref::new(Call { ty, attrs, ..call.rebuilt(call.op.clone(), call.args.clone()) }).into()
                }
            }
            _ => value,
        };
        out.push(match binding {
            Binding::Var(_) => Ref::new(VarBinding { var, value }).into(),
            Binding::MatchCast(cast) => {
                let ty = (self.place)(binding.var(), &cast.ty);
                Ref::new(MatchCast { var, value, ty }).into()
            }
        });
    }
}

fn realize(module: IRModule) -> PassResult {
    let devices = module.vdevices.clone();
    super::emit::map_functions(module, |name, func| {
        let mut places = Places { devices: &devices, group: HashMap::new(), parent: Vec::new(), device: Vec::new() };
        places.function(func).map_err(|e| in_function(REALIZE.name, name, e))?;
        if places.device.iter().all(Option::is_none) {
            return Ok(func.clone());
        }
        let place = |var: &AnyVar, ty: &Type| {
            let device = places.found(var);
            on(ty, &|old| old.or_else(|| device.clone()))
        };
        let mut retype = Retype { place: &place, vars: HashMap::new(), replaced: None };
        let func = retype.whole(func);
        Ok(NoHints.mutate_function(&func))
    })
}

/// A hint is its argument, once it is obeyed.
struct NoHints;

impl ExprMutator for NoHints {
    fn mutate_expr(&mut self, e: &Expr) -> Expr {
        match e.as_op_call() {
            Some((call, "hint_on_device")) => call.args.first().cloned().unwrap_or_else(|| e.clone()),
            _ => self.remake_expr(e),
        }
    }
}

/// Groups of variables that live on one device.
struct Places<'a> {
    devices: &'a [Ref<VDevice>],
    group: HashMap<AnyVar, usize>,
    parent: Vec<usize>,
    device: Vec<Option<Ref<VDevice>>>,
}

impl Places<'_> {
    fn root(&self, mut group: usize) -> usize {
        while let Some(parent) = self.parent.get(group).copied().filter(|p| *p != group) {
            group = parent;
        }
        group
    }

    fn of(&mut self, var: &AnyVar) -> usize {
        if let Some(known) = self.group.get(var) {
            return self.root(*known);
        }
        let group = self.parent.len();
        self.parent.push(group);
        let own = match var.ty() {
            Type::Tensor(t) => t.vdevice.clone(),
            _ => None,
        };
        self.device.push(own);
        self.group.insert(var.clone(), group);
        group
    }

    fn found(&self, var: &AnyVar) -> Option<Ref<VDevice>> {
        let root = self.root(*self.group.get(var)?);
        self.device.get(root).cloned().flatten()
    }

    fn join(&mut self, a: &AnyVar, b: &AnyVar) -> Result<(), String> {
        let (x, y) = (self.of(a), self.of(b));
        if x == y {
            return Ok(());
        }
        let device = self.device[y].clone();
        self.parent[y] = x;
        device.map_or(Ok(()), |device| self.put(a, &device))
    }

    fn put(&mut self, var: &AnyVar, device: &Ref<VDevice>) -> Result<(), String> {
        let root = self.of(var);
        match &self.device[root] {
            Some(other) if !other.is_same(device) => Err(format!(
                "`{}` would live on two devices, {} and {}; copy it with R.to_vdevice",
                var.name(),
                other,
                device
            )),
            _ => {
                self.device[root] = Some(device.clone());
                Ok(())
            }
        }
    }

    fn function(&mut self, func: &Function) -> Result<(), String> {
        for param in &func.params {
            self.of(&AnyVar::Var(param.clone()));
        }
        self.seq(&func.body)?;
        self.result(&func.body.body, &func.ret_ty)
    }

    /// What the signature says of the result holds for what is returned.
    fn result(&mut self, result: &Expr, ty: &Type) -> Result<(), String> {
        match (ty, result) {
            (Type::Tensor(ty), result) => match (&ty.vdevice, result.as_var()) {
                (Some(device), Some(var)) if is_tensor(var.ty()) => self.put(&var, device),
                _ => Ok(()),
            },
            (Type::Tuple(ty), Expr::Tuple(tuple)) => {
                tuple.fields.iter().zip(&ty.fields).try_for_each(|(field, ty)| self.result(field, ty))
            }
            _ => Ok(()),
        }
    }

    fn seq(&mut self, seq: &SeqExpr) -> Result<(), String> {
        seq.blocks.iter().flat_map(|b| &b.bindings).try_for_each(|binding| self.binding(binding))
    }

    fn binding(&mut self, binding: &Binding) -> Result<(), String> {
        let var = binding.var().clone();
        self.of(&var);
        match binding.value() {
            Expr::If(choice) => {
                self.seq(&choice.true_branch)?;
                self.seq(&choice.false_branch)?;
                for result in [&choice.true_branch.body, &choice.false_branch.body] {
                    self.same(&var, result)?;
                }
                Ok(())
            }
            Expr::Call(call) => self.call(&var, call),
            value => self.same(&var, value),
        }
    }

    /// A variable lives where another does; tuples are no place.
    fn same(&mut self, var: &AnyVar, value: &Expr) -> Result<(), String> {
        match value.as_var() {
            Some(other) if is_tensor(var.ty()) && is_tensor(other.ty()) => self.join(var, &other),
            _ => Ok(()),
        }
    }

    fn call(&mut self, var: &AnyVar, call: &Ref<Call>) -> Result<(), String> {
        match call.op_name() {
            Some("to_vdevice") => match call.attrs.get("dst_vdevice") {
                Some(AttrValue::Object(object)) => match object.clone().downcast::<VDevice>() {
                    Ok(device) => self.put(var, &device),
                    Err(_) => Err("`dst_vdevice` is no device".into()),
                },
                _ => Err("`dst_vdevice` is no device".into()),
            },
            Some("hint_on_device") => {
                let device = self.hinted(call)?;
                self.put(var, &device)?;
                match call.args.first().and_then(Expr::as_var) {
                    Some(data) => self.put(&data, &device),
                    None => Ok(()),
                }
            }
            Some(_) if is_tensor(var.ty()) => {
                let operands = call.args.iter().flat_map(|arg| match arg {
                    Expr::Tuple(tuple) => tuple.fields.clone(),
                    other => vec![other.clone()],
                });
                operands.collect::<Vec<_>>().iter().try_for_each(|operand| self.same(var, operand))
            }
            _ => Ok(()),
        }
    }

    /// The module's device that a hint names.
    fn hinted(&self, call: &Call) -> Result<Ref<VDevice>, String> {
        let kind = call.attrs.int("device_type").unwrap_or(0);
        let index = call.attrs.int("index").unwrap_or(0);
        let scope = call.attrs.str("memory_scope").unwrap_or("global");
        let fits =
            |d: &&Ref<VDevice>| d.device_type().map(i64::from) == Some(kind) && d.id == index && d.scope == scope;
        self.devices.iter().find(fits).cloned().ok_or_else(|| {
            format!("the module lists no device of kind {kind}, index {index} and scope {scope:?}, which a hint names")
        })
    }
}

fn is_tensor(ty: &Type) -> bool {
    matches!(ty, Type::Tensor(_))
}
