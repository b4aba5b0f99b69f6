//! Runs chapter 01; `--help` lists the options.

fn main() -> std::process::ExitCode {
    lesson::main(&ch01_sequential_loop::CHAPTER)
}
