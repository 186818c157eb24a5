use super::*;

#[test]
fn numbers_are_written_as_the_library_writes_them() {
    let powers = (0..20).map(|exponent| 10_u64.pow(exponent));
    let numbers = powers.flat_map(|power| [power - 1, power, power + 1, power - power / 7]);
    for number in numbers.chain(0..1_100).chain([u64::MAX]) {
        let mut out = Vec::new();
        write_number(number, &mut out);
        assert_eq!(out, number.to_string().as_bytes());
    }
}

#[test]
fn addresses_and_keys_are_written_in_full() {
    let mut out = Vec::new();
    write_address(0x0a00_09ff, &mut out);
    assert_eq!(out, b"10.0.9.255");
    assert_eq!(&hex(0x00f0_0000_0000_000a), b"00f000000000000a");
}

#[test]
fn a_referrer_takes_exactly_its_room_or_is_left_out() {
    for room in 0..1_400 {
        for words_from in [0, 7, 256, usize::MAX] {
            let mut out = Vec::new();
            write_referrer(room, words_from, &mut out);
            let expected = if room < 13 + 1 + profile::REFERRERS[0].len() { 0 } else { room };
            assert_eq!(out.len(), expected, "room {room}");
        }
    }
}
