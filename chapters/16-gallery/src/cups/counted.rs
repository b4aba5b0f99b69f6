//! The success of the best guess from the number of swaps of each kind alone.

use std::collections::BTreeMap;

use super::{Order, START, Swap, ball};

/// The share of right answers of the best guess, over all sequences of one length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Best {
    /// The share if the question is the cup with the ball.
    pub cup: f64,
    /// The share if the question is the order of all three.
    pub order: f64,
}

/// Returns the share of right answers of the best guess from the counts, over all `2^len`
/// sequences: for each number of right swaps, the guess is the most frequent answer of its
/// sequences.
///
/// Sequences are not listed but counted, by the number of right swaps and the order at their end.
/// The counts are kept as shares of all sequences: halves are exact, so all shares up to 53 swaps
/// are exact.
// ANCHOR: counted
pub fn best(len: usize) -> Best {
    let mut shares = BTreeMap::from([((0, START), 1.0)]);
    for _ in 0..len {
        let mut longer: BTreeMap<(usize, Order), f64> = BTreeMap::new();
        for ((rights, order), share) in shares {
            *longer.entry((rights, Swap::Left.apply(order))).or_default() += share / 2.0;
            *longer.entry((rights + 1, Swap::Right.apply(order))).or_default() += share / 2.0;
        }
        shares = longer;
    }
    let mut best = Best { cup: 0.0, order: 0.0 };
    for rights in 0..=len {
        let (mut cups, mut order) = ([0.0; 3], 0.0_f64);
        for (&(_, place), &share) in shares.range((rights, [0; 3])..(rights + 1, [0; 3])) {
            cups[ball(place)] += share;
            order = order.max(share);
        }
        best.cup += cups.into_iter().fold(0.0, f64::max);
        best.order += order;
    }
    best
}
// ANCHOR_END: counted

/// Returns the share of balls found after `2 * half_len` swaps, as in [`best`], by the formula on
/// the page: `1/3 + (3/4)^(L/2) / 2 + (1/4)^(L/2) / 6`.
pub fn formula(half_len: i32) -> f64 {
    1.0 / 3.0 + 0.75_f64.powi(half_len) / 2.0 + 0.25_f64.powi(half_len) / 6.0
}
