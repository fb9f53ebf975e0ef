//! Settings that users make by environment variables.
//!
//! A variable whose value makes no sense is named on standard error, and counts as not set: it may have been set for another
//! program, and a model that would run is not refused for it.

use std::str::FromStr;

/// The number that the first of several variables that is set says, if it fits.
pub(crate) fn number<T: FromStr>(names: &[&str], fits: impl Fn(&T) -> bool) -> Option<T> {
    let (name, text) = first_set(names)?;
    let number = text.trim().parse().ok().filter(fits);
    if number.is_none() {
        say(name, &text, "a whole number above 0, such as 4");
    }
    number
}

/// Whether the first of several variables that is set says yes (`1`) and not no (`0`). Only threads on Linux ask.
#[cfg(target_os = "linux")]
pub(crate) fn switch(names: &[&str]) -> bool {
    match first_set(names) {
        None => false,
        Some((name, text)) => match text.trim() {
            "1" => true,
            "0" | "" => false,
            _ => {
                say(name, &text, "0 or 1");
                false
            }
        },
    }
}

fn first_set<'a>(names: &[&'a str]) -> Option<(&'a str, String)> {
    names.iter().find_map(|name| Some((*name, std::env::var_os(name)?.to_string_lossy().into_owned())))
}

fn say(name: &str, text: &str, expected: &str) {
    eprintln!("relaxide: the environment variable {name} is {text:?}, which is ignored: {expected} is expected");
}
