//! The connections of a client, by place: a bootstrap address or a node, and a lane.
//!
//! **Lanes.** A broker serves one connection's requests one after the other, and holds back Fetch and JoinGroup until
//! they have something to say. So that they hold nobody else up, a node has up to three connections: for Fetch, for
//! group membership, and for everything else. Whoever calls does not see it: the request's API says which.
//!
//! A connection that ended is noticed when it is wanted next, and then made anew, no sooner than its back-off allows.

use std::collections::BTreeMap;
use std::rc::Rc;

use runtime::{Notify, TaskGroup};
use wire::ApiKey;

use super::ClientConfig;
use super::backoff::Backoff;
use crate::Cluster;
use crate::link::driver::LinkSetup;
use crate::link::{Address, Link};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Bootstrap(usize),
    Node(i32),
}

impl Place {
    /// -1 for a broker whose node id is not known yet.
    pub fn node(self) -> i32 {
        match self {
            Place::Bootstrap(_) => -1,
            Place::Node(node) => node,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lane {
    Main,
    Fetch,
    Group,
}

impl Lane {
    pub fn of(api: ApiKey) -> Lane {
        match api {
            ApiKey::Fetch => Lane::Fetch,
            ApiKey::JoinGroup
            | ApiKey::SyncGroup
            | ApiKey::Heartbeat
            | ApiKey::LeaveGroup
            | ApiKey::OffsetCommit
            | ApiKey::OffsetFetch
            | ApiKey::ConsumerGroupHeartbeat => Lane::Group,
            _ => Lane::Main,
        }
    }
}

#[derive(Debug)]
struct Slot {
    link: Rc<Link>,
    /// Attempts in a row that led to nothing, the present one not counted.
    failures: u32,
}

#[derive(Debug)]
pub(crate) struct Nodes {
    slots: BTreeMap<(Place, Lane), Slot>,
    config: Rc<ClientConfig>,
    changed: Rc<Notify>,
    tasks: TaskGroup,
}

impl Nodes {
    pub fn new(config: Rc<ClientConfig>, changed: Rc<Notify>, tasks: TaskGroup) -> Nodes {
        Nodes { slots: BTreeMap::new(), config, changed, tasks }
    }

    /// The connection to `place`, as it is or newly begun; and whether it replaces one that ended.
    pub fn link(&mut self, place: Place, lane: Lane, address: &Address) -> (Rc<Link>, bool) {
        let key = (place, lane);
        let mut failures = 0;
        let mut start_at_ms = i64::MIN;
        if let Some(slot) = self.slots.get(&key) {
            if !slot.link.is_ended() {
                return (slot.link.clone(), false);
            }
            failures = if slot.link.was_ready() { 1 } else { slot.failures.saturating_add(1) };
            let backoff =
                Backoff { first_ms: self.config.reconnect_backoff_ms, max_ms: self.config.reconnect_backoff_max_ms };
            start_at_ms = slot.link.ended_at_ms().saturating_add(backoff.draw_ms(failures));
        }
        let setup = LinkSetup {
            address: address.clone(),
            node: place.node(),
            client_id: self.config.client_id.clone(),
            start_at_ms,
            connect_timeout_ms: self.config.connection_setup_timeout_ms,
            negotiation_timeout_ms: self.config.request_timeout_ms,
        };
        let link = Link::start(setup, self.changed.clone(), &self.tasks);
        let replaced = self.slots.insert(key, Slot { link: link.clone(), failures });
        (link, replaced.is_some())
    }

    /// The lanes to `node` that were ever used.
    pub fn lanes(&self, node: i32) -> Vec<Lane> {
        let place = Place::Node(node);
        self.slots.range((place, Lane::Main)..=(place, Lane::Group)).map(|((_, lane), _)| *lane).collect()
    }

    pub fn existing(&self, place: Place, lane: Lane) -> Option<&Rc<Link>> {
        self.slots.get(&(place, lane)).map(|slot| &slot.link)
    }

    /// The connected broker with the least under way.
    pub fn least_loaded(&self) -> Option<(Place, Rc<Link>)> {
        let main = self.slots.iter().filter(|((_, lane), slot)| *lane == Lane::Main && slot.link.has_room());
        let best = main.min_by_key(|(_, slot)| slot.link.under_way())?;
        Some((best.0.0, best.1.link.clone()))
    }

    /// Drops connections to where a broker is no more, and gives bootstrap connections to the nodes that they lead to.
    pub fn follow(&mut self, cluster: &Cluster) {
        self.slots.retain(|(place, _), slot| match (place, cluster.brokers.get(&place.node())) {
            (Place::Node(_), Some(broker)) if !is_at(slot.link.address(), &broker.host, broker.port) => {
                slot.link.end(&format!("the broker moved to {}:{}", broker.host, broker.port));
                false
            }
            (Place::Node(_), None) => !slot.link.is_ended(),
            _ => true,
        });
        let bootstrap: Vec<Place> = self.slots.keys().map(|(place, _)| *place).filter(|one| one.node() < 0).collect();
        for place in bootstrap {
            self.adopt(place, cluster);
        }
    }

    fn adopt(&mut self, place: Place, cluster: &Cluster) {
        let Some(link) = self.existing(place, Lane::Main).filter(|link| link.is_ready()) else { return };
        let address = link.address();
        let Some(broker) = cluster.brokers.values().find(|broker| is_at(address, &broker.host, broker.port)) else {
            return;
        };
        let key = (Place::Node(broker.id), Lane::Main);
        if self.slots.contains_key(&key) {
            return;
        }
        link.set_node(broker.id);
        if let Some(slot) = self.slots.remove(&(place, Lane::Main)) {
            self.slots.insert(key, slot);
        }
    }

    pub fn end_all(&mut self, reason: &str) {
        for slot in std::mem::take(&mut self.slots).into_values() {
            slot.link.end(reason);
        }
    }
}

fn is_at(address: &Address, host: &str, port: u16) -> bool {
    address.host == host && address.port == port
}
