//! What a library's file says of itself before it is loaded: whether it is as long as it says, and for what machine it is.
//!
//! The dynamic linker maps a file without looking at its length; where the file ends too early, the first touch of the
//! missing part ends the process. So the segments are compared with the length first. What is no ELF file of 64 bits is
//! left to the linker, which says what is wrong with it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The part of the header up to the number of segments.
const HEADER: usize = 64;
/// A segment's entry.
const ENTRY: usize = 56;
/// The type of segments that are mapped.
const LOAD: u32 = 1;

/// Numbers of machines in the header, as [`std::env::consts::ARCH`] calls them.
const MACHINES: &[(u16, &str)] =
    &[(3, "x86"), (40, "arm"), (62, "x86_64"), (183, "aarch64"), (243, "riscv64"), (258, "loongarch64")];

/// Whether a file is a library, whatever its name.
pub(super) fn is_library(path: &Path) -> bool {
    let mut magic = [0; 4];
    File::open(path).and_then(|file| file.read_exact_at(&mut magic, 0)).is_ok_and(|()| magic == *b"\x7fELF")
}

/// The architecture that a library is for, if it is another than this process's.
pub(super) fn other_architecture(path: &Path) -> Option<String> {
    let mut header = [0; 20];
    File::open(path).and_then(|file| file.read_exact_at(&mut header, 0)).ok()?;
    if !header.starts_with(b"\x7fELF") {
        return None;
    }
    let number = u16::from_le_bytes(field(&header, 18)?);
    let known = MACHINES.iter().find(|(machine, _)| *machine == number).map(|(_, name)| *name);
    match known {
        Some(name) if name == std::env::consts::ARCH => None,
        Some(name) => Some(name.to_owned()),
        None => Some(format!("number {number} of ELF")),
    }
}

/// How many bytes a file has to have, if it has fewer.
pub(super) fn missing_from(path: &Path) -> io::Result<Option<u64>> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut header = [0; HEADER];
    let read = file.read_at(&mut header, 0)?;
    if !header.starts_with(b"\x7fELF\x02\x01") {
        return Ok(None);
    }
    if read < HEADER {
        return Ok(Some(HEADER as u64));
    }
    let table = field::<8>(&header, 32).map_or(0, u64::from_le_bytes);
    let count = field::<2>(&header, 56).map_or(0, u16::from_le_bytes);
    let needed = table.saturating_add(u64::from(count) * ENTRY as u64);
    if needed > length {
        return Ok(Some(needed));
    }
    // The table lies in the file, so this takes no more memory than the file has bytes.
    let mut entries = vec![0; usize::from(count) * ENTRY];
    file.read_exact_at(&mut entries, table)?;
    let end = entries.chunks_exact(ENTRY).filter_map(end_of).max().unwrap_or(0);
    Ok((end > length).then_some(end))
}

/// Where a mapped segment ends in the file.
fn end_of(entry: &[u8]) -> Option<u64> {
    let kind = u32::from_le_bytes(field(entry, 0)?);
    let (offset, size) = (u64::from_le_bytes(field(entry, 8)?), u64::from_le_bytes(field(entry, 32)?));
    (kind == LOAD).then(|| offset.saturating_add(size))
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}
