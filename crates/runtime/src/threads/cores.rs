//! Which cores workers may use.
//!
//! Linux may wake a thread where the one that wakes it runs, and leaves it there for some milliseconds while other cores have nothing to do:
//! longer than a small network takes. So before workers are woken, the launching thread's core is taken from those that they may use. They keep all
//! others that it may use itself, and it may go where it likes. Many workers are left alone: most of them wake elsewhere.
//!
//! Where `RELAXIDE_BIND_THREADS` or `TVM_BIND_THREADS` says `1`, each worker has one core instead, and stays there. By default none does, since a
//! bound worker waits for its core where another program, or another process with a pool like this, has it.

#[cfg(target_os = "linux")]
pub(super) use linux::Cores;
#[cfg(not(target_os = "linux"))]
pub(super) use other::Cores;

#[cfg(target_os = "linux")]
mod linux {
    use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

    use crate::environment;

    /// Workers up to which they are kept apart: each costs a call of the system.
    const FEW: usize = 8;

    /// The workers that are kept apart, and from which core.
    #[derive(Debug)]
    pub(in super::super) struct Cores(Mutex<Apart>);

    #[derive(Debug)]
    struct Apart {
        workers: Vec<libc::pid_t>,
        /// The core that all of them were last kept from.
        from: Option<usize>,
    }

    impl Cores {
        pub(in super::super) const fn new() -> Self {
            Self(Mutex::new(Apart { workers: Vec::new(), from: None }))
        }

        /// The calling thread is a worker from now on, the `number`th, counted from 1.
        pub(in super::super) fn join(&self, number: usize) {
            if binds_threads() {
                return bind(number);
            }
            let mut apart = self.lock();
            apart.workers.push(calling_thread());
            apart.from = None;
        }

        /// The calling thread is no worker any more.
        pub(in super::super) fn leave(&self) {
            let own = calling_thread();
            self.lock().workers.retain(|worker| *worker != own);
        }

        /// Keeps the workers that are not bound off the calling thread's core, where it may use others.
        pub(in super::super) fn keep_apart(&self) {
            let mut apart = self.lock();
            // SAFETY: it only returns a number.
            let Ok(core) = usize::try_from(unsafe { libc::sched_getcpu() }) else { return };
            if apart.from == Some(core) || apart.workers.len() > FEW {
                return;
            }
            let allowed = cores_of(0);
            if allowed.iter().any(|allowed| *allowed != core) {
                let others: Vec<usize> = allowed.into_iter().filter(|allowed| *allowed != core).collect();
                apart.workers.iter().for_each(|worker| confine(*worker, &others));
                apart.from = Some(core);
            }
        }

        fn lock(&self) -> MutexGuard<'_, Apart> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    fn binds_threads() -> bool {
        static BINDS: OnceLock<bool> = OnceLock::new();
        *BINDS.get_or_init(|| environment::switch(&["RELAXIDE_BIND_THREADS", "TVM_BIND_THREADS"]))
    }

    /// Binds the calling thread to one of the cores that it may use, the `number`th, counted from 0 and round again.
    fn bind(number: usize) {
        let allowed = cores_of(0);
        if let Some(core) = number.checked_rem(allowed.len()).and_then(|place| allowed.get(place)) {
            confine(0, &[*core]);
        }
    }

    fn calling_thread() -> libc::pid_t {
        // Not `gettid`, which glibc has since 2.30 only. A number of a thread has the bits of a `pid_t`.
        // SAFETY: it only returns a number.
        unsafe { libc::syscall(libc::SYS_gettid) as libc::pid_t }
    }

    /// The cores that a thread may use, or the calling one for 0; none where the system does not say.
    fn cores_of(thread: libc::pid_t) -> Vec<usize> {
        // SAFETY: a set of cores is plain bits, all zeros a valid one; the calls read and write only it, and cores are numbered below its size.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            match libc::sched_getaffinity(thread, size_of::<libc::cpu_set_t>(), &raw mut set) {
                0 => (0..libc::CPU_SETSIZE as usize).filter(|core| libc::CPU_ISSET(*core, &set)).collect(),
                _ => Vec::new(),
            }
        }
    }

    /// Lets a thread, or the calling one for 0, use these cores alone, which [`cores_of`] has told. Where the system refuses, it stays as it is.
    fn confine(thread: libc::pid_t, cores: &[usize]) {
        // SAFETY: as above.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            cores.iter().for_each(|core| libc::CPU_SET(*core, &mut set));
            libc::sched_setaffinity(thread, size_of::<libc::cpu_set_t>(), &raw const set);
        }
    }

    #[cfg(test)]
    mod tests {
        use std::sync::mpsc::channel;

        use super::*;

        #[test]
        fn a_worker_may_use_all_cores_but_that_of_the_thread_that_wakes_it() {
            let (cores, (tell, told), (end, ended)) = (Cores::new(), channel(), channel());
            std::thread::scope(|scope| {
                let cores = &cores;
                scope.spawn(move || {
                    cores.join(1);
                    tell.send(calling_thread()).unwrap();
                    ended.recv().unwrap();
                    cores.leave();
                });
                let worker: libc::pid_t = told.recv().unwrap();
                cores.keep_apart();
                let (mut expected, from) = (cores_of(0), cores.lock().from);
                expected.retain(|core| Some(*core) != from);
                assert_eq!((cores_of(worker), from.is_some()), (expected, cores_of(0).len() > 1));
                end.send(()).unwrap();
            });
            assert!(cores.lock().workers.is_empty());
        }

        #[test]
        fn a_bound_thread_may_use_one_core() {
            let all = cores_of(0);
            let of = |number: usize| {
                std::thread::spawn(move || {
                    bind(number);
                    cores_of(0)
                })
            };
            for number in 0..all.len() + 1 {
                assert_eq!(of(number).join().unwrap(), [all[number % all.len()]]);
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    /// Nothing is known of other systems.
    #[derive(Debug)]
    pub(in super::super) struct Cores;

    impl Cores {
        pub(in super::super) const fn new() -> Self {
            Self
        }

        pub(in super::super) fn join(&self, _number: usize) {}

        pub(in super::super) fn leave(&self) {}

        pub(in super::super) fn keep_apart(&self) {}
    }
}
