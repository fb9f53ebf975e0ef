//! Bytes that TVM's own ends exchanged are read, and written again as they were.

use relaxide_rpc::wire::handshake::{Key, MAGIC};
use relaxide_rpc::wire::{Code, Copy, Dialect, Framer, Limits, Piece, Reply, Request};

struct Message {
    towards_server: bool,
    bytes: Vec<u8>,
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

/// The messages of every data connection of a recording, connection by connection. Those whose middle was left out are missing.
fn connections(text: &str) -> Vec<(String, Vec<Message>)> {
    let mut found: Vec<(String, Vec<Message>)> = Vec::new();
    for line in text.lines() {
        if let Some(label) = line.strip_prefix("== rpc ") {
            found.push((label.to_owned(), Vec::new()));
        } else if line.starts_with("== ") {
            found.push((String::new(), Vec::new()));
        } else if let Some((side @ (">" | "<"), hex)) = line.split_once(' ')
            && let (Some(bytes), Some((_, messages))) = (unhex(hex), found.last_mut())
        {
            messages.push(Message { towards_server: side == ">", bytes });
        }
    }
    found.retain(|(label, _)| !label.is_empty());
    found
}

/// What a packet is, written again.
fn again(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let limits = Limits::default();
    let mut framer = Framer::new(Dialect::Tvm, limits);
    framer.space()[..0].fill(0);
    let mut fed = 0;
    let mut whole = Vec::new();
    while fed < bytes.len() {
        let space = framer.space();
        let count = space.len().min(bytes.len() - fed);
        space[..count].copy_from_slice(&bytes[fed..fed + count]);
        framer.filled(count);
        fed += count;
    }
    while let Some(piece) = framer.next(|_| true).map_err(|error| error.to_string())? {
        match piece {
            Piece::Packet(head, body) if head.code == Code::Shutdown => {
                assert!(body.is_empty());
                whole.extend(12_u64.to_le_bytes().iter().take(0));
                whole.extend([4, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
            }
            Piece::Packet(head, body) if head.code.is_reply() => {
                let reply = Reply::read(head.code, &body, Dialect::Tvm, &limits).map_err(|error| error.to_string())?;
                whole.extend(reply.packet(0, Dialect::Tvm));
            }
            Piece::Packet(head, body) => {
                let request =
                    Request::read(head.code, &body, Dialect::Tvm, &limits).map_err(|error| error.to_string())?;
                whole.extend(request.packet(0));
            }
            Piece::CopyTo(_, copy) => {
                let mut payload = vec![0; copy.bytes as usize];
                let taken = framer.take_payload(&mut payload);
                whole.extend(Request::CopyTo(Copy { ..copy }, Vec::new()).packet(0));
                whole.extend(&payload[..taken]);
            }
            Piece::CopyAck(_, count) => {
                let mut payload = vec![0; count as usize];
                let taken = framer.take_payload(&mut payload);
                whole.extend(Reply::CopyAck(count).packet(0, Dialect::Tvm));
                whole.extend(&payload[..taken]);
            }
        }
    }
    Ok(whole)
}

fn is_packet(bytes: &[u8]) -> bool {
    let length = bytes.first_chunk::<8>().map(|length| u64::from_le_bytes(*length));
    length == Some(bytes.len() as u64 - bytes.len().min(8) as u64) && bytes.len() > 8
}

#[test]
fn recorded_packets_are_read_and_written_alike() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recordings");
    let (mut packets, mut differ, mut refused) = (0, Vec::new(), Vec::new());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        for (label, messages) in connections(&std::fs::read_to_string(&path).unwrap()) {
            for message in messages.iter().filter(|message| is_packet(&message.bytes)) {
                packets += 1;
                match again(&message.bytes) {
                    Ok(bytes) if bytes == message.bytes => {}
                    Ok(_) => differ.push(format!("{name} {label}")),
                    Err(error) => refused.push((name.clone(), label.clone(), message.towards_server, error)),
                }
            }
        }
    }
    assert!(packets > 800, "{packets}");
    // A string that says it is small and is not: written again, it says what it is.
    assert!(differ.iter().all(|place| place.starts_with("17-raw") || place.starts_with("19-raw")), "{differ:#?}");
    assert!(differ.len() <= 4, "{differ:#?}");
    // What the recordings hold of broken packets is refused, and nothing else is.
    for (name, label, _, error) in &refused {
        assert!(name.starts_with("17-raw") || name.starts_with("19-raw"), "{name} {label}: {error}");
    }
    assert!(refused.len() < 20, "{refused:#?}");
}

#[test]
fn recorded_keys_are_read_and_written_alike() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recordings");
    let mut keys = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        for (_, messages) in connections(&std::fs::read_to_string(&path).unwrap()) {
            for pair in messages.windows(3) {
                let [magic, length, key] = pair else { continue };
                if magic.bytes != MAGIC.to_le_bytes() || length.bytes.len() != 4 {
                    continue;
                }
                let Ok(parsed) = Key::parse(&key.bytes) else { continue };
                keys += 1;
                let text = String::from_utf8(key.bytes.clone()).unwrap();
                if parsed.timeout.is_none() && !text.contains(' ') {
                    assert_eq!(parsed.text(), text);
                }
            }
        }
    }
    assert!(keys > 30, "{keys}");
}
