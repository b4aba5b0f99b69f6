//! Runs chapter 12; `--help` lists the options.

fn main() -> std::process::ExitCode {
    lesson::main(&ch12_one_long_sequence::CHAPTER)
}
