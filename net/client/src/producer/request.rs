//! One Produce request to one node, and which batch each of its answers is for.
//!
//! A request is its own encoder, so that it owns its topics' names and may outlive the call that made it.

use std::collections::BTreeMap;
use std::rc::Rc;

use bytes::Bytes;
use wire::generated::produce::{
    PartitionProduceData, PartitionProduceResponse, ProduceRequest, ProduceResponse, TopicProduceData,
};
use wire::{ApiKey, Encode, Records, Request, WireError, Writer};

/// Topic ids in place of names.
const FIRST_WITH_TOPIC_IDS: i16 = 13;
const NO_ID: [u8; 16] = [0; 16];

/// One batch in a request.
#[derive(Clone, Debug)]
pub struct Part {
    pub topic: Rc<str>,
    pub topic_id: [u8; 16],
    pub index: i32,
    pub records: Bytes,
    pub(super) key: PartKey,
}

/// Where an answer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartKey {
    pub slot: u32,
    pub batch: u64,
}

/// What goes to one node at once. Parts of one topic lie side by side.
#[derive(Clone, Debug)]
pub struct NodeRequest {
    /// For [`super::sender::Sender::answered`].
    pub id: u64,
    pub node: i32,
    pub acks: i16,
    pub timeout_ms: i32,
    pub parts: Vec<Part>,
}

impl NodeRequest {
    /// The newest version that this request can be written in.
    pub fn newest_version(&self) -> i16 {
        let newest = *ApiKey::Produce.versions().end();
        if self.parts.iter().all(|part| part.topic_id != NO_ID) { newest } else { newest.min(FIRST_WITH_TOPIC_IDS - 1) }
    }

    pub fn bytes(&self) -> usize {
        self.parts.iter().map(|part| part.records.len()).sum()
    }
}

impl Encode for NodeRequest {
    fn encode(&self, writer: &mut Writer, version: i16) -> Result<(), WireError> {
        let topic_data = self.parts.chunk_by(|a, b| a.topic == b.topic).map(|parts| TopicProduceData {
            name: &parts[0].topic,
            topic_id: parts[0].topic_id,
            partition_data: parts
                .iter()
                .map(|part| PartitionProduceData { index: part.index, records: Records::from(part.records.clone()) })
                .collect(),
        });
        let request = ProduceRequest {
            transactional_id: None,
            acks: self.acks,
            timeout_ms: self.timeout_ms,
            topic_data: topic_data.collect(),
        };
        request.encode(writer, version)
    }
}

impl Request for NodeRequest {
    const API: ApiKey = ApiKey::Produce;
    type Response<'r> = ProduceResponse<'r>;
}

/// What is kept of a request until its answer.
#[derive(Debug)]
pub struct InFlight {
    pub node: i32,
    pub parts: Vec<InFlightPart>,
}

#[derive(Debug)]
pub struct InFlightPart {
    pub key: PartKey,
    topic: Rc<str>,
    topic_id: [u8; 16],
    index: i32,
}

impl InFlight {
    pub fn new(request: &NodeRequest) -> InFlight {
        let part = |part: &Part| InFlightPart {
            key: part.key,
            topic: part.topic.clone(),
            topic_id: part.topic_id,
            index: part.index,
        };
        InFlight { node: request.node, parts: request.parts.iter().map(part).collect() }
    }

    /// The answer for each part; `None` where there is none. What nobody asked about is ignored, and of two answers
    /// for one part the first counts.
    pub fn pair<'a, 'r>(&self, response: &'a ProduceResponse<'r>) -> Vec<Option<&'a PartitionProduceResponse<'r>>> {
        let mut found = vec![None; self.parts.len()];
        // Brokers answer in the order in which they were asked; the map is for those that do not.
        let mut next = 0;
        let mut places: Option<BTreeMap<(&str, i32), usize>> = None;
        for topic in &response.responses {
            for answer in &topic.partition_responses {
                let name = if topic.name.is_empty() { self.name_of(&topic.topic_id) } else { Some(&*topic.name) };
                let Some(name) = name else { continue };
                let expected = self.parts.get(next).is_some_and(|p| p.index == answer.index && *p.topic == *name);
                let place = if expected {
                    Some(next)
                } else {
                    let places = places.get_or_insert_with(|| self.places());
                    places.get(&(name, answer.index)).copied()
                };
                let Some(place) = place else { continue };
                found[place] = found[place].or(Some(answer));
                next = place + 1;
            }
        }
        found
    }

    fn name_of(&self, id: &[u8; 16]) -> Option<&str> {
        if *id == NO_ID {
            return None;
        }
        self.parts.iter().find(|part| part.topic_id == *id).map(|part| &*part.topic)
    }

    fn places(&self) -> BTreeMap<(&str, i32), usize> {
        self.parts.iter().enumerate().map(|(at, part)| ((&*part.topic, part.index), at)).collect()
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
