//! Variable-length integers as in Kafka's records (zig-zag) and in compact protocol types (unsigned).
//!
//! On the produce way: one call per field of each record walked. No allocation, no panic on any input.

/// Longest encodings, in bytes.
pub const MAX_VARINT_LEN: usize = 5;
pub const MAX_VARLONG_LEN: usize = 10;

/// Reads an unsigned 32-bit varint at `*pos` and moves `*pos` behind it. `None` when it is cut or longer than 5 bytes
/// or more than 32 bits.
#[inline]
pub fn read_unsigned(bytes: &[u8], pos: &mut usize) -> Option<u32> {
    let mut value: u32 = 0;
    for i in 0..MAX_VARINT_LEN {
        let b = *bytes.get(*pos + i)?;
        if i == MAX_VARINT_LEN - 1 && b > 0x0f {
            return None;
        }
        value |= u32::from(b & 0x7f) << (7 * i);
        if b & 0x80 == 0 {
            *pos += i + 1;
            return Some(value);
        }
    }
    None
}

/// Reads a zig-zag 32-bit varint.
#[inline]
pub fn read_varint(bytes: &[u8], pos: &mut usize) -> Option<i32> {
    let v = read_unsigned(bytes, pos)?;
    Some((v >> 1) as i32 ^ -((v & 1) as i32))
}

/// Reads a zig-zag 64-bit varint.
#[inline]
pub fn read_varlong(bytes: &[u8], pos: &mut usize) -> Option<i64> {
    let mut value: u64 = 0;
    for i in 0..MAX_VARLONG_LEN {
        let b = *bytes.get(*pos + i)?;
        if i == MAX_VARLONG_LEN - 1 && b > 0x01 {
            return None;
        }
        value |= u64::from(b & 0x7f) << (7 * i);
        if b & 0x80 == 0 {
            *pos += i + 1;
            return Some((value >> 1) as i64 ^ -((value & 1) as i64));
        }
    }
    None
}

pub fn write_unsigned(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub fn write_varint(out: &mut Vec<u8>, value: i32) {
    write_unsigned(out, ((value << 1) ^ (value >> 31)) as u32);
}

pub fn write_varlong(out: &mut Vec<u8>, value: i64) {
    let mut v = ((value << 1) ^ (value >> 63)) as u64;
    while v >= 0x80 {
        out.push(v as u8 | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_at_every_width() {
        for shift in 0..64 {
            for value in [1i64 << shift, -(1i64 << (shift.min(62))), (1i64 << shift).wrapping_sub(1)] {
                let mut out = Vec::new();
                write_varlong(&mut out, value);
                let mut pos = 0;
                assert_eq!(read_varlong(&out, &mut pos), Some(value));
                assert_eq!(pos, out.len());
                for cut in 0..out.len() {
                    assert_eq!(read_varlong(&out[..cut], &mut 0), None);
                }
                let small = value as i32;
                out.clear();
                write_varint(&mut out, small);
                pos = 0;
                assert_eq!(read_varint(&out, &mut pos), Some(small));
                assert_eq!(pos, out.len());
            }
        }
    }

    #[test]
    fn too_long_is_refused() {
        assert_eq!(read_unsigned(&[0xff; 6], &mut 0), None);
        assert_eq!(read_unsigned(&[0xff, 0xff, 0xff, 0xff, 0x1f], &mut 0), None);
        assert_eq!(read_varlong(&[0xff; 11], &mut 0), None);
        assert_eq!(read_unsigned(&[0xff, 0xff, 0xff, 0xff, 0x0f], &mut 0), Some(u32::MAX));
    }
}
