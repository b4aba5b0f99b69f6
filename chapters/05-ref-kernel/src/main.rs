//! Runs chapter 05; `--help` lists the options.

fn main() -> std::process::ExitCode {
    linrec::lesson::main(&ch05_ref_kernel::CHAPTER)
}
