//! # `bench bare`: what a program gets that does nothing but what a durable broker must
//!
//! A contestant of `bench compare` (`--peer bare`): one thread on io_uring that takes the same frames from the same load generator.
//! It walks a Produce to its batches, checks each batch's CRC-32C, copies it once into aligned memory with its offset patched in, writes
//! everything that is pending with one direct write and one fdatasync, and then answers what that covered, while it goes on
//! receiving. Consumers at the tail are served from that memory without a copy.
//!
//! It is an honest lower bound and no broker: no groups, no transactions, no replication, no metadata log, no segments, no index, no cache of
//! batches, no limits for clients, no recovery, no reading from disk. Where Ringlog is near it, there is little left to win on this
//! machine; where it is not, the difference is what a broker's promises cost, or ours to explain.
//!
//! From the outside in: [`server`] is the loop; [`intake`] takes in what arrives; [`connection`], [`walk`], [`produce_answer`], [`control`], [`fetch`] are what goes over the
//! wire; [`topics`] is where partitions end; [`memory`], [`rounds`], [`log_file`] are the log; [`out`] is what leaves; [`ring`] is the
//! kernel; [`limits`] are the bounds.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

use clap::Args;

use log_file::{Layout, LogFile};
use server::Server;

mod connection;
mod control;
mod fetch;
mod intake;
pub mod limits;
mod log_file;
mod memory;
mod out;
mod produce_answer;
mod ring;
mod rounds;
mod server;
mod topics;
mod walk;

/// The file's name in the data folder.
pub const FILE_NAME: &str = "bare.log";

/// Flags of `bench bare`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Where it listens.
    #[arg(long, default_value = "127.0.0.1:9092")]
    listen: SocketAddr,
    /// Folder of its one file, which is emptied first.
    #[arg(long)]
    data_dir: PathBuf,
    /// How the file is laid out.
    #[arg(long, value_enum, default_value = "grow")]
    layout: Layout,
    /// Memory for the newest batches, MiB, a power of two.
    #[arg(long, default_value_t = limits::MEMORY_MIB)]
    memory_mib: u64,
}

pub fn run(options: &Options) -> Result<(), String> {
    let mib = options.memory_mib;
    if !mib.is_power_of_two() || !(limits::MEMORY_MIB_MIN..=limits::MEMORY_MIB_MAX).contains(&mib) {
        let (least, most) = (limits::MEMORY_MIB_MIN, limits::MEMORY_MIB_MAX);
        return Err(format!("memory has to be a power of two within {least} and {most} MiB, not {mib}"));
    }
    std::fs::create_dir_all(&options.data_dir).map_err(|e| format!("{}: {e}", options.data_dir.display()))?;
    let path = options.data_dir.join(FILE_NAME);
    let file = LogFile::create(&path, options.layout).map_err(|e| format!("{}: {e}", path.display()))?;
    let listener = TcpListener::bind(options.listen).map_err(|e| format!("{}: {e}", options.listen))?;
    let server = Server::new(listener, mib << 20, file);
    server.and_then(|mut server| server.run()).map_err(|e| format!("the bare server ended: {e}"))
}
