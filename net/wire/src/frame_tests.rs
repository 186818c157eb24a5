use super::*;

const LIMIT: usize = 100;

#[test]
fn frames_come_whole_however_the_bytes_arrive() {
    let stream = [&b"\0\0\0\x03abc\0\0\0\x01x"[..], b"\0\0"].concat();
    for step in 1..=stream.len() {
        let (mut buffered, mut frames) = (BytesMut::new(), Vec::new());
        for piece in stream.chunks(step) {
            buffered.extend_from_slice(piece);
            while let Ok(Split::Frame(frame)) = split_frame(&mut buffered, LIMIT) {
                frames.push(frame);
            }
        }
        assert_eq!(frames, [&b"abc"[..], b"x"], "in steps of {step}");
        assert_eq!(split_frame(&mut buffered, LIMIT), Ok(Split::Need(2)));
    }
}

#[test]
fn what_is_needed_is_the_prefix_first_and_then_the_rest() {
    for (bytes, need) in [(&b""[..], 4), (b"\0\0\0", 1), (b"\0\0\0\x05", 5), (b"\0\0\0\x05abc", 2)] {
        assert_eq!(split_frame(&mut BytesMut::from(bytes), LIMIT), Ok(Split::Need(need)));
    }
}

#[test]
fn sizes_are_judged_from_the_prefix_alone() {
    let outcome = |size: i32| split_frame(&mut BytesMut::from(&size.to_be_bytes()[..]), LIMIT);
    assert_eq!(outcome(0), Err(WireError::FrameSizeInvalid { size: 0 }));
    assert_eq!(outcome(-1), Err(WireError::FrameSizeInvalid { size: -1 }));
    assert_eq!(outcome(i32::MIN), Err(WireError::FrameSizeInvalid { size: i32::MIN }));
    assert_eq!(outcome(101), Err(WireError::FrameTooLarge { size: 101, limit: LIMIT }));
    assert_eq!(outcome(i32::MAX), Err(WireError::FrameTooLarge { size: i32::MAX as usize, limit: LIMIT }));
    assert_eq!(outcome(100), Ok(Split::Need(100)));
}

#[test]
fn a_stranger_gets_the_smaller_limit() {
    let limits = FrameLimits { before_authentication: 10, after_authentication: LIMIT };
    assert_eq!((limits.limit(false), limits.limit(true)), (10, LIMIT));
}
