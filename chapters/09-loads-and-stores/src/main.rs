//! Runs chapter 09; `--help` lists the options.

fn main() -> std::process::ExitCode {
    lesson::main(&ch09_loads_and_stores::CHAPTER)
}
