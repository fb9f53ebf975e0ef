//! [`Retype`]: variables get types that say where their tensors live.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::{AttrValue, Attrs, TensorType, Type, VDevice, same_place};

use crate::*;

/// A type whose tensors live where `device` says.
pub(super) fn on(ty: &Type, device: &dyn Fn(Option<Ref<VDevice>>) -> Option<Ref<VDevice>>) -> Type {
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
pub(super) struct Retype<'a> {
    pub(super) place: &'a dyn Fn(&AnyVar, &Type) -> Type,
    pub(super) vars: HashMap<AnyVar, AnyVar>,
    /// A device that attributes and types of calls name, and the one that takes its place.
    pub(super) replaced: Option<(&'a Ref<VDevice>, &'a Ref<VDevice>)>,
}

impl Retype<'_> {
    /// The function with the types that its variables get.
    pub(super) fn whole(&mut self, func: &Ref<Function>) -> Ref<Function> {
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
        match e {
            Expr::Function(func) => self.whole(func).into(),
            _ => self.remake_expr(e),
        }
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
                    let made = call.rebuilt(call.op.clone(), call.args.clone());
                    // Where a call says the type of its result beside, as that of a kernel does, it says the new one.
                    let said = |said: &Type| if *said == call.ty { ty.clone() } else { said.clone() };
                    let ty_args = made.ty_args.iter().map(said).collect();
                    Ref::new(Call { ty, attrs, ty_args, ..made }).into()
                }
            }
            Expr::If(choice) if choice.ty != *var.ty() => {
                let If { condition, true_branch, false_branch, .. } = &**choice;
                let (condition, true_branch, false_branch) =
                    (condition.clone(), true_branch.clone(), false_branch.clone());
                Ref::new(If { condition, true_branch, false_branch, ty: var.ty().clone() }).into()
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
