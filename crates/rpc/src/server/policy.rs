//! [`Policy`]: what a session may do.
//!
//! TVM's protocol knows no one, so its sessions may do all ([`Policy::open`]). A session of ours has what its key was given. A name that
//! is not admitted gives an error that says so, and a line in the audit log.

use std::sync::Arc;

use relaxide_ffi::{Device, Error};

/// The kind of error of what is not admitted.
pub const PERMISSION_ERROR: &str = "PermissionError";

/// Functions that every session may ask for: they reach what the session was given otherwise, and no more.
const HARMLESS: &[&str] = &[
    "tvm.rpc.server.ModuleGetFunction",
    "tvm.rpc.server.GetCRTMaxPacketSize",
    "tvm.rpc.server.target",
    "runtime.RPCTimeEvaluator",
    "runtime.profiling.AsTable",
    "runtime.profiling.AsCSV",
    "runtime.profiling.AsJSON",
    "runtime.profiling.AsChromeTrace",
    "rpc.testing.GetShapeSize",
    "rpc.testing.GetShapeElem",
    "cache_flush_cpu_non_first_arg",
];
/// Functions that change files.
const FILES: &[&str] = &[
    "tvm.rpc.server.upload",
    "tvm.rpc.server.download",
    "tvm.rpc.server.remove",
    "tvm.rpc.server.listdir",
    "tvm.rpc.server.workpath",
];
/// Functions that load code.
const CODE: &[&str] =
    &["tvm.rpc.server.load_module", "tvm.rpc.server.download_linked_module", "tvm.rpc.server.ImportModule"];

/// Where what is not admitted, and what changes something, is written down.
pub type Audit = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// What a session may do.
#[derive(Clone, Default)]
pub struct Policy {
    /// Everything, whatever the rest says.
    pub everything: bool,
    /// The global functions that may be called: names, or beginnings of names followed by `*`.
    pub functions: Vec<String>,
    /// Whether files may be written and read in the session's folder.
    pub files: bool,
    /// Whether code may be loaded.
    pub code: bool,
    /// Whether sessions may be made that lead on to others.
    pub connect: bool,
    /// The devices that may be used; none said: the CPU.
    pub devices: Vec<Device>,
    /// How many bytes may be allocated.
    pub memory: Option<u64>,
    /// The log.
    pub audit: Option<Audit>,
}

impl std::fmt::Debug for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Policy({})", self.to_text())
    }
}

impl Policy {
    /// All may be done.
    pub fn open() -> Policy {
        Policy { everything: true, ..Policy::default() }
    }

    fn log(&self, what: &str, name: &str) {
        if let Some(audit) = &self.audit {
            audit(what, name);
        }
    }

    fn refuse(&self, what: String, name: &str) -> Error {
        self.log("refused", name);
        Error::new(PERMISSION_ERROR, what)
    }

    /// Whether a global function may be had.
    pub fn admits_function(&self, name: &str) -> Result<(), Error> {
        let named = || self.functions.iter().any(|pattern| matches(pattern, name));
        let lacks = if self.everything || HARMLESS.contains(&name) {
            None
        } else if FILES.contains(&name) {
            (!self.files).then_some("files")
        } else if CODE.contains(&name) {
            (!self.code).then_some("load")
        } else {
            (!named()).then_some("call=NAME")
        };
        match lacks {
            Some(capability) => Err(self.refuse(
                format!("this key may not use {name}: it lacks the capability `{capability}` on the server"),
                name,
            )),
            None => {
                self.log("function", name);
                Ok(())
            }
        }
    }

    /// Whether a session may be made by that constructor.
    pub fn admits_constructor(&self, name: &str) -> Result<(), Error> {
        match self.everything || self.connect {
            true => Ok(()),
            false => Err(self.refuse(
                format!("this key may not lead on by {name}: it lacks the capability `connect` on the server"),
                name,
            )),
        }
    }

    /// Whether a device may be used.
    pub fn admits_device(&self, device: Device) -> Result<(), Error> {
        let admitted = self.everything
            || self.devices.contains(&device)
            || (self.devices.is_empty() && device.device_type == Device::CPU);
        match admitted {
            true => Ok(()),
            false => Err(self.refuse(
                format!("this key may not use {device}: it lacks the capability `devices={device}` on the server"),
                &device.to_string(),
            )),
        }
    }

    /// The capabilities as words, as they stand in a file of keys and are handed to a child.
    pub fn to_text(&self) -> String {
        let mut words: Vec<String> = Vec::new();
        let flags =
            [(self.everything, "everything"), (self.files, "files"), (self.code, "load"), (self.connect, "connect")];
        words.extend(flags.iter().filter(|(set, _)| *set).map(|(_, word)| (*word).to_owned()));
        words.extend(self.functions.iter().map(|name| format!("call={name}")));
        words.extend(self.devices.iter().map(|device| format!("devices={device}")));
        words.extend(self.memory.map(|bytes| format!("memory={bytes}")));
        words.join(" ")
    }

    /// Reads one word of [`to_text`](Self::to_text) into the policy; false if it is none.
    pub fn read_word(&mut self, word: &str) -> Result<bool, RightError> {
        match word.split_once('=') {
            None => match word {
                "everything" => self.everything = true,
                "files" => self.files = true,
                "load" => self.code = true,
                "connect" => self.connect = true,
                _ => return Ok(false),
            },
            Some(("call", names)) => self.functions.extend(names.split(',').map(str::to_owned)),
            Some(("devices", names)) => {
                for name in names.split(',') {
                    let device = name.parse().map_err(|error: Error| RightError::Device(error.message().to_owned()))?;
                    self.devices.push(device);
                }
            }
            Some(("memory", size)) => self.memory = Some(bytes(size)?),
            Some(_) => return Ok(false),
        }
        Ok(true)
    }
}

/// What a word of a key's capabilities and limits does not say.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RightError {
    /// A limit that is no number.
    #[error("{0}: expected a number")]
    Number(String),
    /// A word that says nothing.
    #[error(
        "{0} is no capability; there are files, load, connect, everything, call=NAMES, devices=NAMES, memory=BYTES, \
         sessions=N and time=SECONDS"
    )]
    Unknown(String),
    /// A device that there is not.
    #[error("{0}")]
    Device(String),
    /// A size that is no number of bytes.
    #[error("{0:?} is no number of bytes; write it like 1048576, 512M or 2G")]
    Bytes(String),
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => pattern == name,
    }
}

/// A number of bytes: `1048576`, `512M`, `2G`.
pub fn bytes(text: &str) -> Result<u64, RightError> {
    let wrong = || RightError::Bytes(text.to_owned());
    let (digits, factor) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1 << 10),
        Some((at, 'm' | 'M')) => (&text[..at], 1 << 20),
        Some((at, 'g' | 'G')) => (&text[..at], 1 << 30),
        _ => (text, 1_u64),
    };
    digits.parse::<u64>().ok().and_then(|count| count.checked_mul(factor)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(text: &str) -> Policy {
        let mut policy = Policy::default();
        for word in text.split_whitespace() {
            assert_eq!(policy.read_word(word), Ok(true), "{word}");
        }
        policy
    }

    #[test]
    fn what_is_not_named_is_refused() {
        let none = policy("");
        for name in
            ["tvm.rpc.server.upload", "tvm.rpc.server.load_module", "ffi.Module.load_from_file.so", "rpc.Connect"]
        {
            let error = none.admits_function(name).unwrap_err();
            assert!(error.kind() == PERMISSION_ERROR && error.message().contains(name), "{error}");
        }
        assert!(none.admits_function("runtime.RPCTimeEvaluator").is_ok());
        assert!(none.admits_device(Device::cpu(3)).is_ok() && none.admits_device(Device::new(2, 0)).is_err());
        assert!(none.admits_constructor("rpc.Connect").is_err());
        let some = policy("files call=my.*,other devices=opencl:1");
        assert!(some.admits_function("tvm.rpc.server.upload").is_ok());
        assert!(some.admits_function("my.function").is_ok() && some.admits_function("others").is_err());
        assert!(some.admits_device(Device::new(4, 1)).is_ok() && some.admits_device(Device::cpu(0)).is_err());
        assert!(Policy::open().admits_function("anything").is_ok());
    }

    #[test]
    fn a_policy_reads_what_it_writes() {
        for text in ["everything", "files load connect call=a.* call=b devices=cpu:0 devices=cuda:1 memory=1048576", ""]
        {
            assert_eq!(policy(text).to_text(), text);
        }
        assert_eq!(bytes("2G"), Ok(2 << 30));
        assert!(bytes("2T").is_err() && bytes("").is_err() && bytes("99999999999G").is_err());
    }
}
