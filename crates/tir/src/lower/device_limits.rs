//! What a block of a device's threads may use: how many there may be, and how many bytes they may share.
//!
//! Drivers refuse functions that ask for more, when they are first called. Here they are refused when they are made, with the limit's name.

use relaxide_ir::Target;

use super::{Launch, LowerError};

/// Bytes that the threads of a block share at most, where a target says nothing or more: memory of a size that the code says is no larger
/// on any device of NVIDIA's.
const SHARED_BYTES: i64 = 48 << 10;

/// Threads of a block at most, where a target does not say it.
const THREADS: i64 = 256;

/// The limits of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceLimits {
    /// Threads of a block.
    pub threads: i64,
    /// Bytes that they share.
    pub shared_bytes: i64,
}

impl DeviceLimits {
    /// What a target says.
    pub fn of(target: &Target) -> DeviceLimits {
        let threads = target.int("max_threads_per_block").or_else(|| target.int("max_num_threads"));
        let shared_bytes = target.int("max_shared_memory_per_block");
        DeviceLimits {
            threads: threads.unwrap_or(THREADS),
            shared_bytes: shared_bytes.map_or(SHARED_BYTES, |bytes| bytes.min(SHARED_BYTES)),
        }
    }

    /// Refuses a function that asks for more.
    pub fn check(&self, launch: &Launch) -> Result<(), LowerError> {
        let refuse = |what: String, option: &str, limit: i64| {
            let name = &launch.name;
            Err(LowerError::Refused(format!("`{name}` has {what}; the target's limit `{option}` is {limit}")))
        };
        match launch.threads {
            Some(threads) if threads > self.threads => {
                refuse(format!("blocks of {threads} threads"), "max_threads_per_block", self.threads)
            }
            _ if launch.shared_bytes > self.shared_bytes => {
                let what = format!("{} bytes that the threads of a block share", launch.shared_bytes);
                refuse(what, "max_shared_memory_per_block", self.shared_bytes)
            }
            _ => Ok(()),
        }
    }
}
