//! [`Keys`]: who may come in and do what, from a file.
//!
//! A line is a fingerprint, a name, and capabilities as [`Policy`] has them; `sessions=N` and `time=SECONDS` limit what one key has at a
//! time. `#` begins a remark.

use std::collections::HashMap;
use std::time::Duration;

use relaxide_ffi::{Error, ErrorKind};

use super::identity::Fingerprint;
use crate::server::policy::{Policy, RightError};

/// What one key may.
#[derive(Clone, Debug, Default)]
pub struct Rights {
    /// Whose it is.
    pub name: String,
    /// What its sessions may do.
    pub policy: Policy,
    /// How many sessions it may have at a time.
    pub sessions: Option<usize>,
    /// How long each may last.
    pub time: Option<Duration>,
}

impl Rights {
    /// Reads capabilities and limits.
    pub fn parse<'a>(name: &str, words: impl Iterator<Item = &'a str>) -> Result<Rights, RightError> {
        let mut rights = Rights { name: name.to_owned(), ..Rights::default() };
        for word in words {
            if rights.policy.read_word(word)? {
                continue;
            }
            let number = |text: &str| text.parse::<u32>().map_err(|_| RightError::Number(word.to_owned()));
            match word.split_once('=') {
                Some(("sessions", count)) => rights.sessions = Some(number(count)? as usize),
                Some(("time", seconds)) => rights.time = Some(Duration::from_secs(number(seconds)?.into())),
                _ => return Err(RightError::Unknown(word.to_owned())),
            }
        }
        Ok(rights)
    }
}

/// Those who may come in.
#[derive(Clone, Debug, Default)]
pub struct Keys(HashMap<Fingerprint, Rights>);

impl Keys {
    /// Reads the text of a file.
    pub fn parse(text: &str) -> Result<Keys, Error> {
        let mut keys = HashMap::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split_whitespace();
            let Some(fingerprint) = words.next() else { continue };
            let at = |error: String| Error::new(ErrorKind::ValueError, format!("line {}: {error}", number + 1));
            let fingerprint = Fingerprint::parse(fingerprint).map_err(|error| at(error.message().to_owned()))?;
            let name = words.next().ok_or_else(|| at("a name stands behind the fingerprint".into()))?;
            keys.insert(fingerprint, Rights::parse(name, words).map_err(|why| at(why.to_string()))?);
        }
        Ok(Keys(keys))
    }

    /// Reads a file.
    pub fn read(path: &str) -> Result<Keys, Error> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            let message =
                format!("cannot read the keys {path}: {error}; `rpc keygen --authorize {path}` makes the file");
            Error::new(ErrorKind::OSError, message)
        })?;
        Keys::parse(&text).map_err(|error| error.context(path))
    }

    /// What a key may, if it is known.
    pub fn of(&self, fingerprint: Fingerprint) -> Option<&Rights> {
        self.0.get(&fingerprint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_who_may_what() {
        let print = format!("sha256:{}", "ab".repeat(32));
        let text = format!("# who\n\n{print} ann files call=a.* sessions=2 time=60 # remark\n");
        let keys = Keys::parse(&text).unwrap();
        let rights = keys.of(Fingerprint::parse(&print).unwrap()).unwrap();
        assert_eq!(
            (rights.name.as_str(), rights.sessions, rights.time),
            ("ann", Some(2), Some(Duration::from_secs(60)))
        );
        assert!(rights.policy.files && !rights.policy.code);
        for wrong in ["x", &print, &format!("{print} ann fly"), &format!("{print} ann sessions=x")] {
            assert!(Keys::parse(wrong).unwrap_err().message().starts_with("line 1: "), "{wrong}");
        }
    }
}
