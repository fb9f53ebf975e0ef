//! Writes a static archive: the format of `ar` with an index of symbols, as linkers on ELF systems read it.
//!
//! Neither times nor owners are written, so equal members make equal archives. Source: the format as GNU's `ar` documents it.

use std::io::{self, Write};

use object::{
    LittleEndian, elf,
    read::elf::{FileHeader, Sym as _},
};

use super::error::ExportError;

type Header = elf::FileHeader64<LittleEndian>;
const LE: LittleEndian = LittleEndian;

const MAGIC: &[u8] = b"!<arch>\n";

/// Length of the text in front of each member.
const HEADER: usize = 60;

/// Writes an archive of one object. `name` is the member's, without a path, of at most fifteen letters.
pub fn write_archive(name: &str, object: &[u8], out: &mut dyn Write) -> Result<(), ExportError> {
    let symbols = global_definitions(object)?;
    let mut names: Vec<u8> = symbols.iter().flat_map(|symbol| symbol.iter().copied().chain([0])).collect();
    if names.len() % 2 == 1 {
        names.push(0);
    }
    let index_size = 4 + 4 * symbols.len() + names.len();
    let too_large = |_| ExportError::TooLarge("an archive with an index beyond 4 GiB");
    let member = u32::try_from(MAGIC.len() + HEADER + index_size).map_err(too_large)?;
    out.write_all(MAGIC)?;
    header("/", index_size, out)?;
    out.write_all(&u32::try_from(symbols.len()).map_err(too_large)?.to_be_bytes())?;
    for _ in &symbols {
        out.write_all(&member.to_be_bytes())?;
    }
    out.write_all(&names)?;
    header(&format!("{name}/"), object.len(), out)?;
    out.write_all(object)?;
    if object.len() % 2 == 1 {
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// The line in front of a member: name, time, owner, group, mode, size.
fn header(name: &str, size: usize, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`", 0, 0, 0, 644)
}

/// The names that an object offers to others.
pub(crate) fn global_definitions(object: &[u8]) -> Result<Vec<&[u8]>, ExportError> {
    let bad = |error: object::Error| ExportError::Object(error.to_string());
    let header = Header::parse(object).map_err(bad)?;
    let table = header.sections(LE, object).map_err(bad)?;
    let symbols = table.symbols(LE, object, elf::SHT_SYMTAB).map_err(bad)?;
    let offered = symbols.iter().filter(|symbol| symbol.st_bind() != elf::STB_LOCAL && !symbol.is_undefined(LE));
    offered.map(|symbol| symbols.symbol_name(LE, symbol).map_err(bad)).collect()
}
