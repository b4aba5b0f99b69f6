//! Runs chapter 11; `--help` lists the options.

fn main() -> std::process::ExitCode {
    linrec::lesson::main(&ch11_mamba::CHAPTER)
}
