//! Runs the files of PTX in `tests/cases`. Each file has named cases, each case is a test
//! `cases::FILE::NAME`, and a case holds its PTX together with what must come of it, so that
//! both can be read and changed without Rust.
//!
//! A file is PTX. Its comments are prose, except for lines of the form `// key: value`, which
//! continue on the next line behind three spaces:
//!
//! - `case: NAME` begins a case. A case without PTX has the PTX of the case above it.
//! - `expect: OUTCOME` is one of
//!   - `runs`, or `accepted` for a kernel that is not run;
//!   - `outputs = 0..31, 7*4` or `outputs[64] = 42`: the words of `b`, or those from word 64 on.
//!     `a..b` counts up or down, `a..b/3` in steps of 3, and `7*4` is 7, 7, 7, 7;
//!   - `barriers = 2`: a counter: `instructions`, `thread_instructions`, `divergent_branches`,
//!     `barriers`, `blocks`, `printed`, `shared_bytes` of the kernel, or by the API's names a class
//!     of instructions or a kind of access, as `GlobalStore` (requests) or `GlobalStore bytes`
//!     (`sectors`, `wavefronts`, `conflicts`);
//!   - `refused at <TEXT>: MESSAGE`: the parser refuses the kernel, or with `module refused` the
//!     module;
//!   - `Race at <TEXT>, block 0, warp 1, lanes 0-31: MESSAGE`: the report, behind its kind. In both
//!     `<TEXT>` is the number of the first line that contains the text, and `...` is any text.
//! - `threads: 64`, `blocks: 2`, `block: 4 4 64`, `grid: 2 3 1`, `shared: 128` (bytes of dynamic
//!   shared memory), `instructions: 1000`, `host: 65536` (bounds), `zeros: 1024` (bytes of `b` that
//!   are zero before the launch), and `run: alone together` (by default also `stepped`, and
//!   `stepped_together`): the launch. Behind the first expectation it is only that of the next.
//! - `let NAME: TEXT`, above the first case: `$NAME` is the text in all cases.
//! - `with NAME: TEXT | TEXT`: `$NAME` is each of the texts in turn in what the expectations below
//!   are about. Repeated lines add texts; several names give all combinations. A single `$NAME` may
//!   be a list of texts.
//! - `body:` separates declarations of the module from the body of the kernel.
//! - `refused:` every line of the PTX is a statement that the parser refuses, with the message in
//!   the comment behind it or on the lines below it.
//!
//! The PTX is a module (it has an `.entry` named `k`), or the body of the kernel that
//! `kernel::source` writes. `CASES=update` writes the reports that are found over those that were
//! expected.

#[allow(dead_code, reason = "the suite uses all of it")]
mod kernel;

use std::fmt::Write;
use std::path::Path;

use kernel::{Bench, HEAD, Setup};
use libtest_mimic::{Arguments, Failed, Trial};
use simt::{Counters, Module, ParseError, Report, Site};

type Result<T> = std::result::Result<T, String>;

/// A name and a text that is written for it.
type Name = (String, String);

#[derive(Clone, Default)]
struct Case {
    name: String,
    line: usize,
    launch: Launch,
    declarations: Option<String>,
    ptx: String,
    variants: Vec<Variants>,
}

#[derive(Clone)]
struct Launch {
    setup: Setup,
    ways: Vec<String>,
}

impl Default for Launch {
    fn default() -> Launch {
        let ways = ["alone", "together", "stepped", "stepped_together"];
        Launch { setup: Setup::default(), ways: ways.map(String::from).to_vec() }
    }
}

/// Texts for names, and what is expected of each combination of them.
#[derive(Clone)]
struct Variants {
    with: Vec<(String, Vec<String>)>,
    launch: Launch,
    expected: Vec<Expected>,
}

#[derive(Clone)]
struct Expected {
    /// The lines of the file that it takes, from 0.
    lines: std::ops::Range<usize>,
    text: String,
}

/// The result of a launch, or the sentence of its report or refusal.
type Outcome = std::result::Result<Found, String>;

struct Found {
    counters: Counters,
    /// The words of `b`.
    outputs: Vec<u32>,
    shared_bytes: usize,
}

fn parse(text: &str) -> Result<Vec<Case>> {
    let (mut cases, mut lets) = (Vec::<Case>::new(), Vec::new());
    let (mut with, mut launch) = (Vec::new(), None);
    let (mut above, mut refusals) = (Case::default(), false);
    let lines: Vec<&str> = text.lines().collect();
    for (number, line) in lines.iter().enumerate() {
        let fail = |what: &str| format!("line {}: {what}", number + 1);
        let Some((key, value)) = directive(line) else {
            let Some(case) = cases.last_mut() else { continue };
            if line.starts_with("//") || line.trim().is_empty() {
                continue;
            }
            if refusals {
                case.variants.push(refusal(&lines, number).map_err(|error| fail(&error))?);
            } else {
                case.ptx += &format!("{}\n", line.trim());
            }
            continue;
        };
        let (mut value, mut end) = (value.to_string(), number + 1);
        while let Some(more) = lines.get(end).and_then(|line| line.strip_prefix("//   ")) {
            value += &format!(" {}", more.trim());
            end += 1;
        }
        let (key, name) = key.split_once(' ').unwrap_or((key, ""));
        if key == "let" && cases.is_empty() {
            lets.push((name.to_string(), value));
            continue;
        }
        if key == "case" {
            finish(cases.last_mut(), &above)?;
            if cases.iter().any(|case| case.name == value) {
                return Err(fail("a case above has this name"));
            }
            above = cases.last().cloned().unwrap_or_default();
            let inherited = Case { declarations: None, ptx: String::new(), ..Case::default() };
            cases.push(Case { name: value, line: number + 1, ..inherited });
            (with, launch, refusals) = (Vec::new(), None, false);
            continue;
        }
        let case = cases.last_mut().ok_or_else(|| fail("a `case` comes first"))?;
        let list = lets.iter().find(|(name, _)| value.strip_prefix('$') == Some(name));
        value = list.map_or(value, |(_, texts)| texts.clone());
        match key {
            "with" => match with.iter_mut().find(|(other, _)| other == name) {
                Some((_, texts)) => alternatives(texts, &value),
                None => {
                    let mut texts = Vec::new();
                    alternatives(&mut texts, &value);
                    with.push((name.to_string(), texts));
                }
            },
            "expect" => {
                let expected = Expected { lines: number..end, text: value };
                let is_next = with.is_empty() && launch.is_none();
                match case.variants.last_mut().filter(|_| is_next) {
                    Some(variants) => variants.expected.push(expected),
                    None => {
                        let launch = launch.take().unwrap_or_else(|| case.launch.clone());
                        let with = std::mem::take(&mut with);
                        case.variants.push(Variants { with, launch, expected: vec![expected] });
                    }
                }
            }
            "body" => case.declarations = Some(std::mem::take(&mut case.ptx)),
            "refused" => refusals = true,
            _ if case.variants.is_empty() && with.is_empty() => {
                set(&mut case.launch, key, &value).map_err(|error| fail(&error))?;
            }
            _ => {
                let launch = launch.get_or_insert_with(|| case.launch.clone());
                set(launch, key, &value).map_err(|error| fail(&error))?;
            }
        }
    }
    finish(cases.last_mut(), &above)?;
    for case in &mut cases {
        for variants in &mut case.variants {
            variants
                .with
                .extend(lets.iter().map(|(name, text)| (name.clone(), vec![text.clone()])));
        }
    }
    if cases.is_empty() { Err("line 1: there is no case".to_string()) } else { Ok(cases) }
}

/// The key and the value of a line `// key: value`, whose key begins with a lower-case word.
fn directive(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.strip_prefix("// ")?.split_once(':')?;
    let is_key = |key: &str| {
        let (word, name) = key.split_once(' ').unwrap_or((key, "A"));
        word.bytes().all(|byte| byte.is_ascii_lowercase())
            && !word.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
    };
    is_key(key).then_some((key, value.trim()))
}

fn alternatives(texts: &mut Vec<String>, value: &str) {
    // The first or the last text may be empty.
    texts.extend(format!(" {value} ").split(" | ").map(|text| text.trim().to_string()));
}

/// Gives a case without PTX that of the case above it.
fn finish(case: Option<&mut Case>, above: &Case) -> Result<()> {
    let Some(case) = case else { return Ok(()) };
    if case.variants.is_empty() {
        return Err(format!("line {}: `{}` expects nothing", case.line, case.name));
    }
    if case.ptx.is_empty() && case.declarations.is_none() {
        (case.ptx, case.declarations) = (above.ptx.clone(), above.declarations.clone());
    }
    Ok(())
}

/// A statement with the message of its refusal, from the comment behind it or below it.
fn refusal(lines: &[&str], number: usize) -> Result<Variants> {
    let line = lines[number];
    let below = lines[number + 1..].iter().map_while(|line| line.strip_prefix("//   "));
    let (statement, text, lines) = match line.rsplit_once("  // ") {
        Some((statement, message)) => (statement.trim(), message.to_string(), number..number),
        None => {
            let text: Vec<&str> = below.map(str::trim).collect();
            let end = number + 1 + text.len();
            (line.trim(), text.join(" "), number + 1..end)
        }
    };
    if text.is_empty() {
        return Err("no message follows the statement".to_string());
    }
    let text = format!("refused at <$STATEMENT>: {text}");
    let with = vec![("STATEMENT".to_string(), vec![statement.to_string()])];
    Ok(Variants { with, launch: Launch::default(), expected: vec![Expected { lines, text }] })
}

fn set(launch: &mut Launch, key: &str, value: &str) -> Result<()> {
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("`{text}` is no number"));
    let extent = |value: &str| -> Result<[u32; 3]> {
        let numbers: Result<Vec<u64>> = value.split(' ').map(number).collect();
        let numbers: Vec<u32> = numbers?.into_iter().map(|number| number as u32).collect();
        numbers.try_into().map_err(|_| format!("`{value}` is not three numbers"))
    };
    let setup = &mut launch.setup;
    match key {
        "threads" => setup.block = [number(value)? as u32, 1, 1],
        "blocks" => setup.grid = [number(value)? as u32, 1, 1],
        "block" => setup.block = extent(value)?,
        "grid" => setup.grid = extent(value)?,
        "shared" => setup.dynamic_shared = number(value)? as u32,
        "instructions" => setup.instructions = number(value)?,
        "host" => setup.host_bytes = number(value)?,
        "zeros" => setup.zeros = number(value)?,
        "run" => launch.ways = value.split(' ').map(String::from).collect(),
        _ => return Err(format!("`{key}` is no key")),
    }
    Ok(())
}

/// Every combination of the texts.
fn combinations(with: &[(String, Vec<String>)]) -> Vec<Vec<Name>> {
    let Some(((name, texts), rest)) = with.split_first() else { return vec![Vec::new()] };
    let rest = combinations(rest);
    let one = |text: &String| {
        let first = (name.clone(), text.clone());
        rest.iter().map(move |rest| [&[first.clone()][..], rest].concat()).collect::<Vec<_>>()
    };
    texts.iter().flat_map(one).collect()
}

/// Writes the texts for their names, the longest name first.
fn written(text: &str, names: &[Name]) -> String {
    let mut names: Vec<&Name> = names.iter().collect();
    names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    // A text may contain other names.
    let once = |text: String| {
        names.iter().fold(text, |text, (name, value)| text.replace(&format!("${name}"), value))
    };
    once(once(text.to_string()))
}

impl Case {
    fn source(&self, names: &[Name]) -> String {
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

    /// Checks all variants in all ways to run them.
    fn check(&self) -> Result<()> {
        for variants in &self.variants {
            for names in combinations(&variants.with) {
                let source = self.source(&names);
                if variants.expected[0].text == "accepted" {
                    let found = Bench::parse(&source, Setup::default());
                    found.map_err(|error| format!("{}: {error}\n{source}", self.name))?;
                    continue;
                }
                let mut first = None;
                for (way, outcome) in outcomes(&source, &variants.launch)? {
                    if let Ok(found) = &outcome {
                        let counters = first.get_or_insert_with(|| found.counters.clone());
                        if *counters != found.counters {
                            return Err(format!("{way}: other counters\n{source}"));
                        }
                    }
                    for expected in &variants.expected {
                        let text = variants.written(&expected.text, &source, &names);
                        check(&source, &text, &outcome).map_err(|what| {
                            let line = expected.lines.start + 1;
                            format!("line {line}, {way}: {what}\nexpected: {text}\n{source}")
                        })?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl Variants {
    /// An expectation with the texts for its names.
    fn written(&self, text: &str, source: &str, names: &[Name]) -> String {
        let line = |text: &str| source.lines().position(|line| line.contains(text)).unwrap_or(0);
        let at = |text: String, (name, value): &Name| {
            let number = line(&written(value, names)) + 1;
            text.replace(&format!("<${name}>"), &format!("PTX line {number}"))
        };
        written(&names.iter().fold(text.to_string(), at), names)
    }
}

/// Runs a launch in each of its ways.
fn outcomes(source: &str, launch: &Launch) -> Result<Vec<(String, Outcome)>> {
    let refused = |error: ParseError| format!("refused at {error}");
    if let Err(error) = Module::parse(source) {
        return Ok(vec![("parser".to_string(), Err(format!("module {}", refused(error))))]);
    }
    let bench = || Bench::parse(source, launch.setup.clone()).map_err(refused);
    if let Err(error) = bench() {
        return Ok(vec![("parser".to_string(), Err(error))]);
    }
    let one = |way: &String| {
        let bench = bench()?;
        let found = match way.as_str() {
            "alone" => bench.run().map(|counters| (counters, bench.outputs())),
            "together" => bench.run_together().map(|counters| (counters, bench.outputs())),
            "stepped" => bench.stepped(false),
            "stepped_together" => bench.stepped(true),
            _ => return Err(format!("`{way}` is no way to run")),
        };
        let shared_bytes = bench.kernel().shared_bytes();
        let found = found.map(|(counters, outputs)| Found { counters, outputs, shared_bytes });
        Ok((way.clone(), found.map_err(|report| sentence(&report))))
    };
    launch.ways.iter().map(one).collect()
}

fn sentence(report: &Report) -> String {
    let text = report.to_string();
    format!("{:?}{}", report.kind, text.strip_prefix(&report.kernel).unwrap_or(&text))
}

/// Compares an expectation, whose names are written out, with an outcome.
fn check(source: &str, expected: &str, outcome: &Outcome) -> Result<()> {
    let Found { counters, outputs, shared_bytes } = match outcome {
        Ok(found) => found,
        Err(found) => {
            let wanted = with_lines(source, expected)?;
            let is_same = match wanted.split_once("...") {
                Some((first, last)) => found.starts_with(first) && found.ends_with(last),
                None => *found == wanted || refuses(found, source, &wanted),
            };
            return if is_same { Ok(()) } else { Err(found.clone()) };
        }
    };
    if expected == "runs" {
        return Ok(());
    }
    let (what, value) = expected.split_once(" = ").ok_or("it runs")?;
    let line = |number: u32| source.lines().nth(number as usize - 1).unwrap_or_default();
    // Parameters and results in registers are loaded and stored by no instruction of their own.
    let is_in_line = |site: &Site| line(site.line).contains(&*site.opcode);
    let is_written = |site: &&Site| !["ld.param", "ret"].contains(&&*site.opcode);
    let mut sites = counters.sites.iter().filter(is_written);
    if let Some(site) = sites.find(|site| !is_in_line(site)) {
        return Err(format!("{site:?} is in another line"));
    }
    let found = match what.strip_prefix("outputs") {
        None if what == "shared_bytes" => shared_bytes.to_string(),
        None => counter(counters, what).ok_or_else(|| format!("`{what}` is no counter"))?,
        Some(from) => {
            let from =
                from.strip_prefix('[').and_then(|from| from.strip_suffix(']')).unwrap_or("0");
            let from: usize = from.parse().map_err(|_| format!("`{from}` is no number"))?;
            let (wanted, found) = (list(value)?, outputs.get(from..).unwrap_or_default());
            let found = &found[..wanted.len().min(found.len())];
            return if found == wanted { Ok(()) } else { Err(format!("{what} = {found:?}")) };
        }
    };
    if found == value { Ok(()) } else { Err(format!("{what} = {found}")) }
}

/// Returns whether a refusal is the expected one, where the expectation has neither the line itself
/// nor the word `module`.
fn refuses(found: &str, source: &str, wanted: &str) -> bool {
    let found = found.strip_prefix("module ").unwrap_or(found);
    let Some((at, message)) = wanted.split_once(": ") else { return false };
    let line = at.strip_prefix("refused at PTX line ").and_then(|number| number.parse().ok());
    let line = line.and_then(|number: usize| source.lines().nth(number - 1)).unwrap_or_default();
    found == wanted || found == format!("{at}: `{}`: {message}", line.trim())
}

/// Writes the numbers of lines for each `<TEXT>` that follows a space or a parenthesis.
fn with_lines(source: &str, text: &str) -> Result<String> {
    let (mut rest, mut all) = (text, String::new());
    let is_mark = |text: &str, at: usize| {
        text[..at].ends_with([' ', '(']) && !text[at + 1..].starts_with(' ')
    };
    while let Some((at, _)) = rest.match_indices('<').find(|(at, _)| is_mark(rest, *at)) {
        let (before, after) = rest.split_at(at + 1);
        let (line, after) = after.split_once('>').ok_or("a `<` has no `>` behind it")?;
        let number = source.lines().position(|found| found.contains(line));
        let number = number.ok_or_else(|| format!("no line contains `{line}`"))? + 1;
        write!(all, "{}PTX line {number}", &before[..at]).unwrap();
        rest = after;
    }
    Ok(all + rest)
}

/// A counter by its name.
fn counter(counters: &Counters, name: &str) -> Option<String> {
    let number = match name {
        "instructions" => counters.instructions,
        "thread_instructions" => counters.thread_instructions,
        "divergent_branches" => counters.divergent_branches,
        "barriers" => counters.barriers,
        "blocks" => counters.blocks,
        "printed" => return Some(counters.printed.iter().map(|one| &*one.text).collect()),
        _ => {
            let class = counters.classes.iter().find(|(class, _)| format!("{class:?}") == name);
            let (access, of) = name.split_once(' ').unwrap_or((name, "requests"));
            let sites = counters.sites.iter().filter(|site| format!("{:?}", site.access) == access);
            let sum = sites.map(|site| match of {
                "requests" => site.requests,
                "bytes" => site.bytes,
                "sectors" => site.sectors,
                "wavefronts" => site.wavefronts,
                "conflicts" => site.conflicts,
                _ => u64::MAX,
            });
            class.map(|(_, count)| *count).or(sum.reduce(u64::saturating_add))?
        }
    };
    Some(number.to_string())
}

/// The words of a list: `5, 0..31, 0..93/3, 7*4`.
fn list(text: &str) -> Result<Vec<u32>> {
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

/// The file with the reports that are found in the place of those that were expected.
fn updated(text: &str, cases: &[Case]) -> Result<String> {
    let mut lines: Vec<Option<String>> = text.lines().map(|line| Some(line.to_string())).collect();
    for (case, variants) in
        cases.iter().flat_map(|case| case.variants.iter().map(move |v| (case, v)))
    {
        let place = variants.expected[0].lines.clone();
        let [sentence] = &case.others(variants)?[..] else { continue };
        let Some(first) = lines[place.clone()].first_mut().and_then(Option::take) else { continue };
        lines[place.clone()].fill(None);
        let new = match first.strip_prefix("//   ") {
            None => format!("// expect: {sentence}"),
            // The refusal of a statement has no more than the message.
            Some(_) => {
                let message = sentence.split_once(": ").map_or("", |(_, message)| message);
                let statement = variants.with.iter().find(|(name, _)| name == "STATEMENT");
                let statement =
                    statement.map_or(String::new(), |(_, texts)| format!("`{}`: ", texts[0]));
                format!("//   {}", message.strip_prefix(&statement).unwrap_or(message))
            }
        };
        lines[place.start] = Some(wrapped(&new));
    }
    Ok(lines.into_iter().flatten().map(|line| line + "\n").collect())
}

impl Case {
    /// The reports and refusals that are not the expected ones.
    fn others(&self, variants: &Variants) -> Result<Vec<String>> {
        let expected = &variants.expected[0].text;
        let mut found = Vec::new();
        for names in combinations(&variants.with) {
            let source = self.source(&names);
            let wanted = variants.written(expected, &source, &names);
            let differs =
                |name: &str| variants.with.iter().any(|(n, all)| n == name && all.len() > 1);
            let names: Vec<Name> = names.into_iter().filter(|(name, _)| differs(name)).collect();
            for (_, outcome) in outcomes(&source, &variants.launch)? {
                if expected != "accepted" && check(&source, &wanted, &outcome).is_err() {
                    found.extend(outcome.err().map(|text| without_lines(&source, &text, &names)));
                }
            }
        }
        found.dedup();
        Ok(found)
    }
}

/// Writes `<TEXT>` for the numbers of lines: the line if it is short, or as few words of it as no
/// line before it has.
fn without_lines(source: &str, text: &str, names: &[Name]) -> String {
    let mut parts = text.split("PTX line ");
    let mut all = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        let number: usize = part[..end].parse().unwrap();
        let line = source.lines().nth(number - 1).unwrap_or_default().trim();
        let first =
            |text: &&str| source.lines().position(|line| line.contains(text)) == Some(number - 1);
        let words = line.match_indices(' ').map(|(at, _)| &line[..at]);
        let whole = Some(line).filter(|line| line.len() <= 40 && !line.contains('>'));
        let mark = whole.into_iter().chain(words).find(first).unwrap_or(line);
        // A text that differs between the combinations is named.
        let name = names.iter().find(|(_, text)| !text.is_empty() && text.starts_with(mark));
        let mark = name.map_or(mark.to_string(), |(name, _)| format!("${name}"));
        write!(all, "<{mark}>{}", &part[end..]).unwrap();
    }
    all
}

/// A comment in lines of 100 columns.
fn wrapped(line: &str) -> String {
    let (mut all, mut width) = (String::new(), 0);
    for word in line.split(' ') {
        if width + word.len() + 1 > 100 {
            all += "\n//   ";
            width = 5;
        } else if width > 0 {
            all.push(' ');
            width += 1;
        }
        all += word;
        width += word.len();
    }
    all
}

/// A wrong expectation fails, and a malformed file is an error that names the line.
fn harness() -> std::result::Result<(), Failed> {
    const KERNEL: &str = "st.global.u32 [%rd4], %r2;\nbar.sync 0;\n";
    for (text, wrong) in [
        ("// expect: runs\n// expect: outputs = 0..31\n// expect: barriers = 1", ""),
        ("// expect: outputs = 0..30, 32", "line 2, alone: outputs = [0, 1"),
        ("// expect: barriers = 2", "line 2, alone: barriers = 1"),
        ("// expect: bariers = 1", "line 2, alone: `bariers` is no counter"),
        ("// expect: Race at <st.global>: writes", "line 2, alone: it runs"),
        ("// expect: refused at <st.global>: no", "line 2, alone: it runs"),
        (
            "// run: stepped\n// threads: 33\n// expect: barriers = 2",
            "line 4, stepped: barriers = 1",
        ),
        ("// with X: trap; |\n// expect: runs\n$X", "line 3, alone: Trap at PTX line"),
        ("// with X: bar; | foo;\n// expect: refused at <foo>: no\n$X", "no line contains `foo`"),
        ("// refused:\nfoo; // `bar` is not", "line 3: no message follows the statement"),
        ("// refused:\nfoo;  // `bar` is not", "line 3, parser: refused at PTX line"),
        ("", "line 1: `a` expects nothing"),
        ("// expect: runs\n// case: a", "line 3: a case above has this name"),
        ("// threads: many\n// expect: runs", "line 2: `many` is no number"),
        ("// thread: 32\n// expect: runs", "line 2: `thread` is no key"),
        ("// run: fast\n// expect: runs", "`fast` is no way to run"),
    ] {
        let ptx = if text.contains("refused:\n") { "" } else { KERNEL };
        let cases = parse(&format!("// case: a\n{text}\n{ptx}"));
        let found = cases.and_then(|cases| cases.iter().try_for_each(Case::check));
        match found {
            Ok(()) if wrong.is_empty() => {}
            Err(what) if !wrong.is_empty() && what.contains(wrong) => {}
            _ => return Err(format!("{text}\ngave {found:?}, not `{wrong}`").into()),
        }
    }
    let found = list("5, 3..1, 0..9/3, 7*2");
    let is_right = found == Ok(vec![5, 3, 2, 1, 0, 3, 6, 9, 7, 7]);
    if is_right { Ok(()) } else { Err(format!("the list is {found:?}").into()) }
}

fn main() {
    let arguments = Arguments::from_args();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cases");
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut trials = vec![Trial::test("cases::a_wrong_expectation_fails", harness)];
    for file in files {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        let cases = parse(&text).unwrap_or_else(|error| panic!("{stem}.ptx {error}"));
        if std::env::var("CASES").is_ok_and(|value| value == "update") {
            match updated(&text, &cases) {
                Ok(text) => std::fs::write(&path, text).unwrap(),
                Err(error) => panic!("{stem}.ptx {error}"),
            }
        }
        for case in cases {
            let (name, file) = (format!("cases::{stem}::{}", case.name), format!("{stem}.ptx"));
            let check =
                move || case.check().map_err(|error| Failed::from(format!("{file} {error}")));
            trials.push(Trial::test(name, check));
        }
    }
    trials.sort_by(|a, b| a.name().cmp(b.name()));
    libtest_mimic::run(&arguments, trials).exit();
}
