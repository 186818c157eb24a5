use super::*;

const LEN: u64 = 8 << 20;

fn bytes(memory: &Memory, position: u64, len: usize) -> Vec<u8> {
    // SAFETY: tests ask for what they have just written.
    unsafe { std::slice::from_raw_parts(memory.address(position), len) }.to_vec()
}

#[test]
fn positions_go_on_where_the_memory_begins_anew() {
    let mut memory = Memory::new(LEN);
    memory.take(LEN - 10).fill(1);
    assert!(memory.wraps(11) && !memory.wraps(10));
    memory.skip_to_start();
    assert_eq!(memory.head(), LEN);
    memory.take(100).fill(2);
    assert_eq!((memory.head(), memory.oldest()), (LEN + 100, 100));
    assert_eq!((bytes(&memory, LEN, 2), bytes(&memory, LEN - 11, 1)), (vec![2, 2], vec![1]));
}

#[test]
fn blocks_are_filled_with_zeros() {
    let mut memory = Memory::new(LEN);
    memory.take(BLOCK).fill(9);
    memory.fill_block();
    assert_eq!(memory.head(), BLOCK, "a whole block needs no filling");
    memory.take(1).fill(9);
    memory.fill_block();
    assert_eq!((memory.head(), bytes(&memory, BLOCK, 2)), (2 * BLOCK, vec![9, 0]));
}

#[test]
fn what_is_lent_holds_up_appends_until_it_is_given_back() {
    let mut memory = Memory::new(LEN);
    memory.take(BLOCK).fill(1);
    memory.lend(BLOCK);
    memory.lend(BLOCK);
    while memory.has_room() {
        if memory.wraps(BLOCK) {
            memory.skip_to_start();
        }
        memory.take(BLOCK).fill(2);
    }
    assert!(memory.head() <= LEN + BLOCK, "lent bytes are still there");
    memory.give_back(BLOCK);
    assert!(!memory.has_room());
    memory.give_back(BLOCK);
    assert!(memory.has_room());
}

#[test]
#[should_panic(expected = "lent bytes are not overwritten")]
fn overwriting_what_is_lent_is_a_bug() {
    let mut memory = Memory::new(LEN);
    memory.lend(0);
    memory.take(LEN).fill(1);
    memory.take(1).fill(1);
}
