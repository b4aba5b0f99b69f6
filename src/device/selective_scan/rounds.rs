//! Time in rounds of blocks, for the rules that cut long sequences.

/// Multiprocessors: an H200's. They are not asked of the device, so that results are the same on
/// all.
pub(super) const MULTIPROCESSORS: usize = 132;

/// How many rounds so many blocks take, where each multiprocessor has `at_once` of them: a block
/// that has one for itself takes `alone` of a round.
pub(super) fn rounds(blocks: usize, at_once: usize, alone: f64) -> f64 {
    let round = at_once * MULTIPROCESSORS;
    let rest = match blocks % round {
        0 => 0.0,
        rest if rest <= MULTIPROCESSORS => alone,
        _ => 1.0,
    };
    (blocks / round) as f64 + rest
}
