//! How a run notices that the user wants to interrupt it.
//!
//! A loop of the program may run for ever, and the front end's interrupt (Ctrl-C) waits until somebody asks for it. A run
//! asks a few dozen times a second ([`signal::check`]). What it costs to ask, and even to look at the clock, would show in a
//! loop of a few nanoseconds an iteration; so a run counts its jumps back and its calls, and looks at the clock at each of them
//! where they are slow and at one in thousands where they are fast.

use std::time::{Duration, Instant};

use relaxide_ffi::{Error, signal};

/// How often the front end is asked.
const PERIOD: Duration = Duration::from_millis(30);
/// Looks at the clock are this far apart or nearer, unless steps are slower.
const NEAR: Duration = Duration::from_millis(5);
/// The most steps between two looks.
const MOST: u32 = 1 << 13;

/// When a run looks at the clock next. One belongs to each run; the Relay VM has it, too.
pub struct Pulse {
    /// Steps until then.
    left: u32,
    /// Steps from one look to the next.
    steps: u32,
    last: Option<Looks>,
}

struct Looks {
    /// When the clock was looked at.
    looked: Instant,
    /// When the front end was asked.
    asked: Instant,
}

impl Default for Pulse {
    fn default() -> Self {
        Self::new()
    }
}

impl Pulse {
    /// The pulse of a run that begins: its first step looks at the clock.
    pub const fn new() -> Self {
        Self { left: 1, steps: 1, last: None }
    }

    /// Counts a step: a jump back, or a call. Fails if the run is to stop.
    #[inline]
    pub fn step(&mut self) -> Result<(), Error> {
        self.left -= 1;
        if self.left == 0 { self.look() } else { Ok(()) }
    }

    #[cold]
    fn look(&mut self) -> Result<(), Error> {
        if cfg!(target_family = "wasm") {
            // Nobody interrupts a run there: its thread is the only one. There is no clock to look at either.
            self.left = MOST;
            return Ok(());
        }
        let now = Instant::now();
        let last = self.last.get_or_insert(Looks { looked: now, asked: now });
        let passed = now - last.looked;
        // A step of one kind may be followed by slower ones, so the distance shrinks faster than it grows.
        self.steps = match passed {
            _ if passed < NEAR => (self.steps * 2).min(MOST),
            _ if passed > 2 * NEAR => (self.steps / 8).max(1),
            _ => self.steps,
        };
        (self.left, last.looked) = (self.steps, now);
        if now - last.asked < PERIOD {
            return Ok(());
        }
        last.asked = now;
        signal::check()
    }
}
