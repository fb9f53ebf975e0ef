//! Our protocol over TCP: who is let in, what each may do, and what is done about the rest.
#![cfg(feature = "secure")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use relaxide_ffi::{Any, DataType, Device, Error, Function, Tensor, register_global};
use relaxide_rpc::Session;
use relaxide_rpc::proxy::behind::Behind;
use relaxide_rpc::proxy::serve as proxying;
use relaxide_rpc::secure::accept::Gate;
use relaxide_rpc::secure::dial::connect_through_proxy;
use relaxide_rpc::secure::dial::{Credentials, connect, tracker};
use relaxide_rpc::secure::identity::{Identity, Token};
use relaxide_rpc::secure::keys::{Keys, Rights};
use relaxide_rpc::secure::place::Place;
use relaxide_rpc::server::accept::{Isolation, Options, Server};
use relaxide_rpc::server::announce::{Announced, Offer};
use relaxide_rpc::server::greet::Greeter;
use relaxide_rpc::server::scratch::Scratch;
use relaxide_rpc::server::session::Grant;
use relaxide_rpc::session::connect::Target;
use relaxide_rpc::tracker::serve as tracking;

fn serve(gate: Gate, log: Option<&Path>) -> Server {
    serve_in(Isolation::Thread, gate, log)
}

fn serve_in(isolation: Isolation, gate: Gate, log: Option<&Path>) -> Server {
    relaxide_rpc::register();
    let mut grant = Grant::open(Path::new(""));
    grant.log = log.map(Path::to_path_buf);
    Server::start(Options {
        host: "127.0.0.1".into(),
        port: 0,
        port_end: 1,
        reuse: true,
        greeter: Greeter::Secure(Box::new(gate)),
        isolation,
        sessions: 16,
        timeout: None,
        grant,
        scratch: None,
        silent: true,
    })
    .unwrap()
}

fn target(server: &Server, key: &str) -> Target {
    Target { port: server.port(), ..target_of(key) }
}

fn target_of(key: &str) -> Target {
    let patience = Some(Duration::from_secs(20));
    Target { host: "127.0.0.1".into(), key: key.into(), patience, ..Target::default() }
}

fn identity() -> Identity {
    Identity::parse(&Identity::generate().unwrap()).unwrap()
}

fn keys(lines: &[(&Identity, &str)]) -> Keys {
    let text: String = lines.iter().map(|(identity, words)| format!("{} {words}\n", identity.fingerprint())).collect();
    Keys::parse(&text).unwrap()
}

fn credentials(identity: &Identity, server: &Identity) -> Credentials {
    Credentials { identity: Some(identity.clone()), server: Some(server.fingerprint()), token: None }
}

fn add(session: &Session) -> Result<Any, Error> {
    session.function("secure.add")?.call(&[1_i64.into(), 2_i64.into()])
}

fn functions() {
    let _ = register_global("secure.add", Function::typed(|a: i64, b: i64| Ok::<_, Error>(a + b)));
    let _ = register_global("secure.call", Function::new(|args| args[0].to::<Function>()?.call(&args[1..])));
}

#[test]
fn a_known_key_comes_in_and_may_what_it_may() {
    functions();
    let (host, ann, bob, eve) = (identity(), identity(), identity(), identity());
    let keys = keys(&[(&ann, "ann files load call=*"), (&bob, "bob call=secure.add memory=1M sessions=1")]);
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut gate = Gate::new(&host, keys, None, "board").unwrap();
    gate.log_to(&log).unwrap();
    let server = serve(gate, Some(&log));

    let session = connect(&target(&server, "board"), &credentials(&ann, &host), &[]).unwrap();
    assert_eq!(add(&session).unwrap().as_int(), Some(3));
    let double = Function::typed(|x: i64| Ok::<_, Error>(2 * x));
    let called = session.function("secure.call").unwrap().call(&[(&double).into(), 4_i64.into()]).unwrap();
    assert_eq!(called.as_int(), Some(8));
    let values: Vec<f32> = (0..300_000).map(|x| x as f32).collect();
    let here = Tensor::from_slice(&values, &[300_000]).unwrap();
    let there = session.tensor(&here, session.device(Device::cpu(0)).unwrap()).unwrap();
    let back = relaxide_runtime::device::copy_tensor(&there, Device::cpu(0)).unwrap();
    assert_eq!(back.to_vec::<f32>().unwrap(), values);
    session.upload("a", b"x").unwrap();

    let session = connect(&target(&server, "board"), &credentials(&bob, &host), &[]).unwrap();
    assert_eq!(add(&session).unwrap().as_int(), Some(3));
    for (name, capability) in
        [("secure.call", "call=NAME"), ("tvm.rpc.server.upload", "files"), ("tvm.rpc.server.load_module", "load")]
    {
        let error = session.find_function(name).unwrap_err();
        assert_eq!(error.kind(), "PermissionError");
        assert!(error.message().contains(name) && error.message().contains(capability), "{error}");
    }
    // The evaluator leads to no function that the key may not have.
    let evaluator = session.function("runtime.RPCTimeEvaluator").unwrap();
    let (name, none) = (Any::from("secure.call"), Any::from(""));
    let mut args = vec![relaxide_ffi::AnyView::none(), name.as_view()];
    args.extend([1_i64, 0, 1, 1, 0, 100, 0, 1, 0].map(relaxide_ffi::AnyView::from));
    args.push(none.as_view());
    assert_eq!(evaluator.call(&args).unwrap_err().kind(), "PermissionError");
    let large = session.empty(&[1 << 20], DataType::float(32), Device::cpu(0), None).unwrap_err();
    assert!(large.message().contains("may have 1048576"), "{large}");
    assert!(session.empty(&[4], DataType::float(32), Device::new(Device::CUDA, 0), None).is_err());
    let twice = connect(&target(&server, "board"), &credentials(&bob, &host), &[]).unwrap_err();
    assert!(twice.message().contains("may have 1"), "{twice}");

    let unknown = connect(&target(&server, "board"), &credentials(&eve, &host), &[]).unwrap_err();
    assert!(unknown.message().contains("does not know this key"), "{unknown}");
    let wrong = connect(&target(&server, "other"), &credentials(&ann, &host), &[]).unwrap_err();
    assert!(wrong.message().contains("key=client:other"), "{wrong}");
    let impostor = connect(&target(&server, "board"), &credentials(&ann, &eve), &[]).unwrap_err();
    assert!(impostor.message().contains("TLS handshake failed"), "{impostor}");

    let log = std::fs::read_to_string(&log).unwrap();
    for (user, what) in [("ann", "let in"), ("ann", "function"), ("bob", "refused"), ("bob", "turned away")] {
        let line = log.lines().find(|line| line.contains(&format!("\"user\":\"{user}\"")) && line.contains(what));
        assert!(line.is_some(), "{user} {what}: {log}");
    }
    assert!(log.contains(&eve.fingerprint().to_string()));
}

#[test]
fn a_token_proves_both_ends_to_each_other() {
    functions();
    let host = identity();
    let token = Token::new("a shared secret of some length").unwrap();
    let other = Token::new("another secret of some length").unwrap();
    let rights = Rights::parse("token", ["call=secure.*"].into_iter()).unwrap();
    let server = serve(Gate::new(&host, Keys::default(), Some((token.clone(), rights)), "").unwrap(), None);
    let with = |token: Option<Token>| Credentials { identity: None, server: None, token };
    let session = connect(&target(&server, ""), &with(Some(token.clone())), &[]).unwrap();
    assert_eq!(add(&session).unwrap().as_int(), Some(3));
    assert!(session.find_function("ffi.SystemLib").is_err());
    let unknown = connect(&target(&server, ""), &with(Some(other.clone())), &[]).unwrap_err();
    assert_eq!(unknown.kind(), "PermissionError");
    assert!(
        connect(&target(&server, ""), &with(None), &[])
            .unwrap_err()
            .message()
            .contains("nothing says who the server is")
    );

    // A server that knows the client's key but not its token is not believed.
    let ann = identity();
    let impostor = serve(Gate::new(&host, keys(&[(&ann, "ann")]), None, "").unwrap(), None);
    let both = Credentials { identity: Some(ann), server: None, token: Some(token) };
    let error = connect(&target(&impostor, ""), &both, &[]).unwrap_err();
    assert!(error.message().contains("does not know the token"), "{error}");
}

#[test]
fn nothing_that_comes_before_the_proof_disturbs_the_server() {
    functions();
    let (host, ann) = (identity(), identity());
    let server = serve(Gate::new(&host, keys(&[(&ann, "ann call=*")]), None, "").unwrap(), None);
    let hello = [&0xff271_i32.to_le_bytes()[..], &7_i32.to_le_bytes(), b"client:"].concat();
    for bytes in [vec![], hello, vec![0x16, 3, 1, 0xff, 0xff], vec![0; 100_000], (0..=255).collect()] {
        let mut raw = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        // The server may close as soon as it has seen enough.
        let _ = raw.write_all(&bytes);
        let session = connect(&target(&server, ""), &credentials(&ann, &host), &[]).unwrap();
        assert_eq!(add(&session).unwrap().as_int(), Some(3));
        let _ = raw.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = raw.read_to_end(&mut answer);
        assert!(answer.len() < 100, "{answer:?}");
    }
}

#[test]
fn a_session_ends_when_the_time_of_its_key_is_over() {
    functions();
    let (host, ann) = (identity(), identity());
    let server = serve(Gate::new(&host, keys(&[(&ann, "ann call=* time=1")]), None, "").unwrap(), None);
    let session = connect(&target(&server, ""), &credentials(&ann, &host), &[]).unwrap();
    let begin = Instant::now();
    while add(&session).is_ok() {
        assert!(begin.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(20));
    }
    let error = add(&session).unwrap_err();
    assert!(error.message().contains("session has expired") || error.message().contains("over"), "{error}");
}

#[test]
fn a_tracker_knows_its_users_and_tells_who_the_server_is() {
    functions();
    let (host, ann, boss) = (identity(), identity(), identity());
    let gate = Gate::new(&boss, keys(&[(&host, "board"), (&ann, "ann")]), None, "").unwrap();
    let tracking = tracking::Tracker::start(tracking::Options {
        host: "127.0.0.1".into(),
        port: 0,
        port_end: 1,
        reuse: true,
        silent: true,
        state: None,
        secure: Some(gate.for_tracker()),
    })
    .unwrap();
    let server = serve(Gate::new(&host, keys(&[(&ann, "ann call=*")]), None, "board").unwrap(), None);
    let (port, as_server) = (tracking.port(), credentials(&host, &boss));
    let offer = Offer { key: "board".into(), port: server.port(), address: None, capacity: 1 };
    let dial = Box::new(move || tracker(&as_server, "127.0.0.1", port));
    server.announce(Announced::start(offer, dial).unwrap());

    let mut link = tracker(&credentials(&ann, &boss), "127.0.0.1", port).unwrap();
    let given = link.request("board", "somebody else", 1, Some(Duration::from_secs(20))).unwrap();
    assert_eq!(given.fingerprint, Some(host.fingerprint().to_string()));
    let mut found = target(&server, &given.match_key);
    found.port = given.port;
    let session = connect(&found, &credentials(&ann, &host), &[]).unwrap();
    assert_eq!(add(&session).unwrap().as_int(), Some(3));
    // A key is used once.
    assert!(connect(&found, &credentials(&ann, &host), &[]).is_err());
    let late = link.request("board", "", 1, Some(Duration::from_millis(200))).unwrap_err();
    assert_eq!(late.kind(), "TimeoutError");
    assert!(tracker(&credentials(&identity(), &boss), "127.0.0.1", port).is_err());
    drop(session);

    // The same as it is written on a command line: the tracker says who the server is.
    let place = Place::parse(&format!("board@tracker:127.0.0.1:{port}")).unwrap();
    let known = Credentials { identity: Some(ann.clone()), server: None, token: None };
    let session = place.connect(&known, Some(boss.fingerprint())).unwrap();
    assert_eq!(add(&session).unwrap().as_int(), Some(3));
    // A tracker that does not prove who it is is not asked.
    assert!(place.connect(&known, Some(host.fingerprint())).is_err());
}

#[test]
fn a_server_behind_a_proxy_knows_its_clients() {
    functions();
    let (host, ann, eve) = (identity(), identity(), identity());
    let proxy = proxying::Proxy::start(proxying::Options {
        host: "127.0.0.1".into(),
        port: 0,
        port_end: 1,
        web_port: 0,
        web_clients: false,
        web_origins: Vec::new(),
        index_page: None,
        resource_files: Vec::new(),
        tracker: None,
        timeout_client: Duration::from_secs(20),
        timeout_server: Duration::from_secs(20),
        silent: true,
    })
    .unwrap();
    let port = proxy.port();
    let gate = Gate::new(&host, keys(&[(&ann, "ann call=*")]), None, "board").unwrap();
    let behind = Behind {
        host: "127.0.0.1".into(),
        port,
        key: "board".into(),
        greeter: Greeter::Secure(Box::new(gate)),
        isolation: Isolation::Thread,
        grant: Grant::open(Path::new("")),
        scratch: Scratch::make(None).unwrap(),
    };
    // It serves two clients and one that it does not know, and is then done.
    let left = std::sync::atomic::AtomicUsize::new(3);
    let going_on = || left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
    std::thread::scope(|scope| {
        scope.spawn(|| behind.serve(&going_on).unwrap());
        let place = Target { port, ..target_of("board") };
        let session = connect_through_proxy(&place, &credentials(&ann, &host)).unwrap();
        assert_eq!(add(&session).unwrap().as_int(), Some(3));
        session.close();
        let unknown = connect_through_proxy(&place, &credentials(&eve, &host)).unwrap_err();
        assert!(unknown.message().contains("does not know this key"), "{unknown}");
        let written = Place::parse(&format!("board@proxy:127.0.0.1:{port}")).unwrap();
        let session = written.connect(&credentials(&ann, &host), None).unwrap();
        assert_eq!(add(&session).unwrap().as_int(), Some(3));
        session.close();
    });
}

#[test]
fn a_call_whose_session_is_closed_fails_and_says_so() {
    functions();
    let (entered, enters) = std::sync::mpsc::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let (entered, released) = (std::sync::Mutex::new(entered), std::sync::Mutex::new(released));
    let waits = Function::new(move |_args| {
        let _ = entered.lock().unwrap().send(());
        let _ = released.lock().unwrap().recv();
        Ok(Any::none())
    });
    let _ = register_global("secure.waits", waits);
    let (host, ann) = (identity(), identity());
    let server = serve(Gate::new(&host, keys(&[(&ann, "ann call=*")]), None, "").unwrap(), None);
    let session = connect(&target(&server, ""), &credentials(&ann, &host), &[]).unwrap();
    let function = session.function("secure.waits").unwrap();
    std::thread::scope(|scope| {
        let call = scope.spawn(|| function.call(&[]).unwrap_err());
        enters.recv().unwrap();
        session.close();
        let error = call.join().unwrap();
        assert_eq!(error.kind(), "CancelledError");
        assert!(error.message().contains("was closed while the call ran"), "{error}");
    });
    assert_eq!(add(&session).unwrap_err().kind(), "CancelledError");
    // Another session goes on.
    let session = connect(&target(&server, ""), &credentials(&ann, &host), &[]).unwrap();
    assert_eq!(add(&session).unwrap().as_int(), Some(3));
    drop(release);
}

/// The session's process has the connection itself, behind a second handshake: what comes, goes, is cancelled and ends there.
#[test]
fn a_session_in_a_process_of_its_own_speaks_tls_itself() {
    let command = [env!("CARGO_BIN_EXE_relaxide-rpc"), "session"].map(Into::into).to_vec();
    let (host, ann, bob) = (identity(), identity(), identity());
    let known = keys(&[(&ann, "ann files call=*"), (&bob, "bob sessions=1 call=ffi.Shape")]);
    let server = serve_in(Isolation::Process(command), Gate::new(&host, known, None, "").unwrap(), None);
    let session = connect(&target(&server, ""), &credentials(&ann, &host), &[]).unwrap();
    let values: Vec<f32> = (0..1 << 20).map(|x| x as f32).collect();
    let here = Tensor::from_slice(&values, &[1 << 20]).unwrap();
    let there = session.tensor(&here, session.device(Device::cpu(0)).unwrap()).unwrap();
    let back = relaxide_runtime::device::copy_tensor(&there, Device::cpu(0)).unwrap();
    assert!(back.to_vec::<f32>().unwrap() == values);
    session.upload("file", &[7; 100_000]).unwrap();
    assert_eq!(session.download("file").unwrap().as_slice(), [7; 100_000]);
    // Timed for as good as ever, and cancelled.
    let make = session.function("runtime.RPCTimeEvaluator").unwrap();
    let (name, none) = (Any::from("ffi.Shape"), Any::from(""));
    let mut args = vec![relaxide_ffi::AnyView::none(), name.as_view()];
    args.extend([1_i64, 0, i64::from(u32::MAX), i64::from(u32::MAX), 0, 100, 0, 1, 0].map(relaxide_ffi::AnyView::from));
    args.push(none.as_view());
    let evaluator: Function = make.call(&args).unwrap().to().unwrap();
    let call = relaxide_rpc::session::call::Started::start(evaluator, vec![1_i64.into()]).unwrap();
    assert!(!call.wait(Some(Duration::from_millis(300))).unwrap());
    call.cancel(Duration::from_secs(60)).unwrap();
    assert!(call.wait(Some(Duration::from_secs(60))).unwrap());
    assert_eq!(call.value().unwrap_err().kind(), "CancelledError");
    assert_eq!(session.download("file").unwrap().as_slice(), [7; 100_000]);
    // A key's sessions are counted as long as their processes last.
    let first = connect(&target(&server, ""), &credentials(&bob, &host), &[]).unwrap();
    let error = connect(&target(&server, ""), &credentials(&bob, &host), &[]).unwrap_err();
    assert!(error.message().contains("may have 1"), "{error}");
    assert!(first.function("ffi.String").is_err() && first.function("ffi.Shape").is_ok());
    first.close();
    let end = Instant::now() + Duration::from_secs(20);
    while connect(&target(&server, ""), &credentials(&bob, &host), &[]).is_err() {
        assert!(Instant::now() < end, "the session still counts");
        std::thread::sleep(Duration::from_millis(20));
    }
}
