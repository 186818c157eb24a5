//! Entry points for the fuzzer: arbitrary bytes into this crate's decoders.

use model::config::{BrokerConfig, TopicConfig};

use crate::{snapshot, validate};

/// A producer snapshot file.
pub fn fuzz_snapshot(data: &[u8]) {
    if let Ok(table) = snapshot::decode(data) {
        let again = snapshot::decode(&snapshot::encode(&table));
        assert_eq!(again.as_ref(), Ok(&table), "a snapshot that was read is written back the same");
    }
}

/// A client's batch, validated as deeply as the configuration allows.
pub fn fuzz_validate(data: &[u8]) {
    let pairs = [("ringlog.produce.validation", "records"), ("cleanup.policy", "compact")];
    if let Ok(config) = TopicConfig::resolve(&BrokerConfig::default(), pairs) {
        let _ = validate::validate(data, &config, 1_700_000_000_000);
    }
}
