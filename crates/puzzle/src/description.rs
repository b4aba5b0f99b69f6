//! `puzzle.toml` and `puzzle.cu`: a puzzle as its folder describes it.

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
    /// Its name, without the number: `level-3`.
    pub name: String,
    /// Its folder in `puzzles/`: `05-level-3`.
    pub folder: String,
    /// Its title, as a heading has it.
    pub title: String,
    /// The folder of the chapter that it belongs to: `06-tile-kernel`.
    pub chapter: String,
    /// What one learns by it, in a few words.
    pub teaches: String,
    /// What is to be done, in paragraphs.
    pub task: String,
    /// Hints, from a question to nearly the answer.
    pub hints: Vec<String>,
    /// How the kernel is launched.
    pub launch: Launch,
    /// What it has to reach beside right outputs.
    pub goal: Goal,
    /// The solution, why it is right, in a sentence or two.
    pub because: String,
    pub(crate) problem: Problem,
    pub(crate) cut: Cut,
    pub(crate) remarks: Vec<Remark>,
    candidates: Vec<Candidate>,
    modules: BTreeMap<String, Ptx>,
}

/// How a kernel is launched.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// Threads in a block.
    pub threads: u32,
    /// Sequences that a block computes.
    #[serde(default = "one")]
    pub seqs_per_block: u32,
    /// Steps of a sequence that a block computes, if not all of them.
    pub steps_per_block: Option<u32>,
    /// Whether blocks wait for each other.
    #[serde(default)]
    pub cooperative: bool,
}

fn one() -> u32 {
    1
}

/// What a kernel has to reach beside right outputs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// The launch at which it is counted: the number of sequences, and their length.
    #[serde(default)]
    pub size: [usize; 2],
    /// What is counted.
    #[serde(default)]
    pub counts: Vec<Limit>,
    /// Whether the size is one of arrays, and not of sequences.
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

/// What `puzzle.toml` says, as it is read from there or from another form of the same.
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

/// What is said where words are in what was found, whatever the answer is.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Remark {
    /// All of them are in what was found.
    #[serde(default)]
    pub(crate) finding: Vec<String>,
    /// One of them, if there are any, is in the hole.
    #[serde(default)]
    pub(crate) hole: Vec<String>,
    /// Whether a wrong answer that does the same is told of first.
    #[serde(default)]
    pub(crate) last: bool,
    pub(crate) says: String,
}

impl Puzzle {
    /// The puzzle of a folder with this name (`05-level-3`) and these files; their line ends may be
    /// those of Windows.
    ///
    /// # Errors
    ///
    /// What is wrong with the name or the files.
    #[cfg(feature = "folders")]
    pub fn parse(folder: &str, toml: &str, cu: &str) -> Result<Puzzle, String> {
        let description = toml::from_str(&toml.replace("\r\n", "\n"));
        Puzzle::new(folder, description.map_err(|error| format!("puzzle.toml: {error}"))?, cu)
    }

    /// The puzzle of a folder with this name, as it is described, and the kernel with its marks.
    ///
    /// # Errors
    ///
    /// What is wrong with the name, the kernel or the names of the answers.
    pub fn new(folder: &str, read: Description, cu: &str) -> Result<Puzzle, String> {
        let named =
            folder.split_once('-').and_then(|(number, name)| Some((number.parse().ok()?, name)));
        let (number, name) =
            named.ok_or("the folder's name is no number and a name, as in `05-level-3`")?;
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

    /// The puzzle with the PTX of its answers, by their names.
    pub fn with_modules(mut self, modules: BTreeMap<String, Ptx>) -> Puzzle {
        self.modules = modules;
        self
    }

    /// The kernel's name in C++.
    pub fn entry(&self) -> String {
        self.name.replace('-', "_")
    }

    /// The question that stands at the hole.
    pub fn question(&self) -> &str {
        &self.cut.question
    }

    /// How many lines of the kernel stand above the hole.
    pub fn lines_above(&self) -> usize {
        self.cut.before.lines().count()
    }

    /// All that may be put into the hole, what stands there at first and the solution before the
    /// wrong answers.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// All that may be put into the hole, to choose from: what stands there at first, and then the
    /// others in an order that is always the same and says nothing of them.
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

    /// The answer with this name.
    pub fn candidate(&self, name: &str) -> Option<&Candidate> {
        self.candidates.iter().find(|candidate| candidate.name == name)
    }

    /// The kernel with this text in its hole.
    pub fn source(&self, hole: &str) -> String {
        [&self.cut.before, hole, &self.cut.after].concat()
    }

    /// The kernel as the reader gets it.
    pub fn skeleton(&self) -> String {
        self.source(&self.cut.hole)
    }

    /// The answer that a source is, but for blanks.
    pub fn same(&self, source: &str) -> Option<&Candidate> {
        self.candidates.iter().find(|candidate| same(&self.source(&candidate.hole), source))
    }

    /// What stands in the hole of a source, if it has the two marks of one.
    pub fn hole(source: &str) -> Option<String> {
        Cut::at_marks(&source.replace("\r\n", "\n")).ok().map(|cut| cut.hole)
    }

    /// The lines of a source between which its hole lies, the two marks, counted from 1.
    pub fn marks(source: &str) -> Option<(usize, usize)> {
        let cut = Cut::at_marks(&source.replace("\r\n", "\n")).ok()?;
        let begin = cut.before.lines().count();
        Some((begin, begin + cut.hole.lines().count() + 1))
    }

    /// Whether a source with two marks differs from the puzzle's outside of them, by more than
    /// blanks.
    pub fn is_changed_outside(&self, source: &str) -> bool {
        let cut = Cut::at_marks(&source.replace("\r\n", "\n"));
        cut.is_ok_and(|cut| {
            !same(&cut.before, &self.cut.before) || !same(&cut.after, &self.cut.after)
        })
    }

    /// What NVRTC is asked to compile: a source, under the name that messages are to have for it.
    pub fn program(&self, file: &str, source: String) -> Program {
        Program::new(file, source).with_entries([self.entry()])
    }

    /// What NVRTC is asked to compile for the PTX of an answer.
    pub fn program_of(&self, candidate: &Candidate) -> Program {
        self.program(&format!("puzzles/{}/puzzle.cu", self.folder), self.source(&candidate.hole))
    }

    /// The PTX of the answer with this name, if there is such a one and it is compiled.
    pub fn ptx(&self, name: &str) -> Option<Ptx> {
        self.modules.get(name).cloned()
    }

    /// The names of the answers that are compiled.
    pub fn compiled(&self) -> impl Iterator<Item = &str> {
        self.modules.keys().map(String::as_str)
    }
}
