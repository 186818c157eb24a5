#![allow(clippy::unwrap_used)]
use runtime::testing::run;

use super::*;

#[test]
fn what_is_kept_is_taken_up_once_while_nothing_is_new() {
    run(|| async {
        let awaits = Awaits::default();
        let one = awaits.begin(1, 1);
        assert!(awaits.keep(&one));
        assert!(awaits.resume(1).is_some());
        assert!(awaits.resume(1).is_none(), "it is in use");
        let two = awaits.begin(2, 1);
        assert!(awaits.keep(&two));
        two.news.notify();
        assert!(awaits.resume(2).is_none(), "there is news");
        assert!(two.is_over.get(), "and its subscriptions go");
    });
}

#[test]
fn a_new_view_and_silence_end_what_is_kept_but_not_what_waits() {
    run(|| async {
        let awaits = Awaits::default();
        let (kept, waiting) = (awaits.begin(1, 1), awaits.begin(2, 1));
        assert!(awaits.keep(&kept));
        awaits.view_changed();
        assert!(kept.is_over.get() && !waiting.is_over.get());
        assert!(!awaits.keep(&waiting), "it was begun under the old view");
        let kept = awaits.begin(3, 1);
        assert!(awaits.keep(&kept));
        awaits.sweep(kept.last_used_ms.get() + KEPT_AWAIT_MS);
        assert!(!kept.is_over.get());
        awaits.sweep(kept.last_used_ms.get() + KEPT_AWAIT_MS + 1);
        assert!(kept.is_over.get());
    });
}
