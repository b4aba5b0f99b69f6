//! Runs chapter 09; `--help` lists the options.

fn main() -> std::process::ExitCode {
    linrec::lesson::main(&ch09_tuning::CHAPTER)
}
