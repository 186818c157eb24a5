//! Records on the command line: how they look, where reading begins, and the commands that write and read them.

pub mod consume;
pub mod format;
pub mod placed;
pub mod position;
pub mod produce;
pub mod source;
