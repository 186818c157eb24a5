use std::pin::pin;

use super::*;

#[test]
fn a_waiter_that_is_polled_again_counts_once() {
    let watermark = Watermark::new(Offset(0));
    let mut cx = Context::from_waker(Waker::noop());
    let mut waits: Vec<_> = (0..WATERMARK_WAITERS).map(|_| Box::pin(watermark.wait(Offset(1)))).collect();
    for wait in &mut waits {
        assert!(wait.as_mut().poll(&mut cx).is_pending());
    }
    assert!(waits[0].as_mut().poll(&mut cx).is_pending());
    let mut one_more = pin!(watermark.wait(Offset(1)));
    assert!(matches!(one_more.as_mut().poll(&mut cx), Poll::Ready(Err(LogError::Overloaded))));
    watermark.advance(Offset(1));
    assert!(matches!(waits[0].as_mut().poll(&mut cx), Poll::Ready(Ok(()))));
}
