//! `ringlog completion`: scripts that let a shell complete commands and flags.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::Failure;

#[derive(Debug, Args)]
pub struct CompletionArgs {
    /// The shell. Bash: put the script into ~/.local/share/bash-completion/completions/ringlog.
    shell: Shell,
}

pub fn run<C: CommandFactory>(args: &CompletionArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut C::command(), "ringlog", &mut script);
    Ok(crate::cli::output::print(&String::from_utf8_lossy(&script))?)
}
