//! Runs chapter 08; `--help` lists the options.

fn main() -> std::process::ExitCode {
    linrec::lesson::main(&ch08_reverse_and_backward::CHAPTER)
}
