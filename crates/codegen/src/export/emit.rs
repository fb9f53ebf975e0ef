//! Streams the laid-out library: headers, sections in file order, symbol and section tables.

use std::io;

use object::{
    elf,
    write::elf::{FileHeader, FileHeaderLayout, ProgramHeader, SectionHeader, Sym},
};

use super::{
    dynamic::{DynamicTables, encoder},
    error::ExportError,
    layout::{Layout, OutputSection, SectionBody, Segment, Table},
    library::SharedLibrary,
    link::{Image, LinkPlan, eh_frame_header, got_bytes, plt_bytes, symbol_binding},
    resolve::{Definition, SymbolLocation, Symbols},
};

/// Writes everything to `out`, in one pass.
pub(super) fn write(
    library: &SharedLibrary<'_>,
    symbols: &Symbols<'_>,
    plan: &LinkPlan,
    tables: &DynamicTables<'_>,
    layout: &Layout,
    image: &Image,
    out: &mut dyn io::Write,
) -> Result<(), ExportError> {
    let trailer = Trailer::new(symbols, layout, library)?;
    let mut file = File { out, position: 0 };
    file.bytes(&headers(library, layout, &trailer)?)?;
    for (index, section) in layout.sections.iter().enumerate().filter(|(_, section)| section.occupies_file()) {
        file.pad_to(section.offset)?;
        match &section.body {
            SectionBody::Inputs(_) => file.bytes(image.sections.get(&index).map_or(&[][..], |bytes| bytes))?,
            SectionBody::Extra(extra) => {
                for piece in library.extra[*extra].pieces() {
                    file.bytes(piece)?;
                }
            }
            SectionBody::Table(table) => {
                let bytes = table_bytes(*table, library, symbols, plan, tables, layout, image)?;
                debug_assert_eq!(bytes.len() as u64, section.size, "{}", section.name);
                file.bytes(&bytes)?;
            }
        }
    }
    file.pad_to(trailer.symtab_offset)?;
    file.bytes(&trailer.symtab)?;
    file.bytes(&trailer.strtab)?;
    file.bytes(&trailer.shstrtab)?;
    file.pad_to(trailer.headers_offset)?;
    file.bytes(&section_headers(library, layout, &trailer))
}

fn table_bytes(
    table: Table,
    library: &SharedLibrary<'_>,
    symbols: &Symbols<'_>,
    plan: &LinkPlan,
    tables: &DynamicTables<'_>,
    layout: &Layout,
    image: &Image,
) -> Result<Vec<u8>, ExportError> {
    Ok(match table {
        Table::GnuHash => tables.gnu_hash(),
        Table::DynSym => tables.dynsym(layout),
        Table::DynStr => tables.dynstr().to_vec(),
        Table::RelaDyn => {
            let mut bytes = Vec::new();
            for relocation in &image.relocations {
                encoder(library.machine).relocation(&mut bytes, true, relocation);
            }
            bytes
        }
        Table::EhFrameHdr => eh_frame_header(layout),
        Table::Plt => plt_bytes(library.machine, plan, layout)?,
        Table::Dynamic => {
            // Fewer entries than reserved (no relocations) leave null entries at the end, which end the list as well.
            let mut bytes = tables.dynamic(layout, plan)?;
            bytes.resize(layout.table(Table::Dynamic).map_or(0, |section| section.size as usize), 0);
            bytes
        }
        Table::Got => got_bytes(symbols, plan, layout),
    })
}

fn headers(library: &SharedLibrary<'_>, layout: &Layout, trailer: &Trailer) -> Result<Vec<u8>, ExportError> {
    let encoder = encoder(library.machine);
    let header = FileHeader { e_type: elf::ET_DYN, e_machine: library.machine.elf(), ..FileHeader::default() };
    let mut bytes = Vec::new();
    let file_layout = trailer.file_layout(layout);
    encoder
        .file_header(&mut bytes, &header, &file_layout)
        .map_err(|_| ExportError::TooLarge("too many segments or sections"))?;
    for program_header in program_headers(library, layout) {
        encoder.program_header(&mut bytes, &program_header);
    }
    Ok(bytes)
}

fn program_headers(library: &SharedLibrary<'_>, layout: &Layout) -> Vec<ProgramHeader> {
    let page = library.machine.max_page();
    let mut headers: Vec<ProgramHeader> =
        Segment::ALL.into_iter().filter_map(|segment| load_header(layout, segment, page)).collect();
    if let Some(relro) = load_header(layout, Segment::RelRo, page) {
        headers.push(ProgramHeader { p_type: elf::PT_GNU_RELRO, p_flags: elf::PF_R, p_align: 1, ..relro });
    }
    for (table, kind) in [(Table::Dynamic, elf::PT_DYNAMIC), (Table::EhFrameHdr, elf::PT_GNU_EH_FRAME)] {
        if let Some(section) = layout.table(table) {
            let flags = section.segment.map_or(elf::PF_R, Segment::flags);
            headers.push(ProgramHeader { p_type: kind, ..spanning(section, section.size, section.size, flags, 8) });
        }
    }
    let stack_flags = elf::ProgramFlags(elf::PF_R.0 | elf::PF_W.0);
    headers.push(ProgramHeader { p_type: elf::PT_GNU_STACK, p_flags: stack_flags, p_align: 16, ..empty_header() });
    headers.resize_with(layout.program_headers as usize, empty_header);
    headers
}

fn load_header(layout: &Layout, segment: Segment, page: u64) -> Option<ProgramHeader> {
    let first = layout.segment(segment).next()?;
    let last_in_file = layout.segment(segment).filter(|section| section.occupies_file()).last();
    let end = layout.segment(segment).last()?.end();
    let file_size = last_in_file.map_or(0, |section| section.end() - first.address);
    let mut memory_size = end - first.address;
    let mut header = spanning(first, file_size, memory_size, segment.flags(), page);
    match segment {
        // The first segment also maps the headers.
        Segment::Read => {
            header.p_offset = 0;
            header.p_vaddr = 0;
            header.p_filesz = first.address + file_size;
            header.p_memsz = first.address + memory_size;
        }
        // Protection goes by whole pages, so the read-only-after-relocation part must end with one.
        Segment::RelRo => {
            memory_size = end.next_multiple_of(page) - first.address;
            header.p_memsz = memory_size;
        }
        Segment::Code | Segment::Data | Segment::Extra => {}
    }
    header.p_paddr = header.p_vaddr;
    Some(ProgramHeader { p_type: elf::PT_LOAD, ..header })
}

fn spanning(
    first: &OutputSection,
    file_size: u64,
    memory_size: u64,
    flags: elf::ProgramFlags,
    alignment: u64,
) -> ProgramHeader {
    ProgramHeader {
        p_type: elf::PT_NULL,
        p_flags: flags,
        p_offset: first.offset,
        p_vaddr: first.address,
        p_paddr: first.address,
        p_filesz: file_size,
        p_memsz: memory_size,
        p_align: alignment,
    }
}

fn empty_header() -> ProgramHeader {
    ProgramHeader {
        p_type: elf::PT_NULL,
        p_flags: elf::ProgramFlags(0),
        p_offset: 0,
        p_vaddr: 0,
        p_paddr: 0,
        p_filesz: 0,
        p_memsz: 0,
        p_align: 0,
    }
}

impl Layout {
    /// The symbol table entry of a definition.
    pub(super) fn symbol(&self, definition: &Definition<'_>, name: u32) -> Sym {
        let section = self.section_of(definition).map(|index| index as u32 + 1);
        let absolute = matches!(definition.place, SymbolLocation::Absolute(_));
        Sym {
            section,
            st_name: name,
            st_info: elf::SymbolInfo::new(symbol_binding(definition.exported, definition.binding), definition.kind),
            st_other: elf::SymbolOther(0),
            st_shndx: if absolute { elf::SHN_ABS } else { elf::SHN_UNDEF },
            st_value: self.address(definition),
            st_size: definition.size,
        }
    }
}

/// What follows the sections in the file and is not loaded: the full symbol table and the section headers.
struct Trailer {
    symtab_offset: u64,
    symtab: Vec<u8>,
    local_symbols: u32,
    strtab: Vec<u8>,
    shstrtab: Vec<u8>,
    /// The names' offsets, for the layout's sections and then for the three tables here.
    section_names: Vec<u32>,
    headers_offset: u64,
}

impl Trailer {
    fn new(symbols: &Symbols<'_>, layout: &Layout, library: &SharedLibrary<'_>) -> Result<Self, ExportError> {
        let too_large = |_| ExportError::TooLarge("symbol names beyond 4 GiB");
        let encoder = encoder(library.machine);
        let (mut symtab, mut strtab) = (vec![0; 24], vec![0]);
        // Local names with a dot in front are those of the compiler's own tables and texts, which nobody looks for.
        let named = |item: &&Definition<'_>| {
            !item.name.is_empty()
                && (item.exported || !item.name.starts_with(b"."))
                && (matches!(item.place, SymbolLocation::Absolute(_)) || layout.section_of(item).is_some())
        };
        let mut local_symbols = 1;
        // Local symbols come first, as the format demands.
        for exported in [false, true] {
            for definition in symbols.definitions.iter().filter(|item| item.exported == exported).filter(named) {
                let name = u32::try_from(strtab.len()).map_err(too_large)?;
                strtab.extend_from_slice(definition.name);
                strtab.push(0);
                encoder.symbol(&mut symtab, &layout.symbol(definition, name));
                local_symbols += u32::from(!exported);
            }
        }
        let (mut shstrtab, mut section_names) = (vec![0], Vec::new());
        let own = [".symtab", ".strtab", ".shstrtab"];
        for name in layout.sections.iter().map(|section| &*section.name).chain(own) {
            section_names.push(u32::try_from(shstrtab.len()).map_err(too_large)?);
            shstrtab.extend_from_slice(name.as_bytes());
            shstrtab.push(0);
        }
        let symtab_offset = layout.file_end.next_multiple_of(8);
        let headers_offset =
            (symtab_offset + (symtab.len() + strtab.len() + shstrtab.len()) as u64).next_multiple_of(8);
        Ok(Self { symtab_offset, symtab, local_symbols, strtab, shstrtab, section_names, headers_offset })
    }

    fn file_layout(&self, layout: &Layout) -> FileHeaderLayout {
        let section_num = layout.sections.len() as u32 + 4;
        FileHeaderLayout {
            e_phoff: 64,
            segment_num: layout.program_headers as u32,
            e_shoff: self.headers_offset,
            section_num,
            shstrtab_index: section_num - 1,
        }
    }
}

fn section_headers(library: &SharedLibrary<'_>, layout: &Layout, trailer: &Trailer) -> Vec<u8> {
    let encoder = encoder(library.machine);
    let mut bytes = Vec::new();
    encoder.null_section_header(&mut bytes, &trailer.file_layout(layout));
    let index_of = |table| {
        layout.sections.iter().position(|section| section.body == SectionBody::Table(table)).map_or(0, |i| i as u32 + 1)
    };
    for (section, &sh_name) in layout.sections.iter().zip(&trailer.section_names) {
        let (sh_link, sh_info) = match section.body {
            SectionBody::Table(Table::GnuHash | Table::RelaDyn) => (index_of(Table::DynSym), 0),
            SectionBody::Table(Table::DynSym) => (index_of(Table::DynStr), 1),
            SectionBody::Table(Table::Dynamic) => (index_of(Table::DynStr), 0),
            _ => (0, 0),
        };
        encoder.section_header(
            &mut bytes,
            &SectionHeader {
                sh_name,
                sh_type: section.kind,
                sh_flags: section.flags,
                sh_addr: section.address,
                sh_offset: section.offset,
                sh_size: section.size,
                sh_link,
                sh_info,
                sh_addralign: section.alignment,
                sh_entsize: section.entry_size,
            },
        );
    }
    let strtab_index = layout.sections.len() as u32 + 2;
    let mut offset = trailer.symtab_offset;
    let own = [
        (encoder.symtab_section_header(strtab_index, trailer.local_symbols), &trailer.symtab),
        (encoder.strtab_section_header(), &trailer.strtab),
        (encoder.strtab_section_header(), &trailer.shstrtab),
    ];
    for ((header, content), &sh_name) in own.into_iter().zip(&trailer.section_names[layout.sections.len()..]) {
        let sh_size = content.len() as u64;
        encoder.section_header(&mut bytes, &SectionHeader { sh_name, sh_offset: offset, sh_size, ..header });
        offset += sh_size;
    }
    bytes
}

/// Counts what has been written, to pad up to planned offsets.
struct File<'a> {
    out: &'a mut dyn io::Write,
    position: u64,
}

impl File<'_> {
    fn bytes(&mut self, bytes: &[u8]) -> Result<(), ExportError> {
        self.out.write_all(bytes)?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    fn pad_to(&mut self, offset: u64) -> Result<(), ExportError> {
        const ZEROS: [u8; 4096] = [0; 4096];
        while self.position < offset {
            let length = (offset - self.position).min(ZEROS.len() as u64) as usize;
            self.bytes(&ZEROS[..length])?;
        }
        Ok(())
    }
}
