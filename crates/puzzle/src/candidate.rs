//! Answers, which fill the hole of a puzzle.

/// A text for the hole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The name of the answer and of its PTX: `skeleton`, `solution`, or the name of a mistake.
    pub name: String,
    /// The lines in the hole, with their line ends.
    pub hole: String,
    /// The kind of answer.
    pub kind: Kind,
}

/// The kind of a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// The text that is in the hole at first.
    Skeleton,
    /// An answer that reaches the goal.
    Solution,
    /// An answer with a mistake that a reader could make.
    Wrong {
        /// Words that the verdict contains.
        says: Vec<String>,
        /// The reason why it is wrong, for readers who have chosen it.
        why: String,
    },
}

/// The marks before and after a hole in a kernel's source. The question follows the first mark.
const BEGIN: &str = "// YOUR PART: ";
const END: &str = "// END OF YOUR PART";

/// A source, cut at its hole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cut {
    /// The lines up to the first mark, including it.
    pub(crate) before: String,
    pub(crate) hole: String,
    /// The lines from the second mark on.
    pub(crate) after: String,
    pub(crate) question: String,
}

impl Cut {
    /// Cuts a source at its two marks.
    pub(crate) fn at_marks(source: &str) -> Result<Cut, String> {
        let once = |mark: &str| match source.matches(mark).count() {
            1 => Ok(()),
            count => Err(format!("the mark `{}` is there {count} times and not once", mark.trim())),
        };
        once(BEGIN)?;
        once(END)?;
        let lines: Vec<&str> = source.split_inclusive('\n').collect();
        let at = |mark: &str| lines.iter().position(|line| line.contains(mark)).unwrap_or(0);
        let (begin, end) = (at(BEGIN), at(END));
        if end < begin {
            return Err(String::from("the hole ends before it begins"));
        }
        let question = lines[begin].split_once(BEGIN).map_or("", |(_, question)| question.trim());
        Ok(Cut {
            before: lines[..=begin].concat(),
            hole: lines[begin + 1..end].concat(),
            after: lines[end..].concat(),
            question: question.to_owned(),
        })
    }
}

/// Returns true if two sources differ only in the blanks of their lines. Messages about both then
/// name the same lines.
pub(crate) fn same(one: &str, other: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        lines.collect()
    };
    let (mut one, mut other) = (words(one), words(other));
    for lines in [&mut one, &mut other] {
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
    }
    one == other
}
