use super::*;

#[test]
fn a_block_is_used_up_and_no_further() {
    let ids = ProducerIds::default();
    assert_eq!(ids.take(), None);
    ids.refill(ProducerId(1_000), 2);
    assert_eq!([ids.take(), ids.take(), ids.take()], [Some(ProducerId(1_000)), Some(ProducerId(1_001)), None]);
    ids.refill(ProducerId(5_000), 1);
    assert_eq!([ids.take(), ids.take()], [Some(ProducerId(5_000)), None]);
}

#[test]
fn an_allocation_that_is_given_up_lets_the_next_one_begin() {
    let ids = ProducerIds::default();
    let asking = Asking::begin(&ids);
    let done = asking.done.clone();
    let before = done.version();
    drop(asking);
    assert!(ids.asking.borrow().is_none());
    assert!(done.version() > before, "those who wait are woken");
    drop(Asking::begin(&ids));
}
