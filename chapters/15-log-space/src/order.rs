//! The order in which a prefix sum is evaluated.

use ch02_two_threads::tree;

/// The order in which a prefix sum adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// One after the other, from the first to the last.
    InOrder,
    /// In a tree: pairs, pairs of pairs, and so on, as in chapter 2.
    Tree,
}

impl Order {
    // ANCHOR: prefix
    /// Replaces every entry by the sum of all entries up to it, for any associative `add`.
    pub fn prefix<P: Copy>(self, entries: &mut [P], mut add: impl FnMut(P, P) -> P) {
        match self {
            Order::Tree => _ = tree(entries, add),
            Order::InOrder => {
                for i in 1..entries.len() {
                    entries[i] = add(entries[i - 1], entries[i]);
                }
            }
        }
    }
    // ANCHOR_END: prefix

    /// Returns the largest number of additions on an entry's way into a sum of `count` entries.
    pub fn levels(self, count: usize) -> usize {
        match self {
            Order::InOrder => count.saturating_sub(1),
            Order::Tree => count.max(1).next_power_of_two().ilog2() as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Order;

    #[test]
    fn both_orders_give_all_sums_within_their_levels() {
        for count in [0, 1, 2, 3, 7, 8, 9, 100] {
            for order in [Order::InOrder, Order::Tree] {
                // A sum, and the depth of its additions.
                let mut entries: Vec<(usize, usize)> = (0..count).map(|i| (i, 0)).collect();
                order.prefix(&mut entries, |a, b| (a.0 + b.0, a.1.max(b.1) + 1));
                for (i, (sum, depth)) in entries.into_iter().enumerate() {
                    assert_eq!(sum, i * (i + 1) / 2);
                    assert!(depth <= order.levels(i + 1), "{order:?} {i}: {depth}");
                }
            }
        }
    }
}
