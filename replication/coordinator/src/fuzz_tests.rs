use super::fuzz_record;
use crate::records::group_metadata::{GroupMetadata, MemberMetadata, encode_key, encode_value};
use crate::records::offset_commit;
use crate::{CommittedOffset, partition_for};
use bytes::Bytes;
use model::{LeaderEpoch, Offset, TopicId};

/// A small generator of our own: the runs are the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let member = |id: &str, instance: Option<&str>| MemberMetadata {
        member_id: id.into(),
        instance_id: instance.map(str::to_owned),
        client_id: "client".into(),
        client_host: "/127.0.0.1".into(),
        rebalance_timeout_ms: 30_000,
        session_timeout_ms: 10_000,
        subscription: Bytes::from_static(&[0, 1, 0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 0]),
        assignment: Bytes::from_static(&[1, 2, 3]),
    };
    let group = GroupMetadata {
        protocol_type: "consumer".into(),
        generation_id: 7,
        protocol_name: Some("range".into()),
        leader: Some("a".into()),
        state_timestamp_ms: 5,
        members: vec![member("a", None), member("b", Some("i"))],
    };
    let offset = CommittedOffset {
        offset: Offset(5),
        leader_epoch: LeaderEpoch(1),
        metadata: "m".into(),
        commit_timestamp_ms: 6,
        expire_timestamp_ms: None,
        topic_id: TopicId([3; 16]),
    };
    let join = |key: Vec<u8>, value: Vec<u8>| [vec![key.len() as u8], key, value].concat();
    vec![
        join(encode_key("g"), encode_value(&group)),
        join(encode_key("g"), Vec::new()),
        join(offset_commit::encode_key("g", "t", 1), offset_commit::encode_value(&offset)),
        join(
            offset_commit::encode_key("g", "t", 1),
            offset_commit::encode_value(&CommittedOffset { expire_timestamp_ms: Some(9), ..offset }),
        ),
    ]
}

#[test]
fn arbitrary_bytes_are_read_or_refused() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..20_000 {
        let len = random.below(80);
        let mut data: Vec<u8> = (0..len).map(|_| random.next() as u8).collect();
        if data.len() > 3 {
            // Make the kind and version plausible, so that the readers get to work.
            data[0] %= 16;
            data[1] = 0;
            data[2] %= 4;
        }
        fuzz_record(&data);
    }
}

#[test]
fn mutated_records_are_read_or_refused() {
    let mut random = Random(42);
    let seeds = seeds();
    seeds.iter().for_each(|seed| fuzz_record(seed));
    for _ in 0..20_000 {
        let mut data = seeds[random.below(seeds.len())].clone();
        for _ in 0..=random.below(4) {
            let at = random.below(data.len());
            match random.below(3) {
                0 => data[at] = random.next() as u8,
                1 => data[at] ^= 1 << random.below(8),
                _ => data.truncate(at.max(1)),
            }
        }
        fuzz_record(&data);
    }
}

#[test]
fn any_group_id_has_a_partition() {
    for text in ["", "\u{0}", "\u{10ffff}\u{10ffff}", "gr\u{fc}n"] {
        assert!((0..50).contains(&partition_for(text, 50)));
    }
}
