//! `OrtCompileApi`: the functions that write compiled models, none of which is here.
//!
//! Bindings read this table when they are loaded (that of C# does), so there is one: its functions answer with a status.

use std::ffi::c_void;

use crate::status::{OrtStatus, guard, not_here};

/// The addresses of functions, as the interface lays them out.
#[repr(transparent)]
pub struct OrtCompileApi([*const c_void; COUNT]);

// SAFETY: the addresses are of functions, and never change.
unsafe impl Sync for OrtCompileApi {}

/// Releases what nobody can have been given.
extern "C" fn release(_options: *mut c_void) {}

macro_rules! table {
    ($($name:ident)*) => {
        const COUNT: usize = 1 + [$(stringify!($name)),*].len();

        static API: OrtCompileApi = OrtCompileApi([release as *const c_void, $({
            extern "C" fn absent() -> *mut OrtStatus {
                guard(|| {
                    let help = "sessions compile their models and keep what they made in the cache";
                    Err(not_here(format!("{} is not supported: {help}", stringify!($name))))
                })
            }
            absent as *const c_void
        }),*]);
    };
}

table! {
    CreateModelCompilationOptionsFromSessionOptions
    ModelCompilationOptions_SetInputModelPath
    ModelCompilationOptions_SetInputModelFromBuffer
    ModelCompilationOptions_SetOutputModelPath
    ModelCompilationOptions_SetOutputModelExternalInitializersFile
    ModelCompilationOptions_SetOutputModelBuffer
    ModelCompilationOptions_SetEpContextEmbedMode
    CompileModel
    ModelCompilationOptions_SetFlags
    ModelCompilationOptions_SetEpContextBinaryInformation
    ModelCompilationOptions_SetGraphOptimizationLevel
    ModelCompilationOptions_SetOutputModelWriteFunc
    ModelCompilationOptions_SetOutputModelGetInitializerLocationFunc
    ModelCompilationOptions_SetInputModel
    ModelCompilationOptions_SetWeightlessEnabled
}

pub extern "C" fn table() -> *const OrtCompileApi {
    &raw const API
}
