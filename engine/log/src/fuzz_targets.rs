//! One function for each file format, for the fuzzer: any bytes are survived, and what is read is written back alike.

use model::{LeaderEpoch, Offset};

use crate::format::epochs::EpochHistory;
use crate::format::identity::FolderIdentity;
use crate::format::{checkpoint, index, partition_metadata, time_index};
use crate::scan::{ReadLimits, SegmentScan, Step, select};
use crate::segment::Fill;

pub fn offset_index(data: &[u8]) {
    if let Some(entries) = index::decode(data, u64::from(u32::MAX)) {
        assert_eq!(index::encode(&entries), data);
        for entry in &entries {
            let offset = Offset(i64::from(entry.relative));
            assert_eq!(index::position_before(&entries, Offset::ZERO, offset), entry.position as u64);
        }
    }
}

pub fn time_index(data: &[u8]) {
    if let Some(entries) = time_index::decode(data, i64::from(i32::MAX)) {
        assert_eq!(time_index::encode(&entries), data);
        for entry in &entries {
            assert_eq!(time_index::relative_before(&entries, entry.timestamp_ms), entry.relative);
        }
    }
}

pub fn checkpoint(data: &[u8]) {
    if let Some(found) = checkpoint::decode(data) {
        let bytes = checkpoint::encode(found.incarnation, found.entries.iter());
        assert_eq!(checkpoint::decode(&bytes), Some(found));
    }
    // Most inputs fail the checksum: the body is tried with a right one as well.
    let mut sealed = data.to_vec();
    sealed.extend_from_slice(&crc32fast::hash(data).to_le_bytes());
    let _ = checkpoint::decode(&sealed);
}

pub fn leader_epoch_checkpoint(data: &[u8]) {
    if let Some(history) = EpochHistory::decode(data) {
        assert_eq!(EpochHistory::decode(history.encode().as_bytes()), Some(history));
    }
}

pub fn partition_metadata(data: &[u8]) {
    if let Some(id) = partition_metadata::decode(data) {
        assert_eq!(partition_metadata::decode(partition_metadata::encode(id).as_bytes()), Some(id));
    }
}

pub fn identity(data: &[u8]) {
    if let Ok(found) = FolderIdentity::decode(data) {
        assert_eq!(FolderIdentity::decode(found.encode().as_bytes()), Ok(found));
    }
}

/// A file of the journal's ring of any bytes, and its small files.
pub fn journal(data: &[u8]) {
    use crate::journal::{format, look, plan, replay};

    let owner = format::Owner { incarnation: 0, writer: 0 };
    if let Some(found) = format::decode(owner, data) {
        assert!(found.payload.start <= data.len() && (!found.payload_ok || found.payload.end <= data.len()));
    }
    let files = [data.to_vec()];
    if let Ok(plan) = plan::plan(owner, &files) {
        let pieces = plan.pieces.values().flatten();
        pieces.for_each(|piece| assert!(files[piece.file].get(piece.bytes.clone()).is_some()));
    }
    if let look::Block::Round { owner, found } = look::block(data) {
        let mut judge = look::Judge::new(owner);
        judge.see(0, 0, owner, &found);
        let _ = judge.verdict().round(0, 0, owner, &found);
    }
    if let Ok((owner, files)) = format::decode_state(data) {
        assert_eq!(format::encode_state(owner, files)[..20], data[..20]);
    }
    if let Some(lost) = replay::decode_lost(data) {
        assert_eq!(replay::decode_lost(&replay::encode_lost(&lost)), Some(lost));
    }
}

/// A segment of any bytes: the scan ends, never beyond the bytes, and every batch it took can be selected.
pub fn segment_scan(data: &[u8]) {
    let base = Offset::ZERO;
    let mut scan = SegmentScan::new(base, Fill::empty(base), LeaderEpoch::UNKNOWN, 64);
    let step = scan.feed(data, data.len() as u64);
    assert!(matches!(step, Step::End(_)), "a window of the whole file is enough");
    assert!(scan.fill.size <= data.len() as u64);
    let whole = &data[..scan.fill.size as usize];
    let limits = ReadLimits { max_bytes: usize::MAX, min_one_batch: true, upper_bound: Offset(i64::MAX) };
    let found = select(whole, base, limits);
    assert_eq!((found.start, found.end), (0, whole.len()));
    let _ = select(data, Offset(3), ReadLimits { max_bytes: 100, ..limits });
}
