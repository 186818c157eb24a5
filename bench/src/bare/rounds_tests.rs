use super::super::limits::BLOCK;
use super::*;

const LEN: u64 = 8 << 20;

fn header_of(memory: &Memory, position: u64) -> [u8; 16] {
    // SAFETY: the test has just appended there.
    let bytes = unsafe { std::slice::from_raw_parts(memory.address(position), 16) };
    bytes.try_into().expect("sixteen bytes")
}

#[test]
fn a_batch_gets_its_offset_in_the_copy() {
    let (mut memory, mut rounds) = (Memory::new(LEN), Rounds::default());
    let batch = vec![0xab; 100];
    assert_eq!(rounds.append(&mut memory, &batch, 7), 0);
    assert_eq!(rounds.append(&mut memory, &batch, 8), 100);
    let header = header_of(&memory, 100);
    assert_eq!((header[..8].to_vec(), header[8..12].to_vec()), (8i64.to_be_bytes().to_vec(), vec![0xab; 4]));
    assert_eq!(header[12..16], 0i32.to_be_bytes());
}

#[test]
fn what_gathers_is_one_range_to_a_block_or_two_around_the_memorys_end() {
    let (mut memory, mut rounds) = (Memory::new(LEN), Rounds::default());
    memory.take(LEN - 2 * BLOCK).fill(0);
    let batch = vec![1; BLOCK as usize + 1];
    rounds.append(&mut memory, &batch, 0);
    assert_eq!(rounds.append(&mut memory, &batch, 1), LEN, "there was no room for it before the memory's end");
    rounds.close(&mut memory);
    assert_eq!(rounds.open, [LEN - 2 * BLOCK..LEN, LEN..LEN + 2 * BLOCK]);
    rounds.under_way = std::mem::take(&mut rounds.open);
    assert_eq!(rounds.durable(), 0);
    rounds.synced(&mut memory);
    assert_eq!(rounds.durable(), LEN + 2 * BLOCK);
    assert!(memory.has_room(), "nothing is lent any more");
}
