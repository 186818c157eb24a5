//! `cargo xtask tidy`: the rules of the repository that a compiler does not check. They only tighten.
//!
//! Crate arrows, sizes of files and functions, what only `engine/runtime` may name, leftovers, the README's map.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const MAX_FILE_LINES: usize = 600;
const MAX_FUNCTION_LINES: usize = 70;

/// What each crate may depend on among ours, outside its tests. Arrows run one way.
const ARROWS: &[(&str, &[&str])] = &[
    ("engine/model", &[]),
    ("engine/runtime", &["model"]),
    ("engine/log", &["model", "runtime"]),
    ("replication/metadata", &["model", "runtime"]),
    ("replication/replica", &["model", "runtime", "log"]),
    ("replication/coordinator", &["model"]),
    ("net/wire", &[]),
    ("net/client", &["model", "runtime", "wire"]),
    ("net/server", &["model", "runtime", "log", "metadata", "replica", "coordinator", "wire"]),
    ("tools/ringlog", &["model", "runtime", "log", "replica", "coordinator", "server", "client", "tuning"]),
    ("tools/xtask", &["model", "runtime", "log", "metadata", "replica", "coordinator", "wire", "client", "server"]),
    ("tools/e2e", &["model", "wire"]),
    ("bench", &["model", "wire"]),
    ("tuning", &[]),
];

/// Names that only some places may use, with the places.
const BANNED: &[(&str, &[&str])] = &[
    ("glommio::", &["engine/runtime"]),
    ("Instant::now", &["engine/runtime", "tools", "bench"]),
    ("SystemTime", &["engine/runtime", "tools", "bench"]),
    ("std::fs", &["engine/runtime", "tools", "bench"]),
    ("std::thread", &["engine/runtime", "tools", "bench"]),
    ("std::process::exit", &["tools", "engine/runtime"]),
    ("HashMap", &["tools", "bench"]),
    ("HashSet", &["tools", "bench"]),
];

/// Where `unsafe` may stand; each block needs its SAFETY line.
const UNSAFE_PLACES: &[&str] = &["engine/runtime", "net/wire/tests/counting", "bench/"];

const LEFTOVERS: &[&str] = &["todo!(", "unimplemented!(", "dbg!(", "#[ignore"];

const TOP_LEVEL: &[&str] =
    &["Cargo.toml", "Cargo.lock", "engine", "net", "replication", "bench", "tools", "tuning", "README.md", "target"];

/// Checks the whole repository; each finding is a line.
pub fn run(root: &Path) -> Result<(), String> {
    let mut findings = Vec::new();
    check_top_level(root, &mut findings)?;
    check_arrows(root, &mut findings)?;
    for file in rust_files(root)? {
        let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let name = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().replace('\\', "/");
        check_file(&name, &text, &mut findings);
    }
    check_readme(root, &mut findings)?;
    if findings.is_empty() {
        println!("tidy: nothing to complain about");
        return Ok(());
    }
    Err(format!("{}\ntidy: {} findings", findings.join("\n"), findings.len()))
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let list = fs::read_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let mut paths: Vec<PathBuf> = list.filter_map(Result::ok).map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn check_top_level(root: &Path, findings: &mut Vec<String>) -> Result<(), String> {
    for path in entries(root)? {
        let name = name_of(&path);
        // What a run leaves in its working folder is ignored by git and no part of the tree.
        let foreign = !name.starts_with('.') && !TOP_LEVEL.contains(&name.as_str()) && name != "ringlog-data";
        if foreign {
            findings.push(format!("{name}: the top level is fixed; put it into one of its folders"));
        }
    }
    Ok(())
}

/// The crates among ours that the section `[dependencies]` of a manifest names.
fn our_dependencies(manifest: &str) -> Vec<String> {
    let ours = |name: &str| ARROWS.iter().any(|(path, _)| path.rsplit('/').next() == Some(name));
    let mut inside = false;
    let mut found = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.trim() == "[dependencies]";
        } else if inside
            && let Some(name) = line.split(['.', ' ', '=']).next()
            && ours(name)
        {
            found.push(name.to_string());
        }
    }
    found
}

fn check_arrows(root: &Path, findings: &mut Vec<String>) -> Result<(), String> {
    let workspace = fs::read_to_string(root.join("Cargo.toml")).map_err(|e| e.to_string())?;
    for (path, allowed) in ARROWS {
        let manifest = root.join(path).join("Cargo.toml");
        let text = fs::read_to_string(&manifest).map_err(|e| format!("{}: {e}", manifest.display()))?;
        for dependency in our_dependencies(&text) {
            if !allowed.contains(&dependency.as_str()) {
                findings.push(format!("{path}/Cargo.toml: an arrow to {dependency} is not allowed"));
            }
        }
        if !workspace.contains(&format!("\"{path}\"")) {
            findings.push(format!("Cargo.toml: {path} is not a member"));
        }
    }
    Ok(())
}

fn rust_files(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> =
        ["engine", "net", "replication", "bench", "tools", "tuning"].iter().map(|d| root.join(d)).collect();
    while let Some(dir) = open.pop() {
        for path in entries(&dir)? {
            let name = name_of(&path);
            if path.is_dir() {
                if name != "target" && name != "generated" {
                    open.push(path);
                }
            } else if name.ends_with(".rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn is_test(name: &str) -> bool {
    name.contains("/tests/") || name.ends_with("_tests.rs") || name.ends_with("tests.rs") || name.contains("/benches/")
}

fn check_file(name: &str, text: &str, findings: &mut Vec<String>) {
    let lines: Vec<&str> = text.lines().collect();
    if !is_test(name) && lines.len() > MAX_FILE_LINES {
        findings.push(format!("{name}: {} lines, {MAX_FILE_LINES} at most: split it by input", lines.len()));
    }
    if name.ends_with("/src/lib.rs") && !text.starts_with("//! # ") {
        findings.push(format!("{name}: begins with a README-level module comment (`//! # ...`)"));
    }
    let tests_from = lines.iter().position(|line| line.trim() == "#[cfg(test)]").unwrap_or(lines.len());
    for (index, line) in lines.iter().enumerate() {
        check_line(name, index, line, index >= tests_from, findings);
        check_unsafe(name, index, &lines, findings);
    }
    if !is_test(name) {
        check_functions(name, &lines, findings);
    }
}

fn check_line(name: &str, index: usize, line: &str, in_tests: bool, findings: &mut Vec<String>) {
    let at = index + 1;
    let own = name == "tools/xtask/src/tidy.rs";
    let code = line.split("//").next().unwrap_or_default();
    for leftover in LEFTOVERS {
        if !own && code.contains(leftover) {
            findings.push(format!("{name}:{at}: {leftover} is a leftover"));
        }
    }
    if is_test(name) || in_tests || own {
        return;
    }
    for (banned, places) in BANNED {
        if code.contains(banned) && !places.iter().any(|place| name.starts_with(place)) {
            findings.push(format!("{name}:{at}: {banned} belongs into {}", places.join(", ")));
        }
    }
}

fn check_unsafe(name: &str, index: usize, lines: &[&str], findings: &mut Vec<String>) {
    let code = lines[index].split("//").next().unwrap_or_default();
    let word = |w: &str| code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|part| part == w);
    if !word("unsafe") || name == "tools/xtask/src/tidy.rs" || code.contains('"') {
        return;
    }
    if !UNSAFE_PLACES.iter().any(|place| name.starts_with(place)) {
        findings.push(format!("{name}:{}: unsafe belongs into engine/runtime", index + 1));
    } else if !lines[index.saturating_sub(8)..=index].iter().any(|line| line.contains("SAFETY")) {
        findings.push(format!("{name}:{}: unsafe needs its SAFETY line", index + 1));
    }
}

fn check_functions(name: &str, lines: &[&str], findings: &mut Vec<String>) {
    for (start, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start();
        let is_function = ["fn ", "pub fn ", "pub(crate) fn ", "pub(super) fn ", "async fn ", "pub async fn "]
            .iter()
            .chain(&["pub(crate) async fn ", "pub(super) async fn "])
            .any(|head| trimmed.starts_with(head));
        if !is_function {
            continue;
        }
        // A trait's method may have no body.
        let opens = lines[start..].iter().find(|l| l.ends_with('{') || l.ends_with(';') || l.ends_with('}'));
        if !opens.is_some_and(|l| l.ends_with('{')) {
            continue;
        }
        let end = format!("{}}}", " ".repeat(line.len() - trimmed.len()));
        let Some(length) = lines[start..].iter().position(|l| *l == end) else { continue };
        if length > MAX_FUNCTION_LINES {
            findings.push(format!("{name}:{}: a function of {length} lines, {MAX_FUNCTION_LINES} at most", start + 1));
        }
    }
}

/// The README's map names every crate.
fn check_readme(root: &Path, findings: &mut Vec<String>) -> Result<(), String> {
    let readme = fs::read_to_string(root.join("README.md")).map_err(|e| format!("README.md: {e}"))?;
    let missing: BTreeMap<&str, ()> =
        ARROWS.iter().filter(|(path, _)| !readme.contains(&format!("`{path}`"))).map(|(path, _)| (*path, ())).collect();
    for path in missing.keys() {
        findings.push(format!("README.md: the map does not name `{path}`"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(name: &str, text: &str) -> Vec<String> {
        let mut findings = Vec::new();
        check_file(name, text, &mut findings);
        findings
    }

    #[test]
    fn each_rule_finds_what_it_is_for() {
        let long = "// x\n".repeat(MAX_FILE_LINES + 1);
        let body = "    let _ = 1;\n".repeat(MAX_FUNCTION_LINES + 1);
        let cases = [
            ("net/server/src/a.rs", "let t = Instant::now();".to_string()),
            ("engine/log/src/a.rs", "use std::fs;".to_string()),
            ("engine/log/src/a.rs", "todo!(\"later\")".to_string()),
            ("engine/log/src/a.rs", "let x = unsafe { f() };".to_string()),
            ("engine/runtime/src/a.rs", "let x = unsafe { f() };".to_string()),
            ("engine/log/src/lib.rs", "//! short".to_string()),
            ("engine/log/src/a.rs", long),
            ("engine/log/src/a.rs", format!("fn f() {{\n{body}}}\n")),
        ];
        for (name, text) in cases {
            assert_eq!(findings(name, &text).len(), 1, "{name}: {:.60}", text);
        }
    }

    #[test]
    fn what_is_allowed_is_not_found() {
        let cases = [
            ("engine/runtime/src/a.rs", "// SAFETY: it is fine\nlet x = unsafe { f() };"),
            ("engine/runtime/src/a.rs", "let t = Instant::now();"),
            ("engine/log/src/a.rs", "// std::fs in a comment"),
            ("engine/log/tests/a.rs", "use std::fs;"),
            ("engine/log/src/a.rs", "    fn send(&self);\n}"),
            ("engine/log/src/a.rs", "#[cfg(test)]\nmod tests { use std::fs; }"),
        ];
        for (name, text) in cases {
            assert_eq!(findings(name, text), Vec::<String>::new(), "{name}: {text}");
        }
    }

    #[test]
    fn dependencies_are_read_from_their_section_only() {
        let manifest =
            "[dependencies]\nmodel.workspace = true\nbytes = \"1\"\n[dev-dependencies]\nserver.workspace = true\n";
        assert_eq!(our_dependencies(manifest), ["model"]);
    }
}
