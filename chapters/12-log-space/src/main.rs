//! Runs chapter 12; `--help` lists the options.

fn main() -> std::process::ExitCode {
    linrec::lesson::main(&ch12_log_space::CHAPTER)
}
