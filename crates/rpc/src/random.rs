//! Random numbers and keys.

use relaxide_ffi::{Error, ErrorKind};
use rustix::rand::{GetRandomFlags, getrandom};

/// Random bytes of the system's.
pub fn bytes<const N: usize>() -> Result<[u8; N], Error> {
    let mut out = [0; N];
    let mut filled = 0;
    while filled < N {
        filled += getrandom(&mut out[filled..], GetRandomFlags::empty())
            .map_err(|error| Error::new(ErrorKind::OSError, format!("the system has no random numbers: {error}")))?;
    }
    Ok(out)
}

/// `PREFIX:` and a random number from 0 to 1 as text, as TVM makes the keys by which a client finds its server.
pub fn key(prefix: &str) -> Result<String, Error> {
    let fraction = (u64::from_le_bytes(bytes()?) >> 11) as f64 / (1_u64 << 53) as f64;
    Ok(format!("{prefix}:{fraction}"))
}
