//! The instructions, and their forms on disk.
//!
//! An instruction on disk is a list of integers: a check, the opcode, its fields. [`Instruction::decode`] and
//! [`Instruction::encode`] are the one place that knows their order, which changed twice: 0.6 had no offsets of tensors and
//! a register for alignments; 0.14 gave `LoadConst` a device and `AllocStorage` a shape.

use relaxide_ffi::DataType;

use crate::executable::Form;

/// A register of a frame.
pub type Register = i64;

/// What a form has no fields for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoForm {
    /// Later forms give tensors offsets.
    #[error("a tensor without an offset, as in 0.6, has no form in {0}")]
    NoOffset(Form),
    /// The first form has none.
    #[error("0.6 has no offsets of tensors")]
    Offset,
    /// Later forms have alignments as numbers.
    #[error("an alignment in a register has no form in {0}")]
    AlignmentInRegister(Form),
    /// The first form has alignments in registers.
    #[error("0.6 keeps alignments in registers")]
    AlignmentAsNumber,
    /// Earlier forms have sizes only.
    #[error("a storage of a given shape has no form in {0}")]
    StorageOfShape(Form),
    /// Earlier forms let registers live on.
    #[error("KillRegister came with 0.9 and has no form in {0}")]
    KillRegister(Form),
}

/// How large a storage is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Size {
    /// So many bytes as the register holds.
    Register(Register),
    /// What a tensor of this shape takes.
    Shape(Vec<i64>),
}

/// How a storage is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alignment {
    /// To so many bytes.
    Bytes(i64),
    /// As the register says; only 0.6 has it.
    Register(Register),
}

/// One instruction. `dst` is the register that gets the result.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant says what its fields are, whose names are the document's")]
pub enum Instruction {
    /// Copies a reference.
    Move { from: Register, dst: Register },
    /// Returns to the caller.
    Ret { result: Register },
    /// Calls a function.
    Invoke { func: i64, dst: Register, args: Vec<Register> },
    /// Calls a closure; what it captured stands in front of the arguments.
    InvokeClosure { closure: Register, dst: Register, args: Vec<Register> },
    /// Calls a kernel; the last `outputs` arguments are written.
    InvokePacked { index: i64, outputs: i64, args: Vec<Register> },
    /// A tensor of a known shape in a storage. `offset` is a register, which 0.6 does not have.
    AllocTensor { storage: Register, offset: Option<Register>, shape: Vec<i64>, dtype: DataType, dst: Register },
    /// A tensor of a shape in a register.
    AllocTensorReg { storage: Register, offset: Option<Register>, shape: Register, dtype: DataType, dst: Register },
    /// A value of a data type, or a tuple (tag 0).
    AllocAdt { tag: i64, dst: Register, fields: Vec<Register> },
    /// A closure.
    AllocClosure { func: i64, dst: Register, free: Vec<Register> },
    /// A field of a value.
    GetField { object: Register, index: i64, dst: Register },
    /// Jumps by one of two distances.
    If { test: Register, target: Register, then: i64, other: i64 },
    /// A constant. Before 0.14 the device is not in the instruction.
    LoadConst { index: i64, device: i64, dst: Register },
    /// Jumps.
    Goto { offset: i64 },
    /// The tag of a value.
    GetTag { object: Register, dst: Register },
    /// An integer.
    LoadConsti { value: i64, dst: Register },
    /// Ends the program with an error.
    Fatal,
    /// Memory.
    AllocStorage { size: Size, alignment: Alignment, dtype: DataType, device: i64, dst: Register },
    /// The shape of a tensor.
    ShapeOf { tensor: Register, dst: Register },
    /// The same elements in another shape.
    ReshapeTensor { tensor: Register, shape: Register, dst: Register },
    /// A copy on another device.
    DeviceCopy { src: Register, src_device: i64, dst_device: i64, dst: Register },
    /// Forgets what a register holds.
    KillRegister { dst: Register },
}

/// The check in front of an instruction.
pub(crate) fn check_word(opcode: i64, fields: &[i64]) -> i64 {
    let mut key = opcode as u64;
    for field in fields {
        let mixed = (*field as u64).wrapping_add(0x9e37_79b9).wrapping_add(key << 6).wrapping_add(key >> 2);
        key ^= mixed;
    }
    key as i64
}

fn dtype_fields(dtype: DataType) -> [i64; 3] {
    // On disk a bool is an unsigned integer of one bit.
    match dtype.is_bool() {
        true => [1, 1, i64::from(dtype.lanes)],
        false => [i64::from(dtype.code), i64::from(dtype.bits), i64::from(dtype.lanes)],
    }
}

/// The fields of an instruction that is read, taken one by one.
struct Fields<'a> {
    rest: &'a [i64],
}

impl Fields<'_> {
    fn next(&mut self) -> Option<i64> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// All that follow, which must be so many.
    fn list(&mut self, count: i64) -> Option<Vec<i64>> {
        let list = std::mem::take(&mut self.rest);
        (i64::try_from(list.len()) == Ok(count)).then(|| list.to_vec())
    }

    fn dtype(&mut self) -> Option<DataType> {
        let (code, bits, lanes) = (self.next()?, self.next()?, self.next()?);
        Some(DataType {
            code: u8::try_from(code).ok()?,
            bits: u8::try_from(bits).ok()?,
            lanes: u16::try_from(lanes).ok()?,
        })
    }
}

impl Instruction {
    /// The instruction of an opcode and its fields; `None` where they do not fit each other.
    pub fn decode(form: Form, opcode: i64, fields: &[i64]) -> Option<Instruction> {
        let f = &mut Fields { rest: fields };
        let instruction = match opcode {
            0 => Instruction::Move { from: f.next()?, dst: f.next()? },
            1 => Instruction::Ret { result: f.next()? },
            2 => {
                let (func, count, dst) = (f.next()?, f.next()?, f.next()?);
                Instruction::Invoke { func, dst, args: f.list(count)? }
            }
            3 => {
                let (closure, count, dst) = (f.next()?, f.next()?, f.next()?);
                Instruction::InvokeClosure { closure, dst, args: f.list(count)? }
            }
            4 => {
                let (index, arity, outputs) = (f.next()?, f.next()?, f.next()?);
                Instruction::InvokePacked { index, outputs, args: f.list(arity)? }
            }
            5 => {
                let storage = f.next()?;
                let offset = if form.has_offsets() { Some(f.next()?) } else { None };
                let (dtype, ndim, dst) = (f.dtype()?, f.next()?, f.next()?);
                Instruction::AllocTensor { storage, offset, dtype, dst, shape: f.list(ndim)? }
            }
            6 => {
                let storage = f.next()?;
                let offset = if form.has_offsets() { Some(f.next()?) } else { None };
                let (shape, dtype, dst) = (f.next()?, f.dtype()?, f.next()?);
                Instruction::AllocTensorReg { storage, offset, shape, dtype, dst }
            }
            7 => {
                let (tag, count, dst) = (f.next()?, f.next()?, f.next()?);
                Instruction::AllocAdt { tag, dst, fields: f.list(count)? }
            }
            8 => {
                let (func, count, dst) = (f.next()?, f.next()?, f.next()?);
                Instruction::AllocClosure { func, dst, free: f.list(count)? }
            }
            9 => Instruction::GetField { object: f.next()?, index: f.next()?, dst: f.next()? },
            10 => Instruction::If { test: f.next()?, target: f.next()?, then: f.next()?, other: f.next()? },
            11 => {
                let index = f.next()?;
                let device = if form.has_constant_devices() { f.next()? } else { 0 };
                Instruction::LoadConst { index, device, dst: f.next()? }
            }
            12 => Instruction::Goto { offset: f.next()? },
            13 => Instruction::GetTag { object: f.next()?, dst: f.next()? },
            14 => Instruction::LoadConsti { value: f.next()?, dst: f.next()? },
            15 => Instruction::Fatal,
            16 => return Self::decode_storage(form, f),
            17 if form >= Form::V0_7 => Instruction::ShapeOf { tensor: f.next()?, dst: f.next()? },
            18 if form >= Form::V0_7 => {
                Instruction::ReshapeTensor { tensor: f.next()?, shape: f.next()?, dst: f.next()? }
            }
            19 if form >= Form::V0_7 => {
                let (src, src_device, dst_device, dst) = (f.next()?, f.next()?, f.next()?, f.next()?);
                Instruction::DeviceCopy { src, src_device, dst_device, dst }
            }
            20 if form >= Form::V0_9 => Instruction::KillRegister { dst: f.next()? },
            _ => return None,
        };
        f.rest.is_empty().then_some(instruction)
    }

    fn decode_storage(form: Form, f: &mut Fields<'_>) -> Option<Instruction> {
        let (size, alignment) = (f.next()?, f.next()?);
        let alignment = if form == Form::V0_6 { Alignment::Register(alignment) } else { Alignment::Bytes(alignment) };
        let dtype = f.dtype()?;
        // 0.6 had one device.
        let device = if form == Form::V0_6 { 0 } else { f.next()? };
        if !form.has_constant_devices() {
            let dst = f.next()?;
            let done = Instruction::AllocStorage { size: Size::Register(size), alignment, dtype, device, dst };
            return f.rest.is_empty().then_some(done);
        }
        let (ndim, dst) = (f.next()?, f.next()?);
        let shape = f.list(ndim)?;
        // With a shape, the field of the size holds what happened to lie there.
        let size = if ndim == 0 { Size::Register(size) } else { Size::Shape(shape) };
        Some(Instruction::AllocStorage { size, alignment, dtype, device, dst })
    }

    /// The opcode.
    pub fn opcode(&self) -> i64 {
        match self {
            Instruction::Move { .. } => 0,
            Instruction::Ret { .. } => 1,
            Instruction::Invoke { .. } => 2,
            Instruction::InvokeClosure { .. } => 3,
            Instruction::InvokePacked { .. } => 4,
            Instruction::AllocTensor { .. } => 5,
            Instruction::AllocTensorReg { .. } => 6,
            Instruction::AllocAdt { .. } => 7,
            Instruction::AllocClosure { .. } => 8,
            Instruction::GetField { .. } => 9,
            Instruction::If { .. } => 10,
            Instruction::LoadConst { .. } => 11,
            Instruction::Goto { .. } => 12,
            Instruction::GetTag { .. } => 13,
            Instruction::LoadConsti { .. } => 14,
            Instruction::Fatal => 15,
            Instruction::AllocStorage { .. } => 16,
            Instruction::ShapeOf { .. } => 17,
            Instruction::ReshapeTensor { .. } => 18,
            Instruction::DeviceCopy { .. } => 19,
            Instruction::KillRegister { .. } => 20,
        }
    }

    /// The fields in the order of a form; an error says what the form does not have.
    pub fn encode(&self, form: Form) -> Result<Vec<i64>, NoForm> {
        let counted = |first: i64, list: &[i64], dst: i64| {
            let mut fields = vec![first, list.len() as i64, dst];
            fields.extend(list);
            fields
        };
        let offset = |offset: &Option<Register>| match (offset, form.has_offsets()) {
            (Some(register), true) => Ok(vec![*register]),
            (None, false) => Ok(Vec::new()),
            (None, true) => Err(NoForm::NoOffset(form)),
            (Some(_), false) => Err(NoForm::Offset),
        };
        Ok(match self {
            Instruction::Move { from, dst } => vec![*from, *dst],
            Instruction::Ret { result } => vec![*result],
            Instruction::Invoke { func, dst, args } => counted(*func, args, *dst),
            Instruction::InvokeClosure { closure, dst, args } => counted(*closure, args, *dst),
            Instruction::InvokePacked { index, outputs, args } => counted(*index, args, *outputs),
            Instruction::AllocTensor { storage, offset: at, shape, dtype, dst } => {
                let head = [vec![*storage], offset(at)?, dtype_fields(*dtype).to_vec()].concat();
                [head, vec![shape.len() as i64, *dst], shape.clone()].concat()
            }
            Instruction::AllocTensorReg { storage, offset: at, shape, dtype, dst } => {
                [vec![*storage], offset(at)?, vec![*shape], dtype_fields(*dtype).to_vec(), vec![*dst]].concat()
            }
            Instruction::AllocAdt { tag, dst, fields } => counted(*tag, fields, *dst),
            Instruction::AllocClosure { func, dst, free } => counted(*func, free, *dst),
            Instruction::GetField { object, index, dst } => vec![*object, *index, *dst],
            Instruction::If { test, target, then, other } => vec![*test, *target, *then, *other],
            Instruction::LoadConst { index, device, dst } if form.has_constant_devices() => vec![*index, *device, *dst],
            Instruction::LoadConst { index, dst, .. } => vec![*index, *dst],
            Instruction::Goto { offset } => vec![*offset],
            Instruction::GetTag { object, dst } => vec![*object, *dst],
            Instruction::LoadConsti { value, dst } => vec![*value, *dst],
            Instruction::Fatal => Vec::new(),
            Instruction::AllocStorage { size, alignment, dtype, device, dst } => {
                encode_storage(form, size, *alignment, *dtype, *device, *dst)?
            }
            Instruction::ShapeOf { tensor, dst } => vec![*tensor, *dst],
            Instruction::ReshapeTensor { tensor, shape, dst } => vec![*tensor, *shape, *dst],
            Instruction::DeviceCopy { src, src_device, dst_device, dst } => vec![*src, *src_device, *dst_device, *dst],
            Instruction::KillRegister { .. } if form < Form::V0_9 => {
                return Err(NoForm::KillRegister(form));
            }
            Instruction::KillRegister { dst } => vec![*dst],
        })
    }

    /// The registers that it reads.
    pub fn reads(&self) -> Vec<Register> {
        match self {
            Instruction::Move { from, .. } => vec![*from],
            Instruction::Ret { result } => vec![*result],
            Instruction::Invoke { args, .. } | Instruction::InvokePacked { args, .. } => args.clone(),
            Instruction::InvokeClosure { closure, args, .. } => [&[*closure][..], args].concat(),
            Instruction::AllocTensor { storage, offset, .. } => std::iter::once(*storage).chain(*offset).collect(),
            Instruction::AllocTensorReg { storage, offset, shape, .. } => {
                std::iter::once(*storage).chain(*offset).chain([*shape]).collect()
            }
            Instruction::AllocAdt { fields, .. } => fields.clone(),
            Instruction::AllocClosure { free, .. } => free.clone(),
            Instruction::GetField { object, .. } | Instruction::GetTag { object, .. } => vec![*object],
            Instruction::If { test, target, .. } => vec![*test, *target],
            Instruction::AllocStorage { size, alignment, .. } => {
                let size = if let Size::Register(r) = size { Some(*r) } else { None };
                let alignment = if let Alignment::Register(r) = alignment { Some(*r) } else { None };
                size.into_iter().chain(alignment).collect()
            }
            Instruction::ShapeOf { tensor, .. } => vec![*tensor],
            Instruction::ReshapeTensor { tensor, shape, .. } => vec![*tensor, *shape],
            Instruction::DeviceCopy { src, .. } => vec![*src],
            Instruction::LoadConst { .. }
            | Instruction::LoadConsti { .. }
            | Instruction::Goto { .. }
            | Instruction::Fatal
            | Instruction::KillRegister { .. } => Vec::new(),
        }
    }

    /// The register that gets its result.
    pub fn writes(&self) -> Option<Register> {
        match self {
            Instruction::Move { dst, .. }
            | Instruction::Invoke { dst, .. }
            | Instruction::InvokeClosure { dst, .. }
            | Instruction::AllocTensor { dst, .. }
            | Instruction::AllocTensorReg { dst, .. }
            | Instruction::AllocAdt { dst, .. }
            | Instruction::AllocClosure { dst, .. }
            | Instruction::GetField { dst, .. }
            | Instruction::LoadConst { dst, .. }
            | Instruction::GetTag { dst, .. }
            | Instruction::LoadConsti { dst, .. }
            | Instruction::AllocStorage { dst, .. }
            | Instruction::ShapeOf { dst, .. }
            | Instruction::ReshapeTensor { dst, .. }
            | Instruction::DeviceCopy { dst, .. }
            | Instruction::KillRegister { dst } => Some(*dst),
            Instruction::Ret { .. }
            | Instruction::InvokePacked { .. }
            | Instruction::If { .. }
            | Instruction::Goto { .. }
            | Instruction::Fatal => None,
        }
    }
}

fn encode_storage(
    form: Form,
    size: &Size,
    alignment: Alignment,
    dtype: DataType,
    device: i64,
    dst: Register,
) -> Result<Vec<i64>, NoForm> {
    let alignment = match (alignment, form) {
        (Alignment::Register(register), Form::V0_6) => register,
        (Alignment::Bytes(bytes), form) if form != Form::V0_6 => bytes,
        (Alignment::Register(_), _) => return Err(NoForm::AlignmentInRegister(form)),
        (Alignment::Bytes(_), _) => return Err(NoForm::AlignmentAsNumber),
    };
    let head = |size: i64| [vec![size, alignment], dtype_fields(dtype).to_vec()].concat();
    match size {
        Size::Register(register) if form == Form::V0_6 => Ok([head(*register), vec![dst]].concat()),
        Size::Register(register) if !form.has_constant_devices() => Ok([head(*register), vec![device, dst]].concat()),
        Size::Register(register) => Ok([head(*register), vec![device, 0, dst]].concat()),
        Size::Shape(shape) if form.has_constant_devices() && !shape.is_empty() => {
            Ok([head(0), vec![device, shape.len() as i64, dst], shape.clone()].concat())
        }
        Size::Shape(_) => Err(NoForm::StorageOfShape(form)),
    }
}
