//! What a partition says of itself for metrics. Looks without an await and without an allocation; asked now and then.

use super::PartitionLog;

impl PartitionLog {
    /// Whether a range of it is refused, as far as that was found since the start.
    pub fn is_damaged(&self) -> bool {
        let log_start = self.log_start_offset();
        self.damage.borrow().iter().any(|range| range.to_offset > log_start)
    }

    /// Whether appends are refused because the disk or the quota is full.
    pub fn is_refused_space(&self) -> bool {
        self.full.get()
    }

    /// Bytes that are durable in the journal and not yet in a segment's file.
    pub fn journal_debt_bytes(&self) -> u64 {
        if self.held.borrow().is_empty() {
            return 0;
        }
        let state = self.state.borrow();
        state.open_segments().map(|segment| segment.kept.fill.size.saturating_sub(segment.durable)).sum()
    }
}
