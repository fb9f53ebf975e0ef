//! [`Writer`]: fields into bytes.

/// A packet that is being written. The length in front of it is filled in at the end.
#[derive(Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// A packet of that code, as far down in the conversation.
    pub fn packet(code: super::Code, depth: u16) -> Writer {
        let mut writer = Writer { bytes: Vec::with_capacity(64) };
        writer.u64(0);
        writer.i32(super::packet::code_word(code, depth));
        writer
    }

    /// An `u8`.
    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// An `u16`.
    pub fn u16(&mut self, value: u16) {
        self.raw(&value.to_le_bytes());
    }

    /// An `i32`.
    pub fn i32(&mut self, value: i32) {
        self.raw(&value.to_le_bytes());
    }

    /// An `u32`.
    pub fn u32(&mut self, value: u32) {
        self.raw(&value.to_le_bytes());
    }

    /// An `i64`.
    pub fn i64(&mut self, value: i64) {
        self.raw(&value.to_le_bytes());
    }

    /// An `u64`.
    pub fn u64(&mut self, value: u64) {
        self.raw(&value.to_le_bytes());
    }

    /// An `f64`.
    pub fn f64(&mut self, value: f64) {
        self.raw(&value.to_le_bytes());
    }

    /// The number of bytes, and the bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.u64(bytes.len() as u64);
        self.raw(bytes);
    }

    /// Bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The packet, with a payload of that many bytes to come behind it.
    pub fn finish(mut self, payload: u64) -> Vec<u8> {
        let length = (self.bytes.len() as u64 - 8) + payload;
        self.bytes[..8].copy_from_slice(&length.to_le_bytes());
        self.bytes
    }

    /// The bytes alone, where no packet was begun.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
