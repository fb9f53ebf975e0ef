//! The header of a safetensors file: which tensors there are, and where.

use std::collections::HashMap;
use std::ops::Range;

use relaxide_ffi::{Any, Array, DataType, Map, json};

/// The longest header that is read: that of the format's own library.
const MAX_HEADER: u64 = 100_000_000;

/// The entry that is no tensor.
const METADATA: &str = "__metadata__";

/// The types of elements, by the names that the format has for them.
const DTYPES: &[(&str, DataType)] = &[
    ("BOOL", DataType::bool()),
    ("U8", DataType::uint(8)),
    ("I8", DataType::int(8)),
    ("U16", DataType::uint(16)),
    ("I16", DataType::int(16)),
    ("F16", DataType::float(16)),
    ("BF16", DataType::bfloat16()),
    ("U32", DataType::uint(32)),
    ("I32", DataType::int(32)),
    ("F32", DataType::float(32)),
    ("U64", DataType::uint(64)),
    ("I64", DataType::int(64)),
    ("F64", DataType::float(64)),
];

/// What the format calls an element type; `None` where it has none.
pub fn format_dtype(dtype: DataType) -> Option<&'static str> {
    DTYPES.iter().find(|(_, known)| *known == dtype).map(|(name, _)| *name)
}

/// A tensor of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What the format calls the type of its elements.
    pub dtype: String,
    /// Its dimensions.
    pub shape: Vec<i64>,
    /// Where its bytes are in the file.
    pub range: Range<usize>,
}

impl Entry {
    /// The type of its elements.
    pub fn element(&self) -> DataType {
        // Entries have types of the table only.
        DTYPES.iter().find(|(name, _)| *name == self.dtype).map_or_else(|| DataType::uint(8), |(_, dtype)| *dtype)
    }
}

/// The tensors of a file by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    entries: HashMap<String, Entry>,
}

impl Header {
    /// The tensor of a name.
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.entries.get(name)
    }

    /// How many tensors there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The tensors with their names, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries.iter().map(|(name, entry)| (name.as_str(), entry))
    }
}

/// Why bytes are no safetensors file. The file is damaged, cut off, or something else.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The file ends too early.
    #[error("the file is cut off: it has {length} bytes of at least {needed}")]
    Truncated {
        /// Bytes that it takes.
        needed: u64,
        /// Bytes that there are.
        length: u64,
    },
    /// The claimed length of the header is absurd.
    #[error("its header would be {0} bytes long: this is no safetensors file")]
    Length(u64),
    /// The header is not the JSON of one.
    #[error("its header is not that of a safetensors file: {0}")]
    Json(String),
    /// What it says about a tensor does not make sense.
    #[error("tensor {name:?} {why}")]
    Tensor {
        /// Which.
        name: String,
        /// What is wrong.
        why: EntryError,
    },
    /// Bytes of the file belong to no tensor, or to several.
    #[error("its tensors take bytes {expected} on, but tensor {name:?} begins at {begin}")]
    Order {
        /// The tensor.
        name: String,
        /// Where the one before ends.
        expected: u64,
        /// Where it begins.
        begin: u64,
    },
    /// There is more in the file than tensors.
    #[error("it has {0} bytes behind its tensors")]
    Rest(u64),
}

/// What the header says of a tensor that does not make sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// It is no object.
    #[error("is no object")]
    NoObject,
    /// A field is missing.
    #[error("has no field {0:?}")]
    Missing(&'static str),
    /// A field is of another kind.
    #[error("has something else than {wanted} as {field:?}")]
    Kind {
        /// The field.
        field: &'static str,
        /// What it is to be.
        wanted: &'static str,
    },
    /// A list holds something else than numbers from zero on.
    #[error("has something else than natural numbers in {0:?}")]
    Numbers(&'static str),
    /// The format has no such type.
    #[error("is of type {0:?}")]
    Type(String),
    /// It does not say where its bytes begin and end.
    #[error("has other than two offsets")]
    Offsets,
    /// Its bytes are not as many as type and shape say.
    #[error("of {dtype} and shape {shape:?} has the bytes from {begin} to {end}")]
    Length {
        /// The type.
        dtype: String,
        /// The dimensions.
        shape: Vec<i64>,
        /// Where its bytes begin.
        begin: u64,
        /// Where they end.
        end: u64,
    },
}

/// Reads the header of a file. Every range that it gives lies inside of `bytes`, is as long as type and shape say, and
/// overlaps no other.
pub fn read_header(bytes: &[u8]) -> Result<Header, HeaderError> {
    let length = bytes.len() as u64;
    let (size, rest) = bytes.split_first_chunk::<8>().ok_or(HeaderError::Truncated { needed: 8, length })?;
    let size = u64::from_le_bytes(*size);
    if size > MAX_HEADER {
        return Err(HeaderError::Length(size));
    }
    let cut_off = HeaderError::Truncated { needed: size + 8, length };
    // The length is far below the limit of an address.
    let (text, data) = rest.split_at_checked(size as usize).ok_or(cut_off)?;
    let text = std::str::from_utf8(text).map_err(|_| HeaderError::Json("it is not UTF-8".into()))?;
    let text = text.trim_end_matches(' ');
    let content = json::parse(text).map_err(|error| HeaderError::Json(error.message().to_string()))?;
    let content: Map = content.to().map_err(|_| HeaderError::Json("it is no object".into()))?;
    let mut entries = Vec::new();
    for (name, value) in content.iter() {
        let name: String = name.to().map_err(|_| HeaderError::Json("a name is no text".into()))?;
        if name != METADATA {
            let entry = entry(value).map_err(|why| HeaderError::Tensor { name: name.clone(), why })?;
            entries.push((name, entry));
        }
    }
    entries.sort_by_key(|(_, entry)| (entry.begin, entry.end));
    let mut at = 0;
    for (name, entry) in &entries {
        if entry.begin != at {
            return Err(HeaderError::Order { name: name.clone(), expected: at, begin: entry.begin });
        }
        at = entry.end;
    }
    let start = size + 8;
    // Offsets are below 2^63, and so is their sum with the header's length.
    if at > data.len() as u64 {
        return Err(HeaderError::Truncated { needed: start.saturating_add(at), length });
    }
    if at < data.len() as u64 {
        return Err(HeaderError::Rest(data.len() as u64 - at));
    }
    let place = |entry: Claimed| Entry {
        dtype: entry.dtype,
        shape: entry.shape,
        range: (start + entry.begin) as usize..(start + entry.end) as usize,
    };
    Ok(Header { entries: entries.into_iter().map(|(name, entry)| (name, place(entry))).collect() })
}

/// What the header says of a tensor, with offsets behind the header.
struct Claimed {
    dtype: String,
    shape: Vec<i64>,
    begin: u64,
    end: u64,
}

fn entry(value: &Any) -> Result<Claimed, EntryError> {
    let fields: Map = value.to().map_err(|_| EntryError::NoObject)?;
    let field = |name: &'static str| fields.get(name).ok_or(EntryError::Missing(name));
    let wrong = |field, wanted| EntryError::Kind { field, wanted };
    let numbers = |name: &'static str| -> Result<Vec<i64>, EntryError> {
        let list: Array = field(name)?.to().map_err(|_| wrong(name, "a list"))?;
        let number = |value: &Any| value.as_int().filter(|number| *number >= 0);
        let numbers = list.iter().map(number).collect::<Option<Vec<_>>>();
        numbers.ok_or(EntryError::Numbers(name))
    };
    let dtype: String = field("dtype")?.to().map_err(|_| wrong("dtype", "a text"))?;
    let known = DTYPES.iter().find(|(name, _)| *name == dtype);
    let (_, known) = known.ok_or_else(|| EntryError::Type(dtype.clone()))?;
    let shape = numbers("shape")?;
    let [begin, end] = numbers("data_offsets")?[..] else { return Err(EntryError::Offsets) };
    let (begin, end) = (begin as u64, end as u64);
    let element = u64::from(known.bits.max(8) / 8);
    // A length of zero leaves no bytes. The others have their bound all the same, in whatever order they stand.
    let room = shape.iter().try_fold(element, |size, dim| size.checked_mul((*dim as u64).max(1)));
    let size = room.map(|room| if shape.contains(&0) { 0 } else { room });
    if size.is_none() || end.checked_sub(begin) != size {
        return Err(EntryError::Length { dtype, shape, begin, end });
    }
    Ok(Claimed { dtype, shape, begin, end })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: usize) -> Vec<u8> {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header.as_bytes());
        bytes.resize(bytes.len() + data, 7);
        bytes
    }

    fn refusal(header: &str, data: usize) -> String {
        read_header(&file(header, data)).map_or_else(|error| error.to_string(), |header| format!("{header:?}"))
    }

    #[test]
    fn tensors_are_where_the_header_says() {
        let text = r#"{"b":{"dtype":"U8","shape":[],"data_offsets":[24,25]},"__metadata__":{"x":"y"},
                       "a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}   "#;
        let header = read_header(&file(text, 25)).unwrap();
        let start = 8 + text.len();
        assert_eq!(header.len(), 2);
        assert_eq!(header.get("a").unwrap().range, start..start + 24);
        assert_eq!(header.get("b").unwrap().shape, Vec::<i64>::new());
        assert!(read_header(&file("{}", 0)).unwrap().is_empty());
    }

    #[test]
    fn every_lie_is_named() {
        let one = |fields: &str| format!(r#"{{"w":{{{fields}}}}}"#);
        let cases = [
            ("[]".into(), 0, "it is no object"),
            ("{".into(), 0, "line 1"),
            (r#"{"w":3}"#.into(), 0, "tensor \"w\" is no object"),
            (one(r#""shape":[1],"data_offsets":[0,4]"#), 4, "has no field \"dtype\""),
            (one(r#""dtype":"F33","shape":[1],"data_offsets":[0,4]"#), 4, "is of type \"F33\""),
            (one(r#""dtype":"F32","shape":[-1],"data_offsets":[0,4]"#), 4, "natural numbers in \"shape\""),
            (one(r#""dtype":"F32","shape":[1.5],"data_offsets":[0,4]"#), 4, "natural numbers in \"shape\""),
            (one(r#""dtype":"F32","shape":[1],"data_offsets":[0]"#), 4, "other than two offsets"),
            (one(r#""dtype":"F32","shape":[2],"data_offsets":[0,4]"#), 4, "shape [2] has the bytes from 0 to 4"),
            (one(r#""dtype":"F32","shape":[1],"data_offsets":[8,4]"#), 8, "has the bytes from 8 to 4"),
            (one(r#""dtype":"F32","shape":[1],"data_offsets":[4,8]"#), 8, "begins at 4"),
            (one(r#""dtype":"F32","shape":[1],"data_offsets":[0,4]"#), 3, "cut off"),
            (one(r#""dtype":"F32","shape":[1],"data_offsets":[0,4]"#), 6, "2 bytes behind its tensors"),
            (
                one(r#""dtype":"F32","shape":[9223372036854775807,9223372036854775807],"data_offsets":[0,4]"#),
                4,
                "has the bytes from 0 to 4",
            ),
            (
                one(r#""dtype":"F32","shape":[0,9223372036854775807,9223372036854775807],"data_offsets":[0,0]"#),
                0,
                "has the bytes from 0 to 0",
            ),
            (
                one(r#""dtype":"F32","shape":[9223372036854775807,9223372036854775807,0],"data_offsets":[0,0]"#),
                0,
                "has the bytes from 0 to 0",
            ),
        ];
        for (header, data, message) in cases {
            let said = refusal(&header, data);
            assert!(said.contains(message), "{header}: {said}");
        }
        for (bytes, message) in [
            (&b""[..], "cut off"),
            (&[1, 0, 0][..], "cut off"),
            (&[200, 0, 0, 0, 0, 0, 0, 0, b'{'][..], "9 bytes of at least 208"),
            (&[255; 9][..], "no safetensors file"),
            (&[1, 0, 0, 0, 0, 0, 0, 0, 0xff][..], "not UTF-8"),
        ] {
            let said = read_header(bytes).unwrap_err().to_string();
            assert!(said.contains(message), "{bytes:?}: {said}");
        }
    }
}
