//! The kernel's way to write a set of CPUs, `0-3,8`: read from sysfs and from `/proc`, and shown to people.

use crate::MAX_CPUS;

/// Reads a list; `None` when it is not one or names more than [`MAX_CPUS`] CPUs. An empty text is an empty set.
pub fn parse(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if last < first || last - first >= MAX_CPUS || cpus.len() + (last - first) >= MAX_CPUS {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// "0-3, 8". Keeps the order given: shards take CPUs in it.
pub fn format(cpus: &[usize]) -> String {
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match spans.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => spans.push((cpu, cpu)),
        }
    }
    let shown: Vec<String> = spans
        .iter()
        .map(|&(first, last)| match last - first {
            0 => first.to_string(),
            1 => format!("{first}, {last}"),
            _ => format!("{first}-{last}"),
        })
        .collect();
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_the_kernel_writes_them() {
        assert_eq!(parse("0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse("5,2"), Some(vec![2, 5]));
        assert_eq!(parse("\n"), Some(Vec::new()));
        for bad in ["a", "3-1", "0-99999999999", "1-", "-1", "0-2047"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn lists_are_shown_short() {
        assert_eq!(format(&[0, 1, 2, 3, 8, 10, 11]), "0-3, 8, 10, 11");
        assert_eq!(format(&[5, 3, 1]), "5, 3, 1");
        assert_eq!(format(&[]), "");
    }
}
