//! Rounds in a ring's file, found as a start finds them. Holds one round at a time; zeros cost a small read for each block.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use log::journal::format::{self, Owner};
use log::journal::look::{self, Block, HEAD_BYTES};
use log::limits::{BLOCK, RING_FILE_MAX};

use crate::log_dump::segment::Fail;

/// Calls `seen` with every block of a ring's file that begins something, going on as a start does that looks for rounds of
/// `owner`.
pub fn each_block(
    path: &Path,
    owner: Option<Owner>,
    seen: &mut dyn FnMut(u64, Block) -> Result<(), Fail>,
) -> Result<(), Fail> {
    let failed = |error: std::io::Error| Fail::Sentence(format!("{} cannot be read: {error}", path.display()));
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    let len = file.metadata().map_err(failed)?.len().min(RING_FILE_MAX);
    let mut position = 0;
    while position < len {
        let block = block_at(&file, position, len).map_err(failed)?;
        let step = match &block {
            Block::Round { owner: of, found } if Some(*of) == owner || found.payload_ok => found.len as u64,
            _ => BLOCK,
        };
        if block != Block::Nothing {
            seen(position, block)?;
        }
        position += step.max(BLOCK);
    }
    Ok(())
}

/// First the header alone, then the list, then the bytes, each only if what came before is a round's.
fn block_at(file: &File, position: u64, len: u64) -> std::io::Result<Block> {
    let mut bytes = read_at(file, position, (format::HEADER_LEN as u64).min(len - position))?;
    if format::claims(&bytes).is_none() {
        return Ok(Block::Nothing);
    }
    bytes = read_at(file, position, (HEAD_BYTES as u64).min(len - position))?;
    match look::block(&bytes) {
        Block::Round { found, .. } if !found.payload_ok && found.len > bytes.len() => {
            bytes = read_at(file, position, (found.len as u64).min(len - position))?;
            Ok(look::block(&bytes))
        }
        block => Ok(block),
    }
}

fn read_at(file: &File, position: u64, len: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; len as usize];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], position + filled as u64)? {
            0 => break,
            read => filled += read,
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}
