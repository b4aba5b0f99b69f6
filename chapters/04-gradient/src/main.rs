//! Runs chapter 04; `--help` lists the options.

fn main() -> std::process::ExitCode {
    lesson::main(&ch04_gradient::CHAPTER)
}
