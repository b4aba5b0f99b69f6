//! The format of the files in `tests/cases`, which `cases` runs. A file is PTX with named cases:
//!
//! ```text
//! // case: write_after_read
//! // Only warp 1 writes, over what warp 0 has read.
//! // threads: 64
//! // with BARRIER:
//! // expect: Race at <st.shared.b32>, block 0, warp 1, lane 0: writes 4 bytes at offset 0 of
//! //   shared memory, which lane 0 of warp 0 reads at <ld.shared>: no barrier lies between the two
//! // with BARRIER: bar.sync 0;
//! // expect: runs
//! ld.shared.u32 %r5, [%r4];
//! $BARRIER
//! ...
//! ```
//!
//! Comments are prose, except for lines of the form `// key: value`. A value goes on in the next
//! lines if they begin with three spaces. The PTX is a module with a kernel `k`, or the body of the
//! kernel that `kernel::source` writes. The keys are:
//!
//! - `case: NAME` begins a case. A case without PTX has the PTX of the case above it.
//! - `expect: OUTCOME` has one of these outcomes:
//!   - `runs`, or `accepted` for a kernel that is not run.
//!   - `outputs = 0..31, 7*4` or `outputs[64] = 42`: the words of `b`, or its words from 64 on.
//!     `a..b` counts up or down, `a..b/3` in steps of 3, and `7*4` is 7, 7, 7, 7.
//!   - `barriers = 2`: a counter. Its name is `instructions`, `thread_instructions`,
//!     `divergent_branches`, `barriers`, `blocks`, `printed` (the text), `shared_bytes` (of the
//!     kernel), or the API's name of a class of instructions or a kind of access: `GlobalStore` for
//!     the requests, and `GlobalStore bytes`, `sectors`, `wavefronts` or `conflicts`.
//!   - `refused at <TEXT>: MESSAGE` if the parser refuses the kernel, and `module refused at …` if
//!     it refuses the module.
//!   - `Race at <TEXT>, block 0, warp 1, lanes 0-31: MESSAGE`: the kind of the report, and then the
//!     report. `<TEXT>` is the number of the first line that contains the text, and `...` any text.
//! - `threads: 64`, `blocks: 2`, `block: 4 4 64` and `grid: 2 3 1` are the sizes of the launch,
//!   `shared: 128` is its number of bytes of dynamic shared memory, and `instructions: 1000` and
//!   `host: 65536` are its bounds. `zeros: 1024` is the number of bytes of `b` that are zero
//!   before it. `run: alone together` are the ways to run it, by default also `stepped` and
//!   `stepped_together`. After the first expectation such a line is only for the next one.
//! - `let NAME: TEXT`, above the first case: `$NAME` is the text in all cases.
//! - `with NAME: TEXT | TEXT`: the next expectation is for each of the texts as `$NAME`. Repeated
//!   lines add texts, several names give all combinations, and a single `$NAME` may be a list.
//! - `body:` separates declarations of the module from the body of the kernel.
//! - `refused:` makes each line of the case a statement that the parser refuses. The message is in
//!   the comment behind it or in the lines below it.

use std::ops::Range;
use std::str::FromStr;

use crate::kernel::{self, HEAD, Setup};

pub type Result<T> = std::result::Result<T, String>;

/// A name and a text that is written for it.
pub type Name = (String, String);

#[derive(Clone, Default)]
pub struct Case {
    pub name: String,
    pub line: usize,
    pub launch: Launch,
    pub declarations: Option<String>,
    pub ptx: String,
    pub variants: Vec<Variants>,
}

#[derive(Clone)]
pub struct Launch {
    pub setup: Setup,
    pub ways: Vec<String>,
}

impl Default for Launch {
    fn default() -> Launch {
        let ways = ["alone", "together", "stepped", "stepped_together"];
        Launch { setup: Setup::default(), ways: ways.map(String::from).to_vec() }
    }
}

/// Texts for names, and what is expected of each combination of them.
#[derive(Clone)]
pub struct Variants {
    pub with: Vec<(String, Vec<String>)>,
    pub launch: Launch,
    pub expected: Vec<Expected>,
}

#[derive(Clone)]
pub struct Expected {
    /// The lines of the file that it takes, from 0.
    pub lines: Range<usize>,
    pub text: String,
}

/// Reads the cases of a file.
pub fn parse(text: &str) -> Result<Vec<Case>> {
    let mut reader = Reader { lines: text.lines().collect(), ..Reader::default() };
    for number in 0..reader.lines.len() {
        reader.line(number).map_err(|error| format!("line {}: {error}", number + 1))?;
    }
    reader.finish()?;
    if reader.cases.is_empty() {
        return Err("line 1: there is no case".to_string());
    }
    for variants in reader.cases.iter_mut().flat_map(|case| &mut case.variants) {
        let lets = reader.lets.iter().map(|(name, text)| (name.clone(), vec![text.clone()]));
        variants.with.extend(lets);
    }
    Ok(reader.cases)
}

#[derive(Default)]
struct Reader<'a> {
    lines: Vec<&'a str>,
    cases: Vec<Case>,
    lets: Vec<Name>,
    /// The texts and the launch of the next expectation, as far as they have been read.
    with: Vec<(String, Vec<String>)>,
    launch: Option<Launch>,
    /// True if each line of the case is refused.
    is_table: bool,
}

impl Reader<'_> {
    fn line(&mut self, number: usize) -> Result<()> {
        let line = self.lines[number];
        let Some((key, value)) = key(line) else {
            let is_ptx = !line.starts_with("//") && !line.trim().is_empty();
            if let Some(case) = self.cases.last_mut().filter(|_| is_ptx) {
                match self.is_table {
                    true => case.variants.push(refusal(&self.lines, number)?),
                    false => case.ptx += &format!("{}\n", line.trim()),
                }
            }
            return Ok(());
        };
        let more = self.lines[number + 1..].iter().map_while(|line| line.strip_prefix("//   "));
        let value: Vec<&str> = [value].into_iter().chain(more.map(str::trim)).collect();
        let lines = number..number + value.len();
        self.value(key, value.join(" "), lines)
    }

    fn value(&mut self, key: &str, mut value: String, lines: Range<usize>) -> Result<()> {
        let (key, name) = key.split_once(' ').unwrap_or((key, ""));
        if key == "let" && self.cases.is_empty() {
            self.lets.push((name.to_string(), value));
            return Ok(());
        }
        if key == "case" {
            self.finish()?;
            if self.cases.iter().any(|case| case.name == value) {
                return Err("a case above has this name".to_string());
            }
            self.is_table = false;
            self.cases.push(Case { name: value, line: lines.end, ..Case::default() });
            return Ok(());
        }
        let case = self.cases.last_mut().ok_or("a `case` comes first")?;
        match key {
            "with" => {
                let list = self.lets.iter().find(|(name, _)| value.strip_prefix('$') == Some(name));
                value = list.map_or(value, |(_, texts)| texts.clone());
                // The first or the last text may be empty.
                let value = format!(" {value} ");
                let texts = value.split(" | ").map(|text| text.trim().to_string());
                match self.with.iter_mut().find(|(other, _)| other == name) {
                    Some((_, before)) => before.extend(texts),
                    None => self.with.push((name.to_string(), texts.collect())),
                }
            }
            "expect" => {
                let expected = Expected { lines, text: value };
                let is_next = self.with.is_empty() && self.launch.is_none();
                match case.variants.last_mut().filter(|_| is_next) {
                    Some(variants) => variants.expected.push(expected),
                    None => {
                        let launch = self.launch.take().unwrap_or_else(|| case.launch.clone());
                        let with = std::mem::take(&mut self.with);
                        case.variants.push(Variants { with, launch, expected: vec![expected] });
                    }
                }
            }
            "body" => case.declarations = Some(std::mem::take(&mut case.ptx)),
            "refused" => self.is_table = true,
            _ if case.variants.is_empty() && self.with.is_empty() => {
                case.launch.set(key, &value)?;
            }
            _ => self.launch.get_or_insert_with(|| case.launch.clone()).set(key, &value)?,
        }
        Ok(())
    }

    /// Ends a case. If it has no PTX it gets the PTX of the case above it.
    fn finish(&mut self) -> Result<()> {
        let (above, Some(case)) = (self.cases.len().checked_sub(2), self.cases.last()) else {
            return Ok(());
        };
        let fail = |what: &str| Err(format!("line {}: `{}` {what}", case.line, case.name));
        if case.variants.is_empty() {
            return fail("expects nothing");
        }
        if !self.with.is_empty() || self.launch.is_some() {
            return fail("expects nothing of its last lines");
        }
        if let (true, Some(above)) = (case.ptx.is_empty() && case.declarations.is_none(), above) {
            let Case { ptx, declarations, .. } = self.cases[above].clone();
            let case = self.cases.last_mut().expect("it is the last one");
            (case.ptx, case.declarations) = (ptx, declarations);
        }
        Ok(())
    }
}

/// The key and the value of a line `// key: value`, whose key begins with a lower-case word.
fn key(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.strip_prefix("// ")?.split_once(':')?;
    let is_key = |key: &str| {
        let (word, name) = key.split_once(' ').unwrap_or((key, "A"));
        word.bytes().all(|byte| byte.is_ascii_lowercase())
            && !word.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
    };
    is_key(key).then_some((key, value.trim()))
}

/// A statement with the message of its refusal, from the comment behind it or below it.
fn refusal(lines: &[&str], number: usize) -> Result<Variants> {
    let line = lines[number];
    let below = lines[number + 1..].iter().map_while(|line| line.strip_prefix("//   "));
    let (statement, text) = match line.rsplit_once("  // ") {
        Some((statement, message)) => (statement, vec![message]),
        None => (line, below.map(str::trim).collect()),
    };
    let more = if line.len() > statement.len() { 0 } else { text.len() };
    let (statement, text, lines) = (statement.trim(), text.join(" "), number..number + 1 + more);
    if text.is_empty() {
        return Err("no message follows the statement".to_string());
    }
    let text = format!("refused at <$STATEMENT>: {text}");
    let with = vec![("STATEMENT".to_string(), vec![statement.to_string()])];
    Ok(Variants { with, launch: Launch::default(), expected: vec![Expected { lines, text }] })
}

impl Launch {
    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        fn number<N: FromStr>(text: &str) -> Result<N> {
            text.parse().map_err(|_| format!("`{text}` is no number"))
        }
        let extent = |value: &str| -> Result<[u32; 3]> {
            let numbers: Vec<u32> = value.split(' ').map(number).collect::<Result<_>>()?;
            numbers.try_into().map_err(|_| format!("`{value}` is not three numbers"))
        };
        let setup = &mut self.setup;
        match key {
            "threads" => setup.block = [number(value)?, 1, 1],
            "blocks" => setup.grid = [number(value)?, 1, 1],
            "block" => setup.block = extent(value)?,
            "grid" => setup.grid = extent(value)?,
            "shared" => setup.dynamic_shared = number(value)?,
            "instructions" => setup.instructions = number(value)?,
            "host" => setup.host_bytes = number(value)?,
            "zeros" => setup.zeros = number(value)?,
            "run" => self.ways = value.split(' ').map(String::from).collect(),
            _ => return Err(format!("`{key}` is no key")),
        }
        Ok(())
    }
}

impl Case {
    /// The module with a text for each name.
    pub fn source(&self, names: &[Name]) -> String {
        let ptx = if self.ptx.is_empty() && self.declarations.is_none() {
            "$STATEMENT"
        } else {
            &self.ptx
        };
        let ptx = written(ptx, names);
        let declarations = self.declarations.as_ref().map(|text| written(text, names));
        match &declarations {
            _ if ptx.starts_with(".version") => ptx,
            _ if ptx.contains(".entry") => format!("{HEAD}{ptx}"),
            None => kernel::source(&ptx),
            Some(text) => kernel::source(&ptx).replacen(".visible", &format!("{text}.visible"), 1),
        }
    }
}

/// Every combination of the texts.
pub fn combinations(with: &[(String, Vec<String>)]) -> Vec<Vec<Name>> {
    let Some(((name, texts), rest)) = with.split_first() else { return vec![Vec::new()] };
    let rest = combinations(rest);
    let one = |text: &String| {
        let first = (name.clone(), text.clone());
        rest.iter().map(move |rest| [&[first.clone()][..], rest].concat()).collect::<Vec<_>>()
    };
    texts.iter().flat_map(one).collect()
}

/// Writes the texts for their names, the longest name first.
pub fn written(text: &str, names: &[Name]) -> String {
    let mut names: Vec<&Name> = names.iter().collect();
    names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    // A text may contain other names.
    let once = |text: String| {
        names.iter().fold(text, |text, (name, value)| text.replace(&format!("${name}"), value))
    };
    once(once(text.to_string()))
}

/// The words of a list: `5, 0..31, 0..93/3, 7*4`.
pub fn list(text: &str) -> Result<Vec<u32>> {
    let number = |text: &str| text.parse::<u32>().map_err(|_| format!("`{text}` is no number"));
    let mut words = Vec::new();
    for item in text.split(", ") {
        let (ends, step) = item.split_once('/').unwrap_or((item, "1"));
        match (ends.split_once(".."), item.split_once('*')) {
            (Some((first, last)), _) => {
                let (first, last, step) = (number(first)?, number(last)?, number(step)?);
                let count = first.abs_diff(last) / step;
                let at = |i| if last < first { first - i * step } else { first + i * step };
                words.extend((0..=count).map(at));
            }
            (_, Some((value, count))) => {
                words.extend(std::iter::repeat_n(number(value)?, number(count)? as usize));
            }
            _ => words.push(number(item)?),
        }
    }
    Ok(words)
}
