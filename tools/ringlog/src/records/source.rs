//! Bytes of files or of stdin, read by a thread of their own: a pipe may be silent for hours, and the shard's pool thread
//! is needed for connections meanwhile.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use bytes::Bytes;

/// Bytes of one read.
const READ_BYTES: usize = 256 << 10;
/// Reads that wait to be used.
const READS_AHEAD: usize = 4;

/// What was read, in order.
#[derive(Debug)]
pub struct Source {
    reads: flume::Receiver<Result<Bytes, String>>,
}

impl Source {
    /// Reads `files` one after the other; none: stdin. `-` among them is stdin, too.
    pub fn start(files: Vec<PathBuf>) -> io::Result<Source> {
        let (sender, reads) = flume::bounded(READS_AHEAD);
        std::thread::Builder::new().name("ringlog-input".into()).spawn(move || {
            let stdin = PathBuf::from("-");
            let files = if files.is_empty() { vec![stdin.clone()] } else { files };
            for file in files {
                let read = if file == stdin {
                    copy(&mut io::stdin().lock(), &sender)
                } else {
                    File::open(&file).and_then(|mut opened| copy(&mut opened, &sender))
                };
                if let Err(error) = read {
                    let _ = sender.send(Err(format!("cannot read {}: {error}", file.display())));
                    return;
                }
            }
        })?;
        Ok(Source { reads })
    }

    /// The next bytes; `None` at the end.
    pub async fn next(&self) -> Option<Result<Bytes, String>> {
        self.reads.recv_async().await.ok()
    }
}

/// Ends early when nobody wants more.
fn copy(from: &mut impl Read, to: &flume::Sender<Result<Bytes, String>>) -> io::Result<()> {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let count = match from.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            result => result?,
        };
        if count == 0 || to.send(Ok(Bytes::copy_from_slice(&buffer[..count]))).is_err() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn all(files: Vec<PathBuf>) -> Vec<Result<Bytes, String>> {
        Source::start(files).unwrap().reads.iter().collect()
    }

    #[test]
    fn files_come_one_behind_the_other() {
        let dir = runtime::testing::TempDir::new("source");
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        std::fs::write(&one, "abc").unwrap();
        std::fs::write(&two, "def").unwrap();
        let joined: Vec<u8> = all(vec![one, two]).into_iter().flat_map(|read| read.unwrap().to_vec()).collect();
        assert_eq!(joined, b"abcdef");
    }

    #[test]
    fn a_missing_file_is_named() {
        let reads = all(vec!["/no/such/file".into()]);
        assert!(matches!(&reads[..], [Err(text)] if text.contains("/no/such/file")), "{reads:?}");
    }
}
