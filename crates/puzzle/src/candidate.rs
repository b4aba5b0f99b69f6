//! What may be put into a hole.

/// A text for the hole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its name, that of its PTX: `skeleton`, `solution`, or what is wrong with it.
    pub name: String,
    /// The lines that stand in the hole, with their line ends.
    pub hole: String,
    /// Which kind it is.
    pub kind: Kind,
}

/// What a candidate is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// What stands in the hole at first.
    Skeleton,
    /// It reaches the goal.
    Solution,
    /// A real fault.
    Wrong {
        /// Words that are said of it.
        says: Vec<String>,
        /// Why it is wrong, for those who have chosen it.
        why: String,
    },
}

/// Where a hole begins and ends in a kernel's source; behind the first mark is the question.
const BEGIN: &str = "// YOUR PART: ";
const END: &str = "// END OF YOUR PART";

/// A source, cut at its hole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Up to the line of the first mark, this included.
    pub(crate) before: String,
    pub(crate) hole: String,
    /// From the line of the second mark on.
    pub(crate) after: String,
    pub(crate) question: String,
}

impl Cut {
    /// Cuts a source at its two marks.
    pub(crate) fn at_marks(source: &str) -> Result<Cut, String> {
        let once = |mark: &str| match source.matches(mark).count() {
            1 => Ok(()),
            count => {
                Err(format!("the mark `{}` stands there {count} times and not once", mark.trim()))
            }
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

/// Whether two sources differ in blanks alone, line by line, so that the lines that messages name
/// are the same.
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
