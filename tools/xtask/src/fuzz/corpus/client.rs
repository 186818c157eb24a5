//! What a broker sends to a client, and what members of a group send to each other.

use bytes::Bytes;
use client::TopicPartition;
use client::consumer_protocol::{Assignment, Subscription};

/// Answers to the questions of the target in the pieces that its second byte asks for, with and without the versions
/// that the first byte leaves out.
pub fn answers() -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    for (first, piece) in [(0u8, 1u8), (1, 7), (2, 255)] {
        // Any frames: what counts is their size and the id behind it.
        let mut bytes = vec![first, piece];
        for id in 0..7i32 {
            let body = vec![0; id as usize * 5];
            bytes.extend_from_slice(&(5 + body.len() as i32).to_be_bytes());
            bytes.extend_from_slice(&id.to_be_bytes());
            bytes.push(0);
            bytes.extend_from_slice(&body);
        }
        inputs.push(bytes);
    }
    inputs
}

/// Batches of every kind, one alone and several behind each other, read in every way.
pub fn fetched() -> Vec<Vec<u8>> {
    let batches = super::model::batches();
    let all = batches.concat();
    let ways = (0..4u8).map(|how| [&[how][..], &all].concat());
    batches.iter().map(|batch| [&[1u8][..], batch].concat()).chain(ways).collect()
}

pub fn member_messages() -> Vec<Vec<u8>> {
    let partitions =
        vec![TopicPartition::new("clicks", 0), TopicPartition::new("clicks", 3), TopicPartition::new("x", 1)];
    let subscription = Subscription {
        topics: vec!["clicks".into(), "x".into()],
        user_data: Some(Bytes::from_static(b"sticky")),
        owned_partitions: partitions.clone(),
        generation_id: 7,
        rack_id: Some("rack".into()),
    };
    let assignment = Assignment { partitions, user_data: None };
    vec![
        Subscription::default().encode().to_vec(),
        subscription.encode().to_vec(),
        Assignment::default().encode().to_vec(),
        assignment.encode().to_vec(),
    ]
}
