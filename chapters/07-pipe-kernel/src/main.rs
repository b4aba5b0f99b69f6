//! Runs chapter 07; `--help` lists the options.

fn main() -> std::process::ExitCode {
    lesson::main(&ch07_pipe_kernel::CHAPTER)
}
