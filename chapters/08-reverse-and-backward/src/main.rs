//! Runs chapter 08; `--help` lists the options.

fn main() -> std::process::ExitCode {
    lesson::main(&ch08_reverse_and_backward::CHAPTER)
}
