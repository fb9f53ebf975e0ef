//! What is said before the first packet of TVM's protocol.
//!
//! The client says a magic number and its key: `client:` and the key of the server that it looks for, and options behind a space. The
//! server answers with a code and, if it is that server, its own key.

use super::{Limits, Malformed, Reader, Writer};

/// What a client says first, and a server on success.
pub const MAGIC: i32 = 0xff271;
/// A proxy has a peer of that key and side already.
pub const DUPLICATE: i32 = MAGIC + 1;
/// No server of that key is here.
pub const MISMATCH: i32 = MAGIC + 2;
/// What a tracker's client says first.
pub const TRACKER_MAGIC: i32 = 0x2f271;
/// The most bytes of a key.
pub const MAX_KEY: usize = 4096;

/// The side that a peer of a proxy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// It asks.
    Client,
    /// It serves.
    Server,
}

impl Side {
    /// What stands in front of its key.
    pub fn prefix(self) -> &'static str {
        match self {
            Side::Client => "client:",
            Side::Server => "server:",
        }
    }
}

/// A peer's key with its options.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// Which side it is.
    pub side: Side,
    /// What is looked for, or what is served.
    pub name: String,
    /// How many seconds the session may take.
    pub timeout: Option<f64>,
}

impl Key {
    /// Reads `client:NAME -timeout=SECONDS`. Options that are not known are left alone, as TVM leaves them.
    pub fn parse(bytes: &[u8]) -> Result<Key, Malformed> {
        let wrong = |what: String| Malformed { what, at: 0 };
        let text = std::str::from_utf8(bytes).map_err(|_| wrong("the key is not UTF-8".into()))?;
        let mut words = text.split_whitespace();
        let first = words.next().unwrap_or_default();
        let sides = [Side::Client, Side::Server];
        let found = sides.into_iter().find_map(|side| first.strip_prefix(side.prefix()).map(|name| (side, name)));
        let (side, name) =
            found.ok_or_else(|| wrong(format!("the key {first:?} begins with neither `client:` nor `server:`")))?;
        let mut timeout = None;
        for word in words {
            let Some(seconds) = word.strip_prefix("-timeout=") else { continue };
            let parsed: Option<f64> =
                seconds.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds > 0.0);
            timeout = Some(parsed.ok_or_else(|| wrong(format!("-timeout={seconds} is no number of seconds")))?);
        }
        Ok(Key { side, name: name.into(), timeout })
    }

    /// The text of the key.
    pub fn text(&self) -> String {
        let head = format!("{}{}", self.side.prefix(), self.name);
        match self.timeout {
            Some(seconds) => format!("{head} -timeout={seconds}"),
            None => head,
        }
    }
}

/// The bytes that a peer begins with.
pub fn hello(key: &str) -> Vec<u8> {
    answer(MAGIC, key)
}

/// A code alone.
pub fn refusal(code: i32) -> Vec<u8> {
    code.to_le_bytes().to_vec()
}

/// A code and a key behind it.
pub fn answer(code: i32, key: &str) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.i32(code);
    writer.i32(key.len() as i32);
    writer.raw(key.as_bytes());
    writer.into_bytes()
}

/// The length of a key that follows, from four bytes.
pub fn key_length(bytes: [u8; 4]) -> Result<usize, Malformed> {
    let claimed = Reader::new(&bytes, &Limits::default()).i32("the key's length")?;
    let length = usize::try_from(claimed).ok().filter(|length| *length <= MAX_KEY);
    length.ok_or_else(|| Malformed { what: format!("a key of {claimed} bytes; it may have {MAX_KEY}"), at: 4 })
}
