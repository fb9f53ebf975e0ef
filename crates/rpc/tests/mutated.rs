//! Packets that were changed at random: read or refused, never more; and a server that serves them lives, answers and lets go.

use std::sync::OnceLock;
use std::time::Duration;

use proptest::prelude::*;
use relaxide_ffi::{AnyView, Error, Function, register_global};
use relaxide_rpc::server::environment::Environment;
use relaxide_rpc::server::policy::Policy;
use relaxide_rpc::session::host::Host;
use relaxide_rpc::session::local::serve;
use relaxide_rpc::transport::memory;
use relaxide_rpc::wire::{Cancel, Code, Dialect, Framer, Limits, Piece, Reply, Request, Ticket, Value, WireTensor};

/// Packets of every kind: those that were recorded, and those that only our ends send.
fn packets() -> &'static [Vec<u8>] {
    static PACKETS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    PACKETS.get_or_init(|| {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recordings")).unwrap() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            for line in text.lines().filter(|line| line.starts_with(['>', '<'])) {
                let Some((_, hex)) = line.split_once(' ') else { continue };
                let bytes: Option<Vec<u8>> =
                    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()).collect();
                found.extend(bytes.filter(|bytes| bytes.len() > 12));
            }
        }
        found.sort();
        found.dedup();
        let tensor = WireTensor {
            data: 1 << 32,
            device: relaxide_ffi::Device::cpu(0),
            dtype: relaxide_ffi::DataType::float(32),
            shape: vec![2, 3],
            byte_offset: 4,
        };
        let nested = Value::Array(vec![
            Value::Map(vec![(Value::Str(b"k".to_vec()), Value::Shape(vec![1, 2]))]),
            Value::OwnTensor(tensor, 9),
            Value::Object { kind: 68, handle: 3, owner: relaxide_rpc::wire::Owner::Sender },
        ]);
        found.push(Request::Call { handle: 1, args: vec![nested.clone(), Value::None] }.packet(0));
        found.push(Reply::Return(vec![nested]).packet(2, Dialect::Own));
        found.push(Reply::Exception(relaxide_rpc::wire::Failure::new("KeyError", "k")).packet(1, Dialect::Own));
        let ticket = Ticket { depth: 0, number: 2 };
        found.push(Cancel { ticket, grace_ms: 0 }.packet());
        assert!(found.len() > 200, "{}", found.len());
        found
    })
}

/// A change: where, and how.
type Change = (prop::sample::Index, u8, u8);

fn changed(packet: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut bytes = packet.to_vec();
    for (at, how, value) in changes {
        if bytes.is_empty() {
            break;
        }
        let at = at.index(bytes.len());
        match how % 6 {
            0 => bytes[at] ^= 1 << (value % 8),
            1 => bytes[at] = *value,
            2 => drop(bytes.remove(at)),
            3 => bytes.insert(at, *value),
            4 => bytes.truncate(at),
            // The numbers that lengths and counts go wrong with.
            _ => {
                let extreme = [0, 1, u64::MAX, i64::MAX as u64, u64::from(u32::MAX), 1 << 31, 1 << 62, 63]
                    [usize::from(value % 8)];
                for (byte, new) in bytes[at..].iter_mut().zip(extreme.to_le_bytes()) {
                    *byte = new;
                }
            }
        }
    }
    bytes
}

/// Makes the length in front right again, so that what is behind it is looked at.
fn mended(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() >= 8 {
        let length = bytes.len() as u64 - 8;
        bytes[..8].copy_from_slice(&length.to_le_bytes());
    }
    bytes
}

fn read(bytes: &[u8], dialect: Dialect) -> Result<(), TestCaseError> {
    let limits = Limits { packet: 1 << 20, copy: 1 << 20, ..Limits::default() };
    let mut framer = Framer::new(dialect, limits);
    let space = framer.space();
    let count = bytes.len().min(space.len());
    space[..count].copy_from_slice(&bytes[..count]);
    framer.filled(count);
    // An error ends the stream, and so does a payload that is not all there.
    while let Ok(Some(piece)) = framer.next(|_| true) {
        match piece {
            Piece::Packet(head, body) if head.code.is_reply() => {
                if let Ok(reply) = Reply::read(head.code, &body, dialect, &limits) {
                    let again = reply.packet(head.depth, dialect);
                    let back = Reply::read(head.code, &again[12..], dialect, &limits);
                    prop_assert!(back.is_ok_and(|back| back.packet(head.depth, dialect) == again));
                }
            }
            Piece::Packet(head, body) if head.code == Code::Cancel => {
                if let Ok(cancel) = Cancel::read(head.depth, &body, &limits) {
                    prop_assert_eq!(&cancel.packet()[12..], &body[..]);
                }
            }
            Piece::Packet(head, body) if head.code != Code::Shutdown => {
                if let Ok(request) = Request::read(head.code, &body, dialect, &limits) {
                    let again = request.packet(head.depth);
                    let payload = if let Request::CopyTo(_, payload) = &request { payload.clone() } else { Vec::new() };
                    let back = Request::read(head.code, &[&again[12..], &payload].concat(), dialect, &limits);
                    prop_assert!(back.is_ok_and(|back| back.packet(head.depth) == again));
                }
            }
            Piece::Packet(..) => {}
            Piece::CopyTo(..) | Piece::CopyAck(..) => {
                let mut scrap = vec![0; 1 << 16];
                while framer.payload_left() > 0 && framer.take_payload(&mut scrap) > 0 {}
                if framer.payload_left() > 0 {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// A server of this process that may do little, fed with bytes: how it ends, and that it does.
fn served(stream: &[u8], dialect: Dialect) -> Result<(), TestCaseError> {
    let _ = register_global(
        "mutated.echo",
        Function::new(|args| Ok(args.first().map_or(relaxide_ffi::Any::none(), AnyView::to_owned))),
    );
    let _ = register_global("mutated.fail", Function::typed(|| Err::<(), _>(Error::new("KeyError", "k"))));
    let folder = tempfile::tempdir().unwrap();
    let mut policy = Policy { files: true, memory: Some(1 << 22), ..Policy::default() };
    policy.functions = vec!["mutated.*".into(), "ffi.Shape".into()];
    let host = Host::server(Environment::new(folder.path(), &policy).unwrap(), policy);
    let (mut near, far) = memory::pair("a mutated client");
    let limits = Limits { packet: 1 << 20, copy: 1 << 20, ..Limits::default() };
    let serving = std::sync::Arc::clone(&host);
    let (tell, told) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        // Whether it was an error is the server's to say; that it returns is what counts.
        let _ = serve(far, dialect, limits, serving);
        let _ = tell.send(());
    });
    // Replies are read, or the server would wait for room.
    let mut source = near.source;
    let reader = std::thread::spawn(move || {
        let mut place = vec![0; 1 << 16];
        while source.read(&mut place).is_ok_and(|count| count > 0) {}
    });
    let _ = near.sink.write(stream, &[]);
    drop(near.sink);
    prop_assert!(told.recv_timeout(Duration::from_secs(20)).is_ok(), "the server hangs");
    thread.join().unwrap();
    near.closer.close();
    reader.join().unwrap();
    let (handles, ranges, bytes) = host.exports().usage();
    prop_assert_eq!((handles, ranges, bytes), (0, 0, 0));
    Ok(())
}

/// The packets of each kind of message: requests, replies and errors by their codes.
fn kinds() -> &'static [Vec<&'static [u8]>] {
    static KINDS: OnceLock<Vec<Vec<&'static [u8]>>> = OnceLock::new();
    KINDS.get_or_init(|| {
        let mut kinds = std::collections::BTreeMap::<u32, Vec<&[u8]>>::new();
        for packet in packets() {
            let code = u32::from_le_bytes(packet[8..12].try_into().unwrap());
            kinds.entry(code).or_default().push(packet);
        }
        kinds.into_values().collect()
    })
}

fn is_deep() -> bool {
    std::env::var_os("RELAXIDE_DEEP").is_some()
}

/// A million for each kind of message where time is no matter.
fn packet_cases() -> u32 {
    if is_deep() { 1_000_000 * kinds().len() as u32 } else { 40_000 }
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<u8>()), 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: packet_cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_packets_are_read_or_refused(
        kind in any::<prop::sample::Index>(), which in any::<prop::sample::Index>(), changes in changes(), mend in any::<bool>(),
        own in any::<bool>(),
    ) {
        // Each kind as often as any other, however many of it were recorded.
        let of_kind = kind.get::<Vec<&'static [u8]>>(kinds());
        let bytes = changed(which.get::<&'static [u8]>(of_kind), &changes);
        read(&if mend { mended(bytes) } else { bytes }, if own { Dialect::Own } else { Dialect::Tvm })?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if is_deep() { 200_000 } else { 400 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_server_that_is_sent_them_ends_well(
        which in prop::collection::vec((any::<prop::sample::Index>(), changes(), any::<bool>()), 1..6), own in any::<bool>(),
    ) {
        let init = Request::Init { version: b"0.8.0".to_vec(), args: Vec::new() }.packet(0);
        let names = ["mutated.echo", "mutated.fail", "tvm.rpc.server.upload", "ffi.Shape"];
        let find = names.iter().map(|name| {
            let args = vec![Value::text(name)];
            Request::System(relaxide_rpc::wire::SystemCall { code: Code::GetGlobalFunc, args }).packet(0)
        });
        let mut stream: Vec<u8> = std::iter::once(init).chain(find).flatten().collect();
        for (packet, changes, mend) in which {
            let bytes = changed(packet.get::<Vec<u8>>(packets()), &changes);
            stream.extend(if mend { mended(bytes) } else { bytes });
        }
        served(&stream, if own { Dialect::Own } else { Dialect::Tvm })?;
    }
}
