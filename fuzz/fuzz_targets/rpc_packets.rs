//! Bytes as what the other end of a session sends, and as its greeting: nothing but an error or events that can be written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use relaxide_rpc::session::machine::{Event, Machine, Role};
use relaxide_rpc::tracker::protocol::Message;
use relaxide_rpc::wire::handshake::Key;
use relaxide_rpc::wire::{Dialect, Limits, Reply, Value};

/// Gives the machine so many of the bytes at most; false if there are none.
fn feed(machine: &mut Machine, rest: &mut &[u8], most: usize) -> bool {
    let (now, later) = rest.split_at(rest.len().min(most));
    machine.space()[..now.len()].copy_from_slice(now);
    machine.filled(now.len());
    *rest = later;
    !now.is_empty()
}

fuzz_target!(|data: &[u8]| {
    let Some((choice, bytes)) = data.split_first() else { return };
    let _ = Key::parse(bytes);
    let _ = Message::parse(bytes);
    let dialect = if choice & 1 == 0 { Dialect::Tvm } else { Dialect::Own };
    let limits = Limits { packet: 1 << 16, copy: 1 << 16, ..Limits::default() };
    let mut machine = Machine::new(Role::Server, dialect, limits);
    let mut rest = bytes;
    loop {
        match machine.next_event() {
            Err(_) => return,
            Ok(Some(Event::Request(request))) => {
                let again = request.packet(0);
                assert!(again.len() >= 12);
                // While it is being served, what stands behind it is looked at.
                while choice & 2 != 0 && machine.has_room_ahead() && feed(&mut machine, &mut rest, 64) {
                    match machine.look_ahead() {
                        Ok(event) => assert!(matches!(event, None | Some(Event::Cancel(_)))),
                        Err(_) => return,
                    }
                }
                let answer = machine.answer(&Reply::Return(vec![Value::None]));
                assert!(answer.is_ok());
            }
            Ok(Some(Event::Withdrawn)) => assert!(machine.answer(&Reply::Return(vec![Value::None])).is_ok()),
            Ok(Some(Event::CopyTo(_))) => {
                let mut place = [0; 512];
                while machine.payload_left() > 0 {
                    if machine.take_payload(&mut place) == 0 && !feed(&mut machine, &mut rest, 64) {
                        return;
                    }
                }
                assert!(machine.answer(&Reply::Return(vec![Value::None])).is_ok());
            }
            Ok(Some(_)) => return,
            Ok(None) => {
                if !feed(&mut machine, &mut rest, 1 + usize::from(*choice)) {
                    return;
                }
            }
        }
    }
});
