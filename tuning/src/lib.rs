//! # Host profiles: which CPUs the shards sit on, and the sizes that go with the machine
//!
//! A profile is a small TOML file (`--tuning FILE`; four are shipped beside this crate: `two-core.toml`, `laptop.toml`,
//! `sixteen-core-nvme.toml`, `two-socket-many-nvme.toml`). Without one, [`Profile::derive`] makes a sensible one from the
//! [`Topology`] of the machine. Checking and arithmetic only: the caller reads files and sysfs and pins the threads.
//!
//! A file that speaks of the disk alone ([`Profile::is_disk_only`]) is completed with what is derived.
//!
//! What a profile sets is a default like the table's own: the configuration file and `--set` win over it. So it is
//! handed on as `key=value` pairs ([`Profile::pairs`]) that go before theirs.

pub mod cpu_list;
mod error;
mod placement;
mod profile;
mod topology;

pub use error::TuningError;
pub use profile::{MemorySplit, Profile, Spread};
pub use topology::{Cpu, CpuText, Topology};

/// Most CPUs that a profile may name.
pub const MAX_CPUS: usize = 1024;
