//! Topics as requests carry them, and the walk over "topics, each with partitions" that Produce and
//! Fetch share. The walk holds a reader and a few counters, so it is cheap to clone and allocates
//! nothing.

use crate::{Reader, WireError};

/// A topic as a request names it: by name in older versions, by id in newer ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TopicRef<'a> {
    Name(&'a str),
    Id([u8; 16]),
}

/// How one version lays out topics and partitions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TopicLayout {
    pub flexible: bool,
    /// Topics are named by id.
    pub by_id: bool,
    /// The least bytes of one partition.
    pub least_partition: usize,
    /// Partitions are structs, which end with tags in flexible versions; else bare numbers.
    pub partition_has_tags: bool,
}

impl TopicLayout {
    /// The least bytes of a topic: name or id, count of partitions, tags.
    fn least_topic(self) -> usize {
        match (self.flexible, self.by_id) {
            (false, _) => 2 + 4,
            (true, false) => 1 + 1 + 1,
            (true, true) => 16 + 1 + 1,
        }
    }
}

/// The place of a walk.
#[derive(Debug, Clone)]
pub(crate) struct TopicCursor<'a> {
    pub reader: Reader<'a>,
    pub layout: TopicLayout,
    /// The topic in which the cursor stands.
    pub topic: TopicRef<'a>,
    topic_count: usize,
    topics_entered: usize,
    partitions_left: usize,
    /// A topic was entered and its end is not read yet.
    inside_topic: bool,
}

impl<'a> TopicCursor<'a> {
    /// Reads the count of topics.
    pub fn open(mut reader: Reader<'a>, layout: TopicLayout) -> Result<Self, WireError> {
        let topic_count = reader.count(layout.flexible, layout.least_topic())?;
        Ok(Self { topic_count, ..Self::empty(reader, layout) })
    }

    /// A walk over nothing.
    pub fn empty(reader: Reader<'a>, layout: TopicLayout) -> Self {
        Self {
            reader,
            layout,
            topic: TopicRef::Name(""),
            topic_count: 0,
            topics_entered: 0,
            partitions_left: 0,
            inside_topic: false,
        }
    }

    pub fn topic_count(&self) -> usize {
        self.topic_count
    }

    /// Which topic of the request the cursor stands in, counted from 0.
    pub fn topic_index(&self) -> usize {
        self.topics_entered - 1
    }

    /// Stands at the next partition; false when there is none left.
    pub fn enter_partition(&mut self) -> Result<bool, WireError> {
        while self.partitions_left == 0 {
            if std::mem::take(&mut self.inside_topic) && self.layout.flexible {
                self.reader.skip_tagged_fields()?;
            }
            if self.topics_entered == self.topic_count {
                return Ok(false);
            }
            self.enter_topic()?;
        }
        Ok(true)
    }

    fn enter_topic(&mut self) -> Result<(), WireError> {
        self.topics_entered += 1;
        self.inside_topic = true;
        self.topic = match self.layout.by_id {
            true => TopicRef::Id(self.reader.uuid()?),
            false => TopicRef::Name(self.reader.string(self.layout.flexible)?),
        };
        self.partitions_left = self.reader.count(self.layout.flexible, self.layout.least_partition)?;
        Ok(())
    }

    /// Leaves a partition whose tags, if it has any, are of no interest.
    pub fn leave_partition(&mut self) -> Result<(), WireError> {
        self.leave_partition_with(|_, _| Ok(()))
    }

    pub fn leave_partition_with(
        &mut self,
        known: impl FnMut(u32, &mut Reader<'a>) -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        self.partitions_left -= 1;
        if self.layout.flexible && self.layout.partition_has_tags {
            self.reader.tagged_fields(known)?;
        }
        Ok(())
    }

    /// Makes the walk end here: nothing can be made of the bytes behind an error.
    pub fn stop(&mut self) {
        (self.topics_entered, self.partitions_left, self.inside_topic) = (self.topic_count, 0, false);
    }

    /// Turns one step's outcome into an iterator's item.
    pub fn item<T>(&mut self, step: Result<Option<T>, WireError>) -> Option<Result<T, WireError>> {
        if step.is_err() {
            self.stop();
        }
        step.transpose()
    }
}
