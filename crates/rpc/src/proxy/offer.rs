//! [`Offers`]: a proxy's servers at a tracker.
//!
//! Each server that waits is offered under a key that is used once, at the proxy's own address. A key that was handed out and that no
//! client came with for a while is replaced.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use relaxide_ffi::Error;
use serde_json::{Map, Value, json};

use crate::session::connect::CONNECT;
use crate::tracker::client::TrackerLink;
use crate::tracker::protocol::Message;

/// How often the tracker is asked which keys are unused.
const POLL: Duration = Duration::from_secs(2);
/// How long a key may be handed out without a client.
const UNUSED: Duration = Duration::from_secs(5);
/// How long it waits before it tries a lost tracker again.
const RETRY: Duration = Duration::from_secs(2);

struct OfferedServer {
    key: String,
    match_key: String,
    /// Whether the tracker has it.
    put: bool,
    /// Since when the tracker has handed it out.
    taken: Option<Instant>,
}

#[derive(Default)]
struct OffersState {
    entries: HashMap<u64, OfferedServer>,
    next: u64,
    stopped: bool,
    /// Whether the names in the proxy's own entry have changed.
    renamed: bool,
}

/// The servers that are offered.
pub struct Offers {
    state: Mutex<OffersState>,
    changed: Condvar,
    port: u16,
}

/// A server that is offered until this ends.
pub struct Offered {
    offers: Arc<Offers>,
    number: u64,
    first: String,
}

impl Offers {
    /// Begins to offer.
    pub fn start(host: String, tracker: u16, port: u16) -> Result<Arc<Offers>, Error> {
        let offers = Arc::new(Offers { state: Mutex::default(), changed: Condvar::new(), port });
        let offering = Arc::clone(&offers);
        std::thread::Builder::new().name("rpc-offer".into()).spawn(move || offering.run(&host, tracker))?;
        Ok(offers)
    }

    fn state(&self) -> MutexGuard<'_, OffersState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A server has come.
    pub fn add(self: &Arc<Self>, key: &str) -> Result<Offered, Error> {
        let match_key = crate::random::key(key)?;
        let mut state = self.state();
        state.next += 1;
        let number = state.next;
        let entry = OfferedServer { key: key.to_owned(), match_key: match_key.clone(), put: false, taken: None };
        state.entries.insert(number, entry);
        state.renamed = true;
        self.changed.notify_all();
        Ok(Offered { offers: Arc::clone(self), number, first: match_key })
    }

    /// Whether a server is offered under that key, be it that it is only about to wait for its client.
    pub fn knows(&self, match_key: &str) -> bool {
        self.state().entries.values().any(|entry| entry.match_key == match_key)
    }

    /// Ends it.
    pub fn stop(&self) {
        self.state().stopped = true;
        self.changed.notify_all();
    }

    fn run(&self, host: &str, tracker: u16) {
        loop {
            {
                let mut state = self.state();
                state.renamed = true;
                state.entries.values_mut().for_each(|entry| (entry.put, entry.taken) = (false, None));
            }
            let link = TrackerLink::connect(host, tracker, CONNECT);
            let lost = link.and_then(|mut link| self.offer_over(&mut link));
            if lost.is_ok() || !self.wait(RETRY) {
                return;
            }
        }
    }

    /// Waits; false if it was stopped.
    fn wait(&self, time: Duration) -> bool {
        let state = self.state();
        if state.stopped {
            return false;
        }
        let (state, _) = self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner);
        !state.stopped
    }

    fn offer_over(&self, link: &mut TrackerLink) -> Result<(), Error> {
        loop {
            self.tell(link)?;
            if !self.wait(POLL) {
                return Ok(());
            }
            let unused = link.ask(&Message::Unused)?;
            let unused: Vec<&str> = unused.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let mut state = self.state();
            for entry in state.entries.values_mut().filter(|entry| entry.put) {
                match unused.contains(&entry.match_key.as_str()) {
                    true => entry.taken = None,
                    false if entry.taken.get_or_insert_with(Instant::now).elapsed() >= UNUSED => {
                        entry.match_key = crate::random::key(&entry.key)?;
                        (entry.put, entry.taken) = (false, None);
                    }
                    false => {}
                }
            }
        }
    }

    fn tell(&self, link: &mut TrackerLink) -> Result<(), Error> {
        let names = {
            let mut state = self.state();
            let mut names: Vec<String> = state.entries.values().map(|entry| entry.key.clone()).collect();
            names.sort();
            names.dedup();
            std::mem::take(&mut state.renamed).then_some(names)
        };
        if let Some(names) = names {
            let mut info = Map::new();
            info.insert("key".into(), json!(format!("server:proxy[{}]", names.join(","))));
            info.insert("addr".into(), json!([null, self.port]));
            link.ask(&Message::Info(info))?;
        }
        loop {
            let next = {
                let mut state = self.state();
                state.entries.values_mut().find(|entry| !entry.put).map(|entry| {
                    entry.put = true;
                    (entry.key.clone(), entry.match_key.clone())
                })
            };
            let Some((key, match_key)) = next else { return Ok(()) };
            link.ask(&Message::Put { key, port: self.port, match_key, address: None })?;
        }
    }
}

impl Offered {
    /// The key that it is offered under now.
    pub fn match_key(&self) -> String {
        self.offers
            .state()
            .entries
            .get(&self.number)
            .map_or_else(|| self.first.clone(), |entry| entry.match_key.clone())
    }
}

impl Drop for Offered {
    fn drop(&mut self) {
        let mut state = self.offers.state();
        state.entries.remove(&self.number);
        state.renamed = true;
    }
}
