//! Compares the order with a model that stores everything in the simplest way: plain vectors for
//! clocks, and a history for every two bytes.

use std::collections::HashMap;

use super::*;
use crate::report::Bounds;

struct Simple {
    clocks: Vec<Vec<u32>>,
    fenced: Vec<Vec<u32>>,
    seen: Vec<Vec<u32>>,
    halves: HashMap<u64, Known>,
}

#[derive(Default)]
struct Known {
    write: Option<Step>,
    /// The last read of each warp since the write, the latest at the end.
    reads: Vec<Step>,
    published: Vec<u32>,
}

impl Simple {
    fn new(units: usize) -> Simple {
        let mut clocks = vec![vec![0; units]; units];
        for (unit, clock) in clocks.iter_mut().enumerate() {
            clock[unit] = 1;
        }
        let none = vec![vec![0; units]; units];
        Simple { clocks, fenced: none.clone(), seen: none, halves: HashMap::new() }
    }

    fn access(&mut self, unit: Unit, address: u64, bytes: u64, access: Access) -> Option<Conflict> {
        for place in address / 2..(address + bytes).div_ceil(2) {
            let found = self.half(unit, place, access);
            if found.is_some() {
                return found;
            }
        }
        if access.sync && access.writes && access.release {
            self.clocks[unit][unit] += 1;
        }
        None
    }

    fn half(&mut self, unit: Unit, place: u64, access: Access) -> Option<Conflict> {
        let known = self.halves.entry(place).or_default();
        let clock = &mut self.clocks[unit];
        known.published.resize(clock.len(), 0);
        let own = unit as u32;
        let unseen = |step: &&Step| {
            step.unit != own && step.time > clock[step.unit as usize] && !(step.sync && access.sync)
        };
        let conflict =
            |step: &Step, wrote| Some(Conflict { unit: step.unit as usize, pc: step.pc, wrote });
        if let Some(step) = known.write.as_ref().filter(unseen) {
            return conflict(step, true);
        }
        if access.writes
            && let Some(step) = known.reads.iter().find(unseen)
        {
            return conflict(step, false);
        }
        let step = Step { unit: own, time: clock[unit], pc: access.pc, sync: access.sync };
        if access.reads && access.sync {
            raise(if access.acquire { clock } else { &mut self.seen[unit] }, &known.published);
        }
        if access.writes {
            let remains = |old: &Step| access.sync && !old.sync && old.unit == own;
            if !known.write.as_ref().is_some_and(remains) {
                known.write = Some(step);
            }
            known.reads.retain(remains);
            if access.sync {
                if !access.reads {
                    known.published.fill(0);
                }
                let left = if access.release { &self.clocks[unit] } else { &self.fenced[unit] };
                raise(&mut known.published, left);
            }
        } else {
            known.reads.retain(|read| read.unit != own);
            known.reads.push(step);
        }
        None
    }

    fn fence(&mut self, unit: Unit) {
        raise(&mut self.clocks[unit], &self.seen[unit]);
        self.fenced[unit].clone_from(&self.clocks[unit]);
        self.clocks[unit][unit] += 1;
    }

    fn barrier(&mut self, units: std::ops::Range<Unit>) {
        let mut joined = vec![0; self.clocks.len()];
        units.clone().for_each(|unit| raise(&mut joined, &self.clocks[unit]));
        for unit in units {
            self.clocks[unit].clone_from(&joined);
            self.clocks[unit][unit] += 1;
        }
    }
}

fn raise(clock: &mut [u32], other: &[u32]) {
    for (mine, theirs) in clock.iter_mut().zip(other) {
        *mine = (*mine).max(*theirs);
    }
}

/// Runs random accesses, fences and barriers until the first race, many times. Both must find the
/// same race, or none.
#[test]
fn it_finds_what_the_simplest_order_finds() {
    let bounds = Bounds::new(0, u64::MAX, None);
    let mut state = 1_u32;
    let mut random = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % below
    };
    let (mut races, mut longest) = (0, 0);
    for run in 0..3000 {
        // Blocks have three warps. In a large launch, the active warps have numbers far apart.
        let units = match run % 16 {
            0 => 600,
            1..4 => 36,
            _ => 6,
        };
        let mut account = Account::new(&bounds);
        let mut order = Order::new(&mut account, units).unwrap();
        let mut simple = Simple::new(units);
        // In some runs nearly all accesses synchronise, or nearly none.
        let plain_of_8 = random(9);
        for pc in 0..200 {
            let unit = (random(6) as usize * 211) % units;
            match random(12) {
                0 => {
                    order.fence(&mut account, unit).unwrap();
                    simple.fence(unit);
                    continue;
                }
                1 => {
                    let first = unit / 3 * 3;
                    order.barrier(&mut account, first..first + 3).unwrap();
                    simple.barrier(first..first + 3);
                    continue;
                }
                _ => {}
            }
            let bytes = [1, 2, 4, 4, 4, 8, 16][random(7) as usize];
            let address = (1 << 40) + 4096 - 16 + u64::from(random(32 / bytes) * bytes);
            let sync = random(8) >= plain_of_8;
            let [reads, writes] = [[true, false], [false, true], [true, sync]][random(3) as usize];
            let acquire = sync && reads && random(2) == 0;
            let release = sync && writes && random(2) == 0;
            let access = Access { pc, reads, writes, sync, acquire, release };
            let wanted = simple.access(unit, address, bytes.into(), access);
            let found = match order.access(&mut account, unit, address, bytes, access) {
                Ok(()) => None,
                Err(Refused::Race(conflict)) => Some(conflict),
                Err(Refused::Fault(fault)) => panic!("{fault:?}"),
            };
            assert_eq!(format!("{found:?}"), format!("{wanted:?}"), "run {run}, step {pc}");
            longest = longest.max(pc);
            if found.is_some() {
                races += 1;
                break;
            }
        }
    }
    assert!((500..2900).contains(&races) && longest == 199, "{races} races, up to {longest} steps");
}
