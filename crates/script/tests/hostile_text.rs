//! No text makes the parser panic, and what it accepts it prints and reads again.

use std::path::Path;

use proptest::prelude::*;
use relaxide_script::{PrintOptions, parse_module, print_module_with};

/// The texts of the file tests, to mutate.
fn corpus() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filetests");
    let mut texts = Vec::new();
    for folder in ["parse", "diagnostics"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            texts.push(std::fs::read_to_string(entry.unwrap().path()).unwrap());
        }
    }
    texts.sort();
    texts
}

/// Parses; if that works, the print must parse to the same print.
fn check(text: &str) -> Result<(), TestCaseError> {
    let module = match parse_module(text, "text") {
        Ok(module) => module,
        // The parser turns a panic into an error for its users; here it is a failure.
        Err(e) if e.message.contains("unexpectedly") => return Err(TestCaseError::fail(format!("panic on {text:?}"))),
        Err(_) => return Ok(()),
    };
    let options = PrintOptions { show_meta: true };
    let once = print_module_with(&module, options);
    let again = parse_module(&once, "print").map_err(|e| TestCaseError::fail(format!("{e}\n{once}")))?;
    prop_assert_eq!(print_module_with(&again, options), once);
    Ok(())
}

/// One change of a text.
#[derive(Clone, Debug)]
enum Edit {
    Delete { at: prop::sample::Index, len: usize },
    Insert { at: prop::sample::Index, piece: &'static str },
    SwapLines { a: prop::sample::Index, b: prop::sample::Index },
    CopyToken { from: prop::sample::Index, to: prop::sample::Index },
}

const PIECES: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    ",",
    ":",
    "=",
    "\n",
    "    ",
    "\"",
    "'",
    "\\",
    "-",
    "not ",
    "*",
    "**",
    "//",
    "@",
    "T.",
    "R.",
    "cls.",
    "0",
    "-1",
    "9223372036854775808",
    "1e999",
    "None",
    "True",
    "lambda x: x",
    "x[0]",
    "A[0:4]",
    "T.int64(",
    "R.Tensor((",
    "if x:\n",
    "else:\n",
    "return x\n",
    "with R.dataflow():\n",
    "metadata[\"ir.GenericConst\"][0]",
    "é",
    "\u{0}",
    "# ",
    "n",
    "\"n\"",
    "R.output(x)",
    "T.grid(4, 4)",
    "T.Ramp(0, 1, 4)",
    "R.const(",
    "yield",
    "await x",
    "*x",
    "x := 1",
    "...",
];

fn edit() -> impl Strategy<Value = Edit> {
    use prop::sample::Index;
    prop_oneof![
        (any::<Index>(), 1..20usize).prop_map(|(at, len)| Edit::Delete { at, len }),
        (any::<Index>(), prop::sample::select(PIECES)).prop_map(|(at, piece)| Edit::Insert { at, piece }),
        (any::<Index>(), any::<Index>()).prop_map(|(a, b)| Edit::SwapLines { a, b }),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Edit::CopyToken { from, to }),
    ]
}

fn apply(text: &str, edit: &Edit) -> String {
    let chars: Vec<char> = text.chars().collect();
    if chars.is_empty() {
        return String::new();
    }
    match edit {
        Edit::Delete { at, len } => {
            let at = at.index(chars.len());
            chars.iter().enumerate().filter(|(i, _)| !(at..at + len).contains(i)).map(|(_, c)| c).collect()
        }
        Edit::Insert { at, piece } => {
            let at = at.index(chars.len());
            chars[..at].iter().copied().chain(piece.chars()).chain(chars[at..].iter().copied()).collect()
        }
        Edit::SwapLines { a, b } => {
            let mut lines: Vec<&str> = text.split('\n').collect();
            let (a, b) = (a.index(lines.len()), b.index(lines.len()));
            lines.swap(a, b);
            lines.join("\n")
        }
        Edit::CopyToken { from, to } => {
            let mut tokens: Vec<&str> = text.split_inclusive([' ', '(', ')', ',', '\n', '.']).collect();
            let (from, to) = (from.index(tokens.len()), to.index(tokens.len()));
            tokens[to] = tokens[from];
            tokens.concat()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(deep(2000)) })]

    #[test]
    fn mutated_programs_are_refused_or_survive_the_print(
        base in prop::sample::select(corpus()),
        edits in prop::collection::vec(edit(), 1..5),
    ) {
        let text = edits.iter().fold(base, |text, edit| apply(&text, edit));
        check(&text)?;
    }

    #[test]
    fn random_pieces_never_panic(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..60)) {
        check(&pieces.concat())?;
        check(&format!("@R.function\ndef f(x: R.Tensor((4,), \"float32\")):\n    {}\n    return x\n", pieces.concat()))?;
        check(&format!("@T.prim_func\ndef f(A: T.Buffer((4,), \"float32\")):\n    {}\n", pieces.concat()))?;
    }

    #[test]
    fn random_characters_never_panic(text in "\\PC{0,200}") {
        check(&text)?;
    }
}

/// More cases where time allows.
fn deep(cases: u32) -> u32 {
    if std::env::var_os("RELAXIDE_DEEP").is_some() { cases * 50 } else { cases }
}

#[test]
fn deep_nesting_is_refused_without_exhausting_the_stack() {
    let deep = |open: &str, inner: &str, close: &str, count: usize| {
        format!(
            "@R.function\ndef f(x: R.Tensor((4,), \"float32\")):\n    y = {}{inner}{}\n    return y\n",
            open.repeat(count),
            close.repeat(count)
        )
    };
    for count in [100, 1000, 100_000] {
        for (open, close) in [
            ("(", ")"),
            ("[", "]"),
            ("-", ""),
            ("not ", ""),
            ("R.add(x, ", ")"),
            ("x + ", ""),
            ("", "[0]"),
            ("", ".a"),
            ("x if x else ", ""),
            ("lambda: ", ""),
            ("{x: ", "}"),
            ("x == ", ""),
            ("x ** ", ""),
        ] {
            if let Err(e) = parse_module(&deep(open, "x", close, count), "deep") {
                assert!(!e.message.contains("unexpectedly"), "{open} {count}");
            }
        }
    }
}
