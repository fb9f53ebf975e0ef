//! A request for inference: JSON, and behind it the tensors that are in binary form.
//!
//! ```text
//! Inference-Header-Content-Length: N
//!
//! {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "parameters": {"binary_data_size": 8}}]}········
//! └──────────────────────────────────── N bytes ────────────────────────────────────────────────────────┘└ x  ──┘
//! ```

use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::elements;
use super::fields::{Fields, List, parse};
use crate::service::{Call, no_overrides, no_sequences, no_shared_memory};
use crate::{Datatype, Error, Tensor};

/// How many bytes of a body are JSON. `header` is what the header `Inference-Header-Content-Length` says.
pub fn json_length(body: &Bytes, header: Option<&str>) -> Result<usize, Error> {
    let Some(text) = header else { return Ok(body.len()) };
    text.trim().parse::<usize>().ok().filter(|length| *length <= body.len()).ok_or_else(|| {
        let bytes = body.len();
        Error::invalid(format!("Inference-Header-Content-Length is {text:?}, but the body has {bytes} bytes"))
    })
}

/// Reads a request.
pub fn read(body: &Bytes, header: Option<&str>) -> Result<Call, Error> {
    let length = json_length(body, header)?;
    let mut binary = body.slice(length..);
    let text = std::str::from_utf8(&body[..length]).map_err(|_| Error::invalid("the request is not UTF-8"))?;
    let fields: Fields<'_> = parse(text, "the request")?;
    let parameters = parameters(&fields, "the request")?;
    let mut call = Call { id: fields.read("id")?.unwrap_or_default(), ..Call::default() };
    call.is_binary = parameters.read("binary_data_output")?.unwrap_or(false);
    call.timeout = parameters.read("timeout")?.filter(|time| *time > 0).map(Duration::from_micros);
    refuse_sequences(&parameters)?;
    let inputs = fields.get("inputs").ok_or_else(|| Error::invalid("the request has no `inputs`"))?;
    for input in list(inputs, "inputs")? {
        call.inputs.push(read_input(&parse(input.get(), "an input")?, &mut binary)?);
    }
    if !binary.is_empty() {
        let message = format!("{} bytes stand behind the tensors that have a binary_data_size", binary.len());
        return Err(Error::invalid(message));
    }
    let outputs = fields.get("outputs").map(|outputs| list(outputs, "outputs")).transpose()?.unwrap_or_default();
    for output in outputs {
        let output: Fields<'_> = parse(output.get(), "an output")?;
        let name: String = output.read("name")?.ok_or_else(|| Error::invalid("an output has no `name`"))?;
        let parameters = self::parameters(&output, &name)?;
        refuse_shared_memory(&parameters)?;
        if parameters.get("classification").is_some_and(|count| count.get() != "0") {
            let message = format!("output {name:?}: classification is not done here; ask for the tensor");
            return Err(Error::invalid(message));
        }
        call.outputs.push((name, parameters.read("binary_data")?));
    }
    Ok(call)
}

/// Whether an index is to have models that are ready only. There may be no body.
pub(crate) fn wants_ready(body: &Bytes) -> Result<bool, Error> {
    Ok(of_body(body)?.read("ready")?.unwrap_or(false))
}

/// Fails if a load asks for more than a model as its file is.
pub(crate) fn check_load(body: &Bytes) -> Result<(), Error> {
    let fields = of_body(body)?;
    match fields.get("parameters").map(|parameters| parameters.get()) {
        None | Some("null" | "{}") => Ok(()),
        Some(_) => Err(no_overrides()),
    }
}

fn of_body(body: &Bytes) -> Result<Fields<'_>, Error> {
    let text = std::str::from_utf8(body).map_err(|_| Error::invalid("the request is not UTF-8"))?;
    if text.trim().is_empty() { Ok(Fields::default()) } else { parse(text, "the request") }
}

fn read_input(input: &Fields<'_>, binary: &mut Bytes) -> Result<(String, Tensor), Error> {
    let name: String = input.read("name")?.ok_or_else(|| Error::invalid("an input has no `name`"))?;
    let datatype: String = input.read("datatype")?.unwrap_or_default();
    let datatype = Datatype::of_input(&name, &datatype)?;
    let shape: Option<Vec<i64>> = input.read("shape")?;
    let shape = shape.ok_or_else(|| Error::invalid(format!("input {name:?} has no `shape`")))?;
    let parameters = self::parameters(input, &name)?;
    refuse_shared_memory(&parameters)?;
    let data = match (parameters.read::<usize>("binary_data_size")?, input.get("data")) {
        (Some(_), Some(_)) => {
            return Err(Error::invalid(format!(
                "input {name:?} has both `data` and binary_data_size: give one of them"
            )));
        }
        (Some(size), None) => {
            let size = Some(size).filter(|size| *size <= binary.len()).ok_or_else(|| {
                let left = binary.len();
                Error::invalid(format!(
                    "the binary_data_size of input {name:?} is not within the {left} bytes that are left"
                ))
            })?;
            binary.split_to(size)
        }
        (None, Some(data)) => elements::read(&name, datatype, data.get())?.into(),
        (None, None) => return Err(Error::invalid(format!("input {name:?} has no `data` and no binary_data_size"))),
    };
    let tensor = Tensor::new(&name, datatype, shape, data)?;
    Ok((name, tensor))
}

fn list<'a>(value: &'a RawValue, what: &str) -> Result<Vec<&'a RawValue>, Error> {
    parse::<List<'a>>(value.get(), &format!("`{what}`")).map(|list| list.0)
}

fn parameters<'a>(fields: &Fields<'a>, of: &str) -> Result<Fields<'a>, Error> {
    let read = |value: &'a RawValue| parse(value.get(), &format!("`parameters` of {of}"));
    fields.get("parameters").map(read).transpose().map(Option::unwrap_or_default)
}

/// Sequences have state between requests, which models here do not have.
fn refuse_sequences(parameters: &Fields<'_>) -> Result<(), Error> {
    let id = parameters.get("sequence_id");
    if id.is_some_and(|id| !matches!(id.get(), "0" | "\"\"")) {
        return Err(no_sequences());
    }
    Ok(())
}

fn refuse_shared_memory(parameters: &Fields<'_>) -> Result<(), Error> {
    if parameters.get("shared_memory_region").is_some() {
        return Err(no_shared_memory());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(text: &str, binary: &[u8], header: Option<&str>) -> Result<Call, String> {
        let body = Bytes::from([text.as_bytes(), binary].concat());
        read(&body, header).map_err(|error| error.message)
    }

    const BINARY: &str = r#"{"inputs":[{"name":"x","datatype":"INT8","shape":[2],"parameters":{"binary_data_size":2}}],"parameters":{"binary_data_output":true}}"#;

    #[test]
    fn both_forms_are_read() {
        let text = r#"{"id":"7","inputs":[{"shape":[1,2],"data":[[1,2.5]],"name":"x","datatype":"FP32"}],
            "outputs":[{"name":"y","parameters":{"binary_data":false}}],"parameters":{"timeout":1500}}"#;
        let call = of(text, &[], None).unwrap();
        assert_eq!((call.id.as_str(), call.timeout), ("7", Some(Duration::from_micros(1500))));
        assert_eq!(call.inputs[0].1.data()[..], [1f32.to_le_bytes(), 2.5f32.to_le_bytes()].concat());
        assert_eq!(call.outputs, [("y".to_string(), Some(false))]);
        let call = of(BINARY, &[3, 4], Some(&BINARY.len().to_string())).unwrap();
        assert_eq!(call.inputs[0].1.data()[..], [3, 4]);
        assert!(call.is_binary);
    }

    #[test]
    fn lengths_that_do_not_add_up_are_refused() {
        let length = BINARY.len().to_string();
        assert!(of(BINARY, &[3], Some(&length)).unwrap_err().contains("binary_data_size"));
        assert!(of(BINARY, &[3, 4, 5], Some(&length)).unwrap_err().contains("1 bytes stand behind"));
        assert!(of(BINARY, &[3, 4], Some("99999")).unwrap_err().contains("Inference-Header-Content-Length"));
        assert!(of(BINARY, &[3, 4], Some("-1")).is_err());
        assert!(of(BINARY, &[3, 4], None).is_err());
    }

    #[test]
    fn what_is_missing_or_not_done_is_named() {
        let input =
            |rest: &str| of(&format!(r#"{{"inputs":[{{"name":"x","shape":[1]{rest}}}]}}"#), &[], None).unwrap_err();
        assert!(input("").contains("there are: BOOL"));
        assert!(input(r#","datatype":"FP32""#).contains("no `data`"));
        assert!(input(r#","datatype":"FP32","data":[1,2]"#).contains("takes 4 bytes, but 8"));
        assert!(input(r#","datatype":"FP32","parameters":{"shared_memory_region":"r"}"#).contains("shared memory"));
        assert!(of("{}", &[], None).unwrap_err().contains("no `inputs`"));
        assert!(of(r#"{"inputs":[],"parameters":{"sequence_id":3}}"#, &[], None).unwrap_err().contains("sequence"));
        assert!(of(&"[".repeat(100_000), &[], None).is_err());
        let deep =
            format!(r#"{{"inputs":[{{"name":"x","datatype":"FP32","shape":[1],"data":{}}}]}}"#, "[".repeat(50_000));
        assert!(of(&deep, &[], None).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_call_or_an_error(
            bytes in prop::collection::vec(any::<u8>(), 0..200), header in prop::option::of("[0-9]{0,4}"),
        ) {
            let _ = read(&bytes.into(), header.as_deref());
        }

        #[test]
        fn damaged_requests_are_a_call_or_an_error(at in 0usize..200, to in any::<u8>(), cut in 0usize..200, size in 0usize..200) {
            let mut body = [BINARY.as_bytes(), &[3, 4]].concat();
            let place = at % body.len();
            body[place] = to;
            body.truncate(body.len().saturating_sub(cut % 8));
            let _ = read(&body.into(), Some(&size.to_string()));
        }
    }
}
