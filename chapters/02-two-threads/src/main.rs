//! Runs chapter 02; `--help` lists the options.

fn main() -> std::process::ExitCode {
    lesson::main(&ch02_two_threads::CHAPTER)
}
