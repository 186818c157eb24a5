//! The table of APIs against facts measured on a running Kafka 4.4.0.

use ringlog_wire::ApiKey;

#[test]
fn keys_and_names_go_both_ways() {
    for api in ApiKey::ALL {
        assert_eq!(ApiKey::from_i16(api as i16), Some(api));
        assert_eq!(api.name(), format!("{api:?}"));
    }
    assert_eq!(ApiKey::from_i16(-1), None);
    assert_eq!(ApiKey::from_i16(4), None);
    assert!(ApiKey::ALL.is_sorted_by_key(|api| *api as i16));
}

#[test]
fn produce_is_advertised_from_zero_and_served_from_three() {
    assert_eq!(ApiKey::Produce.advertised_versions(), 0..=13);
    assert_eq!(ApiKey::Produce.versions(), 3..=13);
    assert!(ApiKey::Produce.check_version(2).is_err());
    assert_eq!(ApiKey::Fetch.advertised_versions(), ApiKey::Fetch.versions());
}

#[test]
fn an_unstable_version_is_not_served() {
    assert_eq!(ApiKey::InitProducerId.versions(), 0..=5);
}

#[test]
fn header_versions_follow_flexibility_but_for_api_versions() {
    assert_eq!(ApiKey::Produce.request_header_version(8), 1);
    assert_eq!(ApiKey::Produce.request_header_version(9), 2);
    assert_eq!(ApiKey::Produce.response_header_version(8), 0);
    assert_eq!(ApiKey::Produce.response_header_version(9), 1);
    assert_eq!(ApiKey::ApiVersions.request_header_version(3), 2);
    assert_eq!(ApiKey::ApiVersions.response_header_version(3), 0);
    assert_eq!(ApiKey::SaslHandshake.request_header_version(1), 1);
    assert_eq!(ApiKey::SaslHandshake.response_header_version(1), 0);
}

#[test]
fn versions_that_clients_call_by_default_are_served() {
    use ApiKey::*;
    let called = [
        (CreateTopics, 7),
        (DeleteTopics, 6),
        (DescribeConfigs, 4),
        (ListPartitionReassignments, 0),
        (DescribeCluster, 2),
        (DescribeTopicPartitions, 0),
        (CreatePartitions, 3),
        (InitProducerId, 5),
        (Produce, 13),
        (FindCoordinator, 6),
        (JoinGroup, 9),
        (SyncGroup, 5),
        (OffsetFetch, 10),
        (ListOffsets, 11),
        (Fetch, 18),
        (OffsetCommit, 10),
        (Heartbeat, 4),
        (LeaveGroup, 5),
        (ConsumerGroupHeartbeat, 1),
        (ListGroups, 5),
        (DescribeGroups, 6),
        (ConsumerGroupDescribe, 1),
        (OffsetDelete, 0),
        (DeleteGroups, 3),
        (IncrementalAlterConfigs, 1),
        (ListConfigResources, 1),
        (DescribeClientQuotas, 1),
        (DescribeUserScramCredentials, 0),
        (DeleteRecords, 2),
        (DescribeLogDirs, 5),
        (ElectLeaders, 2),
        (DescribeQuorum, 2),
        (ApiVersions, 5),
        (Metadata, 13),
        (Metadata, 4),
        (Produce, 7),
        (Fetch, 11),
        (ListOffsets, 2),
        (ApiVersions, 2),
        (Metadata, 6),
    ];
    for (api, version) in called {
        assert_eq!(api.check_version(version), Ok(()), "{api:?} v{version}");
    }
}
