//! SIGTERM and SIGINT: blocked in every thread, waited for by the main one.

/// Which signal asked for an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Interrupt,
    Terminate,
}

fn stop_set() -> libc::sigset_t {
    // SAFETY: sigemptyset initialises the set before anything reads it; the signal numbers are valid.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGINT);
        libc::sigaddset(&raw mut set, libc::SIGTERM);
        set
    }
}

/// Blocks both signals in this thread and all it starts. Call first, before there are other threads.
pub fn block() {
    let set = stop_set();
    // SAFETY: `set` is initialised; the old mask is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
}

/// Waits for one of them. A second one while stopping ends the process at once (see [`unblock`]).
pub fn wait() -> Stop {
    let set = stop_set();
    let mut signal = 0;
    loop {
        // SAFETY: both pointers are valid; the signals of the set are blocked.
        let rc = unsafe { libc::sigwait(&raw const set, &raw mut signal) };
        if rc == 0 {
            return if signal == libc::SIGINT { Stop::Interrupt } else { Stop::Terminate };
        }
    }
}

/// Lets the signals do what they do by default again in this thread, so that an impatient second Ctrl-C works.
pub fn unblock() {
    let set = stop_set();
    // SAFETY: as in `block`.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut()) };
}
