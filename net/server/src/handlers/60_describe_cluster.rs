//! DescribeCluster (key 60, KIP-700): the cluster's id, controller and brokers.

use model::ErrorCode;
use wire::generated::describe_cluster::{DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse};

use super::Context;
use super::admin::{CLUSTER_OPERATIONS, OPERATIONS_NOT_ASKED, Refusal};

/// Kafka's numbers of endpoint types; this listener is one for brokers.
const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;

pub async fn handle(context: &Context<'_>, request: DescribeClusterRequest) -> DescribeClusterResponse<'static> {
    if let Err(refusal) = check_endpoint(request.endpoint_type) {
        return DescribeClusterResponse {
            error_code: refusal.code.code(),
            error_message: Some(refusal.message.into()),
            ..DescribeClusterResponse::default()
        };
    }
    let view = context.shard.view();
    let facts = &context.shard.facts;
    let broker = |broker: &std::sync::Arc<metadata::BrokerRegistration>| DescribeClusterBroker {
        broker_id: broker.node.0,
        host: broker.host.to_string().into(),
        port: i32::from(broker.port),
        rack: broker.rack.as_ref().map(|rack| rack.to_string().into()),
        is_fenced: false,
    };
    DescribeClusterResponse {
        cluster_id: facts.cluster_id.clone().into(),
        controller_id: facts.node_id.0,
        brokers: view.image.brokers().map(broker).collect(),
        cluster_authorized_operations: if request.include_cluster_authorized_operations {
            CLUSTER_OPERATIONS
        } else {
            OPERATIONS_NOT_ASKED
        },
        ..DescribeClusterResponse::default()
    }
}

fn check_endpoint(endpoint_type: i8) -> Result<(), Refusal> {
    match endpoint_type {
        BROKERS => Ok(()),
        CONTROLLERS => {
            let message = "Controllers were asked for, and this endpoint is one for brokers.";
            Err(Refusal::new(ErrorCode::MismatchedEndpointType, message))
        }
        other => Err(Refusal::new(ErrorCode::UnsupportedEndpointType, format!("Unsupported endpoint type {other}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_brokers_are_described_here() {
        let code = |endpoint_type| check_endpoint(endpoint_type).map_err(|refusal| refusal.code);
        assert_eq!(code(1), Ok(()));
        assert_eq!(code(2), Err(ErrorCode::MismatchedEndpointType));
        assert_eq!(code(9), Err(ErrorCode::UnsupportedEndpointType));
    }
}
