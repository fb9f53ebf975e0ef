//! Linking: plan what the dynamic linker will have to do, lay out, relocate.

use std::io;

use indexmap::{IndexMap, IndexSet};
use object::{elf, write::elf::Rel};

use super::{
    dynamic::DynamicTables,
    emit,
    error::ExportError,
    input::{InputObject, InputRelocation, InputSection},
    layout::{Layout, SectionBody, SectionClass, Table},
    library::{Machine, SharedLibrary},
    reloc::{self, Field, Form, patch},
    resolve::{Binding, SymbolLocation, Symbols},
};

/// What the objects' relocations need besides patched bytes.
#[derive(Debug, Default)]
pub(super) struct LinkPlan {
    /// The symbols that have a GOT entry, in the entries' order.
    pub got: IndexSet<Binding>,
    /// The imports that have a PLT entry, in the entries' order.
    pub plt: IndexSet<usize>,
    /// All relocations that the dynamic linker applies, and how many of them only add the load address.
    pub dynamic_relocations: u64,
    pub relative_relocations: u64,
}

/// Relocated bytes of each output section that holds inputs, and the relocations left to the dynamic linker.
#[derive(Debug, Default)]
pub(super) struct Image {
    pub sections: IndexMap<usize, Vec<u8>>,
    pub relocations: Vec<Rel>,
}

pub(super) fn link(library: &SharedLibrary<'_>, out: &mut dyn io::Write) -> Result<(), ExportError> {
    let symbols = Symbols::resolve(library)?;
    let plan = LinkPlan::new(library, &symbols)?;
    let tables = DynamicTables::new(library, &symbols)?;
    let layout = Layout::new(library, &plan, &tables)?;
    let image = Relocator { library, symbols: &symbols, plan: &plan, tables: &tables, layout: &layout }.image()?;
    emit::write(library, &symbols, &plan, &tables, &layout, &image, out)
}

impl LinkPlan {
    fn new(library: &SharedLibrary<'_>, symbols: &Symbols<'_>) -> Result<Self, ExportError> {
        let mut plan = Self::default();
        for (object_index, object) in library.objects.iter().enumerate() {
            for section in object.sections.iter().flatten() {
                for relocation in &section.relocations {
                    let binding = symbols.binding(object_index, relocation.symbol);
                    plan.add(library.machine, symbols, object, section, relocation, binding)?;
                }
            }
        }
        for slot in &plan.got {
            match slot {
                Binding::Imported(_) => plan.dynamic_relocations += 1,
                Binding::Defined(id) if !matches!(symbols.definitions[*id].place, SymbolLocation::Absolute(_)) => {
                    plan.dynamic_relocations += 1;
                    plan.relative_relocations += 1;
                }
                Binding::Defined(_) | Binding::Nothing => {}
            }
        }
        Ok(plan)
    }

    fn add(
        &mut self,
        machine: Machine,
        symbols: &Symbols<'_>,
        object: &InputObject<'_>,
        section: &InputSection<'_>,
        relocation: &InputRelocation,
        binding: Binding,
    ) -> Result<(), ExportError> {
        let refuse = |reason| refusal(object, section, relocation, reason);
        let (form, field) =
            reloc::recipe(machine, relocation.kind).ok_or_else(|| refuse("is of a kind that libraries do not hold"))?;
        if section.class == SectionClass::Debug {
            let plain = matches!(form, Form::Absolute | Form::None);
            return if plain { Ok(()) } else { Err(refuse("is not expected in debug information")) };
        }
        if binding == Binding::Nothing && form != Form::None {
            return Err(refuse("refers to nothing"));
        }
        if form.needs_got() {
            self.got.insert(binding);
            return Ok(());
        }
        match (form, binding) {
            (Form::None, _) => {}
            (Form::Call, Binding::Imported(import)) => {
                self.got.insert(binding);
                self.plt.insert(import);
            }
            (Form::Absolute, Binding::Defined(id))
                if matches!(symbols.definitions[id].place, SymbolLocation::Absolute(_)) => {}
            (Form::Absolute, _) => {
                if field != Field::Word64 {
                    return Err(refuse("needs code compiled as position-independent"));
                }
                if !section.class.is_writable() {
                    return Err(refuse("would patch read-only memory at load time"));
                }
                self.dynamic_relocations += 1;
                self.relative_relocations += u64::from(matches!(binding, Binding::Defined(_)));
            }
            (_, Binding::Imported(_)) => return Err(refuse("refers to an imported symbol directly")),
            (_, Binding::Defined(id)) if matches!(symbols.definitions[id].place, SymbolLocation::Absolute(_)) => {
                return Err(refuse("measures the distance to an absolute address"));
            }
            _ => {}
        }
        Ok(())
    }
}

struct Relocator<'a> {
    library: &'a SharedLibrary<'a>,
    symbols: &'a Symbols<'a>,
    plan: &'a LinkPlan,
    tables: &'a DynamicTables<'a>,
    layout: &'a Layout,
}

impl Relocator<'_> {
    fn image(&self) -> Result<Image, ExportError> {
        let mut image = Image::default();
        self.got_relocations(&mut image);
        for (output, section) in self.layout.sections.iter().enumerate() {
            let SectionBody::Inputs(inputs) = &section.body else { continue };
            if !section.occupies_file() {
                self.refuse_zero_filled_relocations(inputs)?;
                continue;
            }
            let size = usize::try_from(section.size).map_err(|_| ExportError::TooLarge("a section"))?;
            let mut bytes = vec![0; size];
            for &(object, index, offset) in inputs {
                let object_ref = &self.library.objects[object];
                let Some(input) = object_ref.section(index) else { continue };
                let start = offset as usize;
                let target = bytes.get_mut(start..start + input.data.len());
                let target = target.ok_or(ExportError::TooLarge("a section"))?;
                target.copy_from_slice(input.data);
                for relocation in &input.relocations {
                    let binding = self.symbols.binding(object, relocation.symbol);
                    let place = section.address + offset + relocation.offset;
                    self.apply(input, relocation, binding, place, target, &mut image.relocations)
                        .map_err(|reason| refusal(object_ref, input, relocation, reason))?;
                }
            }
            image.sections.insert(output, bytes);
        }
        // The dynamic linker handles a leading run of relative relocations in a tight loop.
        let relative = reloc::dynamic_relative(self.library.machine);
        image.relocations.sort_by_key(|item| (item.r_type != relative, item.r_sym, item.r_offset));
        Ok(image)
    }

    fn refuse_zero_filled_relocations(&self, inputs: &[(usize, usize, u64)]) -> Result<(), ExportError> {
        for &(object, index, _) in inputs {
            let object = &self.library.objects[object];
            let Some(section) = object.section(index) else { continue };
            if let Some(relocation) = section.relocations.first() {
                return Err(refusal(object, section, relocation, "patches a zero-filled section"));
            }
        }
        Ok(())
    }

    fn got_relocations(&self, image: &mut Image) {
        let machine = self.library.machine;
        for (slot, binding) in self.plan.got.iter().enumerate() {
            let r_offset = self.layout.table_address(Table::Got) + 8 * slot as u64;
            match *binding {
                Binding::Imported(import) => image.relocations.push(Rel {
                    r_offset,
                    r_sym: self.tables.import_index(import),
                    r_type: reloc::dynamic_got(machine),
                    r_addend: 0,
                }),
                Binding::Defined(id) => {
                    let definition = &self.symbols.definitions[id];
                    if !matches!(definition.place, SymbolLocation::Absolute(_)) {
                        let address = self.layout.address(definition) as i64;
                        image.relocations.push(relative(machine, r_offset, address));
                    }
                }
                Binding::Nothing => {}
            }
        }
    }

    fn apply(
        &self,
        section: &InputSection<'_>,
        relocation: &InputRelocation,
        binding: Binding,
        place: u64,
        bytes: &mut [u8],
        dynamic: &mut Vec<Rel>,
    ) -> Result<(), &'static str> {
        let machine = self.library.machine;
        let (form, field) = reloc::recipe(machine, relocation.kind).ok_or("is unknown")?;
        let symbol = self.symbol_address(form, binding);
        let target = symbol.wrapping_add_signed(relocation.addend);
        let page = |address: u64| address & !0xfff;
        let loaded = section.class != SectionClass::Debug;
        let value = match form {
            Form::None => return Ok(()),
            Form::Absolute if loaded => match binding {
                Binding::Imported(import) => {
                    dynamic.push(Rel {
                        r_offset: place,
                        r_sym: self.tables.import_index(import),
                        r_type: reloc::dynamic_address(machine),
                        r_addend: relocation.addend,
                    });
                    0
                }
                Binding::Defined(id) if !matches!(self.symbols.definitions[id].place, SymbolLocation::Absolute(_)) => {
                    dynamic.push(relative(machine, place, target as i64));
                    target
                }
                _ => target,
            },
            Form::Absolute => target,
            Form::Relative | Form::Call | Form::Got => target.wrapping_sub(place),
            Form::Page | Form::GotPage => page(target).wrapping_sub(page(place)),
            Form::PageOffset | Form::GotPageOffset => target & 0xfff,
        };
        patch(field, bytes, relocation.offset, value as i64).map_err(reloc::PatchError::reason)
    }

    /// `S`, or the entry that stands for it.
    fn symbol_address(&self, form: Form, binding: Binding) -> u64 {
        if form.needs_got() {
            return self.got_entry(binding);
        }
        match binding {
            Binding::Defined(id) => self.layout.address(&self.symbols.definitions[id]),
            Binding::Imported(import) if form == Form::Call => {
                let index = self.plan.plt.get_index_of(&import).unwrap_or(0) as u64;
                self.layout.table_address(Table::Plt) + 16 * index
            }
            Binding::Imported(_) | Binding::Nothing => 0,
        }
    }

    fn got_entry(&self, binding: Binding) -> u64 {
        let index = self.plan.got.get_index_of(&binding).unwrap_or(0) as u64;
        self.layout.table_address(Table::Got) + 8 * index
    }
}

fn relative(machine: Machine, r_offset: u64, r_addend: i64) -> Rel {
    Rel { r_offset, r_sym: 0, r_type: reloc::dynamic_relative(machine), r_addend }
}

fn refusal(
    object: &InputObject<'_>,
    section: &InputSection<'_>,
    relocation: &InputRelocation,
    reason: &'static str,
) -> ExportError {
    ExportError::Relocation {
        object: object.name.clone(),
        section: section.name.to_owned(),
        kind: relocation.kind,
        symbol: object.symbol_name(relocation.symbol),
        reason,
    }
}

/// The bytes of the GOT before relocation: the values of absolute symbols and the link-time addresses of the others.
pub(super) fn got_bytes(symbols: &Symbols<'_>, plan: &LinkPlan, layout: &Layout) -> Vec<u8> {
    let value = |binding: &Binding| match binding {
        Binding::Defined(id) => layout.address(&symbols.definitions[*id]),
        Binding::Imported(_) | Binding::Nothing => 0,
    };
    plan.got.iter().flat_map(|binding| value(binding).to_le_bytes()).collect()
}

/// The PLT's code.
pub(super) fn plt_bytes(machine: Machine, plan: &LinkPlan, layout: &Layout) -> Result<Vec<u8>, ExportError> {
    let (plt, got) = (layout.table_address(Table::Plt), layout.table_address(Table::Got));
    let mut bytes = Vec::new();
    for (index, import) in plan.plt.iter().enumerate() {
        let slot = plan.got.get_index_of(&Binding::Imported(*import)).unwrap_or(0) as u64;
        let (entry, slot) = (plt + 16 * index as u64, got + 8 * slot);
        let code = match machine {
            Machine::X86_64 => reloc::plt_entry_x86_64(entry, slot),
            Machine::Aarch64 => reloc::plt_entry_aarch64(entry, slot),
        };
        bytes.extend(code.map_err(|_| ExportError::TooLarge("the code lies too far from its tables"))?);
    }
    Ok(bytes)
}

/// The `.eh_frame_hdr` that tells unwinders where the frames are, without a search table.
pub(super) fn eh_frame_header(layout: &Layout) -> Vec<u8> {
    const VERSION: u8 = 1;
    const PC_RELATIVE_SIGNED_4: u8 = 0x1b;
    const OMITTED: u8 = 0xff;
    let header = layout.table_address(Table::EhFrameHdr);
    let frames = layout.sections.iter().find(|section| section.name == ".eh_frame").map_or(0, |frames| frames.address);
    let mut bytes = vec![VERSION, PC_RELATIVE_SIGNED_4, OMITTED, OMITTED];
    // Both lie in the read-only segment, whose parts the relocations of code already keep within reach.
    bytes.extend((frames.wrapping_sub(header + 4) as i32).to_le_bytes());
    bytes
}

/// The binding that a symbol table entry carries: what is not exported has become local to the library.
pub(super) fn symbol_binding(exported: bool, binding: elf::SymbolBind) -> elf::SymbolBind {
    if exported { binding } else { elf::STB_LOCAL }
}
