//! Tells how the bits of the special functions were found; `--help` lists the options.

fn main() -> std::process::ExitCode {
    lesson::main(&appendix_special_functions::CHAPTER)
}
