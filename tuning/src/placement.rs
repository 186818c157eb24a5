//! Which CPU each shard sits on.

use std::collections::BTreeSet;

use crate::{MAX_CPUS, Profile, Spread, Topology, TuningError};

impl Profile {
    /// The CPU of each shard, in the order of shards. `topology` holds the CPUs that the process may run on; `shards`
    /// overrides the profile (it comes from `--shards` or the configuration) unless it is 0.
    pub fn place(&self, topology: &Topology, shards: usize) -> Result<Vec<usize>, TuningError> {
        self.helper(topology)?;
        let chosen = match &self.cpus {
            Some(cpus) => check_cpus(cpus, topology)?,
            None => self.candidates(topology)?,
        };
        // CPUs to keep free need not exist: leaving out one that is not there changes nothing.
        let mut free: Vec<usize> = chosen.into_iter().filter(|cpu| !self.leave_out.contains(cpu)).collect();
        if free.is_empty() {
            return Err(TuningError::NoCpuLeft);
        }
        let wanted = match (shards, self.shards) {
            (0, Some(0)) => return Err(TuningError::NoShards),
            (0, Some(shards)) => shards,
            (0, None) => free.len().min(MAX_CPUS),
            (shards, _) => shards,
        };
        if wanted > free.len() {
            return Err(TuningError::TooManyShards { shards: wanted, cpus: free.len() });
        }
        free.truncate(wanted);
        Ok(free)
    }

    /// The CPU of the threads that are no shards, if the profile names one.
    pub fn helper(&self, topology: &Topology) -> Result<Option<usize>, TuningError> {
        match self.helper_cpu {
            Some(cpu) if topology.cpu(cpu).is_none() => Err(TuningError::NoSuchCpu { cpu, usable: topology.ids() }),
            helper => Ok(helper),
        }
    }

    fn candidates(&self, topology: &Topology) -> Result<Vec<usize>, TuningError> {
        if let Some(node) = self.numa_node.filter(|node| !topology.nodes().contains(node)) {
            return Err(TuningError::NoSuchNode { node, nodes: topology.nodes() });
        }
        let on_node = |node: Option<usize>| self.numa_node.is_none() || node == self.numa_node;
        let cpus: Vec<_> = topology.cpus().iter().filter(|cpu| on_node(cpu.numa_node)).collect();
        // A core of which one CPU is left out is left out whole when cores are what counts.
        let core_is_free = |siblings: &[usize]| !siblings.iter().any(|cpu| self.leave_out.contains(cpu));
        let mut cores = BTreeSet::new();
        let (firsts, others): (Vec<_>, Vec<_>) = cpus.into_iter().partition(|cpu| cores.insert(cpu.core));
        let ids = |cpus: Vec<&crate::Cpu>| cpus.into_iter().map(|cpu| cpu.id).collect::<Vec<_>>();
        Ok(match self.placement.unwrap_or_default() {
            Spread::OnePerCore => ids(firsts.into_iter().filter(|cpu| core_is_free(&cpu.siblings)).collect()),
            Spread::CoresFirst => ids(firsts.into_iter().chain(others).collect()),
            Spread::All => {
                let mut all = ids(firsts.into_iter().chain(others).collect());
                all.sort_unstable();
                all
            }
        })
    }
}

fn check_cpus(cpus: &[usize], topology: &Topology) -> Result<Vec<usize>, TuningError> {
    let mut seen = BTreeSet::new();
    for &cpu in cpus {
        if topology.cpu(cpu).is_none() {
            return Err(TuningError::NoSuchCpu { cpu, usable: topology.ids() });
        }
        if !seen.insert(cpu) {
            return Err(TuningError::CpuTwice { cpu });
        }
    }
    Ok(cpus.to_vec())
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;
