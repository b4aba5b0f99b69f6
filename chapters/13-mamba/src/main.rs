//! Runs chapter 13; `--help` lists the options.

fn main() -> std::process::ExitCode {
    lesson::main(&ch13_mamba::CHAPTER)
}
