//! Explains why a kernel is wrong, where that is known: mistakes are recognised by what they do,
//! and not by how they are written.

use linrec::device::Device;
use linrec::kernels::Ptx;
use linrec::simt::{Report, ReportKind};

use crate::candidate::{Candidate, Cut, Kind};
use crate::description::{Puzzle, Remark};
use crate::judge::{Verdict, judge};

/// A part of an explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// A paragraph.
    Words(String),
    /// Lines of a kernel.
    Code(String),
}

/// Explains why a kernel does not reach the goal: `source`, compiled to `ptx`, for which the
/// emulator gave `verdict`. Returns nothing if the reason is not known.
///
/// A wrong answer of the puzzle is recognised by its instructions. If another kernel gets the
/// verdict of a wrong answer, this answer is shown.
pub fn explain(puzzle: &Puzzle, source: &str, ptx: &Ptx, verdict: &Verdict) -> Vec<Part> {
    let mut parts = Vec::new();
    if verdict.reached() {
        return parts;
    }
    let finding = verdict.to_string();
    if let Verdict::Wrong { report: Some(report), .. } = verdict
        && let Some((_, line)) = &report.source
        && let Some(caller) = caller(ptx.text(), report)
    {
        parts.push(words(&format!("Line {caller} calls what stands in line {line}.")));
    }
    if let Some((_, why)) = known(puzzle, source, ptx) {
        parts.push(words(why));
    } else if let Some(remark) = remark(puzzle, source, &finding, false) {
        parts.push(words(&remark.says));
    } else if !is_skeleton(puzzle, source)
        && let Some((begin, candidate, why)) = guess(puzzle, source, verdict)
    {
        parts.push(words(&format!("{begin} is what one gets if these lines stand in the hole:")));
        parts.push(Part::Code(candidate.hole.clone()));
        parts.push(words(why));
    } else if !is_skeleton(puzzle, source)
        && let Some(remark) = remark(puzzle, source, &finding, true)
    {
        parts.push(words(&remark.says));
    }
    parts
}

fn words(text: &str) -> Part {
    Part::Words(text.trim().to_owned())
}

fn is_skeleton(puzzle: &Puzzle, source: &str) -> bool {
    puzzle.same(source).is_some_and(|candidate| candidate.kind == Kind::Skeleton)
}

/// Returns the wrong answers, each with the reason.
fn wrong(puzzle: &Puzzle) -> impl Iterator<Item = (&Candidate, &str)> {
    puzzle.candidates().iter().filter_map(|candidate| match &candidate.kind {
        Kind::Wrong { why, .. } => Some((candidate, why.as_str())),
        Kind::Skeleton | Kind::Solution => None,
    })
}

/// Returns the wrong answer that has this text or these instructions.
fn known<'a>(puzzle: &'a Puzzle, source: &str, ptx: &Ptx) -> Option<(&'a Candidate, &'a str)> {
    if let Some(same) = puzzle.same(source) {
        return wrong(puzzle).find(|(candidate, _)| candidate.name == same.name);
    }
    let mine = instructions(ptx.text());
    wrong(puzzle).find(|(candidate, _)| {
        let theirs = puzzle.ptx(&candidate.name);
        theirs.is_some_and(|theirs| instructions(theirs.text()) == mine)
    })
}

/// Returns the lines of a module without comments, source locations and the compiler's version.
fn instructions(ptx: &str) -> Vec<&str> {
    let left_out = ["//", ".loc", ".file", ".version", ".target"];
    ptx.lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with(".section"))
        .filter(|line| !line.is_empty() && !left_out.iter().any(|begin| line.starts_with(begin)))
        .collect()
}

/// Returns the puzzle's remark for this finding and the code in the hole, among the remarks with
/// or without the mark `last`.
fn remark<'a>(puzzle: &'a Puzzle, source: &str, finding: &str, last: bool) -> Option<&'a Remark> {
    let code = Puzzle::hole(source).map(|hole| {
        let lines = hole.lines().map(|line| line.split("//").next().unwrap_or_default());
        lines.collect::<Vec<_>>().join("\n")
    });
    let has = |word: &String| code.as_ref().is_some_and(|code| code.contains(word));
    puzzle.remarks.iter().find(|remark| {
        remark.last == last
            && remark.finding.iter().all(|words| finding.contains(words))
            && (remark.hole.is_empty() || remark.hole.iter().any(has))
    })
}

/// Returns the wrong answer with the same verdict, or else one with the same race or missed barrier
/// between the same places.
fn guess<'a>(
    puzzle: &'a Puzzle,
    source: &str,
    verdict: &Verdict,
) -> Option<(&'static str, &'a Candidate, &'a str)> {
    let mine = Finding::of(verdict, source);
    let mut alike = None;
    for (candidate, why) in wrong(puzzle) {
        let Some(ptx) = puzzle.ptx(&candidate.name) else { continue };
        let verdict = judge(puzzle, &ptx, &Device::simt());
        let theirs = Finding::of(&verdict, &puzzle.source(&candidate.hole));
        if theirs.whole == mine.whole {
            return Some(("This", candidate, why));
        }
        if alike.is_none() && mine.places.is_some() && theirs.places == mine.places {
            alike = Some(("Something like this", candidate, why));
        }
    }
    alike
}

/// A verdict with lines counted from the hole, because holes have different lengths.
struct Finding {
    whole: String,
    /// For a race or a barrier: its kind, and the lines between which it is.
    places: Option<(ReportKind, Vec<String>)>,
}

impl Finding {
    fn of(verdict: &Verdict, source: &str) -> Finding {
        let Verdict::Wrong { case, report: Some(report), .. } = verdict else {
            return Finding { whole: verdict.to_string(), places: None };
        };
        let Report { kind, block, warp, lanes, source: at, message, .. } = &**report;
        let cut = Cut::at_marks(&source.replace("\r\n", "\n")).ok();
        let place = |line: u32| place(cut.as_ref(), line);
        let (message, mut places) = match at {
            Some((file, _)) => with_places(message, file, place),
            None => (message.clone(), Vec::new()),
        };
        places.extend(at.as_ref().map(|(_, line)| place(*line)));
        let whole = format!("{case:?} {kind:?} {block:?} {warp} {lanes} {places:?} {message}");
        let between = matches!(kind, ReportKind::Race | ReportKind::Barrier);
        Finding { whole, places: between.then_some((*kind, places)) }
    }
}

/// Describes a line of a source: above the hole, in it, or below it.
fn place(cut: Option<&Cut>, line: u32) -> String {
    let Some(cut) = cut else { return line.to_string() };
    let line = line as usize;
    let before = cut.before.lines().count();
    let behind = before + cut.hole.lines().count();
    if line <= before {
        format!("{} above the hole", before - line)
    } else if line <= behind {
        String::from("in the hole")
    } else {
        format!("{} behind the hole", line - behind)
    }
}

/// Replaces each `file:line` in a message, and returns the message and the replacements.
fn with_places(message: &str, file: &str, place: impl Fn(u32) -> String) -> (String, Vec<String>) {
    let before = format!("{file}:");
    let mut parts = message.split(&before);
    let (mut whole, mut places) = (parts.next().unwrap_or_default().to_owned(), Vec::new());
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        let there = part[..part.len() - rest.len()].parse().map_or_else(|_| file.into(), &place);
        whole += &there;
        whole += rest;
        places.push(there);
    }
    (whole, places)
}

/// Returns the line of the kernel that calls the code at a report's place, if this code is in
/// another function.
fn caller(ptx: &str, report: &Report) -> Option<u32> {
    let before: Vec<&str> = ptx.lines().take(report.line as usize).collect();
    let locations = before.iter().rev().map(|line| line.trim());
    let locations: Vec<&str> = locations.filter_map(|line| line.strip_prefix(".loc")).collect();
    let mut called = locations.first()?.split_once("inlined_at")?.1.trim();
    // A call in an inlined function has a place too, which leads to the caller of that function.
    for _ in 0..MOST_CALLS {
        let outer = locations.iter().find_map(|location| {
            let (place, inlined) = location.split_once(',')?;
            (place.trim() == called).then(|| inlined.split_once("inlined_at"))?
        });
        let Some((_, outer)) = outer else { break };
        called = outer.trim();
    }
    called.split_whitespace().nth(1)?.parse().ok()
}

/// The largest depth of calls that is followed.
const MOST_CALLS: usize = 8;
