use wire::generated::describe_topic_partitions::{RequestCursor, TopicRequest};

use super::super::admin::test_support::{cluster, view, with_topic};
use super::*;

/// Topics `ta` (3 partitions), `tb` (2) and `tc` (1).
fn three() -> View {
    let image = [("ta", 3), ("tb", 2), ("tc", 1)];
    view(image.into_iter().fold(cluster(1), |image, (name, count)| with_topic(&image, name, count, &[])))
}

type Shown = (Vec<(String, Vec<i32>)>, Option<(String, i32)>);

fn page(names: &[&str], limit: usize, first: Option<(&str, i32)>) -> Shown {
    let view = three();
    let mut page = Page { first, ..Page::new(limit) };
    names.iter().all(|name| page.put(name, find(&view, name)));
    let topics = page.topics.into_iter().map(|topic| {
        let indexes = topic.partitions.iter().map(|p| p.partition_index).collect();
        (topic.name.unwrap_or_default().into_owned(), indexes)
    });
    (topics.collect(), page.next.map(|next| (next.topic_name.into_owned(), next.partition_index)))
}

fn shown(topics: &[(&str, &[i32])], next: Option<(&str, i32)>) -> Shown {
    let topics = topics.iter().map(|(name, indexes)| (name.to_string(), indexes.to_vec())).collect();
    (topics, next.map(|(name, index)| (name.to_string(), index)))
}

const ALL: [&str; 3] = ["ta", "tb", "tc"];

#[test]
fn a_page_ends_where_it_is_full() {
    assert_eq!(page(&ALL, 2, None), shown(&[("ta", &[0, 1])], Some(("ta", 2))));
    assert_eq!(page(&ALL, 3, None), shown(&[("ta", &[0, 1, 2])], Some(("tb", 0))));
    assert_eq!(page(&ALL, 4, None), shown(&[("ta", &[0, 1, 2]), ("tb", &[0])], Some(("tb", 1))));
    assert_eq!(page(&ALL, 6, None), shown(&[("ta", &[0, 1, 2]), ("tb", &[0, 1]), ("tc", &[0])], None));
}

#[test]
fn a_page_begins_at_its_cursor() {
    assert_eq!(page(&ALL, 2, Some(("ta", 1))), shown(&[("ta", &[1, 2])], Some(("tb", 0))));
    let rest = shown(&[("ta", &[]), ("tb", &[0, 1]), ("tc", &[0])], None);
    assert_eq!(page(&ALL, 9, Some(("ta", 3))), rest);
    assert_eq!(page(&ALL, 9, Some(("ta", i32::MAX))), rest);
}

#[test]
fn pages_together_are_everything_once() {
    for limit in 1..7 {
        let (mut seen, mut cursor) = (Vec::new(), Some(("ta".to_string(), 0)));
        while let Some((topic, index)) = cursor {
            let from: Vec<&str> = ALL.into_iter().filter(|name| *name >= topic.as_str()).collect();
            let (topics, next) = page(&from, limit, Some((&topic, index)));
            seen.extend(topics.into_iter().flat_map(|(name, p)| p.into_iter().map(move |p| (name.clone(), p))));
            cursor = next;
        }
        let all = [("ta", 0), ("ta", 1), ("ta", 2), ("tb", 0), ("tb", 1), ("tc", 0)];
        assert_eq!(seen, all.map(|(name, index)| (name.to_string(), index)), "{limit}");
    }
}

#[test]
fn unknown_topics_take_no_room() {
    let names = ["aa", "ab", "ta"];
    let expected = shown(&[("aa", &[]), ("ab", &[]), ("ta", &[0, 1])], Some(("ta", 2)));
    assert_eq!(page(&names, 2, None), expected);
    let mut one = Page::new(1);
    one.put("a b", None);
    one.put("aa", None);
    let codes: Vec<_> = one.topics.iter().map(|topic| topic.error_code).collect();
    assert_eq!(codes, [ErrorCode::InvalidTopicException.code(), ErrorCode::UnknownTopicOrPartition.code()]);
}

#[test]
fn a_cursor_belongs_to_the_list() {
    let check = |names: &[&'static str], cursor: (&'static str, i32)| {
        let topics = names.iter().map(|name| TopicRequest { name }).collect();
        let cursor = Some(RequestCursor { topic_name: cursor.0, partition_index: cursor.1 });
        check_cursor(&DescribeTopicPartitionsRequest { topics, cursor, ..Default::default() })
    };
    assert_eq!(check(&ALL, ("tb", 1)), Ok(()));
    assert_eq!(check(&[], ("gone", 0)), Ok(()));
    assert_eq!(check(&ALL, ("taa", 0)), Err(ErrorCode::InvalidRequest));
    assert_eq!(check(&ALL, ("ta", -1)), Err(ErrorCode::InvalidRequest));
    let none = DescribeTopicPartitionsRequest::default();
    assert_eq!(check_cursor(&none), Ok(()));
}
