//! Writing the binary form. What [`read`](super::read::read) took in comes out byte for byte (in the newer form).

use relaxide_ffi::{Error, SavedBytes, Tensor};

use super::Executable;
use super::constant::{self, UnsupportedConstant};
use super::read::{MAGIC, VERSION};

/// The bytes of an executable, with its tensors as they are. Fails if a constant is of a kind that the format does not have.
pub fn write(executable: &Executable) -> Result<SavedBytes, UnsupportedConstant> {
    let mut out = Writer::default();
    out.u64(MAGIC);
    out.string(VERSION);

    out.count(executable.functions.len());
    for function in &executable.functions {
        out.i32(function.kind as i32);
        out.string(&function.name);
        for number in [function.start_instr, function.end_instr, function.num_args, function.register_file_size] {
            out.i64(number);
        }
        out.count(function.param_names.len());
        function.param_names.iter().for_each(|name| out.string(name));
    }

    out.count(executable.memory_scopes.len());
    for entry in &executable.memory_scopes {
        out.i64(entry.constant);
        out.string(&entry.scope);
    }

    out.count(executable.constants.len());
    for (index, value) in executable.constants.iter().enumerate() {
        constant::write(&mut out, index, value)?;
    }

    out.i64_list(&executable.instr_offset);
    out.i64_list(&executable.instr_data);
    out.bytes(&executable.trailer);
    Ok(out.0)
}

/// Bytes under construction.
#[derive(Default)]
pub struct Writer(pub SavedBytes);

impl Writer {
    /// Bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0.push(bytes);
    }

    /// A tensor's elements.
    pub fn tensor(&mut self, tensor: &Tensor) -> Result<(), Error> {
        self.0.push_tensor(tensor)
    }

    /// Four bytes.
    pub fn i32(&mut self, value: i32) {
        self.bytes(&value.to_le_bytes());
    }

    /// Eight bytes.
    pub fn i64(&mut self, value: i64) {
        self.bytes(&value.to_le_bytes());
    }

    /// Eight bytes, without a sign.
    pub fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    /// A length.
    pub fn count(&mut self, count: usize) {
        self.u64(count as u64);
    }

    /// A length and a text.
    pub fn string(&mut self, text: &str) {
        self.count(text.len());
        self.bytes(text.as_bytes());
    }

    /// A length and so many integers.
    pub fn i64_list(&mut self, values: &[i64]) {
        self.count(values.len());
        values.iter().for_each(|value| self.i64(*value));
    }
}
