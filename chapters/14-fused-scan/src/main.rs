//! Runs chapter 14; `--help` lists the options.

fn main() -> std::process::ExitCode {
    lesson::main(&ch14_fused_scan::CHAPTER)
}
