//! The machine's CPUs: which share a core, which lie on which NUMA node. Built from the texts that sysfs gives, so that
//! any machine can be described in a test; the caller reads the files.

use std::collections::{BTreeMap, BTreeSet};

use crate::cpu_list;

/// What sysfs says about one CPU, as read; an empty text is a file that was not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuText {
    pub id: usize,
    /// `topology/thread_siblings_list`
    pub siblings: String,
    /// `topology/physical_package_id`
    pub package: String,
}

/// One CPU as the operating system numbers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpu {
    pub id: usize,
    /// The physical core, named by its lowest CPU.
    pub core: usize,
    pub package: Option<usize>,
    pub numa_node: Option<usize>,
    /// All CPUs of the core, this one included.
    pub siblings: Vec<usize>,
}

/// CPUs in rising order. A plain value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    cpus: Vec<Cpu>,
}

impl Topology {
    /// From sysfs. `nodes` are NUMA nodes with their `cpulist`. What cannot be read counts as unknown: a CPU without
    /// siblings is a core of its own.
    pub fn parse(cpus: &[CpuText], nodes: &[(usize, String)]) -> Topology {
        let mut node_of = BTreeMap::new();
        for (node, list) in nodes {
            node_of.extend(cpu_list::parse(list).unwrap_or_default().into_iter().map(|cpu| (cpu, *node)));
        }
        let mut by_id = BTreeMap::new();
        for text in cpus {
            let mut siblings = cpu_list::parse(&text.siblings).unwrap_or_default();
            if !siblings.contains(&text.id) {
                siblings = vec![text.id];
            }
            let cpu = Cpu {
                id: text.id,
                core: siblings[0],
                package: text.package.trim().parse().ok(),
                numa_node: node_of.get(&text.id).copied(),
                siblings,
            };
            by_id.insert(text.id, cpu);
        }
        Topology { cpus: by_id.into_values().collect() }
    }

    /// CPUs of which nothing is known but their numbers.
    pub fn flat(ids: &[usize]) -> Topology {
        let texts: Vec<CpuText> = ids.iter().map(|&id| CpuText { id, ..CpuText::default() }).collect();
        Topology::parse(&texts, &[])
    }

    /// Only the CPUs that this process may use. One that sysfs did not show is added as a core of its own.
    #[must_use]
    pub fn restricted_to(&self, usable: &[usize]) -> Topology {
        let mut cpus: Vec<Cpu> = self.cpus.iter().filter(|cpu| usable.contains(&cpu.id)).cloned().collect();
        let known: BTreeSet<usize> = cpus.iter().map(|cpu| cpu.id).collect();
        let unknown: Vec<usize> = usable.iter().copied().filter(|id| !known.contains(id)).collect();
        cpus.extend(Topology::flat(&unknown).cpus);
        cpus.sort_by_key(|cpu| cpu.id);
        Topology { cpus }
    }

    pub fn cpus(&self) -> &[Cpu] {
        &self.cpus
    }

    pub fn ids(&self) -> Vec<usize> {
        self.cpus.iter().map(|cpu| cpu.id).collect()
    }

    pub fn cpu(&self, id: usize) -> Option<&Cpu> {
        self.cpus.iter().find(|cpu| cpu.id == id)
    }

    /// Physical cores with at least one CPU here.
    pub fn core_count(&self) -> usize {
        self.cpus.iter().map(|cpu| cpu.core).collect::<BTreeSet<_>>().len()
    }

    /// NUMA nodes with at least one CPU here, in rising order.
    pub fn nodes(&self) -> Vec<usize> {
        self.cpus.iter().filter_map(|cpu| cpu.numa_node).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Pairs and larger sets of `chosen` that share a core.
    pub fn sharing_a_core(&self, chosen: &[usize]) -> Vec<Vec<usize>> {
        let mut by_core: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for cpu in self.cpus.iter().filter(|cpu| chosen.contains(&cpu.id)) {
            by_core.entry(cpu.core).or_default().push(cpu.id);
        }
        by_core.into_values().filter(|cpus| cpus.len() > 1).collect()
    }
}

#[cfg(test)]
#[path = "topology_tests.rs"]
mod tests;
