//! `kernels/ptx/table.rs`, which puts sources and PTX into the library.

use super::Files;

/// The table, as Rust source; paths are relative to `kernels/ptx`.
pub(super) fn write(sources: &Files, modules: &Files) -> String {
    let mut text =
        String::from("// Written by `cargo xtask ptx` from kernels/shipped.toml; do not edit.\n");
    text.push_str("\nstatic SOURCES: &[(&str, &str)] = &[\n");
    for path in sources.keys() {
        text.push_str(&format!("    ({path:?}, include_str!({:?})),\n", format!("../{path}")));
    }
    text.push_str("];\n\nstatic MODULES: &[(&str, &str)] = &[\n");
    for path in modules.keys() {
        let name = path.strip_suffix(".ptx").unwrap_or(path);
        text.push_str(&format!("    ({name:?}, include_str!({path:?})),\n"));
    }
    text.push_str("];\n");
    text
}
