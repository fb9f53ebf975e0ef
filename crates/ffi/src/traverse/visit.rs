//! Visiting a graph: callbacks look at values and say whether to go on.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use super::{Callback, Deeper, hook_function, in_field, in_object, in_region};
use crate::Object;
use crate::abi::{RawAny, type_index};
use crate::object::{ObjectBox, ObjectRef, Ref, allocate, deleter};
use crate::reflect::{flags, get_field, members};
use crate::structural::Region;
use crate::type_attr::{self, Attr};
use crate::type_info::TypeSlot;
use crate::{Any, AnyView, Dict, Error, Function, List, Map};

/// What a callback returns to end the visit, with what the visit returns then.
#[derive(Object)]
#[object(key = "ffi.VisitInterrupt")]
#[repr(C)]
pub(crate) struct VisitInterrupt {
    pub(crate) value: Any,
}

/// An entry point: what it returns is an error, an interrupt, or None.
type Visit = unsafe extern "C" fn(visitor: *mut c_void, value: RawAny) -> RawAny;

#[repr(C)]
struct VTable {
    visit: Visit,
}

/// What every visitor begins with.
#[repr(C)]
pub(crate) struct Visitor {
    vtable: *const VTable,
    region: AtomicI32,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<ObjectBox<Visitor>>() == 40);

// SAFETY: the table is immutable and lives as long as the process.
unsafe impl Send for Visitor {}
// SAFETY: as above.
unsafe impl Sync for Visitor {}

// SAFETY: the slot belongs to this type alone.
unsafe impl Object for Visitor {
    const TYPE_KEY: &'static str = "ffi.StructuralVisitor";

    fn slot() -> &'static TypeSlot {
        static SLOT: TypeSlot = TypeSlot::new();
        &SLOT
    }
}

/// When callbacks see a value, and whether they decide about what it holds.
pub(crate) enum Walk {
    /// Before what it holds; a callback may skip that.
    Before(Vec<Callback>),
    /// After what it holds.
    After(Vec<Callback>),
    /// Instead of what it holds: callbacks are given the visitor and go on themselves.
    Instead(Vec<Callback>),
}

/// A visitor made here.
#[repr(C)]
struct Engine {
    visitor: Visitor,
    walk: Walk,
    depth: AtomicUsize,
}

static VTABLE: VTable = VTable { visit: visit_entry };

unsafe extern "C" fn visit_entry(visitor: *mut c_void, value: RawAny) -> RawAny {
    // SAFETY: visitors with this entry point are engines; the caller keeps the visitor and the value for the call.
    let (engine, this, value) = unsafe {
        let engine = &(*visitor.cast::<ObjectBox<Engine>>()).value;
        (engine, Ref::<Visitor>::borrowed(visitor), AnyView::from_raw(value).to_owned())
    };
    // What a panic interrupted is only counters, which are put back as it unwinds.
    let result = catch_unwind(AssertUnwindSafe(|| engine.visit(&this, &value)));
    match result.unwrap_or_else(|panic| Err(Error::from_panic(&*panic))) {
        Ok(None) => RawAny::NONE,
        Ok(Some(interrupt)) => Any::from(interrupt).into_raw(),
        Err(error) => Any::from(error).into_raw(),
    }
}

/// What a callback says.
enum Answer {
    Advance,
    Skip,
    Stop(Ref<VisitInterrupt>),
}

impl Answer {
    fn read(value: &Any) -> Result<Answer, Error> {
        const SKIP: i64 = 1;
        match (value.as_int(), value.downcast_ref::<VisitInterrupt>()) {
            _ if value.is_none() => Ok(Answer::Advance),
            (Some(0), _) => Ok(Answer::Advance),
            (Some(SKIP), _) => Ok(Answer::Skip),
            (_, Some(interrupt)) => Ok(Answer::Stop(interrupt.clone())),
            _ => Err(Error::type_mismatch("WalkResult", value.type_key())),
        }
    }
}

impl Engine {
    fn visit(&self, this: &Ref<Visitor>, value: &Any) -> Result<Option<Ref<VisitInterrupt>>, Error> {
        if value.is_none() {
            return Ok(None);
        }
        let _deeper = Deeper::enter(&self.depth)?;
        match &self.walk {
            Walk::Before(callbacks) => match self.ask(callbacks, value)? {
                Answer::Stop(interrupt) => Ok(Some(interrupt)),
                Answer::Skip => Ok(None),
                Answer::Advance => Visitor::visit_default(this, value),
            },
            Walk::After(callbacks) => {
                if let Some(interrupt) = Visitor::visit_default(this, value)? {
                    return Ok(Some(interrupt));
                }
                match self.ask(callbacks, value)? {
                    Answer::Stop(interrupt) => Ok(Some(interrupt)),
                    Answer::Skip | Answer::Advance => Ok(None),
                }
            }
            Walk::Instead(callbacks) => match Callback::find(callbacks, value.type_index()) {
                Some(callback) => interrupt_of(&callback.function.call(&[value.as_view(), this.into()])?),
                None => Visitor::visit_default(this, value),
            },
        }
    }

    fn ask(&self, callbacks: &[Callback], value: &Any) -> Result<Answer, Error> {
        let Some(callback) = Callback::find(callbacks, value.type_index()) else { return Ok(Answer::Advance) };
        let region = self.visitor.region.load(Ordering::Relaxed);
        Answer::read(&callback.call(value.as_view(), region.into())?)
    }
}

/// What a visit of a part returned: an interrupt, or nothing.
fn interrupt_of(value: &Any) -> Result<Option<Ref<VisitInterrupt>>, Error> {
    match value.is_none() {
        true => Ok(None),
        false => value.to().map(Some),
    }
}

impl Visitor {
    /// Visits a value with callbacks; returns the interrupt that ended the visit, if one did.
    pub(crate) fn run(walk: Walk, root: &Any) -> Result<Option<Ref<VisitInterrupt>>, Error> {
        let object = allocate::<Engine>(Visitor::type_index(), 0, deleter::<Engine>);
        let visitor = Visitor { vtable: &raw const VTABLE, region: AtomicI32::new(Region::None as i32) };
        // SAFETY: the allocation has room for the engine, which begins with the visitor.
        let this: Ref<Visitor> = unsafe {
            (&raw mut (*object.as_ptr()).value).write(Engine { visitor, walk, depth: AtomicUsize::new(0) });
            Ref::from_box(object.cast())
        };
        Visitor::visit(&this, root)
    }

    /// Visits a value as the visitor's maker wants it.
    pub(crate) fn visit(this: &Ref<Visitor>, value: &Any) -> Result<Option<Ref<VisitInterrupt>>, Error> {
        let address = Ref::as_ptr(this).cast::<c_void>();
        // SAFETY: whoever made the visitor gave it a table for it; what comes back is owned.
        let result = unsafe { Any::from_raw(((*this.vtable).visit)(address, value.as_view().raw())) };
        match result.type_index() {
            type_index::ERROR => Err(result.to()?),
            _ => interrupt_of(&result),
        }
    }

    /// Visits what a value holds.
    pub(crate) fn visit_default(this: &Ref<Visitor>, value: &Any) -> Result<Option<Ref<VisitInterrupt>>, Error> {
        if let Some(hook) = type_attr::get(Attr::StructuralVisit, value.type_index()) {
            let hook = hook_function(&hook, Attr::StructuralVisit.name(), value.type_key())?;
            return interrupt_of(&hook.call(&[this.into(), value.as_view()])?);
        }
        let Some(object) = value.as_object() else { return Ok(None) };
        in_object(&this.region, object, || {
            for field in members(object.type_index()).filter(|field| field.flags & flags::IGNORED == 0) {
                let part = get_field(object, field)?;
                if let Some(interrupt) = in_field(&this.region, field.flags, || Visitor::visit(this, &part))? {
                    return Ok(Some(interrupt));
                }
            }
            Ok(None)
        })
    }

    /// The number of the region that the visit is in.
    pub(crate) fn region(&self) -> i64 {
        self.region.load(Ordering::Relaxed).into()
    }

    /// Calls a function in a region inside of the current one.
    pub(crate) fn with_region(&self, inner: i64, callback: &Function) -> Result<Any, Error> {
        in_region(&self.region, Region::of_index(inner), || callback.call(&[]))
    }
}

/// The hook of containers: `(visitor, container) -> interrupt or None`.
pub(crate) fn container_hook(visitor: &Ref<Visitor>, container: &Any) -> Result<Any, Error> {
    let values: Vec<Any> = match container.type_index() {
        type_index::LIST => container.to::<List>()?.to_vec(),
        type_index::DICT => container.to::<Dict>()?.to_vec().into_iter().map(|(_, value)| value).collect(),
        type_index::MAP => container.to::<Map>()?.iter().map(|(_, value)| value.clone()).collect(),
        _ => container.to()?,
    };
    for value in &values {
        if let Some(interrupt) = Visitor::visit(visitor, value)? {
            return Ok(interrupt.into());
        }
    }
    Ok(Any::none())
}

impl<T: Object> Ref<T> {
    /// One more reference to the object at an address.
    ///
    /// # Safety
    /// The address is that of a live object that holds a `T`.
    pub(super) unsafe fn borrowed(address: *mut c_void) -> Ref<T> {
        // SAFETY: the caller's promise; the reference that is not dropped is the caller's.
        unsafe {
            let borrowed =
                std::mem::ManuallyDrop::new(ObjectRef::from_header(std::ptr::NonNull::new_unchecked(address.cast())));
            Ref::from_box(ObjectRef::clone(&borrowed).into_raw().cast())
        }
    }
}
