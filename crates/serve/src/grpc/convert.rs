//! Messages of calls, to and from what the service takes.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use super::messages::{
    BatchStatistics, Choice, Contents, DurationStatistics, InferRequest, InferResponse, InferTensor, ModelStatistics,
    Parameter, RequestStatistics, Statistics,
};
use crate::service::{Call, MODEL_VERSION, no_sequences, no_shared_memory};
use crate::statistics::{Computed, Counts, Total};
use crate::tensor::push_text;
use crate::{Datatype, Error, Tensor};

/// Bytes that a part of a message may take in memory: a tensor of a request is the largest.
const PART: usize = 512;

/// Parts of messages that have parts themselves, by what they are and the number of the field: `(where, field, what it is)`.
const INSIDE: &[(Level, u32, Level)] = &[
    (Level::Request, 4, Level::Other),
    (Level::Request, 5, Level::Tensor),
    (Level::Request, 6, Level::Output),
    (Level::Output, 2, Level::Other),
    (Level::Tensor, 4, Level::Other),
    (Level::Tensor, 5, Level::Contents),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Request,
    Tensor,
    Output,
    Contents,
    Other,
}

/// Bytes that a message may take when it is read. Two bytes can be a tensor that is empty, and one a number of eight bytes.
pub fn weight(message: &Bytes) -> Result<usize, Error> {
    weight_of(Level::Request, message)
}

fn weight_of(level: Level, message: &[u8]) -> Result<usize, Error> {
    let broken = |error: prost::DecodeError| Error::invalid(format!("the message is no ModelInferRequest: {error}"));
    let mut rest = message;
    let mut weight = 0usize;
    while !rest.is_empty() {
        let (field, kind) = decode_key(&mut rest).map_err(broken)?;
        if kind != WireType::LengthDelimited {
            skip_field(kind, field, &mut rest, DecodeContext::default()).map_err(broken)?;
            weight = weight.saturating_add(size_of::<u64>());
            continue;
        }
        let length = usize::try_from(decode_varint(&mut rest).map_err(broken)?).ok();
        let (part, behind) = length.and_then(|length| rest.split_at_checked(length)).ok_or_else(|| {
            Error::invalid("the message is no ModelInferRequest: a part of it is longer than what came")
        })?;
        rest = behind;
        let own = match INSIDE.iter().find(|(at, number, _)| *at == level && *number == field) {
            Some((.., inside)) => weight_of(*inside, part)?,
            // Numbers in a row, of the shape or of elements.
            None if level == Level::Contents || level == Level::Tensor => part.len().saturating_mul(size_of::<u64>()),
            None => part.len(),
        };
        weight = weight.saturating_add(PART).saturating_add(own);
    }
    Ok(weight)
}

/// Reads a message: the model's name and version, and the call.
pub fn read(message: Bytes) -> Result<(String, String, Call), Error> {
    let request = InferRequest::decode(message)
        .map_err(|error| Error::invalid(format!("the message is no ModelInferRequest: {error}")))?;
    let mut call = Call { id: request.id, timeout: timeout(&request.parameters)?, ..Call::default() };
    match request.parameters.get("sequence_id").and_then(|id| id.choice.as_ref()) {
        None | Some(Choice::Int64(0) | Choice::Uint64(0)) => {}
        Some(Choice::Text(text)) if text.is_empty() => {}
        Some(_) => {
            return Err(no_sequences());
        }
    }
    let raw = request.raw_input_contents;
    if !raw.is_empty() && raw.len() != request.inputs.len() {
        let (raw, inputs) = (raw.len(), request.inputs.len());
        return Err(Error::invalid(format!(
            "there are {raw} raw_input_contents for {inputs} inputs: give one for each"
        )));
    }
    let mut raw = raw.into_iter();
    for input in request.inputs {
        let name = input.name.clone();
        call.inputs.push((name, read_input(input, raw.next())?));
    }
    for output in request.outputs {
        refuse_shared_memory(&output.parameters)?;
        call.outputs.push((output.name, None));
    }
    Ok((request.model_name, request.model_version, call))
}

fn read_input(input: InferTensor, raw: Option<Bytes>) -> Result<Tensor, Error> {
    let InferTensor { name, datatype, shape, parameters, contents } = input;
    refuse_shared_memory(&parameters)?;
    let datatype = Datatype::of_input(&name, &datatype)?;
    let data = match (raw, contents) {
        (Some(_), Some(contents)) if contents != Contents::default() => {
            return Err(Error::invalid(format!(
                "input {name:?} has contents and raw_input_contents: give one of them"
            )));
        }
        (Some(raw), _) => raw,
        (None, contents) => elements(&name, datatype, &contents.unwrap_or_default())?.into(),
    };
    Tensor::new(&name, datatype, shape, data)
}

/// The bytes of elements from the field of their type.
fn elements(name: &str, datatype: Datatype, contents: &Contents) -> Result<Vec<u8>, Error> {
    macro_rules! bytes {
        ($values:expr) => {
            $values.iter().flat_map(|value| value.to_le_bytes()).collect()
        };
        ($values:expr, $ty:ty) => {{
            let mut data = Vec::new();
            for value in $values {
                let narrow = <$ty>::try_from(*value).map_err(|_| {
                    Error::invalid(format!("input {name:?} has the element {value}, which is no {}", datatype.name()))
                })?;
                data.extend_from_slice(&narrow.to_le_bytes());
            }
            data
        }};
    }
    Ok(match datatype {
        Datatype::Bool => contents.bools.iter().map(|value| u8::from(*value)).collect(),
        Datatype::Int8 => bytes!(&contents.ints, i8),
        Datatype::Int16 => bytes!(&contents.ints, i16),
        Datatype::Int32 => bytes!(contents.ints),
        Datatype::Int64 => bytes!(contents.longs),
        Datatype::Uint8 => bytes!(&contents.uints, u8),
        Datatype::Uint16 => bytes!(&contents.uints, u16),
        Datatype::Uint32 => bytes!(contents.uints),
        Datatype::Uint64 => bytes!(contents.ulongs),
        Datatype::Fp32 => bytes!(contents.floats),
        Datatype::Fp64 => bytes!(contents.doubles),
        Datatype::Fp16 | Datatype::Bf16 => {
            let message = format!(
                "input {name:?} of {} has no contents in the protocol: use raw_input_contents",
                datatype.name()
            );
            return Err(Error::invalid(message));
        }
        Datatype::Bytes => {
            let mut data = Vec::new();
            for text in &contents.texts {
                push_text(&mut data, text)?;
            }
            data
        }
    })
}

fn timeout(parameters: &HashMap<String, Parameter>) -> Result<Option<Duration>, Error> {
    let Some(parameter) = parameters.get("timeout") else { return Ok(None) };
    let micros = match parameter.choice {
        Some(Choice::Int64(time)) => u64::try_from(time).ok(),
        Some(Choice::Uint64(time)) => Some(time),
        _ => None,
    };
    let micros = micros.ok_or_else(|| Error::invalid("timeout is a number of microseconds"))?;
    Ok(Some(micros).filter(|time| *time > 0).map(Duration::from_micros))
}

fn refuse_shared_memory(parameters: &HashMap<String, Parameter>) -> Result<(), Error> {
    if parameters.contains_key("shared_memory_region") {
        return Err(no_shared_memory());
    }
    Ok(())
}

/// The message of a result.
pub(crate) fn response(model: &str, id: String, outputs: Vec<(String, Tensor, bool)>) -> InferResponse {
    let mut response = InferResponse {
        model_name: model.to_owned(),
        model_version: MODEL_VERSION.to_owned(),
        id,
        ..InferResponse::default()
    };
    for (name, tensor, _) in outputs {
        response.outputs.push(InferTensor {
            name,
            datatype: tensor.datatype().name().to_owned(),
            shape: tensor.shape().to_vec(),
            ..InferTensor::default()
        });
        response.raw_output_contents.push(tensor.data().clone());
    }
    response
}

/// The message of what is counted.
pub(crate) fn statistics(models: Vec<(String, Counts)>) -> Statistics {
    let total = |total: Total| Some(DurationStatistics { count: total.count, nanos: total.nanos });
    let of_model = |(name, counts): (String, Counts)| {
        let Counts { last, inferences, executions, success, failure, queue, computed, batches } = counts;
        let requests = RequestStatistics {
            success: total(success),
            failure: total(failure),
            queue: total(queue),
            input: total(computed.input),
            run: total(computed.run),
            output: total(computed.output),
        };
        let batch = |(rows, computed): (usize, Computed)| BatchStatistics {
            rows: rows as u64,
            input: total(computed.input),
            run: total(computed.run),
            output: total(computed.output),
        };
        ModelStatistics {
            name,
            version: MODEL_VERSION.to_owned(),
            last_inference: last,
            inferences,
            executions,
            requests: Some(requests),
            batches: batches.into_iter().map(batch).collect(),
        }
    };
    Statistics { models: models.into_iter().map(of_model).collect() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn request(datatype: &str, contents: Option<Contents>, raw: Vec<Bytes>) -> InferRequest {
        let input = InferTensor {
            name: "x".into(),
            datatype: datatype.into(),
            shape: vec![2],
            contents,
            ..InferTensor::default()
        };
        InferRequest {
            model_name: "m".into(),
            id: "7".into(),
            inputs: vec![input],
            raw_input_contents: raw,
            ..InferRequest::default()
        }
    }

    fn of(request: &InferRequest) -> Result<Call, String> {
        read(request.encode_to_vec().into()).map(|(_, _, call)| call).map_err(|error| error.message)
    }

    #[test]
    fn both_forms_are_read() {
        let ints = Contents { ints: vec![-1, 7], ..Contents::default() };
        let call = of(&request("INT8", Some(ints.clone()), Vec::new())).unwrap();
        assert_eq!((call.id.as_str(), &call.inputs[0].1.data()[..]), ("7", &[255, 7][..]));
        let call = of(&request("INT8", None, vec![Bytes::from_static(&[1, 2])])).unwrap();
        assert_eq!(call.inputs[0].1.data()[..], [1, 2]);
        let texts = Contents { texts: vec!["a".into(), "é".into()], ..Contents::default() };
        let call = of(&request("BYTES", Some(texts), Vec::new())).unwrap();
        assert_eq!(call.inputs[0].1.texts().collect::<Vec<_>>(), ["a", "é"]);
        for (datatype, contents, raw, wanted) in [
            ("INT8", Some(Contents { ints: vec![1, 200], ..Contents::default() }), vec![], "200, which is no INT8"),
            ("UINT8", Some(ints.clone()), vec![], "takes 2 bytes, but 0"),
            ("INT8", Some(ints), vec![Bytes::from_static(&[1, 2])], "give one of them"),
            ("FP16", None, vec![], "use raw_input_contents"),
            ("FP99", None, vec![], "there are: BOOL"),
            ("INT8", None, vec![Bytes::new(), Bytes::new()], "give one for each"),
        ] {
            let message = of(&request(datatype, contents, raw)).unwrap_err();
            assert!(message.contains(wanted), "{message}");
        }
    }

    #[test]
    fn what_grows_in_memory_is_weighed() {
        let request = request("INT8", None, vec![Bytes::from(vec![0; 4096])]).encode_to_vec();
        assert!(weight(&request.into()).unwrap() < 16_384);
        // Empty tensors, texts and numbers of one byte.
        assert!(weight(&[0x2a, 0].repeat(1000).into()).unwrap() >= 1000 * size_of::<InferTensor>());
        let texts = Contents { texts: vec![Bytes::new(); 1000], ..Contents::default() };
        let longs = Contents { longs: vec![1; 1000], ..Contents::default() };
        for contents in [texts, longs] {
            let message = super::tests::request("BYTES", Some(contents), Vec::new()).encode_to_vec();
            assert!(weight(&message.into()).unwrap() >= 8000);
        }
        assert!(weight(&Bytes::from_static(&[0x2a, 9])).is_err());
        assert!(size_of::<InferTensor>() <= PART);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_call_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let bytes = Bytes::from(bytes);
            let _ = weight(&bytes);
            let _ = read(bytes);
        }

        #[test]
        fn damaged_messages_are_a_call_or_an_error(at in 0usize..200, to in any::<u8>()) {
            let floats = Contents { floats: vec![1.0, 2.0], ..Contents::default() };
            let mut message = request("FP32", Some(floats), Vec::new()).encode_to_vec();
            let place = at % message.len();
            message[place] = to;
            let _ = read(message.into());
        }
    }
}
