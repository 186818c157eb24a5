//! `ringlog.meta`: whose data folder this is, and which of its node's folders. Written when the folder is first used (and
//! once more by a version that knows more), read at every start. Text with a version and a CRC; a newer version is refused.

use std::fmt;

use model::{NodeId, TopicId};

/// The newest version that this program knows.
const VERSION: u32 = 2;

/// Cluster and node that a data folder belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub cluster_id: String,
    pub node_id: NodeId,
}

/// The version, where it is newer than ours and the CRC says that it was written so.
pub fn newer_version(bytes: &[u8]) -> Option<u32> {
    super::text_version(bytes).filter(|version| *version > VERSION)
}

/// Which folder it is, wherever it is mounted: Kafka's `directory.id`, 22 characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirectoryId(TopicId);

impl DirectoryId {
    pub fn from_random(bytes: [u8; 16]) -> DirectoryId {
        DirectoryId(TopicId::from_random(bytes))
    }

    pub const fn of_bytes(bytes: [u8; 16]) -> DirectoryId {
        DirectoryId(TopicId(bytes))
    }

    pub fn bytes(self) -> [u8; 16] {
        self.0.0
    }
}

impl fmt::Display for DirectoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderIdentity {
    pub owner: Identity,
    /// `None` in version 1, when a node had one folder.
    pub directory_id: Option<DirectoryId>,
}

impl FolderIdentity {
    pub fn encode(&self) -> String {
        let Identity { cluster_id, node_id } = &self.owner;
        let body = match self.directory_id {
            None => format!("version=1\ncluster.id={cluster_id}\nnode.id={node_id}\n"),
            Some(id) => format!("version=2\ncluster.id={cluster_id}\nnode.id={node_id}\ndirectory.id={id}\n"),
        };
        format!("{body}crc={:08x}\n", crc32fast::hash(body.as_bytes()))
    }

    /// The sentence says what is wrong with the file.
    pub fn decode(bytes: &[u8]) -> Result<FolderIdentity, &'static str> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is not text")?;
        let at = text.find("crc=").ok_or("its checksum is missing")?;
        let (body, crc) = text.split_at(at);
        if crc != format!("crc={:08x}\n", crc32fast::hash(body.as_bytes())) {
            return Err("its checksum does not match");
        }
        let mut lines = body.lines();
        let version = lines.next();
        if !matches!(version, Some("version=1" | "version=2")) {
            return Err("it was written by a newer version");
        }
        let mut field = |name| lines.next().and_then(|l| l.strip_prefix(name)).ok_or("a field is missing");
        let cluster_id = field("cluster.id=")?.to_string();
        let node_id = NodeId(field("node.id=")?.parse().map_err(|_| "its node id is not a number")?);
        let directory_id = match version {
            Some("version=2") => {
                Some(DirectoryId(TopicId::parse(field("directory.id=")?).ok_or("its directory id is no id")?))
            }
            _ => None,
        };
        Ok(FolderIdentity { owner: Identity { cluster_id, node_id }, directory_id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(directory_id: Option<DirectoryId>) -> FolderIdentity {
        FolderIdentity { owner: Identity { cluster_id: "abc".into(), node_id: NodeId(3) }, directory_id }
    }

    #[test]
    fn goes_both_ways_and_notices_damage() {
        for identity in [identity(None), identity(Some(DirectoryId::from_random([7; 16])))] {
            let text = identity.encode();
            assert_eq!(FolderIdentity::decode(text.as_bytes()), Ok(identity));
            for i in 0..text.len() {
                let mut damaged = text.clone().into_bytes();
                damaged[i] ^= 1;
                assert!(FolderIdentity::decode(&damaged).is_err(), "byte {i}");
            }
        }
    }

    #[test]
    fn a_newer_version_is_refused() {
        let body = "version=3\ncluster.id=abc\nnode.id=3\ndirectory.id=x\nmore=y\n";
        let text = format!("{body}crc={:08x}\n", crc32fast::hash(body.as_bytes()));
        assert_eq!(FolderIdentity::decode(text.as_bytes()), Err("it was written by a newer version"));
    }
}
