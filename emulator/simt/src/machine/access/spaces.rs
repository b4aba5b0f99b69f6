//! Loads and stores: from operands to addresses, and from addresses to the memory that they select.

use super::local::{load_local, no_parameter, store_local};
use super::moved::{Request, addresses, aligned, in_spaces};
use crate::isa::{Address, Order, Space, Vector};
use crate::machine::state::{Lanes, Next, Place, Registers, Run, Scratch};
use crate::report::{Accessed, Result, What, lanes as each};

impl Run<'_> {
    pub(crate) fn load(
        &mut self,
        r: &mut Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        shape: Vector,
        address: Address,
        lanes: u32,
    ) -> Result<()> {
        let all = addresses(r, address);
        self.load_at(r, scratch, place, shape, &all, lanes)
    }

    /// Loads from addresses that have been computed.
    #[inline(always)]
    pub(crate) fn load_at(
        &mut self,
        r: &mut Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        shape: Vector,
        all: &[u64; 32],
        lanes: u32,
    ) -> Result<()> {
        in_spaces(shape.space, all, lanes, |space, addresses, lanes| {
            let stride = crate::report::stride(addresses, lanes);
            self.request(place, shape.bytes(), space, (addresses, lanes, stride), "reads")?;
            match space {
                Space::Global | Space::Generic | Space::Constant => {
                    if space == Space::Constant {
                        self.in_constant_memory(addresses, lanes, shape.bytes())?;
                    }
                    self.load_global(r, place, shape, (addresses, lanes, stride))?;
                }
                Space::Shared => {
                    let asked = (addresses, lanes);
                    if let Err(fault) = self.load_shared(r, scratch, place, shape, asked) {
                        self.load_unwritten(r, scratch, place, shape, asked, fault)?;
                    }
                }
                Space::Local => load_local(r, scratch, shape, addresses, lanes)?,
                Space::Parameter => self.load_parameters(r, shape, addresses, lanes)?,
            }
            self.trace_access(r, place, shape, space, addresses, lanes, What::Load)
        })
    }

    pub(crate) fn store(
        &mut self,
        r: &mut Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        at: Lanes,
        shape: Vector,
        address: Address,
    ) -> Result<Next> {
        let all = addresses(r, address);
        self.store_at(r, scratch, place, shape, &all, at.active)?;
        match shape.order == Order::Release && scratch.shared.follows() {
            true => self.behind(scratch, place, at.active),
            false => Ok(Next::Step),
        }
    }

    /// Stores to addresses that have been computed.
    #[inline(always)]
    pub(crate) fn store_at(
        &mut self,
        r: &Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        shape: Vector,
        all: &[u64; 32],
        lanes: u32,
    ) -> Result<()> {
        in_spaces(shape.space, all, lanes, |space, addresses, lanes| {
            let stride = crate::report::stride(addresses, lanes);
            self.request(place, shape.bytes(), space, (addresses, lanes, stride), "writes")?;
            match space {
                Space::Global | Space::Generic | Space::Constant => {
                    self.store_global(r, place, shape, (addresses, lanes, stride))?;
                }
                Space::Shared => {
                    self.store_shared(r, scratch, place, shape, (addresses, lanes))?;
                }
                Space::Local => store_local(r, scratch, shape, addresses, lanes)?,
                Space::Parameter => return no_parameter("writes", addresses, lanes),
            }
            self.progress |= space != Space::Local;
            self.trace_access(r, place, shape, space, addresses, lanes, What::Store)
        })
    }

    /// Refuses a misaligned request, and counts an aligned one.
    #[inline(always)]
    fn request(
        &mut self,
        place: &Place,
        bytes: u32,
        space: Space,
        (addresses, lanes, stride): Request<'_>,
        verb: &str,
    ) -> Result<()> {
        // If the addresses are equally far apart, the first one and the distance decide for all.
        if stride.is_none_or(|stride| (addresses[0] | stride) & u64::from(bytes - 1) != 0) {
            self.aligned_in(space, addresses, lanes, bytes, verb)?;
        }
        match (space, stride) {
            (Space::Global | Space::Generic, Some(stride)) => {
                let traffic = &mut self.tally.traffic[place.pc as usize];
                traffic.requests += 1;
                traffic.bytes += 32 * u64::from(bytes);
                traffic.sectors += crate::report::sectors_apart(addresses, stride);
            }
            _ => self.count(place, space, addresses, lanes, bytes),
        }
        Ok(())
    }

    pub(crate) fn count(
        &mut self,
        place: &Place,
        space: Space,
        addresses: &[u64; 32],
        lanes: u32,
        bytes: u32,
    ) {
        let traffic = &mut self.tally.traffic[place.pc as usize];
        traffic.requests += 1;
        traffic.bytes += u64::from(bytes) * u64::from(lanes.count_ones());
        match space {
            Space::Shared => {
                let (wavefronts, conflicts) = crate::report::wavefronts(addresses, lanes, bytes);
                traffic.wavefronts += wavefronts;
                traffic.conflicts += conflicts;
            }
            Space::Local | Space::Constant | Space::Parameter => {}
            _ => traffic.sectors += crate::report::sectors(addresses, lanes),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "what an event is made of")]
    pub(crate) fn trace_access(
        &mut self,
        r: &Registers,
        place: &Place,
        shape: Vector,
        space: Space,
        addresses: &[u64; 32],
        lanes: u32,
        what: fn(Accessed) -> What,
    ) -> Result<()> {
        if matches!(space, Space::Local | Space::Constant | Space::Parameter) {
            return Ok(());
        }
        self.trace_lanes(place, lanes, shape.count, || {
            let values = shape.slots[..shape.count.into()].iter();
            let values = values.map(|&slot| r.lanes(slot, shape.wide)).collect();
            let (shared, bytes) = (space == Space::Shared, shape.ty.bytes());
            what(Accessed { shared, bytes, addresses: *addresses, values })
        })
    }

    /// Reports the lanes whose address in a space is not a multiple of the access's size.
    #[inline(always)]
    pub(crate) fn aligned_in(
        &self,
        space: Space,
        addresses: &[u64; 32],
        lanes: u32,
        bytes: u32,
        verb: &str,
    ) -> Result<()> {
        aligned(addresses, lanes, bytes, verb, || self.what(space, addresses, lanes, bytes))
    }

    /// Describes the address of the first misaligned lane, or else of the first lane.
    pub(crate) fn what(
        &self,
        space: Space,
        addresses: &[u64; 32],
        lanes: u32,
        bytes: u32,
    ) -> String {
        let lane = each(lanes)
            .find(|&lane| !addresses[lane].is_multiple_of(u64::from(bytes)))
            .unwrap_or(lanes.trailing_zeros() as usize);
        match space {
            Space::Shared => format!("offset {} of shared memory", addresses[lane]),
            Space::Local => format!("offset {} of local memory", addresses[lane]),
            Space::Parameter => format!("offset {} of the parameters", addresses[lane]),
            _ => crate::memory::global::describe(self.slots, addresses[lane]),
        }
    }
}
