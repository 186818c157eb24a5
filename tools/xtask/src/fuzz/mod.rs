//! `cargo xtask fuzz`: drives decoders with mutations of valid input for a while and reports how
//! many runs that was, and which places panicked. It needs no nightly compiler and no coverage: the
//! corpus is made of every kind of valid input, and checksums are made right again after the damage,
//! so most of a decoder is reached from the first second.
//!
//! A run is decided by its seed alone, so that even one that aborts the process can be repeated.
//! The targets are built only with the feature `fuzz`; without it this calls cargo again with it,
//! in release mode.

#[cfg(feature = "fuzz")]
mod corpus;
#[cfg(feature = "fuzz")]
mod mutate;
#[cfg(feature = "fuzz")]
mod panics;
#[cfg(feature = "fuzz")]
mod report;
#[cfg(feature = "fuzz")]
mod runner;
#[cfg(feature = "fuzz")]
mod seal;
#[cfg(feature = "fuzz")]
mod targets;

#[cfg(feature = "fuzz")]
pub use runner::run;

#[cfg(not(feature = "fuzz"))]
pub fn run(arguments: &[String]) -> Result<(), String> {
    use std::process::Command;

    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["run", "--quiet", "--release", "--package", "xtask", "--features", "fuzz", "--", "fuzz"])
        .args(arguments)
        .status()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("the fuzzer ended with {status}")) }
}
