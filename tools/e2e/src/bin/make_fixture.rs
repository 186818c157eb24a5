//! Makes the data folder that later versions are tested with. Run it once for each version of the format:
//! `cargo build -p ringlog && cargo run -p ringlog-e2e --bin make_fixture -- tools/e2e/fixtures/data-v1`

use std::path::PathBuf;

use ringlog_e2e::{Broker, fixture};

fn main() {
    let to = PathBuf::from(std::env::args().nth(1).expect("say where to: tools/e2e/fixtures/data-vN"));
    assert!(!to.exists(), "{} is there already; a fixture is not made twice", to.display());
    let mut broker = Broker::with(fixture::SETTINGS);
    fixture::fill(&mut broker);
    broker.stop();
    fixture::copy(&broker.data_dir(), &to);
    let bytes: usize = fixture::files(&to).iter().map(|(_, bytes)| bytes.len()).sum();
    println!("{}: {bytes} bytes", to.display());
}
