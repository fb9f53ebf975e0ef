//! Sessions within the process: what calls, tensors, files and errors do, in both forms of the protocol.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};

use relaxide_ffi::{
    Any, AnyView, Array, Bytes, DataType, Device, Error, ErrorKind, Function, Map, Module, Shape, Tensor,
    register_global,
};
use relaxide_rpc::Session;
use relaxide_rpc::session::{client::SessionCore, local};
use relaxide_rpc::wire::Dialect;

static LIVE: AtomicUsize = AtomicUsize::new(0);

struct Counted;

impl Drop for Counted {
    fn drop(&mut self) {
        LIVE.fetch_sub(1, Ordering::SeqCst);
    }
}

fn functions() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let enter = |name: &str, function: Function| register_global(name, function).unwrap();
        enter("test.addone", Function::typed(|x: i64| Ok::<_, Error>(x + 1)));
        enter("test.echo", Function::new(|args| Ok(args.first().map_or(Any::none(), |arg| arg.to_owned()))));
        enter("test.strcat", Function::typed(|name: String, x: i64| Ok::<_, Error>(format!("{name}:{x}"))));
        enter("test.fail", Function::typed(|kind: String, message: String| Err::<(), _>(Error::new(kind, message))));
        enter(
            "test.adder",
            Function::typed(|x: i64| {
                LIVE.fetch_add(1, Ordering::SeqCst);
                let counted = Counted;
                Ok::<_, Error>(Function::typed(move |y: i64| {
                    let _ = &counted;
                    Ok::<_, Error>(x + y)
                }))
            }),
        );
        enter("test.call", Function::new(|args| args[0].to::<Function>()?.call(&args[1..])));
        enter(
            "test.sum",
            Function::typed(|tensor: Tensor| {
                Ok::<_, Error>(tensor.to_vec::<f32>()?.iter().map(|x| f64::from(*x)).sum::<f64>())
            }),
        );
        enter("test.ones", Function::typed(|n: i64| Tensor::from_slice(&vec![1.0_f32; n as usize], &[n])));
        enter("test.tail", Function::typed(|tensor: Tensor| tensor.view(&[2], DataType::float(32), 8)));
        enter(
            "test.nested",
            Function::typed(|| {
                let tensor = Tensor::from_slice(&[1.0_f32, 2.0], &[2])?;
                Ok::<_, Error>(vec![Any::from(1_i64), Any::from("two"), tensor.into(), Any::from(vec![Any::from(4.0)])])
            }),
        );
        enter(
            "test.sleep",
            Function::typed(|ms: u64| {
                std::thread::sleep(std::time::Duration::from_millis(ms));
                Ok::<_, Error>(Any::none())
            }),
        );
    });
}

fn session(dialect: Dialect) -> Session {
    functions();
    local::session(dialect).unwrap()
}

fn both(check: impl Fn(&Session, Dialect)) {
    for dialect in [Dialect::Own, Dialect::Tvm] {
        check(&session(dialect), dialect);
    }
}

fn call(session: &Session, name: &str, args: &[Any]) -> Result<Any, Error> {
    let views: Vec<AnyView<'_>> = args.iter().map(Any::as_view).collect();
    session.function(name)?.call(&views)
}

#[test]
fn plain_values_come_back_as_they_went() {
    both(|session, _| {
        let echo = session.function("test.echo").unwrap();
        let values: Vec<Any> = vec![
            Any::none(),
            i64::MIN.into(),
            true.into(),
            f64::INFINITY.into(),
            DataType::float(32).with_lanes(4).into(),
            "".into(),
            "eightby8".into(),
            "with \0 inside, é中".into(),
            Bytes::new(b"\0\x01").into(),
            Bytes::new(&[7; 100]).into(),
        ];
        for value in values {
            let back = echo.call(&[value.as_view()]).unwrap();
            assert_eq!(back.type_index(), value.type_index(), "{value:?}");
            assert_eq!(back.as_str(), value.as_str());
            assert_eq!(back.as_bytes(), value.as_bytes());
            assert!(value.as_object().is_some() || back.as_view().raw().word() == value.as_view().raw().word());
        }
        assert_eq!(call(session, "test.strcat", &["abc".into(), 11_i64.into()]).unwrap().as_str(), Some("abc:11"));
        assert!(session.find_function("no.such.function").unwrap().is_none());
    });
}

#[test]
fn errors_say_what_happened_there_and_the_session_goes_on() {
    both(|session, dialect| {
        let error = call(session, "test.fail", &["KeyError".into(), "one\ntwo \0 three".into()]).unwrap_err();
        match dialect {
            Dialect::Own => {
                assert_eq!((error.kind(), error.message()), ("KeyError", "one\ntwo \\0 three"));
                assert!(error.backtrace().contains("in remote call"));
            }
            Dialect::Tvm => {
                assert_eq!(error.kind(), "RPCError");
                assert_eq!(error.message(), "RPCError: Error caught from RPC call:\none\ntwo \\0 three");
            }
        }
        assert!(call(session, "test.addone", &["text".into()]).is_err());
        assert_eq!(call(session, "test.addone", &[1_i64.into()]).unwrap().as_int(), Some(2));
    });
}

#[test]
fn tensors_live_there_and_offsets_count() {
    both(|session, _| {
        let device = session.device(Device::cpu(0)).unwrap();
        assert!(device.to_string().starts_with("remote["));
        let here = Tensor::from_slice(&[1.0_f32, 2.0, 3.0, 4.0], &[4]).unwrap();
        let there = session.tensor(&here, device).unwrap();
        assert_eq!(there.device(), device);
        let read = |tensor: &Tensor| {
            relaxide_runtime::device::copy_tensor(tensor, Device::cpu(0)).unwrap().to_vec::<f32>().unwrap()
        };
        assert_eq!(read(&there), [1.0, 2.0, 3.0, 4.0]);
        // A view's offset counts, in copies and in calls.
        let tail = there.view(&[2], DataType::float(32), 8).unwrap();
        assert_eq!(read(&tail), [3.0, 4.0]);
        let new = Tensor::from_slice(&[30.0_f32, 40.0], &[2]).unwrap();
        relaxide_runtime::device::copy_into(&new, &tail).unwrap();
        assert_eq!(read(&there), [1.0, 2.0, 30.0, 40.0]);
        assert_eq!(call(session, "test.sum", &[(&tail).into()]).unwrap().as_float(), Some(70.0));
        // A function that returns its argument, or a part of it.
        let echoed: Tensor = call(session, "test.echo", &[(&there).into()]).unwrap().to().unwrap();
        assert_eq!(read(&echoed), [1.0, 2.0, 30.0, 40.0]);
        let part: Tensor = call(session, "test.tail", &[(&there).into()]).unwrap().to().unwrap();
        drop((there, echoed));
        assert_eq!(read(&part), [30.0, 40.0]);
        // One that was made there; copies among them; none at all.
        let ones: Tensor = call(session, "test.ones", &[2_i64.into()]).unwrap().to().unwrap();
        relaxide_runtime::device::copy_into(&ones, &part).unwrap();
        assert_eq!(read(&part), [1.0, 1.0]);
        let empty = session.tensor(&Tensor::zeros(&[0, 3], DataType::float(32)).unwrap(), device).unwrap();
        assert_eq!(read(&empty), [0.0; 0]);
        // What cannot be sent is refused before a byte is written.
        assert!(call(session, "test.sum", &[(&here).into()]).unwrap_err().message().contains("local device"));
        assert!(call(session, "test.echo", &[Device::cpu(0).into()]).is_err());
        assert!(session.empty(&[4], DataType::float(32), Device::new(Device::CUDA, 0), None).is_err());
        assert!(
            session
                .empty(&[4], DataType::float(32), device, Some("texture"))
                .unwrap_err()
                .message()
                .contains("texture")
        );
        assert_eq!(call(session, "test.addone", &[1_i64.into()]).unwrap().as_int(), Some(2));
    });
}

#[test]
fn functions_and_modules_of_the_far_side_are_used_here() {
    both(|session, _| {
        let adder: Function = call(session, "test.adder", &[10_i64.into()]).unwrap().to().unwrap();
        assert_eq!(adder.call(&[5_i64.into()]).unwrap().as_int(), Some(15));
        // Passed back, it is the far function itself.
        let called = call(session, "test.call", &[(&adder).into(), 7_i64.into()]).unwrap();
        assert_eq!(called.as_int(), Some(17));
        let system: Module = call(session, "ffi.SystemLib", &[]).unwrap().to().unwrap();
        assert_eq!(system.kind(), "rpc");
        assert!(system.get_function("nothing of the kind", false).is_none());
    });
}

#[test]
fn what_is_dropped_here_is_freed_there() {
    both(|session, _| {
        let before = LIVE.load(Ordering::SeqCst);
        let functions: Vec<Any> = (0..1000).map(|_| call(session, "test.adder", &[1_i64.into()]).unwrap()).collect();
        assert!(LIVE.load(Ordering::SeqCst) >= before + 1000);
        drop(functions);
        session.settle().unwrap();
        assert!(LIVE.load(Ordering::SeqCst) <= before, "{before}");
    });
}

#[test]
fn functions_of_this_side_are_called_from_there() {
    let session = session(Dialect::Own);
    let double = Function::typed(|x: i64| Ok::<_, Error>(2 * x));
    assert_eq!(call(&session, "test.call", &[(&double).into(), 21_i64.into()]).unwrap().as_int(), Some(42));
    // It may ask the far side itself, and so on.
    let peer = Arc::clone(session.peer());
    let deep = Function::new(move |args| {
        let left: i64 = args[1].to()?;
        if left == 0 {
            return Ok(0_i64.into());
        }
        let call = peer.global_function("test.call")?.unwrap();
        let below = call.call(&[args[0], args[0], (left - 1).into()])?;
        Ok((below.to::<i64>()? + 1).into())
    });
    let called = call(&session, "test.call", &[(&deep).into(), (&deep).into(), 20_i64.into()]).unwrap();
    assert_eq!(called.as_int(), Some(20));
    // Too deep is an error, not an overflow of a stack.
    let error = call(&session, "test.call", &[(&deep).into(), (&deep).into(), 1000_i64.into()]).unwrap_err();
    assert!(error.message().contains("deep in each other"), "{error}");
    // Its own errors pass through both.
    let fails = Function::typed(|| Err::<(), _>(Error::new(ErrorKind::IndexError, "not here")));
    let error = call(&session, "test.call", &[(&fails).into()]).unwrap_err();
    assert_eq!((error.kind(), error.message()), ("IndexError", "not here"));
    let in_tvms = self::session(Dialect::Tvm);
    assert!(call(&in_tvms, "test.call", &[(&double).into()]).unwrap_err().message().contains("no form for functions"));
    assert_eq!(call(&in_tvms, "test.addone", &[1_i64.into()]).unwrap().as_int(), Some(2));
}

#[test]
fn containers_cross_in_our_own_form() {
    let session = session(Dialect::Own);
    let nested: Array = call(&session, "test.nested", &[]).unwrap().to().unwrap();
    assert_eq!(nested.get(1).unwrap().as_str(), Some("two"));
    let tensor: Tensor = nested.get(2).unwrap().to().unwrap();
    assert!(tensor.device().remote().is_some());
    let back: Array = call(&session, "test.echo", &[(&nested).into()]).unwrap().to().unwrap();
    assert_eq!(back.len(), 4);
    let shape = call(&session, "test.echo", &[Shape::new(&[1, -2]).into()]).unwrap();
    assert_eq!(shape.to::<Shape>().unwrap().as_slice(), [1, -2]);
    let map: Map = [("a", 1_i64), ("b", 2)].into_iter().collect();
    let map: Map = call(&session, "test.echo", &[(&map).into()]).unwrap().to().unwrap();
    assert_eq!(map.get("b").unwrap().as_int(), Some(2));
    let device = session.device(Device::cpu(1)).unwrap();
    assert_eq!(call(&session, "test.echo", &[device.into()]).unwrap().to::<Device>().unwrap(), device);
    // TVM's has no form for them as arguments; as results they are handles.
    let in_tvms = self::session(Dialect::Tvm);
    let error = call(&in_tvms, "test.echo", &[(&nested).into()]).unwrap_err();
    assert!(error.message().starts_with("Cannot pass argument 0, type ffi.Array (type_index = 71)"), "{error}");
    let object = call(&in_tvms, "test.nested", &[]).unwrap();
    assert_eq!(object.type_key(), "runtime.RPCObjectRef");
    let item = call(&in_tvms, "ffi.ArrayGetItem", &[object.clone(), 2_i64.into()]);
    assert!(item.is_ok_and(|item| item.as_tensor().is_some()));
}

#[test]
fn files_go_both_ways_and_stay_in_their_folder() {
    both(|session, _| {
        let data: Vec<u8> = (0..=255).cycle().take(100_000).collect();
        session.upload("a/dat.bin", &data).unwrap();
        assert_eq!(session.download("a/dat.bin").unwrap().as_slice(), data);
        session.remove("a/dat.bin").unwrap();
        assert!(session.download("a/dat.bin").unwrap_err().message().contains("Cannot open a/dat.bin"));
        for name in ["../x", "/tmp/x", "a/../../x"] {
            assert!(session.upload(name, b"x").is_err(), "{name}");
            assert!(session.download(name).is_err(), "{name}");
        }
        session.upload("junk.so", b"no library").unwrap();
        assert!(session.load_module("junk.so").unwrap_err().message().contains("junk.so"));
        assert!(session.load_module("absent.so").is_err());
    });
}

#[test]
fn functions_are_timed_on_the_far_side() {
    both(|session, _| {
        let make = session.function("runtime.RPCTimeEvaluator").unwrap();
        let (name, none) = (Any::from("test.sleep"), Any::from(""));
        let mut args = vec![AnyView::none(), name.as_view()];
        args.extend([1_i64, 0, 2, 3, 0, 100, 0, 1, 0].map(AnyView::from));
        args.push(none.as_view());
        let evaluator: Function = make.call(&args).unwrap().to().unwrap();
        let seconds: Bytes = evaluator.call(&[3_i64.into()]).unwrap().to().unwrap();
        let (seconds, rest) = seconds.as_slice().as_chunks::<8>();
        assert!(rest.is_empty() && seconds.len() == 3);
        assert!(seconds.iter().all(|bytes| (0.003..0.1).contains(&f64::from_ne_bytes(*bytes))));
    });
}

#[test]
fn copies_are_sent_ahead_and_their_errors_are_not_lost() {
    both(|session, _| {
        let device = session.device(Device::cpu(0)).unwrap();
        let tensors: Vec<Tensor> =
            (0..20).map(|_| session.empty(&[1000], DataType::float(32), device, None).unwrap()).collect();
        let pending: Vec<_> = (tensors.iter().enumerate())
            .map(|(i, tensor)| {
                session.copy_ahead(&Tensor::from_slice(&[i as f32; 1000], &[1000]).unwrap(), tensor).unwrap()
            })
            .collect();
        for (i, tensor) in tensors.iter().enumerate() {
            let sum = call(session, "test.sum", &[tensor.into()]).unwrap().as_float();
            assert_eq!(sum, Some(i as f64 * 1000.0));
        }
        assert!(pending.iter().all(|pending| matches!(pending.outcome(), Some(Ok(())))));
        let wrong = Tensor::zeros(&[7], DataType::float(32)).unwrap();
        assert!(session.copy_ahead(&wrong, &tensors[0]).is_err());
        let late = session.copy_ahead(&Tensor::zeros(&[1000], DataType::float(32)).unwrap(), &tensors[0]).unwrap();
        session.close();
        assert!(session.settle().is_err());
        assert!(!matches!(late.outcome(), Some(Ok(()))));
    });
}

#[test]
fn threads_share_a_session() {
    both(|session, _| {
        std::thread::scope(|scope| {
            for thread in 0..8_i64 {
                scope.spawn(move || {
                    for i in 0..100 {
                        let sum = call(session, "test.addone", &[(1000 * thread + i).into()]).unwrap();
                        assert_eq!(sum.as_int(), Some(1000 * thread + i + 1));
                    }
                });
            }
        });
    });
}

#[test]
fn a_closed_session_says_so() {
    both(|session, _| {
        let function = session.function("test.addone").unwrap();
        session.close();
        for _ in 0..2 {
            let error = function.call(&[1_i64.into()]).unwrap_err();
            assert!(error.message().contains("previously closed"), "{error}");
        }
    });
}

#[test]
fn a_reply_that_does_not_come_in_time_ends_the_session() {
    both(|session, _| {
        session.set_timeout(Some(std::time::Duration::from_millis(50)));
        let error = call(session, "test.sleep", &[2000_i64.into()]).unwrap_err();
        assert_eq!(error.kind(), "TimeoutError", "{error}");
        assert!(call(session, "test.addone", &[1_i64.into()]).is_err());
    });
}

/// Memory of an OpenCL device has no addresses: a part of a tensor is a handle and an offset, on the far side too.
#[test]
fn tensors_of_another_device_stay_on_the_far_side() {
    relaxide_rpc::register();
    if !relaxide_runtime::device::device_exists(Device::new(Device::OPENCL, 0)) {
        eprintln!("skipped: there is no OpenCL device");
        return;
    }
    for dialect in [Dialect::Own, Dialect::Tvm] {
        let session = local::session(dialect).unwrap();
        let values: Vec<f32> = (0..300).map(|x| x as f32).collect();
        let here = Tensor::from_slice(&values, &[300]).unwrap();
        let there = session.tensor(&here, session.device(Device::new(Device::OPENCL, 0)).unwrap()).unwrap();
        assert_eq!(there.device().remote().map(|(_, device)| device.device_type), Some(Device::OPENCL));
        let part = relaxide_runtime::device::view_at(&there, &[10], DataType::float(32), 400).unwrap();
        let back = relaxide_runtime::device::copy_tensor(&part, Device::cpu(0)).unwrap();
        assert_eq!(back.to_vec::<f32>().unwrap(), values[100..110]);
        let absent = session.empty(&[4], DataType::float(32), Device::new(Device::OPENCL, 77), None).unwrap_err();
        assert!(absent.message().contains("opencl:77"), "{absent}");
    }
}
