//! Faults of the disk, dealt by tests on their own shard: a matching operation fails with an error of the system instead
//! of being tried. Only with the feature `faults`; without it the question costs nothing.

use std::path::Path;

use crate::error::IoError;

/// What of a [`crate::DirectFile`] may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Read,
    Write,
    Sync,
    Reserve,
}

/// Fails the operations on paths that contain `path_part`, after `passes` of them went well, `times` times.
#[cfg(feature = "faults")]
#[derive(Clone, Debug)]
pub struct Fault {
    pub operation: Operation,
    pub path_part: String,
    pub passes: usize,
    pub times: usize,
    /// As in errno.h.
    pub errno: i32,
}

#[cfg(feature = "faults")]
thread_local! {
    static FAULTS: std::cell::RefCell<Vec<Fault>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Adds a fault for this shard.
#[cfg(feature = "faults")]
pub fn inject(fault: Fault) {
    FAULTS.with_borrow_mut(|faults| faults.push(fault));
}

/// Takes all faults back; gives how many times they could still have struck.
#[cfg(feature = "faults")]
pub fn clear() -> usize {
    FAULTS.take().iter().map(|fault| fault.times).sum()
}

#[cfg(feature = "faults")]
pub(crate) fn check(operation: Operation, what: &'static str, path: &Path) -> Result<(), IoError> {
    FAULTS.with_borrow_mut(|faults| {
        let text = path.to_string_lossy();
        let matching =
            |fault: &&mut Fault| fault.operation == operation && fault.times > 0 && text.contains(&fault.path_part);
        let Some(fault) = faults.iter_mut().find(matching) else { return Ok(()) };
        if fault.passes > 0 {
            fault.passes -= 1;
            return Ok(());
        }
        fault.times -= 1;
        Err(IoError::new(what, path, std::io::Error::from_raw_os_error(fault.errno)))
    })
}

#[cfg(not(feature = "faults"))]
#[inline]
pub(crate) fn check(_operation: Operation, _what: &'static str, _path: &Path) -> Result<(), IoError> {
    Ok(())
}
