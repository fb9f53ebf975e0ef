//! Colour, where a person is looking.

use std::io::IsTerminal;

fn paint(code: &str, text: &str) -> String {
    let plain = !std::io::stderr().is_terminal() || std::env::var_os("NO_COLOR").is_some();
    if plain { text.to_string() } else { format!("\x1b[{code}m{text}\x1b[0m") }
}

/// For the word `error:`.
pub fn error(text: &str) -> String {
    paint("1;31", text)
}

/// For the word `help:` and next steps.
pub fn note(text: &str) -> String {
    paint("1;36", text)
}

/// For what was made.
pub fn done(text: &str) -> String {
    paint("1;32", text)
}
