//! Where everything goes: output sections, their order, file offsets and addresses.

use std::borrow::Cow;

use object::elf;

use super::{
    dynamic::DynamicTables,
    error::ExportError,
    library::SharedLibrary,
    link::LinkPlan,
    resolve::{Definition, SymbolLocation},
};

/// No library is larger than this; sizes that an object claims are checked against it, so that sums cannot overflow.
pub(super) const MAX_SIZE: u64 = 1 << 44;

/// Into which output section an input section goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum SectionClass {
    Rodata,
    EhFrame,
    Text,
    RelRo,
    InitArray,
    FiniArray,
    Data,
    Bss,
    /// Not loaded; sections of equal names are joined.
    Debug,
}

/// A section that no library can have.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum BadSection {
    #[error("section `{0}` is compressed")]
    Compressed(String),
    #[error("section `{0}` is thread-local")]
    ThreadLocal(String),
    #[error("section `{0}` is writable and executable")]
    WritableCode(String),
    #[error("section `{0}` lists initialisers the old way; loaders run `.init_array` only")]
    OldInitialisers(String),
    #[error("section `{name}` has type {kind}")]
    Kind { name: String, kind: u32 },
}

impl SectionClass {
    /// The class of a section by its header; `Ok(None)` if a library does not keep it.
    pub fn of(name: &str, kind: elf::SectionType, flags: elf::SectionFlags) -> Result<Option<Self>, BadSection> {
        let has = |flag: elf::SectionFlags| flags.0 & flag.0 != 0;
        if !has(elf::SHF_ALLOC) {
            let keep = kind == elf::SHT_PROGBITS && name.starts_with(".debug_");
            if keep && has(elf::SHF_COMPRESSED) {
                return Err(BadSection::Compressed(name.to_string()));
            }
            return Ok(keep.then_some(Self::Debug));
        }
        if has(elf::SHF_TLS) {
            return Err(BadSection::ThreadLocal(name.to_string()));
        }
        if has(elf::SHF_EXECINSTR) && has(elf::SHF_WRITE) {
            return Err(BadSection::WritableCode(name.to_string()));
        }
        if name.starts_with(".ctors") || name.starts_with(".dtors") {
            return Err(BadSection::OldInitialisers(name.to_string()));
        }
        Ok(match kind {
            elf::SHT_NOTE => None,
            elf::SHT_INIT_ARRAY => Some(Self::InitArray),
            elf::SHT_FINI_ARRAY => Some(Self::FiniArray),
            elf::SHT_NOBITS if has(elf::SHF_WRITE) => Some(Self::Bss),
            elf::SHT_PROGBITS | elf::SHT_X86_64_UNWIND if name == ".eh_frame" => Some(Self::EhFrame),
            elf::SHT_PROGBITS if has(elf::SHF_EXECINSTR) => Some(Self::Text),
            elf::SHT_PROGBITS if !has(elf::SHF_WRITE) => Some(Self::Rodata),
            elf::SHT_PROGBITS if name.starts_with(".data.rel.ro") => Some(Self::RelRo),
            elf::SHT_PROGBITS => Some(Self::Data),
            _ => return Err(BadSection::Kind { name: name.to_string(), kind: kind.0 }),
        })
    }

    pub fn is_writable(self) -> bool {
        matches!(self, Self::RelRo | Self::InitArray | Self::FiniArray | Self::Data | Self::Bss)
    }
}

/// A run of sections that are mapped together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Segment {
    Read,
    Code,
    RelRo,
    Data,
    Extra,
}

impl Segment {
    pub const ALL: [Self; 5] = [Self::Read, Self::Code, Self::RelRo, Self::Data, Self::Extra];

    pub fn flags(self) -> elf::ProgramFlags {
        elf::ProgramFlags(match self {
            Self::Read | Self::Extra => elf::PF_R.0,
            Self::Code => elf::PF_R.0 | elf::PF_X.0,
            Self::RelRo | Self::Data => elf::PF_R.0 | elf::PF_W.0,
        })
    }
}

/// What fills an output section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SectionBody {
    /// Relocated input sections, as (object, section, offset in the output section).
    Inputs(Vec<(usize, usize, u64)>),
    /// A table that the writer makes.
    Table(Table),
    /// An appended section.
    Extra(usize),
}

/// The tables that the writer makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Table {
    GnuHash,
    DynSym,
    DynStr,
    RelaDyn,
    EhFrameHdr,
    Plt,
    Dynamic,
    Got,
}

/// A section of the library.
#[derive(Debug, Clone)]
pub(super) struct OutputSection {
    pub name: Cow<'static, str>,
    pub segment: Option<Segment>,
    pub kind: elf::SectionType,
    pub flags: elf::SectionFlags,
    pub alignment: u64,
    pub entry_size: u64,
    pub size: u64,
    pub address: u64,
    pub offset: u64,
    pub body: SectionBody,
}

impl OutputSection {
    pub fn occupies_file(&self) -> bool {
        self.kind != elf::SHT_NOBITS
    }

    pub fn end(&self) -> u64 {
        self.address + self.size
    }
}

/// The whole library, laid out.
#[derive(Debug)]
pub(super) struct Layout {
    pub sections: Vec<OutputSection>,
    /// By object, then input section: the output section and the offset in it.
    placed: Vec<Vec<Option<(usize, u64)>>>,
    /// The first file offset behind all sections.
    pub file_end: u64,
    pub program_headers: u64,
}

impl Layout {
    pub fn new(library: &SharedLibrary<'_>, plan: &LinkPlan, tables: &DynamicTables<'_>) -> Result<Self, ExportError> {
        let mut builder = Builder::new(library);
        builder.read_only(plan, tables);
        builder.code(plan);
        builder.relocated(plan, tables);
        builder.inputs(SectionClass::Data, ".data", Segment::Data);
        builder.inputs(SectionClass::Bss, ".bss", Segment::Data);
        builder.appended();
        builder.debug();
        let mut layout = builder.layout;
        layout.assign(library)?;
        Ok(layout)
    }

    /// The address of a definition; for what is not loaded, the offset in its output section.
    pub fn address(&self, definition: &Definition<'_>) -> u64 {
        match definition.place {
            SymbolLocation::Absolute(value) => value,
            SymbolLocation::Input { object, section, offset } => {
                self.place(object, section).map_or(0, |(output, base)| self.sections[output].address + base + offset)
            }
            SymbolLocation::Extra(index) => self.extra(index).map_or(0, |section| self.sections[section].address),
        }
    }

    /// The output section that holds a definition.
    pub fn section_of(&self, definition: &Definition<'_>) -> Option<usize> {
        match definition.place {
            SymbolLocation::Absolute(_) => None,
            SymbolLocation::Input { object, section, .. } => self.place(object, section).map(|(output, _)| output),
            SymbolLocation::Extra(index) => self.extra(index),
        }
    }

    pub fn place(&self, object: usize, section: usize) -> Option<(usize, u64)> {
        *self.placed.get(object)?.get(section)?
    }

    pub fn table(&self, table: Table) -> Option<&OutputSection> {
        self.sections.iter().find(|section| section.body == SectionBody::Table(table))
    }

    pub fn table_address(&self, table: Table) -> u64 {
        self.table(table).map_or(0, |section| section.address)
    }

    pub fn segment(&self, segment: Segment) -> impl Iterator<Item = &OutputSection> {
        self.sections.iter().filter(move |section| section.segment == Some(segment))
    }

    fn extra(&self, index: usize) -> Option<usize> {
        self.sections.iter().position(|section| section.body == SectionBody::Extra(index))
    }

    /// Gives every section its file offset and address. Addresses skip to the next page where a segment begins, keeping
    /// the offset within the page, so that the file needs no padding between segments.
    fn assign(&mut self, library: &SharedLibrary<'_>) -> Result<(), ExportError> {
        let page = library.machine.max_page();
        let mut offset = 64 + 56 * self.program_headers;
        let mut address = offset;
        let mut segment = Some(Segment::Read);
        for section in &mut self.sections {
            if section.segment.is_some() && section.segment != segment {
                segment = section.segment;
                address = address.next_multiple_of(page) + offset % page;
            }
            let padding = offset.next_multiple_of(section.alignment) - offset;
            if section.segment.is_none() {
                section.offset = offset + padding;
                offset = section.offset + section.size;
            } else {
                // Offset and address agree modulo the page, and alignments divide it, so both take the same padding.
                section.offset = offset + padding;
                section.address = address + padding;
                address = section.end();
                if section.occupies_file() {
                    offset = section.offset + section.size;
                }
            }
            if offset > MAX_SIZE || address > MAX_SIZE {
                return Err(ExportError::TooLarge("more than 16 TiB"));
            }
        }
        self.file_end = offset;
        Ok(())
    }
}

struct Builder<'a> {
    library: &'a SharedLibrary<'a>,
    layout: Layout,
}

impl<'a> Builder<'a> {
    fn new(library: &'a SharedLibrary<'_>) -> Self {
        let placed = library.objects.iter().map(|object| vec![None; object.sections.len()]).collect();
        // One header per segment, and PT_DYNAMIC, PT_GNU_RELRO, PT_GNU_STACK, PT_GNU_EH_FRAME; unused ones are PT_NULL.
        let program_headers = Segment::ALL.len() as u64 + 4;
        let layout = Layout { sections: Vec::new(), placed, file_end: 0, program_headers };
        Self { library, layout }
    }

    fn read_only(&mut self, plan: &LinkPlan, tables: &DynamicTables<'_>) {
        self.table(Table::GnuHash, ".gnu.hash", elf::SHT_GNU_HASH, 0, tables.gnu_hash_size());
        self.table(Table::DynSym, ".dynsym", elf::SHT_DYNSYM, 24, tables.dynsym_size());
        self.table(Table::DynStr, ".dynstr", elf::SHT_STRTAB, 0, tables.dynstr_size());
        if plan.dynamic_relocations > 0 {
            self.table(Table::RelaDyn, ".rela.dyn", elf::SHT_RELA, 24, 24 * plan.dynamic_relocations);
        }
        self.inputs(SectionClass::Rodata, ".rodata", Segment::Read);
        if self.inputs(SectionClass::EhFrame, ".eh_frame", Segment::Read) {
            // A zero length ends the list of frame descriptions.
            if let Some(frames) = self.layout.sections.last_mut() {
                frames.size += 4;
            }
            self.table(Table::EhFrameHdr, ".eh_frame_hdr", elf::SHT_PROGBITS, 0, 8);
        }
    }

    fn code(&mut self, plan: &LinkPlan) {
        if !plan.plt.is_empty() {
            self.table(Table::Plt, ".plt", elf::SHT_PROGBITS, 16, 16 * plan.plt.len() as u64);
        }
        self.inputs(SectionClass::Text, ".text", Segment::Code);
    }

    fn relocated(&mut self, plan: &LinkPlan, tables: &DynamicTables<'_>) {
        self.inputs(SectionClass::RelRo, ".data.rel.ro", Segment::RelRo);
        let has_init = self.inputs(SectionClass::InitArray, ".init_array", Segment::RelRo);
        let has_fini = self.inputs(SectionClass::FiniArray, ".fini_array", Segment::RelRo);
        let entries = tables.fixed_dynamic_entries() + 2 * (u64::from(has_init) + u64::from(has_fini));
        self.table(Table::Dynamic, ".dynamic", elf::SHT_DYNAMIC, 16, 16 * entries);
        if !plan.got.is_empty() {
            self.table(Table::Got, ".got", elf::SHT_PROGBITS, 8, 8 * plan.got.len() as u64);
        }
    }

    /// Joins all input sections of a class; false if there is none.
    fn inputs(&mut self, class: SectionClass, name: &'static str, segment: Segment) -> bool {
        let members = self.members(|section| section == (class, None));
        self.join(Cow::Borrowed(name), class, Some(segment), members)
    }

    fn debug(&mut self) {
        let mut names: Vec<&str> = Vec::new();
        for section in self.library.objects.iter().flat_map(|object| object.sections.iter().flatten()) {
            if section.class == SectionClass::Debug && !names.contains(&section.name) {
                names.push(section.name);
            }
        }
        for name in names {
            let members = self.members(|section| section == (SectionClass::Debug, Some(name)));
            self.join(Cow::Owned(name.to_owned()), SectionClass::Debug, None, members);
        }
    }

    /// The input sections that satisfy `wanted`, which sees the class and, for debug sections, the name.
    fn members(&self, wanted: impl Fn((SectionClass, Option<&str>)) -> bool) -> Vec<(usize, usize)> {
        let mut members = Vec::new();
        for (object_index, object) in self.library.objects.iter().enumerate() {
            for (index, section) in object.sections.iter().enumerate() {
                let Some(section) = section else { continue };
                let name = (section.class == SectionClass::Debug).then_some(section.name);
                if wanted((section.class, name)) {
                    members.push((object_index, index));
                }
            }
        }
        members
    }

    fn join(
        &mut self,
        name: Cow<'static, str>,
        class: SectionClass,
        segment: Option<Segment>,
        members: Vec<(usize, usize)>,
    ) -> bool {
        let (mut size, mut alignment, mut inputs) = (0u64, 1, Vec::new());
        let output = self.layout.sections.len();
        for (object, index) in members {
            let Some(section) = self.library.objects[object].section(index) else { continue };
            alignment = alignment.max(section.alignment);
            size = size.next_multiple_of(section.alignment);
            inputs.push((object, index, size));
            self.layout.placed[object][index] = Some((output, size));
            size = size.saturating_add(section.size).min(MAX_SIZE * 2);
        }
        if inputs.is_empty() {
            return false;
        }
        let (kind, flags) = header_of(class);
        let body = SectionBody::Inputs(inputs);
        self.layout.sections.push(OutputSection {
            name,
            segment,
            kind,
            flags,
            alignment,
            entry_size: 0,
            size,
            address: 0,
            offset: 0,
            body,
        });
        true
    }

    fn table(&mut self, table: Table, name: &'static str, kind: elf::SectionType, entry_size: u64, size: u64) {
        let (segment, extra_flags) = match table {
            Table::Plt => (Segment::Code, elf::SHF_EXECINSTR.0),
            Table::Dynamic | Table::Got => (Segment::RelRo, elf::SHF_WRITE.0),
            _ => (Segment::Read, 0),
        };
        let alignment = match table {
            Table::DynStr => 1,
            Table::EhFrameHdr => 4,
            Table::Plt => 16,
            _ => 8,
        };
        self.layout.sections.push(OutputSection {
            name: Cow::Borrowed(name),
            segment: Some(segment),
            kind,
            flags: elf::SectionFlags(elf::SHF_ALLOC.0 | extra_flags),
            alignment,
            entry_size,
            size,
            address: 0,
            offset: 0,
            body: SectionBody::Table(table),
        });
    }

    fn appended(&mut self) {
        for (index, section) in self.library.extra.iter().enumerate() {
            self.layout.sections.push(OutputSection {
                name: Cow::Owned(section.name().to_owned()),
                segment: Some(Segment::Extra),
                kind: elf::SHT_PROGBITS,
                flags: elf::SHF_ALLOC,
                alignment: section.alignment(),
                entry_size: 0,
                size: section.size(),
                address: 0,
                offset: 0,
                body: SectionBody::Extra(index),
            });
        }
    }
}

fn header_of(class: SectionClass) -> (elf::SectionType, elf::SectionFlags) {
    let (alloc, write, code) = (elf::SHF_ALLOC.0, elf::SHF_WRITE.0, elf::SHF_EXECINSTR.0);
    let (kind, flags) = match class {
        SectionClass::Rodata | SectionClass::EhFrame => (elf::SHT_PROGBITS, alloc),
        SectionClass::Text => (elf::SHT_PROGBITS, alloc | code),
        SectionClass::RelRo | SectionClass::Data => (elf::SHT_PROGBITS, alloc | write),
        SectionClass::InitArray => (elf::SHT_INIT_ARRAY, alloc | write),
        SectionClass::FiniArray => (elf::SHT_FINI_ARRAY, alloc | write),
        SectionClass::Bss => (elf::SHT_NOBITS, alloc | write),
        SectionClass::Debug => (elf::SHT_PROGBITS, 0),
    };
    (kind, elf::SectionFlags(flags))
}
