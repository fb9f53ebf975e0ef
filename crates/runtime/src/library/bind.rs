//! Filling the procedure linkage table of a loaded library.
//!
//! A lazily bound ELF library calls an imported function through a slot that at first leads to the dynamic linker.
//! [`bind_imports`] finds the slots of the functions that this runtime provides, by way of the library's dynamic
//! section, and writes the addresses into them.
//!
//! Source: System V ABI, chapters "Dynamic Section" and "Relocation"; the processor supplements for the relocation
//! types.

use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_int, c_void};

use super::symbols::importable;

/// The type of the relocation of a slot.
const JUMP_SLOT: u64 = if cfg!(target_arch = "x86_64") { 7 } else { 1026 };

const DT_PLTRELSZ: i64 = 2;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_PLTREL: i64 = 20;
const DT_JMPREL: i64 = 23;
const DT_BIND_NOW: i64 = 24;
const DT_FLAGS: i64 = 30;
const DT_FLAGS_1: i64 = 0x6fff_fffb;
const DF_BIND_NOW: u64 = 8;
const DF_1_NOW: u64 = 1;

/// The head of the dynamic linker's record of a library.
#[repr(C)]
struct LinkMap {
    base: usize,
    name: *const c_char,
    dynamic: *const DynamicEntry,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct DynamicEntry {
    tag: i64,
    value: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Relocation {
    offset: u64,
    info: u64,
    addend: i64,
}

/// What the dynamic section says about lazily bound calls.
#[derive(Default)]
struct Lazy {
    strings: usize,
    symbols: usize,
    relocations: usize,
    relocation_bytes: usize,
    has_addends: bool,
    bound_already: bool,
}

/// The request for the record of a library. `libc` has it, and the function, for the GNU C library alone; musl has the same.
const RTLD_DI_LINKMAP: c_int = 2;

unsafe extern "C" {
    fn dlinfo(handle: *mut c_void, request: c_int, info: *mut c_void) -> c_int;
}

/// Leads the library's calls of functions that this runtime provides straight to them. A library that was bound
/// completely while it was loaded is left as it is.
///
/// # Safety
/// `handle` is a live handle of `dlopen`, and none of the library's code runs during this call.
pub(super) unsafe fn bind_imports(handle: *mut c_void) {
    let mut map: *const LinkMap = std::ptr::null();
    // SAFETY: the handle is live; the request writes one address.
    let code = unsafe { dlinfo(handle, RTLD_DI_LINKMAP, (&raw mut map).cast()) };
    if code != 0 || map.is_null() {
        return;
    }
    // SAFETY: the dynamic linker keeps this record while the library is loaded.
    let map = unsafe { &*map };
    // SAFETY: the dynamic section of a loaded library is mapped and ends with a null tag.
    let lazy = unsafe { read_dynamic(map) };
    let usable = lazy.has_addends && !lazy.bound_already && lazy.strings != 0 && lazy.symbols != 0;
    if !usable || lazy.relocations == 0 {
        return;
    }
    let provided = importable();
    for index in 0..lazy.relocation_bytes / size_of::<Relocation>() {
        // SAFETY: the dynamic section gives address and size of the table, and the linker has used both.
        unsafe {
            let relocation = *(lazy.relocations as *const Relocation).add(index);
            if relocation.info & 0xffff_ffff == JUMP_SLOT {
                bind_one(map, &lazy, relocation, &provided);
            }
        }
    }
}

/// # Safety
/// `map` is the record of a loaded library.
unsafe fn read_dynamic(map: &LinkMap) -> Lazy {
    let mut lazy = Lazy::default();
    // Some systems keep addresses here as they are in the file, relative to the base.
    let address = |value: u64| {
        let value = value as usize;
        if value < map.base { value + map.base } else { value }
    };
    let mut entry = map.dynamic;
    loop {
        // SAFETY: the section ends with the null tag, at which this loop ends.
        let DynamicEntry { tag, value } = unsafe { *entry };
        match tag {
            0 => return lazy,
            DT_STRTAB => lazy.strings = address(value),
            DT_SYMTAB => lazy.symbols = address(value),
            DT_JMPREL => lazy.relocations = address(value),
            DT_PLTRELSZ => lazy.relocation_bytes = value as usize,
            DT_PLTREL => lazy.has_addends = value as i64 == DT_RELA,
            DT_BIND_NOW => lazy.bound_already = true,
            DT_FLAGS => lazy.bound_already |= value & DF_BIND_NOW != 0,
            DT_FLAGS_1 => lazy.bound_already |= value & DF_1_NOW != 0,
            _ => {}
        }
        // SAFETY: as above.
        entry = unsafe { entry.add(1) };
    }
}

/// # Safety
/// `lazy` describes the library of `map` and `relocation` is one of its slots.
unsafe fn bind_one(map: &LinkMap, lazy: &Lazy, relocation: Relocation, provided: &[(Cow<'static, str>, *mut c_void)]) {
    let symbol = (relocation.info >> 32) as usize;
    // SAFETY: a relocation names a symbol of the table, and a symbol a string of its table.
    let (symbol, name) = unsafe {
        let symbol = *(lazy.symbols as *const Symbol).add(symbol);
        (symbol, CStr::from_ptr((lazy.strings as *const c_char).add(symbol.name as usize)))
    };
    if symbol.section != 0 {
        return; // The library has its own.
    }
    if let Some((_, address)) = provided.iter().find(|(provided, _)| name.to_bytes() == provided.as_bytes()) {
        let slot = (map.base + relocation.offset as usize) as *mut *mut c_void;
        // SAFETY: a lazily bound slot is writable and aligned.
        unsafe { super::module::fill(slot, *address) };
    }
}
