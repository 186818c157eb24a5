//! Whether the metadata folder was written by a newer Ringlog: asked before anything in the data folder is changed.

use std::path::Path;

use crate::driver::read_folder;
use crate::error::MetadataError;
use crate::stored::decode_command;

/// The error is [`MetadataError::NewerVersion`], of the journal, a command in it or the snapshot. Damage is not judged
/// here but by the start that follows.
pub async fn refuse_newer(folder: &Path) -> Result<(), MetadataError> {
    let recovered = match read_folder(folder).await {
        Ok(recovered) => recovered,
        Err(newer @ MetadataError::NewerVersion { .. }) => return Err(newer),
        Err(_) => return Ok(()),
    };
    // raft's own entries are empty.
    let entries = recovered.journal.iter().flat_map(|journal| &journal.entries).filter(|entry| !entry.data.is_empty());
    for entry in entries {
        if let Err(newer @ MetadataError::NewerVersion { .. }) = decode_command(&entry.data, entry.index) {
            return Err(newer);
        }
    }
    Ok(())
}
