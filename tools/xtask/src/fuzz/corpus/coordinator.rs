//! Records of the offsets topic in every version that is read: one byte of key length, the key, the value.

use bytes::Bytes;
use coordinator::CommittedOffset;
use coordinator::records::group_metadata::{self, GroupMetadata, MemberMetadata};
use coordinator::records::offset_commit;
use model::{LeaderEpoch, Offset, TopicId};

const GROUP_VERSIONS: i16 = 5;
const OFFSET_VERSIONS: i16 = 5;

/// What a consumer subscribes with: version, topics, user data.
const SUBSCRIPTION: &[u8] = &[0, 1, 0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 0];

/// Writes fields, compact ones in flexible versions.
struct Fields {
    out: Vec<u8>,
    flexible: bool,
}

impl Fields {
    fn new(version: i16, first_flexible: i16) -> Fields {
        Fields { out: version.to_be_bytes().to_vec(), flexible: version >= first_flexible }
    }

    fn raw(&mut self, bytes: &[u8]) -> &mut Fields {
        self.out.extend_from_slice(bytes);
        self
    }

    fn int(&mut self, value: i32) -> &mut Fields {
        self.raw(&value.to_be_bytes())
    }

    fn long(&mut self, value: i64) -> &mut Fields {
        self.raw(&value.to_be_bytes())
    }

    fn text(&mut self, text: &str) -> &mut Fields {
        match self.flexible {
            true => self.raw(&[text.len() as u8 + 1]),
            false => self.raw(&(text.len() as i16).to_be_bytes()),
        };
        self.raw(text.as_bytes())
    }

    fn null(&mut self) -> &mut Fields {
        if self.flexible { self.raw(&[0]) } else { self.raw(&[0xff, 0xff]) }
    }

    fn count(&mut self, count: usize) -> &mut Fields {
        if self.flexible { self.raw(&[count as u8 + 1]) } else { self.int(count as i32) }
    }

    /// No tagged field.
    fn tags(&mut self) -> &mut Fields {
        if self.flexible { self.raw(&[0]) } else { self }
    }
}

fn group_value(version: i16, members: &[(&str, Option<&str>)]) -> Vec<u8> {
    let mut fields = Fields::new(version, 4);
    fields.text("consumer").int(7).text("range").text("member-0");
    if version >= 2 {
        fields.long(1_700_000_000_000);
    }
    fields.count(members.len());
    for (id, instance) in members {
        fields.text(id);
        match instance {
            Some(instance) if version >= 3 => fields.text(instance),
            None if version >= 3 => fields.null(),
            _ => &mut fields,
        };
        fields.text("client").text("/127.0.0.1");
        if version >= 1 {
            fields.int(30_000);
        }
        fields.int(10_000).count(SUBSCRIPTION.len()).raw(SUBSCRIPTION).count(3).raw(&[1, 2, 3]).tags();
    }
    fields.tags();
    fields.out
}

fn offset_value(version: i16) -> Vec<u8> {
    let mut fields = Fields::new(version, 4);
    fields.long(5);
    if version >= 3 {
        fields.int(1);
    }
    fields.text("metadata").long(1_700_000_000_000);
    if version == 1 {
        fields.long(1_700_000_600_000);
    }
    fields.tags();
    fields.out
}

fn record(key: &[u8], value: &[u8]) -> Vec<u8> {
    [&[key.len() as u8], key, value].concat()
}

fn written_group() -> GroupMetadata {
    let member = |index: usize| MemberMetadata {
        member_id: format!("member-{index}"),
        instance_id: (index % 2 == 1).then(|| format!("instance-{index}")),
        client_id: "client".to_owned(),
        client_host: "/127.0.0.1".to_owned(),
        rebalance_timeout_ms: 30_000,
        session_timeout_ms: 10_000,
        subscription: Bytes::from_static(SUBSCRIPTION),
        assignment: Bytes::from_static(&[0; 40]),
    };
    GroupMetadata {
        protocol_type: "consumer".to_owned(),
        generation_id: 3,
        protocol_name: Some("range".to_owned()),
        leader: Some("member-0".to_owned()),
        state_timestamp_ms: 1_700_000_000_000,
        members: (0..5).map(member).collect(),
    }
}

fn written_offset() -> CommittedOffset {
    CommittedOffset {
        offset: Offset(5),
        leader_epoch: LeaderEpoch(1),
        metadata: "m".to_owned(),
        commit_timestamp_ms: 6,
        expire_timestamp_ms: None,
        topic_id: TopicId([3; 16]),
    }
}

pub fn records() -> Vec<Vec<u8>> {
    let group = group_metadata::encode_key("group");
    let offset = offset_commit::encode_key("group", "topic", 1);
    let legacy_offset = [&[0, 0], &offset[2..]].concat();
    let members: [&[(&str, Option<&str>)]; 3] =
        [&[], &[("member-0", None)], &[("member-0", Some("static-0")), ("member-1", None)]];
    let mut inputs = vec![record(&group, &[]), record(&offset, &[]), record(&[0, 3, 0, 1, b'g'], &[0, 0])];
    for version in 0..GROUP_VERSIONS {
        inputs.extend(members.iter().map(|members| record(&group, &group_value(version, members))));
    }
    for version in 0..OFFSET_VERSIONS {
        inputs.push(record(&offset, &offset_value(version)));
        inputs.push(record(&legacy_offset, &offset_value(version)));
    }
    inputs.push(record(&group, &group_metadata::encode_value(&written_group())));
    let unjoined = GroupMetadata { protocol_name: None, leader: None, members: Vec::new(), ..written_group() };
    inputs.push(record(&group, &group_metadata::encode_value(&unjoined)));
    inputs.push(record(&offset, &offset_commit::encode_value(&written_offset())));
    let expiring = CommittedOffset { expire_timestamp_ms: Some(9), ..written_offset() };
    inputs.push(record(&offset, &offset_commit::encode_value(&expiring)));
    inputs
}
