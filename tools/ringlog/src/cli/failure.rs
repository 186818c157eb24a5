//! How a command ends badly: a sentence for people and an exit code for scripts. The codes are part of the interface
//! (`ringlog --help` lists them).

use std::fmt;

use client::ClientError;

/// What `--help` says of exit codes.
pub const EXIT_CODES: &str = "Exit codes: 0 done; 1 it failed with a sentence on stderr; 2 the command line is wrong; \
3 it ran and found something wrong; 4 no broker answered; 5 the broker refused; 6 no answer in time; 130 stopped by Ctrl-C.";

/// Exit code of a command that looks for faults and found some; what it found is its output.
pub const FINDINGS: u8 = 3;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Anything that has no code of its own.
    Failed(String),
    /// The command line parsed, but what it asks for cannot be meant.
    Usage(String),
    NoBroker(String),
    Refused(String),
    TimedOut(String),
    Interrupted,
}

impl Failure {
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Failed(_) => 1,
            Failure::Usage(_) => 2,
            Failure::NoBroker(_) => 4,
            Failure::Refused(_) => 5,
            Failure::TimedOut(_) => 6,
            Failure::Interrupted => 130,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Failed(text)
            | Failure::Usage(text)
            | Failure::NoBroker(text)
            | Failure::Refused(text)
            | Failure::TimedOut(text) => write!(f, "{text}"),
            Failure::Interrupted => write!(f, "stopped by Ctrl-C"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<String> for Failure {
    fn from(sentence: String) -> Failure {
        Failure::Failed(sentence)
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Failure {
        let sentence = error.to_string();
        match error {
            ClientError::NoBroker { .. } | ClientError::NotConnected { .. } | ClientError::Disconnected { .. } => {
                Failure::NoBroker(sentence)
            }
            ClientError::BadAddress { .. } | ClientError::BadConfig { .. } => Failure::Usage(sentence),
            ClientError::TimedOut { .. } => Failure::TimedOut(sentence),
            ClientError::Broker { .. }
            | ClientError::UnknownBrokerError { .. }
            | ClientError::UnknownTopic { .. }
            | ClientError::UnsupportedApi { .. } => Failure::Refused(sentence),
            _ => Failure::Failed(sentence),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::Failed(error.to_string())
    }
}
