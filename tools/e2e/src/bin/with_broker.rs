//! `with_broker [KEY=VALUE ...] -- COMMAND ...`: runs a command beside a fresh broker whose address is in
//! `RINGLOG_BOOTSTRAP`, and ends as the command does. Test suites of others run under it.

use std::process::{Command, ExitCode};

use ringlog_e2e::Broker;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut halves = arguments.splitn(2, |argument| argument == "--");
    let settings: Option<Vec<(&str, &str)>> =
        halves.next().unwrap_or_default().iter().map(|setting| setting.split_once('=')).collect();
    let (Some(settings), Some([program, rest @ ..])) = (settings, halves.next()) else {
        eprintln!("usage: with_broker [KEY=VALUE ...] -- COMMAND ...");
        return ExitCode::FAILURE;
    };
    let broker = Broker::with(&settings);
    match Command::new(program).args(rest).env("RINGLOG_BOOTSTRAP", broker.bootstrap()).status() {
        Ok(status) => status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from),
        Err(error) => {
            eprintln!("cannot run {program}: {error}");
            ExitCode::FAILURE
        }
    }
}
