//! The profile in force: the file that was named, or one derived from this machine. `serve` starts with it, `tune` judges
//! the host by it.

use std::path::Path;

use runtime::checks;
use tuning::{Profile, Topology, TuningError, cpu_list};

use super::host::Host;

#[derive(Clone, Debug)]
pub struct InForce {
    pub profile: Profile,
    /// The CPUs this process may use.
    pub topology: Topology,
    /// What the profile is called where it is shown.
    pub name: String,
    /// A derived profile says how many shards and how large, and leaves the CPUs to the kernel.
    pub pinned: bool,
}

impl InForce {
    /// Reads `file`, or derives a profile; a file that speaks of the disk alone is completed with the derived one. The error
    /// is a sentence.
    pub fn read(host: &Host, file: Option<&Path>) -> Result<InForce, String> {
        let topology = host.topology().restricted_to(&checks::allowed_cpus());
        let Some(path) = file else { return Ok(InForce::derived(host, topology)) };
        let shown = path.display();
        let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read the tuning profile {shown}: {e}"))?;
        let profile = Profile::parse(&text).map_err(|e| format!("tuning profile {shown}: {e}"))?;
        if !profile.is_disk_only() {
            return Ok(InForce { profile, topology, name: shown.to_string(), pinned: true });
        }
        let derived = InForce::derived(host, topology);
        let name = format!("{shown} for the disk, the rest {}", derived.name);
        Ok(InForce { profile: derived.profile.with_disk_of(&profile), name, ..derived })
    }

    fn derived(host: &Host, topology: Topology) -> InForce {
        let (cpus, cores) = (topology.cpus().len(), topology.core_count());
        let plural = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
        let of_cores = if cores < cpus { format!(" of {}", plural(cores, "core")) } else { String::new() };
        let name = format!("derived for {}{of_cores}", plural(cpus, "CPU"));
        InForce { profile: Profile::derive(&topology, host.memory_bytes()), topology, name, pinned: false }
    }

    /// The CPU of each shard; `shards` overrides the profile unless it is 0.
    pub fn place(&self, shards: usize) -> Result<Vec<usize>, TuningError> {
        self.profile.place(&self.topology, shards)
    }

    /// Where the threads that are no shards are pinned.
    pub fn helper_cpu(&self) -> Result<Option<usize>, TuningError> {
        if self.pinned { self.profile.helper(&self.topology) } else { Ok(None) }
    }

    /// "on CPUs 0, 1 (pinned)".
    pub fn cpus_text(&self, cpus: &[usize]) -> String {
        let how = if self.pinned { "pinned" } else { "not pinned, --tuning FILE pins them" };
        let noun = if cpus.len() == 1 { "CPU" } else { "CPUs" };
        format!("on {noun} {} ({how})", cpu_list::format(cpus))
    }
}
