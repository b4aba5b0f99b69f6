//! Runs the files of PTX in `tests/cases`. Each file has named cases, each case is a test
//! `cases::FILE::NAME`, and a case holds its PTX together with what must come of it, so that both
//! can be read and changed without Rust. `format` has the format.
//!
//! A case runs in every way there is, alone, together with other blocks, and by steps, unless it
//! names the ways. All must have the expected outcome, and the same counters. The test of the
//! harness itself is below: a wrong expectation fails, and a malformed file is an error with its
//! line.
//!
//! `CASES=update` writes the reports that are found over those that were expected.

mod format;
#[allow(dead_code, reason = "the suite uses all of it")]
mod kernel;

use std::fmt::Write;
use std::path::Path;

use format::{Case, Launch, Name, Result, Variants, combinations, list, parse, written};
use kernel::{Bench, Setup};
use libtest_mimic::{Arguments, Failed, Trial};
use simt::{Counters, Module, ParseError, Report, Site};

/// The result of a launch, or the sentence of its report or refusal.
type Outcome = std::result::Result<Found, String>;

struct Found {
    counters: Counters,
    /// The words of `b`.
    outputs: Vec<u32>,
    shared_bytes: usize,
}

impl Case {
    /// Checks all variants in all ways to run them.
    fn check(&self) -> Result<()> {
        for variants in &self.variants {
            for names in combinations(&variants.with) {
                let source = self.source(&names);
                if let Some((_, name)) = source.split_once('$') {
                    let name = name.split(|c: char| !c.is_ascii_alphanumeric()).next();
                    let (line, name) = (self.line, name.unwrap_or(""));
                    return Err(format!("line {line}: `${name}` has no text"));
                }
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

/// The file with the reports that are found in the place of those that were expected.
fn updated(text: &str, cases: &[Case]) -> Result<String> {
    let mut lines: Vec<Option<String>> = text.lines().map(|line| Some(line.to_string())).collect();
    for (case, variants) in
        cases.iter().flat_map(|case| case.variants.iter().map(move |v| (case, v)))
    {
        let place = variants.expected[0].lines.clone();
        let [sentence] = &case.others(variants)?[..] else { continue };
        let is_row = lines[place.start].as_ref().is_some_and(|line| !line.starts_with("//"));
        lines[place.clone()].fill(None);
        let new = match is_row {
            true => row(variants, sentence),
            false => wrapped(&format!("// expect: {sentence}")),
        };
        lines[place.start] = Some(new);
    }
    Ok(lines.into_iter().flatten().map(|line| line + "\n").collect())
}

/// A statement that is refused with the message of the refusal.
fn row(variants: &Variants, sentence: &str) -> String {
    let message = sentence.split_once(": ").map_or("", |(_, message)| message);
    let is_statement = |(name, _): &&(String, Vec<String>)| name == "STATEMENT";
    let statement = variants.with.iter().find(is_statement).map_or("", |(_, texts)| &texts[0]);
    let message = message.strip_prefix(&format!("`{statement}`: ")).unwrap_or(message).to_string();
    let lets = variants.with.iter().filter(|with| !is_statement(with));
    let message =
        lets.fold(message, |text, (name, texts)| text.replace(&texts[0], &format!("${name}")));
    let one = format!("{statement}  // {message}");
    if one.len() <= 100 {
        one
    } else {
        format!("{statement}\n{}", wrapped(&format!("//   {message}")))
    }
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
        ("// expect: runs\n// with X: 1", "line 1: `a` expects nothing of its last lines"),
        ("// expect: runs\nmov.u32 %r5, $X;", "line 1: `$X` has no text"),
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
