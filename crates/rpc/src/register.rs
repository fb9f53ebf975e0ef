//! What this crate enters among the global functions: ways to begin a session, under TVM's names.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::Once;
use std::time::Duration;

use relaxide_ffi::{Any, AnyView, Device, Error, ErrorKind, FromAny, Function, Module, get_global, register_global};

use crate::Session;
use crate::session::call::Started;
use crate::session::connect::{Target, connect_tvm, spawn_own, spawn_tvm};
use crate::session::remote::RemoteModule;
use crate::session::{addresses, local};
use crate::wire::Dialect;
use crate::wire::handshake::Key;

/// Enters `rpc.Connect`, `rpc.LocalSession`, `rpc.PopenSession` and what belongs to them, and what servers offer. Calling it again does
/// nothing.
pub fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        crate::server::register();
        addresses::enter();
        for (name, body) in FUNCTIONS {
            if get_global(name).is_none() {
                // Only another thread's registration of the same function can come between.
                let _ = register_global(name, Function::new(*body));
            }
        }
    });
}

type GlobalBody = fn(&[AnyView<'_>]) -> Result<Any, Error>;

const FUNCTIONS: &[(&str, GlobalBody)] = &[
    ("rpc.Connect", connect),
    ("rpc.LocalSession", |_args| Ok(local::session(Dialect::Own)?.module().into())),
    ("rpc.PopenSession", popen),
    ("rpc.CreatePipeClient", |args| {
        let words = args.iter().map(|arg| arg.to::<String>()).collect::<Result<Vec<_>, _>>()?;
        let (program, rest) = words.split_first().ok_or_else(|| missing("rpc.CreatePipeClient", 0, "command"))?;
        let mut command = Command::new(program);
        command.args(rest);
        Ok(spawn_tvm(command, &[])?.module().into())
    }),
    ("rpc.ConnectCommand", |args| {
        let words = args.iter().map(|arg| arg.to::<String>()).collect::<Result<Vec<_>, _>>()?;
        let (program, rest) = words.split_first().ok_or_else(|| missing("rpc.ConnectCommand", 0, "command"))?;
        let mut command = Command::new(program);
        command.args(rest);
        Ok(spawn_own(command, &[])?.module().into())
    }),
    ("rpc.SetTimeout", |args| {
        let timeout = match args.get(1) {
            Some(given) if !given.is_none() => Some(seconds("rpc.SetTimeout", args, 1, "seconds")?),
            _ => None,
        };
        session(args)?.set_timeout(timeout);
        Ok(Any::none())
    }),
    ("rpc.CancelCalls", |args| session(args)?.cancel(seconds("rpc.CancelCalls", args, 1, "grace")?).map(Any::from)),
    ("rpc.StartCall", start_call),
    ("rpc.SettleCopies", |args| session(args)?.settle().map(Any::from)),
    ("rpc.CopyAhead", |args| {
        let from: relaxide_ffi::Tensor = argument("rpc.CopyAhead", args, 1, "source")?;
        let to: relaxide_ffi::Tensor = argument("rpc.CopyAhead", args, 2, "target")?;
        let pending = session(args)?.copy_ahead(&from, &to)?;
        Ok(Function::new(move |_args| {
            pending.outcome().map_or(Ok(false.into()), |outcome| outcome.map(|()| true.into()))
        })
        .into())
    }),
    ("rpc.SessTableIndex", |args| Ok((session(args)?.slot()? as i64).into())),
    ("rpc.IsSession", |args| {
        let module: Module = argument("rpc.IsSession", args, 0, "module")?;
        Ok(module.downcast::<RemoteModule>().is_some_and(RemoteModule::is_session).into())
    }),
    ("rpc.SessionOf", |args| {
        let module: Module = argument("rpc.SessionOf", args, 0, "module")?;
        let remote = module.downcast::<RemoteModule>();
        let remote = remote.ok_or_else(|| Error::type_mismatch("a remote module", module.kind()))?;
        Ok(crate::session::remote::session_module(remote.peer()).into())
    }),
    ("rpc.LoadRemoteModule", |args| {
        let name: String = argument("rpc.LoadRemoteModule", args, 1, "name")?;
        Ok(session(args)?.load_module(&name)?.into())
    }),
    ("rpc.ImportRemoteModule", |args| {
        let parent: Module = argument("rpc.ImportRemoteModule", args, 0, "module")?;
        let remote = parent.downcast::<RemoteModule>();
        let remote = remote.ok_or_else(|| Error::type_mismatch("a remote module", parent.kind()))?;
        let import =
            crate::session::client::SessionCore::global_function(remote.peer(), "tvm.rpc.server.ImportModule")?;
        let import = import.ok_or_else(|| Error::new(ErrorKind::RuntimeError, "the far side imports no modules"))?;
        import.call(args)
    }),
    ("rpc.EmptyTensor", |args| {
        let name = "rpc.EmptyTensor";
        let shape: relaxide_ffi::Shape = argument(name, args, 0, "shape")?;
        let device: Device = argument(name, args, 2, "device")?;
        let scope: Option<String> = argument(name, args, 3, "scope")?;
        let (slot, _) = device.remote().ok_or_else(|| Error::type_mismatch("a remote device", &device.to_string()))?;
        let peer = crate::session::remote::slot_session(slot)
            .ok_or_else(|| Error::new(ErrorKind::RuntimeError, format!("the session of {device} has ended")))?;
        let (_, there) = device.remote().unwrap_or((slot, device));
        addresses::empty_tensor(&peer, &shape, argument(name, args, 1, "dtype")?, there, scope.as_deref())
            .map(Any::from)
    }),
];

fn missing(function: &str, index: usize, name: &str) -> Error {
    Error::new(ErrorKind::TypeError, format!("{function}: argument {index} ({name}) is missing"))
}

fn argument<T: FromAny>(function: &str, args: &[AnyView<'_>], index: usize, name: &str) -> Result<T, Error> {
    let value: Result<T, Error> = args.get(index).ok_or_else(|| missing(function, index, name))?.to();
    value.map_err(|error| error.context(format_args!("{function}: argument {index} ({name})")))
}

fn session(args: &[AnyView<'_>]) -> Result<Session, Error> {
    let module: Module = argument("rpc", args, 0, "session")?;
    Session::of_module(&module).ok_or_else(|| Error::type_mismatch("a session", module.kind()))
}

fn seconds(function: &str, args: &[AnyView<'_>], index: usize, name: &str) -> Result<Duration, Error> {
    let seconds: f64 = argument(function, args, index, name)?;
    Duration::try_from_secs_f64(seconds)
        .map_err(|error| Error::new(ErrorKind::ValueError, format!("{function}: {name} is {seconds} seconds: {error}")))
}

/// `(function, its arguments…)`: begins a call. What it returns takes `("wait", seconds or nothing)`, which gives whether the call is
/// over; `("value")`, which gives what became of it; and `("cancel", grace)`.
fn start_call(args: &[AnyView<'_>]) -> Result<Any, Error> {
    let function: Function = argument("rpc.StartCall", args, 0, "function")?;
    let started = Started::start(function, args[1..].iter().map(AnyView::to_owned).collect())?;
    Ok(Function::new(move |args| {
        let what: String = argument("a started call", args, 0, "what")?;
        let timeout = || seconds("a started call", args, 1, "seconds");
        match what.as_str() {
            "wait" if args.get(1).is_none_or(AnyView::is_none) => started.wait(None).map(Any::from),
            "wait" => started.wait(Some(timeout()?)).map(Any::from),
            "value" => started.value(),
            "cancel" => started.cancel(timeout()?).map(Any::from),
            _ => Err(Error::new(ErrorKind::ValueError, format!("a started call cannot {what}"))),
        }
    })
    .into())
}

/// `(url, port, key with options, whether to log, constructor and its arguments…)`.
fn connect(args: &[AnyView<'_>]) -> Result<Any, Error> {
    let name = "rpc.Connect";
    let text: String = argument(name, args, 2, "key")?;
    let key = Key::parse(format!("client:{text}").as_bytes()).map_err(Error::from)?;
    let target = Target {
        host: argument(name, args, 0, "url")?,
        port: argument(name, args, 1, "port")?,
        key: key.name,
        session_timeout: key.timeout,
        patience: None,
    };
    Ok(connect_tvm(&target, args.get(4..).unwrap_or_default())?.module().into())
}

/// `(path or bytes of an executable)`.
fn popen(args: &[AnyView<'_>]) -> Result<Any, Error> {
    let first = args.first().ok_or_else(|| missing("rpc.PopenSession", 0, "executable"))?;
    let Some(bytes) = first.as_bytes() else {
        let path: String = first.to()?;
        let about = |what: &str| Error::new(ErrorKind::RuntimeError, format!("{path} {what}"));
        let found = std::fs::metadata(&path).map_err(|_| about("does not exist."))?;
        if found.permissions().mode() & 0o111 == 0 {
            return Err(about("is not executable."));
        }
        return Ok(spawn_tvm(Command::new(&path), &[])?.module().into());
    };
    let mut file = tempfile::Builder::new().prefix("relaxide-rpc-").tempfile()?;
    file.write_all(bytes)?;
    std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o500))?;
    // A file that is open for writing cannot be run.
    let path = file.into_temp_path();
    Ok(spawn_tvm(Command::new(&path), &[])?.module().into())
}
