//! What a call returned: as files, or summed up for reading.

use std::path::{Path, PathBuf};

use relaxide::ffi::{Any, Array, Map, Ref, Shape, Tensor};
use relaxide::relay_vm::{Adt, Closure};
use relaxide::runtime::file;
use relaxide::vm::TextTensor;
use serde_json::{Value, json};

use crate::answer;
use crate::error::CliError;
use crate::inputs::{element, npy};

/// A value that a function returned, with its place in tuples: `0`, `1.0`.
pub struct Output {
    /// Its place; empty where the function returned one value.
    pub place: String,
    /// Its name, where the model has one.
    pub name: Option<String>,
    /// The value.
    pub value: Content,
}

/// The kinds of values that are shown.
pub enum Content {
    /// A tensor.
    Tensor(Tensor),
    /// A tensor of texts.
    Texts(Ref<TextTensor>),
    /// Anything else, as text.
    Other(String),
}

/// How deep in tuples and data values are shown: a list of a million elements is as deep.
const MAX_DEPTH: usize = 64;

/// What a result consists of; `names` are those of the function's outputs, or none. `constructors` are those of its data types, by
/// their tags.
pub fn flatten(result: &Any, names: &[String], constructors: &[(i64, String)]) -> Vec<Output> {
    let mut outputs = Vec::new();
    collect(result, &mut Vec::new(), constructors, &mut outputs);
    for output in &mut outputs {
        output.name = name_of(&output.place, names);
    }
    outputs
}

/// The name of the output in a place. An output that consists of several tensors has a place for each of them.
fn name_of(place: &str, names: &[String]) -> Option<String> {
    let (name, inner) = match names {
        [name] => (name, place),
        _ => {
            let (first, inner) = place.split_once('.').unwrap_or((place, ""));
            (names.get(first.parse::<usize>().ok()?)?, inner)
        }
    };
    Some(if inner.is_empty() { name.clone() } else { format!("{name}.{inner}") })
}

fn collect(value: &Any, path: &mut Vec<usize>, constructors: &[(i64, String)], outputs: &mut Vec<Output>) {
    let place = path.iter().map(usize::to_string).collect::<Vec<_>>().join(".");
    let mut add = |value| outputs.push(Output { place: place.clone(), name: None, value });
    if let Ok(tensor) = value.to::<Tensor>() {
        return add(Content::Tensor(tensor));
    }
    if let Some(texts) = value.downcast_ref::<TextTensor>() {
        return add(Content::Texts(texts.clone()));
    }
    let fields: Vec<Any> = match (value.to::<Array>(), value.downcast_ref::<Adt>()) {
        (Ok(array), _) => array.iter().cloned().collect(),
        (_, Some(adt)) => {
            if adt.tag != 0 {
                let name =
                    constructors.iter().find(|(tag, _)| *tag == i64::from(adt.tag)).map(|(_, name)| name.clone());
                add(Content::Other(name.unwrap_or_else(|| format!("the constructor of tag {}", adt.tag))));
            }
            adt.fields.iter().cloned().collect()
        }
        _ => return add(Content::Other(other_text(value))),
    };
    if path.len() == MAX_DEPTH && !fields.is_empty() {
        return add(Content::Other(format!("{} values, deeper than is shown", fields.len())));
    }
    for (i, field) in fields.iter().enumerate() {
        path.push(i);
        collect(field, path, constructors, outputs);
        path.pop();
    }
}

fn other_text(value: &Any) -> String {
    match (value.to::<Shape>(), value.to::<Map>(), value.downcast_ref::<Closure>()) {
        (Ok(shape), ..) => format!("shape {:?}", shape.iter().collect::<Vec<_>>()),
        (_, Ok(map), _) => map_json(&map).to_string(),
        (.., Some(closure)) => format!("a function, with {} captured values", closure.free.len()),
        _ => format!("{value:?}"),
    }
}

/// A map from texts or integers to numbers.
fn map_json(map: &Map) -> Value {
    let key = |key: &Any| match (key.as_str(), key.as_int()) {
        (Some(text), _) => text.to_string(),
        (None, Some(number)) => number.to_string(),
        (None, None) => format!("{key:?}"),
    };
    map.iter().map(|(name, value)| (key(name), json!(value.as_float()))).collect()
}

/// The figures of a tensor.
struct Figures {
    min: f64,
    max: f64,
    mean: f64,
    /// How many elements are no numbers.
    nan: usize,
    head: Vec<f64>,
    count: usize,
}

impl Figures {
    fn of(tensor: &Tensor) -> Result<Figures, CliError> {
        let numbers = element::numbers(tensor)?;
        let real = || numbers.iter().copied().filter(|n| !n.is_nan());
        let count = real().count();
        Ok(Figures {
            min: real().fold(f64::INFINITY, f64::min),
            max: real().fold(f64::NEG_INFINITY, f64::max),
            mean: if count == 0 { 0.0 } else { real().sum::<f64>() / count as f64 },
            nan: numbers.len() - count,
            head: numbers.iter().take(8).copied().collect(),
            count: numbers.len(),
        })
    }
}

impl Output {
    /// The name, or else the place, in words.
    fn title(&self) -> String {
        match (&self.name, self.place.as_str()) {
            (Some(name), _) => format!("output {name}"),
            (None, "") => "output".into(),
            (None, place) => format!("output {place}"),
        }
    }

    /// The name that it has among arrays.
    fn array_name(&self) -> String {
        match (&self.name, self.place.as_str()) {
            (Some(name), _) => name.clone(),
            (None, "") => "output".into(),
            (None, place) => format!("output_{place}"),
        }
    }

    /// For people.
    pub fn text(&self) -> Result<String, CliError> {
        let tensor = match &self.value {
            Content::Tensor(tensor) => tensor,
            Content::Texts(texts) => return Ok(format!("{}: {texts:?}", self.title())),
            Content::Other(text) => return Ok(format!("{}: {text}", self.title())),
        };
        let head = format!("{}: {}{:?}", self.title(), tensor.dtype(), tensor.shape());
        let figures = Figures::of(tensor)?;
        if figures.count == 0 {
            return Ok(format!("{head}  (empty)"));
        }
        let whole = !tensor.dtype().is_float();
        let number = |n: f64| if whole { format!("{n}") } else { float_text(n) };
        let values: Vec<String> = figures.head.iter().map(|n| number(*n)).collect();
        let more = if figures.count > values.len() { ", …" } else { "" };
        let range = match figures.count {
            1 => String::new(),
            _ => format!("  min {} max {} mean {}", number(figures.min), number(figures.max), float_text(figures.mean)),
        };
        let nan = if figures.nan > 0 { format!("  {} of them NaN", figures.nan) } else { String::new() };
        Ok(format!("{head}{range}{nan}\n  [{}{more}]", values.join(", ")))
    }

    /// For scripts.
    pub fn json(&self, file: Option<&Path>) -> Result<Value, CliError> {
        let tensor = match &self.value {
            Content::Tensor(tensor) => tensor,
            Content::Texts(texts) => {
                let head: Vec<&str> = texts.iter().take(8).collect();
                return Ok(json!({
                    "place": self.place, "name": self.name, "shape": texts.shape.as_slice(), "dtype": "string", "head": head,
                }));
            }
            Content::Other(text) => return Ok(json!({ "place": self.place, "name": self.name, "value": text })),
        };
        let figures = Figures::of(tensor)?;
        Ok(json!({
            "place": self.place, "name": self.name, "shape": tensor.shape(), "dtype": tensor.dtype().to_string(), "min": figures.min,
            "max": figures.max, "mean": figures.mean, "nan": figures.nan, "head": figures.head, "file": file,
        }))
    }
}

/// A number of a tensor, as short as it is told from its neighbours by eye.
fn float_text(n: f64) -> String {
    let size = n.abs();
    if n == 0.0 || (1e-3..1e6).contains(&size) { format!("{n:.6}") } else { format!("{n:.4e}") }
}

/// Fails if a file cannot be written there, or would replace one that is read.
pub fn check_place(path: &Path, read: &[&Path]) -> Result<(), CliError> {
    file::check_place(path).map_err(CliError::file(path))?;
    match read.iter().find(|other| file::is_same(path, other)) {
        None => Ok(()),
        Some(other) => Err(CliError::usage(
            format!("the output {} would replace {}, which is read", path.display(), other.display()),
            "give the output another name",
        )),
    }
}

/// The same for the results of a call, whose files depend on what it returns.
pub fn check_results(path: &Path, read: &[&Path]) -> Result<(), CliError> {
    if is_folder(path) {
        // It is made with all that is missing above it.
        return match std::fs::metadata(path) {
            Ok(found) if !found.is_dir() => Err(CliError::usage(
                format!("{} is a file, and results shall be written to a folder of that name", path.display()),
                "give another folder, or a name without / at its end",
            )),
            _ => Ok(()),
        };
    }
    let mut file = path.to_path_buf();
    if !matches!(ending(path), Some("npz" | "npy")) {
        file.as_mut_os_string().push(".npy");
    }
    check_place(&file, read)
}

/// Writes a text to a file.
pub fn write_text(path: &Path, text: &str) -> Result<(), CliError> {
    file::write_whole(path, 0o644, |out| out.write_all(text.as_bytes())).map_err(CliError::file(path))
}

fn is_folder(path: &Path) -> bool {
    path.to_str().is_some_and(|text| text.ends_with('/')) || path.is_dir()
}

fn ending(path: &Path) -> Option<&str> {
    path.extension().and_then(|ending| ending.to_str())
}

/// Writes tensors to files and says which: an .npz holds all; in a folder each is a file of its name; an .npy, or a prefix of
/// one, is a file each by their places.
pub fn write(path: &Path, outputs: &[Output]) -> Result<Vec<PathBuf>, CliError> {
    let tensor = |output: &Output| match &output.value {
        Content::Tensor(tensor) => Some((output.place.clone(), output.array_name(), tensor.clone())),
        Content::Texts(_) | Content::Other(_) => None,
    };
    let tensors: Vec<(String, String, Tensor)> = outputs.iter().filter_map(tensor).collect();
    if ending(path) == Some("npz") {
        let named: Vec<(String, Tensor)> = tensors.into_iter().map(|(_, name, tensor)| (name, tensor)).collect();
        npy::write_archive(path, &named)?;
        return Ok(vec![path.to_path_buf(); named.len()]);
    }
    let folder = is_folder(path);
    if folder {
        std::fs::create_dir_all(path).map_err(CliError::file(path))?;
    }
    let prefix = if ending(path) == Some("npy") { path.with_extension("") } else { path.to_path_buf() };
    let mut files: Vec<PathBuf> = Vec::new();
    for (place, name, tensor) in tensors {
        let file = if folder {
            path.join(unused(&file_name(&name), path, &files))
        } else {
            let mut file = prefix.clone().into_os_string();
            file.push(if place.is_empty() { ".npy".to_string() } else { format!(".{place}.npy") });
            PathBuf::from(file)
        };
        npy::write(&file, &tensor)?;
        files.push(file);
    }
    Ok(files)
}

/// A name of the model as the name of a file: names may have slashes and whatever else.
fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let name: String = name.chars().map(plain).collect();
    let hidden = name.is_empty() || name.starts_with('.');
    if hidden { format!("_{name}") } else { name }
}

/// The name of an .npy file that none of `taken` has: names that differ may be the same as files.
fn unused(name: &str, folder: &Path, taken: &[PathBuf]) -> String {
    let free = |file: &String| !taken.contains(&folder.join(file));
    let numbered = (1..).map(|n| format!("{name}_{n}.npy"));
    std::iter::once(format!("{name}.npy")).chain(numbered).find(free).unwrap_or_default()
}

/// Says which file a tensor is in.
pub fn say_written(output: &Output, file: &Path) -> Result<(), CliError> {
    let Content::Tensor(tensor) = &output.value else { return answer::line(&output.text()?) };
    answer::line(&format!("wrote {}: {} {}{:?}", file.display(), output.title(), tensor.dtype(), tensor.shape()))
}
