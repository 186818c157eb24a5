//! `meta`: whose data folder this is. Written once, read at every start.

use model::NodeId;

/// Cluster and node that a data folder belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub cluster_id: String,
    pub node_id: NodeId,
}

impl Identity {
    pub fn encode(&self) -> String {
        let body = format!("version=1\ncluster.id={}\nnode.id={}\n", self.cluster_id, self.node_id);
        format!("{body}crc={:08x}\n", crc32fast::hash(body.as_bytes()))
    }

    /// The sentence says what is wrong with the file.
    pub fn decode(bytes: &[u8]) -> Result<Identity, &'static str> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is not text")?;
        let at = text.find("crc=").ok_or("its checksum is missing")?;
        let (body, crc) = text.split_at(at);
        if crc != format!("crc={:08x}\n", crc32fast::hash(body.as_bytes())) {
            return Err("its checksum does not match");
        }
        let mut lines = body.lines();
        if lines.next() != Some("version=1") {
            return Err("it was written by a newer version");
        }
        let mut field = |name| lines.next().and_then(|l| l.strip_prefix(name)).ok_or("a field is missing");
        let cluster_id = field("cluster.id=")?.to_string();
        let node_id = NodeId(field("node.id=")?.parse().map_err(|_| "its node id is not a number")?);
        Ok(Identity { cluster_id, node_id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_both_ways_and_notices_damage() {
        let identity = Identity { cluster_id: "abc".into(), node_id: NodeId(3) };
        let text = identity.encode();
        assert_eq!(Identity::decode(text.as_bytes()), Ok(identity));
        for i in 0..text.len() {
            let mut damaged = text.clone().into_bytes();
            damaged[i] ^= 1;
            assert!(Identity::decode(&damaged).is_err(), "byte {i}");
        }
    }
}
