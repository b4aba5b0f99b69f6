//! Runs chapter 03; `--help` lists the options.

fn main() -> std::process::ExitCode {
    lesson::main(&ch03_matrix_form::CHAPTER)
}
