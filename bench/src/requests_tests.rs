#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use model::BatchView;
use wire::produce::ProduceWalk;
use wire::{Reader, RequestHeader};

use super::*;

fn workload(text: &str) -> Workload {
    Workload::parse("t", &format!("about = \"test\"\n{text}")).unwrap()
}

/// Records by partition, as a broker reads the frame; every batch is whole and has a valid CRC.
fn read(request: &Request) -> BTreeMap<i32, Vec<Bytes>> {
    let frame = request.frame.slice(4..);
    let mut reader = Reader::new(&frame);
    let header = RequestHeader::decode(&mut reader).unwrap();
    let walk = ProduceWalk::open(reader, header.api_version).unwrap();
    let mut found = BTreeMap::new();
    for partition in walk.partitions() {
        let partition = partition.unwrap();
        found.entry(partition.index).or_insert_with(Vec::new).push(partition.records.unwrap());
    }
    found
}

fn check(requests: &[Request]) {
    for request in requests {
        let read = read(request);
        assert_eq!(read.len(), request.counts.len());
        let mut bytes = 0;
        for &(partition, count) in &request.counts {
            let [batch] = &read[&partition][..] else { panic!("one batch for each partition") };
            let view = BatchView::parse(batch).unwrap();
            view.check_crc().unwrap();
            assert_eq!(view.header.record_count, count as i32);
            bytes += batch.len() as u64;
        }
        assert_eq!((request.bytes, request.records), (bytes, request.counts.iter().map(|c| u64::from(c.1)).sum()));
    }
}

#[test]
fn requests_in_turns_reach_every_partition_equally() {
    let requests = make(&workload("partitions = 10\nbatch_bytes = 1500\npartitions_per_request = 4"), "t").unwrap();
    check(&requests);
    let mut seen = [0; 10];
    requests.iter().flat_map(|r| &r.counts).for_each(|&(partition, count)| seen[partition as usize] += count);
    assert!(seen.iter().all(|&count| count == seen[0] && count > 0), "{seen:?}");
}

#[test]
fn scattered_records_spread_over_partitions() {
    let requests = make(&workload("partitions = 100\nscattered_records = 50\nrecord_bytes = 4000"), "t").unwrap();
    check(&requests);
    assert!(requests.iter().all(|r| r.records == 50 && r.counts.len() > 25));
}

#[test]
fn a_key_belongs_to_one_partition() {
    let requests =
        make(&workload("partitions = 3\nkeys = 30\nscattered_records = 20\nrecord_bytes = 50000"), "t").unwrap();
    check(&requests);
    let mut homes = BTreeMap::new();
    for (partition, batch) in requests.iter().flat_map(read) {
        let view = BatchView::parse(&batch[0]).unwrap();
        for record in view.records() {
            let key = record.unwrap().key.unwrap().to_vec();
            assert_eq!(*homes.entry(key).or_insert(partition), partition);
        }
    }
    assert!(homes.len() > 20, "{}", homes.len());
}

#[test]
fn compressed_batches_are_smaller_and_inflate_to_the_records() {
    let text = "partitions = 1\nbatch_bytes = 16000\nrandom_share = 0.4\n";
    let plain = make(&workload(text), "t").unwrap();
    let packed = make(&workload(&format!("{text}codec = \"lz4\"")), "t").unwrap();
    check(&packed);
    assert_eq!(plain[0].records, packed[0].records);
    assert!(packed[0].bytes < plain[0].bytes * 2 / 3, "{} of {}", packed[0].bytes, plain[0].bytes);
    let (packed, plain) = (read(&packed[0])[&0][0].clone(), read(&plain[0])[&0][0].clone());
    let mut inflated = Vec::new();
    let header = model::batch::HEADER_LEN;
    io::Read::read_to_end(&mut lz4_flex::frame::FrameDecoder::new(&packed[header..]), &mut inflated).unwrap();
    assert_eq!(inflated, plain[header..]);
}

#[test]
fn every_partition_gets_one_record_first() {
    let requests = one_each(&workload("partitions = 2500\nkeys = 2500"), "t").unwrap();
    check(&requests);
    assert_eq!(requests.len(), 3);
    assert_eq!(requests.iter().map(|r| r.records).sum::<u64>(), 2500);
}
