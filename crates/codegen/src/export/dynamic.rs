//! What the dynamic linker reads: symbols, their names and hash table, and the dynamic section.

use std::collections::BTreeSet;

use object::{
    LittleEndian, elf,
    write::elf::{Encoder, GnuHashTable, Sym},
};

use super::{
    error::ExportError,
    layout::{Layout, SectionClass, Table},
    library::{Machine, SharedLibrary},
    link::LinkPlan,
    resolve::{Symbols, SystemLibrary},
};

/// The encoder of all ELF structures in this writer.
pub(super) fn encoder(machine: Machine) -> Encoder<LittleEndian> {
    Encoder::new(LittleEndian, true, machine.elf())
}

/// The order of the dynamic symbols, and the strings that they and the dynamic section use.
#[derive(Debug)]
pub(super) struct DynamicTables<'a> {
    machine: Machine,
    symbols: &'a Symbols<'a>,
    /// Definitions in the order of the hash table's buckets, with their hashes and names' offsets.
    exports: Vec<Export>,
    import_names: Vec<u32>,
    hash: GnuHashTable,
    strings: Vec<u8>,
    /// String offsets of the needed libraries, and of the library's own name.
    needed: Vec<u32>,
    soname: Option<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Export {
    definition: usize,
    hash: u32,
    name: u32,
}

impl<'a> DynamicTables<'a> {
    pub fn new(library: &SharedLibrary<'_>, symbols: &'a Symbols<'a>) -> Result<Self, ExportError> {
        let mut strings = vec![0];
        let mut text = |bytes: &[u8]| -> Result<u32, ExportError> {
            let offset =
                u32::try_from(strings.len()).map_err(|_| ExportError::TooLarge("symbol names beyond 4 GiB"))?;
            strings.extend_from_slice(bytes);
            strings.push(0);
            Ok(offset)
        };
        let import_names = symbols.imports.iter().map(|import| text(import.name)).collect::<Result<Vec<_>, _>>()?;
        let mut exports = Vec::new();
        for (index, definition) in symbols.definitions.iter().enumerate().filter(|(_, item)| item.exported) {
            let hash = elf::gnu_hash(definition.name);
            exports.push(Export { definition: index, hash, name: text(definition.name)? });
        }
        let hash = hash_shape(exports.len(), symbols.imports.len())?;
        exports.sort_by_key(|export| export.hash % hash.bucket_count);
        let libraries: BTreeSet<SystemLibrary> = symbols.imports.iter().filter_map(|import| import.from).collect();
        let needed = libraries.iter().map(|item| text(item.file_name().as_bytes())).collect::<Result<_, _>>()?;
        let soname = library.soname.as_ref().map(|name| text(name.as_bytes())).transpose()?;
        Ok(Self { machine: library.machine, symbols, exports, import_names, hash, strings, needed, soname })
    }

    pub fn gnu_hash_size(&self) -> u64 {
        let hash = &self.hash;
        encoder(self.machine).gnu_hash_size(hash.bloom_count, hash.bucket_count, hash.symbol_count)
    }

    pub fn dynsym_size(&self) -> u64 {
        24 * (1 + self.import_names.len() + self.exports.len()) as u64
    }

    pub fn dynstr_size(&self) -> u64 {
        self.strings.len() as u64
    }

    /// The entries of the dynamic section, without those of initialisers and finalisers.
    pub fn fixed_dynamic_entries(&self) -> u64 {
        // GNU_HASH, STRTAB, SYMTAB, STRSZ, SYMENT, RELA, RELASZ, RELAENT, RELACOUNT, FLAGS, FLAGS_1, NULL.
        12 + self.needed.len() as u64 + u64::from(self.soname.is_some())
    }

    /// The dynamic symbol index of an import.
    pub fn import_index(&self, import: usize) -> u32 {
        // The constructor proved that all symbols together fit.
        1 + import as u32
    }

    pub fn dynstr(&self) -> &[u8] {
        &self.strings
    }

    pub fn gnu_hash(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        encoder(self.machine).gnu_hash_table(&mut bytes, &self.hash, |index| self.exports[index as usize].hash);
        bytes
    }

    pub fn dynsym(&self, layout: &Layout) -> Vec<u8> {
        let encoder = encoder(self.machine);
        let mut bytes = vec![0; 24];
        for (import, name) in self.symbols.imports.iter().zip(&self.import_names) {
            let binding = if import.weak { elf::STB_WEAK } else { elf::STB_GLOBAL };
            encoder.symbol(&mut bytes, &undefined(*name, binding));
        }
        for export in &self.exports {
            let definition = &self.symbols.definitions[export.definition];
            encoder.symbol(&mut bytes, &layout.symbol(definition, export.name));
        }
        bytes
    }

    pub fn dynamic(&self, layout: &Layout, plan: &LinkPlan) -> Result<Vec<u8>, ExportError> {
        let mut entries: Vec<(elf::DynamicTag, u64)> = Vec::new();
        entries.extend(self.needed.iter().map(|name| (elf::DT_NEEDED, u64::from(*name))));
        entries.extend(self.soname.iter().map(|name| (elf::DT_SONAME, u64::from(*name))));
        for (class, start, length) in [
            (SectionClass::InitArray, elf::DT_INIT_ARRAY, elf::DT_INIT_ARRAYSZ),
            (SectionClass::FiniArray, elf::DT_FINI_ARRAY, elf::DT_FINI_ARRAYSZ),
        ] {
            let kind = if class == SectionClass::InitArray { elf::SHT_INIT_ARRAY } else { elf::SHT_FINI_ARRAY };
            if let Some(section) = layout.sections.iter().find(|section| section.kind == kind) {
                entries.extend([(start, section.address), (length, section.size)]);
            }
        }
        entries.extend([
            (elf::DT_GNU_HASH, layout.table_address(Table::GnuHash)),
            (elf::DT_STRTAB, layout.table_address(Table::DynStr)),
            (elf::DT_SYMTAB, layout.table_address(Table::DynSym)),
            (elf::DT_STRSZ, self.dynstr_size()),
            (elf::DT_SYMENT, 24),
        ]);
        if plan.dynamic_relocations > 0 {
            entries.extend([
                (elf::DT_RELA, layout.table_address(Table::RelaDyn)),
                (elf::DT_RELASZ, 24 * plan.dynamic_relocations),
                (elf::DT_RELAENT, 24),
                (elf::DT_RELACOUNT, plan.relative_relocations),
            ]);
        }
        entries.extend([(elf::DT_FLAGS, elf::DF_BIND_NOW.0), (elf::DT_FLAGS_1, elf::DF_1_NOW.0), (elf::DT_NULL, 0)]);
        let mut bytes = Vec::with_capacity(entries.len() * 16);
        for (tag, value) in entries {
            encoder(self.machine).dynamic(&mut bytes, tag, value).map_err(|_| ExportError::TooLarge("an address"))?;
        }
        Ok(bytes)
    }
}

fn undefined(name: u32, binding: elf::SymbolBind) -> Sym {
    Sym {
        section: None,
        st_name: name,
        st_info: elf::SymbolInfo::new(binding, elf::STT_NOTYPE),
        st_other: elf::SymbolOther(0),
        st_shndx: elf::SHN_UNDEF,
        st_value: 0,
        st_size: 0,
    }
}

fn hash_shape(exports: usize, imports: usize) -> Result<GnuHashTable, ExportError> {
    let too_many = |_| ExportError::TooLarge("too many symbols");
    let symbol_count = u32::try_from(exports).map_err(too_many)?;
    let imports = u32::try_from(imports).map_err(too_many)?;
    imports.checked_add(symbol_count).filter(|sum| *sum < 1 << 24).ok_or(ExportError::TooLarge("too many symbols"))?;
    Ok(GnuHashTable {
        bucket_count: (symbol_count / 4).max(1),
        bloom_count: (symbol_count / 6).max(1).next_power_of_two(),
        bloom_shift: 6,
        symbol_base: 1 + imports,
        symbol_count,
    })
}
