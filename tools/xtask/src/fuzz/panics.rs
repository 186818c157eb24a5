//! Runs something that may panic, and says where it did: the panic hook alone knows the place.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;

/// A panic that was caught.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Panicked {
    /// File and line: what tells findings apart.
    pub place: String,
    pub message: String,
}

enum Watch {
    /// Panics on this thread are nobody's business here.
    Off,
    On(Option<Panicked>),
}

thread_local! {
    static WATCH: RefCell<Watch> = const { RefCell::new(Watch::Off) };
}

static HOOK: Once = Once::new();

/// `None` when `run` returned.
pub fn catch(run: impl FnOnce()) -> Option<Panicked> {
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !note(info) {
                before(info);
            }
        }));
    });
    WATCH.set(Watch::On(None));
    let outcome = catch_unwind(AssertUnwindSafe(run));
    let noted = WATCH.replace(Watch::Off);
    match (outcome, noted) {
        (Ok(()), _) => None,
        (Err(_), Watch::On(Some(panicked))) => Some(panicked),
        (Err(_), _) => Some(Panicked::default()),
    }
}

/// Whether this thread is watched. The first panic counts; others come out of it.
fn note(info: &PanicHookInfo<'_>) -> bool {
    WATCH.with_borrow_mut(|watch| match watch {
        Watch::Off => false,
        Watch::On(noted) => {
            noted.get_or_insert_with(|| Panicked {
                place: info.location().map_or_else(String::new, |at| format!("{}:{}", at.file(), at.line())),
                message: info.payload_as_str().unwrap_or("a payload that is no text").to_owned(),
            });
            true
        }
    })
}
