//! One file of C in the making: what its functions share, and the functions.

use std::collections::HashMap;

use indexmap::IndexMap;

use super::names::Names;

/// The text of a file, collected piece by piece.
#[derive(Debug, Default)]
pub(crate) struct Source {
    /// Functions and types that kernels use, in order of their first use, each behind those that it uses itself.
    helpers: IndexMap<String, String>,
    functions: String,
    /// Names of functions.
    pub names: Names,
    /// Functions of other libraries: what is declared of each.
    foreign: IndexMap<String, String>,
    /// Entries that are called or defined, by kernel: their identifiers behind the prefix.
    entries: IndexMap<String, String>,
    /// The functions that call registered ones, by what they call.
    pub callers: HashMap<String, String>,
    /// The bodies that are there, by kernel.
    pub bodies: HashMap<String, String>,
    /// The longest message that a kernel can raise.
    longest_message: usize,
}

impl Source {
    /// Makes sure that a function or type is there; its text is asked for once, and may ask for others before it.
    pub fn helper(&mut self, name: impl Into<String>, text: impl FnOnce(&mut Self) -> String) {
        let name = name.into();
        if !self.helpers.contains_key(&name) {
            let text = text(self);
            self.helpers.insert(name, text);
        }
    }

    /// Adds a finished function.
    pub fn function(&mut self, text: &str) {
        self.functions.push('\n');
        self.functions.push_str(text);
    }

    /// The functions so far, and what they share in front of them.
    pub fn parts(&self) -> (impl Iterator<Item = &str>, &str) {
        (self.helpers.values().map(String::as_str), &self.functions)
    }

    /// Declares a function of another library; false if it was declared otherwise before.
    pub fn foreign(&mut self, name: &str, declaration: String) -> bool {
        *self.foreign.entry(name.to_string()).or_insert_with(|| declaration.clone()) == declaration
    }

    /// The declarations of other libraries' functions.
    pub fn declarations(&self) -> impl Iterator<Item = &str> {
        self.foreign.values().map(String::as_str)
    }

    /// The entry of a kernel, in this file or in another that is linked with it.
    pub fn entry(&mut self, kernel: &str) -> String {
        if let Some(known) = self.entries.get(kernel) {
            return format!("RX_NAME({known})");
        }
        let plain = super::names::identifier(kernel);
        let taken = |name: &String| self.entries.values().any(|known| known == name);
        let numbered = (1..).map(|number| format!("{plain}_{number}"));
        // Behind its prefix, any word is a name.
        let name = std::iter::once(plain.clone()).chain(numbered).find(|name| !taken(name)).unwrap_or(plain);
        self.entries.insert(kernel.to_string(), name.clone());
        format!("RX_NAME({name})")
    }

    /// The entries that are mentioned: kernels and identifiers.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.iter().map(|(kernel, name)| (kernel.as_str(), name.as_str()))
    }

    /// Whether a helper is there.
    pub fn has(&self, helper: &str) -> bool {
        self.helpers.contains_key(helper)
    }

    /// Notes how long a message can become.
    pub fn message(&mut self, bytes: usize) {
        self.longest_message = self.longest_message.max(bytes);
    }

    /// Room for every message, its end included.
    pub fn message_room(&self) -> usize {
        (self.longest_message + 1).next_multiple_of(16)
    }
}
