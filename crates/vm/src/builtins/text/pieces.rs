//! Texts joined, divided, normalized and matched.
//!
//! Patterns are regular expressions as RE2 has them, without classes of Unicode. Upper and lower case are those of single
//! characters: what would become two stays as it is, as in C.

use std::collections::HashSet;

use regex_lite::Regex;
use relaxide_ffi::{Any, Array, DataType, Error, ErrorKind, Tensor};

use super::{Args, Builtin, Table, TextTensor, tensor_of};

pub(super) const TABLE: &[Builtin] = &[
    Builtin::plain("relaxide.vm.text_appended", appended),
    Builtin::placed("relaxide.vm.text_matches", matches),
    Builtin::plain("relaxide.vm.text_normalized", normalized),
    Builtin::placed("relaxide.vm.text_split", split),
    Builtin::plain("relaxide.vm.text_tokens", tokens),
];

/// What Unicode calls the start and the end of a text, which tokens are put between.
const MARKS: [&str; 2] = ["\u{2}", "\u{3}"];

/// Most texts that a tensor is filled up to.
const MOST_TEXTS: usize = 1 << 31;

fn pattern(args: &Args<'_, '_>, text: &str) -> Result<Regex, Error> {
    Regex::new(text).map_err(|e| args.error(ErrorKind::ValueError, format_args!("the pattern {text:?}: {e}")))
}

/// `(a, b)`: the texts of two tensors of one shape, each of the second behind that of the first.
fn appended(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(2, 2)?;
    let (a, b) = (tensor_of(args, 0, "a")?, tensor_of(args, 1, "b")?);
    if a.shape != b.shape {
        let message = format_args!("the shapes are {:?} and {:?}", a.shape, b.shape);
        return Err(args.error(ErrorKind::ValueError, message));
    }
    let texts = a.iter().zip(b.iter()).map(|(a, b)| Any::from(format!("{a}{b}")));
    TextTensor::new(&a.shape, Array::from_vec(texts.collect())).map(Any::from)
}

/// `(table, pattern)`: for each text whether the whole of it matches.
fn matches(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(2, 2)?;
    let table = Table::of(args, 0)?;
    let pattern = pattern(args, &format!(r"\A(?:{})\z", args.get::<String>(1, "pattern")?))?;
    let truths: Vec<u8> = table.iter().map(|text| u8::from(pattern.is_match(text))).collect();
    Tensor::from_bytes(&truths, &[table.len() as i64], DataType::bool()).map(Any::from)
}

fn cased(text: &str, case: &str) -> String {
    let one = |c: char, mut to: &mut dyn Iterator<Item = char>| match (to.next(), (&mut to).next()) {
        (Some(single), None) => single,
        _ => c,
    };
    match case {
        "LOWER" => text.chars().map(|c| one(c, &mut c.to_lowercase())).collect(),
        "UPPER" => text.chars().map(|c| one(c, &mut c.to_uppercase())).collect(),
        _ => text.to_string(),
    }
}

/// `(tensor, case, is case sensitive, stop words)`: the texts in another case, without stop words. Without a word left there
/// is one empty text. The last axis becomes shorter; axes in front of it have length 1 where there are stop words.
fn normalized(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(4, 4)?;
    let tensor = tensor_of(args, 0, "tensor")?;
    let case: String = args.get(1, "case")?;
    let sensitive: bool = args.get(2, "case sensitive")?;
    let stops = Table::of(args, 3)?;
    if stops.len() == 0 {
        let texts = tensor.iter().map(|text| Any::from(cased(text, &case)));
        return TextTensor::new(&tensor.shape, Array::from_vec(texts.collect())).map(Any::from);
    }
    let shape = tensor.shape.as_slice();
    if shape.iter().rev().skip(1).any(|dim| *dim != 1) {
        let message = format_args!("stop words are taken out of one row, and the shape is {shape:?}");
        return Err(args.error(ErrorKind::ValueError, message));
    }
    let key = |text: &str| if sensitive { text.to_string() } else { cased(text, "LOWER") };
    let words: HashSet<String> = stops.iter().map(key).collect();
    let kept = tensor.iter().filter(|text| !words.contains(&key(text)));
    let mut kept: Vec<Any> = kept.map(|text| Any::from(cased(text, &case))).collect();
    if kept.is_empty() {
        kept.push(Any::from(""));
    }
    let mut shape = shape.to_vec();
    if let Some(last) = shape.last_mut() {
        *last = kept.len() as i64;
    }
    TextTensor::new(&shape, Array::from_vec(kept)).map(Any::from)
}

/// Rows of texts as a tensor with one axis more, filled up.
fn rows(args: &Args<'_, '_>, shape: &[i64], rows: Vec<Vec<String>>, fill: &str) -> Result<Any, Error> {
    let width = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut texts = Vec::new();
    // One long row makes all of them long.
    let count = rows.len().checked_mul(width).filter(|count| *count <= MOST_TEXTS && texts.try_reserve(*count).is_ok());
    if count.is_none() {
        let message = format_args!("{} rows of {width} texts do not fit memory", rows.len());
        return Err(args.error(ErrorKind::MemoryError, message));
    }
    for row in rows {
        let missing = width - row.len();
        texts.extend(row.into_iter().map(Any::from));
        texts.extend(std::iter::repeat_with(|| Any::from(fill)).take(missing));
    }
    let shape: Vec<i64> = shape.iter().copied().chain([width as i64]).collect();
    TextTensor::new(&shape, Array::from_vec(texts)).map(Any::from)
}

/// The parts of a text between delimiters, or between blanks where there is no delimiter; at most so many splits.
fn parts(text: &str, delimiter: &str, most: usize) -> Vec<String> {
    // Of nothing there are no parts, as in ONNX Runtime.
    if !delimiter.is_empty() && !text.is_empty() {
        return text.splitn(most.saturating_add(1), delimiter).map(str::to_string).collect();
    }
    let mut parts = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let end = if parts.len() == most { None } else { rest.find(char::is_whitespace) };
        let (part, behind) = rest.split_at(end.unwrap_or(rest.len()));
        parts.push(part.to_string());
        rest = behind.trim_start();
    }
    parts
}

/// `(tensor, delimiter, most splits)`: the parts of each text along a new axis, and how many there are.
fn split(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(3, 3)?;
    let tensor = tensor_of(args, 0, "tensor")?;
    let delimiter: String = args.get(1, "delimiter")?;
    let most = args.index(2, "most splits")?;
    let all: Vec<Vec<String>> = tensor.iter().map(|text| parts(text, &delimiter, most)).collect();
    let counts: Vec<i64> = all.iter().map(|parts| parts.len() as i64).collect();
    let counts = Tensor::from_slice(&counts, &tensor.shape)?;
    Ok(Array::from_vec(vec![rows(args, &tensor.shape, all, "")?, counts.into()]).into())
}

/// How texts are divided into tokens.
enum Division {
    /// Each character is one.
    Characters,
    /// What matches is one.
    Tokens(Regex),
    /// What lies between matches is one, by each pattern in turn.
    Separators(Vec<Regex>),
}

impl Division {
    fn of(&self, text: &str, least: usize) -> Vec<String> {
        let long = |token: &&str| token.chars().count() >= least && !token.is_empty();
        match self {
            Division::Characters => text.chars().map(String::from).collect(),
            Division::Tokens(pattern) => {
                pattern.find_iter(text).map(|found| found.as_str()).filter(long).map(str::to_string).collect()
            }
            Division::Separators(patterns) => {
                let mut parts = vec![text];
                for pattern in patterns {
                    parts = parts.into_iter().flat_map(|part| pattern.split(part)).filter(long).collect();
                }
                parts.into_iter().map(str::to_string).collect()
            }
        }
    }
}

/// `(tensor, mark, least characters, fill, token pattern, separators…)`: the tokens of each text along a new axis.
fn tokens(args: &Args<'_, '_>) -> Result<Any, Error> {
    let tensor = tensor_of(args, 0, "tensor")?;
    let mark: bool = args.get(1, "mark")?;
    let least = args.index(2, "least characters")?;
    let fill: String = args.get(3, "fill")?;
    let token: String = args.get(4, "token pattern")?;
    let separators = args.rest(5).iter().map(|view| view.to::<String>()).collect::<Result<Vec<_>, _>>()?;
    let division = match &separators[..] {
        [] => Division::Tokens(pattern(args, &token)?),
        [one] if one.is_empty() => Division::Characters,
        many => Division::Separators(many.iter().map(|text| pattern(args, text)).collect::<Result<_, _>>()?),
    };
    let all = tensor.iter().map(|text| {
        let mut tokens = division.of(text, least);
        if mark {
            tokens.insert(0, MARKS[0].to_string());
            tokens.push(MARKS[1].to_string());
        }
        tokens
    });
    rows(args, &tensor.shape, all.collect(), &fill)
}
