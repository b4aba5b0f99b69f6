//! Runs chapter 13; `--help` lists the options.

fn main() -> std::process::ExitCode {
    linrec::lesson::main(&ch13_gallery::CHAPTER)
}
