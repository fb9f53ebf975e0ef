//! [`Function`]: anything that can be called with values and returns one, from whatever language.
//!
//! A function object begins with the cell that the interface fixes: the C entry point. Every function made here has the
//! same C entry point, and behind the cell a Rust one; so a call from Rust recognises its own kind by one comparison and
//! goes straight to the Rust entry point: one indirect call, no allocation, the error in the return value. Functions
//! made elsewhere are called through their C entry point, with the error in the thread's slot.

use std::ffi::{c_int, c_void};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::abi::{RawAny, SafeCall, type_index};
use crate::handle::{exact_from_any, object_handle};
use crate::host::HostLock;
use crate::object::{ObjectBox, Ref, allocate, deleter};
use crate::{Any, AnyView, Error, ErrorKind, FromAny, Handle, error_slot};

/// The cell that the interface fixes.
#[repr(C)]
pub(crate) struct FunctionObj {
    safe_call: SafeCall,
    /// A C++ entry point that throws; functions made here have none.
    cpp_call: *mut c_void,
}

// SAFETY: both words are addresses of code and never change.
unsafe impl Send for FunctionObj {}
// SAFETY: as above.
unsafe impl Sync for FunctionObj {}

/// The Rust entry point. It is given the object's own address, and writes the result to a place of the caller's: a result
/// that is handed up through several returns is copied at each.
type RustCall = unsafe fn(this: *const c_void, args: &[AnyView<'_>], result: &mut Any) -> Result<(), Error>;

/// A function made here: the cell, the Rust entry point, and what that needs.
#[repr(C)]
struct Closure<F> {
    cell: FunctionObj,
    call: RustCall,
    lock: Option<&'static HostLock>,
    body: F,
}

/// A function. Copies are the same function.
#[derive(Clone, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Function(Ref<FunctionObj>);

object_handle!(Function, FunctionObj, "ffi.Function", type_index::FUNCTION);
exact_from_any!(Function);

impl Function {
    /// A function that runs a closure. A panic in it becomes an InternalError.
    pub fn new<F>(body: F) -> Function
    where
        F: Fn(&[AnyView<'_>]) -> Result<Any, Error> + Send + Sync + 'static,
    {
        Function::of_closure(None, body)
    }

    /// A function that runs a closure, which takes the lock of an interpreter for each call. Callers may keep it in between
    /// ([`KeptLock`](crate::KeptLock)).
    pub fn new_hosted<F>(lock: &'static HostLock, body: F) -> Function
    where
        F: Fn(&[AnyView<'_>]) -> Result<Any, Error> + Send + Sync + 'static,
    {
        Function::of_closure(Some(lock), body)
    }

    fn of_closure<F>(lock: Option<&'static HostLock>, body: F) -> Function
    where
        F: Fn(&[AnyView<'_>]) -> Result<Any, Error> + Send + Sync + 'static,
    {
        unsafe fn call<F>(this: *const c_void, args: &[AnyView<'_>], result: &mut Any) -> Result<(), Error>
        where
            F: Fn(&[AnyView<'_>]) -> Result<Any, Error>,
        {
            // SAFETY: `close` put the body of this type into the object.
            let body = unsafe { &(*this.cast::<ObjectBox<Closure<F>>>()).value.body };
            // What a panic interrupted is the closure's own state, which it shares by `&` and must keep sound itself.
            let value = catch_unwind(AssertUnwindSafe(|| body(args)));
            *result = value.unwrap_or_else(|panic| Err(Error::from_panic(&*panic)))?;
            Ok(())
        }
        Function::close(call::<F>, lock, body)
    }

    /// A function that converts its arguments and its result:
    ///
    /// ```
    /// use relaxide_ffi::{Error, Function};
    ///
    /// let add = Function::typed(|a: i64, b: i64| Ok::<_, Error>(a + b));
    /// let sum = add.call(&[2i64.into(), 3i64.into()])?;
    /// assert_eq!(sum.as_int(), Some(5));
    /// assert!(add.call(&[2i64.into()]).is_err());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn typed<Args, F: TypedBody<Args>>(body: F) -> Function {
        Function::new(move |args| body.call_with(args))
    }

    /// A function that calls a symbol of compiled code, which takes no handle. `keep` keeps the code loaded.
    ///
    /// # Safety
    /// `symbol` follows the calling convention and stays callable for as long as `keep` lives.
    pub unsafe fn from_symbol<K: Send + Sync + 'static>(symbol: SafeCall, keep: K) -> Function {
        unsafe fn call<K>(this: *const c_void, args: &[AnyView<'_>], result: &mut Any) -> Result<(), Error> {
            // SAFETY: `close` put a body of this type into the object; the symbol is callable while it lives.
            unsafe {
                let (symbol, _) = &(*this.cast::<ObjectBox<Closure<(SafeCall, K)>>>()).value.body;
                call_c(*symbol, std::ptr::null_mut(), args, result)
            }
        }
        Function::close(call::<K>, None, (symbol, keep))
    }

    /// A function that a foreign caller implements over a resource of its own.
    ///
    /// # Safety
    /// `call` follows the calling convention, takes `resource` as its handle from any thread, and `release`, if there is
    /// one, may be called once when the function is gone.
    pub unsafe fn from_callback(
        resource: *mut c_void,
        call: SafeCall,
        release: Option<unsafe extern "C" fn(*mut c_void)>,
    ) -> Function {
        unsafe fn forward(this: *const c_void, args: &[AnyView<'_>], result: &mut Any) -> Result<(), Error> {
            // SAFETY: `close` put a callback into the object; its maker promised that it is callable.
            unsafe {
                let callback = &(*this.cast::<ObjectBox<Closure<Callback>>>()).value.body;
                call_c(callback.call, callback.resource, args, result)
            }
        }
        Function::close(forward, None, Callback { resource, call, release })
    }

    fn close<F: Send + Sync + 'static>(call: RustCall, lock: Option<&'static HostLock>, body: F) -> Function {
        let object = allocate::<Closure<F>>(type_index::FUNCTION, 0, deleter::<Closure<F>>);
        // SAFETY: the allocation has room for the closure, which begins with the cell of a function.
        unsafe {
            let cell = FunctionObj { safe_call: closure_safe_call, cpp_call: std::ptr::null_mut() };
            (&raw mut (*object.as_ptr()).value).write(Closure { cell, call, lock, body });
            Function(Ref::from_box(object.cast()))
        }
    }

    /// Calls the function.
    #[inline]
    pub fn call(&self, args: &[AnyView<'_>]) -> Result<Any, Error> {
        let mut result = Any::none();
        self.call_into(args, &mut result).map(|()| result)
    }

    /// Calls the function, with the result written to a place of the caller's. On an error the place keeps its value.
    #[inline]
    pub fn call_into(&self, args: &[AnyView<'_>], result: &mut Any) -> Result<(), Error> {
        let this = Ref::as_ptr(&self.0).cast::<c_void>();
        if let Some(closure) = self.closure() {
            // SAFETY: the entry point is the object's own.
            return unsafe { (closure.call)(this, args, result) };
        }
        // SAFETY: the entry point is the function's own and takes its object as handle.
        unsafe { call_c(self.0.safe_call, this, args, result) }
    }

    /// The function as one that was made here, without its body.
    #[inline]
    fn closure(&self) -> Option<&Closure<()>> {
        let is_closure = std::ptr::fn_addr_eq(self.0.safe_call, closure_safe_call as SafeCall);
        let this = Ref::as_ptr(&self.0).cast::<ObjectBox<Closure<()>>>();
        // SAFETY: only `close` makes functions with this entry point, and they begin like any other closure.
        is_closure.then(|| unsafe { &(*this).value })
    }

    /// The lock of the interpreter that the function runs in.
    pub fn host_lock(&self) -> Option<&'static HostLock> {
        self.closure()?.lock
    }

    /// The C entry point and the handle to call it with. Both are valid as long as the function lives.
    pub fn safe_call(&self) -> (SafeCall, *mut c_void) {
        (self.0.safe_call, Ref::as_ptr(&self.0).cast())
    }
}

struct Callback {
    resource: *mut c_void,
    call: SafeCall,
    release: Option<unsafe extern "C" fn(*mut c_void)>,
}

// SAFETY: `from_callback`'s caller promised that any thread may call it.
unsafe impl Send for Callback {}
// SAFETY: as above.
unsafe impl Sync for Callback {}

impl Drop for Callback {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the function is gone and `from_callback`'s caller promised that this may follow.
            unsafe { release(self.resource) };
        }
    }
}

/// Calls a C entry point.
///
/// # Safety
/// `call` follows the calling convention and takes that handle.
#[inline]
unsafe fn call_c(call: SafeCall, handle: *mut c_void, args: &[AnyView<'_>], place: &mut Any) -> Result<(), Error> {
    let Ok(count) = c_int::try_from(args.len()) else { return Err(too_many(args.len())) };
    let mut result = RawAny::NONE;
    // SAFETY: views have the layout of raw values and are borrowed for the call; the result is preset to None.
    let code = unsafe { call(handle, args.as_ptr().cast(), count, &raw mut result) };
    if code != 0 {
        return Err(error_slot::take_after(code));
    }
    // SAFETY: a successful call leaves an owned value.
    *place = unsafe { Any::from_raw(result) };
    Ok(())
}

#[cold]
fn too_many(args: usize) -> Error {
    Error::new(ErrorKind::ValueError, format!("{args} arguments are too many"))
}

/// The C entry point of every function made here.
unsafe extern "C" fn closure_safe_call(
    handle: *mut c_void,
    args: *const RawAny,
    num_args: c_int,
    result: *mut RawAny,
) -> c_int {
    let count = usize::try_from(num_args).unwrap_or(0);
    let args = match count {
        0 => &[],
        // SAFETY: the caller lends that many raw values for the call; views have their layout.
        _ => unsafe { std::slice::from_raw_parts(args.cast::<AnyView<'_>>(), count) },
    };
    let mut value = Any::none();
    // SAFETY: functions with this entry point are closures, and the handle is the function object. No panic comes out of
    // the Rust entry point: bodies that can panic are caught there.
    match unsafe { ((*handle.cast::<ObjectBox<Closure<()>>>()).value.call)(handle, args, &mut value) } {
        Ok(()) => {
            // SAFETY: the caller gives a place for the result that holds nothing to be dropped.
            unsafe { result.write(value.into_raw()) };
            0
        }
        Err(error) => {
            error_slot::set(error);
            -1
        }
    }
}

/// A closure of up to eight arguments that values convert to, whose result converts to a value.
pub trait TypedBody<Args>: Send + Sync + 'static {
    /// Converts, calls, converts back.
    fn call_with(&self, args: &[AnyView<'_>]) -> Result<Any, Error>;
}

macro_rules! typed_body {
    ($count:literal $($arg:ident $position:tt)*) => {
        impl<F, R, E, $($arg),*> TypedBody<($($arg,)*)> for F
        where
            F: Fn($($arg),*) -> Result<R, E> + Send + Sync + 'static,
            R: Into<Any>,
            E: Into<Error>,
            $($arg: FromAny,)*
        {
            fn call_with(&self, args: &[AnyView<'_>]) -> Result<Any, Error> {
                if args.len() != $count {
                    return Err(wrong_count($count, args.len()));
                }
                self($(convert::<$arg>(args, $position)?),*).map(Into::into).map_err(Into::into)
            }
        }
    };
}

typed_body!(0);
typed_body!(1 A 0);
typed_body!(2 A 0 B 1);
typed_body!(3 A 0 B 1 C 2);
typed_body!(4 A 0 B 1 C 2 D 3);
typed_body!(5 A 0 B 1 C 2 D 3 G 4);
typed_body!(6 A 0 B 1 C 2 D 3 G 4 H 5);
typed_body!(7 A 0 B 1 C 2 D 3 G 4 H 5 I 6);
typed_body!(8 A 0 B 1 C 2 D 3 G 4 H 5 I 6 J 7);

#[inline]
fn convert<T: FromAny>(args: &[AnyView<'_>], position: usize) -> Result<T, Error> {
    match T::from_any(args[position]) {
        Ok(value) => Ok(value),
        Err(error) => Err(in_argument(&error, position)),
    }
}

#[cold]
fn in_argument(error: &Error, position: usize) -> Error {
    error.context(format_args!("argument #{position}"))
}

#[cold]
fn wrong_count(expected: usize, got: usize) -> Error {
    Error::new(ErrorKind::TypeError, format!("expected {expected} arguments but got {got}"))
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Function({:p})", self.as_object().as_ptr())
    }
}
