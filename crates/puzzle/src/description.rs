//! A puzzle as its folder describes it, in `puzzle.toml` and `puzzle.cu`.
//!
//! A [`Description`] has the form of `puzzle.toml`, from which serde reads it; a page of the book
//! delivers the same as JSON. [`Puzzle::new`] joins it with the kernel, which it cuts at the marks
//! of its hole, and checks both. The tests `descriptions` in `tests/suite.rs` read every folder and
//! hold the errors for mistakes.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use linrec::kernels::{Program, Ptx};
use serde::Deserialize;

use crate::candidate::{Candidate, Cut, Kind, same};
use crate::cases::size;
use crate::count::Limit;
use crate::problem::{Computes, Problem};

/// A kernel with one hole.
#[derive(Debug, Clone)]
pub struct Puzzle {
    /// Its number, from 1.
    pub number: u32,
    /// Its name without the number: `level-3`.
    pub name: String,
    /// Its folder in `puzzles/`: `05-level-3`.
    pub folder: String,
    /// Its title, for a heading.
    pub title: String,
    /// The folder of the chapter that it belongs to: `06-tile-kernel`.
    pub chapter: String,
    /// The lesson of the puzzle, in a few words.
    pub teaches: String,
    /// The task, in paragraphs.
    pub task: String,
    /// Hints, from a question up to nearly the answer.
    pub hints: Vec<String>,
    /// The launch of the kernel.
    pub launch: Launch,
    /// The goal that it must reach in addition to right outputs.
    pub goal: Goal,
    /// The reason why the solution is right, in a sentence or two.
    pub because: String,
    pub(crate) problem: Problem,
    pub(crate) cut: Cut,
    pub(crate) remarks: Vec<Remark>,
    candidates: Vec<Candidate>,
    modules: BTreeMap<String, Ptx>,
}

/// The launch of a kernel.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// The number of threads in a block.
    pub threads: u32,
    /// The number of sequences that a block computes.
    #[serde(default = "one")]
    pub seqs_per_block: u32,
    /// The number of steps of a sequence that a block computes, if not all of them.
    pub steps_per_block: Option<u32>,
    /// True if blocks wait for each other.
    #[serde(default)]
    pub cooperative: bool,
}

fn one() -> u32 {
    1
}

/// The goal that a kernel must reach in addition to right outputs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// The size of the launch that is counted: the number of sequences, and their length.
    #[serde(default)]
    pub size: [usize; 2],
    /// The limits for what is counted.
    #[serde(default)]
    pub counts: Vec<Limit>,
    /// True if the size is the size of plain arrays, and not of sequences.
    #[serde(skip)]
    of_arrays: bool,
}

/// `at most 8 barriers (1 sequence of 1000 steps)`, or `right outputs` if nothing is counted.
impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.counts.is_empty() {
            return f.write_str("right outputs");
        }
        let counts: Vec<_> = self.counts.iter().map(ToString::to_string).collect();
        write!(f, "{} ({})", counts.join("; "), size(self.size, self.of_arrays))
    }
}

/// The contents of `puzzle.toml`, read from there or from another format.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    title: String,
    chapter: String,
    teaches: String,
    task: String,
    hints: Vec<String>,
    launch: Launch,
    problem: Problem,
    #[serde(default)]
    goal: Goal,
    solution: Solution,
    #[serde(default, rename = "remark")]
    remarks: Vec<Remark>,
    wrong: Vec<Wrong>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Solution {
    hole: String,
    because: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wrong {
    name: String,
    hole: String,
    says: Vec<String>,
    why: String,
}

/// A remark for answers whose verdict contains certain words.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Remark {
    /// Words that must all be in the verdict.
    #[serde(default)]
    pub(crate) finding: Vec<String>,
    /// Words of which one must be in the hole, if the list is not empty.
    #[serde(default)]
    pub(crate) hole: Vec<String>,
    /// True if a wrong answer with the same verdict, if there is one, is shown instead.
    #[serde(default)]
    pub(crate) last: bool,
    pub(crate) says: String,
}

impl Puzzle {
    /// Reads the puzzle of a folder with this name (`05-level-3`) and these files, which may have
    /// the line ends of Windows.
    ///
    /// # Errors
    ///
    /// Returns the mistake in the name or the files.
    #[cfg(feature = "folders")]
    pub fn parse(folder: &str, toml: &str, cu: &str) -> Result<Puzzle, String> {
        let description = toml::from_str(&toml.replace("\r\n", "\n"));
        Puzzle::new(folder, description.map_err(|error| format!("puzzle.toml: {error}"))?, cu)
    }

    /// Makes the puzzle of a folder with this name from its description and its kernel `cu`.
    ///
    /// # Errors
    ///
    /// Returns the mistake in the name, the marks of the kernel or the names of the answers.
    pub fn new(folder: &str, read: Description, cu: &str) -> Result<Puzzle, String> {
        let named =
            folder.split_once('-').and_then(|(number, name)| Some((number.parse().ok()?, name)));
        let (number, name) =
            named.ok_or("the folder's name is not a number and a name, as in `05-level-3`")?;
        let cut = Cut::at_marks(&cu.replace("\r\n", "\n"))
            .map_err(|error| format!("puzzle.cu: {error}"))?;
        let Solution { hole, because } = read.solution;
        let mut candidates = vec![
            Candidate { name: "skeleton".into(), hole: cut.hole.clone(), kind: Kind::Skeleton },
            Candidate { name: "solution".into(), hole, kind: Kind::Solution },
        ];
        for Wrong { name, hole, says, why } in read.wrong {
            let why = why.trim().to_owned();
            candidates.push(Candidate { name, hole, kind: Kind::Wrong { says, why } });
        }
        let mut names = HashSet::new();
        if let Some(twice) = candidates.iter().find(|candidate| !names.insert(&candidate.name)) {
            return Err(format!("puzzle.toml: two answers have the name {}", twice.name));
        }
        Ok(Puzzle {
            number,
            name: name.to_owned(),
            folder: folder.to_owned(),
            title: read.title,
            chapter: read.chapter,
            teaches: read.teaches,
            task: read.task.trim().to_owned(),
            hints: read.hints.iter().map(|hint| hint.trim().to_owned()).collect(),
            launch: read.launch,
            goal: Goal { of_arrays: read.problem.computes == Computes::Sum, ..read.goal },
            because: because.trim().to_owned(),
            problem: read.problem,
            cut,
            remarks: read.remarks,
            candidates,
            modules: BTreeMap::new(),
        })
    }

    /// Adds the PTX of its answers, by their names.
    pub fn with_modules(mut self, modules: BTreeMap<String, Ptx>) -> Puzzle {
        self.modules = modules;
        self
    }

    /// Returns the kernel's name in C++.
    pub fn entry(&self) -> String {
        self.name.replace('-', "_")
    }

    /// Returns the question at the hole.
    pub fn question(&self) -> &str {
        &self.cut.question
    }

    /// Returns the number of lines above the hole.
    pub fn lines_above(&self) -> usize {
        self.cut.before.lines().count()
    }

    /// Returns all answers: the initial text of the hole, the solution, and the wrong answers.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// Returns all answers to choose from: the initial text of the hole, and then the others in a
    /// fixed order that reveals nothing.
    pub fn choices(&self) -> Vec<&Candidate> {
        let hash = |candidate: &Candidate| {
            let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            let name = candidate.name.bytes().chain(self.folder.bytes());
            name.fold(0xcbf2_9ce4_8422_2325, mix)
        };
        let mut choices: Vec<&Candidate> = self.candidates.iter().collect();
        choices[1..].sort_by_key(|candidate| hash(candidate));
        choices
    }

    /// Returns the answer with this name.
    pub fn candidate(&self, name: &str) -> Option<&Candidate> {
        self.candidates.iter().find(|candidate| candidate.name == name)
    }

    /// Returns the kernel with this text in its hole.
    pub fn source(&self, hole: &str) -> String {
        [&self.cut.before, hole, &self.cut.after].concat()
    }

    /// Returns the kernel with the initial text in its hole.
    pub fn skeleton(&self) -> String {
        self.source(&self.cut.hole)
    }

    /// Returns the answer whose kernel equals this source, apart from blanks.
    pub fn same(&self, source: &str) -> Option<&Candidate> {
        self.candidates.iter().find(|candidate| same(&self.source(&candidate.hole), source))
    }

    /// Returns the text in the hole of a source, if it has the two marks of a hole.
    pub fn hole(source: &str) -> Option<String> {
        Cut::at_marks(&source.replace("\r\n", "\n")).ok().map(|cut| cut.hole)
    }

    /// Returns the lines of the two marks around the hole of a source, counted from 1.
    pub fn marks(source: &str) -> Option<(usize, usize)> {
        let cut = Cut::at_marks(&source.replace("\r\n", "\n")).ok()?;
        let begin = cut.before.lines().count();
        Some((begin, begin + cut.hole.lines().count() + 1))
    }

    /// Returns true if a source with two marks differs from the puzzle's kernel outside of the
    /// marks, in more than blanks.
    pub fn is_changed_outside(&self, source: &str) -> bool {
        let cut = Cut::at_marks(&source.replace("\r\n", "\n"));
        cut.is_ok_and(|cut| {
            !same(&cut.before, &self.cut.before) || !same(&cut.after, &self.cut.after)
        })
    }

    /// Returns the program of a source for NVRTC, with the name of the file in messages.
    pub fn program(&self, file: &str, source: String) -> Program {
        Program::new(file, source).with_entries([self.entry()])
    }

    /// Returns the program of an answer for NVRTC.
    pub fn program_of(&self, candidate: &Candidate) -> Program {
        self.program(&format!("puzzles/{}/puzzle.cu", self.folder), self.source(&candidate.hole))
    }

    /// Returns the PTX of the answer with this name, if the answer exists and is compiled.
    pub fn ptx(&self, name: &str) -> Option<Ptx> {
        self.modules.get(name).cloned()
    }

    /// Returns the names of the compiled answers.
    pub fn compiled(&self) -> impl Iterator<Item = &str> {
        self.modules.keys().map(String::as_str)
    }
}
