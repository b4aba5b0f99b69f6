//! Runs chapter 17; `--help` lists the options.

fn main() -> std::process::ExitCode {
    lesson::main(&ch17_several_gpus::CHAPTER)
}
