//! The words of comments, documentation and messages: idioms of a translation, and long files
//! without a head.
//!
//! An idiom is on the list if nearly every use of it in this project was bad English. A phrase that
//! has a good use as well is left off, such as "that of", or is listed with the words around it
//! that make it bad. Only comments and literals are searched. The tests are in `rules`.

use std::sync::LazyLock;

use regex::Regex;

use crate::pattern;

/// Idioms that are bad anywhere. A blank stands for any break, also between the lines of a comment.
const ANYWHERE: [&str; 22] = [
    r"so many",
    r"so often",
    r"so far as",
    r"than gives",
    r"the ones? of",
    r"what (?:is|are) none",
    r"(?:is|are|was|were) none of",
    r"such a one",
    r"what is there",
    r"told",
    r"it is waited",
    r"(?:is|are) (?:said|asked) of",
    r"(?:is|are|was|were|be|been) had",
    r"[:,;] had,",
    r"(?:allows|permits|enables) to",
    r"stands? (?:there|alone|twice|in|at|before|behind|above|below|between|beside)",
    r"lies? (?:at|behind|beside)",
    r"of its own",
    r"for ever",
    r"in vain",
    r"(?:behind|before) the point",
    r"else than",
];

/// Words that begin no sentence of a comment.
const OF_A_SENTENCE: [&str; 4] = [
    r"Whether",
    r"(?:That|Those) (?:of|for|with|that|which)",
    r"(?:By|To|From|Of|In|With|At|On) (?:what|which|whom)",
    r"So (?:often|long)",
];

/// Words that begin no documentation: it says what the item is or does.
const OF_AN_ITEM: [&str; 2] = [r"How|What|Which|Where|Who|Whose|When", r"By|From|Of"];

static IDIOM: LazyLock<Regex> = LazyLock::new(|| {
    let (anywhere, sentence, item) =
        (ANYWHERE.join("|"), OF_A_SENTENCE.join("|"), OF_AN_ITEM.join("|"));
    let idiom =
        format!(r"\b(?i:{anywhere})\b|(?:\A\W*|[.!?]\W+)(?:{sentence})\b|\A//[/!]\W*(?:{item})\b");
    pattern(&idiom.replace(' ', r"(?:\s|//[/!]?|#|\\)+"))
});

/// Comments, those in a row as one, and literals: of Rust, CUDA and JavaScript, and of Python.
static TEXT: LazyLock<[Regex; 2]> = LazyLock::new(|| {
    let (double, single) = (r#""(?s:\\.|[^"\\])*""#, r"'(?:\\.|[^'\\\n])*'");
    let slashes = r"//[^\n]*(?:\n[ \t]*//[^\n]*)*|/\*(?s:.*?)\*/";
    let hashes = r##"#[^\n]*(?:\n[ \t]*#[^\n]*)*|"""(?s:.*?)""""##;
    // A quote of Rust's begins a lifetime, too.
    let raw = r###"r#+"(?s:.*?)"#+|'(?:\\[^']+|[^'\\])'|`[^`]*`"###;
    [format!("{slashes}|{raw}|{double}"), format!("{hashes}|{double}|{single}")]
        .map(|text| pattern(&text))
});

/// True if the words of a file are searched, by the file's name.
pub fn is_searched(file: &str) -> bool {
    let extension = file.rsplit('.').next().unwrap_or_default();
    ["rs", "cu", "cuh", "js", "py"].contains(&extension)
}

/// The idioms in a source file, each with its line.
pub fn idioms(file: &str, text: &str) -> Vec<String> {
    // The list of them has them all.
    if file.ends_with("rules/words.rs") {
        return Vec::new();
    }
    let texts = TEXT[usize::from(file.ends_with(".py"))].find_iter(text);
    let found = texts.flat_map(|part| {
        let idioms = IDIOM.find_iter(part.as_str());
        idioms.map(move |idiom| (part.start() + idiom.end(), idiom.as_str()))
    });
    let described = |(end, idiom): (usize, &str)| {
        let words = idiom.trim_matches(|c: char| !c.is_alphanumeric());
        let words = words.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let line = text[..end].matches('\n').count() + 1;
        format!("{file}:{line} `{}`", words.collect::<Vec<_>>().join(" "))
    };
    found.map(described).collect()
}

/// True if a file has more than 250 lines and its head fewer than five of documentation.
pub fn is_headless(text: &str) -> bool {
    let head = text.lines().take_while(|line| line.starts_with("//!"));
    text.lines().count() > 250 && head.filter(|line| line.len() > 3).count() < 5
}
