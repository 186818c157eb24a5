//! Stdout for commands that run on a shard. A reader may pause for hours (a pager, a stopped terminal), so a thread of its own
//! writes, and the shard goes on with heartbeats meanwhile.

use std::io::{self, Write};

/// Writes that wait for the thread: the caller waits for each, so there is never more than one.
const WAITING: usize = 1;

#[derive(Debug)]
pub struct Stdout {
    writes: flume::Sender<Vec<u8>>,
    done: flume::Receiver<(Vec<u8>, io::Result<()>)>,
}

impl Stdout {
    pub fn start() -> io::Result<Stdout> {
        let (writes, waiting) = flume::bounded::<Vec<u8>>(WAITING);
        let (results, done) = flume::bounded(WAITING);
        std::thread::Builder::new().name("ringlog-output".into()).spawn(move || {
            for mut bytes in waiting {
                let mut stdout = io::stdout().lock();
                let result = stdout.write_all(&bytes).and_then(|()| stdout.flush());
                drop(stdout);
                bytes.clear();
                if results.send((bytes, result)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Stdout { writes, done })
    }

    /// Gives `bytes` to the thread and leaves an empty buffer. Then [`Stdout::written`] has to be waited for.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        // The thread lives as long as this value, and the last write was waited for: there is room.
        let _ = self.writes.try_send(std::mem::take(bytes));
    }

    /// Waits until it is written, and gives the buffer back. `Ok(false)`: nobody reads any more.
    pub async fn written(&self, buffer: &mut Vec<u8>) -> io::Result<bool> {
        let Ok((bytes, result)) = self.done.recv_async().await else { return Ok(false) };
        *buffer = bytes;
        match result {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            Err(error) => Err(error),
        }
    }
}
