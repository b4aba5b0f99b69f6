//! Runs chapter 06; `--help` lists the options.

fn main() -> std::process::ExitCode {
    lesson::main(&ch06_tile_kernel::CHAPTER)
}
