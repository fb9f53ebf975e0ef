//! Writes the binary form: numbers of variable length, vectors and sections.

use relaxide_ffi::SavedBytes;
use wasmparser::{FuncType, RefType, ValType};

use super::{ExportError, unreadable};

/// The sections of a module, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Id {
    Type = 1,
    Function = 3,
    Table = 4,
    Memory = 5,
    Global = 6,
    Export = 7,
    Start = 8,
    Element = 9,
    Code = 10,
    Data = 11,
}

/// What every module begins with.
pub(super) const HEADER: &[u8] = b"\0asm\x01\0\0\0";

/// Appends an unsigned number.
pub(super) fn unsigned(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed number.
pub(super) fn signed(out: &mut Vec<u8>, mut value: i64) {
    loop {
        let byte = (value & 0x7f) as u8;
        value >>= 7;
        if (value == 0 && byte & 0x40 == 0) || (value == -1 && byte & 0x40 != 0) {
            return out.push(byte);
        }
        out.push(byte | 0x80);
    }
}

/// Appends bytes with their number in front.
pub(super) fn counted(out: &mut Vec<u8>, bytes: &[u8]) {
    unsigned(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends the type of a function.
pub(super) fn function_type(out: &mut Vec<u8>, ty: &FuncType) -> Result<(), ExportError> {
    out.push(0x60);
    for values in [ty.params(), ty.results()] {
        unsigned(out, values.len() as u64);
        for value in values {
            out.push(match *value {
                ValType::I32 => 0x7f,
                ValType::I64 => 0x7e,
                ValType::F32 => 0x7d,
                ValType::F64 => 0x7c,
                ValType::V128 => 0x7b,
                ValType::Ref(RefType::FUNCREF) => 0x70,
                ValType::Ref(RefType::EXTERNREF) => 0x6f,
                other => return Err(unreadable("module", format!("values of the type {other}"))),
            });
        }
    }
    Ok(())
}

/// A module that is put together, section by section.
pub(super) struct Module {
    out: SavedBytes,
}

impl Module {
    pub fn new() -> Self {
        Self { out: SavedBytes::from(HEADER.to_vec()) }
    }

    /// Appends a section that is a vector: `count` items, which are the bytes.
    pub fn vector(&mut self, id: Id, count: usize, items: &[u8]) {
        let mut content = Vec::with_capacity(items.len() + 5);
        unsigned(&mut content, count as u64);
        content.extend_from_slice(items);
        self.section(id, SavedBytes::from(content));
    }

    /// Appends a section.
    pub fn section(&mut self, id: Id, content: SavedBytes) {
        let mut head = vec![id as u8];
        unsigned(&mut head, content.len() as u64);
        self.out.push(&head);
        self.out.append(content);
    }

    pub fn finish(self) -> SavedBytes {
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_short_as_they_can_be() {
        let of = |value: i64| {
            let mut out = Vec::new();
            signed(&mut out, value);
            out
        };
        for (value, bytes) in
            [(0, vec![0]), (63, vec![63]), (64, vec![0xc0, 0]), (-1, vec![0x7f]), (-65, vec![0xbf, 0x7f])]
        {
            assert_eq!(of(value), bytes, "{value}");
        }
        let mut out = Vec::new();
        unsigned(&mut out, 624_485);
        assert_eq!(out, [0xe5, 0x8e, 0x26]);
    }
}
