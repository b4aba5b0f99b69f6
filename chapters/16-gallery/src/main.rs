//! Runs chapter 16; `--help` lists the options.

fn main() -> std::process::ExitCode {
    lesson::main(&ch16_gallery::CHAPTER)
}
