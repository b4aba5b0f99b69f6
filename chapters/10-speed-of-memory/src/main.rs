//! Runs chapter 10; `--help` lists the options.

fn main() -> std::process::ExitCode {
    lesson::main(&ch10_speed_of_memory::CHAPTER)
}
