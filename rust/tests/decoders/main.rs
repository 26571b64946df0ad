//! Every input that a fuzzer was given or found, again: `corpus` has a folder for each target.

mod bodies;
mod dap;
mod verified;
mod wire;

use std::fs;
use std::path::Path;

/// All targets by their names.
fn targets() -> impl Iterator<Item = (&'static str, bodies::Target)> {
    bodies::TARGETS.into_iter().chain(wire::TARGETS).chain(dap::TARGETS).chain(verified::TARGETS)
}

#[test]
fn what_a_fuzzer_was_given_or_found_breaks_nothing() -> std::io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("rust/tests/decoders/corpus");
    for (name, target) in targets() {
        let mut inputs = 0;
        for file in fs::read_dir(corpus.join(name))? {
            target(&fs::read(file?.path())?);
            inputs += 1;
        }
        assert!(inputs > 3, "{name} has {inputs} inputs");
    }
    Ok(())
}

/// Bytes of no fuzzer: each length, each byte, and a few that have all bits.
#[test]
fn short_bytes_break_nothing() {
    for (_, target) in targets() {
        for byte in 0..=255 {
            for length in 0..40 {
                target(&vec![byte; length]);
            }
        }
    }
}
