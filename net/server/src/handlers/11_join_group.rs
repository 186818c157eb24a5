//! JoinGroup (key 11): a member comes in or comes back. The answer waits until the group's join phase is complete.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

use coordinator::{JoinMember, JoinRequest, JoinResponse, Protocol, Response};
use model::ErrorCode;
use runtime::random;
use wire::generated::join_group::{JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember};

use super::Context;
use crate::groups::Need;

const FIRST_WITH_KNOWN_MEMBER_ID: i16 = 4;
const FIRST_WITH_NULL_PROTOCOL: i16 = 7;
const FIRST_WITH_SKIP_ASSIGNMENT: i16 = 9;

pub async fn handle(context: &Context<'_>, request: JoinGroupRequest<'_>) -> JoinGroupResponse<'static> {
    let join = to_join(context, &request);
    let call = context.shard.with_group(request.group_id, Need::Topic, |driver| async move {
        driver.ask(|coordinator, now, ticket| coordinator.join(now, ticket, join)).await
    });
    match call.await {
        Ok(Response::Join(joined)) => to_wire(context.version, joined),
        Ok(_) => refusal(context.version, request.member_id, ErrorCode::UnknownServerError),
        Err(unreached) => refusal(context.version, request.member_id, unreached.code()),
    }
}

fn to_join(context: &Context<'_>, request: &JoinGroupRequest<'_>) -> JoinRequest {
    let protocol = |p: &wire::generated::join_group::JoinGroupRequestProtocol<'_>| Protocol {
        name: p.name.to_owned(),
        metadata: p.metadata.clone(),
    };
    JoinRequest {
        group_id: request.group_id.to_owned(),
        member_id: request.member_id.to_owned(),
        group_instance_id: request.group_instance_id.map(str::to_owned),
        client_id: context.client_id.unwrap_or_default().to_owned(),
        client_host: client_host(context.peer),
        session_timeout_ms: request.session_timeout_ms,
        rebalance_timeout_ms: request.rebalance_timeout_ms,
        protocol_type: request.protocol_type.to_owned(),
        protocols: request.protocols.iter().map(protocol).collect(),
        requires_known_member_id: context.version >= FIRST_WITH_KNOWN_MEMBER_ID,
        supports_skip_assignment: context.version >= FIRST_WITH_SKIP_ASSIGNMENT,
        random: u128::from_le_bytes(random::bytes()),
    }
}

/// An address as Java prints it: a slash, and IPv6 as eight plain groups.
fn client_host(peer: SocketAddr) -> String {
    match peer.ip().to_canonical() {
        IpAddr::V4(v4) => format!("/{v4}"),
        IpAddr::V6(v6) => {
            let groups: Vec<String> = v6.segments().iter().map(|group| format!("{group:x}")).collect();
            format!("/{}", groups.join(":"))
        }
    }
}

fn to_wire(version: i16, joined: JoinResponse) -> JoinGroupResponse<'static> {
    let member = |m: JoinMember| JoinGroupResponseMember {
        member_id: Cow::Owned(m.member_id.to_string()),
        group_instance_id: m.group_instance_id.map(|id| Cow::Owned(id.to_string())),
        metadata: m.metadata,
    };
    JoinGroupResponse {
        throttle_time_ms: 0,
        error_code: joined.error.code(),
        generation_id: joined.generation_id,
        protocol_type: joined.protocol_type.map(Cow::Owned),
        protocol_name: protocol_name(version, joined.protocol_name),
        leader: Cow::Owned(joined.leader.to_string()),
        skip_assignment: joined.skip_assignment,
        member_id: Cow::Owned(joined.member_id.to_string()),
        members: joined.members.into_iter().map(member).collect(),
    }
}

fn refusal(version: i16, member_id: &str, error: ErrorCode) -> JoinGroupResponse<'static> {
    JoinGroupResponse {
        error_code: error.code(),
        protocol_name: protocol_name(version, None),
        member_id: Cow::Owned(member_id.to_owned()),
        ..JoinGroupResponse::default()
    }
}

fn protocol_name(version: i16, name: Option<String>) -> Option<Cow<'static, str>> {
    match name {
        Some(name) => Some(Cow::Owned(name)),
        None if version < FIRST_WITH_NULL_PROTOCOL => Some(Cow::Borrowed("")),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> String {
        let ip: IpAddr = text.parse().expect("an address");
        client_host(SocketAddr::new(ip, 1))
    }

    #[test]
    fn hosts_look_like_javas() {
        assert_eq!(host("127.0.0.1"), "/127.0.0.1");
        assert_eq!(host("::1"), "/0:0:0:0:0:0:0:1");
        assert_eq!(host("::ffff:10.1.2.3"), "/10.1.2.3");
        assert_eq!(host("fe80::ab:0:1"), "/fe80:0:0:0:0:ab:0:1");
    }

    #[test]
    fn a_missing_protocol_is_empty_below_v7() {
        assert_eq!(protocol_name(6, None).as_deref(), Some(""));
        assert_eq!(protocol_name(7, None), None);
        assert_eq!(protocol_name(5, Some("range".into())).as_deref(), Some("range"));
    }
}
