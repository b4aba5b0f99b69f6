//! Runs chapter 05; `--help` lists the options.

fn main() -> std::process::ExitCode {
    lesson::main(&ch05_ref_kernel::CHAPTER)
}
