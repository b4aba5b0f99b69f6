//! The spelling of a kernel after its family's name: sizes, then options.

use std::collections::VecDeque;

/// The parts of a spelling after the name and its colon: sizes with an `x` between them, and
/// options with a colon before each.
#[derive(Debug, Default)]
pub(super) struct Parts<'a> {
    sizes: Vec<u32>,
    options: VecDeque<&'a str>,
}

impl<'a> Parts<'a> {
    /// Reads the parts of `8x64:1`; no text has no parts.
    pub(super) fn read(text: Option<&'a str>) -> Option<Parts<'a>> {
        let Some(text) = text else { return Some(Parts::default()) };
        let mut parts = text.split(':');
        let sizes = parts.next()?.split('x').map(number).collect::<Option<Vec<u32>>>()?;
        Some(Parts { sizes, options: parts.collect() })
    }

    /// Takes `N` sizes; those that are left out are the usual ones.
    pub(super) fn sizes<const N: usize>(&mut self, usual: [u32; N]) -> Option<[u32; N]> {
        let mut sizes = usual;
        let given = std::mem::take(&mut self.sizes);
        sizes.get_mut(..given.len())?.copy_from_slice(&given);
        Some(sizes)
    }

    /// Takes the next option if it is a number. Returns `Some(None)` if it is not a number, and
    /// `None` if `read` does not know the number.
    pub(super) fn code<T>(&mut self, read: impl Fn(u32) -> Option<T>) -> Option<Option<T>> {
        match self.options.front().and_then(|option| number(option)) {
            Some(code) => {
                self.options.pop_front();
                read(code).map(Some)
            }
            None => Some(None),
        }
    }

    /// Takes the next option if it is this letter followed by a number.
    pub(super) fn lettered(&mut self, letter: char) -> Option<u32> {
        let value = self.options.front()?.strip_prefix(letter).and_then(number)?;
        self.options.pop_front();
        Some(value)
    }

    /// Takes the next option if it is this word.
    pub(super) fn flag(&mut self, word: &str) -> bool {
        let is_next = self.options.front() == Some(&word);
        if is_next {
            self.options.pop_front();
        }
        is_next
    }

    /// Returns whether all parts were taken.
    pub(super) fn are_used_up(&self) -> bool {
        self.sizes.is_empty() && self.options.is_empty()
    }
}

/// Reads digits, as [`Display`](std::fmt::Display) writes them: neither `+8`, which `parse` takes,
/// nor `08`.
pub(super) fn number(text: &str) -> Option<u32> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let is_shortest = text == "0" || !text.starts_with('0');
    (is_plain && is_shortest).then(|| text.parse().ok()).flatten()
}
