//! What only the runtime inside a WebAssembly module has: memory for its host to write into, weights that the host brings, the text of a
//! panic, and the builtins that not every module has.
//!
//! A panic ends the call with a trap, of which the host learns nothing but that it was one, so its text is kept where the host
//! finds it. The module must not be used any more then.

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::OnceLock;

use relaxide_ffi::Error;
use relaxide_runtime::weights::{ALIGNMENT, Memory, WeightsFile};
use relaxide_vm::Executable;
use relaxide_vm::executable::weights::WeightsApart;

use crate::border::{guard, invalid, null, put};
use crate::error::c_string;

/// Memory for the host to write arguments or weights into, of at least one byte, aligned as weights are; null if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn relaxide_memory_new(bytes: usize) -> *mut c_void {
    // SAFETY: the layout has a size.
    layout(bytes).map_or(std::ptr::null_mut(), |layout| unsafe { alloc(layout) }).cast()
}

/// Gives such memory back, of which the host says the size again; null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_memory_free(memory: *mut c_void, bytes: usize) {
    if let Some(layout) = layout(bytes).filter(|_| !memory.is_null()) {
        // SAFETY: the memory was allocated with the same layout, and is given up.
        unsafe { dealloc(memory.cast(), layout) };
    }
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.max(1), ALIGNMENT).ok()
}

/// The program's weights that are not in the module.
fn weights_apart() -> Result<Option<WeightsApart>, Error> {
    let module = relaxide_vm::system_library("")?;
    Executable::of_module(&module).map_or(Ok(None), |executable| executable.weights_apart())
}

/// The plain name of the file that the program's weights are in, and how many bytes it has; the name is null if they are in the module.
/// It stays valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_weights_file(file: *mut *const c_char, bytes: *mut u64) -> c_int {
    static NAME: OnceLock<CString> = OnceLock::new();
    guard(|| {
        let weights = weights_apart()?;
        let name = weights.as_ref().map(|weights| NAME.get_or_init(|| c_string(&weights.file)).as_ptr());
        // SAFETY: the interface's contract.
        unsafe {
            put(bytes, weights.map_or(0, |weights| weights.bytes), "bytes")?;
            put(file, name.unwrap_or(std::ptr::null()), "file")
        }
    })
}

/// Takes the content of that file, which the host has written into memory of [`relaxide_memory_new`]. The memory belongs to the program
/// from now on, also where this fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_weights_take(memory: *mut c_void, bytes: usize) -> c_int {
    guard(|| {
        if memory.is_null() {
            return Err(null("memory"));
        }
        let held = HostMemory { memory: memory.cast(), bytes };
        let weights = weights_apart()?.ok_or_else(|| invalid("the program takes no weights: it has them inside"))?;
        relaxide_vm::take_weights(
            &relaxide_vm::system_library("")?,
            WeightsFile::in_memory(&weights.file, Box::new(held))?,
        )
    })
}

/// Memory of [`relaxide_memory_new`] that the host has given up.
struct HostMemory {
    memory: *mut u8,
    bytes: usize,
}

// SAFETY: nobody else has the memory.
unsafe impl Send for HostMemory {}
// SAFETY: as above.
unsafe impl Sync for HostMemory {}

impl Memory for HostMemory {
    fn bytes(&self) -> &[u8] {
        // SAFETY: the host has allocated that many bytes, and gave them up.
        unsafe { std::slice::from_raw_parts(self.memory, self.bytes) }
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        // SAFETY: as above, and nobody uses it any more.
        unsafe { relaxide_memory_free(self.memory.cast(), self.bytes) };
    }
}

static PANIC: OnceLock<CString> = OnceLock::new();

/// Has the text of a panic kept. Called once, before all other functions.
#[unsafe(no_mangle)]
pub extern "C" fn relaxide_start() {
    std::panic::set_hook(Box::new(|info| {
        let _ = PANIC.set(c_string(&info.to_string()));
    }));
}

/// What the module's panic said; null if there was none.
#[unsafe(no_mangle)]
pub extern "C" fn relaxide_panic_message() -> *const c_char {
    PANIC.get().map_or(std::ptr::null(), |text| text.as_ptr())
}

/// Enters the builtins that few programs call; in modules whose program calls one, right behind [`relaxide_start`].
#[unsafe(no_mangle)]
pub extern "C" fn relaxide_optional_builtins() {
    relaxide_vm::enter_optional_builtins();
}
