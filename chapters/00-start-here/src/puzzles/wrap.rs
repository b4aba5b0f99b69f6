//! Wraps paragraphs for a terminal.

/// The width of the lines of a puzzle's task.
const WIDTH: usize = 120;

/// Wraps a paragraph to the width of a puzzle's task.
pub fn wrapped(paragraph: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in paragraph.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::{WIDTH, wrapped};

    #[test]
    fn lines_are_filled_and_no_word_is_lost() {
        let paragraph = "one  and\nanother ".repeat(20);
        let lines = wrapped(&paragraph);
        assert!(lines.split_whitespace().eq(paragraph.split_whitespace()));
        let lengths: Vec<usize> = lines.lines().map(|line| line.chars().count()).collect();
        let (last, full) = lengths.split_last().expect("some lines");
        assert!(*last <= WIDTH && full.iter().all(|length| (WIDTH - 8..=WIDTH).contains(length)));
        assert_eq!(wrapped(" "), "");
    }
}
