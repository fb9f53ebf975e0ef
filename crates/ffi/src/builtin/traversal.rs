//! Functions that visit and rewrite object graphs by their structure, and the hooks of containers for it.

use super::Arity::Exactly;
use super::{Arguments, BuiltinRow, Table, function, nothing};
use crate::abi::type_index;
use crate::object::Ref;
use crate::traverse::{
    Callback, Mutator, Rewrite, VisitInterrupt, Visitor, Walk, array_hooks, container_hook, leaf_hook, map_hooks,
};
use crate::type_attr::Attr;
use crate::{Any, Error, Function};

pub(super) const TABLE: &[BuiltinRow] = &[
    ("ffi.VisitInterrupt", Exactly(1), |args| Ok(Ref::new(VisitInterrupt { value: args.any(0) }).into())),
    ("ffi.StructuralWalk", Exactly(4), |args| {
        let callbacks = callbacks(args)?;
        let walk = if before(args)? { Walk::Before(callbacks) } else { Walk::After(callbacks) };
        Ok(Visitor::run(walk, &args.any(0))?.into())
    }),
    ("ffi.StructuralVisit", Exactly(2), |args| {
        let callbacks = Callback::read_all(&args.get(1)?, false)?;
        Ok(Visitor::run(Walk::Instead(callbacks), &args.any(0))?.into())
    }),
    ("ffi.StructuralVisitorVisit", Exactly(2), |args| Ok(Visitor::visit(&args.get(0)?, &args.any(1))?.into())),
    ("ffi.StructuralVisitorDefaultVisit", Exactly(2), |args| {
        Ok(Visitor::visit_default(&args.get(0)?, &args.any(1))?.into())
    }),
    ("ffi.StructuralVisitorDefRegionKind", Exactly(1), |args| Ok(args.get::<Ref<Visitor>>(0)?.region().into())),
    ("ffi.StructuralVisitorWithDefRegionKind", Exactly(3), |args| {
        args.get::<Ref<Visitor>>(0)?.with_region(args.get(1)?, &args.get::<Function>(2)?)
    }),
    ("ffi.StructuralMap", Exactly(4), |args| {
        let callbacks = callbacks(args)?;
        let rewrite = if before(args)? { Rewrite::Before(callbacks) } else { Rewrite::After(callbacks) };
        Mutator::run(rewrite, args.any(0))
    }),
    ("ffi.StructuralMutate", Exactly(2), |args| {
        Mutator::run(Rewrite::Instead(Callback::read_all(&args.get(1)?, false)?), args.any(0))
    }),
    ("ffi.StructuralMutatorMutate", Exactly(2), |args| {
        Ok(Mutator::mutate(&args.get(0)?, args.view(1), false)?.unwrap_or_else(|| args.any(1)))
    }),
    ("ffi.StructuralMutatorDefaultMutate", Exactly(2), |args| {
        Ok(Mutator::mutate_default(&args.get(0)?, args.view(1), false)?.unwrap_or_else(|| args.any(1)))
    }),
    ("ffi.StructuralMutatorVarRemapGet", Exactly(2), |args| args.get::<Ref<Mutator>>(0)?.remapped(args.view(1))),
    ("ffi.StructuralMutatorVarRemapSet", Exactly(3), |args| {
        args.get::<Ref<Mutator>>(0)?.remap(args.view(1), args.view(2))?;
        nothing()
    }),
    ("ffi.StructuralMutatorDefRegionKind", Exactly(1), |args| Ok(args.get::<Ref<Mutator>>(0)?.region().into())),
    ("ffi.StructuralMutatorWithDefRegionKind", Exactly(3), |args| {
        args.get::<Ref<Mutator>>(0)?.with_region(args.get(1)?, &args.get::<Function>(2)?)
    }),
];

/// The callbacks of a walk or a map: those that take the value alone, then those that take the region as well.
fn callbacks(args: Arguments<'_, '_>) -> Result<Vec<Callback>, Error> {
    let mut callbacks = Callback::read_all(&args.get(1)?, false)?;
    callbacks.extend(Callback::read_all(&args.get(2)?, true)?);
    Ok(callbacks)
}

/// True if callbacks come before what a value holds.
fn before(args: Arguments<'_, '_>) -> Result<bool, Error> {
    const BEFORE: i64 = 0;
    Ok(args.get::<i64>(3)? == BEFORE)
}

pub(super) fn declare(table: &mut Table) {
    table.declare::<VisitInterrupt>();
    table.declare::<Visitor>();
    table.declare::<Mutator>();
}

pub(super) fn attributes(set: &mut dyn FnMut(i32, Attr, Any)) {
    let visit = function(("__s_visit__", Exactly(2), |args| container_hook(&args.get(0)?, &args.any(1))));
    let leaf = function(("__s_mutate__", Exactly(2), |_| Ok(leaf_hook())));
    let array: [BuiltinRow; 2] = [
        ("__s_mutate__", Exactly(2), |args| array_hooks(&args.get(0)?, args.view(1), false)),
        ("__s_maybe_inplace_mutate__", Exactly(2), |args| array_hooks(&args.get(0)?, args.view(1), true)),
    ];
    let map: [BuiltinRow; 2] = [
        ("__s_mutate__", Exactly(2), |args| map_hooks(&args.get(0)?, args.view(1), false)),
        ("__s_maybe_inplace_mutate__", Exactly(2), |args| map_hooks(&args.get(0)?, args.view(1), true)),
    ];
    for (indexes, [copying, in_place]) in
        [([type_index::ARRAY, type_index::LIST], array), ([type_index::MAP, type_index::DICT], map)]
    {
        for index in indexes {
            set(index, Attr::StructuralVisit, visit.clone().into());
            set(index, Attr::StructuralMutate, function(copying).into());
            set(index, Attr::StructuralMutateInPlace, function(in_place).into());
        }
    }
    for index in [type_index::STR, type_index::BYTES, type_index::BIG_INT] {
        set(index, Attr::StructuralMutate, leaf.clone().into());
    }
}
