//! `kernels/ptx/table.rs`, which puts sources and archives of PTX into the library.

use std::collections::BTreeSet;

use super::{Files, archive};

/// What stands before a line that only a library with the kernels to be studied has.
const STUDIES: &str = "    #[cfg(feature = \"studies\")]\n";

/// The table, as Rust source; paths are relative to `kernels/ptx`.
pub(super) fn write(sources: &Files, modules: &Files) -> String {
    let mut text = String::from("// Written by `cargo xtask ptx`; do not edit.\n");
    text.push_str("\nstatic SOURCES: &[(&str, &str)] = &[\n");
    for path in sources.keys() {
        let studied = path.contains('/');
        text.push_str(if studied { STUDIES } else { "" });
        text.push_str(&format!("    ({path:?}, include_str!({:?})),\n", format!("../{path}")));
    }
    text.push_str("];\n\nstatic ARCHIVES: &[&[u8]] = &[\n");
    let archives: BTreeSet<_> = modules.keys().map(|name| archive::of(name)).collect();
    for archive in archives {
        let studied = matches!(archive, "mistakes" | "studies");
        text.push_str(if studied { STUDIES } else { "" });
        text.push_str(&format!("    include_bytes!(\"{archive}.zst\"),\n"));
    }
    text.push_str("];\n");
    text
}
