//! Images for the tests of these handlers, made by the commands that make real ones.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use metadata::{Command, Image, Incarnation};
use model::config::BrokerConfig;
use model::{NodeId, TopicId};

use crate::placement::Placement;
use crate::view::View;

pub fn then(image: &Image, command: Command) -> Image {
    metadata::apply(image, image.version() + 1, &command).unwrap().0
}

/// A formatted cluster with brokers 1 to `brokers`.
pub fn cluster(brokers: i32) -> Image {
    let cluster_id = TopicId([7; 16]).to_string().into();
    let mut image = then(&Image::default(), Command::FormatCluster { cluster_id, features: Vec::new() });
    for node in 1..=brokers {
        let register = Command::RegisterBroker {
            node: NodeId(node),
            incarnation: Incarnation([node as u8; 16]),
            host: "127.0.0.1".into(),
            port: 9092,
            rack: None,
        };
        image = then(&image, register);
    }
    image
}

/// `image` with a topic whose partitions broker 1 holds; its id is its name over and over.
pub fn with_topic(image: &Image, name: &str, partitions: usize, configs: &[(&str, &str)]) -> Image {
    let create = Command::CreateTopic {
        name: name.into(),
        id: topic_id(name),
        assignments: vec![vec![NodeId(1)]; partitions],
        configs: configs.iter().map(|(k, v)| (Arc::from(*k), Arc::from(*v))).collect(),
    };
    then(image, create)
}

pub fn topic_id(name: &str) -> TopicId {
    let mut id = [0; 16];
    id.iter_mut().zip(name.bytes().cycle()).for_each(|(to, from)| *to = from);
    TopicId(id)
}

pub fn view(image: Image) -> View {
    let config = BrokerConfig::from_pairs([("node.id", "1")]).unwrap();
    let mut placement = Placement::new(2);
    placement.follow(&Image::default(), &image);
    View { image: Arc::new(image), placement, config: Arc::new(config) }
}
