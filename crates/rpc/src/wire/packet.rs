//! Requests and replies: what a packet's body holds.
//!
//! The payloads of copies are not part of these: they go straight between the stream and a tensor ([`frame`](super::frame)).
//!
//! Between two ends of ours the upper half of the code says how deep the packet stands: 0 for what the client asks, 1 for what the
//! server asks while it serves that, and so on. A reply has the depth of its request. TVM's protocol has depth 0 only.

use super::value::write_all;
use super::{Code, Dialect, Limits, Malformed, Reader, Value, WireTensor, Writer};

/// What one end asks of the other.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Begin a session: the version, and how to make it.
    Init {
        /// The version of the protocol.
        version: Vec<u8>,
        /// Nothing, or the name of a constructor and its arguments.
        args: Vec<Value>,
    },
    /// Call a function.
    Call {
        /// Its handle.
        handle: u64,
        /// Its arguments.
        args: Vec<Value>,
    },
    /// Send bytes of a tensor.
    CopyFrom(Copy),
    /// Take bytes of a tensor: the payload, where it was not read straight into the tensor.
    CopyTo(Copy, Vec<u8>),
    /// One of the calls that have a code of their own.
    System(SystemCall),
}

/// Which bytes of which tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    /// The tensor, whose offset counts to where the bytes begin.
    pub tensor: WireTensor,
    /// How many bytes.
    pub bytes: u64,
}

/// A call that has a code of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct SystemCall {
    /// Which.
    pub code: Code,
    /// Its arguments.
    pub args: Vec<Value>,
}

/// What went wrong with a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// The message.
    pub message: String,
    /// The kind of error; TVM's protocol has none.
    pub kind: Option<String>,
    /// Where it happened, most recent call first; TVM's protocol has none.
    pub trace: Option<String>,
}

/// Which request: how deep it stands, and how many its sender asked at that depth before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// How deep.
    pub depth: u16,
    /// How many before it.
    pub number: u64,
}

/// What asks for the end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancel {
    /// Which.
    pub ticket: Ticket,
    /// How many milliseconds it may take to end.
    pub grace_ms: u64,
}

impl Cancel {
    /// Reads a body.
    pub fn read(depth: u16, body: &[u8], limits: &Limits) -> Result<Cancel, Malformed> {
        let mut reader = Reader::new(body, limits);
        let number = reader.u64("the number of a request")?;
        let grace_ms = reader.u64("the time that it may take to end")?;
        reader.end()?;
        Ok(Cancel { ticket: Ticket { depth, number }, grace_ms })
    }

    /// The packet.
    pub fn packet(&self) -> Vec<u8> {
        let mut writer = Writer::packet(Code::Cancel, self.ticket.depth);
        writer.u64(self.ticket.number);
        writer.u64(self.grace_ms);
        writer.finish(0)
    }
}

/// What a request came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// Its values: for a system call exactly one, for a call what [`Returned`] says.
    Return(Vec<Value>),
    /// An error.
    Exception(Failure),
    /// That many bytes, which follow.
    CopyAck(u64),
}

/// The result of a call, as the values of its reply.
pub type Returned = Vec<Value>;

/// What a packet is, before its body is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// What it is for.
    pub code: Code,
    /// How deep it stands.
    pub depth: u16,
}

impl Head {
    /// Reads the word that says both.
    pub fn from_word(word: i32, dialect: Dialect) -> Option<Head> {
        let depth = (word as u32 >> 16) as u16;
        if dialect == Dialect::Tvm && depth != 0 {
            return None;
        }
        let code = Code::from_number(word & 0xffff).filter(|code| dialect == Dialect::Own || !code.is_ours())?;
        Some(Head { code, depth })
    }
}

/// The word that says code and depth.
pub(crate) fn code_word(code: Code, depth: u16) -> i32 {
    ((u32::from(depth) << 16) | code as u32) as i32
}

impl Copy {
    /// Reads tensor and number of bytes.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Copy, Malformed> {
        Ok(Copy { tensor: WireTensor::read(reader)?, bytes: reader.u64("a copy's number of bytes")? })
    }

    fn write(&self, writer: &mut Writer) {
        self.tensor.write(writer);
        writer.u64(self.bytes);
    }
}

impl Request {
    /// What the packet is for.
    pub fn code(&self) -> Code {
        match self {
            Request::Init { .. } => Code::InitServer,
            Request::Call { .. } => Code::CallFunc,
            Request::CopyFrom(_) => Code::CopyFromRemote,
            Request::CopyTo(..) => Code::CopyToRemote,
            Request::System(call) => call.code,
        }
    }

    /// Reads a body.
    pub fn read(code: Code, body: &[u8], dialect: Dialect, limits: &Limits) -> Result<Request, Malformed> {
        let mut reader = Reader::new(body, limits);
        let request = match code {
            Code::InitServer => {
                let version = reader.bytes("the version")?.to_vec();
                Request::Init { version, args: Value::read_all(&mut reader, dialect)? }
            }
            Code::CallFunc => {
                let handle = reader.u64("a function's handle")?;
                Request::Call { handle, args: Value::read_all(&mut reader, dialect)? }
            }
            Code::CopyFromRemote => Request::CopyFrom(Copy::read(&mut reader)?),
            Code::CopyToRemote => {
                let copy = Copy::read(&mut reader)?;
                let payload = reader.rest().to_vec();
                if payload.len() as u64 != copy.bytes {
                    return Err(reader.wrong(format!("a copy of {} bytes brings {}", copy.bytes, payload.len())));
                }
                Request::CopyTo(copy, payload)
            }
            code if code.is_system_call() => {
                Request::System(SystemCall { code, args: Value::read_all(&mut reader, dialect)? })
            }
            code => return Err(reader.wrong(format!("{} is no request", code.name()))),
        };
        reader.end()?;
        Ok(request)
    }

    /// The packet. The payload of a copy is not in it, and is to follow.
    pub fn packet(&self, depth: u16) -> Vec<u8> {
        let mut writer = Writer::packet(self.code(), depth);
        let mut payload = 0;
        match self {
            Request::Init { version, args } => {
                writer.bytes(version);
                write_all(&mut writer, args);
            }
            Request::Call { handle, args } => {
                writer.u64(*handle);
                write_all(&mut writer, args);
            }
            Request::CopyFrom(copy) => copy.write(&mut writer),
            Request::CopyTo(copy, _) => {
                copy.write(&mut writer);
                payload = copy.bytes;
            }
            Request::System(call) => write_all(&mut writer, &call.args),
        }
        writer.finish(payload)
    }
}

impl Reply {
    /// What the packet is for.
    pub fn code(&self) -> Code {
        match self {
            Reply::Return(_) => Code::Return,
            Reply::Exception(_) => Code::Exception,
            Reply::CopyAck(_) => Code::CopyAck,
        }
    }

    /// Reads a body; that of an acknowledged copy is its payload and is not read here.
    pub fn read(code: Code, body: &[u8], dialect: Dialect, limits: &Limits) -> Result<Reply, Malformed> {
        let mut reader = Reader::new(body, limits);
        let values = Value::read_all(&mut reader, dialect)?;
        reader.end()?;
        match code {
            Code::Return => Ok(Reply::Return(values)),
            Code::Exception => Failure::of_values(&values)
                .map(Reply::Exception)
                .ok_or_else(|| reader.wrong("an exception without a message")),
            code => Err(reader.wrong(format!("{} is no reply", code.name()))),
        }
    }

    /// The packet. The payload of an acknowledged copy is to follow.
    pub fn packet(&self, depth: u16, dialect: Dialect) -> Vec<u8> {
        let mut writer = Writer::packet(self.code(), depth);
        match self {
            Reply::Return(values) => write_all(&mut writer, values),
            Reply::Exception(failure) => write_all(&mut writer, &failure.values(dialect)),
            Reply::CopyAck(payload) => return writer.finish(*payload),
        }
        writer.finish(0)
    }
}

impl Failure {
    /// A failure that is a message and a kind.
    pub fn new(kind: &str, message: impl Into<String>) -> Failure {
        Failure { message: message.into(), kind: Some(kind.into()), trace: None }
    }

    fn of_values(values: &[Value]) -> Option<Failure> {
        let text = |value: &Value| value.as_text().map(|text| String::from_utf8_lossy(text).into_owned());
        let message = text(values.first()?)?;
        Some(Failure { message, kind: values.get(1).and_then(text), trace: values.get(2).and_then(text) })
    }

    /// TVM's client reads memory that is not there unless the message is plain text, so a NUL in it is shown.
    fn values(&self, dialect: Dialect) -> Vec<Value> {
        let mut values = vec![Value::RawStr(self.message.replace('\0', "\\0").into())];
        if dialect == Dialect::Own {
            let text = |text: &Option<String>| text.as_ref().map_or(Value::None, |text| Value::text(text));
            values.extend([text(&self.kind), text(&self.trace)]);
        }
        values
    }
}
