//! Rewriting a graph: callbacks give values for values.
//!
//! What does not change is shared with the original; what changes is copied, or changed in place where the original
//! belongs to the traversal alone. A variable is rewritten where it is defined, and its uses follow; a node that is shared
//! by identity is rewritten once.

use std::collections::HashMap;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::{Callback, Deeper, hook_function, in_field, in_object, in_region, kind_of};
use crate::abi::{RawAny, type_index};
use crate::array::rewrite_array;
use crate::graph::copy::shallow_copy;
use crate::map::rewrite_map;
use crate::object::{Object, ObjectBox, ObjectRef, Ref, allocate, deleter};
use crate::reflect::{flags, get_field, members, name_of, write_field};
use crate::structural::{Region, kind};
use crate::type_attr::{self, Attr};
use crate::type_info::TypeSlot;
use crate::{Any, AnyView, Array, Dict, Error, ErrorKind, Function, List, Map};

/// An entry point for a value. It returns an error, a value, or the mark of a value that stays.
type Mutate = unsafe extern "C" fn(mutator: *mut c_void, value: RawAny) -> RawAny;
/// An entry point that takes a variable and what stands for it. It returns an error or None.
type Remap = unsafe extern "C" fn(mutator: *mut c_void, variable: RawAny, value: RawAny) -> RawAny;

#[repr(C)]
struct VTable {
    mutate: Mutate,
    mutate_in_place: Mutate,
    remap_get: Mutate,
    remap_set: Remap,
}

/// What every mutator begins with.
#[repr(C)]
pub(crate) struct Mutator {
    vtable: *const VTable,
    region: AtomicI32,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<ObjectBox<Mutator>>() == 40);

// SAFETY: the table is immutable and lives as long as the process.
unsafe impl Send for Mutator {}
// SAFETY: as above.
unsafe impl Sync for Mutator {}

// SAFETY: the slot belongs to this type alone.
unsafe impl Object for Mutator {
    const TYPE_KEY: &'static str = "ffi.StructuralMutator";

    fn slot() -> &'static TypeSlot {
        static SLOT: TypeSlot = TypeSlot::new();
        &SLOT
    }
}

/// When callbacks see a value, and whether they decide about what it holds.
pub(crate) enum Rewrite {
    /// Before what it holds: what a callback gives is gone into.
    Before(Vec<Callback>),
    /// After what it holds.
    After(Vec<Callback>),
    /// Instead of what it holds: callbacks are given the mutator and go on themselves.
    Instead(Vec<Callback>),
}

/// A value that takes another's place; `None` if that stays.
type New = Option<Any>;

/// A mutator made here.
#[repr(C)]
struct Engine {
    mutator: Mutator,
    rewrite: Rewrite,
    /// What stands for variables and for nodes that are shared by identity.
    remap: Mutex<HashMap<ObjectRef, Any>>,
    depth: AtomicUsize,
}

static VTABLE: VTable =
    VTable { mutate: mutate_entry, mutate_in_place: in_place_entry, remap_get: get_entry, remap_set: set_entry };

/// The mark of a value that stays.
fn unchanged() -> Any {
    // SAFETY: the mark is a plain value.
    unsafe { Any::from_raw(RawAny::from_word(type_index::UNCHANGED, 0)) }
}

/// Runs the body of an entry point.
///
/// # Safety
/// `mutator` is a live engine's address.
unsafe fn enter(mutator: *mut c_void, body: impl FnOnce(&Engine, &Ref<Mutator>) -> Result<Any, Error>) -> RawAny {
    // SAFETY: the caller's promise.
    let (engine, this) = unsafe { (&(*mutator.cast::<ObjectBox<Engine>>()).value, Ref::<Mutator>::borrowed(mutator)) };
    // What a panic interrupted is only counters, which are put back as it unwinds.
    let result = catch_unwind(AssertUnwindSafe(|| body(engine, &this)));
    let result = result.unwrap_or_else(|panic| Err(Error::from_panic(&*panic)));
    result.unwrap_or_else(Any::from).into_raw()
}

unsafe extern "C" fn mutate_entry(mutator: *mut c_void, value: RawAny) -> RawAny {
    // SAFETY: mutators with this entry point are engines; the caller keeps the value for the call.
    unsafe {
        let value = AnyView::from_raw(value);
        enter(mutator, |engine, this| Ok(engine.mutate(this, value, false)?.unwrap_or_else(unchanged)))
    }
}

unsafe extern "C" fn in_place_entry(mutator: *mut c_void, value: RawAny) -> RawAny {
    // SAFETY: as above.
    unsafe {
        let value = AnyView::from_raw(value);
        enter(mutator, |engine, this| Ok(engine.mutate(this, value, true)?.unwrap_or_else(unchanged)))
    }
}

unsafe extern "C" fn get_entry(mutator: *mut c_void, variable: RawAny) -> RawAny {
    // SAFETY: as above.
    unsafe {
        let variable = AnyView::from_raw(variable);
        enter(mutator, |engine, _| {
            let variable = remap_key(variable)?;
            Ok(engine.remap.lock().unwrap_or_else(PoisonError::into_inner).get(&variable).cloned().unwrap_or_default())
        })
    }
}

unsafe extern "C" fn set_entry(mutator: *mut c_void, variable: RawAny, value: RawAny) -> RawAny {
    // SAFETY: as above.
    unsafe {
        let (variable, value) = (AnyView::from_raw(variable), AnyView::from_raw(value).to_owned());
        enter(mutator, |engine, _| {
            let variable = remap_key(variable)?;
            let old = engine.remap.lock().unwrap_or_else(PoisonError::into_inner).insert(variable, value);
            drop(old);
            Ok(Any::none())
        })
    }
}

fn remap_key(variable: AnyView<'_>) -> Result<ObjectRef, Error> {
    let not_an_object = || Error::new(ErrorKind::TypeError, "Variable-remap key must be an object-backed value");
    variable.as_object().cloned().ok_or_else(not_an_object)
}

/// True if both are the same bits: the same plain value or the same object.
fn same(a: AnyView<'_>, b: AnyView<'_>) -> bool {
    a.type_index() == b.type_index() && a.raw().word() == b.raw().word()
}

/// What a callback, a hook or an entry point gave for a value.
fn read(result: Any, value: AnyView<'_>) -> New {
    (result.type_index() != type_index::UNCHANGED && !same(result.as_view(), value)).then_some(result)
}

fn is_ours_alone(value: AnyView<'_>) -> bool {
    value.as_object().is_some_and(|object| object.header().is_unique())
}

impl Engine {
    fn mutate(&self, this: &Ref<Mutator>, value: AnyView<'_>, in_place: bool) -> Result<New, Error> {
        let _deeper = Deeper::enter(&self.depth)?;
        match &self.rewrite {
            Rewrite::Before(callbacks) => {
                let Some(callback) = Callback::find(callbacks, value.type_index()) else {
                    return Mutator::mutate_default(this, value, in_place);
                };
                match read(callback.call(value, self.mutator.region())?, value) {
                    None => Mutator::mutate_default(this, value, in_place),
                    Some(new) => {
                        let in_place = in_place && is_ours_alone(new.as_view());
                        Ok(Some(Mutator::mutate_default(this, new.as_view(), in_place)?.unwrap_or(new)))
                    }
                }
            }
            Rewrite::After(callbacks) => {
                let new = Mutator::mutate_default(this, value, in_place)?;
                let current = new.as_ref().map_or(value, Any::as_view);
                let Some(callback) = Callback::find(callbacks, current.type_index()) else { return Ok(new) };
                Ok(read(callback.call(current, self.mutator.region())?, current).or(new))
            }
            Rewrite::Instead(callbacks) => match Callback::find(callbacks, value.type_index()) {
                None => Mutator::mutate_default(this, value, in_place),
                Some(callback) => {
                    let mode = Any::from(i64::from(in_place));
                    let args = [value, this.into(), mode.as_view()];
                    let args = if callback.takes_more { &args[..] } else { &args[..2] };
                    Ok(read(callback.function.call(args)?, value))
                }
            },
        }
    }
}

impl Mutator {
    /// Rewrites a value with callbacks.
    pub(crate) fn run(rewrite: Rewrite, root: Any) -> Result<Any, Error> {
        let object = allocate::<Engine>(Mutator::type_index(), 0, deleter::<Engine>);
        let mutator = Mutator { vtable: &raw const VTABLE, region: AtomicI32::new(Region::None as i32) };
        let engine = Engine { mutator, rewrite, remap: Mutex::default(), depth: AtomicUsize::new(0) };
        // SAFETY: the allocation has room for the engine, which begins with the mutator.
        let this: Ref<Mutator> = unsafe {
            (&raw mut (*object.as_ptr()).value).write(engine);
            Ref::from_box(object.cast())
        };
        Ok(Mutator::mutate(&this, root.as_view(), true)?.unwrap_or(root))
    }

    /// Rewrites a value as the mutator's maker wants it; in place only if it is allowed and nobody else has the value.
    pub(crate) fn mutate(this: &Ref<Mutator>, value: AnyView<'_>, in_place: bool) -> Result<New, Error> {
        let address = Ref::as_ptr(this).cast::<c_void>();
        // SAFETY: whoever made the mutator gave it a table for it; what comes back is owned.
        let result = unsafe {
            let vtable = &*this.vtable;
            let mutate = if in_place && is_ours_alone(value) { vtable.mutate_in_place } else { vtable.mutate };
            Any::from_raw(mutate(address, value.raw()))
        };
        match result.type_index() {
            type_index::ERROR => Err(result.to()?),
            _ => Ok(read(result, value)),
        }
    }

    /// Rewrites what a value holds.
    pub(crate) fn mutate_default(this: &Ref<Mutator>, value: AnyView<'_>, in_place: bool) -> Result<New, Error> {
        let hooks = [(in_place, Attr::StructuralMutateInPlace), (true, Attr::StructuralMutate)];
        for (_, attr) in hooks.into_iter().filter(|(wanted, _)| *wanted) {
            if let Some(hook) = type_attr::get(attr, value.type_index()) {
                let hook = hook_function(&hook, attr.name(), value.type_key())?;
                return Ok(read(hook.call(&[this.into(), value])?, value));
            }
        }
        match value.as_object() {
            None => Ok(None),
            Some(object) => Mutator::mutate_object(this, object),
        }
    }

    /// Rewrites the fields of an object. A variable's definition is remembered for its uses.
    fn mutate_object(this: &Ref<Mutator>, object: &ObjectRef) -> Result<New, Error> {
        let kind = kind_of(object.type_index());
        let (is_variable, is_shared) = (kind == kind::VARIABLE, kind == kind::DAG);
        let region = this.region.load(Ordering::Relaxed);
        if is_variable || is_shared {
            let known = this.remapped(object.into())?;
            if !known.is_none() {
                return Ok(read(known, object.into()));
            }
        }
        if is_variable && region == Region::None as i32 {
            return Ok(None);
        }
        let new = Mutator::mutate_fields(this, object)?;
        // Uses of a simple definition that stays find the variable itself.
        let is_needed = is_shared || region == Region::Pattern as i32 || new.is_some();
        if (is_variable || is_shared) && is_needed {
            let stands_for_it = new.clone().unwrap_or_else(unchanged);
            this.remap(object.into(), stands_for_it.as_view())?;
        }
        Ok(new)
    }

    fn mutate_fields(this: &Ref<Mutator>, object: &ObjectRef) -> Result<New, Error> {
        let copy = shallow_copy(object)?;
        let copied = copy.as_object().filter(|copy| copy.type_index() == object.type_index() && *copy != object);
        let Some(copied) = copied else {
            let message = "Shallow copy callback must return a distinct object with the same type as its input";
            return Err(Error::new(ErrorKind::TypeError, message));
        };
        let mut changed = false;
        in_object(&this.region, object, || {
            for field in members(object.type_index()).filter(|field| field.flags & flags::IGNORED == 0) {
                let old = get_field(copied, field)?;
                let new = in_field(&this.region, field.flags, || Mutator::mutate(this, old.as_view(), false))?;
                let Some(new) = new else { continue };
                if field.setter.is_null() {
                    let (name, key) = (name_of(field), object.type_key());
                    let message =
                        format!("Cannot structurally mutate field `{name}` of type `{key}`: it has no setter");
                    return Err(Error::new(ErrorKind::TypeError, message));
                }
                // SAFETY: nobody else has the copy.
                unsafe { write_field(copied, field, new.as_view())? };
                changed = true;
            }
            Ok(())
        })?;
        Ok(changed.then_some(copy))
    }

    /// What stands for a variable; None if nothing does.
    pub(crate) fn remapped(&self, variable: AnyView<'_>) -> Result<Any, Error> {
        // SAFETY: whoever made the mutator gave it a table for it; what comes back is owned.
        let result = unsafe { Any::from_raw(((*self.vtable).remap_get)(self.address(), variable.raw())) };
        if result.type_index() == type_index::ERROR { Err(result.to()?) } else { Ok(result) }
    }

    /// Lets a value stand for a variable.
    pub(crate) fn remap(&self, variable: AnyView<'_>, value: AnyView<'_>) -> Result<(), Error> {
        // SAFETY: as above.
        let result = unsafe { Any::from_raw(((*self.vtable).remap_set)(self.address(), variable.raw(), value.raw())) };
        if result.type_index() == type_index::ERROR { Err(result.to()?) } else { Ok(()) }
    }

    /// The address of the object that this is the value of.
    fn address(&self) -> *mut c_void {
        std::ptr::from_ref(self).cast_mut().cast::<c_void>().wrapping_byte_sub(size_of::<crate::ObjectHeader>())
    }

    /// The number of the region that the traversal is in.
    pub(crate) fn region(&self) -> i64 {
        self.region.load(Ordering::Relaxed).into()
    }

    /// Calls a function in a region inside of the current one.
    pub(crate) fn with_region(&self, inner: i64, callback: &Function) -> Result<Any, Error> {
        in_region(&self.region, Region::of_index(inner), || callback.call(&[]))
    }
}

/// The hook of values that hold nothing: they stay.
pub(crate) fn leaf_hook() -> Any {
    unchanged()
}

/// New values for those that change; `None` if none does.
fn rewrite_all<'a>(
    mutator: &Ref<Mutator>,
    values: impl ExactSizeIterator<Item = &'a Any>,
) -> Result<Option<Vec<Any>>, Error> {
    let mut changed = false;
    let values = values.map(|value| {
        let new = Mutator::mutate(mutator, value.as_view(), false)?;
        changed |= new.is_some();
        Ok(new.unwrap_or_else(|| value.clone()))
    });
    let values = values.collect::<Result<Vec<Any>, Error>>()?;
    Ok(changed.then_some(values))
}

/// The hook of sequences.
pub(crate) fn array_hooks(mutator: &Ref<Mutator>, sequence: AnyView<'_>, in_place: bool) -> Result<Any, Error> {
    let mut change = |value: &mut Any| change(mutator, value);
    if sequence.type_index() == type_index::LIST {
        let list: List = sequence.to()?;
        if in_place {
            return list.rewrite(&mut change).map(|()| unchanged());
        }
        let new = rewrite_all(mutator, list.to_vec().iter())?;
        return Ok(new.map_or_else(unchanged, |values| List::from_vec(values).into()));
    }
    if in_place && sequence.type_index() == type_index::ARRAY && is_ours_alone(sequence) {
        let object = sequence.as_object().map(ObjectRef::as_ptr).unwrap_or(std::ptr::null_mut());
        // SAFETY: the object is an array, and the caller's reference is the only one.
        return unsafe { rewrite_array(object, &mut change) }.map(|()| unchanged());
    }
    let array: Array = sequence.to()?;
    let new = rewrite_all(mutator, array.iter())?;
    Ok(new.map_or_else(unchanged, |values| Array::from_vec(values).into()))
}

/// The hook of maps: their values change, their keys stay.
pub(crate) fn map_hooks(mutator: &Ref<Mutator>, map: AnyView<'_>, in_place: bool) -> Result<Any, Error> {
    let mut change = |value: &mut Any| change(mutator, value);
    if map.type_index() == type_index::DICT {
        let dict: Dict = map.to()?;
        if in_place {
            return dict.rewrite(&mut change).map(|()| unchanged());
        }
        let entries = dict.to_vec();
        let new = rewrite_all(mutator, entries.iter().map(|(_, value)| value))?;
        let with_keys = |values: Vec<Any>| entries.iter().map(|(key, _)| key.clone()).zip(values).collect::<Dict>();
        return Ok(new.map_or_else(unchanged, |values| with_keys(values).into()));
    }
    if in_place && map.type_index() == type_index::MAP && is_ours_alone(map) {
        let object = map.as_object().map(ObjectRef::as_ptr).unwrap_or(std::ptr::null_mut());
        // SAFETY: the object is a map, and the caller's reference is the only one.
        return unsafe { rewrite_map(object, &mut change) }.map(|()| unchanged());
    }
    let entries: Vec<(Any, Any)> = map.to::<Map>()?.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    let new = rewrite_all(mutator, entries.iter().map(|(_, value)| value))?;
    let with_keys = |values: Vec<Any>| entries.iter().map(|(key, _)| key.clone()).zip(values).collect::<Map>();
    Ok(new.map_or_else(unchanged, |values| with_keys(values).into()))
}

/// Rewrites a value of a container that may be changed in place.
fn change(mutator: &Ref<Mutator>, value: &mut Any) -> Result<(), Error> {
    if let Some(new) = Mutator::mutate(mutator, value.as_view(), true)? {
        *value = new;
    }
    Ok(())
}
