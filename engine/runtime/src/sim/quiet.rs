//! A broker tells its operator what goes wrong, and in a simulation all of it goes wrong all the time.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// While it lives, what this process writes to its standard error goes nowhere.
#[derive(Debug)]
pub struct Quiet {
    before: OwnedFd,
}

impl Quiet {
    pub fn begin() -> io::Result<Quiet> {
        let nowhere = File::options().write(true).open("/dev/null")?;
        // SAFETY: descriptor 2 is standard error, and the duplicate is owned by nobody else.
        let before = unsafe {
            let before = libc::dup(2);
            if before < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(before)
        };
        // SAFETY: both descriptors are open.
        if unsafe { libc::dup2(nowhere.as_raw_fd(), 2) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Quiet { before })
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // SAFETY: both descriptors are open.
        unsafe { libc::dup2(self.before.as_raw_fd(), 2) };
    }
}
