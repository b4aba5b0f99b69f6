//! The list of chapters, in order.

use lesson::Chapter;

/// Every chapter of the tutorial.
pub const CHAPTERS: &[Chapter] = &[
    // chapters, from chapters/SUMMARY.md by cargo xtask chapters: catalogue
    ch01_sequential_loop::CHAPTER,
    ch02_two_threads::CHAPTER,
    ch03_matrix_form::CHAPTER,
    ch04_gradient::CHAPTER,
    ch05_ref_kernel::CHAPTER,
    ch06_tile_kernel::CHAPTER,
    ch07_pipe_kernel::CHAPTER,
    ch08_reverse_and_backward::CHAPTER,
    ch09_loads_and_stores::CHAPTER,
    ch10_speed_of_memory::CHAPTER,
    ch11_tuning::CHAPTER,
    ch12_one_long_sequence::CHAPTER,
    ch13_mamba::CHAPTER,
    ch14_fused_scan::CHAPTER,
    ch15_log_space::CHAPTER,
    ch16_gallery::CHAPTER,
    ch17_several_gpus::CHAPTER,
    ch18_back_to_pytorch::CHAPTER,
    // end of chapters
];

/// Selects chapters by number (`3`, `03`) or folder (`03-matrix-form`); all of them if no name is
/// given.
///
/// # Errors
///
/// Returns an error if there is no such chapter.
pub fn select(names: &[String]) -> lesson::Result<Vec<Chapter>> {
    if names.is_empty() {
        return Ok(CHAPTERS.to_vec());
    }
    names.iter().map(|name| find(name)).collect()
}

fn find(name: &str) -> lesson::Result<Chapter> {
    let matches = |chapter: &&Chapter| name.parse() == Ok(chapter.number) || name == chapter.slug;
    CHAPTERS
        .iter()
        .find(matches)
        .copied()
        .ok_or_else(|| format!("there is no chapter {name}; `list` names all chapters").into())
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn chapters_are_found_by_number_and_folder() {
        for name in ["3", "03", "03-matrix-form"] {
            assert_eq!(find(name).map(|chapter| chapter.number).ok(), Some(3));
        }
        for name in ["0", "99", "-1", "matrix", ""] {
            assert!(find(name).is_err(), "{name}");
        }
    }
}
