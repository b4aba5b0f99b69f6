//! `cargo xtask`. All of its code is in the library, so that the tests can call it.

fn main() -> std::process::ExitCode {
    xtask::cli::main()
}
