#![allow(clippy::unwrap_used)]
use model::builder::BatchBuilder;
use runtime::testing::TempDir;

use super::*;

fn batch(base: i64, count: i64) -> Vec<u8> {
    let mut builder = BatchBuilder::new().base_offset(Offset(base));
    for i in 0..count {
        builder.push(1000 + base + i, Some(b"key"), Some(b"a value that is long enough to flip bits in"), &[]);
    }
    builder.finish()
}

/// What a walk over these bytes finds, in short words.
fn walked(bytes: &[u8]) -> Vec<String> {
    let dir = TempDir::new("walk");
    let path = dir.path().join("x.log");
    std::fs::write(&path, bytes).unwrap();
    let mut walk = Walk::open(&path, Offset::ZERO, 0).unwrap();
    let mut out = Vec::new();
    loop {
        match walk.next().unwrap() {
            Found::Batch { position, header, problems } => {
                let state = if problems.is_empty() { "ok".to_owned() } else { problems.join(", ") };
                out.push(format!("{position}: {}..{} {state}", header.base_offset, header.last_offset()));
            }
            Found::Damage { position, until, why } => out.push(format!("{position}..{until}: {why}")),
            Found::Preallocated { position, bytes } => out.push(format!("{position}: {bytes} zeros")),
            Found::End => return out,
        }
    }
}

fn three() -> (Vec<u8>, usize) {
    let parts = [batch(0, 2), batch(2, 2), batch(4, 2)];
    let size = parts[0].len();
    assert!(parts.iter().all(|p| p.len() == size));
    (parts.concat(), size)
}

#[test]
fn sound_batches_and_reserved_space() {
    let (mut bytes, size) = three();
    assert_eq!(walked(&bytes), ["0: 0..1 ok".to_owned(), format!("{size}: 2..3 ok"), format!("{}: 4..5 ok", 2 * size)]);
    bytes.resize(3 * size + 10_000, 0);
    assert_eq!(walked(&bytes)[3], format!("{}: 10000 zeros", 3 * size));
    assert_eq!(walked(&[]), Vec::<String>::new());
    assert_eq!(walked(&[0; 5]), ["0: 5 zeros"]);
}

#[test]
fn a_flipped_bit_in_the_records_spoils_one_batch_only() {
    let (mut bytes, size) = three();
    bytes[size + 80] ^= 1;
    let found = walked(&bytes);
    assert_eq!(found.len(), 3);
    assert!(found[1].contains("its CRC is"), "{found:?}");
    assert!(found[2].ends_with("4..5 ok"), "{found:?}");
}

#[test]
fn a_flipped_length_is_searched_past() {
    for byte in [8, 10, 11, 16] {
        let (mut bytes, size) = three();
        bytes[size + byte] ^= 0x40;
        let found = walked(&bytes);
        assert!(found[1].starts_with(&format!("{size}..{}: ", 2 * size)), "byte {byte}: {found:?}");
        assert!(found[2].ends_with("4..5 ok"), "byte {byte}: {found:?}");
    }
}

#[test]
fn a_cut_tail_is_damage_to_the_end() {
    let (bytes, size) = three();
    for cut in [1, size - 62, size - 30] {
        let found = walked(&bytes[..bytes.len() - cut]);
        let tail = found.last().unwrap();
        assert!(tail.starts_with(&format!("{}..{}: ", 2 * size, 3 * size - cut)), "{found:?}");
        assert!(tail.contains("cut after") || tail.contains("too few"), "{found:?}");
    }
}

#[test]
fn garbage_between_and_behind_is_told() {
    let (bytes, size) = three();
    let mut holed = bytes[..size].to_vec();
    holed.extend_from_slice(&[0xAA; 333]);
    holed.extend_from_slice(&bytes[size..]);
    let found = walked(&holed);
    assert_eq!(found.len(), 4);
    assert!(found[1].starts_with(&format!("{size}..{}: ", size + 333)), "{found:?}");
    // Zeros in the middle: what follows them is still found, with the zeros that begin its offset.
    let mut zeroed = bytes[..size].to_vec();
    zeroed.resize(3 * size, 0);
    zeroed.extend_from_slice(&bytes[2 * size..]);
    let found = walked(&zeroed);
    assert!(found[1].starts_with(&format!("{size}..{}: zeros up to", 3 * size)), "{found:?}");
    assert!(found[2].ends_with("4..5 ok"), "{found:?}");
}

#[test]
fn batches_out_of_order_are_told() {
    let bytes = [batch(4, 2), batch(0, 2), batch(6, 1)].concat();
    let found = walked(&bytes);
    assert!(found[1].ends_with("offset 0 comes after 5"), "{found:?}");
    assert!(found[2].ends_with("6..6 ok"), "{found:?}");
}

#[test]
fn any_bytes_end() {
    let (bytes, _) = three();
    for i in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[i] ^= 0x81;
        let found = walked(&flipped);
        assert!(!found.is_empty() && found.len() <= 4, "byte {i}: {found:?}");
    }
}

#[test]
fn a_batch_that_is_being_written_is_waited_for() {
    let (bytes, size) = three();
    let dir = TempDir::new("walk");
    let path = dir.path().join("x.log");
    std::fs::write(&path, &bytes[..size + 100]).unwrap();
    let mut walk = Walk::open(&path, Offset::ZERO, PATIENT).unwrap();
    assert!(matches!(walk.next().unwrap(), Found::Batch { .. }));
    let writer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        std::fs::write(&path, &bytes).unwrap();
    });
    for base in [2, 4] {
        let found = walk.next().unwrap();
        let expected = matches!(&found, Found::Batch { header, problems, .. } if header.base_offset.0 == base && problems.is_empty());
        assert!(expected, "{found:?}");
    }
    assert_eq!(walk.next().unwrap(), Found::End);
    writer.join().unwrap();
}

#[test]
fn hostile_headers_do_not_make_the_walk_endless() {
    // Each 64 bytes a header that fits and claims nearly all of what follows.
    let total = 8 << 20;
    let mut bytes = Vec::with_capacity(total);
    while bytes.len() < total {
        let mut head = batch(0, 1);
        head.truncate(64);
        let claimed = (total - bytes.len()).saturating_sub(112).max(49) as i32;
        head[8..12].copy_from_slice(&claimed.to_be_bytes());
        bytes.extend_from_slice(&head);
    }
    let dir = TempDir::new("walk-hostile");
    let path = dir.path().join("x.log");
    std::fs::write(&path, &bytes).unwrap();
    let mut walk = Walk::open(&path, Offset::ZERO, 0).unwrap();
    let mut places = 0;
    let mut last = String::new();
    loop {
        match walk.next().unwrap() {
            Found::Damage { why, .. } => last = why,
            Found::End => break,
            _ => {}
        }
        places += 1;
        assert!(places < 1000);
    }
    assert!(last.contains("the rest is not looked at"), "{last}");
}

#[test]
fn missing_offsets_are_damage_unless_the_topic_is_compacted() {
    let bytes = [batch(0, 2), batch(5, 2), batch(7, 1)].concat();
    let dir = TempDir::new("walk-gaps");
    let path = dir.path().join("x.log");
    std::fs::write(&path, &bytes).unwrap();
    let problems = |mut walk: Walk| {
        let mut all = Vec::new();
        while let Found::Batch { problems, .. } = walk.next().unwrap() {
            all.push(problems.len());
        }
        all
    };
    assert_eq!(problems(Walk::open(&path, Offset::ZERO, 0).unwrap()), [0, 0, 0]);
    // Told once: what stands behind the gap is where it has to be.
    assert_eq!(problems(Walk::open(&path, Offset::ZERO, 0).unwrap().without_gaps()), [0, 1, 0]);
}
