//! Random interleavings of clients, appends and time against what must hold whatever happens:
//!
//! * every ticket is answered exactly once, at the latest when all timers have run out;
//! * a generation has one leader;
//! * a member is told what the leader of its generation assigned to it, and no two members of a stable group the same;
//! * the log, replayed, gives the state that clients see.
#![allow(clippy::unwrap_used)]

use crate::test_support::*;
use crate::*;
use bytes::Bytes;
use model::{ErrorCode, TopicId};
use std::collections::{BTreeMap, BTreeSet};

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

const GROUPS: [&str; 2] = ["alpha", "beta"];
const CLIENTS: usize = 5;
const STEPS: usize = 400;

/// A client as the broker's answers have made it.
#[derive(Clone, Debug, Default)]
struct Client {
    group: usize,
    instance: Option<String>,
    member_id: String,
    generation: i32,
    /// From the join's answer: whom to assign to.
    to_assign: Vec<String>,
    waiting: BTreeMap<Ticket, (&'static str, String)>,
}

struct World {
    h: Harness,
    random: Random,
    clients: Vec<Client>,
    /// Tickets without an answer, with what was asked.
    open: BTreeSet<Ticket>,
    seen: BTreeSet<Ticket>,
    /// Group, how often it began anew, generation: who was told to assign.
    leaders: BTreeMap<(usize, u64, i32), String>,
    /// What leaders handed in.
    assigned: BTreeMap<(usize, u64, i32), BTreeSet<Bytes>>,
    /// Bumped when a group is deleted or an append fails: generations may begin again.
    lives: [u64; 2],
    failures: bool,
    failed: u64,
    restarts: u64,
}

impl World {
    fn new(seed: u64, failures: bool) -> World {
        let mut h = Harness::new();
        h.auto = false;
        let client = |i: usize| Client {
            group: i % 2,
            instance: (i == 3 || i == 4).then(|| format!("instance-{i}")),
            ..Client::default()
        };
        World {
            h,
            random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            clients: (0..CLIENTS).map(client).collect(),
            open: BTreeSet::new(),
            seen: BTreeSet::new(),
            leaders: BTreeMap::new(),
            assigned: BTreeMap::new(),
            lives: [0, 0],
            failures,
            failed: 0,
            restarts: 0,
        }
    }

    fn run(&mut self) {
        for _ in 0..STEPS {
            self.step();
            self.hear();
            if self.h.appends.is_empty() {
                self.compare_with_replay();
            }
        }
        self.finish();
    }

    fn step(&mut self) {
        let client = self.random.below(CLIENTS as u64) as usize;
        match self.random.below(22) {
            0..=5 => self.join(client),
            6..=9 => self.sync(client),
            10..=11 => self.heartbeat(client),
            12 => self.leave(client),
            13..=14 => self.commit(client),
            15 => self.delete(),
            16..=18 => self.append_done(),
            19 => self.h.advance(self.random.below(500) as i64),
            20 => self.h.advance(self.random.below(12_000) as i64),
            _ => self.start_client_anew(client),
        }
    }

    fn asked(&mut self, client: usize, ticket: Ticket, what: &'static str) {
        assert!(self.open.insert(ticket));
        let member_id = self.clients[client].member_id.clone();
        self.clients[client].waiting.insert(ticket, (what, member_id));
    }

    fn join(&mut self, client: usize) {
        let random = (u128::from(self.random.below(u64::MAX)) << 64) | u128::from(self.random.below(u64::MAX));
        let topic = ["t", "u"][self.random.below(8) as usize / 7];
        let both = self.random.one_in(3);
        let c = &self.clients[client];
        let mut protocols = vec![protocol("range", subscription(&[topic]))];
        if both {
            protocols.insert(0, protocol("sticky", subscription(&[topic])));
        }
        let request = JoinRequest {
            group_instance_id: c.instance.clone(),
            protocols,
            random,
            rebalance_timeout_ms: 8_000,
            requires_known_member_id: !self.random.one_in(4),
            supports_skip_assignment: self.random.one_in(2),
            ..join(GROUPS[c.group], "client", &c.member_id)
        };
        let ticket = self.h.join_with(request);
        self.asked(client, ticket, "join");
    }

    fn sync(&mut self, client: usize) {
        let c = self.clients[client].clone();
        let life = self.lives[c.group];
        let assignments: Vec<(String, Bytes)> = c
            .to_assign
            .iter()
            .map(|id| (id.clone(), Bytes::from(format!("{}/{life}/{}/{id}", c.group, c.generation))))
            .collect();
        if !assignments.is_empty() {
            let handed_in = self.assigned.entry((c.group, life, c.generation)).or_default();
            handed_in.extend(assignments.iter().map(|a| a.1.clone()));
        }
        let request = SyncRequest {
            group_instance_id: c.instance.clone(),
            protocol_name: None,
            assignments,
            ..sync(GROUPS[c.group], &c.member_id, c.generation, &[])
        };
        let ticket = self.h.sync_with(request);
        self.asked(client, ticket, "sync");
    }

    fn heartbeat(&mut self, client: usize) {
        let c = self.clients[client].clone();
        let error = self.h.heartbeat(GROUPS[c.group], &c.member_id, c.generation);
        if error == ErrorCode::UnknownMemberId {
            self.clients[client].member_id.clear();
        }
    }

    fn leave(&mut self, client: usize) {
        let c = self.clients[client].clone();
        let ticket = self.h.leave(GROUPS[c.group], &[(&c.member_id, c.instance.as_deref())]);
        self.asked(client, ticket, "leave");
        self.clients[client].member_id.clear();
    }

    fn commit(&mut self, client: usize) {
        let c = self.clients[client].clone();
        let offset = self.random.below(1000) as i64;
        let partitions = [(self.random.below(3) as i32, offset)];
        let (member, generation) =
            if self.random.one_in(4) { (String::new(), -1) } else { (c.member_id, c.generation) };
        let request = commit_topic(GROUPS[c.group], &member, generation, "t", TopicId([1; 16]), &partitions);
        let ticket = self.h.commit_with(request);
        self.asked(client, ticket, "commit");
    }

    fn delete(&mut self) {
        let group = self.random.below(2) as usize;
        let ticket = if self.random.one_in(2) {
            self.h.delete_groups(&[GROUPS[group]])
        } else {
            self.h.delete_offsets(GROUPS[group], &[("t", &[0, 1]), ("u", &[0])])
        };
        self.asked(0, ticket, "delete");
    }

    fn append_done(&mut self) {
        if self.h.appends.is_empty() {
            return;
        }
        if self.failures && self.random.one_in(4) {
            // After a failure the model does not know which generation numbers come again.
            self.h.finish_append(Err(ErrorCode::NotEnoughReplicas));
            self.failed += 1;
        } else {
            self.h.finish_append(Ok(()));
        }
    }

    /// A process that died: it remembers nothing.
    fn start_client_anew(&mut self, client: usize) {
        let c = &mut self.clients[client];
        (c.member_id, c.generation) = (String::new(), 0);
        c.to_assign.clear();
    }

    /// Takes the answers that have come.
    fn hear(&mut self) {
        for (group, name) in GROUPS.iter().enumerate() {
            let key = records::group_metadata::encode_key(name);
            let deleted = self.h.log.iter().filter(|(k, v)| *k == key && v.is_none()).count() as u64;
            self.lives[group] = deleted + self.failed;
        }
        let new: Vec<Ticket> = self.h.replies.keys().filter(|t| !self.seen.contains(t)).copied().collect();
        for ticket in new {
            self.seen.insert(ticket);
            assert!(self.open.remove(&ticket), "{ticket:?} was not asked");
            let client = self.clients.iter().position(|c| c.waiting.contains_key(&ticket)).unwrap();
            let (what, _) = self.clients[client].waiting.remove(&ticket).unwrap();
            match (what, self.h.replies[&ticket].clone()) {
                ("join", Response::Join(reply)) => self.heard_join(client, reply),
                ("sync", Response::Sync(reply)) => self.heard_sync(client, &reply),
                ("leave", Response::Leave(_)) | ("commit", Response::Commit(_)) => {}
                ("delete", Response::DeleteGroups(_) | Response::DeleteOffsets { .. }) => {}
                (what, other) => panic!("{what} was answered with {other:?}"),
            }
        }
    }

    fn heard_join(&mut self, client: usize, reply: JoinResponse) {
        let c = &mut self.clients[client];
        c.to_assign.clear();
        match reply.error {
            ErrorCode::MemberIdRequired => c.member_id = reply.member_id.to_string(),
            ErrorCode::UnknownMemberId | ErrorCode::FencedInstanceId => c.member_id.clear(),
            ErrorCode::None => {
                c.member_id = reply.member_id.to_string();
                c.generation = reply.generation_id;
                assert!(reply.generation_id > 0 && reply.protocol_name.is_some());
                let leads = reply.leader == reply.member_id;
                assert_eq!(leads, !reply.members.is_empty());
                if leads && !reply.skip_assignment {
                    assert!(reply.members.iter().any(|m| m.member_id == reply.member_id));
                    c.to_assign = reply.members.iter().map(|m| m.member_id.to_string()).collect();
                    let key = (c.group, self.lives[c.group], reply.generation_id);
                    let leader = self.leaders.entry(key).or_insert_with(|| reply.member_id.to_string());
                    assert_eq!(leader.as_str(), &*reply.member_id, "two leaders of {key:?}");
                }
            }
            _ => {}
        }
    }

    fn heard_sync(&mut self, client: usize, reply: &SyncResponse) {
        if reply.error == ErrorCode::None && !reply.assignment.is_empty() {
            let group = self.clients[client].group;
            let handed_in = self.assigned.iter().filter(|(key, _)| key.0 == group);
            assert!(handed_in.into_iter().any(|(_, set)| set.contains(&reply.assignment)), "nobody assigned {reply:?}");
        }
    }

    /// Nothing is in flight: a restart must find what clients see.
    fn compare_with_replay(&mut self) {
        self.restarts += 1;
        let replayed = self.h.restarted();
        for group in GROUPS {
            let (ours, theirs) = (self.h.c.groups.get(group), replayed.c.groups.get(group));
            let offsets = |h: &Harness| h.c.fetch_offsets(group, None).unwrap();
            assert_eq!(offsets(&self.h), offsets(&replayed), "offsets of {group}");
            let in_log = ours.is_some_and(|g| g.persisted);
            assert!(self.failures || in_log == theirs.is_some(), "{group} exists");
            let (Some(ours), Some(theirs)) = (ours, theirs) else { continue };
            if ours.state == GroupState::Stable {
                check_assignments(&self.h, group);
            }
            let settled = matches!(ours.state, GroupState::Stable | GroupState::Empty);
            // After a failed append memory may be a generation ahead of the log.
            if settled && !self.failures {
                assert_eq!(
                    (ours.state, ours.generation_id, &ours.leader, &ours.protocol_name),
                    (theirs.state, theirs.generation_id, &theirs.leader, &theirs.protocol_name)
                );
                let describe = |h: &Harness| h.c.describe(group).unwrap();
                assert_eq!(describe(&self.h), describe(&replayed));
            }
        }
    }

    /// Clients fall silent; appends and timers run out.
    fn finish(&mut self) {
        for _ in 0..200 {
            while !self.h.appends.is_empty() {
                self.h.finish_append(Ok(()));
                self.hear();
            }
            self.h.advance(5_000);
            self.hear();
        }
        assert!(self.open.is_empty(), "never answered: {:?}", self.open);
        assert!(self.h.c.groups.values().all(|g| g.state == GroupState::Empty));
        assert_eq!(self.h.c.cx.timers.len(), 1, "only expiry is left");
        self.compare_with_replay();
    }
}

/// No two members of a stable group have the same; all have theirs from one generation.
fn check_assignments(h: &Harness, group: &str) {
    let members = h.c.describe(group).unwrap().unwrap().members;
    let given: Vec<&Bytes> = members.iter().map(|m| &m.assignment).filter(|a| !a.is_empty()).collect();
    let distinct: BTreeSet<&Bytes> = given.iter().copied().collect();
    assert_eq!(given.len(), distinct.len(), "{group}: {given:?}");
    let generation = |a: &&Bytes| a.split(|b| *b == b'/').nth(2).map(<[u8]>::to_vec);
    assert!(given.iter().map(generation).collect::<BTreeSet<_>>().len() <= 1, "{group}: {given:?}");
}

#[test]
fn random_interleavings_keep_the_rules() {
    let (mut answers, mut restarts, mut leaders) = (0, 0, 0);
    for seed in 1..=80 {
        let mut world = World::new(seed, false);
        world.run();
        answers += world.seen.len();
        restarts += world.restarts;
        leaders += world.leaders.len();
    }
    assert!(
        answers > 10_000 && restarts > 1_000 && leaders > 300,
        "{answers} {restarts} {leaders}: too little happened"
    );
}

#[test]
fn random_interleavings_with_failing_appends_lose_no_ticket_and_no_offset() {
    let mut answers = 0;
    for seed in 1000..=1080 {
        let mut world = World::new(seed, true);
        world.run();
        answers += world.seen.len();
    }
    assert!(answers > 10_000, "{answers}: too little happened");
}
