//! The arguments of a command: switches and options, from one table that is also the help.

use std::collections::HashMap;

/// An option or a switch.
pub struct Opt {
    /// Its name without the dashes.
    pub name: &'static str,
    /// What its value is called; nothing: it is a switch.
    pub value: &'static str,
    /// What it does.
    pub help: &'static str,
}

/// What a command was given.
#[derive(Debug, Default)]
pub struct Args {
    values: HashMap<&'static str, Vec<String>>,
    /// What stands alone.
    pub rest: Vec<String>,
}

/// What is wrong with a command line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgError {
    /// An option that the command does not have.
    #[error("`rpc {command}` has no option --{name}; see `rpc {command} --help`")]
    Unknown {
        /// The command.
        command: String,
        /// The option.
        name: String,
    },
    /// A switch with a value.
    #[error("--{0} takes no value")]
    Value(String),
    /// An option without one.
    #[error("--{name} needs a value: --{name} {value}")]
    NoValue {
        /// The option.
        name: &'static str,
        /// What its value is called.
        value: &'static str,
    },
    /// A value of another kind.
    #[error("--{name} {value}: expected {wanted}")]
    Kind {
        /// The option.
        name: String,
        /// Its value.
        value: String,
        /// What it is to be.
        wanted: String,
    },
}

impl Args {
    /// Reads `--name value`, `--name=value` and `--switch`.
    pub fn parse(command: &str, table: &'static [Opt], given: &[String]) -> Result<Args, ArgError> {
        let mut args = Args::default();
        let mut given = given.iter();
        while let Some(word) = given.next() {
            let Some(name) = word.strip_prefix("--") else {
                args.rest.push(word.clone());
                continue;
            };
            let (name, joined) = match name.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (name, None),
            };
            let option = table.iter().find(|option| option.name == name);
            let unknown = || ArgError::Unknown { command: command.to_owned(), name: name.to_owned() };
            let option = option.ok_or_else(unknown)?;
            let value = match (option.value.is_empty(), joined) {
                (true, None) => String::new(),
                (true, Some(_)) => return Err(ArgError::Value(name.to_owned())),
                (false, Some(value)) => value,
                (false, None) => {
                    let Opt { name, value, .. } = option;
                    given.next().cloned().ok_or(ArgError::NoValue { name, value })?
                }
            };
            args.values.entry(option.name).or_default().push(value);
        }
        Ok(args)
    }

    /// The last value of an option.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).and_then(|values| values.last()).map(String::as_str)
    }

    /// All values of an option.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.values.get(name).into_iter().flatten().map(String::as_str)
    }

    /// Whether a switch is set.
    pub fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// The value of an option as a number or the like.
    pub fn parsed<T: std::str::FromStr>(&self, name: &str, what: &str) -> Result<Option<T>, ArgError> {
        let wrong =
            |text: &str| ArgError::Kind { name: name.to_owned(), value: text.to_owned(), wanted: what.to_owned() };
        let parse = |text: &str| text.parse().map_err(|_| wrong(text));
        self.get(name).map(parse).transpose()
    }
}

/// What is shown for `--help`.
pub fn help(usage: &str, about: &str, table: &[Opt]) -> String {
    let mut text = format!("{about}\n\nUsage: {usage}\n");
    if !table.is_empty() {
        text.push_str("\nOptions:\n");
    }
    for option in table {
        let head = match option.value {
            "" => format!("--{}", option.name),
            value => format!("--{} {value}", option.name),
        };
        text.push_str(&format!("  {head:<28} {}\n", option.help));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Opt] = &[Opt { name: "port", value: "PORT", help: "" }, Opt { name: "silent", value: "", help: "" }];

    fn parse(words: &str) -> Result<Args, String> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        Args::parse("x", TABLE, &words).map_err(|why| why.to_string())
    }

    #[test]
    fn both_spellings_and_errors_that_say_what_to_do() {
        let args = parse("--port 1 a --silent --port=2 b").unwrap();
        assert_eq!(args.parsed::<u16>("port", "a port"), Ok(Some(2)));
        assert!(args.has("silent") && args.rest == ["a", "b"]);
        assert!(parse("--prot 1").unwrap_err().contains("--help"));
        assert!(parse("--port").unwrap_err().contains("--port PORT"));
        assert!(parse("--silent=1").is_err());
        assert!(
            parse("--port x")
                .unwrap()
                .parsed::<u16>("port", "a port")
                .unwrap_err()
                .to_string()
                .contains("expected a port")
        );
    }
}
