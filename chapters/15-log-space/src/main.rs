//! Runs chapter 15; `--help` lists the options.

fn main() -> std::process::ExitCode {
    lesson::main(&ch15_log_space::CHAPTER)
}
