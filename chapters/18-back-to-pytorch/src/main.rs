//! Runs chapter 18; `--help` lists the options.

fn main() -> std::process::ExitCode {
    lesson::main(&ch18_back_to_pytorch::CHAPTER)
}
