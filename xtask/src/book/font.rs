//! The characters of the math font. It is a subset, since a page waits for every byte of it; so a
//! formula with any other character fails the build.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use scraper::Html;

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
pub fn missing(mathml: &str) -> Option<char> {
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
        let hash: String = Sha256::digest(font).iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(LIST.contains(&format!("# font {hash}\n")), "xtask/fonts/subset.py makes it");
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
