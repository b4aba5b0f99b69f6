//! `mbarrier`: barriers that are objects in shared memory.
//!
//! A test of a phase that is not over ends the warp's turn, so that the warps that it waits for
//! run.

use super::moved::addresses;
use crate::isa::{Address, Order, Slot, Space};
use crate::machine::state::{Lanes, Next, Place, Registers, Run, Scratch, Spin, actor};
use crate::memory::shared::Fault;
use crate::memory::shared::mbarrier::{MOST_ARRIVALS, Phase, Wrong, mbarrier_bytes};
use crate::report::{Count, ReportKind, Result, fault, lanes as each, uncounted};

/// An operation on an mbarrier.
#[derive(Clone, Copy)]
pub(crate) enum Operation {
    Initialize { count: Slot },
    Invalidate,
    Arrive { d: Option<Slot>, count: Option<Slot> },
    Expect { d: Option<Slot>, bytes: Option<Slot>, arrives: bool },
    Test { d: Slot, phase: Slot, parity: bool },
}

impl Operation {
    pub(crate) const BULK: &str = "copies for an mbarrier of";

    fn verb(self) -> &'static str {
        match self {
            Operation::Initialize { .. } => "initialises an mbarrier",
            Operation::Invalidate => "invalidates the mbarrier",
            Operation::Arrive { .. } => "arrives at the mbarrier",
            Operation::Expect { .. } => "tells what to expect to the mbarrier",
            Operation::Test { .. } => "waits for the mbarrier",
        }
    }
}

impl Run<'_> {
    /// Executes the operation in one lane after the other, the lowest first. Returns the lanes that
    /// have to wait, and the mbarrier that the first of them waits for.
    pub(crate) fn mbarrier(
        &mut self,
        r: &mut Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        at: Lanes,
        operation: Operation,
        address: Address,
    ) -> Result<Next> {
        let lanes = at.active;
        const USES: &str = "uses an mbarrier of";
        let all = addresses(r, address);
        self.aligned_in(Space::Shared, &all, lanes, 8, USES)?;
        if place.warp_epoch == u32::MAX {
            return uncounted("barriers of a warp", lanes);
        }
        let (mut spin, mut over) = (None, 0);
        for lane in each(lanes) {
            let offset = self.in_shared(scratch, &all, lane, lanes, 8, USES)?;
            let actor = actor(place, lane, Order::Weak);
            let done = match operation {
                Operation::Initialize { count } => {
                    self.initialize(scratch, place, offset, r.words(count)[lane], lane)?
                }
                Operation::Invalidate => {
                    scratch.shared.invalidate(offset, actor).map_err(Wrong::from)
                }
                Operation::Arrive { d, .. } | Operation::Expect { d, .. } => {
                    let (arrived, publishes) = match operation {
                        Operation::Expect { bytes, arrives, .. } => {
                            let bytes = bytes.map(|slot| r.words(slot)[lane]);
                            if bytes.is_some_and(|bytes| bytes > MOST_ARRIVALS) {
                                return self.too_many_bytes(bytes, offset, lane);
                            }
                            let expected = scratch.shared.expect_at(offset, bytes, arrives, actor);
                            (expected, arrives || bytes.is_none())
                        }
                        Operation::Arrive { count, .. } => {
                            let count = count.map_or(1, |slot| r.words(slot)[lane]);
                            (scratch.shared.arrive_at(offset, count, actor), true)
                        }
                        _ => (Err(Wrong::Phase), false),
                    };
                    if let Ok((state, over)) = arrived {
                        if let Some(d) = d {
                            r.set_lane(d, true, lane, state);
                        }
                        if publishes {
                            self.arrive(place, offset, over)?;
                        }
                    }
                    arrived.map(|_| ())
                }
                Operation::Test { phase, parity, .. } => {
                    let phase = match parity {
                        true => Phase::Parity(r.words(phase)[lane]),
                        false => Phase::State(r.longs(phase)[lane]),
                    };
                    let found = scratch.shared.is_over(offset, phase, actor);
                    match found {
                        Ok(true) => {
                            over |= 1 << lane;
                            if let Some(order) = &mut self.order {
                                let (account, unit) = (&mut self.account, place.unit);
                                order.wait(account, unit, (place.block, offset))?;
                            }
                        }
                        Ok(false) => {
                            let first = Spin { offset, pc: place.pc, lanes: 0 };
                            spin.get_or_insert(first).lanes |= 1 << lane;
                        }
                        Err(_) => {}
                    }
                    found.map(|_| ())
                }
            };
            if let Err(wrong) = done {
                return self.wrong_mbarrier(wrong, operation, offset, lane);
            }
        }
        self.progress |= !matches!(operation, Operation::Test { .. });
        match operation {
            Operation::Test { d, .. } => {
                r.set_predicate(d, lanes, over);
                Ok(spin.map_or(Next::Step, Next::Yield))
            }
            Operation::Arrive { .. } | Operation::Expect { .. } => {
                scratch.shared.part(place.warp, place.warp_epoch);
                Ok(Next::WarpBarrier)
            }
            _ => Ok(Next::Step),
        }
    }

    fn initialize(
        &mut self,
        scratch: &mut Scratch<'_>,
        place: &Place,
        offset: u32,
        count: u32,
        lane: usize,
    ) -> Result<std::result::Result<(), Wrong>> {
        if !(1..=MOST_ARRIVALS).contains(&count) {
            let message = format!(
                "initialises an mbarrier for {count} arrivals: at least 1 and at most {MOST_ARRIVALS} are possible"
            );
            return fault(ReportKind::Barrier, 1 << lane, message);
        }
        match scratch.shared.initialize(offset, count, actor(place, lane, Order::Weak)) {
            Ok(true) => self.account.take(mbarrier_bytes(place.warps), "mbarriers")?,
            Ok(false) => {}
            Err(found) => return Ok(Err(found.into())),
        }
        if let Some(order) = &mut self.order {
            order.initialize(&mut self.account, (place.block, offset))?;
        }
        Ok(Ok(()))
    }

    /// Handles the result of a bulk copy's notification of its mbarrier.
    pub(crate) fn notified(
        &mut self,
        scratch: &mut Scratch<'_>,
        place: &Place,
        notified: std::result::Result<bool, Wrong>,
        offset: u32,
        lane: usize,
    ) -> Result<()> {
        let over = match notified {
            Ok(over) => over,
            Err(wrong) => {
                let operation = Operation::Expect { d: None, bytes: None, arrives: false };
                return self.wrong_mbarrier(wrong, operation, offset, lane);
            }
        };
        let bytes = scratch.shared.unpaid_bytes(offset);
        self.account.take(bytes, "copies in flight")?;
        self.arrive(place, offset, over)
    }

    /// Records in the order of accesses that a warp arrives at an mbarrier.
    fn arrive(&mut self, place: &Place, offset: u32, over: bool) -> Result<()> {
        match &mut self.order {
            Some(order) => order.arrive(&mut self.account, place.unit, (place.block, offset), over),
            None => Ok(()),
        }
    }

    #[cold]
    fn too_many_bytes<T>(&self, bytes: Option<u32>, offset: u32, lane: usize) -> Result<T> {
        let message = format!(
            "expects {} at the mbarrier at offset {offset} of shared memory: at most {MOST_ARRIVALS} are possible",
            Count(bytes.unwrap_or(0), "byte")
        );
        fault(ReportKind::Barrier, 1 << lane, message)
    }

    #[cold]
    fn wrong_mbarrier<T>(
        &self,
        wrong: Wrong,
        operation: Operation,
        offset: u32,
        lane: usize,
    ) -> Result<T> {
        let what = format!("{} at offset {offset} of shared memory", operation.verb());
        let message = match wrong {
            Wrong::Access(Fault::NoMbarrier) => {
                let message = format!("{what}, where none has been initialised");
                return fault(ReportKind::Uninitialized, 1 << lane, message);
            }
            Wrong::Access(found) => return self.shared_found(found, &what, lane),
            Wrong::Arrivals { count, pending } => {
                format!("{what} {}, and its phase takes 1 to {pending}", Count(count, "time"))
            }
            Wrong::Phase => format!(
                "{what} with a parity that is neither 0 nor 1, or a state that is not of this phase or the one before"
            ),
        };
        fault(ReportKind::Barrier, 1 << lane, message)
    }
}
