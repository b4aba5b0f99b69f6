//! Converts the formulas `$…$` and `$$…$$` to MathML.
//!
//! The math font is a subset, since a page waits for every byte of it. So a formula with another
//! character fails the build.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use math_core::{LatexToMathML, MathCoreConfig, MathDisplay};
use pulldown_cmark::Event;
use scraper::Html;

use super::markdown::{self, Located};
use super::page::{Draft, Page};
use super::values;

static CONVERTER: LazyLock<LatexToMathML> = LazyLock::new(|| {
    LatexToMathML::new(MathCoreConfig::default()).expect("no macros that could be wrong")
});

pub fn convert_all(draft: &mut Draft, events: &[Located]) {
    for (event, range) in events {
        if draft.is_replaced(range) {
            continue;
        }
        let converted = match event {
            Event::InlineMath(latex) => convert(draft.page, latex, MathDisplay::Inline),
            Event::DisplayMath(latex) => convert(draft.page, latex, MathDisplay::Block),
            Event::Text(_) if has_bare_dollar(draft.page.source, range.start, range.end) => Err(
                "a `$` that opens or closes no formula (a blank after the opening one, or a `|` in a \
                 table? a dollar sign is written `\\$`)"
                    .to_owned(),
            ),
            _ => continue,
        };
        match converted {
            Ok(mathml) => draft.replace(range.clone(), mathml),
            Err(what) => draft.reject(range.clone(), what),
        }
    }
}

/// The MathML of `latex`, escaped so that Markdown does not change it.
///
/// A displayed formula has its own box, which scrolls if it is wider than the page.
pub fn convert(page: &Page, latex: &str, display: MathDisplay) -> Result<String, String> {
    let latex = values::insert_values(page, latex)?;
    let converted = CONVERTER.convert_with_local_state(latex.trim(), display).map_err(|error| {
        let place = latex.trim().get(error.0.start..).unwrap_or_default();
        let message = error.to_string();
        format!("formula `{}`: {}, at `{place}`", latex.trim(), message.trim_end_matches('.'))
    })?;
    if let Some(missing) = missing(&converted.mathml) {
        let code = u32::from(missing);
        return Err(format!(
            "formula `{}`: the math font has no `{missing}` (U+{code:04X}), which xtask/README.md says how to add",
            latex.trim()
        ));
    }
    let mathml = markdown::escape_between_tags(&converted.mathml);
    Ok(match display {
        MathDisplay::Inline => mathml,
        MathDisplay::Block => format!(r#"<span class="formula">{mathml}</span>"#),
    })
}

/// True if text of the source holds a dollar sign that is not escaped.
fn has_bare_dollar(source: &str, start: usize, end: usize) -> bool {
    let escaped = |at: usize| source[..at].ends_with('\\');
    source[start..end].match_indices('$').any(|(at, _)| !escaped(start + at))
}

/// The list that the font was made from, by `fonts/subset.py`.
const LIST: &str = include_str!("../../fonts/characters.txt");

static CHARACTERS: LazyLock<BTreeSet<char>> = LazyLock::new(|| {
    let ranges = LIST.lines().filter_map(|line| line.strip_prefix("U+"));
    let range = |range: &str| {
        let range = range.split('#').next().unwrap_or_default().trim();
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |hex| u32::from_str_radix(hex, 16).expect("a list of hexadecimal numbers");
        (number(first)..=number(last)).filter_map(char::from_u32)
    };
    ranges.flat_map(range).collect()
});

/// Characters that select a form of the character before them: a font with one form ignores them.
const SELECTORS: RangeInclusive<char> = '\u{FE00}'..='\u{FE0F}';

/// The first character in the text of `mathml` that the font lacks.
fn missing(mathml: &str) -> Option<char> {
    let fragment = Html::parse_fragment(mathml);
    let mut characters = fragment.root_element().text().flat_map(str::chars);
    let is_known =
        |one: &char| one.is_whitespace() || SELECTORS.contains(one) || CHARACTERS.contains(one);
    characters.find(|one| !is_known(one))
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_font_is_made_from_this_list() {
        let font = include_bytes!("../../theme/fonts/latinmodern-math-subset.woff2");
        let line = format!("# font {}\n", hex::encode(Sha256::digest(font)));
        assert!(LIST.contains(&line), "xtask/fonts/subset.py makes it");
    }

    /// A browser sets a single letter in italics, which are separate characters.
    #[test]
    fn every_letter_is_there_in_italics() {
        let ranges = [('a'..='z', 0x1D44E), ('A'..='Z', 0x1D434), ('α'..='ω', 0x1D6FC)];
        let others = [('h', 'ℎ'), ('ı', '𝚤'), ('ȷ', '𝚥'), ('ϵ', '𝜖'), ('ϕ', '𝜙')];
        let letters = ranges.into_iter().flat_map(|(letters, first)| {
            letters.zip(first..).filter_map(|(one, italic)| Some((one, char::from_u32(italic)?)))
        });
        for (letter, italic) in letters.filter(|(letter, _)| *letter != 'h').chain(others) {
            assert!(CHARACTERS.contains(&letter) && CHARACTERS.contains(&italic), "{letter}");
        }
    }

    #[test]
    fn a_missing_character_is_named() {
        assert_eq!(missing("<math><mi>x</mi><mo>&lt;</mo><mo>&#x2265;</mo></math>"), None);
        assert_eq!(missing("<math display=\"ℵ\"><mi>x</mi><mi>ℵ</mi></math>"), Some('ℵ'));
        assert_eq!(missing("<mi>&#x2135;</mi>"), Some('ℵ'));
    }
}
