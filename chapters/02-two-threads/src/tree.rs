//! Combines the parts in a tree: pairs of groups of one, two, four … parts.

// ANCHOR: tree
/// Turns every entry into the combination of all entries up to and including it. Returns the number
/// of levels, ⌈log2 of the number of entries⌉.
pub fn tree<P: Copy>(entries: &mut [P], mut combine: impl FnMut(P, P) -> P) -> usize {
    let (mut size, mut levels) = (1, 0);
    while size < entries.len() {
        merge_groups(entries, size, &mut combine);
        (size, levels) = (2 * size, levels + 1);
    }
    levels
}

/// Performs one level: neighbouring groups of `size` entries become one group. All entries of the
/// right group are combined with the last entry of the left group. A `size` of zero changes
/// nothing.
pub fn merge_groups<P: Copy>(entries: &mut [P], size: usize, mut combine: impl FnMut(P, P) -> P) {
    for pair in entries.chunks_mut(size.saturating_mul(2).max(1)) {
        let (left, right) = pair.split_at_mut(size.min(pair.len()));
        if let Some(&last) = left.last() {
            right.iter_mut().for_each(|entry| *entry = combine(last, *entry));
        }
    }
}
// ANCHOR_END: tree
