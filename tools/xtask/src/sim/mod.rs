//! `cargo xtask sim`: the simulated back end of `engine/runtime`, seed after seed: random work, faults, kills and power
//! cuts, and a checker that knows what was acknowledged. There are two worlds: `engine/log` alone, whose every call is
//! checked, and the whole node with clients on a simulated network (`node`). A failing seed is printed with its last trace
//! lines and the command that repeats it; `--mutants` proves that faults put in on purpose are found.
//!
//! Built only with the feature `sim`; without it this calls cargo again with it, in release mode.

#[cfg(feature = "sim")]
mod actors;
#[cfg(feature = "sim")]
mod compacted;
#[cfg(feature = "sim")]
mod expected;
#[cfg(feature = "sim")]
mod life;
#[cfg(feature = "sim")]
mod mutants;
#[cfg(feature = "sim")]
mod node;
#[cfg(feature = "sim")]
mod options;
#[cfg(feature = "sim")]
mod rings;
#[cfg(feature = "sim")]
mod runner;
#[cfg(feature = "sim")]
mod scenario;
#[cfg(feature = "sim")]
mod shrink;

#[cfg(feature = "sim")]
pub fn run(arguments: &[String]) -> Result<(), String> {
    let options = options::parse(arguments)?;
    // Brokers tell their operators what goes wrong, and here all of it does.
    let quiet = runtime::sim::Quiet::begin().map_err(|error| format!("standard error cannot be silenced: {error}"))?;
    let result = if options.mutants { mutants::run(&options) } else { runner::run(&options) };
    drop(quiet);
    result
}

#[cfg(not(feature = "sim"))]
pub fn run(arguments: &[String]) -> Result<(), String> {
    use std::process::Command;

    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["run", "--quiet", "--release", "--package", "xtask", "--features", "sim", "--", "sim"])
        .args(arguments)
        .status()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("the simulator ended with {status}")) }
}
