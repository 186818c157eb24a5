//! `ringlog.clean`: vouches for the checkpoint of one incarnation. Text with version and CRC, like the folder's identity.

/// Version of this file; a newer one is refused, see [`crate::versions`].
const FIRST_LINE: &str = "version=1";

pub fn encode(incarnation: u64) -> Vec<u8> {
    let body = format!("{FIRST_LINE}\nincarnation={incarnation:016x}\n");
    format!("{body}crc={:08x}\n", crc32fast::hash(body.as_bytes())).into_bytes()
}

/// The version, where it is not ours and the CRC says that it was written so.
pub fn newer_version(bytes: &[u8]) -> Option<u32> {
    super::text_version(bytes).filter(|version| *version > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_its_version_and_damage_says_nothing() {
        let mark = encode(0xfeed);
        assert_eq!(
            mark,
            b"version=1\nincarnation=000000000000feed\ncrc=ce674912\n",
            "{}",
            String::from_utf8_lossy(&mark)
        );
        assert_eq!(newer_version(&mark), None);
        let body = "version=7\nwhatever\n";
        let newer = format!("{body}crc={:08x}\n", crc32fast::hash(body.as_bytes()));
        assert_eq!(newer_version(newer.as_bytes()), Some(7));
        assert_eq!(newer_version(newer.replace("what", "wham").as_bytes()), None);
    }
}
