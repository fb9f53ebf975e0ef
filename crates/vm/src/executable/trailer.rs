//! What rides behind the sections: a magic number, then JSON text that describes the program.
//!
//! TVM's loader does not look there. The compiler writes it (types of parameters, names of outputs, what compiled it);
//! here is how those read it who have no compiler.

use relaxide_ffi::{Array, Map, json};

use super::{Executable, Origins};

/// What the trailer begins with.
pub const TRAILER_MAGIC: &[u8; 8] = b"RLXSIGN1";

impl Executable {
    /// The description behind the sections; none if there is none that can be read.
    pub fn description(&self) -> Option<Map> {
        let text = std::str::from_utf8(self.trailer().strip_prefix(TRAILER_MAGIC)?).ok()?;
        json::parse(text).ok()?.to().ok()
    }

    /// What instructions were made of: as the compiler says here, or as the description behind the sections does.
    pub fn origins(&self) -> Origins {
        if !self.origins.is_empty() {
            return self.origins.clone();
        }
        self.description().and_then(|description| Origins::of_description(&description)).unwrap_or_default()
    }

    /// The names of what a function returns, in order, where the description has them.
    pub fn output_names(&self, function: &str) -> Vec<String> {
        let names = self.description().and_then(|description| {
            let functions: Array = description.get("functions")?.to().ok()?;
            let functions = functions.iter().filter_map(|f| f.to::<Map>().ok());
            let named = |f: &Map| f.get("name").and_then(|name| name.to::<String>().ok()).as_deref() == Some(function);
            functions.into_iter().find(named)?.get("outputs")?.to().ok()
        });
        names.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(trailer: &[u8]) -> Vec<String> {
        let mut executable = Executable::default();
        executable.set_trailer(trailer.to_vec());
        executable.output_names("main")
    }

    #[test]
    fn names_of_outputs_are_found_and_nothing_else_is_an_error() {
        let text = br#"RLXSIGN1{"functions":[{"name":"f"},{"name":"main","outputs":["y:0","z"]}]}"#;
        assert_eq!(names(text), ["y:0", "z"]);
        for other in
            [&b""[..], b"RLXSIGN1", b"RLXSIGN1[]", b"RLXSIGN1{\"functions\":3}", b"xxxxxxxx{}", b"RLXSIGN1\xff"]
        {
            assert!(names(other).is_empty());
        }
        assert!(names(br#"RLXSIGN1{"functions":[{"name":"main","outputs":["y",3]}]}"#).is_empty());
    }
}
