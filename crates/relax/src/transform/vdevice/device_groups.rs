//! [`DeviceGroups`]: which values of a module live on one device, and on which.
//!
//! A value is a variable, a field of one that is a tuple, or the result of a function. Values that an operator reads and writes live on
//! one device, so they are one group; so are arguments and parameters of the module's own functions, results and what is returned, a
//! branch's result and what the branch is bound to. `to_vdevice` and `hint_on_device` join nothing: there a value may cross. A condition
//! is read by the host, wherever it is.
//!
//! A group's device is what types, results, copies and hints say of its values. Two that differ are an error, which names both places.
//! Where nothing else is said of a group, the first hint that is given to one of its values says it.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::{AttrValue, DisjointSets, IRModule, Type, VDevice};

use crate::*;

/// Whose tensors they are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Owner {
    Var(AnyVar),
    Result(String),
    /// The result of a function that is bound to a variable.
    Local(AnyVar),
}

/// A tensor of a value: the fields that lead to it.
type Leaf = (Owner, Vec<usize>);

/// A device, and what says so.
type Said = (Ref<VDevice>, String);

/// Groups of values that live on one device.
pub(super) struct DeviceGroups<'a> {
    module: &'a IRModule,
    group: HashMap<Leaf, usize>,
    /// What is said of each group.
    said: DisjointSets<Option<Said>>,
    /// What hints say of the values that they are given.
    hints: Vec<(AnyVar, Ref<VDevice>)>,
    /// Functions that are bound to variables.
    locals: HashMap<AnyVar, Ref<Function>>,
}

/// The paths to the tensors of a type.
fn leaves(ty: &Type) -> Vec<Vec<usize>> {
    match ty {
        Type::Tensor(_) => vec![Vec::new()],
        Type::Tuple(tuple) => {
            let fields = tuple.fields.iter().enumerate();
            let below =
                |(i, field): (usize, &Type)| leaves(field).into_iter().map(move |path| [vec![i], path].concat());
            fields.flat_map(below).collect()
        }
        _ => Vec::new(),
    }
}

/// The device that a type says of a tensor in it.
fn device_in<'t>(ty: &'t Type, path: &[usize]) -> Option<&'t Ref<VDevice>> {
    match (ty, path) {
        (Type::Tensor(tensor), []) => tensor.vdevice.as_ref().filter(|device| device.target.is_some()),
        (Type::Tuple(tuple), [first, rest @ ..]) => device_in(tuple.fields.get(*first)?, rest),
        _ => None,
    }
}

/// Why values have no device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum DeviceError {
    /// A copy names none.
    #[error("`dst_vdevice` is no device")]
    Destination,
    /// A hint names a device that the module does not list.
    #[error(
        "the module lists no device of kind {kind}, index {index} and scope {scope:?}, which a hint names; it lists: {listed}"
    )]
    Hint { kind: i64, index: i64, scope: String, listed: String },
    /// A value is said to be on two.
    #[error("{name} would live on two devices: {first}, and {second}; copy one with R.to_vdevice")]
    Conflict { name: String, first: String, second: String },
}

/// The device that a copy names.
pub(super) fn destination(call: &Call) -> Result<Ref<VDevice>, DeviceError> {
    match call.attrs.get("dst_vdevice") {
        Some(AttrValue::Object(object)) => object.clone().downcast::<VDevice>().ok(),
        _ => None,
    }
    .ok_or(DeviceError::Destination)
}

impl<'a> DeviceGroups<'a> {
    /// The groups of a module. An error says in which function it is found, and what it is.
    pub(super) fn of(module: &'a IRModule) -> Result<DeviceGroups<'a>, (String, DeviceError)> {
        let mut places = DeviceGroups {
            module,
            group: HashMap::new(),
            said: DisjointSets::default(),
            hints: Vec::new(),
            locals: HashMap::new(),
        };
        for (name, func) in module.functions_of::<Function>() {
            let owner = Owner::Result(name.to_string());
            places.function(&func, &owner).map_err(|why| (name.to_string(), why))?;
        }
        for (var, device) in std::mem::take(&mut places.hints) {
            for path in leaves(var.ty()) {
                let leaf = (Owner::Var(var.clone()), path);
                let group = places.group_of(&leaf);
                if places.said.value(group).is_none() {
                    places.said.set(group, Some((device.clone(), format!("where a hint has `{}`", var.name()))));
                }
            }
        }
        Ok(places)
    }

    /// Whether anything is said of any device.
    pub(super) fn is_silent(&self) -> bool {
        self.said.values().all(Option::is_none)
    }

    /// Where a tensor of a variable lives, if that is known.
    pub(super) fn found(&self, var: &AnyVar, path: &[usize]) -> Option<Ref<VDevice>> {
        let group = *self.group.get(&(Owner::Var(var.clone()), path.to_vec()))?;
        self.said.value(group).as_ref().map(|(device, _)| device.clone())
    }

    /// The module's device that a hint names.
    pub(super) fn hinted(&self, call: &Call) -> Result<Ref<VDevice>, DeviceError> {
        let kind = call.attrs.int("device_type").unwrap_or(0);
        let index = call.attrs.int("index").unwrap_or(0);
        let scope = call.attrs.str("memory_scope").unwrap_or("global");
        let fits =
            |d: &&Ref<VDevice>| d.device_type().map(i64::from) == Some(kind) && d.id == index && d.scope == scope;
        self.module.vdevices.iter().find(fits).cloned().ok_or_else(|| {
            let listed: Vec<String> = self.module.vdevices.iter().map(|device| device.to_string()).collect();
            let listed = if listed.is_empty() { "none".into() } else { listed.join(", ") };
            DeviceError::Hint { kind, index, scope: scope.to_string(), listed }
        })
    }

    fn group_of(&mut self, leaf: &Leaf) -> usize {
        *self.group.entry(leaf.clone()).or_insert_with(|| self.said.add(None))
    }

    fn join(&mut self, a: &Leaf, b: &Leaf) -> Result<(), DeviceError> {
        let (x, y) = (self.group_of(a), self.group_of(b));
        let said = self.said.join(x, y).flatten();
        said.map_or(Ok(()), |(device, why)| self.put(a, &device, why))
    }

    fn put(&mut self, leaf: &Leaf, device: &Ref<VDevice>, why: String) -> Result<(), DeviceError> {
        let group = self.group_of(leaf);
        match self.said.value(group) {
            Some((other, before)) if !other.is_same(device) => {
                let name = match &leaf.0 {
                    Owner::Var(var) => format!("`{}`", var.name()),
                    Owner::Result(name) => format!("the result of `{name}`"),
                    Owner::Local(var) => format!("the result of `{}`", var.name()),
                };
                let (first, second) = (format!("{other}, {before}"), format!("{device}, {why}"));
                Err(DeviceError::Conflict { name, first, second })
            }
            Some(_) => Ok(()),
            None => {
                self.said.set(group, Some((device.clone(), why)));
                Ok(())
            }
        }
    }

    /// Takes what a type says of a value.
    fn read_type(&mut self, owner: &Owner, ty: &Type) -> Result<(), DeviceError> {
        for path in leaves(ty) {
            let leaf = (owner.clone(), path);
            self.group_of(&leaf);
            if let Some(device) = device_in(ty, &leaf.1).cloned() {
                let why = match owner {
                    Owner::Var(var) => format!("where the type of `{}` has it", var.name()),
                    Owner::Result(name) => format!("where the result of `{name}` is to be"),
                    Owner::Local(var) => format!("where the result of `{}` is to be", var.name()),
                };
                self.put(&leaf, &device, why)?;
            }
        }
        Ok(())
    }

    fn function(&mut self, func: &Ref<Function>, owner: &Owner) -> Result<(), DeviceError> {
        for param in &func.params {
            self.read_type(&Owner::Var(AnyVar::Var(param.clone())), &param.ty)?;
        }
        self.read_type(owner, &func.ret_ty)?;
        self.seq(&func.body)?;
        self.same(owner, &func.ret_ty, &func.body.body)
    }

    fn seq(&mut self, seq: &SeqExpr) -> Result<(), DeviceError> {
        seq.blocks.iter().flat_map(|b| &b.bindings).try_for_each(|binding| self.binding(binding))
    }

    fn binding(&mut self, binding: &Binding) -> Result<(), DeviceError> {
        let var = binding.var();
        let owner = Owner::Var(var.clone());
        self.read_type(&owner, var.ty())?;
        if let Binding::MatchCast(cast) = binding {
            self.read_type(&owner, &cast.ty)?;
        }
        match binding.value() {
            Expr::If(choice) => {
                self.seq(&choice.true_branch)?;
                self.seq(&choice.false_branch)?;
                self.same(&owner, var.ty(), &choice.true_branch.body)?;
                self.same(&owner, var.ty(), &choice.false_branch.body)
            }
            Expr::Function(func) => {
                self.locals.insert(var.clone(), func.clone());
                self.function(func, &Owner::Local(var.clone()))
            }
            Expr::Call(call) => self.call(var, call),
            value => self.same(&owner, var.ty(), value),
        }
    }

    /// The tensors of a value are those of another.
    fn same(&mut self, owner: &Owner, ty: &Type, value: &Expr) -> Result<(), DeviceError> {
        for path in leaves(ty) {
            if let Some(other) = leaf_of(value, &path) {
                self.join(&(owner.clone(), path), &other)?;
            }
        }
        Ok(())
    }

    fn call(&mut self, var: &AnyVar, call: &Ref<Call>) -> Result<(), DeviceError> {
        let owner = Owner::Var(var.clone());
        let own = (owner.clone(), Vec::new());
        match call.op_name() {
            Some("to_vdevice") => self.put(&own, &destination(call)?, format!("where `{}` is copied", var.name())),
            Some("hint_on_device") => {
                let device = self.hinted(call)?;
                if let Some(data) = call.args.first().and_then(Expr::as_var) {
                    self.hints.push((data, device.clone()));
                }
                self.put(&own, &device, format!("where a hint has `{}`", var.name()))
            }
            Some(_) => self.operator(&owner, var.ty(), call),
            None => self.callee(&owner, var.ty(), call),
        }
    }

    /// Operands and results of an operator live on one device.
    fn operator(&mut self, owner: &Owner, ty: &Type, call: &Call) -> Result<(), DeviceError> {
        let results = leaves(ty);
        let Some((first, others)) = results.split_first() else { return Ok(()) };
        let first = (owner.clone(), first.clone());
        for other in others {
            self.join(&first, &(owner.clone(), other.clone()))?;
        }
        for arg in &call.args {
            for path in leaves(&arg.ty()) {
                if let Some(operand) = leaf_of(arg, &path) {
                    self.join(&first, &operand)?;
                }
            }
        }
        Ok(())
    }

    /// Arguments live where parameters do, and the result of the call where that of the function does.
    fn callee(&mut self, owner: &Owner, ty: &Type, call: &Call) -> Result<(), DeviceError> {
        let (func, result) = match &call.op {
            Expr::Global(global) => {
                let Some(func) = self.module.get_as::<Function>(&global.name) else { return Ok(()) };
                (func, Owner::Result(global.name.clone()))
            }
            callee => {
                let Some((var, func)) =
                    callee.as_var().and_then(|var| Some((var.clone(), self.locals.get(&var)?.clone())))
                else {
                    return Ok(());
                };
                (func, Owner::Local(var))
            }
        };
        for (param, arg) in func.params.iter().zip(&call.args) {
            self.same(&Owner::Var(AnyVar::Var(param.clone())), &param.ty, arg)?;
        }
        for path in leaves(ty) {
            self.join(&(owner.clone(), path.clone()), &(result.clone(), path))?;
        }
        Ok(())
    }
}

/// The tensor at a path of a value: of a variable, or of what a tuple's field is.
fn leaf_of(value: &Expr, path: &[usize]) -> Option<Leaf> {
    match (value, path) {
        (Expr::Tuple(tuple), [first, rest @ ..]) => leaf_of(tuple.fields.get(*first)?, rest),
        (Expr::TupleGetItem(item), _) => {
            let index = usize::try_from(item.index).ok()?;
            leaf_of(&item.tuple, &[&[index], path].concat())
        }
        _ => Some((Owner::Var(value.as_var()?), path.to_vec())),
    }
}
