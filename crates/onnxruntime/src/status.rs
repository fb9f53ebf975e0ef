//! Statuses: what every function answers. None at all, a null pointer, is success.

use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::border::{c_string, text};
use crate::handle::{self, Handle, HandleKind};

/// What kind of failure it is, by ONNX Runtime's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    /// Something that none of the others says.
    Fail = 1,
    /// What the caller gave is at fault.
    InvalidArgument = 2,
    /// There is no such file.
    NoSuchFile = 3,
    /// The computation failed.
    RuntimeException = 6,
    /// The bytes are no model.
    InvalidProtobuf = 7,
    /// It is not here.
    NotImplemented = 9,
    /// The model contradicts itself.
    InvalidGraph = 10,
    /// Making the session was cancelled.
    LoadCanceled = 12,
}

/// A failure, for the caller to read.
#[derive(Debug)]
pub struct Status {
    code: c_int,
    message: CString,
}

/// A status for C.
pub type OrtStatus = Handle<Status>;

/// What functions do inside.
pub type Result<T> = std::result::Result<T, Status>;

impl HandleKind for Status {
    const NAME: &str = "OrtStatus";
}

impl Status {
    /// A failure with its reason.
    pub fn new(code: Code, message: impl AsRef<str>) -> Status {
        Status { code: code as c_int, message: c_string(message.as_ref()) }
    }
}

/// What the caller gave is at fault.
pub fn invalid(message: impl AsRef<str>) -> Status {
    Status::new(Code::InvalidArgument, message)
}

/// Asked for, and not here; the message says what to do instead.
pub fn not_here(message: impl AsRef<str>) -> Status {
    Status::new(Code::NotImplemented, message)
}

/// What the runtime or a program of it says.
impl From<relaxide::ffi::Error> for Status {
    fn from(error: relaxide::ffi::Error) -> Status {
        Status::new(Code::RuntimeException, error.message())
    }
}

/// Runs the body of a function. Neither an error nor a panic leaves it but as a status.
pub fn guard(body: impl FnOnce() -> Result<()>) -> *mut OrtStatus {
    let mut body = Some(body);
    guarded(&mut || match body.take() {
        Some(body) => body(),
        None => Ok(()),
    })
}

/// Once for all functions: what catches panics is long.
#[inline(never)]
fn guarded(body: &mut dyn FnMut() -> Result<()>) -> *mut OrtStatus {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => std::ptr::null_mut(),
        Ok(Err(status)) => handle::give(status),
        Err(panic) => handle::give(of_panic(&*panic)),
    }
}

/// Runs the body of a function that cannot answer with a status: a panic ends here, and `otherwise` is the answer.
pub fn quietly<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

fn of_panic(panic: &(dyn std::any::Any + Send)) -> Status {
    let said = panic.downcast_ref::<&str>().map(|text| (*text).to_string());
    let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    Status::new(
        Code::RuntimeException,
        format!("a defect of Relaxide, which its authors would like to know of: {said}"),
    )
}

pub unsafe extern "C" fn create_status(code: c_int, message: *const c_char) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    let message = unsafe { text(message, "msg") }.map(c_string).unwrap_or_default();
    quietly(std::ptr::null_mut(), || handle::give(Status { code, message }))
}

pub unsafe extern "C" fn get_error_code(status: *const OrtStatus) -> c_int {
    // SAFETY: the interface's contract. No status is success.
    unsafe { handle::at(status, "status") }.map_or(0, |status| status.code)
}

pub unsafe extern "C" fn get_error_message(status: *const OrtStatus) -> *const c_char {
    // SAFETY: the interface's contract.
    unsafe { handle::at(status, "status") }.map_or(c"".as_ptr(), |status| status.message.as_ptr())
}

pub unsafe extern "C" fn release_status(status: *mut OrtStatus) {
    // SAFETY: the interface's contract.
    unsafe { handle::release(status) }
}
