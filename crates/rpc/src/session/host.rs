//! [`Host`]: what the requests of the other end do.
//!
//! A server's host finds functions, allocates memory and copies; a client's serves calls back and no more. A session that was made by
//! a constructor, such as `rpc.Connect`, leads on: its requests go to the session behind it, and what comes back is handed on.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use relaxide_ffi::abi::type_index as index;
use relaxide_ffi::{Any, AnyView, Device, Error, ErrorKind, Function, Module, Tensor, stream};
use relaxide_runtime::device::{Attribute, Stream, copy_tensor, device_api, fill_host};

use super::convert;
use super::export::Exports;
use super::peer::Peer;
use super::remote::RemoteModule;
use crate::server::environment::Environment;
use crate::server::policy::Policy;
use crate::wire::{Code, Copy, Dialect, Request, SystemCall, VERSION, Value, WireTensor};

/// Where requests go.
enum Behind {
    /// Nowhere yet: the session is not begun.
    Nothing,
    /// To this process.
    Here,
    /// To a session of this process.
    Session(Arc<Peer>),
}

/// What serves an end's requests.
pub struct Host {
    exports: Exports,
    environment: Option<Environment>,
    policy: Policy,
    behind: Mutex<Behind>,
    /// 0: no change; 1: TVM's form from here on.
    new_dialect: AtomicU8,
}

/// Bytes of a reply, where they lie.
pub enum ReplyBytes {
    /// In a tensor of the host's memory.
    Tensor(Tensor),
    /// In a copy.
    Copy(Vec<u8>),
}

impl ReplyBytes {
    /// How many.
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        match self {
            // Made of a compact tensor of the host's.
            ReplyBytes::Tensor(tensor) => tensor.as_bytes().unwrap_or_default(),
            ReplyBytes::Copy(bytes) => bytes,
        }
    }
}

/// Fills a place with a copy's payload.
pub type Fill<'a> = &'a mut dyn FnMut(&mut [u8]) -> Result<(), Error>;

impl Host {
    /// A server's.
    pub fn server(environment: Environment, policy: Policy) -> Arc<Host> {
        let exports = Exports::default();
        if let Some(quota) = policy.memory {
            exports.set_quota(quota);
        }
        Arc::new(Host {
            exports,
            environment: Some(environment),
            policy,
            behind: Mutex::new(Behind::Nothing),
            new_dialect: AtomicU8::new(0),
        })
    }

    /// A client's: what it passes to the server can be called, and nothing else.
    pub fn nothing() -> Arc<Host> {
        Arc::new(Host {
            exports: Exports::default(),
            environment: None,
            policy: Policy::default(),
            behind: Mutex::new(Behind::Here),
            new_dialect: AtomicU8::new(0),
        })
    }

    /// What the other end has handles of.
    pub fn exports(&self) -> &Exports {
        &self.exports
    }

    /// Whether tensors of this end can be passed to the other, which then reads and writes them.
    pub fn shares_memory(&self) -> bool {
        self.environment.is_some()
    }

    /// The form that packets have from now on, if it changes.
    pub fn take_new_dialect(&self) -> Option<Dialect> {
        (self.new_dialect.swap(0, Ordering::Relaxed) == 1).then_some(Dialect::Tvm)
    }

    fn session(&self) -> Result<Option<Arc<Peer>>, Error> {
        match &*self.behind.lock().unwrap_or_else(PoisonError::into_inner) {
            Behind::Nothing => {
                let message = "Need to call InitRemoteSession first before any further RPC calls";
                Err(Error::new(ErrorKind::RuntimeError, message))
            }
            Behind::Here => Ok(None),
            Behind::Session(peer) => Ok(Some(Arc::clone(peer))),
        }
    }

    /// Serves a request that is no copy with a payload: the values of its reply.
    pub fn serve(&self, peer: &Arc<Peer>, request: Request) -> Result<Vec<Value>, Error> {
        if let Request::Init { version, args } = request {
            return self.begin(peer, &version, args);
        }
        if let Some(session) = self.session()? {
            return session.ask(&request);
        }
        match request {
            Request::Call { handle, args } => self.call(peer, handle, args),
            Request::System(SystemCall { code: Code::FreeHandle, args }) => {
                self.exports.take_back(argument(&args, 0, "handle")?.address()?)?;
                Ok(vec![Value::None])
            }
            Request::System(_) if self.environment.is_none() => {
                let message = "a client serves calls of the functions that it passes, and nothing else";
                Err(Error::new(ErrorKind::RuntimeError, message))
            }
            Request::System(call) => self.system(peer, &call).map(|value| vec![value]),
            Request::CopyTo(copy, payload) => {
                let mut fill = |place: &mut [u8]| {
                    place.copy_from_slice(&payload);
                    Ok(())
                };
                self.copy_to(peer, &copy, &mut fill).map(|()| vec![Value::None])
            }
            Request::Init { .. } | Request::CopyFrom(_) => {
                Err(Error::new(ErrorKind::InternalError, "the request is served elsewhere"))
            }
        }
    }

    fn begin(&self, peer: &Arc<Peer>, version: &[u8], args: Vec<Value>) -> Result<Vec<Value>, Error> {
        let version = String::from_utf8_lossy(version);
        if version != VERSION {
            let message = format!(
                "Server[{}]: Client protocol version mismatch with the server, server protocol={VERSION}, client \
                 protocol={version}",
                peer.name()
            );
            return Err(Error::new(ErrorKind::RuntimeError, message));
        }
        let mut behind = self.behind.lock().unwrap_or_else(PoisonError::into_inner);
        if self.environment.is_none() || !matches!(*behind, Behind::Nothing) {
            return Err(Error::new(ErrorKind::RuntimeError, "Server has already been initialized"));
        }
        let Some((name, args)) = args.split_first() else {
            *behind = Behind::Here;
            return Ok(vec![Value::None]);
        };
        let name = text(name)?;
        if name == "rpc.LocalSession" && args.is_empty() {
            *behind = Behind::Here;
            return Ok(vec![Value::None]);
        }
        *behind = Behind::Session(self.construct(peer, &name, args)?);
        Ok(match peer.dialect() {
            Dialect::Tvm => vec![Value::None],
            Dialect::Own => {
                // What is behind knows TVM's form; the client is told, and speaks it from its next packet on.
                self.new_dialect.store(1, Ordering::Relaxed);
                vec![Value::RawStr(b"tvm".to_vec())]
            }
        })
    }

    /// The session that a constructor makes.
    fn construct(&self, peer: &Arc<Peer>, name: &str, args: &[Value]) -> Result<Arc<Peer>, Error> {
        let said = |what: String| Error::new(ErrorKind::RuntimeError, what);
        self.policy.admits_constructor(name)?;
        let constructor = self.global(name)?.ok_or_else(|| said(format!("Cannot find session constructor {name}")))?;
        let args = args.iter().map(|arg| convert::from_far(peer, arg.clone())).collect::<Result<Vec<_>, _>>()?;
        let views: Vec<AnyView<'_>> = args.iter().map(Any::as_view).collect();
        let made = constructor.call(&views).map_err(|error| {
            let message = error.message();
            said(format!("Server[SockServerLoop]: Error caught from session constructor {name}:\n{message}"))
        })?;
        let module: Option<Module> = made.to().ok();
        let session = module.as_ref().and_then(|module| module.downcast::<RemoteModule>());
        match session.filter(|session| session.is_session()) {
            Some(session) => Ok(Arc::clone(session.peer())),
            None => Err(said(format!("Server[SockServerLoop]: Constructor {name} need to return an RPCModule"))),
        }
    }

    fn call(&self, peer: &Arc<Peer>, handle: u64, args: Vec<Value>) -> Result<Vec<Value>, Error> {
        let object = self.exports.object(handle)?;
        let function: Function = object.to().map_err(|_| {
            let message = format!("the handle {handle:#x} is that of a value of type {}", object.type_key());
            Error::new(ErrorKind::TypeError, message)
        })?;
        let args = args.into_iter().map(|arg| convert::from_far(peer, arg)).collect::<Result<Vec<_>, _>>()?;
        let views: Vec<AnyView<'_>> = args.iter().map(Any::as_view).collect();
        let result = function.call(&views)?;
        convert::returned(peer, &result)
    }

    /// The global function of a name, as this session has it.
    fn global(&self, name: &str) -> Result<Option<Function>, Error> {
        self.policy.admits_function(name)?;
        let own = self.environment.as_ref().and_then(|environment| environment.function(name));
        Ok(own.or_else(|| relaxide_ffi::get_global(name)))
    }

    fn system(&self, peer: &Arc<Peer>, call: &SystemCall) -> Result<Value, Error> {
        let args = &call.args;
        let arg = |position: usize, name: &str| argument(args, position, name);
        let device = || -> Result<Device, Error> {
            let device = arg(0, "device")?.device()?;
            self.policy.admits_device(device)?;
            Ok(device)
        };
        let stream_of = || Ok::<_, Error>(Stream(arg(1, "stream")?.address()? as usize));
        Ok(match call.code {
            Code::GetGlobalFunc => {
                let found = self.global(&text(arg(0, "name")?)?)?;
                Value::Ptr(found.map_or(0, |function| self.exports.give(function.into())))
            }
            Code::DevSetDevice => {
                enabled(device()?)?;
                Value::None
            }
            Code::DevGetAttr => {
                let kind = Attribute::from_number(arg(1, "attribute")?.int()?)?;
                let device = arg(0, "device")?.device()?;
                attribute(peer, device, kind, self.policy.admits_device(device).is_ok())?
            }
            Code::DevAllocData => {
                let (device, bytes) = (device()?, arg(1, "bytes")?.int()?);
                enabled(device)?;
                let bytes = u64::try_from(bytes);
                let bytes = bytes.map_err(|_| Error::new(ErrorKind::ValueError, "a negative number of bytes"))?;
                Value::Ptr(self.exports.allocate(device, bytes)?)
            }
            Code::DevAllocDataWithScope => self.allocate_in_scope(args)?,
            Code::DevFreeData => {
                self.exports.free(arg(1, "address")?.address()?)?;
                Value::None
            }
            Code::CopyAmongRemote => {
                let (from, to) = (self.tensor(arg(0, "source")?)?, self.tensor(arg(1, "target")?)?);
                copy_among(&from, &to)?;
                Value::None
            }
            Code::DevStreamSync => {
                let device = device()?;
                enabled(device)?.synchronize(device, stream_of()?)?;
                Value::None
            }
            Code::DevCreateStream => {
                let device = device()?;
                Value::Ptr(enabled(device)?.create_stream(device)?.0 as u64)
            }
            Code::DevFreeStream => {
                let device = device()?;
                enabled(device)?.free_stream(device, stream_of()?)?;
                Value::None
            }
            Code::DevSetStream => {
                let device = device()?;
                enabled(device)?.set_stream(device, stream_of()?)?;
                Value::None
            }
            Code::DevGetCurrentStream => Value::Ptr(stream::get(device()?).addr() as u64),
            code => {
                let message = format!("{} is not a call that is served", code.name());
                return Err(Error::new(ErrorKind::RuntimeError, message));
            }
        })
    }

    fn allocate_in_scope(&self, args: &[Value]) -> Result<Value, Error> {
        let Value::Tensor(wire) = argument(args, 0, "tensor")? else {
            return Err(Error::type_mismatch("Tensor", argument(args, 0, "tensor")?.kind()));
        };
        self.policy.admits_device(wire.device)?;
        enabled(wire.device)?;
        let scope = match argument(args, 1, "scope")? {
            Value::None => String::new(),
            scope => text(scope)?,
        };
        if !matches!(scope.as_str(), "" | "global") {
            let message = format!("Device does not support allocate data space with specified memory scope: {scope}");
            return Err(Error::new(ErrorKind::RuntimeError, message));
        }
        let size = wire.byte_size().ok_or_else(|| {
            Error::new(ErrorKind::ValueError, format!("a tensor of shape {:?} is larger than memory", wire.shape))
        })?;
        self.exports.allocate(wire.device, size).map(Value::Ptr)
    }

    fn tensor(&self, value: &Value) -> Result<Tensor, Error> {
        match value {
            Value::Tensor(wire) => self.exports.tensor(wire),
            other => Err(Error::type_mismatch("Tensor", other.kind())),
        }
    }

    /// Serves a copy to the other end.
    pub fn copy_from(&self, _peer: &Arc<Peer>, copy: &Copy) -> Result<ReplyBytes, Error> {
        if let Some(session) = self.session()? {
            let count = usize::try_from(copy.bytes)
                .ok()
                .filter(|_| copy.tensor.byte_size().is_some_and(|size| copy.bytes <= size));
            let count = count.ok_or_else(|| Error::new(ErrorKind::ValueError, "more bytes than the tensor has"))?;
            let mut bytes = vec![0; count];
            session.copy_from(copy.clone(), &mut bytes)?;
            return Ok(ReplyBytes::Copy(bytes));
        }
        let part = self.part(copy)?;
        match part.device().device_type {
            Device::CPU => part.as_bytes().map(drop).map(|()| ReplyBytes::Tensor(part)),
            _ => {
                let here = copy_tensor(&part, Device::cpu(0))?;
                Ok(ReplyBytes::Tensor(here))
            }
        }
    }

    /// Serves a copy to this end. `fill` gives the bytes, and is called at most once.
    pub fn copy_to(&self, _peer: &Arc<Peer>, copy: &Copy, fill: Fill<'_>) -> Result<(), Error> {
        if let Some(session) = self.session()? {
            // What is behind takes a copy in one packet, and gets it as it is.
            let mut bytes = Vec::new();
            bytes.try_reserve_exact(usize::try_from(copy.bytes).unwrap_or(usize::MAX)).map_err(|_| {
                Error::new(ErrorKind::MemoryError, format!("{} bytes cannot be handed on at once", copy.bytes))
            })?;
            bytes.resize(copy.bytes as usize, 0);
            fill(&mut bytes)?;
            return session.copy_to(copy.clone(), &bytes);
        }
        let part = self.part(copy)?;
        match part.device().device_type {
            Device::CPU => fill_host(&part, fill),
            _ => {
                let here = Tensor::zeros(part.shape(), part.dtype())?;
                fill_host(&here, fill)?;
                relaxide_runtime::device::copy_into(&here, &part)
            }
        }
    }

    /// The bytes of a copy, as a tensor of bytes.
    fn part(&self, copy: &Copy) -> Result<Tensor, Error> {
        let WireTensor { byte_offset, .. } = copy.tensor;
        self.exports
            .bytes(&copy.tensor, copy.bytes)
            .map_err(|error| error.context(format_args!("a copy of {} bytes at offset {byte_offset}", copy.bytes)))
    }

    /// Ends the session: all that it holds is let go.
    pub fn finish(&self) {
        *self.behind.lock().unwrap_or_else(PoisonError::into_inner) = Behind::Nothing;
        self.exports.clear();
    }
}

/// Copies between two tensors of this process.
fn copy_among(from: &Tensor, to: &Tensor) -> Result<(), Error> {
    let (a, b) = (from.byte_size(), to.byte_size());
    if a != b {
        return Err(Error::new(ErrorKind::ValueError, format!("a copy of {a} bytes to a tensor of {b}")));
    }
    let bytes =
        |tensor: &Tensor| relaxide_runtime::device::view_at(tensor, &[a as i64], relaxide_ffi::DataType::uint(8), 0);
    relaxide_runtime::device::copy_into(&bytes(from)?, &bytes(to)?)
}

/// The interface to a device, if this process has one.
fn enabled(device: Device) -> Result<&'static dyn relaxide_runtime::device::DeviceApi, Error> {
    device_api(device).map_err(|_| {
        let name = device.type_name().map_or_else(|| device.device_type.to_string(), str::to_owned);
        Error::new(ErrorKind::RuntimeError, format!("Device API {name} is not enabled."))
    })
}

fn attribute(peer: &Arc<Peer>, device: Device, kind: Attribute, admitted: bool) -> Result<Value, Error> {
    if kind == Attribute::Exists {
        let exists = admitted && device_api(device).is_ok_and(|api| api.exists(device));
        return Ok(Value::Int(exists.into()));
    }
    let value = enabled(device)?.attribute(device, kind)?.unwrap_or_default();
    match value.type_index() {
        index::NONE..=index::DEVICE | index::RAW_STR..=index::BYTES => convert::to_far(peer, value.as_view()),
        _ => Err(Error::new(ErrorKind::RuntimeError, "the attribute has no form on the wire")),
    }
}

fn argument<'a>(args: &'a [Value], position: usize, name: &str) -> Result<&'a Value, Error> {
    args.get(position).ok_or_else(|| {
        Error::new(ErrorKind::TypeError, format!("argument {position} ({name}) is missing: there are {}", args.len()))
    })
}

fn text(value: &Value) -> Result<String, Error> {
    let bytes = value.as_text().ok_or_else(|| Error::type_mismatch("str", value.kind()))?;
    String::from_utf8(bytes.to_vec()).map_err(|_| Error::new(ErrorKind::ValueError, "text that is not UTF-8"))
}
