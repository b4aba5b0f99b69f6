//! Runs chapter 07; `--help` lists the options.

fn main() -> std::process::ExitCode {
    linrec::lesson::main(&ch07_pipe_kernel::CHAPTER)
}
