//! Vector clocks that share their equal parts.
//!
//! A clock is a tree whose leaves hold the times of [`TIMES`] warps each. Clocks that agree in a
//! part share the node of that part. So the clock of a warp that has seen one more warp costs one
//! path through the tree, and a join costs only as much as the two clocks differ. As plain vectors,
//! the clocks of n warps in a chain would take n² words. Nodes count themselves, so that a launch
//! pays for the nodes that exist. Tested here against plain vectors.

use std::cell::Cell;
use std::rc::Rc;

use crate::report::{Account, Result, bytes_of};

/// The purpose that a refusal of the clocks' bytes names.
pub(super) const CLOCKS: &str = "the order of accesses by warps that run together";

/// Warps in a leaf.
const TIMES: usize = 32;
/// Parts of an inner node.
const PARTS: usize = 16;

/// For each warp, the last of its steps that has been seen; 0 without an entry.
#[derive(Debug, Clone, Default)]
pub(super) struct Clock(Option<Rc<Node>>);

#[derive(Debug, Clone)]
struct Node {
    part: Part,
    _counted: Counted,
}

#[derive(Debug, Clone)]
enum Part {
    Times([u32; TIMES]),
    Parts([Clock; PARTS]),
}

/// Counts the nodes that exist.
#[derive(Debug)]
struct Counted(Rc<Cell<u64>>);

impl Counted {
    fn new(nodes: &Rc<Cell<u64>>) -> Counted {
        nodes.set(nodes.get() + 1);
        Counted(nodes.clone())
    }
}

impl Clone for Counted {
    fn clone(&self) -> Counted {
        Counted::new(&self.0)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// The common state of a launch's clocks: the height of the trees and the number of nodes.
#[derive(Debug, Clone)]
pub(super) struct Clocks {
    /// Levels above the leaves.
    height: u32,
    nodes: Rc<Cell<u64>>,
    /// Nodes whose bytes have been taken from the account.
    taken: u64,
}

/// The clock that has seen all that two clocks have: both of them, one of them, or a new clock.
enum Joined {
    Both,
    First,
    Second,
    Neither(Clock),
}

impl Clocks {
    pub(super) fn new(units: usize) -> Clocks {
        let mut height = 0;
        while below(height + 1) < units {
            height += 1;
        }
        Clocks { height, nodes: Rc::default(), taken: 0 }
    }

    /// Returns the bytes of the host that the nodes take.
    pub(super) fn held(&self) -> u64 {
        (bytes_of::<Node>(1) + 16).saturating_mul(self.nodes.get())
    }

    /// Returns the last step of a warp that a clock has seen.
    pub(super) fn time(&self, clock: &Clock, unit: usize) -> u32 {
        let (mut clock, mut height) = (clock, self.height);
        while let Some(node) = &clock.0 {
            match &node.part {
                Part::Times(times) => return times[unit % TIMES],
                Part::Parts(parts) => clock = &parts[unit / below(height) % PARTS],
            }
            height -= 1;
        }
        0
    }

    /// Sets the last step of a warp that a clock has seen.
    pub(super) fn set(
        &mut self,
        account: &mut Account<'_>,
        clock: &mut Clock,
        unit: usize,
        time: u32,
    ) -> Result<()> {
        let mut clock = clock;
        for height in (0..=self.height).rev() {
            let node = clock.0.get_or_insert_with(|| {
                let part = match height {
                    0 => Part::Times([0; TIMES]),
                    _ => Part::Parts(std::array::from_fn(|_| Clock::default())),
                };
                node(part, &self.nodes)
            });
            match &mut Rc::make_mut(node).part {
                Part::Times(times) => {
                    times[unit % TIMES] = time;
                    break;
                }
                Part::Parts(parts) => clock = &mut parts[unit / below(height) % PARTS],
            }
        }
        self.settle(account)
    }

    /// Adds to a clock all that the other clock has seen.
    pub(super) fn join(
        &mut self,
        account: &mut Account<'_>,
        clock: &mut Clock,
        other: &Clock,
    ) -> Result<()> {
        match join(clock, other, &self.nodes) {
            Joined::Both | Joined::First => return Ok(()),
            Joined::Second => clock.clone_from(other),
            Joined::Neither(joined) => *clock = joined,
        }
        self.settle(account)
    }

    /// Takes bytes for nodes beyond the largest number so far, and some in advance.
    fn settle(&mut self, account: &mut Account<'_>) -> Result<()> {
        let more = self.nodes.get().saturating_sub(self.taken);
        if more == 0 {
            return Ok(());
        }
        let more = more.max(self.taken / 4).max(8);
        // The reference counts are stored beside each node.
        account.take((bytes_of::<Node>(1) + 16).saturating_mul(more), CLOCKS)?;
        self.taken += more;
        Ok(())
    }
}

/// Returns the number of warps below each part of an inner node at this height (1 or more).
fn below(height: u32) -> usize {
    TIMES * PARTS.pow(height - 1)
}

fn node(part: Part, nodes: &Rc<Cell<u64>>) -> Rc<Node> {
    Rc::new(Node { part, _counted: Counted::new(nodes) })
}

fn join(first: &Clock, second: &Clock, nodes: &Rc<Cell<u64>>) -> Joined {
    let (a, b) = match (&first.0, &second.0) {
        (None, None) => return Joined::Both,
        (Some(_), None) => return Joined::First,
        (None, Some(_)) => return Joined::Second,
        (Some(a), Some(b)) if Rc::ptr_eq(a, b) => return Joined::Both,
        (Some(a), Some(b)) => (&a.part, &b.part),
    };
    let part = match (a, b) {
        (Part::Times(a), Part::Times(b)) => {
            let holds = |x: &[u32; TIMES], y: &[u32; TIMES]| x.iter().zip(y).all(|(x, y)| x >= y);
            if let Some(joined) = either(holds(a, b), holds(b, a)) {
                return joined;
            }
            Part::Times(std::array::from_fn(|i| a[i].max(b[i])))
        }
        (Part::Parts(a), Part::Parts(b)) => {
            let joined: [Joined; PARTS] = std::array::from_fn(|i| join(&a[i], &b[i], nodes));
            let first = joined.iter().all(|part| matches!(part, Joined::Both | Joined::First));
            let second = joined.iter().all(|part| matches!(part, Joined::Both | Joined::Second));
            if let Some(joined) = either(first, second) {
                return joined;
            }
            let mut parts =
                joined.into_iter().zip(a.iter().zip(b)).map(|(part, (a, b))| match part {
                    Joined::Both | Joined::First => a.clone(),
                    Joined::Second => b.clone(),
                    Joined::Neither(part) => part,
                });
            Part::Parts(std::array::from_fn(|_| parts.next().unwrap_or_default()))
        }
        // All clocks of a launch have the same height.
        _ => return Joined::First,
    };
    Joined::Neither(Clock(Some(node(part, nodes))))
}

fn either(first: bool, second: bool) -> Option<Joined> {
    match (first, second) {
        (true, true) => Some(Joined::Both),
        (true, false) => Some(Joined::First),
        (false, true) => Some(Joined::Second),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Bounds;

    /// Runs the same operations on trees and on plain vectors, in a fixed, irregular order.
    #[test]
    fn trees_are_vectors() {
        let bounds = Bounds::new(0, u64::MAX, None);
        for units in [1, 31, 32, 33, 512, 513, 5000, 8192] {
            let mut account = Account::new(&bounds);
            let mut clocks = Clocks::new(units);
            let mut trees = vec![Clock::default(); 7];
            let mut vectors = vec![vec![0; units]; 7];
            let mut state = units as u32;
            let mut random = |below: usize| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as usize % below
            };
            for step in 1..2000 {
                let (a, b, unit) = (random(7), random(7), random(units));
                if step % 3 == 0 {
                    let other = trees[b].clone();
                    clocks.join(&mut account, &mut trees[a], &other).unwrap();
                    vectors[a] = (0..units).map(|i| vectors[a][i].max(vectors[b][i])).collect();
                } else {
                    clocks.set(&mut account, &mut trees[a], unit, step).unwrap();
                    vectors[a][unit] = step;
                }
                if step % 500 == 0 {
                    trees[b] = Clock::default();
                    vectors[b].fill(0);
                }
                assert_eq!(clocks.time(&trees[a], unit), vectors[a][unit]);
                if step % 50 == 0 {
                    let times: Vec<u32> = (0..units).map(|i| clocks.time(&trees[a], i)).collect();
                    assert_eq!(times, vectors[a], "{units} units, step {step}");
                }
            }
            assert!(clocks.nodes.get() <= clocks.taken);
            drop(trees);
            assert_eq!(clocks.nodes.get(), 0);
        }
    }

    /// Each warp has seen all warps before it, and the clocks of 8192 warps take three nodes each.
    #[test]
    fn a_chain_shares_what_it_has_seen() {
        let bounds = Bounds::new(0, u64::MAX, None);
        let mut account = Account::new(&bounds);
        let mut clocks = Clocks::new(8192);
        let mut chain = vec![Clock::default()];
        for unit in 0..8192 {
            let mut clock = Clock::default();
            clocks.join(&mut account, &mut clock, &chain[unit]).unwrap();
            clocks.set(&mut account, &mut clock, unit, 1).unwrap();
            chain.push(clock);
        }
        assert_eq!((0..8192).map(|unit| clocks.time(&chain[8192], unit)).sum::<u32>(), 8192);
        assert_eq!(clocks.time(&chain[4000], 4000), 0);
        assert_eq!(clocks.nodes.get(), 3 * 8192);
    }
}
