//! Adding a kernel changes few files: families are named only in those that CONTRIBUTING lists.

use std::fs;
use std::path::{Path, PathBuf};

use linrec::kernels::KernelChoice;

/// The folder in which families are named.
const LISTED: &str = "src/kernels/families";

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// A word or a string of a program, with its line.
#[derive(Debug, PartialEq)]
enum Token {
    Word(usize, String),
    Text(usize, String),
}

/// Splits Rust into words and strings, without comments and the unit tests at the end.
fn tokens(source: &str) -> Vec<Token> {
    let ends =
        ["mod ", "pub(crate) mod "].map(|kind| source.find(&format!("\n#[cfg(test)]\n{kind}")));
    let source = ends.into_iter().flatten().min().map_or(source, |end| &source[..end]);
    let (mut tokens, mut rest, mut line) = (Vec::new(), source, 1);
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(inner) = rest.strip_prefix("/*") {
            inner.find("*/").map_or(rest.len(), |end| end + 4)
        } else if let Some(length) = string(rest) {
            tokens.push(Token::Text(line, rest[..length].to_owned()));
            length
        } else if first == '_' || first.is_alphabetic() {
            let is_part = |c: char| c == '_' || c.is_alphanumeric();
            let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            tokens.push(Token::Word(line, rest[..length].to_owned()));
            length
        } else if rest.starts_with("'\"'") {
            3
        } else {
            first.len_utf8()
        };
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    tokens
}

/// Returns the length of the string at the beginning, including its quotation marks.
fn string(text: &str) -> Option<usize> {
    if let Some(raw) = text.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let body = &raw[hashes + 1..];
            return Some(body.find(&end).map_or(text.len(), |at| hashes + 2 + at + end.len()));
        }
    }
    let body = text.strip_prefix('"')?;
    let mut escaped = false;
    for (at, c) in body.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at + 2),
            _ => {}
        }
    }
    Some(text.len())
}

/// Returns where a program names a family's variant, configuration, source, kernels or spelling.
fn named(source: &str, families: &[&str]) -> Vec<String> {
    let tokens = tokens(source);
    // A bare "wide" is also a word of PTX; in a file that chooses kernels it is a family.
    let is_about_kernels = source.contains("KernelChoice");
    let mut found = Vec::new();
    for family in families {
        let mut variant = family.to_string();
        variant[..1].make_ascii_uppercase();
        let kernels = format!("linrec_{family}");
        for (place, token) in tokens.iter().enumerate() {
            let before = place.checked_sub(1).map(|before| &tokens[before]);
            let is_named = match token {
                Token::Word(_, word) => {
                    let of_choice =
                        matches!(before, Some(Token::Word(_, word)) if word == "KernelChoice");
                    *word == format!("{variant}Config")
                        || (of_choice && *word == variant)
                        || word.starts_with(&kernels)
                }
                Token::Text(_, text) => {
                    let inner = text.trim_matches(['r', '#', '"']);
                    let spelled = inner.strip_prefix(family);
                    spelled.is_some_and(|rest| {
                        rest.is_empty() && is_about_kernels || rest.starts_with([':', '-', '@'])
                    }) || inner.contains(&kernels)
                }
            };
            if is_named {
                let (Token::Word(line, text) | Token::Text(line, text)) = token;
                found.push(format!("{line}: {text}"));
            }
        }
    }
    found
}

#[test]
fn families_are_named_only_in_their_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let mut files = Vec::new();
    for folder in ["src", "emulator/simt/src", "crates/lesson/src", "crates/bench/src"] {
        let folder = root.join(folder);
        if folder.is_dir() {
            sources(&folder, &mut files);
        }
    }
    assert!(files.len() > 50, "{files:?}");
    let families = KernelChoice::families();
    let mut found = Vec::new();
    let mut in_its_file = 0;
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        let named = named(&text, &families);
        if path.starts_with(root.join(LISTED)) {
            in_its_file += usize::from(!named.is_empty());
        } else {
            found.extend(named.into_iter().map(|what| format!("{}:{what}", path.display())));
        }
    }
    assert!(found.is_empty(), "a kernel is named outside of {LISTED}:\n{}", found.join("\n"));
    assert!(in_its_file > families.len(), "the search finds nothing");
}

#[test]
fn only_names_of_families_are_found() {
    let source = r##"
        // KernelChoice::Flat and "flat:8"
        /* FlatConfig */
        type Flat = u32; let flat = flatten(Rows::Flat, "inflate", "flatly", '"');
        KernelChoice::Flat(FlatConfig::DEFAULT)
        ["flat", r#"flat:8x2"#, "of linrec_flat.cu", "a \"flat\" row"]
        linrec_flat_fwd();
#[cfg(test)]
mod tests { const A: &str = "flat"; }
"##;
    let found = named(source, &["flat"]);
    let words: Vec<&str> = found.iter().map(|one| one.split_once(": ").unwrap().1).collect();
    let expected = [
        "Flat",
        "FlatConfig",
        "\"flat\"",
        "r#\"flat:8x2\"#",
        "\"of linrec_flat.cu\"",
        "linrec_flat_fwd",
    ];
    assert_eq!(words, expected);
}
