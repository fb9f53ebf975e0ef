//! Buckets: requests whose lengths differ are padded to the next of some lengths, so that they are run together.
//!
//! ```text
//!   --bucket input_ids:1=16,32,64 --pad input_ids=0 --pad attention_mask=0
//!
//!   request A  [1, 9]  ─┐ pad   [1, 16] ─┐            ┌ [1, 16, 8] ─ cut ─ [1, 9, 8]
//!   request B  [1, 14] ─┘       [1, 16] ─┴ one call ──┴ [1, 16, 8] ─ cut ─ [1, 14, 8]
//! ```
//!
//! A bucket is of a dimension that the model's types name: all inputs with that name are padded, each with the value that was given for
//! it, and all outputs with it are cut back. What types can tell is checked when a model is loaded: a length that is computed from the
//! dimension, or one that only the run tells, is refused. What they cannot tell is whether the model ignores what padding adds, as one
//! with a mask does. So the first requests of each load are run as they are too: they get that answer, and where the two differ nothing of
//! this load is padded any more, which is said.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use half::{bf16, f16};

use crate::http::elements;
use crate::signature::{Dim, Port, Signature};
use crate::{Datatype, Error, Fault, Tensor};

/// A dimension, by an input and an axis that have it, and the lengths that it is padded to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The input, as `INPUT` or `MODEL/INPUT`.
    input: String,
    axis: usize,
    /// Ascending.
    lengths: Vec<i64>,
}

/// What an input is padded with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fill {
    /// The input, as `INPUT` or `MODEL/INPUT`.
    input: String,
    value: String,
}

/// What a setting of buckets does not say.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// It is no bucket.
    #[error("{0:?} is no bucket, such as input_ids:1=16,32,64")]
    NoBucket(String),
    /// Its lengths do not ascend.
    #[error("the lengths of {0:?} do not grow from 1 or more")]
    Lengths(String),
    /// It is no padding.
    #[error("{0:?} is no padding, such as attention_mask=0")]
    NoFill(String),
}

impl Bucket {
    /// Reads `[MODEL/]INPUT:AXIS=LENGTH,…`.
    pub fn parse(text: &str) -> Result<Bucket, SettingError> {
        let wanted = || SettingError::NoBucket(text.to_owned());
        let (place, lengths) = text.rsplit_once('=').ok_or_else(wanted)?;
        let (input, axis) = place.rsplit_once(':').ok_or_else(wanted)?;
        let axis = axis.parse().map_err(|_| wanted())?;
        let lengths = lengths.split(',').map(|length| length.trim().parse::<i64>().map_err(|_| wanted()));
        let lengths = lengths.collect::<Result<Vec<_>, _>>()?;
        if lengths[0] < 1 || !lengths.is_sorted_by(|a, b| a < b) {
            return Err(SettingError::Lengths(text.to_owned()));
        }
        Ok(Bucket { input: input.to_owned(), axis, lengths })
    }
}

impl Fill {
    /// Reads `[MODEL/]INPUT=VALUE`.
    pub fn parse(text: &str) -> Result<Fill, SettingError> {
        let found = text.rsplit_once('=').filter(|(input, value)| !input.is_empty() && !value.is_empty());
        let (input, value) = found.ok_or_else(|| SettingError::NoFill(text.to_owned()))?;
        Ok(Fill { input: input.to_owned(), value: value.to_owned() })
    }
}

/// What the command line says of buckets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub buckets: Vec<Bucket>,
    pub fills: Vec<Fill>,
    /// How many requests of each load are run as they are too.
    pub checks: usize,
}

/// Whether a setting is about an input of a model.
fn is_about(setting: &str, model: &str, input: &str) -> bool {
    setting == input || setting.strip_suffix(input).and_then(|rest| rest.strip_suffix('/')) == Some(model)
}

impl Settings {
    /// The first setting that is about none of these models.
    pub(crate) fn idle<'a>(&self, models: impl Iterator<Item = (&'a str, &'a Signature)> + Clone) -> Option<String> {
        let is_used = |setting: &str| {
            models.clone().any(|(model, signature)| signature.inputs.iter().any(|i| is_about(setting, model, &i.name)))
        };
        let buckets = self.buckets.iter().map(|bucket| ("--bucket", &bucket.input));
        let mut all = buckets.chain(self.fills.iter().map(|fill| ("--pad", &fill.input)));
        all.find(|(_, input)| !is_used(input)).map(|(option, input)| format!("{option} {input}"))
    }

    /// What is padded of a model; nothing where no setting is about it.
    pub(crate) fn plan(&self, model: &str, signature: &Signature) -> Result<Option<Buckets>, Error> {
        let mut dims: Vec<Bucketed> = Vec::new();
        for bucket in &self.buckets {
            for port in signature.inputs.iter().filter(|port| is_about(&bucket.input, model, &port.name)) {
                let dim = bucketed(signature, port, bucket)?;
                if dims.iter().any(|other| other.name == dim.name) {
                    return Err(Error::invalid(format!("there are two buckets of the dimension `{}`", dim.name)));
                }
                dims.push(dim);
            }
        }
        if dims.is_empty() {
            return Ok(None);
        }
        let fills = signature.inputs.iter().enumerate().map(|(i, port)| {
            let is_padded = dims.iter().any(|dim| dim.inputs.iter().any(|(input, _)| *input == i));
            if is_padded { self.fill(model, port) } else { Ok(Vec::new()) }
        });
        let fills = fills.collect::<Result<Vec<_>, _>>()?;
        let (checks, checked) = (self.checks, AtomicUsize::new(0));
        Ok(Some(Buckets { dims, fills, checks, checked, is_off: AtomicBool::new(false) }))
    }

    /// The element that an input is padded with.
    fn fill(&self, model: &str, port: &Port) -> Result<Vec<u8>, Error> {
        let name = &port.name;
        let given = self.fills.iter().find(|fill| is_about(&fill.input, model, name)).ok_or_else(|| {
            let message =
                format!("input {name:?} is padded by --bucket, and nothing says with what: give --pad {name}=VALUE");
            Error::invalid(message)
        })?;
        let datatype = port.datatype.filter(|datatype| datatype.size().is_some());
        let datatype = datatype
            .ok_or_else(|| Error::invalid(format!("input {name:?} is not of numbers, and others are not padded")))?;
        let value = match (datatype, given.value.as_str()) {
            (Datatype::Bool, "0") => "false",
            (Datatype::Bool, "1") => "true",
            (_, "inf") => "1e999",
            (_, "-inf") => "-1e999",
            (_, "nan") => "null",
            (_, other) => other,
        };
        let element = elements::read(name, datatype, &format!("[{value}]"))?;
        if Some(element.len()) != datatype.size() {
            return Err(Error::invalid(format!("--pad {name}={} is not one {}", given.value, datatype.name())));
        }
        Ok(element)
    }
}

/// A dimension that is padded, and where it is.
#[derive(Debug)]
struct Bucketed {
    name: String,
    lengths: Vec<i64>,
    /// Inputs and axes, and outputs and axes.
    inputs: Vec<(usize, usize)>,
    outputs: Vec<(usize, usize)>,
}

/// The dimension of a bucket, if padding and cutting it is all that lengths ask for.
fn bucketed(signature: &Signature, port: &Port, bucket: &Bucket) -> Result<Bucketed, Error> {
    let (input, axis) = (&port.name, bucket.axis);
    let dim = port.dims.as_ref().and_then(|dims| dims.get(axis));
    let Some(Dim::Named(name)) = dim else {
        let message = format!(
            "--bucket {input}:{axis}: the shape of the input is {:?}, and buckets are of dimensions of any length that \
             the model has a name for",
            port.shape()
        );
        return Err(Error::invalid(message));
    };
    let longest = bucket.lengths.last().copied().unwrap_or(0);
    if let Some(most) = signature.most(name).filter(|most| *most < longest) {
        let message = format!(
            "--bucket {input}:{axis}: the length {longest} is more than {most}, the most that `{name}` was compiled for"
        );
        return Err(Error::invalid(message));
    }
    let refused = |what: String| Err(Error::invalid(format!("`{name}` of input {input:?} cannot be padded: {what}")));
    let places = |ports: &[Port]| {
        let of_port = |(i, port): (usize, &Port)| {
            let dims = port.dims.iter().flatten().enumerate();
            dims.filter(|(_, dim)| **dim == Dim::Named(name.clone())).map(|(axis, _)| (i, axis)).collect::<Vec<_>>()
        };
        ports.iter().enumerate().flat_map(of_port).collect::<Vec<_>>()
    };
    let mentions = |text: &str, name: &str| text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == name);
    for port in &signature.inputs {
        let computed = port.dims.iter().flatten().find_map(|dim| match dim {
            Dim::Computed(text) if mentions(text, name) => Some(text),
            _ => None,
        });
        if let Some(text) = computed {
            return refused(format!("input {:?} has the length `{text}`, which is computed from it", port.name));
        }
    }
    let Some(outputs) = &signature.outputs else {
        return refused("the file does not say the types of the outputs".into());
    };
    let known: Vec<&str> = signature.inputs.iter().flat_map(Port::names).collect();
    for port in outputs {
        let output = &port.name;
        let Some(dims) = &port.dims else {
            return refused(format!("nothing is known of the shape of output {output:?}"));
        };
        for dim in dims {
            match dim {
                Dim::Named(other) if !known.contains(&other.as_str()) => {
                    return refused(format!("only the run tells the length `{other}` of output {output:?}"));
                }
                Dim::Computed(text) if text.is_empty() || mentions(text, name) => {
                    let text = if text.is_empty() {
                        "a length that is computed".into()
                    } else {
                        format!("the length `{text}`")
                    };
                    return refused(format!("output {output:?} has {text}, and how to cut it is not known"));
                }
                Dim::Named(other) if other == name && port.datatype.is_none_or(|d| d.size().is_none()) => {
                    return refused(format!("output {output:?} is not of numbers, and others are not cut"));
                }
                _ => {}
            }
        }
    }
    let (inputs, outputs) = (places(&signature.inputs), places(outputs));
    Ok(Bucketed { name: name.clone(), lengths: bucket.lengths.clone(), inputs, outputs })
}

/// How requests to a load are padded.
#[derive(Debug)]
pub(crate) struct Buckets {
    dims: Vec<Bucketed>,
    /// An element for each input; none where it is not padded.
    fills: Vec<Vec<u8>>,
    checks: usize,
    /// Requests for which padding gave what the request gave as it was.
    checked: AtomicUsize,
    is_off: AtomicBool,
}

/// A request, padded.
#[derive(Debug)]
pub(crate) struct Padded {
    pub inputs: Vec<Tensor>,
    /// For each dimension its length in the request and now.
    lengths: Vec<(i64, i64)>,
}

impl Buckets {
    /// A request padded, unless it has the length of a bucket already or is longer than all. The inputs have been checked.
    pub(crate) fn pad(&self, inputs: &[Tensor]) -> Result<Option<Padded>, Error> {
        if self.is_off.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let mut padded = Padded { inputs: inputs.to_vec(), lengths: Vec::with_capacity(self.dims.len()) };
        for dim in &self.dims {
            let length = dim.inputs.first().and_then(|(input, axis)| inputs.get(*input)?.shape().get(*axis));
            let length = length.copied().unwrap_or(0);
            let to = dim.lengths.iter().find(|bucket| **bucket >= length).copied().unwrap_or(length);
            padded.lengths.push((length, to));
            if to == length {
                continue;
            }
            for (input, axis) in &dim.inputs {
                let tensor = &mut padded.inputs[*input];
                *tensor = tensor.with_length(*axis, to, &self.fills[*input])?;
            }
        }
        Ok(Some(padded).filter(|padded| padded.lengths.iter().any(|(own, to)| own != to)))
    }

    /// The outputs of a padded request, as long as the request was.
    pub(crate) fn cut(&self, mut outputs: Vec<Tensor>, padded: &[(i64, i64)]) -> Result<Vec<Tensor>, Error> {
        for (dim, (own, to)) in self.dims.iter().zip(padded).filter(|(_, (own, to))| own != to) {
            for (output, axis) in &dim.outputs {
                let tensor = outputs.get_mut(*output);
                let tensor = tensor.filter(|tensor| tensor.shape().get(*axis) == Some(to)).ok_or_else(|| {
                    let message =
                        format!("output {output} does not have the length {to} of `{}` at its axis {axis}", dim.name);
                    Error::new(Fault::Internal, message)
                })?;
                *tensor = tensor.with_length(*axis, *own, &[])?;
            }
        }
        Ok(outputs)
    }

    /// Whether requests are run as they are too.
    pub(crate) fn is_checking(&self) -> bool {
        self.checked.load(Ordering::Relaxed) < self.checks
    }

    /// Compares what padding gave with what the request gave as it was. Where they differ, nothing is padded any more.
    pub(crate) fn compare(&self, own: &[Tensor], padded: &[Tensor]) -> bool {
        let is_equal = own.len() == padded.len() && own.iter().zip(padded).all(|(own, padded)| is_close(own, padded));
        if is_equal {
            self.checked.fetch_add(1, Ordering::Relaxed);
        } else {
            self.is_off.store(true, Ordering::Relaxed);
        }
        is_equal
    }
}

impl Padded {
    /// The lengths of the dimensions in the request and now.
    pub(crate) fn lengths(&self) -> &[(i64, i64)] {
        &self.lengths
    }

    /// Bytes of its tensors.
    pub(crate) fn bytes(&self) -> usize {
        self.inputs.iter().map(|input| input.data().len()).sum()
    }
}

/// A number of a tensor, from its bytes.
type Number = fn(&[u8]) -> f64;

/// Whether tensors are equal but for the roundings of sums that are taken in another order.
fn is_close(own: &Tensor, other: &Tensor) -> bool {
    if own.datatype() != other.datatype() || own.shape() != other.shape() {
        return false;
    }
    let (read, size, tolerance): (Number, usize, f64) = match own.datatype() {
        Datatype::Fp16 => (|b| f16::from_le_bytes([b[0], b[1]]).to_f64(), 2, 1e-2),
        Datatype::Bf16 => (|b| bf16::from_le_bytes([b[0], b[1]]).to_f64(), 2, 5e-2),
        Datatype::Fp32 => (|b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]])), 4, 1e-4),
        Datatype::Fp64 => (|b| f64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]), 8, 1e-9),
        _ => return own.data() == other.data(),
    };
    let pairs = own.data().chunks_exact(size).zip(other.data().chunks_exact(size)).map(|(a, b)| (read(a), read(b)));
    let largest = pairs.clone().map(|(a, _)| a.abs()).filter(|a| a.is_finite()).fold(0.0, f64::max);
    let limit = tolerance * largest + 1e-9;
    pairs.into_iter().all(|(a, b)| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::tests::signature;

    const IDS: (&str, &str) = ("ids", "R.Tensor((n, m), dtype=\"int64\")");
    const MASK: (&str, &str) = ("mask", "R.Tensor((n, m), dtype=\"bool\")");
    const RESULT: &str = "R.Tuple(R.Tensor((n, 2, m), dtype=\"float32\"), R.Tensor((n, 4), dtype=\"float32\"))";

    fn plan(params: &[(&str, &str)], result: &str, buckets: &[&str], fills: &[&str]) -> Result<Buckets, String> {
        let signature = signature(params, result, &[]).unwrap();
        let settings = Settings {
            buckets: buckets.iter().map(|text| Bucket::parse(text).unwrap()).collect(),
            fills: fills.iter().map(|text| Fill::parse(text).unwrap()).collect(),
            checks: 1,
        };
        let plan = settings.plan("bert", &signature).map_err(|error| error.message)?;
        Ok(plan.expect("a plan"))
    }

    fn tensor(datatype: Datatype, shape: &[i64], data: Vec<u8>) -> Tensor {
        Tensor::new("t", datatype, shape.to_vec(), data.into()).unwrap()
    }

    fn floats(shape: &[i64], values: impl IntoIterator<Item = f32>) -> Tensor {
        tensor(Datatype::Fp32, shape, values.into_iter().flat_map(f32::to_le_bytes).collect())
    }

    #[test]
    fn requests_are_padded_and_results_cut() {
        let plan = plan(&[IDS, MASK], RESULT, &["bert/mask:1=4,8"], &["ids=-7", "bert/mask=0"]).unwrap();
        let ids =
            |length: usize| tensor(Datatype::Int64, &[1, length as i64], [1i64.to_le_bytes()].concat().repeat(length));
        let mask = |length: usize| tensor(Datatype::Bool, &[1, length as i64], vec![1; length]);
        let padded = plan.pad(&[ids(3), mask(3)]).unwrap().unwrap();
        assert_eq!(padded.inputs[1], tensor(Datatype::Bool, &[1, 4], vec![1, 1, 1, 0]));
        assert_eq!(padded.inputs[0].data()[24..], (-7i64).to_le_bytes());
        assert_eq!((padded.lengths(), padded.bytes()), (&[(3, 4)][..], 36));
        let outputs = vec![floats(&[1, 2, 4], (0..8).map(|i| i as f32)), floats(&[1, 4], [1.0; 4])];
        let cut = plan.cut(outputs.clone(), padded.lengths()).unwrap();
        assert_eq!(cut, [floats(&[1, 2, 3], [0.0, 1.0, 2.0, 4.0, 5.0, 6.0]), outputs[1].clone()]);
        // A result that is not as long as its type says is not cut somewhere.
        assert!(plan.cut(cut, padded.lengths()).is_err());
        // As long as a bucket, and longer than all.
        assert!(plan.pad(&[ids(8), mask(8)]).unwrap().is_none() && plan.pad(&[ids(9), mask(9)]).unwrap().is_none());
        let empty = plan.pad(&[ids(0), mask(0)]).unwrap().unwrap();
        assert_eq!(empty.inputs[1].shape(), [1, 4]);
    }

    #[test]
    fn a_difference_ends_padding() {
        let plan = plan(&[IDS, MASK], RESULT, &["ids:1=4"], &["ids=0", "mask=false"]).unwrap();
        assert!(plan.is_checking());
        assert!(plan.compare(&[floats(&[2], [1.0, f32::NAN])], &[floats(&[2], [1.00001, f32::NAN])]));
        assert!(!plan.is_checking());
        assert!(!plan.compare(&[floats(&[2], [1.0, 2.0])], &[floats(&[2], [1.1, 2.0])]));
        let request = [tensor(Datatype::Int64, &[1, 1], vec![0; 8]), tensor(Datatype::Bool, &[1, 1], vec![1])];
        assert!(plan.pad(&request).unwrap().is_none());
    }

    #[test]
    fn what_cannot_be_padded_is_refused() {
        let refused = |params: &[(&str, &str)], result: &str, bucket: &str, fills: &[&str]| {
            plan(params, result, &[bucket], fills).map(|_| ()).unwrap_err()
        };
        let fills = ["ids=0", "mask=0"];
        let wanted = |message: String, part: &str| assert!(message.contains(part), "{message}");
        wanted(refused(&[IDS, MASK], RESULT, "ids:1=4", &["ids=0"]), "give --pad mask=VALUE");
        wanted(refused(&[IDS, MASK], RESULT, "ids:1=4", &["ids=x", "mask=0"]), "which is no INT64");
        wanted(refused(&[IDS, MASK], RESULT, "ids:1=4", &["ids=1,2", "mask=0"]), "is not one INT64");
        wanted(refused(&[IDS], RESULT, "ids:2=4", &fills), "of any length that the model has a name for");
        wanted(refused(&[IDS], RESULT, "ids:0=9", &fills), "more than 8");
        wanted(refused(&[IDS], "R.Any", "ids:1=4", &fills), "types of the outputs");
        wanted(refused(&[IDS], "R.Tensor", "ids:1=4", &fills), "nothing is known of the shape");
        wanted(refused(&[IDS], "R.Tensor(ndim=1)", "ids:1=4", &fills), "a length that is computed");
        wanted(refused(&[IDS], "R.Tensor((n, m * 2), dtype=\"int64\")", "ids:1=4", &fills), "length `m * 2`");
        wanted(refused(&[IDS], "R.Tensor((found,), dtype=\"int64\")", "ids:1=4", &fills), "only the run tells");
        wanted(refused(&[IDS, ("t", "texts(m)")], RESULT, "ids:1=4", &["ids=0", "t=a"]), "not of numbers");
        let past = ("past", "R.Tensor((n, m + 1), dtype=\"float32\")");
        wanted(refused(&[IDS, past], RESULT, "ids:1=4", &fills), "which is computed from it");
        let two = plan(&[IDS, MASK], RESULT, &["ids:1=4", "mask:1=8"], &fills).unwrap_err();
        wanted(two, "two buckets");
    }

    #[test]
    fn words_are_read() {
        let bucket = Bucket::parse("m/a:b:1=16, 32").unwrap();
        assert_eq!((bucket.input.as_str(), bucket.axis, bucket.lengths), ("m/a:b", 1, vec![16, 32]));
        for text in ["", "x=1", "x:=1", "x:1=", "x:1=0", "x:1=4,4", "x:1=4,2", "x:1=a", "x:-1=2"] {
            assert!(Bucket::parse(text).is_err(), "{text}");
        }
        assert!(Fill::parse("x").is_err() && Fill::parse("=1").is_err() && Fill::parse("x=").is_err());
        let found = signature(&[IDS], RESULT, &[]).unwrap();
        let models = [("bert", &found)];
        let idle = |bucket: &str| {
            let settings = Settings { buckets: vec![Bucket::parse(bucket).unwrap()], ..Settings::default() };
            settings.idle(models.iter().copied())
        };
        assert_eq!((idle("ids:1=4"), idle("bert/ids:1=4")), (None, None));
        assert_eq!(idle("gpt/ids:1=4").as_deref(), Some("--bucket gpt/ids"));
    }
}
