//! Moves Fetch requests: one under way per node, the next one sent as soon as an answer is in and there is room.

use std::collections::BTreeSet;
use std::rc::Rc;

use runtime::clock::now_ms;
use runtime::spawn;
use wire::ApiKey;
use wire::generated::fetch::FetchRequest;

use super::Inner;
use crate::consumer::session::PlannedFetch;
use crate::{Answer, ClientError};

impl Inner {
    /// Sends what is due to every node that can take it.
    pub fn pump(self: &Rc<Inner>) {
        if self.is_closed() || !self.group.borrow().may_fetch() {
            return;
        }
        let cluster = self.client.cluster();
        let (is_stale, nodes) = {
            let mut fetcher = self.fetcher.borrow_mut();
            let is_stale = fetcher.observe(&cluster);
            (is_stale, fetcher.wanted_nodes(now_ms()))
        };
        if is_stale {
            self.client.want_refresh();
        }
        for node in self.reachable(nodes) {
            self.fetch_from(node);
        }
    }

    /// Those of `nodes` that are connected. A follower that stays away is not waited for: its leader takes its place.
    fn reachable(&self, nodes: BTreeSet<i32>) -> BTreeSet<i32> {
        let (ready, away): (BTreeSet<i32>, BTreeSet<i32>) =
            nodes.into_iter().partition(|node| self.client.is_ready(*node));
        let mut fetcher = self.fetcher.borrow_mut();
        let now = now_ms();
        let left = away.iter().filter(|node| fetcher.leave_follower_away(**node, now)).count();
        if left == 0 {
            return ready;
        }
        let nodes = fetcher.wanted_nodes(now);
        drop(fetcher);
        self.client.want_refresh();
        nodes.into_iter().filter(|node| self.client.is_ready(*node)).collect()
    }

    fn fetch_from(self: &Rc<Inner>, node: i32) {
        let Some(version) = self.client.version(node, ApiKey::Fetch, None) else { return };
        let now = now_ms();
        let Some(planned) = self.fetcher.borrow_mut().plan(node, version, now) else { return };
        spawn("consumer-fetch", fetch(self.clone(), node, planned));
    }

    fn fetch_answered(&self, node: i32, answer: Result<Answer<FetchRequest<'_>>, ClientError>) {
        let now = now_ms();
        let mut fetcher = self.fetcher.borrow_mut();
        let is_stale = match answer.as_ref().map_err(Clone::clone).and_then(|answer| answer.decode()) {
            Ok(answer) => fetcher.answered(node, &answer, now),
            Err(error) => {
                fetcher.failed(node, &error, now);
                true
            }
        };
        drop(fetcher);
        if is_stale {
            self.client.want_refresh();
        }
    }
}

/// One Fetch, from its sending to its answer.
async fn fetch(inner: Rc<Inner>, node: i32, planned: PlannedFetch) {
    let timeout_ms = inner.client.config().request_timeout_ms + i64::from(inner.config.fetch_max_wait_ms);
    let request = planned.request(&inner.config);
    let answer = match inner.client.send(node, Some(planned.versions()), &request, timeout_ms) {
        Ok(pending) => pending.await,
        Err(error) => Err(error),
    };
    if inner.is_closed() {
        return;
    }
    inner.fetch_answered(node, answer);
    inner.pump();
    inner.wake();
}
