//! [`Error`]: what goes wrong, as an object that crosses every border.
//!
//! An error has a kind, which front ends map to exception types, a message and a backtrace. Across the C ABI it does not
//! travel in the return value: the callee leaves it in a slot of the calling thread and returns non-zero; the caller
//! takes it from there ([`raised`](crate::raised)).

use std::ffi::c_void;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use crate::abi::{ByteArray, type_index};
use crate::object::{Handle, Object, ObjectBox, ObjectRef, Ref, allocate, deleter};
use crate::type_info::TypeSlot;
use crate::{Any, AnyView};

/// The result of an operation that can fail with an [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Declares the kinds and their names together.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident,)*) => {
        /// The kinds of error that every front end knows. Any other name is a valid kind too; front ends treat it as a
        /// runtime error.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ErrorKind {
            $($(#[$doc])* $kind,)*
        }

        impl AsRef<str> for ErrorKind {
            fn as_ref(&self) -> &str {
                match self {
                    $(ErrorKind::$kind => stringify!($kind),)*
                }
            }
        }
    };
}

kinds! {
    /// A value of the right type that does not fit; the caller's fault.
    ValueError,
    /// A value of the wrong type; the caller's fault.
    TypeError,
    /// A position outside of a sequence.
    IndexError,
    /// A key that a map lacks.
    KeyError,
    /// A name that an object lacks.
    AttributeError,
    /// Something failed while running.
    RuntimeError,
    /// The program contradicts itself: our fault.
    InternalError,
    /// An operation that this build does not offer.
    NotImplementedError,
    /// A number too large for its type.
    OverflowError,
    /// Memory that could not be had.
    MemoryError,
    /// Reading or writing outside the process failed.
    OSError,
    /// Text that does not parse.
    SyntaxError,
    /// A condition that the caller promised does not hold.
    AssertionError,
}

/// The cell that the interface fixes. Errors of other languages have it too, so that everything is read through it.
#[repr(C)]
pub(crate) struct ErrorObj {
    kind: ByteArray,
    message: ByteArray,
    backtrace: ByteArray,
    update_backtrace: Option<UpdateBacktrace>,
    cause: Option<ObjectRef>,
    extra: Option<ObjectRef>,
}

/// Replaces the backtrace (mode 0) or adds to it (mode 1).
type UpdateBacktrace = unsafe extern "C" fn(this: *mut c_void, backtrace: *const ByteArray, mode: i32);

/// An error made here: the cell, then the text that it addresses.
#[repr(C)]
struct Owned {
    cell: ErrorObj,
    kind: Box<str>,
    message: Box<str>,
    /// Every backtrace that the cell has ever addressed: a reader may still hold an earlier one.
    backtraces: Mutex<Vec<Box<str>>>,
}

// SAFETY: the addresses are those of immutable text that lives as long as the object; of a backtrace, earlier ones do.
unsafe impl Send for ErrorObj {}
// SAFETY: as above.
unsafe impl Sync for ErrorObj {}

// SAFETY: the slot belongs to this type alone.
unsafe impl Object for ErrorObj {
    const TYPE_KEY: &'static str = "ffi.Error";
    const STATIC_INDEX: Option<i32> = Some(type_index::ERROR);

    fn slot() -> &'static TypeSlot {
        static SLOT: TypeSlot = TypeSlot::new();
        &SLOT
    }
}

/// [`UpdateBacktrace`] of the errors made here.
unsafe extern "C" fn update_backtrace(this: *mut c_void, backtrace: *const ByteArray, mode: i32) {
    const APPEND: i32 = 1;
    // SAFETY: the caller passes a live error object and a readable byte array; only errors made here have this function.
    // The cell's words change under the lock; readers in C take no lock, by the rules of the interface, and find bytes
    // that stay alive.
    unsafe {
        let owned = &raw mut (*this.cast::<ObjectBox<Owned>>()).value;
        let added = String::from_utf8_lossy((*backtrace).as_slice());
        let mut kept = (*owned).backtraces.lock().unwrap_or_else(PoisonError::into_inner);
        let text = match (mode, kept.last()) {
            (APPEND, Some(old)) => format!("{old}{added}"),
            _ => added.into_owned(),
        };
        let text = text.into_boxed_str();
        (&raw mut (*owned).cell.backtrace).write(ByteArray::new(text.as_bytes()));
        kept.push(text);
    }
}

/// The text of a cell's bytes, as far as it is UTF-8.
///
/// # Safety
/// The bytes live for as long as the caller picks.
unsafe fn text<'a>(bytes: &ByteArray) -> &'a str {
    // SAFETY: the caller's promise.
    let bytes = unsafe { bytes.as_slice() };
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or(""),
    }
}

/// An error: a kind, a message, and where it came from.
#[derive(Clone, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Error(Ref<ErrorObj>);

impl Error {
    /// An error of that kind, given as an [`ErrorKind`] or by name.
    pub fn new(kind: impl AsRef<str>, message: impl Into<String>) -> Error {
        Error::with_backtrace(kind, message, "", None, None)
    }

    /// An error that carries a backtrace, most recent call first, and what caused it.
    pub fn with_backtrace(
        kind: impl AsRef<str>,
        message: impl Into<String>,
        backtrace: &str,
        cause: Option<ObjectRef>,
        extra: Option<ObjectRef>,
    ) -> Error {
        let kind: Box<str> = kind.as_ref().into();
        let message = message.into().into_boxed_str();
        let backtrace: Box<str> = backtrace.into();
        let cell = ErrorObj {
            kind: ByteArray::new(kind.as_bytes()),
            message: ByteArray::new(message.as_bytes()),
            backtrace: ByteArray::new(backtrace.as_bytes()),
            update_backtrace: Some(update_backtrace),
            cause,
            extra,
        };
        let object = allocate::<Owned>(type_index::ERROR, 0, deleter::<Owned>);
        // SAFETY: the allocation has room for the value, which begins with the cell.
        unsafe {
            (&raw mut (*object.as_ptr()).value).write(Owned {
                cell,
                kind,
                message,
                backtraces: Mutex::new(vec![backtrace]),
            });
            Error(Ref::from_box(object.cast()))
        }
    }

    /// A TypeError that names what was wanted and what came.
    pub fn type_mismatch(expected: &str, got: &str) -> Error {
        Error::new(ErrorKind::TypeError, format!("expected `{expected}` but got `{got}`"))
    }

    /// The name of the kind.
    pub fn kind(&self) -> &str {
        // SAFETY: the kind lives as long as the object.
        unsafe { text(&self.0.kind) }
    }

    /// True if the error is of that kind.
    pub fn is(&self, kind: ErrorKind) -> bool {
        self.kind() == kind.as_ref()
    }

    /// What went wrong.
    pub fn message(&self) -> &str {
        // SAFETY: the message lives as long as the object.
        unsafe { text(&self.0.message) }
    }

    /// Where it went wrong, most recent call first; empty if nobody recorded it.
    pub fn backtrace(&self) -> String {
        // SAFETY: every backtrace lives as long as the object.
        unsafe { text(&self.0.backtrace) }.to_string()
    }

    /// What caused this error, if it was recorded.
    pub fn cause(&self) -> Option<&ObjectRef> {
        self.0.cause.as_ref()
    }

    /// What else the raiser attached.
    pub fn extra_context(&self) -> Option<&ObjectRef> {
        self.0.extra.as_ref()
    }

    /// The same kind of error with a message that says more: `context: message`.
    pub fn context(&self, context: impl fmt::Display) -> Error {
        let message = format!("{context}: {}", self.message());
        Error::with_backtrace(self.kind(), message, &self.backtrace(), self.cause().cloned(), self.0.extra.clone())
    }

    /// The error that a caught panic amounts to.
    pub(crate) fn from_panic(payload: &(dyn std::any::Any + Send)) -> Error {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("unknown cause");
        Error::new(ErrorKind::InternalError, format!("panicked: {text}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind(), self.message())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        Error::new(ErrorKind::OSError, error.to_string())
    }
}

impl From<Error> for ObjectRef {
    fn from(error: Error) -> ObjectRef {
        error.0.into()
    }
}

impl From<Error> for Any {
    fn from(error: Error) -> Any {
        error.0.into()
    }
}

impl Handle for Error {
    fn expected() -> String {
        ErrorObj::TYPE_KEY.to_string()
    }

    fn as_object(&self) -> &ObjectRef {
        self.0.as_object()
    }

    fn try_from_object(object: ObjectRef) -> Result<Self, ObjectRef> {
        object.downcast().map(Error)
    }
}

impl crate::FromAny for Error {
    fn from_any(value: AnyView<'_>) -> Result<Self> {
        crate::convert::handle_from_any(value)
    }
}
