//! Which CPUs the client's threads and the brokers run on. Apart, as a client on another host is: what one takes, the other
//! does not wait for, and a broker's CPU time is not that of being displaced.

use core_affinity::get_core_ids;

/// CPUs from which on client and brokers are kept apart.
const APART: usize = 4;

/// CPUs of the client's threads and of the brokers; empty: all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpus {
    pub client: Vec<usize>,
    pub brokers: Vec<usize>,
}

impl Cpus {
    /// What the flags say, and where they say nothing and cores allow a quarter of the machine for the client.
    pub fn chosen(client: Option<&str>, brokers: Option<&str>, share: bool) -> Result<Cpus, String> {
        if share || client.is_some() || brokers.is_some() {
            let read = |list: Option<&str>| list.map_or(Ok(Vec::new()), cpu_list);
            return Ok(Cpus { client: read(client)?, brokers: read(brokers)? });
        }
        let all: Vec<usize> = get_core_ids().unwrap_or_default().into_iter().map(|core| core.id).collect();
        Ok(Cpus::apart(&all))
    }

    /// Shared where there are not [`APART`]: a broker that has more threads than CPUs to run them on would be measured by that.
    fn apart(all: &[usize]) -> Cpus {
        if all.len() < APART {
            return Cpus::default();
        }
        let (brokers, client) = all.split_at(all.len() - all.len() / 4);
        Cpus { client: client.to_vec(), brokers: brokers.to_vec() }
    }
}

/// As `taskset` takes them; none: all.
pub fn written(cpus: &[usize]) -> Option<String> {
    (!cpus.is_empty()).then(|| cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(","))
}

/// The CPUs of a list such as `0,2-3`.
fn cpu_list(text: &str) -> Result<Vec<usize>, String> {
    let wrong = || format!("{text:?} is no list of CPUs such as 0,2-3");
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) =
            (first.trim().parse().map_err(|_| wrong())?, last.trim().parse().map_err(|_| wrong())?);
        if first > last || last >= 4_096 {
            return Err(wrong());
        }
        cpus.extend(first..=last);
    }
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        assert_eq!(cpu_list("1"), Ok(vec![1]));
        assert_eq!(cpu_list("0,2-4"), Ok(vec![0, 2, 3, 4]));
        for wrong in ["", "a", "3-1", "1,,2", "0-99999999"] {
            assert!(cpu_list(wrong).is_err(), "{wrong}");
        }
        assert_eq!((written(&[]), written(&[0, 2, 3])), (None, Some("0,2,3".to_owned())));
    }

    #[test]
    fn client_and_brokers_are_apart_unless_told_otherwise() {
        let of = |client: &[usize], brokers: &[usize]| Cpus { client: client.into(), brokers: brokers.into() };
        assert_eq!(Cpus::apart(&[0, 1, 2]), Cpus::default());
        assert_eq!(Cpus::apart(&[0, 1, 2, 3]), of(&[3], &[0, 1, 2]));
        assert_eq!(Cpus::apart(&[0, 1, 4, 5, 6, 7, 8, 9]), of(&[8, 9], &[0, 1, 4, 5, 6, 7]));
        assert_eq!(Cpus::chosen(None, None, true), Ok(Cpus::default()));
        assert_eq!(Cpus::chosen(Some("3"), None, false), Ok(of(&[3], &[])));
        assert!(Cpus::chosen(None, Some("x"), false).is_err());
    }
}
