//! What a broker's answer for one batch means. A pure table; what is done about it is the sender's.

use model::ErrorCode;

/// What becomes of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Appended,
    /// Another attempt.
    Retry {
        /// What is known of the cluster is stale.
        refresh: bool,
        /// The batch may be in the log all the same.
        maybe_appended: bool,
    },
    /// Its sequence does not follow on what the broker has.
    OutOfOrder,
    /// The broker does not know this producer id (any more).
    ProducerLost,
    /// It knows a newer epoch of it.
    Fenced,
    /// Smaller batches of the same records, where there is more than one.
    TooLarge,
    Failed {
        maybe_appended: bool,
    },
}

/// Reads an error number of a Produce answer.
pub fn judge(code: i16, idempotent: bool) -> Verdict {
    use ErrorCode as E;
    let stale = Verdict::Retry { refresh: true, maybe_appended: false };
    let Some(code) = ErrorCode::from_code(code) else { return Verdict::Failed { maybe_appended: true } };
    match code {
        E::None | E::DuplicateSequenceNumber => Verdict::Appended,
        // A leader that lost its place answers so, too, after it appended: what it has may be replicated already.
        E::NotLeaderOrFollower | E::UnknownTopicOrPartition | E::UnknownTopicId => {
            Verdict::Retry { refresh: true, maybe_appended: true }
        }
        E::LeaderNotAvailable
        | E::BrokerNotAvailable
        | E::ReplicaNotAvailable
        | E::FencedLeaderEpoch
        | E::UnknownLeaderEpoch
        | E::InconsistentTopicId
        | E::ListenerNotFound => stale,
        E::KafkaStorageError | E::NetworkException => Verdict::Retry { refresh: true, maybe_appended: true },
        E::RequestTimedOut | E::NotEnoughReplicasAfterAppend => Verdict::Retry { refresh: false, maybe_appended: true },
        E::CorruptMessage
        | E::NotEnoughReplicas
        | E::CoordinatorLoadInProgress
        | E::CoordinatorNotAvailable
        | E::ConcurrentTransactions
        | E::ThrottlingQuotaExceeded => Verdict::Retry { refresh: false, maybe_appended: false },
        E::MessageTooLarge | E::RecordListTooLarge => Verdict::TooLarge,
        E::OutOfOrderSequenceNumber if idempotent => Verdict::OutOfOrder,
        E::UnknownProducerId if idempotent => Verdict::ProducerLost,
        E::InvalidProducerEpoch | E::ProducerFenced if idempotent => Verdict::Fenced,
        E::UnknownServerError => Verdict::Failed { maybe_appended: true },
        _ => Verdict::Failed { maybe_appended: false },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_a_meaning() {
        for code in i16::MIN..=i16::MAX {
            let verdict = judge(code, true);
            assert_eq!(verdict == Verdict::Appended, code == 0 || code == 46, "{code}");
        }
        assert_eq!(judge(45, true), Verdict::OutOfOrder);
        assert_eq!(judge(45, false), Verdict::Failed { maybe_appended: false });
        assert_eq!(judge(59, true), Verdict::ProducerLost);
        assert_eq!([judge(47, true), judge(90, true)], [Verdict::Fenced, Verdict::Fenced]);
        assert_eq!(judge(10, true), Verdict::TooLarge);
    }

    #[test]
    fn only_what_may_be_in_the_log_is_called_so() {
        assert_eq!(judge(6, true), Verdict::Retry { refresh: true, maybe_appended: true });
        assert_eq!(judge(5, true), Verdict::Retry { refresh: true, maybe_appended: false });
        assert_eq!(judge(20, true), Verdict::Retry { refresh: false, maybe_appended: true });
        assert_eq!(judge(7, true), Verdict::Retry { refresh: false, maybe_appended: true });
        assert_eq!(judge(-1, true), Verdict::Failed { maybe_appended: true });
        assert_eq!(judge(9_999, true), Verdict::Failed { maybe_appended: true });
        assert_eq!(judge(87, true), Verdict::Failed { maybe_appended: false });
    }
}
