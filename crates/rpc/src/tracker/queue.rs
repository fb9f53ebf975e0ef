//! [`Queues`]: who waits for what, without input or output.
//!
//! A resource is a server that has room for one session: an address and a key that is used once. It lies in the queue of its key until
//! it is handed out, or its connection ends. A request lies there until a resource is there for it, or its connection ends.
//!
//! Requests are served by priority, the highest first; among equals, users take turns: who was served least lately comes first, then
//! who asked first. TVM's clients have no name and are one user, so for them it is the order of arrival. What was handed out is a lease of
//! the requester's connection as long as that stays, for the record: the server itself says when it has room again.
//!
//! A server that asks every now and then which of its resources are unused is expected to go on. One that does not hangs, though its
//! connection stands: what it offers is passed over until it is heard again.

use std::collections::{BTreeMap, HashMap};

/// Seconds without a word after which a server that is expected to speak counts as silent. Servers speak every two.
const SILENT: u64 = 12;

/// For each key how many were handed out, and the last turn of each user.
pub type History = Vec<(String, u64, Vec<(String, u64)>)>;

/// A connection.
pub type Connection = u64;

/// A server that has room for one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Where it is.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The key that a client says.
    pub match_key: String,
    /// The connection that it was offered on.
    pub owner: Connection,
    /// The fingerprint of the server's key, where it was proved.
    pub fingerprint: Option<String>,
}

/// Somebody who waits.
#[derive(Clone, Debug, PartialEq, Eq)]
struct QueuedClient {
    connection: Connection,
    user: String,
    priority: i64,
    number: u64,
}

/// What a requester holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The requester's connection.
    pub connection: Connection,
    /// The requester.
    pub user: String,
    /// What it was given.
    pub resource: Resource,
    /// The key that it asked for.
    pub key: String,
    /// When, in seconds since 1970.
    pub since: u64,
}

/// A resource for somebody who waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handed {
    /// Who waits.
    pub to: Connection,
    /// What it gets.
    pub resource: Resource,
}

#[derive(Default)]
struct Queue {
    free: Vec<Resource>,
    waiting: Vec<QueuedClient>,
    /// When each user was served last, by the number of the turn.
    served: HashMap<String, u64>,
    handed: u64,
}

/// The queues by key.
#[derive(Default)]
pub struct Queues {
    queues: BTreeMap<String, Queue>,
    leases: Vec<Lease>,
    next: u64,
    /// When each connection that is expected to speak was heard last.
    heard: HashMap<Connection, u64>,
}

/// The state of one queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Resources that nobody has.
    pub free: usize,
    /// Those whose server is silent.
    pub silent: usize,
    /// Requests without one.
    pub pending: usize,
    /// How many were handed out, ever.
    pub handed: u64,
}

impl Queues {
    /// A resource is offered.
    pub fn put(&mut self, key: &str, resource: Resource, now: u64) -> Vec<Handed> {
        // Its server has room again, so what was given of it before is over.
        self.leases.retain(|lease| lease.resource.match_key != resource.match_key);
        self.queues.entry(key.to_owned()).or_default().free.push(resource);
        self.hand_out(key, now)
    }

    /// Somebody asks.
    pub fn request(&mut self, key: &str, connection: Connection, user: &str, priority: i64, now: u64) -> Vec<Handed> {
        self.next += 1;
        let waiting = QueuedClient { connection, user: user.to_owned(), priority, number: self.next };
        self.queues.entry(key.to_owned()).or_default().waiting.push(waiting);
        self.hand_out(key, now)
    }

    /// A connection asks what a server asks every now and then: it is expected to go on.
    pub fn expect(&mut self, connection: Connection, now: u64) {
        self.heard.entry(connection).or_insert(now);
    }

    /// A connection speaks. What it offers can be handed out again if it was silent.
    pub fn hear(&mut self, connection: Connection, now: u64) -> Vec<Handed> {
        let Some(heard) = self.heard.get_mut(&connection) else { return Vec::new() };
        let was_silent = is_silent(*heard, now);
        *heard = now;
        if !was_silent {
            return Vec::new();
        }
        let owns = |queue: &Queue| queue.free.iter().any(|resource| resource.owner == connection);
        let keys: Vec<String> =
            self.queues.iter().filter(|(_, queue)| owns(queue)).map(|(key, _)| key.clone()).collect();
        keys.iter().flat_map(|key| self.hand_out(key, now)).collect()
    }

    fn hand_out(&mut self, key: &str, now: u64) -> Vec<Handed> {
        let mut handed = Vec::new();
        let Some(queue) = self.queues.get_mut(key) else { return handed };
        let is_there =
            |resource: &Resource| self.heard.get(&resource.owner).is_none_or(|heard| !is_silent(*heard, now));
        while !queue.waiting.is_empty()
            && let Some(free) = queue.free.iter().position(is_there)
        {
            let turn = |waiting: &QueuedClient| {
                let last = queue.served.get(&waiting.user).copied().unwrap_or(0);
                // Those without a name are as many as there are, not one.
                let last = if waiting.user.is_empty() { 0 } else { last };
                (std::cmp::Reverse(waiting.priority), last, waiting.number)
            };
            let Some(first) = (0..queue.waiting.len()).min_by_key(|at| turn(&queue.waiting[*at])) else { break };
            let waiting = queue.waiting.remove(first);
            let resource = queue.free.remove(free);
            self.next += 1;
            queue.handed += 1;
            queue.served.insert(waiting.user.clone(), self.next);
            self.leases.push(Lease {
                connection: waiting.connection,
                user: waiting.user,
                resource: resource.clone(),
                key: key.to_owned(),
                since: now,
            });
            handed.push(Handed { to: waiting.connection, resource });
        }
        handed
    }

    /// A resource could not be delivered: it goes to the end of its queue.
    pub fn undelivered(&mut self, handed: &Handed, now: u64) -> Vec<Handed> {
        let Some(at) = self.leases.iter().position(|lease| lease.resource == handed.resource) else {
            return Vec::new();
        };
        let lease = self.leases.remove(at);
        match self.queues.get_mut(&lease.key) {
            Some(queue) => queue.free.push(lease.resource),
            None => return Vec::new(),
        }
        self.hand_out(&lease.key, now)
    }

    /// A connection has ended: what it offers is gone, and what it asks for; what it was given and nobody used goes back.
    pub fn disconnect(&mut self, connection: Connection) {
        self.heard.remove(&connection);
        for queue in self.queues.values_mut() {
            queue.free.retain(|resource| resource.owner != connection);
            queue.waiting.retain(|waiting| waiting.connection != connection);
        }
        self.leases.retain(|lease| lease.connection != connection && lease.resource.owner != connection);
    }

    /// The keys of a connection's resources that nobody has.
    pub fn unused(&self, connection: Connection) -> Vec<&str> {
        let free = self.queues.values().flat_map(|queue| &queue.free);
        free.filter(|resource| resource.owner == connection).map(|resource| resource.match_key.as_str()).collect()
    }

    /// The queues and how they stand.
    pub fn counts(&self, now: u64) -> Vec<(&str, Counts)> {
        let hangs = |resource: &&Resource| self.heard.get(&resource.owner).is_some_and(|heard| is_silent(*heard, now));
        let counts = |queue: &Queue| {
            let silent = queue.free.iter().filter(hangs).count();
            Counts { free: queue.free.len() - silent, silent, pending: queue.waiting.len(), handed: queue.handed }
        };
        self.queues.iter().map(|(key, queue)| (key.as_str(), counts(queue))).collect()
    }

    /// What is given out.
    pub fn leases(&self) -> &[Lease] {
        &self.leases
    }

    /// The state that survives a restart: for each key how many were handed out, and the turns of users.
    pub fn history(&self) -> History {
        let turns = |queue: &Queue| queue.served.iter().map(|(user, turn)| (user.clone(), *turn)).collect();
        self.queues.iter().map(|(key, queue)| (key.clone(), queue.handed, turns(queue))).collect()
    }

    /// Takes such a state up.
    pub fn restore(&mut self, history: History) {
        for (key, handed, turns) in history {
            let queue = self.queues.entry(key).or_default();
            queue.handed = handed;
            for (user, turn) in turns {
                self.next = self.next.max(turn);
                queue.served.insert(user, turn);
            }
        }
    }
}

fn is_silent(heard: u64, now: u64) -> bool {
    now.saturating_sub(heard) > SILENT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(owner: Connection, key: &str) -> Resource {
        Resource { host: "h".into(), port: 1, match_key: key.into(), owner, fingerprint: None }
    }

    #[test]
    fn priority_then_turn_then_arrival() {
        let mut queues = Queues::default();
        for (connection, user, priority) in [(1, "ann", 1), (2, "ann", 1), (3, "bob", 1), (4, "ann", 5)] {
            assert!(queues.request("k", connection, user, priority, 0).is_empty());
        }
        let mut order = Vec::new();
        for i in 0..4 {
            order.extend(queues.put("k", resource(9, &format!("k:{i}")), 0).iter().map(|handed| handed.to));
        }
        // The urgent one; then bob, who had none; then ann's in order.
        assert_eq!(order, [4, 3, 1, 2]);
        assert_eq!(queues.counts(0), [("k", Counts { free: 0, silent: 0, pending: 0, handed: 4 })]);
    }

    #[test]
    fn a_server_that_hangs_is_passed_over_until_it_is_heard_again() {
        let mut queues = Queues::default();
        queues.put("k", resource(7, "k:hangs"), 100);
        queues.expect(7, 100);
        // This one is of a kind that never asks.
        queues.put("k", resource(8, "k:quiet"), 100);
        let late = 100 + SILENT + 1;
        assert_eq!(queues.counts(late), [("k", Counts { free: 1, silent: 1, pending: 0, handed: 0 })]);
        assert_eq!(queues.request("k", 1, "", 1, late)[0].resource.match_key, "k:quiet");
        assert!(queues.request("k", 2, "", 1, late).is_empty());
        let handed = queues.hear(7, late + 1);
        assert_eq!((handed[0].to, handed[0].resource.match_key.as_str()), (2, "k:hangs"));
        assert!(queues.hear(7, late + 1000).is_empty(), "nothing of it is left to hand out");
    }

    #[test]
    fn those_without_a_name_are_served_as_they_came() {
        let mut queues = Queues::default();
        (1..=3).for_each(|connection| assert!(queues.request("k", connection, "", 1, 0).is_empty()));
        let order: Vec<_> =
            (0..3).flat_map(|i| queues.put("k", resource(9, &format!("k:{i}")), 0)).map(|h| h.to).collect();
        assert_eq!(order, [1, 2, 3]);
    }

    #[test]
    fn what_a_connection_had_goes_with_it() {
        let mut queues = Queues::default();
        queues.put("k", resource(7, "k:0.1"), 0);
        queues.put("k", resource(8, "k:0.2"), 0);
        assert_eq!(queues.unused(7), ["k:0.1"]);
        queues.disconnect(7);
        let handed = queues.request("k", 1, "", 1, 0);
        assert_eq!(handed[0].resource.match_key, "k:0.2");
        assert_eq!(queues.leases().len(), 1);
        // Its requester was gone: the next one gets it.
        assert!(queues.request("k", 2, "", 1, 0).is_empty());
        let again = queues.undelivered(&handed[0], 0);
        assert_eq!((again[0].to, again[0].resource.match_key.as_str()), (2, "k:0.2"));
        queues.disconnect(2);
        assert!(queues.leases().is_empty());
    }

    #[test]
    fn turns_survive_a_restart() {
        let mut queues = Queues::default();
        queues.put("k", resource(9, "k:1"), 0);
        queues.request("k", 1, "ann", 1, 0);
        let mut again = Queues::default();
        again.restore(queues.history());
        again.request("k", 1, "ann", 1, 0);
        again.request("k", 2, "bob", 1, 0);
        assert_eq!(again.put("k", resource(9, "k:2"), 0)[0].to, 2);
        assert_eq!(again.counts(0)[0].1.handed, 2);
    }
}
