//! Three cups and a ball: a game in which the order of the steps counts.
//!
//! - [`Swap`] and [`follow`]: the game itself.
//! - [`counted`]: the most that the number of swaps of each kind reveals, which is all that a
//!   product of numbers keeps.
//! - [`exact`]: recurrences that do follow the ball: matrices, and two layers of numbers.

pub mod counted;
pub mod exact;
pub mod layer;
pub mod network;
pub mod training;

/// The event at one position.
// ANCHOR: game
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swap {
    /// Cups 0 and 1 change places.
    Left,
    /// Cups 1 and 2 change places.
    Right,
}

/// The things under the three cups, each numbered by its cup at the beginning.
pub type Order = [usize; 3];

/// The order before the first swap. The ball is thing 0.
pub const START: Order = [0, 1, 2];

impl Swap {
    /// Returns the order after this swap.
    pub fn apply(self, mut order: Order) -> Order {
        match self {
            Swap::Left => order.swap(0, 1),
            Swap::Right => order.swap(1, 2),
        }
        order
    }
}

/// Returns the cup with the ball after each swap.
pub fn follow(swaps: &[Swap]) -> Vec<usize> {
    let orders = swaps.iter().scan(START, |order, swap| {
        *order = swap.apply(*order);
        Some(*order)
    });
    orders.map(ball).collect()
}

/// Returns the cup with the ball.
pub fn ball(order: Order) -> usize {
    order.iter().position(|&thing| thing == 0).unwrap_or(0)
}
// ANCHOR_END: game
