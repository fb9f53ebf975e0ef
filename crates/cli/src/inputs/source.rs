//! What `--input` names: a file of a kind that is known by its ending, or numbers.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use relaxide::ffi::{Any, DataType, Shape, Tensor};
use relaxide::{DimSpec, FunctionSignature, ParamSignature};

use super::element::Range;
use super::picture::{Frame, Normalisation};
use super::{element, input, known_input, length, npy, picture, words};
use crate::error::CliError;

/// Where an input comes from.
pub enum Source {
    /// A tensor that is read already, with what it was read from.
    Read(Tensor),
    /// An .npy file.
    Npy(PathBuf),
    /// An image.
    Picture(PathBuf),
    /// A file of numbers.
    Text(PathBuf),
    /// Numbers on the command line.
    Numbers(String),
    /// Texts, in a list or a file.
    Words(String),
    /// Random numbers.
    Random(Range),
}

/// What stands in front of the range of random numbers.
const RANDOM: &str = "random:";

/// The sources of inputs by name.
pub fn of_args(signature: &FunctionSignature, inputs: &[String]) -> Result<HashMap<String, Source>, CliError> {
    let mut sources = HashMap::new();
    let mut unnamed = signature.params.iter().map(|p| p.name.clone());
    for text in inputs {
        let (name, what) = divide(signature, text)?;
        if ending(what) == "npz" {
            archive(signature, name, Path::new(what), &mut sources)?;
            continue;
        }
        let too_many = || {
            let message = format!("{text} is one input more than function {} has", signature.name);
            CliError::usage(message, "name inputs, as NAME=FILE, or leave this one out")
        };
        let name = name.or_else(|| unnamed.next()).ok_or_else(too_many)?;
        let is_texts = signature.params.iter().any(|param| param.name == name && param.is_texts());
        let found = if is_texts { Source::Words(what.to_string()) } else { source(what)? };
        sources.insert(name, found);
    }
    Ok(sources)
}

/// `NAME=WHAT` as the name that the input has in the program, and what follows. Names may be those of the ONNX file, such as
/// `input.1` or `gpu_0/data`; what else looks like a path in front of `=` is part of a file's name.
fn divide<'a>(signature: &FunctionSignature, text: &'a str) -> Result<(Option<String>, &'a str), CliError> {
    let Some((name, what)) = text.split_once('=') else { return Ok((None, text)) };
    match known_input(signature, name) {
        Some(known) => Ok((Some(known), what)),
        None if name.contains(['/', '.']) => Ok((None, text)),
        None => Ok((Some(input(signature, name)?), what)),
    }
}

fn ending(what: &str) -> String {
    let ending = Path::new(what).extension().and_then(|e| e.to_str()).unwrap_or_default();
    ending.to_ascii_lowercase()
}

fn source(what: &str) -> Result<Source, CliError> {
    if let Some(range) = what.strip_prefix(RANDOM) {
        return random(range).map(Source::Random);
    }
    let path = || PathBuf::from(what);
    match ending(what).as_str() {
        "npy" => Ok(Source::Npy(path())),
        "png" | "jpg" | "jpeg" => Ok(Source::Picture(path())),
        "txt" | "csv" => Ok(Source::Text(path())),
        _ if numbers(what).is_some() => Ok(Source::Numbers(what.to_string())),
        _ => Err(CliError::usage(
            format!("{what} is no input that is known here"),
            "give a file that ends in .npy, .npz, .png, .jpg, .txt or .csv, numbers such as 1,2,3, or random:LOW..HIGH",
        )),
    }
}

/// A range as `LOW..HIGH`.
fn random(text: &str) -> Result<Range, CliError> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    let ends = text.split_once("..").and_then(|(low, high)| Some((number(low)?, number(high)?)));
    match ends {
        Some((low, high)) if low <= high => Ok(Range { low, high }),
        _ => Err(CliError::usage(
            format!("{RANDOM}{text} is no range of random numbers"),
            "write it as random:LOW..HIGH, for example ids=random:0..30521; integers include both ends",
        )),
    }
}

/// The arrays of an .npz: the one for a named input, or each for the input of its name.
fn archive(
    signature: &FunctionSignature,
    name: Option<String>,
    path: &Path,
    sources: &mut HashMap<String, Source>,
) -> Result<(), CliError> {
    let mut arrays = npy::read_archive(path)?;
    let names = arrays.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    if let Some(name) = name {
        let at = arrays
            .iter()
            .position(|(array, _)| relaxide::known_name(array, [name.as_str()].into_iter()).is_some())
            .or((arrays.len() == 1).then_some(0));
        let missing = || {
            let message = format!("{} has no array {name:?}", path.display());
            CliError::usage(message, format!("its arrays are: {names}"))
        };
        let (_, tensor) = arrays.swap_remove(at.ok_or_else(missing)?);
        sources.insert(name, Source::Read(tensor));
        return Ok(());
    }
    for (array, tensor) in arrays {
        sources.insert(input(signature, &array)?, Source::Read(tensor));
    }
    Ok(())
}

/// Numbers between commas, blanks and ends of lines.
fn numbers(text: &str) -> Option<Vec<f64>> {
    let words = text.split(|c: char| c == ',' || c == ';' || c.is_whitespace()).filter(|word| !word.is_empty());
    words.map(|word| word.parse::<f64>().ok()).collect::<Option<Vec<_>>>().filter(|numbers| !numbers.is_empty())
}

/// Makes tensors of sources.
pub struct SourceReader {
    /// For images.
    pub mean: Vec<f32>,
    /// For images.
    pub std: Vec<f32>,
}

impl SourceReader {
    /// The value of an input.
    pub fn read(
        &self,
        source: &Source,
        param: &ParamSignature,
        dims: &[DimSpec],
        lengths: &HashMap<String, i64>,
    ) -> Result<Any, CliError> {
        match source {
            Source::Read(tensor) => Ok(Any::from(tensor.clone())),
            Source::Npy(path) => Ok(Any::from(npy::read(path)?)),
            Source::Picture(path) => self.picture(path, param, dims, lengths),
            Source::Text(path) => {
                let text = std::fs::read_to_string(path).map_err(CliError::file(path))?;
                let no_numbers = || {
                    let message = format!("{} holds something else than numbers", path.display());
                    CliError::usage(message, "write numbers with commas, blanks or ends of lines between them")
                };
                of_numbers(&numbers(&text).ok_or_else(no_numbers)?, param, dims, lengths)
            }
            Source::Numbers(text) => of_numbers(&numbers(text).unwrap_or_default(), param, dims, lengths),
            Source::Words(what) => words::read(what, param, dims, lengths),
            // Made up elsewhere, since its shape may follow from other inputs.
            Source::Random(_) => Err(CliError::usage(format!("input {} is random", param.name), "say its shape")),
        }
    }

    fn picture(
        &self,
        path: &Path,
        param: &ParamSignature,
        dims: &[DimSpec],
        lengths: &HashMap<String, i64>,
    ) -> Result<Any, CliError> {
        let text = dims.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let unfit = || {
            let message = format!("input {} of shape ({text}) takes no image", param.name);
            CliError::usage(message, "an image becomes (1, 1 or 3, height, width); save other layouts as .npy")
        };
        let [batch, channels, height, width] = dims else { return Err(unfit()) };
        let channels = match length(channels, lengths) {
            None => 3,
            Some(channels @ (1 | 3)) => channels as usize,
            Some(_) => return Err(unfit()),
        };
        if length(batch, lengths).is_some_and(|batch| batch != 1) {
            return Err(unfit());
        }
        let side = |dim: &DimSpec| length(dim, lengths).map(u32::try_from).transpose().map_err(|_| unfit());
        let frame = Frame { channels, height: side(height)?, width: side(width)? };
        let normalisation = Normalisation { mean: self.mean.clone(), std: self.std.clone() };
        let dtype = param.dtype.unwrap_or(DataType::float(32));
        Ok(Any::from(picture::read(path, dtype, frame, &normalisation)?))
    }
}

/// A tensor, a shape or a number of numbers that were written down. One open dimension follows from their count.
fn of_numbers(
    numbers: &[f64],
    param: &ParamSignature,
    dims: &[DimSpec],
    lengths: &HashMap<String, i64>,
) -> Result<Any, CliError> {
    let integers = || numbers.iter().map(|n| *n as i64);
    if param.ty.starts_with("R.Prim") {
        return match numbers {
            [one] if one.fract() == 0.0 && !param.ty.contains("float") => Ok(Any::from(*one as i64)),
            [one] => Ok(Any::from(*one)),
            _ => Err(CliError::usage(format!("input {} is one number", param.name), "give one")),
        };
    }
    if param.ty.starts_with("R.Shape") {
        return Ok(Any::from(Shape::from(integers().collect::<Vec<_>>())));
    }
    let dims: Vec<Option<i64>> = dims.iter().map(|dim| length(dim, lengths)).collect();
    let product: i64 = dims.iter().flatten().try_fold(1i64, |n, dim| n.checked_mul(*dim)).unwrap_or(0);
    let count = numbers.len() as i64;
    let open = dims.iter().filter(|dim| dim.is_none()).count();
    let fits = match open {
        0 => product == count,
        1 => product > 0 && count % product == 0,
        _ => false,
    };
    if !fits {
        let shape = dims.iter().map(|dim| dim.map_or("?".to_string(), |dim| dim.to_string())).collect::<Vec<_>>();
        return Err(CliError::usage(
            format!("{count} numbers do not fill input {} of shape ({})", param.name, shape.join(", ")),
            format!("give as many as it has elements, or its shape by --shape {}=…", param.name),
        ));
    }
    let shape: Vec<i64> = dims.iter().map(|dim| dim.unwrap_or_else(|| count / product)).collect();
    let dtype = param.dtype.unwrap_or(DataType::float(32));
    Ok(Any::from(element::from_numbers(dtype, &shape, numbers.iter().copied())?))
}
