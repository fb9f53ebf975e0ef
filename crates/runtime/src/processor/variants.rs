//! Libraries with kernels for several processors: the table of them, and the one that is chosen where the library is loaded.
//!
//! The table is a text under [`SYMBOL`], a line for each processor in the order in which they are preferred, the least first:
//!
//! ```text
//! x86-64-v2 x86_64 x86-64-v2 sse3,sse4.1,…
//! x86-64-v3 x86_64 x86-64-v3 sse3,sse4.1,…,avx2,fma
//! ```
//!
//! The first word is the variant's name, the rest is [`Needed`]. Kernels of the first variant have their plain names, which is what
//! loaders find that know no such table; those of others have [`suffix`] behind theirs. Weights and bytecode are the program's, once.
//!
//! What is not here: how kernels are compiled, and what is called.

use relaxide_ffi::{Error, ErrorKind};

use super::{Needed, host_has, other_architecture};

/// The symbol that holds the table: [`Variants::to_text`] and a zero byte. Libraries for one processor have none.
pub const SYMBOL: &str = "__relaxide_processors";

/// The environment variable that names the variant to take.
pub const VARIABLE: &str = "RELAXIDE_PROCESSOR";

/// The table is no longer than this.
pub(crate) const MAX_TABLE: usize = 1 << 16;

/// Kernels for one of a library's processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Its name, which is behind those of its kernels.
    pub name: String,
    /// What they need.
    pub needed: Needed,
}

/// The processors that a library has kernels for, the least first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variants(Vec<Variant>);

/// What stands behind the names of a variant's kernels, unless it is the first.
pub fn suffix(variant: &str) -> String {
    format!(".{variant}")
}

impl Variants {
    /// A table; nothing unless it has rows with names of their own, of one instruction set.
    pub fn new(rows: Vec<Variant>) -> Option<Variants> {
        let architecture = &rows.first()?.needed.architecture;
        let is_word = |name: &str| !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c.is_control());
        let fits = |(at, row): (usize, &Variant)| {
            let is_new = rows.iter().take(at).all(|other| other.name != row.name);
            is_new && is_word(&row.name) && row.needed.architecture == *architecture
        };
        rows.iter().enumerate().all(fits).then_some(Variants(rows))
    }

    /// The rows.
    pub fn rows(&self) -> &[Variant] {
        &self.0
    }

    /// As it stands in a library.
    pub fn to_text(&self) -> String {
        self.0.iter().map(|row| format!("{} {}\n", row.name, row.needed.to_text())).collect()
    }

    /// What a library says. Nothing where it is no such text.
    pub fn from_text(text: &str) -> Option<Variants> {
        if text.chars().any(|c| c.is_control() && c != '\n') {
            return None;
        }
        let row = |line: &str| {
            let (name, needed) = line.split_once(' ')?;
            Some(Variant { name: name.to_owned(), needed: Needed::from_text(needed)? })
        };
        Variants::new(text.lines().map(row).collect::<Option<Vec<_>>>()?)
    }

    /// The variant for this process: the one that [`VARIABLE`] names, else the last whose every instruction the host has.
    pub fn choose(&self) -> Result<usize, Error> {
        let forced = std::env::var_os(VARIABLE).map(|name| name.to_string_lossy().into_owned());
        match forced.as_deref().map(str::trim).filter(|name| !name.is_empty()) {
            Some(name) => self.named(name),
            None => self.best(),
        }
    }

    /// The last that fits.
    fn best(&self) -> Result<usize, Error> {
        // Of a machine that nothing is known of, the first is the safest guess; more than one guess is none.
        let has_all = |row: &Variant| row.needed.features.iter().all(|name| host_has(name) == Some(true));
        let Some(first) = self.0.first() else { return Err(unreadable()) };
        if first.needed.architecture != std::env::consts::ARCH {
            return Err(other_architecture(&first.needed.architecture));
        }
        let found = self.0.iter().rposition(has_all);
        found.or_else(|| first.needed.missing().is_empty().then_some(0)).ok_or_else(|| {
            let lacks = |row: &Variant| format!("{} (this one lacks {})", row.name, row.needed.missing().join(", "));
            let all: Vec<String> = self.0.iter().map(lacks).collect();
            let message = format!(
                "its kernels are for the processors {}: compile the model with a processor more that fits, such as \
                 \"llvm -mcpu={}\", or on this machine",
                all.join(", "),
                super::host_level(),
            );
            Error::new(ErrorKind::RuntimeError, message)
        })
    }

    /// The one of that name, which the host can run.
    fn named(&self, name: &str) -> Result<usize, Error> {
        let said = |error: Error| error.context(format!("{VARIABLE} is {name:?}"));
        let Some(at) = self.0.iter().position(|row| row.name == name) else {
            let known: Vec<&str> = self.0.iter().map(|row| row.name.as_str()).collect();
            let message =
                format!("there are no kernels for that processor: the library has those for {}", known.join(", "));
            return Err(said(Error::new(ErrorKind::ValueError, message)));
        };
        self.0.get(at).map_or(Ok(()), |row| row.needed.check()).map_err(said)?;
        Ok(at)
    }
}

/// The error of a table that cannot be read.
pub(crate) fn unreadable() -> Error {
    let message = "the library's table of processors cannot be read: it is damaged, or of a newer version";
    Error::new(ErrorKind::ValueError, message)
}

/// What a library's symbol holds.
///
/// # Safety
/// The address is that of a text that ends in a zero byte and does not change.
pub(crate) unsafe fn read(address: *const u8) -> Result<Variants, Error> {
    // SAFETY: the caller's promise; nothing behind the zero byte is read.
    let bytes = (0..MAX_TABLE).map(|at| unsafe { address.add(at).read() }).take_while(|byte| *byte != 0);
    let text = String::from_utf8(bytes.collect()).ok();
    text.and_then(|text| Variants::from_text(&text)).ok_or_else(unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, features: &[&str]) -> Variant {
        let features = features.iter().map(|name| (*name).to_owned()).collect();
        let needed = Needed { architecture: std::env::consts::ARCH.into(), processor: name.into(), features };
        Variant { name: name.into(), needed }
    }

    fn table(rows: &[Variant]) -> Variants {
        Variants::new(rows.to_vec()).unwrap()
    }

    #[test]
    fn a_table_survives_the_way_through_text() {
        let one = table(&[row("small", &[]), row("large+fp16", &["avx", "fma"])]);
        assert_eq!(Variants::from_text(&one.to_text()), Some(one));
        for text in [
            "",
            "\n",
            "a",
            "a b c",
            "a b c d e",
            "a b c \na b c ",
            "a x c \nb y c ",
            " x c d",
            "a\tb x c ",
            "a x c d\r",
        ] {
            assert_eq!(Variants::from_text(text), None, "{text:?}");
        }
    }

    #[test]
    fn no_text_is_more_than_refused() {
        let whole = table(&[row("small", &[]), row("large", &["avx", "fma"])]).to_text();
        for at in 0..whole.len() {
            assert!(Variants::from_text(&whole[..at]).is_none_or(|read| read.rows().len() <= 2), "{at}");
            for byte in [b' ', b'\n', b'x', 0x7f, b','] {
                let mut bytes = whole.clone().into_bytes();
                bytes[at] = byte;
                let text = String::from_utf8(bytes).unwrap();
                // Whatever is read is a table, and is written as it was read.
                if let Some(read) = Variants::from_text(&text) {
                    assert_eq!(Variants::from_text(&read.to_text()), Some(read));
                }
            }
        }
    }

    #[test]
    fn the_last_that_fits_is_chosen() {
        let lacking = if cfg!(target_arch = "x86_64") { "sse5" } else { "nothing" };
        // A feature that this version does not know may be missing.
        let fitting = table(&[row("a", &[]), row("b", &[]), row("c", &[lacking])]);
        assert_eq!(fitting.best().unwrap(), 1);
        assert_eq!(fitting.named("a").unwrap(), 0);
        let error = fitting.named("d").unwrap_err().to_string();
        assert!(error.contains("RELAXIDE_PROCESSOR is \"d\"") && error.contains("a, b, c"), "{error}");
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn where_nothing_fits_each_says_what_is_missing() {
        // No processor has all of these.
        let error = table(&[row("a", &["tbm", "amx-complex"]), row("b", &["fma4", "avx10.2", "egpr"])]).best();
        let error = error.unwrap_err().to_string();
        assert!(error.contains("a (this one lacks ") && error.contains("b (this one lacks "), "{error}");
    }
}
