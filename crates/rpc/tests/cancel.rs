//! Calls that are cancelled, over a session of our protocol: what ends, what goes on, and what cannot.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, Once, mpsc};
use std::time::{Duration, Instant};

use relaxide_ffi::{Any, AnyView, DataType, Device, Error, Function, Tensor, register_global, signal};
use relaxide_rpc::Session;
use relaxide_rpc::session::call::Started;
use relaxide_rpc::session::local;
use relaxide_rpc::wire::Dialect;

/// Long enough that only what hangs reaches it.
const LONG: Duration = Duration::from_secs(60);

static CALLS: AtomicUsize = AtomicUsize::new(0);

/// Tells a test that a call runs.
static ENTERED: Mutex<Option<mpsc::Sender<()>>> = Mutex::new(None);
/// What the next call of `cancel.held` waits for.
static HELD: Mutex<Option<mpsc::Receiver<()>>> = Mutex::new(None);
/// One test at a time has calls that say they run.
static TURN: Mutex<()> = Mutex::new(());

fn enter() {
    if let Some(entered) = &*ENTERED.lock().unwrap() {
        let _ = entered.send(());
    }
}

/// Works for ever, and asks whether it is to stop, as the virtual machine does.
fn work() -> Result<(), Error> {
    enter();
    let end = Instant::now() + LONG;
    while Instant::now() < end {
        signal::check()?;
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(Error::new("TestError", "nobody cancelled it"))
}

fn functions() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        relaxide_rpc::register();
        let enter_function = |name: &str, function: Function| register_global(name, function).unwrap();
        enter_function("cancel.work", Function::typed(|| work().map(Any::from)));
        enter_function(
            "cancel.disguised",
            Function::typed(|| {
                work().map_err(|error| Error::new("ValueError", format!("in vain: {error}"))).map(Any::from)
            }),
        );
        enter_function("cancel.count", Function::typed(|| Ok::<_, Error>(CALLS.fetch_add(1, Ordering::SeqCst) as i64)));
        enter_function(
            "cancel.stubborn",
            Function::typed(|ms: u64| {
                enter();
                std::thread::sleep(Duration::from_millis(ms));
                Ok::<_, Error>(7_i64)
            }),
        );
        enter_function(
            "cancel.held",
            Function::typed(|| {
                let held = HELD.lock().unwrap().take();
                enter();
                // Ends when the test lets go of the other side.
                held.map(|held| held.recv_timeout(LONG));
                Ok::<_, Error>(7_i64)
            }),
        );
        enter_function("cancel.call", Function::new(|args| args[0].to::<Function>()?.call(&args[1..])));
    });
}

fn session(dialect: Dialect) -> (Session, mpsc::Receiver<()>) {
    functions();
    let (tell, told) = mpsc::channel();
    *ENTERED.lock().unwrap() = Some(tell);
    (local::session(dialect).unwrap(), told)
}

fn start(session: &Session, name: &str, args: &[Any]) -> Started {
    Started::start(session.function(name).unwrap(), args.to_vec()).unwrap()
}

fn outcome(started: &Started) -> Result<Any, Error> {
    assert!(started.wait(Some(LONG)).unwrap(), "it does not end");
    started.value()
}

fn count(session: &Session) -> i64 {
    session.function("cancel.count").unwrap().call(&[]).unwrap().to().unwrap()
}

#[test]
fn a_call_that_runs_is_cancelled_and_the_session_goes_on() {
    let _turn = TURN.lock();
    let (session, entered) = session(Dialect::Own);
    for name in ["cancel.work", "cancel.disguised"] {
        let call = start(&session, name, &[]);
        entered.recv().unwrap();
        assert!(!call.is_done() && call.value().is_err_and(|error| error.kind() == "TimeoutError"));
        call.cancel(LONG).unwrap();
        let error = outcome(&call).unwrap_err();
        assert_eq!(error.kind(), signal::CANCELLED, "{error}");
        assert!(count(&session) >= 0);
    }
    // Cancelled again, and when it is long over.
    let call = start(&session, "cancel.count", &[]);
    outcome(&call).unwrap();
    call.cancel(LONG).unwrap();
    call.cancel(LONG).unwrap();
    assert!(call.value().is_ok() && count(&session) > 0);
}

#[test]
fn one_that_waits_is_cancelled_alone() {
    let _turn = TURN.lock();
    let (session, entered) = session(Dialect::Own);
    let function = session.function("cancel.count").unwrap();
    let before = count(&session);
    let runs = start(&session, "cancel.stubborn", &[300_i64.into()]);
    entered.recv().unwrap();
    let waits = Started::start(function, Vec::new()).unwrap();
    waits.cancel(LONG).unwrap();
    let error = outcome(&waits).unwrap_err();
    assert_eq!(error.kind(), signal::CANCELLED, "{error}");
    assert_eq!(outcome(&runs).unwrap().as_int(), Some(7), "the other goes on");
    assert_eq!(count(&session), before + 1, "it was not made");
}

#[test]
fn all_of_a_session_are_cancelled_at_once() {
    let _turn = TURN.lock();
    let (session, entered) = session(Dialect::Own);
    let count_function = session.function("cancel.count").unwrap();
    let before = count(&session);
    let runs = start(&session, "cancel.work", &[]);
    entered.recv().unwrap();
    let waiting: Vec<Started> = (0..3).map(|_| Started::start(count_function.clone(), Vec::new()).unwrap()).collect();
    // They have entered when they wait for the conversation, which nothing shows; so all is cancelled until all have failed.
    while !(runs.is_done() && waiting.iter().all(Started::is_done)) {
        session.cancel(LONG).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(runs.value().unwrap_err().kind(), signal::CANCELLED);
    let made = waiting.iter().filter(|call| call.value().is_ok()).count();
    assert_eq!(count(&session), before + 1 + made as i64);
}

#[test]
fn what_is_sent_ahead_of_it_is_looked_through() {
    let _turn = TURN.lock();
    let (session, entered) = session(Dialect::Own);
    let there = session.empty(&[1 << 16], DataType::float(32), Device::cpu(0), None).unwrap();
    let here = Tensor::from_slice(&vec![3.0_f32; 1 << 16], &[1 << 16]).unwrap();
    // Nothing stands behind the call, and then a copy that was sent before the call stands in front of it.
    let copied = session.copy_ahead(&here, &there).unwrap();
    let call = start(&session, "cancel.work", &[]);
    entered.recv().unwrap();
    call.cancel(LONG).unwrap();
    assert_eq!(outcome(&call).unwrap_err().kind(), signal::CANCELLED);
    session.settle().unwrap();
    assert!(copied.outcome().unwrap().is_ok());
    assert_eq!(relaxide_runtime::device::copy_tensor(&there, Device::cpu(0)).unwrap().to_vec::<f32>().unwrap()[9], 3.0);
}

#[test]
fn a_call_within_a_callback_is_cancelled_with_the_call() {
    let _turn = TURN.lock();
    let (session, entered) = session(Dialect::Own);
    let inner = session.function("cancel.work").unwrap();
    // The far side calls this, and it calls the far side.
    let back = Function::new(move |_args| inner.call(&[]));
    let call = start(&session, "cancel.call", &[back.into()]);
    entered.recv().unwrap();
    call.cancel(LONG).unwrap();
    assert_eq!(outcome(&call).unwrap_err().kind(), signal::CANCELLED);
    assert!(count(&session) >= 0);
}

#[test]
fn one_that_does_not_end_takes_the_session_with_it() {
    let _turn = TURN.lock();
    let (session, entered) = session(Dialect::Own);
    let call = start(&session, "cancel.stubborn", &[3000_i64.into()]);
    entered.recv().unwrap();
    call.cancel(Duration::from_millis(50)).unwrap();
    let error = outcome(&call).unwrap_err();
    assert!(error.message().contains("over") || error.kind() == signal::CANCELLED, "{error}");
    assert!(session.function("cancel.count").is_err());
}

#[test]
fn tvms_protocol_says_that_it_cannot() {
    let _turn = TURN.lock();
    let (session, entered) = session(Dialect::Tvm);
    let (let_go, held) = mpsc::channel();
    *HELD.lock().unwrap() = Some(held);
    let call = start(&session, "cancel.held", &[]);
    entered.recv().unwrap();
    for error in [call.cancel(LONG).unwrap_err(), session.cancel(LONG).unwrap_err()] {
        assert_eq!(error.kind(), "NotImplementedError");
        assert!(
            error.message().contains("TVM's protocol") && error.message().contains("closing the session"),
            "{error}"
        );
    }
    let_go.send(()).unwrap();
    assert_eq!(outcome(&call).unwrap().as_int(), Some(7), "nothing has happened to it");
    assert!(count(&session) >= 0);
}

#[test]
fn a_time_evaluator_stops_between_two_calls() {
    let _turn = TURN.lock();
    let (session, entered) = session(Dialect::Own);
    let make = session.function("runtime.RPCTimeEvaluator").unwrap();
    let (name, none) = (Any::from("cancel.stubborn"), Any::from(""));
    let mut args = vec![AnyView::none(), name.as_view()];
    args.extend([1_i64, 0, i64::from(u32::MAX), 1, 0, 100, 0, 1, 0].map(AnyView::from));
    args.push(none.as_view());
    let evaluator: Function = make.call(&args).unwrap().to().unwrap();
    let call = Started::start(evaluator, vec![1_i64.into()]).unwrap();
    // The first is not measured.
    for _ in 0..3 {
        entered.recv().unwrap();
    }
    call.cancel(LONG).unwrap();
    assert_eq!(outcome(&call).unwrap_err().kind(), signal::CANCELLED);
    assert!(count(&session) >= 0);
}
