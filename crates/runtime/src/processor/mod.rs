//! Whether the host's processor can run a library's kernels.
//!
//! A library is compiled for one processor and may use all of its instructions. On a processor that lacks one of them the
//! first such instruction ends the process by a signal. So the compiler writes what kernels may use into the library,
//! under [`SYMBOL`], and the loader compares it with the host before any code of the library runs ([`Needed::check`]).
//!
//! A library may have kernels for several processors ([`variants`]), of which the best that fits is chosen.
//!
//! Features are known by LLVM's names. A feature that is not in the table is not checked: it belongs to systems, keys or
//! caches, which kernels do not touch.
//!
//! Sources: Intel's and AMD's manuals for CPUID (leaves 1, 7, 13, 24h, 80000001h); Linux' `hwcap.h` for AArch64.

mod aarch64;
pub mod variants;
mod x86_64;

use relaxide_ffi::{Error, ErrorKind};

/// The symbol that holds what a library needs: [`Needed::to_text`] and a zero byte.
pub const SYMBOL: &str = "__relaxide_processor";
/// The text is no longer than this.
const MAX_TEXT: usize = 4096;

/// What a library's kernels need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needed {
    /// The instruction set, as [`std::env::consts::ARCH`] calls it.
    pub architecture: String,
    /// LLVM's name of the processor that the library was compiled for.
    pub processor: String,
    /// LLVM's names of the features that kernels may use.
    pub features: Vec<String>,
}

impl Needed {
    /// As it stands in a library.
    pub fn to_text(&self) -> String {
        format!("{} {} {}", self.architecture, self.processor, self.features.join(","))
    }

    /// What a library says. Nothing where it is no such text.
    pub fn from_text(text: &str) -> Option<Needed> {
        let mut words = text.split(' ');
        let (architecture, processor) = (words.next()?.to_owned(), words.next()?.to_owned());
        let features = words.next()?.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        words.next().is_none().then_some(Needed { architecture, processor, features })
    }

    /// The needed features that the host lacks.
    pub fn missing(&self) -> Vec<&str> {
        let lacks = |name: &&str| host_has(name) == Some(false);
        self.features.iter().map(String::as_str).filter(lacks).collect()
    }

    /// Fails where the host cannot run the kernels.
    pub fn check(&self) -> Result<(), Error> {
        let host = std::env::consts::ARCH;
        if self.architecture != host {
            return Err(other_architecture(&self.architecture));
        }
        let missing = self.missing();
        if missing.is_empty() {
            return Ok(());
        }
        let message = format!(
            "its kernels are for the processor {}, and this one lacks {}: compile the model with a target that fits, \
             such as \"llvm -mcpu={}\", or on this machine",
            self.processor,
            missing.join(", "),
            host_level(),
        );
        Err(Error::new(ErrorKind::RuntimeError, message))
    }
}

/// The error of a library that is for another instruction set than the host's.
pub(crate) fn other_architecture(architecture: &str) -> Error {
    let host = std::env::consts::ARCH;
    let message = format!(
        "it is for the architecture {architecture}, and this process is {host}: compile the model with the target \
         \"llvm -mtriple={host}-linux-gnu\""
    );
    Error::new(ErrorKind::RuntimeError, message)
}

/// What a library's symbol holds.
///
/// # Safety
/// The address is that of a text that ends in a zero byte and does not change.
pub(crate) unsafe fn read(address: *const u8) -> Option<Needed> {
    // SAFETY: the caller's promise; nothing behind the zero byte is read.
    let bytes = (0..MAX_TEXT).map(|at| unsafe { address.add(at).read() }).take_while(|byte| *byte != 0);
    Needed::from_text(&String::from_utf8(bytes.collect()).ok()?)
}

/// Whether a feature, by LLVM's name, is one that kernels may use, on any instruction set.
pub fn is_of_kernels(name: &str) -> bool {
    x86_64::FEATURES.iter().any(|(known, ..)| *known == name)
        || aarch64::FEATURES.iter().any(|(known, ..)| *known == name)
}

/// Whether the host has a feature, by LLVM's name. Nothing where the name is not one that kernels use.
pub fn host_has(name: &str) -> Option<bool> {
    host::has(name)
}

/// The most general processor name whose code runs well here.
fn host_level() -> &'static str {
    let has = |names: &[&str]| names.iter().all(|name| host_has(name) == Some(true));
    if cfg!(not(target_arch = "x86_64")) {
        "generic"
    } else if has(&["avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"]) {
        "x86-64-v4"
    } else if has(&["avx2", "fma", "bmi2", "f16c", "movbe", "lzcnt"]) {
        "x86-64-v3"
    } else if has(&["sse4.2", "popcnt"]) {
        "x86-64-v2"
    } else {
        "x86-64"
    }
}

#[cfg(all(target_arch = "aarch64", target_os = "linux"))]
use aarch64::host;
#[cfg(target_arch = "x86_64")]
use x86_64::host;

#[cfg(not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_os = "linux"))))]
mod host {
    /// Nothing is known of this machine, so nothing is refused.
    pub(super) fn has(_name: &str) -> Option<bool> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needed(architecture: &str, features: &[&str]) -> Needed {
        let features = features.iter().map(|name| (*name).to_owned()).collect();
        Needed { architecture: architecture.into(), processor: "some".into(), features }
    }

    #[test]
    fn what_is_needed_survives_the_way_through_text() {
        for features in [&[][..], &["avx"], &["avx", "sse4.1"]] {
            let one = needed("x86_64", features);
            assert_eq!(Needed::from_text(&one.to_text()), Some(one));
        }
        for text in ["", "x86_64", "x86_64 znver4", "a b c d"] {
            assert_eq!(Needed::from_text(text), None, "{text:?}");
        }
    }

    #[test]
    fn another_architecture_and_missing_features_are_named() {
        let other = if cfg!(target_arch = "x86_64") { "aarch64" } else { "x86_64" };
        let error = needed(other, &[]).check().unwrap_err().to_string();
        assert!(error.contains(other) && error.contains(std::env::consts::ARCH), "{error}");
        assert!(needed(std::env::consts::ARCH, &["a-feature-of-systems"]).check().is_ok());
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_table_agrees_with_the_standard_library() {
        macro_rules! agree {
            ($($llvm:literal $std:tt),* $(,)?) => {
                $(assert_eq!(host_has($llvm), Some(std::arch::is_x86_feature_detected!($std)), $llvm);)*
            };
        }
        agree!(
            "sse3" "sse3", "ssse3" "ssse3", "sse4.1" "sse4.1", "sse4.2" "sse4.2", "sse4a" "sse4a", "popcnt" "popcnt",
            "lzcnt" "lzcnt", "movbe" "movbe", "bmi" "bmi1", "bmi2" "bmi2", "tbm" "tbm", "avx" "avx", "avx2" "avx2",
            "f16c" "f16c", "fma" "fma", "adx" "adx", "aes" "aes", "pclmul" "pclmulqdq", "sha" "sha", "gfni" "gfni",
            "vaes" "vaes", "vpclmulqdq" "vpclmulqdq", "avx512f" "avx512f", "avx512cd" "avx512cd", "avx512dq" "avx512dq",
            "avx512bw" "avx512bw", "avx512vl" "avx512vl", "avx512ifma" "avx512ifma", "avx512vbmi" "avx512vbmi",
            "avx512vbmi2" "avx512vbmi2", "avx512vnni" "avx512vnni", "avx512bitalg" "avx512bitalg",
            "avx512vpopcntdq" "avx512vpopcntdq", "avx512bf16" "avx512bf16", "avx512fp16" "avx512fp16",
            "avx512vp2intersect" "avx512vp2intersect", "avxvnni" "avxvnni", "avxifma" "avxifma",
            "avxneconvert" "avxneconvert", "avxvnniint8" "avxvnniint8", "avxvnniint16" "avxvnniint16",
        );
    }
}
