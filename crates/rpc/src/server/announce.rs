//! [`Announced`]: a server that clients find through a tracker.
//!
//! For each session that it has room for, the server offers the tracker a key that is used once. When a client has come with it and gone
//! again, a new one is offered. A key that was handed out and not used for a while is replaced. Without the tracker it tries again
//! until it is there.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use relaxide_ffi::Error;
use serde_json::{Map, Value, json};

use crate::tracker::client::TrackerLink;
use crate::tracker::protocol::Message;

/// How often the tracker is asked which keys are unused.
const POLL: Duration = Duration::from_secs(2);
/// How often a key may be missing among them before it is replaced.
const MISSES: u32 = 4;
/// How long it waits before it tries a lost tracker again.
const RETRY: Duration = Duration::from_secs(2);

/// How a tracker is reached.
pub type Dial = Box<dyn Fn() -> Result<TrackerLink, Error> + Send>;

/// What is offered.
pub struct Offer {
    /// The key that clients ask for.
    pub key: String,
    /// The port of the server.
    pub port: u16,
    /// The address, if it is not the one that the tracker sees.
    pub address: Option<String>,
    /// How many sessions there is room for.
    pub capacity: usize,
}

#[derive(Default)]
struct AnnouncedKeys {
    /// The keys that are out, and how often each was missing among the unused.
    keys: HashMap<String, u32>,
    in_use: usize,
    stopped: bool,
}

/// A server's presence at a tracker.
pub struct Announced {
    offer: Offer,
    state: Mutex<AnnouncedKeys>,
    changed: Condvar,
}

impl Announced {
    /// Begins to offer.
    pub fn start(offer: Offer, dial: Dial) -> Result<Arc<Announced>, Error> {
        let announced = Arc::new(Announced { offer, state: Mutex::default(), changed: Condvar::new() });
        let offering = Arc::clone(&announced);
        std::thread::Builder::new()
            .name("rpc-announce".into())
            .spawn(move || offering.run(&dial))
            .map_err(Error::from)?;
        Ok(announced)
    }

    fn state(&self) -> MutexGuard<'_, AnnouncedKeys> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client comes with a key: true if it is one that is out, which it is not any more.
    pub fn take(&self, key: &str) -> bool {
        let mut state = self.state();
        let known = state.keys.remove(key).is_some();
        if known {
            state.in_use += 1;
        }
        known
    }

    /// A client has gone: there is room again.
    pub fn put_again(&self) {
        let mut state = self.state();
        state.in_use = state.in_use.saturating_sub(1);
        self.changed.notify_all();
    }

    /// The key without what is random.
    pub fn key(&self) -> &str {
        &self.offer.key
    }

    /// Ends it.
    pub fn stop(&self) {
        self.state().stopped = true;
        self.changed.notify_all();
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

    fn run(&self, dial: &Dial) {
        loop {
            // Whatever was out is not known to the tracker any more.
            self.state().keys.clear();
            let lost = dial().and_then(|mut link| self.offer_over(&mut link));
            if lost.is_ok() || !self.wait(RETRY) {
                return;
            }
        }
    }

    /// Offers until it is stopped; an error if the tracker is lost.
    fn offer_over(&self, link: &mut TrackerLink) -> Result<(), Error> {
        let Offer { key, port, address, .. } = &self.offer;
        let mut info = Map::new();
        info.insert("key".into(), json!(format!("server:{key}")));
        info.insert("addr".into(), json!([address, port]));
        link.ask(&Message::Info(info))?;
        loop {
            self.fill(link)?;
            if !self.wait(POLL) {
                return Ok(());
            }
            let unused = link.ask(&Message::Unused)?;
            let unused: Vec<&str> = unused.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let mut state = self.state();
            for (key, missing) in &mut state.keys {
                *missing = if unused.contains(&key.as_str()) { 0 } else { *missing + 1 };
            }
            state.keys.retain(|_, missing| *missing < MISSES);
        }
    }

    /// Offers a key for all that there is room for.
    fn fill(&self, link: &mut TrackerLink) -> Result<(), Error> {
        loop {
            let match_key = {
                let mut state = self.state();
                if state.stopped || state.keys.len() + state.in_use >= self.offer.capacity.max(1) {
                    return Ok(());
                }
                let match_key = crate::random::key(&self.offer.key)?;
                state.keys.insert(match_key.clone(), 0);
                match_key
            };
            let Offer { key, port, address, .. } = &self.offer;
            link.ask(&Message::Put { key: key.clone(), port: *port, match_key, address: address.clone() })?;
        }
    }
}
