//! From the time at which a record was meant to be sent until a consumer has it: producers' offsets joined with consumers'
//! arrivals after the run, so that nothing has to be written into records while it is measured.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::drive::histogram;
use crate::reader::Arrival;
use crate::writer::Sent;

/// Latencies of the batches meant to leave within the window, by record, over all groups' consumers.
/// `arrivals`: one list for each consumer, in the order in which they came.
pub fn latencies(sent: &[Sent], arrivals: &[Vec<Arrival>], window: (Duration, Duration)) -> Histogram<u64> {
    let mut histogram = histogram();
    for consumer in arrivals {
        let mut by_partition = BTreeMap::<i32, Vec<Arrival>>::new();
        for arrival in consumer {
            by_partition.entry(arrival.partition).or_default().push(*arrival);
        }
        for batch in sent.iter().filter(|batch| (window.0..window.1).contains(&batch.meant)) {
            let Some(arrivals) = by_partition.get(&batch.partition) else { continue };
            let last = batch.base_offset + i64::from(batch.records);
            let first = arrivals.partition_point(|arrival| arrival.next_offset < last);
            if let Some(arrival) = arrivals.get(first) {
                let micros = arrival.at.saturating_sub(batch.meant).as_micros() as u64;
                histogram.saturating_record_n(micros, u64::from(batch.records));
            }
        }
    }
    histogram
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    #[test]
    fn a_batch_arrives_with_the_first_fetch_that_passes_its_end() {
        let sent = |partition, base_offset, meant| Sent { partition, base_offset, records: 10, meant: ms(meant) };
        let arrival = |partition, next_offset, at| Arrival { partition, next_offset, at: ms(at) };
        let all = [sent(0, 0, 5), sent(0, 10, 20), sent(0, 20, 30), sent(1, 0, 30), sent(0, 30, 99)];
        let consumer = vec![arrival(0, 10, 6), arrival(1, 10, 70), arrival(0, 30, 50)];
        let found = latencies(&all, &[consumer.clone(), consumer], (ms(10), ms(90)));
        // Three batches of ten records within the window, for each of two consumers: 30, 20 and 40 ms.
        assert_eq!(found.len(), 60);
        let about = |value: u64, micros: u64| value.abs_diff(micros) * 200 < micros;
        assert!(about(found.min(), 20_000) && about(found.max(), 40_000), "{} {}", found.min(), found.max());
        assert!(about(found.value_at_quantile(0.5), 30_000));
    }
}
