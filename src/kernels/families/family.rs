//! The trait that each family of kernels implements, and the spelling of a kernel after its
//! family's name: sizes, then options.

use std::collections::VecDeque;
use std::fmt::Debug;

use crate::Direction;
use crate::kernels::{ElementType, Geometry, Pass};

/// One configuration of a family's kernel. Functions without `self` are about the family.
pub(super) trait Family: Debug {
    /// Returns the family's name: `linrec_NAME.cu` is its source, `linrec_NAME_fwd` and
    /// `linrec_NAME_bwd` are its kernels.
    fn name() -> &'static str
    where
        Self: Sized;

    /// Returns the configuration with these sizes and options; parts that are not taken are an
    /// error.
    fn parse(parts: &mut Parts) -> Option<Self>
    where
        Self: Sized;

    /// Returns the configuration with these [`arguments`](Family::arguments) for a pass, in either
    /// direction. Options of the launch have their defaults.
    fn from_arguments(pass: Pass, arguments: &[&str]) -> Option<Self>
    where
        Self: Sized;

    /// Returns every configuration that a tuner may try, in a fixed order.
    fn candidates(element: ElementType) -> Vec<Self>
    where
        Self: Sized;

    /// Returns the spelling after the name, with all sizes and the options that differ from their
    /// defaults.
    fn spelled(&self) -> String;

    /// Returns the name of the PTX file after the family's name: the options of the compilation,
    /// without the options of the launch.
    fn compiled(&self) -> String {
        format!("-{}", self.spelled().replace(':', "-"))
    }

    /// Returns the template arguments after the element type.
    fn arguments(&self, pass: Pass, direction: Direction) -> Vec<String>;

    /// Returns whether the direction is the kernels' last argument, and not a template argument.
    fn takes_direction(&self) -> bool {
        true
    }

    /// Returns whether its last arguments are mailboxes, by which sequences continue on other
    /// devices.
    fn takes_mail(&self) -> bool {
        false
    }

    /// Returns the passes that have kernels.
    fn passes(&self) -> &'static [Pass] {
        &Pass::ALL
    }

    /// Returns the launch over `num_seqs` sequences of `seq_len` elements.
    fn geometry(&self, element: ElementType, pass: Pass, num_seqs: u64, seq_len: u64) -> Geometry;

    /// Returns the length of the longest sequence that it takes; `None` if it takes any.
    fn max_len(&self, _element: ElementType) -> Option<u64> {
        None
    }

    /// Returns the number that the length of a sequence must be a multiple of.
    fn multiple_of(&self, _element: ElementType) -> u64 {
        1
    }

    /// Returns the number of steps that are computed at a time; `None` if one after the other.
    fn tile(&self, element: ElementType) -> Option<u64>;

    /// Returns whether a tuner should measure it at a length that it takes: the launch differs from
    /// that of a smaller configuration, and is neither far too large nor far too small.
    fn is_worth(&self, element: ElementType, seq_len: u64) -> bool;
}

/// Returns the number of elements of `vectors` 16-byte vectors.
pub(super) fn elements(element: ElementType, vectors: u32) -> u64 {
    u64::from(vectors) * 16 / element.bytes() as u64
}

/// Returns the values of the option for rows of whole vectors: both, except for an element of 16
/// bytes, which is a vector itself.
pub(super) fn wholes(element: ElementType) -> &'static [bool] {
    if element.bytes() < 16 { &[false, true] } else { &[false] }
}

/// Reads a template argument that is `true` or `false`.
pub(super) fn truth(text: &str) -> Option<bool> {
    text.parse().ok()
}

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
