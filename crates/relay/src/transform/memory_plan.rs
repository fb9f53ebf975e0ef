//! MemoryPlan: the storages of a scope become one, in which those lie over each other that are not needed at the same time.
//!
//! ```text
//! let %storage_0 = memory.alloc_storage(280i64, …);             let %arena_0 = memory.alloc_storage(640i64, …);
//! let %tensor_0 = memory.alloc_tensor(%storage_0, 0i64, …);     let %tensor_0 = memory.alloc_tensor(%arena_0, 0i64, …);
//! …                                                    becomes  …
//! let %storage_2 = memory.alloc_storage(280i64, …);             let %tensor_2 = memory.alloc_tensor(%arena_0, 0i64, …);
//! ```
//!
//! It works on what ManifestAlloc made. A storage takes part if its size is a constant and nothing that lies in it leaves the
//! scope: what a scope gives, what data hold, what a closure captures, what a function of the program is given and what stands in a
//! branch's result keeps a storage of its own. Where each lies is found as [`crate::rooms`] says. Storages of different devices
//! are not joined.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;
use relaxide_ffi::{DataType, Ref};
use relaxide_ir::{AttrValue, Attrs};

use super::manifest_alloc::{Chain, with_scopes};
use super::table::TransformError;
use crate::rooms::{ALIGNMENT, Room, place};
use crate::*;

/// The program with its storages joined.
pub fn memory_plan(module: &Module) -> Result<Module, TransformError> {
    let mut out = module.clone();
    let mut planner = Planner { arenas: 0 };
    for function in out.functions.values_mut() {
        let body = planner.scope(&function.body)?;
        *function = function.with_body(body);
    }
    Ok(out)
}

fn address(var: &Ref<Var>) -> usize {
    Ref::as_ptr(var).addr()
}

/// A storage of the scope.
struct Storage {
    room: Room,
    device: Option<AttrValue>,
    escapes: bool,
}

struct Planner {
    arenas: usize,
}

/// Which storage the memory of a name lies in.
#[derive(Default)]
struct Aliases(HashMap<usize, HashSet<usize>>);

impl Aliases {
    fn of(&self, expr: &Expr) -> HashSet<usize> {
        match expr {
            Expr::Var(var) => self.0.get(&address(var)).cloned().unwrap_or_default(),
            _ => HashSet::new(),
        }
    }

    fn of_all<'e>(&self, exprs: impl IntoIterator<Item = &'e Expr>) -> HashSet<usize> {
        exprs.into_iter().flat_map(|e| self.of(e)).collect()
    }
}

impl Planner {
    fn scope(&mut self, expr: &Expr) -> Result<Expr, TransformError> {
        let Chain { bindings, result } = Chain::of(expr);
        let mut inner = Vec::new();
        for (var, value) in bindings {
            let value = with_scopes(&value, &mut |scope| self.scope(scope))?;
            inner.push((var, value));
        }
        let mut storages = storages(&inner, &result);
        storages.retain(|_, storage| !storage.escapes);
        let mut devices: Vec<Option<AttrValue>> = Vec::new();
        for storage in storages.values() {
            if !devices.contains(&storage.device) {
                devices.push(storage.device.clone());
            }
        }
        let mut out = Vec::new();
        let mut arena_of: HashMap<usize, (Ref<Var>, i64)> = HashMap::new();
        for device in devices {
            let mut members: Vec<(usize, &mut Storage)> =
                storages.iter_mut().filter(|(_, s)| s.device == device).map(|(var, s)| (*var, s)).collect();
            if members.len() < 2 {
                continue;
            }
            let total = place(&mut members.iter_mut().map(|(_, s)| &mut s.room).collect::<Vec<_>>());
            let arena = Var::new(format!("arena_{}", self.arenas), None);
            self.arenas += 1;
            let attrs =
                Attrs::new().with("dtype", DataType::uint(8)).with("virtual_device", device.unwrap_or(AttrValue::None));
            let shape = relaxide_ffi::Tensor::from_slice(&[total], &[1]).map_err(TransformError::Value)?;
            let args = [wide(total)?, Expr::constant(shape), wide(ALIGNMENT)?];
            out.push((arena.clone(), Expr::call_with(Expr::op("memory.alloc_storage"), args, attrs)));
            for (var, storage) in members {
                arena_of.insert(var, (arena.clone(), storage.room.offset));
            }
        }
        for (var, value) in inner {
            if arena_of.contains_key(&address(&var)) {
                continue;
            }
            out.push((var, moved(&value, &arena_of)?));
        }
        Ok(Chain { bindings: out, result }.into_expr())
    }
}

fn wide(value: i64) -> Result<Expr, TransformError> {
    Expr::int(value, DataType::int(64)).map_err(TransformError::Value)
}

/// A tensor in the arena, if its storage is there now; the kill of a storage that is there is none.
fn moved(value: &Expr, arena_of: &HashMap<usize, (Ref<Var>, i64)>) -> Result<Expr, TransformError> {
    let Some((call, name)) = value.as_op_call() else { return Ok(value.clone()) };
    let Some(Expr::Var(storage)) = call.args.first() else { return Ok(value.clone()) };
    let Some((arena, offset)) = arena_of.get(&address(storage)) else { return Ok(value.clone()) };
    match (name, call.args.as_slice()) {
        ("memory.alloc_tensor", [_, own, shape]) => {
            let own = constant(own).unwrap_or(0);
            let args = [Expr::from(arena), wide(own + offset)?, shape.clone()];
            Ok(Expr::call_with(call.op.clone(), args, call.attrs.clone()))
        }
        ("memory.kill", _) => Ok(Expr::tuple([])),
        _ => Ok(value.clone()),
    }
}

fn constant(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Constant(c) => scalar::ints(&c.data).and_then(|v| v.first().copied()),
        _ => None,
    }
}

/// The storages of a scope with the stretches in which they are needed.
fn storages(bindings: &[(Ref<Var>, Expr)], result: &Expr) -> IndexMap<usize, Storage> {
    let mut rooms: IndexMap<usize, Storage> = IndexMap::new();
    let mut aliases = Aliases::default();
    for (at, (var, value)) in bindings.iter().enumerate() {
        let own = address(var);
        let mut names = HashSet::new();
        visit::each(value, |expr| {
            names.extend(aliases.of(expr));
        });
        for room in names.iter() {
            if let Some(storage) = rooms.get_mut(room) {
                storage.room.until = at;
            }
        }
        let mut escaped = HashSet::new();
        let mut held = HashSet::new();
        match value {
            Expr::Var(_) => held = aliases.of(value),
            Expr::Tuple(t) => held = aliases.of_all(&t.fields),
            Expr::TupleGetItem(t) => held = aliases.of(&t.tuple),
            _ => match value.as_op_call() {
                Some((call, "memory.alloc_storage")) => {
                    if let Some(bytes) = call.args.first().and_then(constant) {
                        let device = call.attrs.get("virtual_device").cloned();
                        rooms.insert(own, Storage { room: Room::new(bytes, at), device, escapes: false });
                        held.insert(own);
                    }
                }
                Some((call, "memory.alloc_tensor" | "vm.reshape_tensor" | "on_device" | "debug")) => {
                    held = aliases.of_all(call.args.first());
                }
                Some((_, "vm.invoke_tvm_op" | "vm.shape_func" | "vm.shape_of" | "memory.kill")) => {}
                // An operator that is no kernel of the dialect computes a value of its own.
                Some((_, name)) if name != "device_copy" && name != "call_lowered" => {}
                // What a call, data, a reference, a closure or a scope holds may be needed at any time.
                _ => escaped = names,
            },
        }
        for room in escaped {
            if let Some(room) = rooms.get_mut(&room) {
                room.escapes = true;
            }
        }
        aliases.0.insert(own, held);
    }
    for room in aliases.of(result) {
        if let Some(room) = rooms.get_mut(&room) {
            room.escapes = true;
        }
    }
    rooms
}
