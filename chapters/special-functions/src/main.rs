//! Runs the appendix on the bits of the special functions; `--help` lists the options.

fn main() -> std::process::ExitCode {
    lesson::main(&appendix_special_functions::CHAPTER)
}
