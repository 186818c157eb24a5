//! Ctrl-C for commands that have something to finish: flush what was sent, leave the group. The first asks them to; the
//! second ends the process at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use runtime::signals;

#[derive(Clone, Debug)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Watches for SIGINT and SIGTERM from here on. Call it before the command starts threads.
    pub fn watch() -> Interrupt {
        signals::block();
        let asked = Interrupt(Arc::new(AtomicBool::new(false)));
        let flag = asked.clone();
        let watcher = move || {
            signals::wait();
            flag.0.store(true, Ordering::Release);
            signals::unblock();
            // A thread that takes the second signal has to be there.
            loop {
                std::thread::park();
            }
        };
        // Without the thread Ctrl-C would do nothing at all: then it is better to end as by default.
        if std::thread::Builder::new().name("ringlog-signals".into()).spawn(watcher).is_err() {
            signals::unblock();
        }
        asked
    }

    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
