//! Keeps workers that wake off the core of the thread that wakes them.
//!
//! Linux may wake a thread where the one that wakes it runs, and leaves it there for some milliseconds while other cores have nothing to do:
//! longer than a small network takes. So before workers are woken, the launching thread's core is taken from those that they may use. They keep all
//! others that it may use itself, and it may go where it likes. Many workers are left alone: most of them wake elsewhere.

#[cfg(target_os = "linux")]
pub(super) use linux::Apart;
#[cfg(not(target_os = "linux"))]
pub(super) use other::Apart;

#[cfg(target_os = "linux")]
mod linux {
    use std::sync::{Mutex, PoisonError};

    /// Workers up to which they are kept apart: each costs a call of the system.
    const FEW: usize = 8;

    /// The workers, and the core that they were last kept from.
    #[derive(Debug)]
    pub(in super::super) struct Apart(Mutex<(Vec<libc::pid_t>, Option<usize>)>);

    impl Apart {
        pub(in super::super) const fn new() -> Self {
            Self(Mutex::new((Vec::new(), None)))
        }

        /// The calling thread is a worker from now on.
        pub(in super::super) fn join(&self) {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: it only returns a number.
            state.0.push(unsafe { libc::gettid() });
            state.1 = None;
        }

        /// The calling thread is no worker any more.
        pub(in super::super) fn leave(&self) {
            // SAFETY: as above.
            let own = unsafe { libc::gettid() };
            self.0.lock().unwrap_or_else(PoisonError::into_inner).0.retain(|worker| *worker != own);
        }

        /// Keeps all workers off the calling thread's core, where it may use others.
        pub(in super::super) fn keep(&self) {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: it only returns a number.
            let Ok(core) = usize::try_from(unsafe { libc::sched_getcpu() }) else { return };
            if state.1 == Some(core) || state.0.len() > FEW || core >= libc::CPU_SETSIZE as usize {
                return;
            }
            // SAFETY: a set of cores is plain bits, all zeros a valid one; the calls read and write only it, and the core is numbered below the
            // set's size. Threads of that number are workers, which leave before they end.
            unsafe {
                let mut cores: libc::cpu_set_t = std::mem::zeroed();
                if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut cores) != 0 {
                    return;
                }
                libc::CPU_CLR(core, &mut cores);
                if libc::CPU_COUNT(&cores) == 0 {
                    return;
                }
                for worker in &state.0 {
                    libc::sched_setaffinity(*worker, size_of::<libc::cpu_set_t>(), &raw const cores);
                }
            }
            state.1 = Some(core);
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn cores_of(thread: libc::pid_t) -> libc::cpu_set_t {
            // SAFETY: as in `keep`.
            unsafe {
                let mut cores: libc::cpu_set_t = std::mem::zeroed();
                libc::sched_getaffinity(thread, size_of::<libc::cpu_set_t>(), &raw mut cores);
                cores
            }
        }

        #[test]
        fn a_worker_may_use_all_cores_but_that_of_the_thread_that_wakes_it() {
            let (apart, (tell, told), (end, ended)) =
                (Apart::new(), std::sync::mpsc::channel(), std::sync::mpsc::channel());
            std::thread::scope(|scope| {
                let apart = &apart;
                scope.spawn(move || {
                    apart.join();
                    // SAFETY: it only returns a number.
                    tell.send(unsafe { libc::gettid() }).unwrap();
                    ended.recv().unwrap();
                    apart.leave();
                });
                let worker: libc::pid_t = told.recv().unwrap();
                apart.keep();
                let (own, left) = (cores_of(0), cores_of(worker));
                let from = apart.0.lock().unwrap().1;
                // SAFETY: both are valid sets.
                let (own, left, may_use) = unsafe {
                    let may_use = from.is_some_and(|core| libc::CPU_ISSET(core, &left));
                    (libc::CPU_COUNT(&own), libc::CPU_COUNT(&left), may_use)
                };
                assert_eq!((left, may_use), if own == 1 { (1, false) } else { (own - 1, false) });
                end.send(()).unwrap();
            });
            assert!(apart.0.lock().unwrap().0.is_empty());
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    /// Nothing is known of other systems.
    #[derive(Debug)]
    pub(in super::super) struct Apart;

    impl Apart {
        pub(in super::super) const fn new() -> Self {
            Self
        }

        pub(in super::super) fn join(&self) {}

        pub(in super::super) fn leave(&self) {}

        pub(in super::super) fn keep(&self) {}
    }
}
