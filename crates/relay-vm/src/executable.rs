//! The executable: functions, constants, names of kernels, devices.

use std::fmt;

use relaxide_ffi::Tensor;

use crate::Instruction;

/// The forms on disk, each with the releases that wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Form {
    /// 0.6
    V0_6,
    /// 0.7: offsets, devices by kind, instructions 17 to 19.
    V0_7,
    /// 0.8: attributes of kernels.
    V0_8,
    /// 0.9 to 0.13: virtual devices, constants that are bound later, `KillRegister`.
    V0_9,
    /// 0.14 to 0.19: devices in `LoadConst`, shapes in `AllocStorage`.
    #[default]
    V0_14,
}

impl Form {
    /// The form of a release, as the file's version text names it.
    pub fn of_version(version: &str) -> Option<Form> {
        let mut parts = version.split('.');
        let (major, minor) = (parts.next()?, parts.next()?);
        let digits: String = minor.chars().take_while(char::is_ascii_digit).collect();
        match (major, digits.parse::<u32>().ok()?) {
            ("0", 6) => Some(Form::V0_6),
            ("0", 7) => Some(Form::V0_7),
            ("0", 8) => Some(Form::V0_8),
            ("0", 9..=13) => Some(Form::V0_9),
            ("0", 14..=19) => Some(Form::V0_14),
            _ => None,
        }
    }

    /// The version that is written where the program does not say another.
    pub fn default_version(self) -> &'static str {
        match self {
            Form::V0_6 => "0.6.0",
            Form::V0_7 => "0.7.0",
            Form::V0_8 => "0.8.0",
            Form::V0_9 => "0.9.0",
            Form::V0_14 => "0.16.0",
        }
    }

    /// Whether tensors have offsets in their storage.
    pub fn has_offsets(self) -> bool {
        self >= Form::V0_7
    }

    /// Whether `LoadConst` names a device and `AllocStorage` may have a shape.
    pub fn has_constant_devices(self) -> bool {
        self >= Form::V0_14
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Form::V0_6 => "0.6",
            Form::V0_7 => "0.7",
            Form::V0_8 => "0.8",
            Form::V0_9 => "0.9 to 0.13",
            Form::V0_14 => "0.14 to 0.19",
        })
    }
}

/// A device that a program names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualDevice {
    /// The kind, as DLPack numbers it.
    pub device_type: i32,
    /// Which of several.
    pub device_id: i32,
    /// The memory.
    pub scope: String,
}

impl VirtualDevice {
    /// The host.
    pub fn cpu() -> VirtualDevice {
        VirtualDevice { device_type: 1, device_id: 0, scope: String::new() }
    }
}

/// A constant.
#[derive(Clone, Debug)]
pub enum Constant {
    /// A tensor.
    Immediate(Tensor),
    /// A tensor that is given by this name when the program is loaded.
    LateBound(String),
}

/// A function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VmFunction {
    /// The name.
    pub name: String,
    /// Names of the parameters, which come in the first registers.
    pub params: Vec<String>,
    /// How many registers it has.
    pub register_file_size: i64,
    /// The code.
    pub instructions: Vec<Instruction>,
    /// The devices of the parameters.
    pub param_devices: Vec<i64>,
}

/// What is said of a kernel: name and value, in order.
pub type OpAttrs = Vec<(String, String)>;

/// A program.
#[derive(Clone, Debug)]
pub struct Executable {
    /// The form that it was read in or is made for.
    pub form: Form,
    /// The version text of the file.
    pub version: String,
    /// The devices that it names.
    pub virtual_devices: Vec<VirtualDevice>,
    /// Which of them is the host.
    pub host_device: i32,
    /// The functions' names, by index.
    pub globals: Vec<String>,
    /// The constants.
    pub constants: Vec<Constant>,
    /// The devices of the constants.
    pub constant_devices: Vec<i64>,
    /// The kernels' names, by index.
    pub primitives: Vec<String>,
    /// What is said of kernels, by index.
    pub op_attrs: Vec<(u64, OpAttrs)>,
    /// The functions.
    pub functions: Vec<VmFunction>,
    /// What rides behind the code, where the reference's loader does not look: nothing, or what begins with
    /// [`TRAILER_MAGIC`](relaxide_vm::executable::TRAILER_MAGIC).
    pub trailer: Vec<u8>,
}

impl Default for Executable {
    fn default() -> Self {
        let form = Form::default();
        Executable {
            form,
            version: form.default_version().into(),
            virtual_devices: vec![VirtualDevice::cpu()],
            host_device: 0,
            globals: Vec::new(),
            constants: Vec::new(),
            constant_devices: Vec::new(),
            primitives: Vec::new(),
            op_attrs: Vec::new(),
            functions: Vec::new(),
            trailer: Vec::new(),
        }
    }
}

impl Executable {
    /// The index of a function.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.globals.iter().position(|global| global == name)
    }

    /// The same program to be written in another form.
    pub fn in_form(&self, form: Form) -> Executable {
        Executable { form, version: form.default_version().into(), ..self.clone() }
    }
}
