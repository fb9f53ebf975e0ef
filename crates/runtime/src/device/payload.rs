//! A module of kernels as bytes, as TVM 0.27 writes it: the format, what is known of each kernel, the code.
//!
//! ```text
//! text format | u64 n, n × (text key, kernel) | text code
//! kernel: text name | u64 n, n × type (4 bytes) | u64 n, n × text tag | u64 n, n × i32 extra
//! ```
//!
//! A text is its length in 64 bits, and its bytes. All counts are checked against the bytes that are left before anything is made room for.

use relaxide_ffi::DataType;

/// What is known of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// Its name in the code.
    pub name: String,
    /// The types of its parameters.
    pub types: Vec<DataType>,
    /// What comes behind the parameters in a call: extents of thread axes, and other things.
    pub tags: Vec<String>,
}

/// A module of kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// What the code is written in: `cl` for the source of OpenCL, `ptx`, `cubin`.
    pub format: String,
    /// The kernels by the names that they are called by.
    pub kernels: Vec<(String, Info)>,
    /// The code.
    pub code: Vec<u8>,
}

/// Why bytes are no module of kernels.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// The bytes end within something.
    #[error("it ends early")]
    Short,
    /// A list has more items than there are bytes for.
    #[error("it ends before {0} items")]
    Count(u64),
    /// A name is no text.
    #[error("a name is not UTF-8")]
    Name,
    /// A kernel takes what is not passed.
    #[error("an argument of {0} is a tensor map, and those are not passed here")]
    TensorMap(String),
    /// Something follows the code.
    #[error("{0} bytes are left at its end")]
    Rest(usize),
}

struct PayloadReader<'a>(&'a [u8]);

impl<'a> PayloadReader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], PayloadError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(PayloadError::Short)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u64, PayloadError> {
        let mut word = [0; 8];
        word.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(word))
    }

    /// A count of items that take so many bytes each, at least.
    fn count(&mut self, least: usize) -> Result<usize, PayloadError> {
        let count = self.number()?;
        let fits =
            usize::try_from(count).ok().filter(|count| count.checked_mul(least).is_some_and(|all| all <= self.0.len()));
        fits.ok_or(PayloadError::Count(count))
    }

    fn bytes(&mut self) -> Result<&'a [u8], PayloadError> {
        let length = self.count(1)?;
        self.take(length)
    }

    fn text(&mut self) -> Result<String, PayloadError> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| PayloadError::Name)
    }

    fn info(&mut self) -> Result<Info, PayloadError> {
        let name = self.text()?;
        let mut types = Vec::new();
        for _ in 0..self.count(4)? {
            let [code, bits, low, high] = *self.take(4)? else { return Err(PayloadError::Short) };
            types.push(DataType { code, bits, lanes: u16::from_le_bytes([low, high]) });
        }
        let tags = (0..self.count(8)?).map(|_| self.text()).collect::<Result<_, _>>()?;
        for _ in 0..self.count(4)? {
            if self.take(4)? != [0; 4] {
                return Err(PayloadError::TensorMap(name));
            }
        }
        Ok(Info { name, types, tags })
    }
}

impl Payload {
    /// Reads a module.
    pub fn read(bytes: &[u8]) -> Result<Payload, PayloadError> {
        let mut reader = PayloadReader(bytes);
        let format = reader.text()?;
        let kernels =
            (0..reader.count(8)?).map(|_| Ok((reader.text()?, reader.info()?))).collect::<Result<_, PayloadError>>()?;
        let code = reader.bytes()?.to_vec();
        if !reader.0.is_empty() {
            return Err(PayloadError::Rest(reader.0.len()));
        }
        Ok(Payload { format, kernels, code })
    }

    /// Its bytes, as [`read`](Self::read) reads them.
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let number = |out: &mut Vec<u8>, value: usize| out.extend((value as u64).to_le_bytes());
        let text = |out: &mut Vec<u8>, bytes: &[u8]| {
            number(out, bytes.len());
            out.extend(bytes);
        };
        text(&mut out, self.format.as_bytes());
        number(&mut out, self.kernels.len());
        for (key, info) in &self.kernels {
            text(&mut out, key.as_bytes());
            text(&mut out, info.name.as_bytes());
            number(&mut out, info.types.len());
            for dtype in &info.types {
                out.extend([dtype.code, dtype.bits]);
                out.extend(dtype.lanes.to_le_bytes());
            }
            number(&mut out, info.tags.len());
            info.tags.iter().for_each(|tag| text(&mut out, tag.as_bytes()));
            number(&mut out, info.types.len());
            out.extend(vec![0; 4 * info.types.len()]);
        }
        text(&mut out, &self.code);
        out
    }

    /// The source of a kernel: the part of the code that a line with its name introduces.
    pub fn source(&self, name: &str) -> Option<String> {
        let code = String::from_utf8_lossy(&self.code);
        let begins = |part: &&str| part.lines().next().is_some_and(|line| line.trim() == name);
        code.split("// Function:").skip(1).find(begins).map(|part| format!("// Function:{part}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Payload {
        let info = Info {
            name: "add_kernel".into(),
            types: vec![DataType::handle(), DataType::float(32)],
            tags: vec!["blockIdx.x".into(), "threadIdx.x".into()],
        };
        let code = b"// Function: add_kernel\nkernel 1\n// Function: mul_kernel\nkernel 2\n".to_vec();
        Payload { format: "cl".into(), kernels: vec![("add_kernel".into(), info)], code }
    }

    #[test]
    fn a_module_comes_back() {
        let payload = sample();
        assert_eq!(Payload::read(&payload.write()).unwrap(), payload);
        assert_eq!(payload.source("mul_kernel").unwrap(), "// Function: mul_kernel\nkernel 2\n");
        assert!(payload.source("kernel").is_none());
    }

    #[test]
    fn what_is_no_module_is_refused() {
        let bytes = sample().write();
        for end in 0..bytes.len() {
            assert!(Payload::read(&bytes[..end]).is_err(), "{end}");
        }
        // Whatever a byte becomes, reading ends, and nothing is made room for that is not there.
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut broken = bytes.clone();
                broken[at] = value;
                let _ = Payload::read(&broken);
            }
        }
        assert!(Payload::read(&[bytes, vec![0]].concat()).unwrap_err().to_string().contains("left at its end"));
    }
}
