//! Every order in which bytes can arrive leads to the same conversation.
//!
//! Two machines talk over two queues of bytes. A script, drawn at random, says what is asked: calls that call back to any depth, copies,
//! requests that are sent ahead. A schedule, drawn at random too, says who acts next and how many bytes arrive, and, in our own form, what
//! the client cancels: anything that it has asked, answered or not, at any time. Whatever it says, each request must be answered once, by
//! the reply that was made for it, in order; only one that was cancelled may have the reply that says so instead.

use std::collections::{HashMap, HashSet, VecDeque};

use proptest::prelude::*;
use relaxide_ffi::{DataType, Device};
use relaxide_rpc::session::machine::{Event, Machine, Role};
use relaxide_rpc::wire::{Cancel, Copy, Dialect, Failure, Limits, Reply, Request, Ticket, Value, WireTensor};

/// What is asked, and what the other end asks before it answers.
#[derive(Clone, Debug)]
struct Ask {
    id: u64,
    kind: AskKind,
    inside: Vec<Vec<Ask>>,
}

#[derive(Clone, Copy, Debug)]
enum AskKind {
    Call,
    Fails,
    CopyTo(u16),
    CopyFrom(u16),
}

fn ask(depth: u32) -> BoxedStrategy<Ask> {
    let kind = prop_oneof![
        4 => Just(AskKind::Call),
        1 => Just(AskKind::Fails),
        1 => (0_u16..3000).prop_map(AskKind::CopyTo),
        1 => (0_u16..3000).prop_map(AskKind::CopyFrom),
    ];
    let inside = match depth {
        0 => Just(Vec::new()).boxed(),
        // Each list is sent ahead as a whole; the next begins when its replies are there.
        _ => prop::collection::vec(prop::collection::vec(ask(depth - 1), 1..3), 0..3).boxed(),
    };
    (any::<u32>(), kind, inside).prop_map(|(id, kind, inside)| Ask { id: id.into(), kind, inside }).boxed()
}

fn tensor(id: u64, bytes: u16) -> Copy {
    let shape = vec![i64::from(bytes)];
    let tensor = WireTensor { data: id, device: Device::cpu(0), dtype: DataType::uint(8), shape, byte_offset: 0 };
    Copy { tensor, bytes: bytes.into() }
}

fn fill(id: u64, bytes: u16) -> Vec<u8> {
    (0..u64::from(bytes)).map(|at| (id ^ at) as u8).collect()
}

impl Ask {
    fn request(&self) -> (Request, Vec<u8>) {
        match self.kind {
            AskKind::Call | AskKind::Fails => {
                (Request::Call { handle: self.id, args: vec![Value::Int(7)] }, Vec::new())
            }
            AskKind::CopyTo(bytes) => (Request::CopyTo(tensor(self.id, bytes), Vec::new()), fill(self.id, bytes)),
            AskKind::CopyFrom(bytes) => (Request::CopyFrom(tensor(self.id, bytes)), Vec::new()),
        }
    }

    fn reply(&self) -> (Reply, Vec<u8>) {
        match self.kind {
            AskKind::Call => (Reply::Return(vec![Value::Ptr(self.id)]), Vec::new()),
            AskKind::Fails => (Reply::Exception(Failure::new("ValueError", self.id.to_string())), Vec::new()),
            AskKind::CopyTo(_) => (Reply::Return(vec![Value::None]), Vec::new()),
            AskKind::CopyFrom(bytes) => (Reply::CopyAck(bytes.into()), fill(self.id, bytes)),
        }
    }
}

/// The reply to what was cancelled.
fn cancelled() -> Reply {
    Reply::Exception(Failure::new("CancelledError", ""))
}

/// What an end is in the middle of, innermost last.
enum Doing {
    /// It asks lists of requests, one list after the other; the number of replies to come.
    Asking { lists: VecDeque<Vec<Ask>>, replies: VecDeque<Ask> },
    /// It has all replies and owes this one.
    Owing(Ask),
    /// It owes that one was cancelled before its turn came.
    OwingNothing,
}

struct End {
    machine: Machine,
    doing: Vec<Doing>,
    out: VecDeque<u8>,
    done: usize,
    /// Who asked what lies in the script of whom: what is to be served next, by depth.
    payload: Option<(Ask, Vec<u8>)>,
    /// What it has asked, in order.
    tickets: Vec<(Ticket, u64)>,
    /// What it has cancelled.
    cancelled: HashSet<u64>,
    /// The depths that it serves and is to stop.
    stops: HashSet<u16>,
    /// How many were cancelled before they began, while they ran, and in vain.
    counts: [usize; 3],
}

impl End {
    /// Cancels something that was asked, whatever became of it.
    fn cancel(&mut self, which: usize) -> Result<(), TestCaseError> {
        let Some((ticket, id)) = self.tickets.get(which % self.tickets.len().max(1)).copied() else { return Ok(()) };
        let packet = self.machine.cancel(&Cancel { ticket, grace_ms: 10 });
        self.out.extend(packet.map_err(|error| TestCaseError::fail(error.to_string()))?);
        self.cancelled.insert(id);
        Ok(())
    }

    /// Looks at what stands behind what it serves, as the watch of a session does.
    fn look_ahead(&mut self) -> Result<bool, TestCaseError> {
        let event = self.machine.look_ahead().map_err(|error| TestCaseError::fail(error.to_string()))?;
        match event {
            Some(Event::Cancel(cancel)) => drop(self.stops.insert(cancel.ticket.depth)),
            Some(other) => return Err(TestCaseError::fail(format!("{other:?} is ahead of its time"))),
            None => return Ok(false),
        }
        Ok(true)
    }

    /// The depth of what it serves.
    fn depth(&self) -> u16 {
        self.machine.depth() as u16 - 1
    }

    fn send(&mut self, packet: Vec<u8>, payload: &[u8]) {
        self.out.extend(packet);
        self.out.extend(payload);
    }

    /// Does what can be done without more bytes; false if nothing can.
    fn step(&mut self, script: &dyn Fn(u64) -> Ask) -> Result<bool, TestCaseError> {
        if self.machine.payload_left() > 0 {
            let mut place = vec![0; 7];
            let count = self.machine.take_payload(&mut place);
            if let Some((_, bytes)) = &mut self.payload {
                bytes.extend(&place[..count]);
            }
            return Ok(count > 0);
        }
        if let Some((ask, bytes)) = self.payload.take() {
            match ask.kind {
                AskKind::CopyTo(count) => prop_assert_eq!(bytes, fill(ask.id, count)),
                AskKind::CopyFrom(count) => {
                    prop_assert_eq!(bytes, fill(ask.id, count));
                    return Ok(true);
                }
                _ => prop_assert!(false, "a payload for {:?}", ask),
            }
            self.doing.push(Doing::Asking { lists: ask.inside.clone().into(), replies: VecDeque::new() });
            self.doing.insert(self.doing.len() - 1, Doing::Owing(ask));
            return Ok(true);
        }
        if self.go_on()? {
            return Ok(true);
        }
        let event = self.machine.next_event().map_err(|error| TestCaseError::fail(error.to_string()))?;
        let Some(event) = event else { return Ok(false) };
        self.take(event, script).map(|()| true)
    }

    /// Goes on with what it does, if that waits for nobody.
    fn go_on(&mut self) -> Result<bool, TestCaseError> {
        match self.doing.last_mut() {
            Some(Doing::Asking { lists, replies }) if replies.is_empty() => match lists.pop_front() {
                Some(list) => {
                    for ask in list {
                        let (request, payload) = ask.request();
                        let packet =
                            self.machine.ask(&request).map_err(|error| TestCaseError::fail(error.to_string()))?;
                        let ticket = self.machine.last_asked();
                        self.tickets.push((ticket.ok_or_else(|| TestCaseError::fail("no ticket"))?, ask.id));
                        self.out.extend(packet);
                        self.out.extend(payload);
                        replies.push_back(ask);
                    }
                    return Ok(true);
                }
                None => {
                    self.doing.pop();
                    return Ok(true);
                }
            },
            Some(Doing::Owing(_)) => {
                let Some(Doing::Owing(ask)) = self.doing.pop() else { unreachable!() };
                let is_stopped = self.stops.remove(&self.depth());
                self.counts[1] += usize::from(is_stopped);
                let (reply, payload) = if is_stopped { (cancelled(), Vec::new()) } else { ask.reply() };
                let packet = self.machine.answer(&reply).map_err(|error| TestCaseError::fail(error.to_string()))?;
                self.send(packet, &payload);
                return Ok(true);
            }
            Some(Doing::OwingNothing) => {
                self.doing.pop();
                self.counts[0] += 1;
                // It may have been cancelled once more.
                self.stops.remove(&self.depth());
                let packet = self.machine.answer(&cancelled());
                self.send(packet.map_err(|error| TestCaseError::fail(error.to_string()))?, &[]);
                return Ok(true);
            }
            _ => {}
        }
        Ok(false)
    }

    fn take(&mut self, event: Event, script: &dyn Fn(u64) -> Ask) -> Result<(), TestCaseError> {
        match event {
            Event::Request(request) => {
                let id = match &request {
                    Request::Call { handle, .. } => *handle,
                    Request::CopyFrom(copy) => copy.tensor.data,
                    Request::CopyTo(copy, payload) => {
                        let AskKind::CopyTo(count) = script(copy.tensor.data).kind else {
                            return Err(TestCaseError::fail("a copy that nobody asked for"));
                        };
                        prop_assert_eq!(payload, &fill(copy.tensor.data, count));
                        copy.tensor.data
                    }
                    other => return Err(TestCaseError::fail(format!("{other:?}"))),
                };
                let ask = script(id);
                let lists = ask.inside.clone().into();
                self.doing.push(Doing::Owing(ask));
                self.doing.push(Doing::Asking { lists, replies: VecDeque::new() });
            }
            Event::Withdrawn => self.doing.push(Doing::OwingNothing),
            Event::Cancel(cancel) => drop(self.stops.insert(cancel.ticket.depth)),
            Event::CopyTo(copy) => self.payload = Some((script(copy.tensor.data), Vec::new())),
            Event::Reply(reply) => {
                let Some(Doing::Asking { replies, .. }) = self.doing.last_mut() else {
                    return Err(TestCaseError::fail("a reply that nobody waits for"));
                };
                let ask = replies.pop_front().ok_or_else(|| TestCaseError::fail("a reply too many"))?;
                if reply == cancelled() {
                    prop_assert!(self.cancelled.contains(&ask.id), "{:?} was not cancelled", ask);
                    self.done += 1;
                    return Ok(());
                }
                self.counts[2] += usize::from(self.cancelled.contains(&ask.id));
                let expected = match ask.reply().0 {
                    Reply::Exception(failure) if self.machine.dialect() == Dialect::Tvm => {
                        Reply::Exception(Failure { kind: None, ..failure })
                    }
                    reply => reply,
                };
                prop_assert_eq!(reply, expected);
                self.done += 1;
                if let AskKind::CopyFrom(_) = ask.kind {
                    self.payload = Some((ask, Vec::new()));
                }
            }
            other => return Err(TestCaseError::fail(format!("{other:?}"))),
        }
        Ok(())
    }
}

fn collect(asks: &[Vec<Ask>], found: &mut HashMap<u64, Ask>) {
    for ask in asks.iter().flatten() {
        found.insert(ask.id, ask.clone());
        collect(&ask.inside, found);
    }
}

fn number(asks: &mut [Vec<Ask>], next: &mut u64) {
    for ask in asks.iter_mut().flatten() {
        ask.id = *next;
        *next += 1;
        number(&mut ask.inside, next);
    }
}

/// A conversation; how many requests were cancelled before they began, while they ran, and in vain.
fn converse(
    dialect: Dialect,
    mut script: Vec<Vec<Ask>>,
    schedule: &[u16],
    cancels: &[u16],
) -> Result<[usize; 3], TestCaseError> {
    number(&mut script, &mut 1);
    let mut all = HashMap::new();
    collect(&script, &mut all);
    let look = |id: u64| all[&id].clone();
    let end = |role, lists: Vec<Vec<Ask>>| End {
        machine: Machine::new(role, dialect, Limits::default()),
        doing: if lists.is_empty() {
            Vec::new()
        } else {
            vec![Doing::Asking { lists: lists.into(), replies: VecDeque::new() }]
        },
        out: VecDeque::new(),
        done: 0,
        payload: None,
        tickets: Vec::new(),
        cancelled: HashSet::new(),
        stops: HashSet::new(),
        counts: [0; 3],
    };
    let mut ends = [end(Role::Client, script), end(Role::Server, Vec::new())];
    let mut schedule = schedule.iter().cycle();
    let mut idle = 0;
    let (mut cancels, mut turns) = (cancels.iter().copied().peekable(), 0_u16);
    while idle < 8 {
        let draw = *schedule.next().unwrap();
        turns = turns.wrapping_add(1);
        if turns % 4 == 0
            && let Some(which) = cancels.next_if(|cancel| cancel % 7 == turns % 7)
        {
            ends[0].cancel(usize::from(which / 7))?;
        }
        let who = usize::from(draw & 1);
        let mut acted = false;
        if draw & 2 == 0 {
            acted = (draw & 4 == 0 && ends[who].look_ahead()?) || ends[who].step(&look)?;
        } else {
            let count = usize::from(draw >> 2) % 200 + 1;
            let bytes: Vec<u8> = {
                let out = &mut ends[1 - who].out;
                let count = count.min(out.len());
                out.drain(..count).collect()
            };
            if !bytes.is_empty() {
                acted = true;
                let machine = &mut ends[who].machine;
                machine.space()[..bytes.len()].copy_from_slice(&bytes);
                machine.filled(bytes.len());
            }
        }
        let stuck = !acted && {
            // Only where neither can do anything is it over.
            let quiet = ends.iter().all(|end| end.out.is_empty());
            quiet && !ends[0].step(&look)? && !ends[1].step(&look)? && ends.iter().all(|end| end.out.is_empty())
        };
        idle = if stuck { idle + 1 } else { 0 };
    }
    // What stands in something that was cancelled before it began is never asked.
    let asked: usize = ends.iter().map(|end| end.tickets.len()).sum();
    prop_assert_eq!(ends[0].done + ends[1].done, asked);
    prop_assert!(asked == all.len() || ends[1].counts[0] > 0);
    prop_assert!(ends.iter().all(|end| end.doing.is_empty() && end.machine.may_end() && end.stops.is_empty()));
    Ok([ends[1].counts[0], ends[1].counts[1], ends[0].counts[2]])
}

fn cases() -> u32 {
    if std::env::var_os("RELAXIDE_DEEP").is_some() { 1_000_000 } else { 2_000 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_schedule_answers_every_request(
        script in prop::collection::vec(prop::collection::vec(ask(3), 1..4), 1..3),
        schedule in prop::collection::vec(any::<u16>(), 64..256),
    ) {
        converse(Dialect::Own, script, &with_all(schedule), &[])?;
    }

    #[test]
    fn every_schedule_does_whatever_is_cancelled(
        script in prop::collection::vec(prop::collection::vec(ask(3), 1..5), 1..3),
        schedule in prop::collection::vec(any::<u16>(), 64..256),
        cancels in prop::collection::vec(any::<u16>(), 1..12),
    ) {
        converse(Dialect::Own, script, &with_all(schedule), &cancels)?;
    }

    #[test]
    fn every_schedule_of_tvms_protocol_does_too(
        script in prop::collection::vec(prop::collection::vec(ask(0), 1..4), 1..4),
        schedule in prop::collection::vec(any::<u16>(), 64..256),
    ) {
        converse(Dialect::Tvm, script, &with_all(schedule), &[])?;
    }
}

/// A schedule in which each end acts and hears at some time.
fn with_all(mut schedule: Vec<u16>) -> Vec<u16> {
    schedule.extend([0, 1, 2 + 400, 3 + 400]);
    schedule
}

#[test]
fn schedules_cancel_in_every_state() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let drawn = (
        prop::collection::vec(prop::collection::vec(ask(3), 1..5), 1..3),
        prop::collection::vec(any::<u16>(), 64..256),
        prop::collection::vec(any::<u16>(), 1..12),
    );
    let (mut runner, mut all) = (TestRunner::deterministic(), [0; 3]);
    for _ in 0..200 {
        let (script, schedule, cancels) = drawn.new_tree(&mut runner).unwrap().current();
        let counts = converse(Dialect::Own, script, &with_all(schedule), &cancels).unwrap();
        all.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    assert!(all.iter().all(|count| *count > 20), "before they began, while they ran, in vain: {all:?}");
}

#[test]
fn what_cannot_be_cancelled_is_said() {
    let cancel = Cancel { ticket: Ticket { depth: 0, number: 0 }, grace_ms: 0 };
    let machine = |role, dialect| Machine::new(role, dialect, Limits::default());
    let why = |role, dialect| machine(role, dialect).cancel(&cancel).unwrap_err().0;
    assert_eq!(why(Role::Client, Dialect::Tvm), "TVM's protocol cannot cancel a call");
    assert!(why(Role::Server, Dialect::Own).contains("a server cannot cancel"));
    let hear = |role, dialect, packet: &[u8]| {
        let mut machine = machine(role, dialect);
        machine.space()[..packet.len()].copy_from_slice(packet);
        machine.filled(packet.len());
        machine.next_event().unwrap_err().0
    };
    assert!(hear(Role::Server, Dialect::Own, &cancel.packet()).contains("has not come"));
    assert!(hear(Role::Client, Dialect::Own, &cancel.packet()).contains("a server cancels"));
    assert!(hear(Role::Server, Dialect::Tvm, &cancel.packet()).contains("no packet has the code"));
}

#[test]
fn what_is_read_early_is_bounded() {
    let limits = Limits { ahead: 1000, ..Limits::default() };
    let (mut client, mut server) =
        (Machine::new(Role::Client, Dialect::Own, limits), Machine::new(Role::Server, Dialect::Own, limits));
    let call = Request::Call { handle: 1, args: vec![Value::Int(7)] };
    let hear = |server: &mut Machine, packet: &[u8]| {
        server.space()[..packet.len()].copy_from_slice(packet);
        server.filled(packet.len());
    };
    hear(&mut server, &client.ask(&call).unwrap());
    assert!(!server.has_room_ahead(), "nothing is served yet");
    assert_eq!(server.next_event().unwrap(), Some(Event::Request(call.clone())));
    // One that is too large stays where it is, and so does all behind it.
    let copy = tensor(3, 2000);
    let mut large = client.ask(&Request::CopyTo(copy.clone(), Vec::new())).unwrap();
    large.extend(fill(3, 2000));
    hear(&mut server, &large);
    assert_eq!(server.look_ahead().unwrap(), None);
    assert!(!server.has_room_ahead());
    server.answer(&Reply::Return(vec![Value::None])).unwrap();
    assert_eq!(server.next_event().unwrap(), Some(Event::CopyTo(copy)));
}
