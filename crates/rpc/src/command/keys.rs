//! `rpc keygen`.

use super::Failed;

#[cfg(not(feature = "secure"))]
/// Says that there are no keys.
pub fn run(_words: &[String]) -> Result<(), Failed> {
    Err("this build has TVM's protocol only: it was made without the feature `secure`".to_owned().into())
}

#[cfg(feature = "secure")]
pub use with_keys::run;

#[cfg(feature = "secure")]
mod with_keys {
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::path::Path;

    use relaxide_ffi::{Error, ErrorKind};

    use super::super::args::{Args, Opt, help};
    use super::super::say;
    use super::Failed;
    use crate::secure::identity::{Fingerprint, Identity, Token, write_secret};
    use crate::secure::keys::Rights;

    const TABLE: &[Opt] = &[
        Opt { name: "out", value: "FILE", help: "make a key and write it there; print its fingerprint" },
        Opt { name: "show", value: "FILE", help: "print the fingerprint of a key" },
        Opt { name: "token", value: "FILE", help: "make a token and write it there" },
        Opt {
            name: "authorize",
            value: "FILE",
            help: "add a line to a server's file of keys; needs --client and --name",
        },
        Opt { name: "client", value: "FINGERPRINT", help: "whose key it is" },
        Opt { name: "name", value: "NAME", help: "what it is called in logs" },
        Opt {
            name: "allow",
            value: "WORDS",
            help: "files, load, connect, everything, call=NAMES, devices=NAMES, memory=BYTES, sessions=N, time=SECONDS",
        },
        Opt { name: "help", value: "", help: "show this" },
    ];

    /// Makes keys and says who may do what.
    pub fn run(words: &[String]) -> Result<(), Failed> {
        let args = Args::parse("keygen", TABLE, words)?;
        let asked = ["out", "show", "token", "authorize"].iter().filter(|name| args.has(name)).count();
        if args.has("help") || asked == 0 {
            print!("{}", help("relaxide rpc keygen [OPTIONS]", "Make keys, and say who may do what.", TABLE));
            return if args.has("help") { Ok(()) } else { Err("say what to make".to_owned().into()) };
        }
        if let Some(path) = args.get("out") {
            let text = Identity::generate()?;
            write_secret(Path::new(path), &text)?;
            say(&Identity::parse(&text)?.fingerprint().to_string());
        }
        if let Some(path) = args.get("show") {
            say(&Identity::read(Some(path))?.fingerprint().to_string());
        }
        if let Some(path) = args.get("token") {
            write_secret(Path::new(path), &Token::generate()?)?;
        }
        if let Some(path) = args.get("authorize") {
            authorize(&args, path)?;
        }
        Ok(())
    }

    fn authorize(args: &Args, path: &str) -> Result<(), Failed> {
        let missing = |name: &str| format!("--authorize needs --{name}");
        let client = Fingerprint::parse(args.get("client").ok_or_else(|| missing("client"))?)?;
        let name = args.get("name").ok_or_else(|| missing("name"))?;
        if name.is_empty() || name.contains(|character: char| character.is_whitespace() || character == '#') {
            return Err(format!("--name {name:?}: expected a word").into());
        }
        let words: Vec<&str> = args.all("allow").flat_map(str::split_whitespace).collect();
        Rights::parse(name, words.iter().copied())?;
        let line = format!("{client} {name} {}\n", words.join(" "));
        let file = OpenOptions::new().create(true).append(true).open(path);
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        let written = written.map_err(|error| Error::new(ErrorKind::OSError, format!("cannot write {path}: {error}")));
        Ok(written?)
    }
}
