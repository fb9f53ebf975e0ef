//! Reads one relocatable object: the sections that a library keeps, their relocations, and the symbols.

use object::{
    LittleEndian, SectionIndex, elf,
    read::elf::{FileHeader, Rela as _, SectionHeader, SectionTable, Sym as _, SymbolTable},
};

use super::{
    error::ExportError,
    layout::{MAX_SIZE, SectionClass},
    library::Machine,
};

type Header = elf::FileHeader64<LittleEndian>;
const LE: LittleEndian = LittleEndian;

/// One object, parsed; borrowed from the caller's bytes.
#[derive(Debug)]
pub(super) struct InputObject<'a> {
    pub name: String,
    /// By ELF section index; `None` where the library does not keep the section.
    pub sections: Vec<Option<InputSection<'a>>>,
    /// By ELF symbol index.
    pub symbols: Vec<InputSymbol<'a>>,
}

/// A section that goes into the library.
#[derive(Debug)]
pub(super) struct InputSection<'a> {
    pub name: &'a str,
    pub class: SectionClass,
    pub alignment: u64,
    pub size: u64,
    /// Empty for zero-filled sections.
    pub data: &'a [u8],
    pub relocations: Vec<InputRelocation>,
}

/// One place to patch.
#[derive(Debug, Clone, Copy)]
pub(super) struct InputRelocation {
    pub offset: u64,
    pub kind: u32,
    pub symbol: usize,
    pub addend: i64,
}

/// An entry of the object's symbol table.
#[derive(Debug, Clone, Copy)]
pub(super) struct InputSymbol<'a> {
    pub name: &'a [u8],
    pub place: InputPlace,
    pub size: u64,
    pub kind: elf::SymbolType,
    pub binding: elf::SymbolBind,
    pub visibility: elf::SymbolVisibility,
}

/// Where an object says that a symbol is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InputPlace {
    Undefined,
    Absolute(u64),
    Section {
        index: usize,
        offset: u64,
    },
    /// In a section that the library drops, or not a place at all (file names).
    Dropped,
}

impl<'a> InputObject<'a> {
    pub fn parse(name: String, bytes: &'a [u8], machine: Machine) -> Result<Self, ExportError> {
        let header = Header::parse(bytes).map_err(|error| bad(&name, error))?;
        let header_machine = header.e_machine(LE);
        if header_machine != machine.elf() {
            return Err(ExportError::WrongMachine { object: name, found: header_machine.0, expected: machine });
        }
        if !header.is_little_endian() || header.e_type(LE) != elf::ET_REL {
            return Err(bad(&name, "not a little-endian relocatable object"));
        }
        let table = header.sections(LE, bytes).map_err(|error| bad(&name, error))?;
        let symbols = table.symbols(LE, bytes, elf::SHT_SYMTAB).map_err(|error| bad(&name, error))?;
        let mut sections = Vec::with_capacity(table.len());
        for section in table.iter() {
            sections.push(parse_section(&name, bytes, &table, section)?);
        }
        for section in table.iter() {
            attach_relocations(&name, bytes, section, symbols.len(), &mut sections)?;
        }
        let symbols = symbols
            .enumerate()
            .map(|(index, symbol)| parse_symbol(&name, &symbols, index, symbol, &sections))
            .collect::<Result<_, _>>()?;
        let mut object = Self { name, sections, symbols };
        object.drop_empty_sections();
        Ok(object)
    }

    /// Assemblers emit sections that stay empty; they are kept only where a named symbol marks a place in them.
    fn drop_empty_sections(&mut self) {
        let mut marked = vec![false; self.sections.len()];
        for symbol in self.symbols.iter().filter(|symbol| !symbol.name.is_empty()) {
            if let InputPlace::Section { index, .. } = symbol.place {
                marked[index] = true;
            }
        }
        for (section, marked) in self.sections.iter_mut().zip(marked) {
            if section.as_ref().is_some_and(|section| section.size == 0 && !marked) {
                *section = None;
            }
        }
        for symbol in &mut self.symbols {
            if matches!(symbol.place, InputPlace::Section { index, .. } if self.sections[index].is_none()) {
                symbol.place = InputPlace::Dropped;
            }
        }
    }

    pub fn section(&self, index: usize) -> Option<&InputSection<'a>> {
        self.sections.get(index)?.as_ref()
    }

    /// A printable name of a symbol, for errors; section symbols go by their section.
    pub fn symbol_name(&self, index: usize) -> String {
        match self.symbols.get(index) {
            Some(symbol) if !symbol.name.is_empty() => String::from_utf8_lossy(symbol.name).into_owned(),
            Some(InputSymbol { place: InputPlace::Section { index, .. }, .. }) => {
                self.section(*index).map_or_else(|| format!("section {index}"), |section| section.name.to_owned())
            }
            _ => format!("symbol {index}"),
        }
    }
}

fn parse_section<'a>(
    object: &str,
    bytes: &'a [u8],
    table: &SectionTable<'a, Header>,
    section: &'a elf::SectionHeader64<LittleEndian>,
) -> Result<Option<InputSection<'a>>, ExportError> {
    let name = table.section_name(LE, section).map_err(|error| bad(object, error))?;
    let name = std::str::from_utf8(name).map_err(|_| bad(object, "a section name is not UTF-8"))?;
    let class = SectionClass::of(name, section.sh_type(LE), section.sh_flags(LE)).map_err(|e| bad(object, e))?;
    let Some(class) = class else { return Ok(None) };
    let size = section.sh_size(LE);
    if size > MAX_SIZE {
        return Err(bad(object, format!("section `{name}` claims {size} bytes")));
    }
    let alignment = section.sh_addralign(LE).max(1);
    if !alignment.is_power_of_two() || alignment > 0x1000 {
        return Err(bad(object, format!("section `{name}` wants alignment {alignment}")));
    }
    let data = section.data(LE, bytes).map_err(|error| bad(object, error))?;
    Ok(Some(InputSection { name, class, alignment, size, data, relocations: Vec::new() }))
}

fn attach_relocations(
    object: &str,
    bytes: &[u8],
    section: &elf::SectionHeader64<LittleEndian>,
    symbol_count: usize,
    sections: &mut [Option<InputSection<'_>>],
) -> Result<(), ExportError> {
    let target = section.sh_info(LE) as usize;
    let Some(Some(patched)) = sections.get_mut(target) else { return Ok(()) };
    if section.sh_type(LE) == elf::SHT_REL {
        return Err(bad(object, "relocations without addends"));
    }
    let Some((relocations, _)) = section.rela(LE, bytes).map_err(|error| bad(object, error))? else { return Ok(()) };
    for relocation in relocations {
        let entry = InputRelocation {
            offset: relocation.r_offset(LE),
            kind: relocation.r_type(LE, false).0,
            symbol: relocation.r_sym(LE, false) as usize,
            addend: relocation.r_addend(LE),
        };
        if entry.symbol >= symbol_count {
            return Err(bad(object, format!("a relocation names symbol {} of {symbol_count}", entry.symbol)));
        }
        patched.relocations.push(entry);
    }
    Ok(())
}

fn parse_symbol<'a>(
    object: &str,
    table: &SymbolTable<'a, Header>,
    index: object::SymbolIndex,
    symbol: &'a elf::Sym64<LittleEndian>,
    sections: &[Option<InputSection<'_>>],
) -> Result<InputSymbol<'a>, ExportError> {
    let name = table.symbol_name(LE, symbol).map_err(|error| bad(object, error))?;
    let value = symbol.st_value(LE);
    let shown = || String::from_utf8_lossy(name).into_owned();
    let place = match symbol.st_shndx(LE) {
        elf::SHN_UNDEF => InputPlace::Undefined,
        elf::SHN_ABS if symbol.st_type() == elf::STT_FILE => InputPlace::Dropped,
        elf::SHN_ABS => InputPlace::Absolute(value),
        elf::SHN_COMMON => return Err(bad(object, format!("`{}` is a common symbol", shown()))),
        _ => match table.symbol_section(LE, symbol, index).map_err(|error| bad(object, error))? {
            Some(SectionIndex(index)) => match sections.get(index) {
                Some(Some(section)) if value > section.size => {
                    return Err(bad(object, format!("`{}` lies outside its section", shown())));
                }
                Some(Some(_)) => InputPlace::Section { index, offset: value },
                Some(None) => InputPlace::Dropped,
                None => return Err(bad(object, format!("`{}` names section {index}", shown()))),
            },
            None => return Err(bad(object, format!("`{}` has an unknown special section", shown()))),
        },
    };
    if symbol.st_type() == elf::STT_TLS {
        return Err(bad(object, format!("`{}` is thread-local", shown())));
    }
    if symbol.st_type() == elf::STT_GNU_IFUNC {
        return Err(bad(object, format!("`{}` is an indirect function", shown())));
    }
    Ok(InputSymbol {
        name,
        place,
        size: symbol.st_size(LE),
        kind: symbol.st_type(),
        binding: symbol.st_bind(),
        visibility: symbol.st_visibility(),
    })
}

fn bad(object: &str, reason: impl ToString) -> ExportError {
    ExportError::BadObject { object: object.to_owned(), reason: reason.to_string() }
}
