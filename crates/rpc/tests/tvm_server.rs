//! Our client on TVM's own server. Skipped, and said so, where there is no Python with TVM.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use relaxide_ffi::{Any, AnyView, Bytes, DataType, Device, Error, Function, Module, Tensor};
use relaxide_rpc::Session;
use relaxide_rpc::session::connect::{Target, connect_tvm};
use relaxide_runtime::device::{copy_into, copy_tensor};

const PROGRAM: &str = "
import sys
from tvm import rpc
import tvm.testing
server = rpc.Server('127.0.0.1', port=9091, port_end=65000, key='k', silent=True)
print(server.port, flush=True)
sys.stdin.readline()
server.terminate()
";

/// A server of TVM's.
struct Tvm {
    child: Child,
    port: u16,
}

impl Drop for Tvm {
    fn drop(&mut self) {
        if let Some(mut input) = self.child.stdin.take() {
            let _ = input.write_all(b"\n");
        }
        let _ = self.child.wait();
    }
}

fn tvm() -> Option<Tvm> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let python = std::env::var_os("RELAXIDE_PYTHON").map_or_else(|| root.join(".venv/bin/python"), PathBuf::from);
    let found = Command::new(&python).args(["-c", "import tvm.rpc.server"]).output();
    if !found.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: {} has no TVM", python.display());
        return None;
    }
    let mut child =
        Command::new(python).args(["-c", PROGRAM]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    Some(Tvm { port: line.trim().parse().unwrap(), child })
}

fn connect(tvm: &Tvm, session_timeout: Option<f64>, constructor: &[AnyView<'_>]) -> Result<Session, Error> {
    relaxide_rpc::register();
    let patience = Some(Duration::from_secs(60));
    let target = Target { host: "127.0.0.1".into(), port: tvm.port, key: "k".into(), session_timeout, patience };
    connect_tvm(&target, constructor)
}

fn call(session: &Session, name: &str, args: &[Any]) -> Result<Any, Error> {
    let views: Vec<AnyView<'_>> = args.iter().map(Any::as_view).collect();
    session.function(name)?.call(&views)
}

fn read(tensor: &Tensor) -> Vec<f32> {
    copy_tensor(tensor, Device::cpu(0)).unwrap().to_vec().unwrap()
}

#[test]
fn tvms_server_serves_our_client() {
    let Some(tvm) = tvm() else { return };
    values(&connect(&tvm, None, &[]).unwrap());
    tensors(&connect(&tvm, None, &[]).unwrap());
    files_and_errors(&connect(&tvm, None, &[]).unwrap());
    timing(&connect(&tvm, None, &[]).unwrap());
    session_time(&tvm);
    let name = Any::from("rpc.LocalSession");
    values(&connect(&tvm, None, &[name.as_view()]).unwrap());
    let missing = Any::from("no.such.constructor");
    let error = connect(&tvm, None, &[missing.as_view()]).unwrap_err();
    assert!(error.message().contains("Cannot find session constructor no.such.constructor"), "{error}");
    let wrong = Target { host: "127.0.0.1".into(), port: tvm.port, key: "other".into(), ..Target::default() };
    let error = connect_tvm(&wrong, &[]).unwrap_err();
    assert!(error.message().contains("cannot find server that matches key=client:other"), "{error}");
}

fn values(session: &Session) {
    assert_eq!(call(session, "rpc.test.addone", &[10_i64.into()]).unwrap().as_int(), Some(11));
    assert_eq!(call(session, "rpc.test.strcat", &["abc".into(), 11_i64.into()]).unwrap().as_str(), Some("abc:11"));
    for value in [
        Any::none(),
        i64::MIN.into(),
        true.into(),
        0.1.into(),
        "a \0 b".into(),
        "".into(),
        "eight by 8".into(),
        DataType::int(8).with_lanes(4).into(),
        Bytes::new(b"short").into(),
        Bytes::new(b"longer than seven").into(),
    ] {
        let back = call(session, "testing.echo", std::slice::from_ref(&value)).unwrap();
        assert_eq!(
            (back.as_str().is_some(), back.as_bytes()),
            (value.as_str().is_some(), value.as_bytes()),
            "{value:?}"
        );
        // TVM's server measures text to its first NUL.
        assert_eq!(
            back.as_str().map(|text| text.split('\0').next().unwrap().to_owned()),
            value.as_str().map(|text| text.split('\0').next().unwrap().to_owned())
        );
    }
    let adder: Function = call(session, "rpc.test.add_to_lhs", &[10_i64.into()]).unwrap().to().unwrap();
    assert_eq!(adder.call(&[12_i64.into()]).unwrap().as_int(), Some(22));
    let shape = call(session, "ffi.Shape", &[1_i64.into(), 2_i64.into()]).unwrap();
    assert_eq!(shape.type_key(), "runtime.RPCObjectRef");
    assert_eq!(call(session, "rpc.testing.GetShapeSize", &[shape]).unwrap().as_int(), Some(2));
    let system: Module = call(session, "ffi.SystemLib", &[]).unwrap().to().unwrap();
    assert!(system.get_function("nothing", true).is_none());
    assert!(session.find_function("no.such.function").unwrap().is_none());
    let local = Function::typed(|x: i64| Ok::<_, Error>(x));
    assert!(call(session, "testing.echo", &[(&local).into()]).is_err());
    assert_eq!(call(session, "rpc.test.addone", &[1_i64.into()]).unwrap().as_int(), Some(2));
}

fn tensors(session: &Session) {
    let device = session.device(Device::cpu(0)).unwrap();
    let here = Tensor::from_slice(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2]).unwrap();
    let there = session.tensor(&here, device).unwrap();
    assert_eq!(read(&there), [1.0, 2.0, 3.0, 4.0]);
    let tail = there.reshape(&[4]).unwrap().view(&[2], DataType::float(32), 8).unwrap();
    assert_eq!(read(&tail), [3.0, 4.0]);
    copy_into(&Tensor::from_slice(&[7.0_f32, 8.0], &[2]).unwrap(), &tail).unwrap();
    assert_eq!(read(&there), [1.0, 2.0, 7.0, 8.0]);
    let other = session.empty(&[2, 2], DataType::float(32), device, None).unwrap();
    copy_into(&there, &other).unwrap();
    drop(there);
    assert_eq!(read(&other), [1.0, 2.0, 7.0, 8.0]);
    let empty = session.tensor(&Tensor::zeros(&[0], DataType::float(32)).unwrap(), device).unwrap();
    assert_eq!(read(&empty), [0.0; 0]);
    let made =
        |name: &str| call(session, "rpc.test.remote_return_nd", &[name.into()]).unwrap().to::<Function>().unwrap();
    let given: Tensor = made("get_arr").call(&[]).unwrap().to().unwrap();
    assert_eq!(read(&given), [0.0; 10]);
    drop(given);
    drop((tail, other, empty));
    session.settle().unwrap();
    assert_eq!(call(session, "rpc.test.addone", &[1_i64.into()]).unwrap().as_int(), Some(2));
}

fn files_and_errors(session: &Session) {
    let data: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    session.upload("dat.bin", &data).unwrap();
    assert_eq!(session.download("dat.bin").unwrap().as_slice(), data);
    session.remove("dat.bin").unwrap();
    assert!(session.download("dat.bin").unwrap_err().message().contains("Cannot open"));
    let error = call(session, "rpc.test.addone", &["x".into()]).unwrap_err();
    assert_eq!(error.kind(), "RPCError");
    assert!(error.message().starts_with("RPCError: Error caught from RPC call:\n"), "{error}");
    assert_eq!(call(session, "rpc.test.addone", &[1_i64.into()]).unwrap().as_int(), Some(2));
}

fn timing(session: &Session) {
    let make = session.function("runtime.RPCTimeEvaluator").unwrap();
    let (name, none) = (Any::from("rpc.test.addone"), Any::from(""));
    let mut args = vec![AnyView::none(), name.as_view()];
    args.extend([1_i64, 0, 10, 3, 0, 100, 0, 1, 0].map(AnyView::from));
    args.push(none.as_view());
    let evaluator: Function = make.call(&args).unwrap().to().unwrap();
    let seconds: Bytes = evaluator.call(&[3_i64.into()]).unwrap().to().unwrap();
    assert_eq!(seconds.as_slice().len(), 24);
}

fn session_time(tvm: &Tvm) {
    let session = connect(tvm, Some(1.0), &[]).unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    let error = call(&session, "rpc.test.addone", &[1_i64.into()]).unwrap_err();
    assert_eq!(error.kind(), "RPCSessionTimeoutError", "{error}");
}
