//! Random correct programs. Their results are defined to the last bit, so they must be the same on
//! every machine and in every way of running them.
//!
//! A program is a tree of statements over eight registers of each class, all of which have a value
//! from the beginning. So every statement is correct in any place, and a program stays correct when
//! statements are left out. This is how a program on which two machines differ is made short.
//!
//! - `forms`: single instructions, which come from `tests/data/every_form.ptx`;
//! - `together`: operations between lanes, warps and the threads of a block;
//! - `frame`: the kernel around the statements, with its inputs and results;
//! - `run`: the results on the emulator.
//!
//! What PTX leaves open does not occur or does not show: the bits of NaN, quotients by zero,
//! multiplications and sums that a compiler may fuse, and the order of lanes that do not wait for
//! each other. The test `programs` of `simt-suite` runs them in several ways on the emulator, and
//! the example `agreement` in the workspace around this one compares the emulator with a GPU.

mod forms;
mod frame;
mod run;
mod together;

use std::collections::BTreeSet;

use super::parser::Random;
pub use frame::{BLOCKS, THREADS, WORDS, word_name};
pub use run::{Way, inputs, results};

/// The number of registers of each class that statements use.
const REGISTERS: usize = 8;
/// The largest depth of statements within each other.
const DEPTH: usize = 3;

/// A program: one kernel.
#[derive(Debug, Clone)]
pub struct Program {
    seed: u64,
    statements: Vec<Statement>,
    count: u32,
}

/// A statement with its number.
#[derive(Debug, Clone)]
struct Statement {
    number: u32,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    /// Instructions, one a line.
    Lines(Vec<String>),
    /// A choice by a predicate, which may differ between lanes.
    If { condition: String, then: Vec<Statement>, or_else: Vec<Statement> },
    /// A loop whose number of rounds is a literal, or the low two bits of a register.
    Loop { rounds: String, body: Vec<Statement> },
    /// Leaves the loop around it, by a predicate.
    Break { condition: String },
}

/// Ways to write the same program.
#[derive(Debug, Clone, Copy, Default)]
pub struct Writing {
    /// The amount by which the numbers of the registers are rotated.
    pub turned: usize,
    /// True if instructions are added whose results nobody reads.
    pub with_dead_code: bool,
    /// True if branches lead to the statements of a choice, and false if they lead over them.
    pub branches_to: bool,
}

/// The place of a statement.
#[derive(Clone, Copy)]
struct Place {
    depth: usize,
    /// True if all lanes of the block get here together.
    together: bool,
    in_loop: bool,
}

impl Program {
    /// Draws the program of a seed.
    pub fn new(seed: u64) -> Program {
        let mut random = Random(seed);
        let mut program = Program { seed, statements: Vec::new(), count: 0 };
        let place = Place { depth: 0, together: true, in_loop: false };
        let length = 8 + random.below(32);
        program.statements = program.draw(place, length, &mut random);
        program
    }

    /// Returns the seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    fn draw(&mut self, place: Place, length: usize, random: &mut Random) -> Vec<Statement> {
        (0..length).map(|_| self.statement(place, random)).collect()
    }

    fn statement(&mut self, place: Place, random: &mut Random) -> Statement {
        let number = self.count;
        self.count += 1;
        let inner = Place { depth: place.depth + 1, ..place };
        let length = 1 + random.below(6);
        let what = match random.below(24) {
            0 | 1 if place.depth < DEPTH => {
                let inner = Place { together: false, ..inner };
                let condition = predicate(random);
                let then = self.draw(inner, length, random);
                let otherwise = if random.below(2) == 0 { 0 } else { 1 + random.below(4) };
                What::If { condition, then, or_else: self.draw(inner, otherwise, random) }
            }
            2 if place.depth < DEPTH => {
                let rounds = (1 + random.below(3)).to_string();
                let inner = Place { in_loop: false, ..inner };
                What::Loop { rounds, body: self.draw(inner, length, random) }
            }
            3 if place.depth < DEPTH => {
                let rounds = format!("%r{}", random.below(REGISTERS));
                let inner = Place { together: false, in_loop: true, ..inner };
                What::Loop { rounds, body: self.draw(inner, length, random) }
            }
            4 if place.in_loop => What::Break { condition: predicate(random) },
            5..=7 if place.together => What::Lines(together::lines(random)),
            _ => What::Lines(forms::lines(random)),
        };
        Statement { number, what }
    }

    /// Returns the statements that can be left out while the program still `is_wrong`.
    pub fn superfluous(&self, mut is_wrong: impl FnMut(&BTreeSet<u32>) -> bool) -> BTreeSet<u32> {
        let mut omitted = BTreeSet::new();
        // Inner statements have larger numbers than the statement around them, and come first.
        for number in (0..self.count).rev() {
            omitted.insert(number);
            if !is_wrong(&omitted) {
                omitted.remove(&number);
            }
        }
        omitted
    }

    /// Returns the text of the statements alone.
    pub fn text(&self, omitted: &BTreeSet<u32>, writing: Writing) -> String {
        let mut writer = Writer {
            text: String::new(),
            writing,
            omitted,
            labels: 0,
            depth: 0,
            dead: Random(self.seed ^ 0xdead),
        };
        writer.statements(&self.statements, "");
        turned(&writer.text, writing.turned)
    }

    /// Returns this program as a kernel, without the `omitted` statements.
    pub fn kernel(&self, name: &str, omitted: &BTreeSet<u32>, writing: Writing) -> String {
        frame::kernel(name, &self.text(omitted, writing), writing)
    }
}

/// Returns a module of such kernels.
pub fn module(kernels: &[String]) -> String {
    format!("{}{}", frame::HEAD, kernels.concat())
}

/// Writes statements as text.
struct Writer<'a> {
    text: String,
    writing: Writing,
    omitted: &'a BTreeSet<u32>,
    labels: u32,
    depth: usize,
    dead: Random,
}

impl Writer<'_> {
    fn line(&mut self, line: &str) {
        self.text += line;
        self.text.push('\n');
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }

    /// Writes statements. `end` is the label behind the loop around them.
    fn statements(&mut self, statements: &[Statement], end: &str) {
        for statement in statements {
            if self.omitted.contains(&statement.number) {
                continue;
            }
            if self.writing.with_dead_code && self.dead.below(2) == 0 {
                // It writes registers that the program does not have. An access to memory could
                // show.
                let lines = forms::lines(&mut self.dead);
                if !lines.iter().any(|line| line.contains('[')) {
                    lines.iter().for_each(|line| self.line(&moved(line, |n| n + REGISTERS)));
                }
            }
            match &statement.what {
                What::Lines(lines) => lines.iter().for_each(|line| self.line(line)),
                What::If { condition, then, or_else } => self.choice(condition, then, or_else, end),
                What::Loop { rounds, body } => self.rounds(rounds, body),
                What::Break { condition } => self.line(&format!("@{condition} bra {end};")),
            }
        }
    }

    fn choice(&mut self, condition: &str, then: &[Statement], or_else: &[Statement], end: &str) {
        let (other, behind) = (self.label(), self.label());
        let opposite = condition.strip_prefix('!').map_or(format!("!{condition}"), str::to_string);
        let (condition, first, second) = match self.writing.branches_to {
            true => (condition, or_else, then),
            false => (&*opposite, then, or_else),
        };
        self.line(&format!("@{condition} bra {other};"));
        self.statements(first, end);
        self.line(&format!("bra {behind};"));
        self.line(&format!("{other}:"));
        self.statements(second, end);
        self.line(&format!("{behind}:"));
    }

    fn rounds(&mut self, rounds: &str, body: &[Statement]) {
        let (begin, end, depth) = (self.label(), self.label(), self.depth);
        match rounds.starts_with('%') {
            true => self.line(&format!("and.b32 %n{depth}, {rounds}, 3;")),
            false => self.line(&format!("mov.u32 %n{depth}, {rounds};")),
        }
        self.line(&format!("{begin}:"));
        self.depth += 1;
        self.statements(body, &end);
        self.depth = depth;
        self.line(&format!("sub.u32 %n{depth}, %n{depth}, 1;"));
        self.line(&format!("setp.gt.s32 %z, %n{depth}, 0;"));
        self.line(&format!("@%z bra {begin};"));
        self.line(&format!("{end}:"));
    }
}

/// `%p3` or `!%p3`.
fn predicate(random: &mut Random) -> String {
    let not = if random.below(2) == 0 { "!" } else { "" };
    format!("{not}%p{}", random.below(REGISTERS))
}

/// Returns instructions with the registers of each class rotated.
fn turned(text: &str, by: usize) -> String {
    moved(text, |number| if number < REGISTERS { (number + by) % REGISTERS } else { number })
}

/// Returns instructions whose registers have other numbers. A register is a class of [`CLASSES`]
/// and a number.
fn moved(text: &str, number: impl Fn(usize) -> usize) -> String {
    let mut moved = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        moved += &rest[..at];
        rest = &rest[at..];
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '%' || c == '.';
        let name = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
        let digits = name.find(|c: char| c.is_ascii_digit()).unwrap_or(name.len());
        let (class, value) = name.split_at(digits);
        match value.parse() {
            Ok(value) if CLASSES.contains(&class) => moved += &format!("{class}{}", number(value)),
            _ => moved += name,
        }
        rest = &rest[name.len()..];
    }
    moved + rest
}

/// The classes of registers: predicates, integers and floats. 16-bit floats are in `%rs`, and pairs
/// of them in `%r`.
const CLASSES: [&str; 6] = ["%p", "%rs", "%r", "%rd", "%f", "%fd"];
