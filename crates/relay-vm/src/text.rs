//! The disassembly and the statistics, in the words of the reference.

use std::fmt::Write;

use relaxide_ffi::DataType;

use crate::executable::{Constant, Executable, Form};
use crate::instruction::{Alignment, Instruction, NoForm, Size};

fn registers(list: &[i64], separator: &str) -> String {
    list.iter().map(|r| format!("${r}")).collect::<Vec<_>>().join(separator)
}

fn shape(dims: &[i64]) -> String {
    format!("[{}]", dims.iter().map(i64::to_string).collect::<Vec<_>>().join(", "))
}

/// An element type where a storage names it: a bool by its name.
fn hint(dtype: DataType) -> String {
    if dtype.code == DataType::UINT && dtype.bits == 1 { "bool".into() } else { dtype.to_string() }
}

/// An element type where a tensor names it: a bool as an integer of one bit.
fn element(dtype: DataType) -> String {
    if dtype.is_bool() { "uint1".into() } else { dtype.to_string() }
}

impl Instruction {
    /// In words.
    pub fn text(&self, form: Form) -> String {
        let offset = |offset: &Option<i64>| offset.map_or(String::new(), |r| format!(" ${r}"));
        match self {
            Instruction::Move { from, dst } => format!("move ${dst} ${from}"),
            Instruction::Ret { result } => format!("ret ${result}"),
            Instruction::Fatal => "fatal".into(),
            Instruction::InvokePacked { index, outputs, args } => {
                let inputs = args.len().saturating_sub(usize::try_from(*outputs).unwrap_or(0));
                let (ins, outs) = args.split_at(inputs.min(args.len()));
                format!(
                    "invoke_packed PackedFunc[{index}] (in: {}, out: {})",
                    registers(ins, ", "),
                    registers(outs, ", ")
                )
            }
            Instruction::AllocTensor { storage, offset: at, shape: dims, dtype, dst } => {
                format!("alloc_tensor ${dst} ${storage}{} {} {}", offset(at), shape(dims), element(*dtype))
            }
            Instruction::AllocTensorReg { storage, offset: at, shape, dtype, dst } => {
                format!("alloc_tensor_reg ${dst} ${storage}{} ${shape} {}", offset(at), element(*dtype))
            }
            Instruction::AllocAdt { tag, dst, fields } => {
                let list = if fields.is_empty() { "$".into() } else { registers(fields, ",") };
                format!("alloc_data ${dst} tag({tag}) [{list}]")
            }
            Instruction::AllocClosure { func, dst, free } => {
                format!("alloc_closure ${dst} VMFunc[{func}]({})", registers(free, ","))
            }
            Instruction::If { test, target, then, other } => format!("if ${test} ${target} {then} {other}"),
            Instruction::Invoke { func, dst, args } => {
                format!("invoke ${dst} VMFunc[{func}]({})", registers(args, ","))
            }
            Instruction::InvokeClosure { closure, dst, args } => {
                format!("invoke_closure ${dst} ${closure}({})", registers(args, ","))
            }
            Instruction::LoadConst { index, device, dst } if form.has_constant_devices() => {
                format!("load_const ${dst} Const[{index}] {device}")
            }
            Instruction::LoadConst { index, dst, .. } => format!("load_const ${dst} Const[{index}]"),
            Instruction::LoadConsti { value, dst } => format!("load_consti ${dst} {value}"),
            Instruction::GetField { object, index, dst } => format!("get_field ${dst} ${object}[{index}]"),
            Instruction::GetTag { object, dst } => format!("get_tag ${dst} ${object}"),
            Instruction::Goto { offset } => format!("goto {offset}"),
            Instruction::AllocStorage { size, alignment, dtype, device, dst } => {
                let alignment = match alignment {
                    Alignment::Bytes(bytes) => bytes.to_string(),
                    Alignment::Register(register) => format!("${register}"),
                };
                match size {
                    Size::Register(r) => format!("alloc_storage ${dst} ${r} {alignment} {} {device}", hint(*dtype)),
                    Size::Shape(dims) => format!("alloc_storage ${dst} {} {} {device}", shape(dims), hint(*dtype)),
                }
            }
            Instruction::ShapeOf { tensor, dst } => format!("shape_of ${dst} ${tensor}"),
            Instruction::ReshapeTensor { tensor, shape, dst } => format!("reshape_tensor ${dst} ${tensor} ${shape}"),
            Instruction::DeviceCopy { src, src_device, dst_device, dst } => {
                format!("device_copy ${dst} ${src} {dst_device} {src_device}")
            }
            Instruction::KillRegister { dst } => format!("kill_register ${dst}"),
        }
    }
}

impl Executable {
    /// The code of all functions in words.
    pub fn bytecode(&self) -> Result<String, NoForm> {
        let mut text = String::new();
        for (i, function) in self.functions.iter().enumerate() {
            let _ = writeln!(text, "VM Function[{i}]: {}({})", function.name, function.params.join(", "));
            let _ = writeln!(text, "# reg file size = {}", function.register_file_size);
            let _ = writeln!(text, "# instruction count = {}", function.instructions.len());
            let _ = writeln!(text, "opcode, fields # inst(text):");
            for (pc, instruction) in function.instructions.iter().enumerate() {
                let words = [vec![instruction.opcode()], instruction.encode(self.form)?].concat();
                let words: String = words.iter().map(|word| format!("{word} ")).collect();
                let _ = writeln!(text, "{pc:>2}: {words:<36}  # {}", instruction.text(self.form));
            }
            text.push('\n');
        }
        Ok(text)
    }

    /// A summary.
    pub fn stats(&self) -> String {
        let shapes: Vec<String> = self
            .constants
            .iter()
            .map(|constant| match constant {
                Constant::Immediate(tensor) if tensor.ndim() == 0 => "scalar".to_string(),
                Constant::Immediate(tensor) => shape(tensor.shape()),
                Constant::LateBound(name) => format!("late bound as {name}"),
            })
            .collect();
        let globals: Vec<String> =
            self.globals.iter().enumerate().map(|(i, name)| format!("(\"{name}\", {i})")).collect();
        let mut text = String::from("Relay VM executable statistics:\n");
        let _ = writeln!(text, "  Constant shapes (# {}): [{}]", shapes.len(), shapes.join(", "));
        let _ = writeln!(text, "  Globals (#{}): [{}]", globals.len(), globals.join(", "));
        let _ = writeln!(text, "  Primitive ops (#{}): [{}]", self.primitives.len(), self.primitives.join(", "));
        text
    }
}
