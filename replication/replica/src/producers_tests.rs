#![allow(clippy::unwrap_used)]
use super::*;
use model::builder::BatchBuilder;

const ID: ProducerId = ProducerId(9);

fn header(epoch: i16, sequence: i32, count: usize) -> BatchHeader {
    let mut builder = BatchBuilder::new().producer(ID, ProducerEpoch(epoch), sequence);
    for _ in 0..count {
        builder.push(1, None, None, &[]);
    }
    BatchHeader::parse(&builder.finish()).unwrap()
}

fn after(batches: &[(i16, i32, usize)]) -> ProducerTable {
    let table = ProducerTable::default();
    let mut offset = Offset(100);
    for &(epoch, sequence, count) in batches {
        let header = header(epoch, sequence, count);
        assert_eq!(table.check(&header), Ok(Sequence::Next));
        table.remember(&header, offset, 1);
        offset = offset.plus(count as i64);
    }
    table
}

fn code(table: &ProducerTable, epoch: i16, sequence: i32, count: usize) -> ErrorCode {
    table.check(&header(epoch, sequence, count)).unwrap_err().code
}

#[test]
fn duplicates_of_the_last_five_answer_with_their_offset() {
    let batches: Vec<_> = (0..6).map(|i| (0, i * 2, 2)).collect();
    let table = after(&batches);
    for i in 1..6 {
        match table.check(&header(0, i * 2, 2)).unwrap() {
            Sequence::Duplicate(seen) => assert_eq!(seen.first_offset, Offset(100 + i64::from(i) * 2)),
            Sequence::Next => panic!("batch {i} is not seen as a duplicate"),
        }
    }
    assert_eq!(code(&table, 0, 0, 2), ErrorCode::OutOfOrderSequenceNumber);
}

#[test]
fn gaps_and_overlaps_are_out_of_order() {
    let table = after(&[(0, 0, 3)]);
    for (sequence, count) in [(4, 1), (2, 2), (0, 2), (1, 1)] {
        assert_eq!(code(&table, 0, sequence, count), ErrorCode::OutOfOrderSequenceNumber, "{sequence}+{count}");
    }
    assert_eq!(table.check(&header(0, 3, 1)), Ok(Sequence::Next));
}

#[test]
fn epochs_only_grow_and_begin_at_zero() {
    let table = after(&[(3, 0, 1)]);
    assert_eq!(code(&table, 2, 1, 1), ErrorCode::InvalidProducerEpoch);
    assert_eq!(code(&table, 4, 1, 1), ErrorCode::OutOfOrderSequenceNumber);
    assert_eq!(table.check(&header(4, 0, 1)), Ok(Sequence::Next));
}

#[test]
fn unknown_producers_start_anywhere_and_sequences_wrap() {
    let table = after(&[(0, i32::MAX - 1, 2), (0, 0, 1)]);
    assert_eq!(table.check(&header(0, 1, 1)), Ok(Sequence::Next));
    let wrapped = after(&[(5, i32::MAX, 2)]);
    assert_eq!(wrapped.check(&header(5, 1, 1)), Ok(Sequence::Next));
    assert!(matches!(wrapped.check(&header(5, i32::MAX, 2)), Ok(Sequence::Duplicate(_))));
}

#[test]
fn truncation_and_expiry_forget() {
    let table = after(&[(0, 0, 2), (0, 2, 2)]);
    table.truncate(Offset(102));
    assert_eq!(table.check(&header(0, 2, 2)), Ok(Sequence::Next));
    table.expire(2);
    assert!(table.is_empty());
}
