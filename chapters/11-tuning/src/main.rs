//! Runs chapter 11; `--help` lists the options.

fn main() -> std::process::ExitCode {
    lesson::main(&ch11_tuning::CHAPTER)
}
