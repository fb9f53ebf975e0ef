//! [`Session`]: the client's face.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use relaxide_ffi::{Any, AnyView, Bytes, DataType, Device, Error, ErrorKind, Function, Module, Tensor};

use super::host::Host;
use super::machine::Role;
use super::peer::{Peer, Pending};
use super::remote::{function, session_module, take_slot};
use super::{addresses, convert};
use crate::transport::Link;
use crate::wire::{Code, Copy, Dialect, Limits, Request, SystemCall, VERSION, Value, WireTensor};

/// What a client does with a conversation, whoever holds it.
pub trait SessionCore {
    /// A call that has a code of its own: the one value of its reply.
    fn system(&self, code: Code, args: Vec<Value>) -> Result<Value, Error>;

    /// The far side's global function of a name.
    fn global_function(&self, name: &str) -> Result<Option<Function>, Error>;

    /// The bytes of a copy that go into one packet, for a tensor of that many dimensions.
    fn copy_block(&self, ndim: usize) -> Result<usize, Error>;
}

/// What a far side that is small says of its packets.
const PACKET_LIMIT: &str = "tvm.rpc.server.GetCRTMaxPacketSize";

impl SessionCore for Arc<Peer> {
    fn system(&self, code: Code, args: Vec<Value>) -> Result<Value, Error> {
        let mut values = self.ask(&Request::System(SystemCall { code, args }))?.into_iter();
        match (values.next(), values.next()) {
            (Some(value), None) => Ok(value),
            _ => {
                let message = format!("{} answers {} with other than one value", self.name(), code.name());
                Err(Error::new(ErrorKind::RuntimeError, message))
            }
        }
    }

    fn global_function(&self, name: &str) -> Result<Option<Function>, Error> {
        let handle = self.system(Code::GetGlobalFunc, vec![Value::text(name)])?.address()?;
        Ok((handle != 0).then(|| function(self, handle)))
    }

    fn copy_block(&self, ndim: usize) -> Result<usize, Error> {
        let limit = match self.packet_limit() {
            Some(limit) => limit,
            None => {
                let limit = match self.global_function(PACKET_LIMIT)? {
                    Some(function) => function.call(&[])?.to::<i64>()?,
                    None => i64::MAX,
                };
                self.set_packet_limit(u64::try_from(limit).unwrap_or(0))
            }
        };
        let block = limit.checked_sub(WireTensor::copy_overhead(ndim)).filter(|block| *block > 0);
        let block = block.ok_or_else(|| {
            let message = format!("Invalid block size! {} takes packets of {limit} bytes", self.name());
            Error::new(ErrorKind::InternalError, message)
        })?;
        Ok(usize::try_from(block).unwrap_or(usize::MAX))
    }
}

/// A session with a server. Copies are the same session, which ends with the last of them and of what came from it.
#[derive(Clone)]
pub struct Session(Arc<Peer>);

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session({})", self.0.name())
    }
}

impl Session {
    /// Begins a session over a link whose handshake is done. `constructor` is nothing, or the name of a far function that makes the
    /// session, and its arguments.
    pub fn begin(link: Link, dialect: Dialect, limits: Limits, constructor: &[AnyView<'_>]) -> Result<Session, Error> {
        addresses::enter();
        let peer = Peer::new(link, Role::Client, dialect, limits, Host::nothing());
        take_slot(&peer)?;
        let args = constructor.iter().map(|arg| constructor_argument(&peer, *arg)).collect::<Result<Vec<_>, _>>()?;
        let reply = peer.ask(&Request::Init { version: VERSION.into(), args })?;
        if reply.first().and_then(Value::as_text) == Some(b"tvm") {
            peer.set_dialect(Dialect::Tvm);
        }
        Ok(Session(peer))
    }

    /// The session that a module stands for.
    pub fn of_module(module: &Module) -> Option<Session> {
        let remote = module.downcast::<super::remote::RemoteModule>()?;
        remote.is_session().then(|| Session(Arc::clone(remote.peer())))
    }

    /// The session as a module, whose functions are the far side's global ones.
    pub fn module(&self) -> Module {
        session_module(&self.0)
    }

    /// The conversation.
    pub fn peer(&self) -> &Arc<Peer> {
        &self.0
    }

    /// How long a reply may take.
    pub fn set_timeout(&self, timeout: Option<Duration>) {
        self.0.set_timeout(timeout);
    }

    /// The far side's global function of a name.
    pub fn find_function(&self, name: &str) -> Result<Option<Function>, Error> {
        self.0.global_function(name)
    }

    /// The far side's global function of a name; an error if there is none.
    pub fn function(&self, name: &str) -> Result<Function, Error> {
        self.find_function(name)?
            .ok_or_else(|| Error::new(ErrorKind::AttributeError, format!("{} has no function {name}", self.0.name())))
    }

    /// A device of the far side, as this process names it.
    pub fn device(&self, device: Device) -> Result<Device, Error> {
        addresses::masked(&self.0, device)
    }

    /// The position of the session among the process's, which is in the names of its devices.
    pub fn slot(&self) -> Result<usize, Error> {
        super::remote::slot_of(&self.0)
    }

    /// An uninitialised tensor on a device of the far side.
    pub fn empty(&self, shape: &[i64], dtype: DataType, device: Device, scope: Option<&str>) -> Result<Tensor, Error> {
        let device = device.remote().map_or(device, |(_, there)| there);
        addresses::empty_tensor(&self.0, shape, dtype, device, scope)
    }

    /// A copy of a tensor on a device of the far side.
    pub fn tensor(&self, tensor: &Tensor, device: Device) -> Result<Tensor, Error> {
        let out = self.empty(tensor.shape(), tensor.dtype(), device, None)?;
        relaxide_runtime::device::copy_into(tensor, &out)?;
        Ok(out)
    }

    fn call(&self, name: &str, args: &[AnyView<'_>]) -> Result<Any, Error> {
        self.function(name)?.call(args)
    }

    /// Writes a file into the session's folder.
    pub fn upload(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let (name, bytes) = (Any::from(name), Any::from(Bytes::new(bytes)));
        self.call("tvm.rpc.server.upload", &[name.as_view(), bytes.as_view()]).map(drop)
    }

    /// Writes a file of this machine into the session's folder, under its own name; returns that.
    pub fn upload_file(&self, path: &Path) -> Result<String, Error> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = std::fs::read(path)
            .map_err(|error| Error::new(ErrorKind::OSError, format!("cannot read {}: {error}", path.display())))?;
        self.upload(&name, &bytes)?;
        Ok(name)
    }

    /// Reads a file of the session's folder.
    pub fn download(&self, name: &str) -> Result<Bytes, Error> {
        self.call("tvm.rpc.server.download", &[Any::from(name).as_view()])?.to()
    }

    /// Removes a file of the session's folder.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        self.call("tvm.rpc.server.remove", &[Any::from(name).as_view()]).map(drop)
    }

    /// Loads a file of the session's folder as a module there.
    pub fn load_module(&self, name: &str) -> Result<Module, Error> {
        self.call("tvm.rpc.server.load_module", &[Any::from(name).as_view()])?.to()
    }

    /// Sends the elements of a tensor here to one there, of as many bytes, without waiting: what is asked next is asked behind it, and
    /// the session's computations go on meanwhile. The outcome is known at the next request, or after [`settle`](Self::settle).
    pub fn copy_ahead(&self, from: &Tensor, to: &Tensor) -> Result<Pending, Error> {
        let wire = addresses::describe(&self.0, to)?;
        let bytes = from.as_bytes()?;
        let most = self.0.copy_block(wire.shape.len())?;
        if wire.byte_size() != Some(bytes.len() as u64) || bytes.len() > most {
            let message = format!("{} bytes cannot be sent ahead to {to:?} in one packet of {most}", bytes.len());
            return Err(Error::new(ErrorKind::ValueError, message));
        }
        let copy = Copy { tensor: wire, bytes: bytes.len() as u64 };
        self.0.ask_ahead(&Request::CopyTo(copy, Vec::new()), bytes)
    }

    /// Waits for all that was sent ahead.
    pub fn settle(&self) -> Result<(), Error> {
        self.0.settle()
    }

    /// Cancels the calls that run in the session and those that wait for their turn, from any thread: they fail with an error of the kind
    /// `CancelledError`, and the session goes on. The virtual machine stops between two instructions, and a kernel that computes ends
    /// first; a call that does not end within the grace takes the session with it. One of the calls alone is cancelled by what
    /// [`Started::start`](super::call::Started::start) gives. An error where the protocol is TVM's, which cannot.
    pub fn cancel(&self, grace: Duration) -> Result<(), Error> {
        self.0.cancel(grace)
    }

    /// Ends the session now, from any thread. Calls that run in it fail with an error of the kind `CancelledError`, and the server ends
    /// the session's process, so that what it computes does not go on. What came from it fails from here on.
    pub fn close(&self) {
        self.0.close();
    }
}

/// Text goes as an object here, as TVM sends it.
fn constructor_argument(peer: &Arc<Peer>, arg: AnyView<'_>) -> Result<Value, Error> {
    match arg.as_str() {
        Some(text) => Ok(Value::Str(text.into())),
        None => convert::to_far(peer, arg),
    }
}
