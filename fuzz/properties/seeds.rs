//! The committed inputs of a fuzz target, through the function that the fuzzer runs: each as it is, cut
//! off, and with single bytes changed, by lots that are always the same.

use std::path::Path;

use waybill_testkit::dice::Lots;

/// How many changed inputs are made of each seed.
const CHANGES: u64 = 40;

/// Bytes that mean something in JSON, TOML and headers.
const TELLING: &[u8] = b"\"\\{}[],:;=.-_/ \n\r\t\0\x7f0123456789Zz+%~\xc3\xff";

/// Runs `check` over the seeds of `target`.
#[track_caller]
pub(crate) fn run(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|above| above.join("fuzz/seeds").join(target))
        .find(|folder| folder.is_dir())
        .unwrap_or_else(|| panic!("{target} has no seeds"));
    let mut lots = Lots::new(6);
    let mut seeds = 0;
    for entry in std::fs::read_dir(folder).expect("the seeds") {
        let seed = std::fs::read(entry.expect("a seed").path()).expect("it can be read");
        seeds += 1;
        check(&seed);
        for _ in 0..CHANGES {
            check(&changed(&seed, &mut lots));
        }
    }
    assert!(seeds >= 3, "{target} has {seeds} seeds");
}

fn changed(seed: &[u8], lots: &mut Lots) -> Vec<u8> {
    let mut changed = seed.to_vec();
    for _ in 0..=lots.below(3) {
        let at = lots.below(changed.len() as u64 + 1) as usize;
        let byte = TELLING[lots.below(TELLING.len() as u64) as usize];
        match lots.below(4) {
            0 => changed.truncate(at),
            1 => changed.insert(at, byte),
            2 if at < changed.len() => drop(changed.remove(at)),
            _ if at < changed.len() => changed[at] = byte,
            _ => {}
        }
    }
    changed
}
