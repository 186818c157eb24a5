#![allow(clippy::unwrap_used)]
use super::*;

const LIMITS: &str = "\
Limit                     Soft Limit           Hard Limit           Units     
Max open files            1024                 20000                files     
Max locked memory         8388608              8388608              bytes     
Max address space         unlimited            unlimited            bytes     
";

const INTERRUPTS: &str = "           CPU0       CPU1       
 36:          0    5627781 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
 41:      17304          3 PCI-MSIX-0000:00:04.0   1-edge      eth0-TxRx-0
NMI:          0          0   Non-maskable interrupts
ERR:          0
";

const MOUNTS: &str = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
30 27 259:3 / /data rw,noatime shared:1 - xfs /dev/nvme0n1p1 rw,attr2,noquota
31 27 8:1 / /with\\040space rw - ext4 /dev/sda1 rw
broken line
";

#[test]
fn limits_are_read_by_row() {
    assert_eq!(limit(LIMITS, "Max locked memory"), Some(Some(8_388_608)));
    assert_eq!(limit(LIMITS, "Max open files"), Some(Some(20_000)), "what it can be raised to");
    assert_eq!(limit(LIMITS, "Max address space"), Some(None));
    assert_eq!(limit(LIMITS, "Max nonsense"), None);
}

#[test]
fn bracketed_choices() {
    assert_eq!(chosen("none [mq-deadline] kyber bfq"), Some("mq-deadline"));
    assert_eq!(chosen("[none]"), Some("none"));
    assert_eq!(chosen("none mq-deadline"), None);
    assert!(offers("none [mq-deadline]", "none") && offers("none [mq-deadline]", "mq-deadline"));
    assert!(!offers("[mq-deadline]", "none"));
}

#[test]
fn memory_and_swap_are_bytes() {
    assert_eq!(meminfo("MemTotal:       24684084 kB\nMemFree: 1 kB", "MemTotal"), Some(24_684_084 * 1024));
    assert_eq!(meminfo("MemTotalX: 1 kB", "MemTotal"), None);
    let text = "Filename\tType\tSize\tUsed\tPriority\n/dev/sda2 partition 2048 100 -2\n/swap file 1024 0 -3\n";
    assert_eq!(swaps(text), (100 * 1024, 3072 * 1024));
    assert_eq!(swaps("Filename Type Size Used Priority"), (0, 0));
}

#[test]
fn kernels() {
    assert_eq!(kernel("6.18.44-fc-v669"), Some((6, 18)));
    assert_eq!(kernel("5.15"), Some((5, 15)));
    assert_eq!(kernel("linux"), None);
}

#[test]
fn interrupts_keep_their_counts_by_cpu() {
    let found = interrupts(INTERRUPTS);
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].number, found[0].device.as_str()), (36, "virtio1-req.0"));
    assert_eq!(found[1].counts, [(0, 17304), (1, 3)]);
    assert_eq!(found[1].total(), 17307);
    assert_eq!(interrupts(""), []);
}

#[test]
fn the_deepest_mount_holds_a_path() {
    let mounts = mounts(MOUNTS);
    assert_eq!(mounts.len(), 4);
    let of = |path: &str| holder(&mounts, Path::new(path)).unwrap();
    assert_eq!(of("/data/ringlog").device, "259:3");
    assert_eq!(of("/data/ringlog").options, ["rw", "noatime", "rw", "attr2", "noquota"]);
    assert_eq!(of("/database").source, "/dev/vda");
    assert_eq!(of("/with space/x").kind, "ext4");
    assert_eq!(holder(&mounts, Path::new("relative")), None);
}

#[test]
fn any_text_is_survived() {
    for text in ["", "\\", "\\0", "\\999", " - ", "a:b:c", "CPU0\n1:", "CPU0\n1: x", "é\\04é"] {
        let _ = (mounts(text), interrupts(text), swaps(text), unescape(text), limit(text, ""), kernel(text));
    }
}
