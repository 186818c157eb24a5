//! `cargo xtask generate`: reads the facts of the protocol from `net/wire/schema/` and writes the
//! Rust of `net/wire/src/generated/`, which is committed. `--check` writes nothing and fails when
//! the committed files are not what the schema says; a test runs it.

mod code;
mod decode;
mod encode;
mod messages;
mod names;
mod sample;
mod schema;
mod structs;
mod table;
mod versions;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use schema::Api;

const SCHEMA_FOLDER: &str = "net/wire/schema";
const OUTPUT_FOLDER: &str = "net/wire/src/generated";

pub fn run(arguments: &[String]) -> Result<(), String> {
    let check = match arguments {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => return Err("usage: cargo xtask generate [--check]".to_owned()),
    };
    let root = repository_root();
    let files = generate(&root.join(SCHEMA_FOLDER))?;
    let output = root.join(OUTPUT_FOLDER);
    if check { compare(&output, &files) } else { write(&output, &files) }
}

/// The folder of the workspace, two above this crate's.
fn repository_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// File name and content of everything that is generated.
fn generate(schema_folder: &Path) -> Result<BTreeMap<String, String>, String> {
    let apis = read_schema(schema_folder)?;
    let mut files = BTreeMap::new();
    for api in &apis {
        files.insert(format!("{}.rs", names::snake(&api.name)), messages::file(api)?);
    }
    files.insert("mod.rs".to_owned(), table::module_file(&apis));
    files.insert("api_key.rs".to_owned(), table::api_key_file(&apis));
    files.insert("any.rs".to_owned(), table::any_file(&apis)?);
    files.into_iter().map(|(name, source)| Ok((name, format_source(&source)?))).collect()
}

fn read_schema(folder: &Path) -> Result<Vec<Api>, String> {
    let mut apis = Vec::new();
    for path in files_in(folder)? {
        let text = fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        apis.push(schema::parse(&text).map_err(|sentence| format!("{}: {sentence}", path.display()))?);
    }
    apis.sort_by_key(|api: &Api| api.key);
    Ok(apis)
}

fn files_in(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error| format!("cannot list {}: {error}", folder.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        paths.push(entry.map_err(failed)?.path());
    }
    paths.sort();
    Ok(paths)
}

fn format_source(source: &str) -> Result<String, String> {
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start rustfmt: {error}; install it with `rustup component add rustfmt`"))?;
    let mut input = rustfmt.stdin.take().ok_or("rustfmt has no standard input")?;
    let source = source.to_owned();
    // Written from a thread: rustfmt may answer before it has read everything.
    let feeder = std::thread::spawn(move || input.write_all(source.as_bytes()));
    let output = rustfmt.wait_with_output().map_err(|error| format!("rustfmt failed: {error}"))?;
    let fed = feeder.join().map_err(|_| "the thread that feeds rustfmt panicked")?;
    fed.map_err(|error| format!("rustfmt does not read its input: {error}"))?;
    if !output.status.success() {
        return Err("rustfmt refuses the generated source".to_owned());
    }
    String::from_utf8(output.stdout).map_err(|_| "rustfmt answered with something that is not UTF-8".to_owned())
}

fn write(output: &Path, files: &BTreeMap<String, String>) -> Result<(), String> {
    fs::create_dir_all(output).map_err(|error| format!("cannot make {}: {error}", output.display()))?;
    for path in stale_files(output, files)? {
        fs::remove_file(&path).map_err(|error| format!("cannot remove {}: {error}", path.display()))?;
    }
    for (name, content) in files {
        let path = output.join(name);
        // Untouched when equal, so that a build does not start over.
        if fs::read_to_string(&path).is_ok_and(|committed| committed == *content) {
            continue;
        }
        fs::write(&path, content).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    println!("{} files in {OUTPUT_FOLDER} are current", files.len());
    Ok(())
}

fn compare(output: &Path, files: &BTreeMap<String, String>) -> Result<(), String> {
    let mut wrong: Vec<String> = stale_files(output, files)?
        .iter()
        .map(|path| format!("{} is not generated any more", path.display()))
        .collect();
    for (name, content) in files {
        if !fs::read_to_string(output.join(name)).is_ok_and(|committed| committed == *content) {
            wrong.push(format!("{OUTPUT_FOLDER}/{name} is not what the schema says"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("{}; run `cargo xtask generate`", wrong.join("; "))) }
}

/// Files that an older schema left behind.
fn stale_files(output: &Path, files: &BTreeMap<String, String>) -> Result<Vec<PathBuf>, String> {
    let current = |path: &PathBuf| path.file_name().is_some_and(|name| files.contains_key(&*name.to_string_lossy()));
    Ok(files_in(output)?.into_iter().filter(|path| !current(path)).collect())
}

#[cfg(test)]
#[path = "generate_tests.rs"]
mod tests;
