//! What an end has of the other: functions, modules and objects behind handles, and the table of sessions behind devices.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError, Weak};

use relaxide_ffi::{Any, Error, ErrorKind, Function, Handle, Module, ModuleImpl, ModuleProperties, Object, Ref};

use super::client::SessionCore;
use super::convert;
use super::peer::Peer;
use crate::wire::{Code, Owner, Request, SystemCall, Value};

/// How many sessions can have devices at a time.
const SLOTS: usize = 32;

static SESSIONS: Mutex<[Weak<Peer>; SLOTS]> = Mutex::new([const { Weak::new() }; SLOTS]);

/// The slot of a session, which it takes when it is first asked for.
pub fn slot_of(peer: &Peer) -> Result<usize, Error> {
    peer.slot.get().copied().ok_or_else(|| {
        Error::new(ErrorKind::InternalError, format!("maximum number of RPC session reached: {SLOTS} have devices"))
    })
}

/// Gives a session a slot, if one is free.
pub fn take_slot(peer: &Arc<Peer>) -> Result<usize, Error> {
    let mut sessions = SESSIONS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(slot) = peer.slot.get() {
        return Ok(*slot);
    }
    let free = sessions.iter().position(|session| session.strong_count() == 0).ok_or_else(|| {
        Error::new(ErrorKind::InternalError, format!("maximum number of RPC session reached: {SLOTS} are open"))
    })?;
    sessions[free] = Arc::downgrade(peer);
    Ok(*peer.slot.get_or_init(|| free))
}

/// The session of a slot.
pub fn slot_session(slot: usize) -> Option<Arc<Peer>> {
    SESSIONS.lock().unwrap_or_else(PoisonError::into_inner).get(slot)?.upgrade()
}

/// One reference that the far side keeps for this one, given back at its end.
pub struct RemoteHandle {
    peer: Arc<Peer>,
    handle: u64,
    /// The function object here that stands for it, if it is a function.
    function: OnceLock<usize>,
}

/// The functions here that stand for far ones, by the address of their objects.
static FUNCTIONS: LazyLock<Mutex<HashMap<usize, Weak<RemoteHandle>>>> = LazyLock::new(Mutex::default);

impl RemoteHandle {
    /// Takes over a reference.
    pub fn new(peer: &Arc<Peer>, handle: u64) -> Arc<RemoteHandle> {
        Arc::new(RemoteHandle { peer: Arc::clone(peer), handle, function: OnceLock::new() })
    }

    /// The handle, if the object is of that session.
    fn of(&self, peer: &Arc<Peer>) -> Result<u64, Error> {
        match Arc::ptr_eq(&self.peer, peer) {
            true => Ok(self.handle),
            false => Err(Error::new(ErrorKind::ValueError, "an object of another remote session cannot be passed")),
        }
    }
}

impl Drop for RemoteHandle {
    fn drop(&mut self) {
        if let Some(address) = self.function.get() {
            FUNCTIONS.lock().unwrap_or_else(PoisonError::into_inner).remove(address);
        }
        let args = vec![Value::Ptr(self.handle)];
        self.peer.discard(Request::System(SystemCall { code: Code::FreeHandle, args }));
    }
}

/// A function that calls a far one.
pub fn function(peer: &Arc<Peer>, handle: u64) -> Function {
    let remote = RemoteHandle::new(peer, handle);
    let called = Arc::clone(&remote);
    let function = Function::new(move |args| {
        let peer = &called.peer;
        let args = convert::arguments(peer, args)?;
        let values = peer.ask(&Request::Call { handle: called.handle, args })?;
        convert::result(peer, values)
    });
    let address = function.as_object().as_ptr().addr();
    let _ = remote.function.set(address);
    FUNCTIONS.lock().unwrap_or_else(PoisonError::into_inner).insert(address, Arc::downgrade(&remote));
    function
}

/// The handle of a function that stands for a far one of that session; nothing for any other function.
pub fn function_handle(peer: &Arc<Peer>, function: &Function) -> Option<Result<u64, Error>> {
    let address = function.as_object().as_ptr().addr();
    let remote = FUNCTIONS.lock().unwrap_or_else(PoisonError::into_inner).get(&address)?.upgrade()?;
    Some(remote.of(peer))
}

/// Any other object of the far side.
#[derive(Object)]
#[object(key = "runtime.RPCObjectRef")]
pub struct RemoteObject {
    #[field(hidden)]
    remote: Held,
}

/// A reference that says where it leads.
struct Held(Arc<RemoteHandle>);

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x} of {}", self.0.handle, self.0.peer.name())
    }
}

/// An object that stands for a far one.
pub fn object(peer: &Arc<Peer>, handle: u64) -> Any {
    Ref::new(RemoteObject { remote: Held(RemoteHandle::new(peer, handle)) }).into()
}

/// The handle of an object that stands for a far one.
pub fn object_handle(peer: &Arc<Peer>, value: &Any) -> Option<Result<u64, Error>> {
    value.downcast_ref::<RemoteObject>().map(|object| object.remote.0.of(peer))
}

/// A far module. The session itself is one too, whose functions are the far side's global ones.
pub struct RemoteModule {
    core: Arc<Peer>,
    /// Nothing for the session itself.
    remote: Option<Arc<RemoteHandle>>,
    /// The far function that finds those of modules.
    finder: OnceLock<Option<Function>>,
}

/// The kind of far modules.
pub const MODULE_KIND: &str = "rpc";
/// The name that ends the session.
const CLOSE: &str = "CloseRPCConnection";
/// The far function that finds a module's functions.
const FIND: &str = "tvm.rpc.server.ModuleGetFunction";

/// A module that stands for a far one.
pub fn module(peer: &Arc<Peer>, handle: u64) -> Module {
    let remote = Some(RemoteHandle::new(peer, handle));
    Module::new(RemoteModule { core: Arc::clone(peer), remote, finder: OnceLock::new() })
}

/// A session as a module.
pub fn session_module(peer: &Arc<Peer>) -> Module {
    Module::new(RemoteModule { core: Arc::clone(peer), remote: None, finder: OnceLock::new() })
}

impl RemoteModule {
    /// The session.
    pub fn peer(&self) -> &Arc<Peer> {
        &self.core
    }

    /// True if the module is the session itself.
    pub fn is_session(&self) -> bool {
        self.remote.is_none()
    }

    /// The handle, if the module is of that session.
    pub fn handle(&self, peer: &Arc<Peer>) -> Result<u64, Error> {
        let session = || Error::new(ErrorKind::ValueError, "a session is not a module of its far side");
        self.remote.as_ref().ok_or_else(session)?.of(peer)
    }

    /// The function of a name; an error if the far side cannot be asked.
    pub fn find(&self, module: &Module, name: &str) -> Result<Option<Function>, Error> {
        if self.is_session() {
            if name == CLOSE {
                let peer = Arc::clone(&self.core);
                return Ok(Some(Function::new(move |_args| {
                    peer.close();
                    Ok(Any::none())
                })));
            }
            return self.core.global_function(name);
        }
        let finder = match self.finder.get() {
            Some(finder) => finder.clone(),
            None => {
                let found = self.core.global_function(FIND)?;
                self.finder.get_or_init(|| found).clone()
            }
        };
        let missing = || Error::new(ErrorKind::RuntimeError, format!("{} has no {FIND}", self.core.name()));
        let name = Any::from(name);
        let found = finder.ok_or_else(missing)?.call(&[module.into(), name.as_view(), true.into()])?;
        if found.is_none() { Ok(None) } else { found.to().map(Some) }
    }
}

impl ModuleImpl for RemoteModule {
    fn kind(&self) -> &str {
        MODULE_KIND
    }

    fn get_function(&self, _name: &str) -> Option<Function> {
        None
    }

    fn get_bound_function(&self, module: &Module, name: &str) -> Option<Function> {
        match self.find(module, name) {
            Ok(found) => found,
            // The interface has no error here; whoever calls the function hears of it.
            Err(error) => Some(Function::new(move |_args| Err(error.clone()))),
        }
    }

    fn properties(&self) -> ModuleProperties {
        ModuleProperties::RUNNABLE
    }
}

/// An object of the far side as a value: what a handle stands for.
pub fn of_handle(peer: &Arc<Peer>, kind: i32, handle: u64) -> Any {
    match kind {
        relaxide_ffi::abi::type_index::FUNCTION => function(peer, handle).into(),
        relaxide_ffi::abi::type_index::MODULE => module(peer, handle).into(),
        _ => object(peer, handle),
    }
}

/// A far object as a value of the wire.
pub fn to_receiver(kind: i32, handle: u64) -> Value {
    Value::Object { kind, handle, owner: Owner::Receiver }
}
