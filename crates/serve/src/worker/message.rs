//! What an engine and its worker say to each other: a length in eight bytes, a kind in one, and what the kind has.
//!
//! All numbers are little endian. A tensor is its type in one byte, its rank in one, its lengths in eight each, the number of its bytes in
//! eight, and these. Readers allocate no more than has come.

use std::io::{self, Read, Write};

use bytes::{Buf, Bytes};

use crate::{Datatype, Error, Fault, Tensor};

/// What an engine asks.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// To load a model under a number, with weights of that file where they are apart.
    Load(u64, String, Option<String>),
    /// To run the model of a number.
    Run(u64, Vec<Tensor>),
    /// To forget it.
    Forget(u64),
}

/// What a worker answers to a load and to a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The model is loaded.
    Ready,
    /// What the model returned.
    Outputs(Vec<Tensor>),
    /// It failed.
    Failed(Error),
}

impl Order {
    /// As a message.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = MessageWriter::begin();
        match self {
            Order::Load(id, path, weights) => {
                out.byte(0).number(*id).text(path).byte(u8::from(weights.is_some()));
                weights.iter().for_each(|weights| {
                    out.text(weights);
                });
            }
            Order::Run(id, inputs) => {
                out.byte(1).number(*id).tensors(inputs);
            }
            Order::Forget(id) => {
                out.byte(2).number(*id);
            }
        }
        out.end()
    }

    /// The order of a message without its length.
    pub fn decode(message: Bytes) -> Result<Order, Error> {
        let mut from = MessageReader(message);
        let order = match from.byte()? {
            0 => {
                let (id, path) = (from.number()?, from.text()?);
                let weights = if from.byte()? == 0 { None } else { Some(from.text()?) };
                Order::Load(id, path, weights)
            }
            1 => Order::Run(from.number()?, from.tensors()?),
            2 => Order::Forget(from.number()?),
            _ => return Err(broken()),
        };
        from.end(order)
    }
}

impl Answer {
    /// As a message.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = MessageWriter::begin();
        match self {
            Answer::Ready => {
                out.byte(0);
            }
            Answer::Outputs(outputs) => {
                out.byte(1).tensors(outputs);
            }
            Answer::Failed(error) => {
                out.byte(2).byte(error.fault.to_byte()).text(&error.message);
            }
        }
        out.end()
    }

    /// The answer of a message without its length.
    pub fn decode(message: Bytes) -> Result<Answer, Error> {
        let mut from = MessageReader(message);
        let answer = match from.byte()? {
            0 => Answer::Ready,
            1 => Answer::Outputs(from.tensors()?),
            2 => {
                let fault = Fault::of_byte(from.byte()?).ok_or_else(broken)?;
                Answer::Failed(Error::new(fault, from.text()?))
            }
            _ => return Err(broken()),
        };
        from.end(answer)
    }
}

/// Sends a message.
pub(crate) fn send(mut to: impl Write, message: &[u8]) -> io::Result<()> {
    to.write_all(message)
}

/// Waits for a message; nothing where the other end has ended between two.
pub(crate) fn receive(mut from: impl Read) -> io::Result<Option<Bytes>> {
    let mut length = [0; 8];
    let mut read = 0;
    while read < length.len() {
        match from.read(&mut length[read..]) {
            Ok(0) if read == 0 => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => read += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let length = u64::from_le_bytes(length);
    let mut message = Vec::new();
    from.take(length).read_to_end(&mut message)?;
    if message.len() as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(message.into()))
}

struct MessageWriter(Vec<u8>);

impl MessageWriter {
    fn begin() -> MessageWriter {
        MessageWriter(vec![0; 8])
    }

    fn end(mut self) -> Vec<u8> {
        let length = (self.0.len() - 8) as u64;
        self.0[..8].copy_from_slice(&length.to_le_bytes());
        self.0
    }

    fn byte(&mut self, byte: u8) -> &mut Self {
        self.0.push(byte);
        self
    }

    fn number(&mut self, number: u64) -> &mut Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    fn tensors(&mut self, tensors: &[Tensor]) -> &mut Self {
        self.0.reserve(tensors.iter().map(|tensor| tensor.data().len() + 64).sum());
        self.number(tensors.len() as u64);
        for tensor in tensors {
            // A tensor's rank is limited.
            self.byte(tensor.datatype().to_byte()).byte(tensor.shape().len() as u8);
            for length in tensor.shape() {
                self.number(*length as u64);
            }
            self.bytes(tensor.data());
        }
        self
    }
}

struct MessageReader(Bytes);

#[cold]
fn broken() -> Error {
    Error::new(Fault::Internal, "a message between server and worker is broken")
}

impl MessageReader {
    fn end<T>(&self, value: T) -> Result<T, Error> {
        if self.0.is_empty() { Ok(value) } else { Err(broken()) }
    }

    fn byte(&mut self) -> Result<u8, Error> {
        self.0.try_get_u8().map_err(|_| broken())
    }

    fn number(&mut self) -> Result<u64, Error> {
        self.0.try_get_u64_le().map_err(|_| broken())
    }

    fn bytes(&mut self) -> Result<Bytes, Error> {
        let length = usize::try_from(self.number()?).map_err(|_| broken())?;
        if length > self.0.len() {
            return Err(broken());
        }
        Ok(self.0.split_to(length))
    }

    fn text(&mut self) -> Result<String, Error> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| broken())
    }

    fn tensors(&mut self) -> Result<Vec<Tensor>, Error> {
        let count = self.number()?;
        let mut tensors = Vec::new();
        for _ in 0..count {
            let datatype = Datatype::of_byte(self.byte()?).ok_or_else(broken)?;
            let rank = self.byte()?;
            let shape = (0..rank).map(|_| Ok(self.number()? as i64)).collect::<Result<Vec<_>, Error>>()?;
            tensors.push(Tensor::new("", datatype, shape, self.bytes()?)?);
        }
        Ok(tensors)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn body(message: &[u8]) -> Bytes {
        receive(message).unwrap().unwrap()
    }

    fn tensors() -> Vec<Tensor> {
        let floats = Tensor::new("", Datatype::Fp32, vec![2, 1], vec![1; 8].into()).unwrap();
        vec![floats, Tensor::of_texts("", vec![2], ["a", "bc"]).unwrap()]
    }

    #[test]
    fn messages_survive_the_way() {
        for order in [
            Order::Load(3, "a".into(), Some("b".into())),
            Order::Load(3, "a".into(), None),
            Order::Run(7, tensors()),
            Order::Forget(1),
        ] {
            assert_eq!(Order::decode(body(&order.encode())).unwrap(), order);
        }
        let failed = Answer::Failed(Error::new(Fault::Timeout, "late"));
        for answer in [Answer::Ready, Answer::Outputs(tensors()), failed] {
            assert_eq!(Answer::decode(body(&answer.encode())).unwrap(), answer);
        }
        assert!(receive(&[][..]).unwrap().is_none());
        assert!(receive(&[1, 0, 0][..]).is_err());
        assert!(receive(&[255; 12][..]).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..96)) {
            let bytes = Bytes::from(bytes);
            if let Ok(order) = Order::decode(bytes.clone()) {
                prop_assert_eq!(Order::decode(body(&order.encode())).unwrap(), order);
            }
            let _ = Answer::decode(bytes);
        }

        #[test]
        fn damaged_messages_are_a_message_or_an_error(at in 0usize..80, to in any::<u8>()) {
            let mut message = Order::Run(7, tensors()).encode();
            let place = at % message.len();
            message[place] = to;
            if let Ok(Some(message)) = receive(&message[..]) {
                let _ = Order::decode(message);
            }
        }
    }
}
