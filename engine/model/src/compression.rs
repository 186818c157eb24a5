//! Inflating and deflating the record section of a batch: gzip, snappy, lz4 (frame), zstd.
//!
//! Not on the usual produce way: compressed batches are stored as they came and judged by their header. They are
//! inflated where a topic is compacted, to name refused records, or where `ringlog.produce.validation=records` asks,
//! and then off the shard or in small pieces, because it takes milliseconds.
//!
//! Input is hostile. Output never passes the caller's cap, and memory follows the output actually made, not what the
//! input claims: at most twice the cap, plus the codec's window ([`ZSTD_WINDOW_LOG_MAX`] at worst).

use std::fmt;
use std::io::{self, Read, Write};

use crate::batch::Codec;

/// Largest window that a zstd frame may ask for: 128 MiB, zstd's own limit for readers and that of Java's clients.
pub const ZSTD_WINDOW_LOG_MAX: u32 = 27;
/// Level of zstd that Kafka's clients use.
const ZSTD_LEVEL: i32 = 3;
/// Java's xerial framing: magic, version, lowest compatible version, then blocks of a length and raw snappy each.
const XERIAL_MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
const XERIAL_HEADER_LEN: usize = 16;
/// Raw bytes in a block of ours, as Java's clients make them.
const XERIAL_BLOCK: usize = 32 * 1024;
/// No snappy element makes more than 64 bytes out of its own three.
const SNAPPY_RATIO_MAX: usize = 64;

const LZ4_MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];

/// Why a record section could not be inflated or deflated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompressionError {
    /// It would inflate to more than the cap.
    TooLarge { max_bytes: usize },
    /// The bytes are not what the codec makes, or end too early.
    Corrupt { codec: Codec },
    /// The codec's own failure while writing: out of memory.
    Failed { codec: Codec },
}

impl fmt::Display for CompressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompressionError::TooLarge { max_bytes } => {
                write!(f, "the compressed batch inflates to more than {max_bytes} bytes")
            }
            CompressionError::Corrupt { codec } => write!(f, "the batch's {codec:?} data is damaged"),
            CompressionError::Failed { codec } => write!(f, "compressing with {codec:?} failed"),
        }
    }
}

impl std::error::Error for CompressionError {}

/// Inflates `payload` into `out`, which is emptied first and keeps its capacity. On an error `out` holds nothing of
/// use.
pub fn inflate(codec: Codec, payload: &[u8], max_bytes: usize, out: &mut Vec<u8>) -> Result<(), CompressionError> {
    out.clear();
    match codec {
        Codec::None if payload.len() > max_bytes => return Err(CompressionError::TooLarge { max_bytes }),
        Codec::None => out.extend_from_slice(payload),
        Codec::Gzip => read_capped(codec, flate2::bufread::MultiGzDecoder::new(payload), max_bytes, out)?,
        Codec::Snappy => inflate_snappy(payload, max_bytes, out)?,
        Codec::Lz4 => inflate_lz4(payload, max_bytes, out)?,
        Codec::Zstd => inflate_zstd(payload, max_bytes, out)?,
    }
    assert!(out.len() <= max_bytes, "an inflated batch never passes its cap");
    Ok(())
}

/// Appends what `reader` gives to `out`, and fails as soon as `out` would pass the cap.
fn read_capped(codec: Codec, reader: impl Read, max_bytes: usize, out: &mut Vec<u8>) -> Result<(), CompressionError> {
    let room = max_bytes.saturating_sub(out.len()) as u64;
    // One byte more than fits tells "exactly full" from "too large".
    let taken = reader.take(room.saturating_add(1)).read_to_end(out);
    match taken {
        Ok(_) if out.len() > max_bytes => Err(CompressionError::TooLarge { max_bytes }),
        Ok(_) => Ok(()),
        Err(_) => Err(CompressionError::Corrupt { codec }),
    }
}

/// Several frames behind each other are one stream, as for Java's reader. Blocks may be linked or independent. Frames
/// are measured first, because the codec takes an end between two blocks for the end of the stream.
fn inflate_lz4(payload: &[u8], max_bytes: usize, out: &mut Vec<u8>) -> Result<(), CompressionError> {
    let codec = Codec::Lz4;
    let corrupt = CompressionError::Corrupt { codec };
    let mut rest = payload;
    loop {
        let length = lz4_frame_len(rest).ok_or(corrupt)?;
        let (frame, behind) = rest.split_at_checked(length).ok_or(corrupt)?;
        read_capped(codec, lz4_flex::frame::FrameDecoder::new(frame), max_bytes, out)?;
        rest = behind;
        if rest.is_empty() {
            return Ok(());
        }
    }
}

/// Bytes of the lz4 frame at the start of `bytes`, end mark and checksum included; `None` when it has no end.
fn lz4_frame_len(bytes: &[u8]) -> Option<usize> {
    let &[m0, m1, m2, m3, flags, _, ..] = bytes else { return None };
    if [m0, m1, m2, m3] != LZ4_MAGIC {
        return None;
    }
    let when = |bit: u8, length: usize| if flags & bit != 0 { length } else { 0 };
    let (block_checksum, content_size, content_checksum, dictionary) = (0x10, 0x08, 0x04, 0x01);
    // Magic, flags, block sizes, the optional fields, the header's checksum.
    let mut at = 4 + 2 + when(content_size, 8) + when(dictionary, 4) + 1;
    loop {
        let length = bytes.get(at..)?.first_chunk::<4>()?;
        // The highest bit says that the block is stored as it is.
        let length = (u32::from_le_bytes(*length) & 0x7fff_ffff) as usize;
        at += 4;
        if length == 0 {
            return Some(at + when(content_checksum, 4));
        }
        at = at.checked_add(length + when(block_checksum, 4))?;
    }
}

fn inflate_zstd(payload: &[u8], max_bytes: usize, out: &mut Vec<u8>) -> Result<(), CompressionError> {
    let codec = Codec::Zstd;
    if payload.is_empty() {
        return Err(CompressionError::Corrupt { codec });
    }
    let failed = |_: io::Error| CompressionError::Failed { codec };
    let mut decoder = zstd::stream::read::Decoder::with_buffer(payload).map_err(failed)?;
    decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(failed)?;
    read_capped(codec, decoder, max_bytes, out)
}

fn inflate_snappy(payload: &[u8], max_bytes: usize, out: &mut Vec<u8>) -> Result<(), CompressionError> {
    if !payload.starts_with(&XERIAL_MAGIC) {
        return inflate_snappy_block(payload, max_bytes, out);
    }
    let corrupt = CompressionError::Corrupt { codec: Codec::Snappy };
    let mut rest = payload;
    while !rest.is_empty() {
        // Streams behind each other each bring their header.
        if rest.starts_with(&XERIAL_MAGIC) {
            rest = rest.get(XERIAL_HEADER_LEN..).ok_or(corrupt)?;
            continue;
        }
        let (length, behind) = rest.split_first_chunk::<4>().ok_or(corrupt)?;
        let length = usize::try_from(i32::from_be_bytes(*length)).map_err(|_| corrupt)?;
        let (block, behind) = behind.split_at_checked(length).ok_or(corrupt)?;
        inflate_snappy_block(block, max_bytes, out)?;
        rest = behind;
    }
    Ok(())
}

/// One raw snappy block. Its claimed length is checked against the cap and against what its bytes can make at all
/// before any memory is taken.
fn inflate_snappy_block(block: &[u8], max_bytes: usize, out: &mut Vec<u8>) -> Result<(), CompressionError> {
    let corrupt = CompressionError::Corrupt { codec: Codec::Snappy };
    let claimed = snap::raw::decompress_len(block).map_err(|_| corrupt)?;
    if claimed > block.len().saturating_mul(SNAPPY_RATIO_MAX) || block.is_empty() {
        return Err(corrupt);
    }
    if claimed > max_bytes.saturating_sub(out.len()) {
        return Err(CompressionError::TooLarge { max_bytes });
    }
    let start = out.len();
    out.resize(start + claimed, 0);
    let made = snap::raw::Decoder::new().decompress(block, &mut out[start..]).map_err(|_| corrupt)?;
    if made == claimed { Ok(()) } else { Err(corrupt) }
}

/// Compresses `payload` into `out`, which is emptied first: what Java's, librdkafka's and everybody's readers take.
pub fn deflate(codec: Codec, payload: &[u8], out: &mut Vec<u8>) -> Result<(), CompressionError> {
    out.clear();
    let failed = CompressionError::Failed { codec };
    match codec {
        Codec::None => out.extend_from_slice(payload),
        Codec::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(out, flate2::Compression::default());
            encoder.write_all(payload).and_then(|()| encoder.finish().map(drop)).map_err(|_| failed)?;
        }
        Codec::Snappy => deflate_snappy(payload, out).map_err(|_| failed)?,
        Codec::Lz4 => {
            // Java's reader takes independent blocks only.
            let info = lz4_flex::frame::FrameInfo::new()
                .block_mode(lz4_flex::frame::BlockMode::Independent)
                .block_size(lz4_flex::frame::BlockSize::Max64KB);
            let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, out);
            encoder.write_all(payload).map_err(|_| failed)?;
            encoder.finish().map_err(|_| failed)?;
        }
        Codec::Zstd => zstd::stream::copy_encode(payload, out, ZSTD_LEVEL).map_err(|_| failed)?,
    }
    Ok(())
}

fn deflate_snappy(payload: &[u8], out: &mut Vec<u8>) -> Result<(), snap::Error> {
    out.extend_from_slice(&XERIAL_MAGIC);
    out.extend_from_slice(&1i32.to_be_bytes());
    out.extend_from_slice(&1i32.to_be_bytes());
    let mut encoder = snap::raw::Encoder::new();
    let mut block = vec![0; snap::raw::max_compress_len(XERIAL_BLOCK)];
    for piece in payload.chunks(XERIAL_BLOCK) {
        let length = encoder.compress(piece, &mut block)?;
        // A block of at most 32 KiB compresses to less than 64 KiB.
        out.extend_from_slice(&(length as i32).to_be_bytes());
        out.extend_from_slice(&block[..length]);
    }
    Ok(())
}

#[cfg(test)]
#[path = "compression_tests.rs"]
mod tests;
