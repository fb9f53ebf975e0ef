//! What a shared library carries, read from its file: no code of it is loaded, so it may be for any machine.

use std::fs::File;
use std::path::Path;

use object::{Object, ObjectSection, ObjectSymbol, ReadCache};

use super::LIBRARY_BIN_SYMBOL;

/// The bytes of the module tree in a library, without the length in front; `None` where the file is no library or carries none.
pub fn module_tree(path: &Path) -> Option<Vec<u8>> {
    let cache = ReadCache::new(File::open(path).ok()?);
    let file = object::File::parse(&cache).ok()?;
    let symbol = file.dynamic_symbols().find(|symbol| symbol.name() == Ok(LIBRARY_BIN_SYMBOL))?;
    let start = symbol.address();
    let holds = |section: &object::Section<'_, '_, _>| {
        let first = section.address();
        section.name() != Ok("") && first <= start && start - first < section.size()
    };
    let section = file.sections().find(holds)?;
    // The file's own numbers: what they name must lie inside of the section.
    let length = section.data_range(start, 8).ok()??;
    let length = u64::from_le_bytes(length.try_into().ok()?);
    Some(section.data_range(start.checked_add(8)?, length).ok()??.to_vec())
}
