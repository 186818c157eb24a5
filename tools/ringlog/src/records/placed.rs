//! Where a position lies in each partition, as the cluster has it now.

use client::admin::{Admin, OffsetSpec};
use client::consumer::Consumer;
use client::{ClientError, TopicPartition};

use super::position::Position;
use crate::cli::Failure;

/// A position in one partition, within what is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    pub partition: TopicPartition,
    pub offset: i64,
    /// Where the partition ended when it was asked.
    pub end: i64,
}

/// Places `to` in each of `partitions`. With `read_committed` they end where the first open transaction begins.
pub async fn placed(
    admin: &Admin,
    partitions: &[TopicPartition],
    to: Position,
    read_committed: bool,
) -> Result<Vec<Placed>, Failure> {
    let listed = async |spec: OffsetSpec| -> Result<Vec<i64>, Failure> {
        let wanted: Vec<_> = partitions.iter().map(|partition| (partition.clone(), spec)).collect();
        let mut offsets = Vec::with_capacity(wanted.len());
        for (_, result) in admin.list_offsets(&wanted, read_committed).await? {
            offsets.push(result?.offset);
        }
        Ok(offsets)
    };
    let (starts, ends) = (listed(OffsetSpec::Earliest).await?, listed(OffsetSpec::Latest).await?);
    let timed = match to {
        Position::Time(ms) => listed(OffsetSpec::Timestamp(ms)).await?,
        _ => vec![-1; partitions.len()],
    };
    let one = |(i, partition): (usize, &TopicPartition)| Placed {
        partition: partition.clone(),
        offset: place(to, starts[i], ends[i], timed[i]),
        end: ends[i],
    };
    Ok(partitions.iter().enumerate().map(one).collect())
}

/// Assigns the partitions to `consumer` and begins where they were placed.
pub fn begin_at(consumer: &Consumer, placed: &[Placed]) -> Result<(), ClientError> {
    consumer.assign(placed.iter().map(|one| one.partition.clone()).collect())?;
    placed.iter().try_for_each(|one| consumer.seek(&one.partition, one.offset))
}

/// `timed`: the first offset at or after the time, -1 if there is none.
fn place(to: Position, start: i64, end: i64, timed: i64) -> i64 {
    let offset = match to {
        Position::Earliest => start,
        Position::Latest => end,
        Position::Offset(offset) => offset,
        Position::FromEnd(back) => end.saturating_sub(back),
        Position::Time(_) if timed < 0 => end,
        Position::Time(_) => timed,
    };
    offset.clamp(start, end.max(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_stay_within_what_is_there() {
        assert_eq!(place(Position::Earliest, 5, 9, -1), 5);
        assert_eq!(place(Position::Latest, 5, 9, -1), 9);
        assert_eq!(place(Position::Offset(2), 5, 9, -1), 5);
        assert_eq!(place(Position::Offset(100), 5, 9, -1), 9);
        assert_eq!(place(Position::FromEnd(2), 5, 9, -1), 7);
        assert_eq!(place(Position::FromEnd(i64::MAX), 5, 9, -1), 5);
        assert_eq!(place(Position::Time(1), 5, 9, 6), 6);
        assert_eq!(place(Position::Time(1), 5, 9, -1), 9);
    }
}
