//! Loads and stores: from operands to addresses, and from there to the memory they mean.

use super::Run;
use super::fault::{Result, fault};
use super::local::{load_local, store_local};
use super::parameter::no_parameter;
use super::registers::{ALL, Registers};
use super::warp::{Place, Scratch};
use crate::counters::{self, lanes as each};
use crate::program::{Address, Base, Order, Slot, Space, Type};
use crate::report::ReportKind;
use crate::trace::{Accessed, Event, What};

/// Generic addresses: shared and local memory and the parameters each have a window below the first
/// buffer of global memory.
pub(crate) const SHARED_WINDOW: u64 = 1 << 32;
pub(crate) const LOCAL_WINDOW: u64 = 2 << 32;
pub(crate) const PARAMETER_WINDOW: u64 = 3 << 32;
pub(crate) const WINDOW_END: u64 = 4 << 32;

/// A load or a store of every lane: `count` values of type `ty`.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) space: Space,
    pub(super) order: Order,
    pub(super) ty: Type,
    pub(super) count: u8,
    /// The registers have 64 bits.
    pub(super) wide: bool,
    pub(super) slots: [Slot; 4],
}

/// What lanes ask for: the addresses, whose, and how far apart, as [`counters::stride`] says.
pub(super) type Asked<'a> = (&'a [u64; 32], u32, Option<u64>);

impl Shape {
    pub(super) fn bytes(&self) -> u32 {
        self.ty.bytes() * u32::from(self.count)
    }
}

/// Every lane's address.
#[inline(always)]
pub(super) fn addresses(r: &Registers, address: Address) -> [u64; 32] {
    match address.base {
        Base::Zero => [address.offset as u64; 32],
        Base::Word(slot) => {
            let base = r.words(slot);
            // 32-bit addresses wrap in 32 bits, as shared memory's do.
            std::array::from_fn(|i| base[i].wrapping_add(address.offset as u32).into())
        }
        Base::Long(slot) => {
            let base = r.longs(slot);
            std::array::from_fn(|i| base[i].wrapping_add(address.offset as u64))
        }
    }
}

/// The lanes of a generic access whose addresses lie in each space, and their addresses there.
fn by_space(mut addresses: [u64; 32], lanes: u32) -> ([u64; 32], [(Space, u32); 4]) {
    let mut parts =
        [Space::Global, Space::Shared, Space::Local, Space::Parameter].map(|space| (space, 0));
    for lane in each(lanes) {
        let window = match addresses[lane] {
            SHARED_WINDOW..LOCAL_WINDOW => 1,
            LOCAL_WINDOW..PARAMETER_WINDOW => 2,
            PARAMETER_WINDOW..WINDOW_END => 3,
            _ => 0,
        };
        addresses[lane] -= [0, SHARED_WINDOW, LOCAL_WINDOW, PARAMETER_WINDOW][window];
        parts[window].1 |= 1 << lane;
    }
    (addresses, parts)
}

/// Calls `access` once, or for a generic access once for every space that is meant.
#[inline(always)]
pub(super) fn in_spaces(
    space: Space,
    addresses: &[u64; 32],
    lanes: u32,
    mut access: impl FnMut(Space, &[u64; 32], u32) -> Result<()>,
) -> Result<()> {
    if space != Space::Generic {
        return access(space, addresses, lanes);
    }
    let (addresses, parts) = by_space(*addresses, lanes);
    for (space, lanes) in parts.into_iter().filter(|(_, lanes)| *lanes != 0) {
        access(space, &addresses, lanes)?;
    }
    Ok(())
}

impl Run<'_> {
    pub(super) fn load(
        &mut self,
        r: &mut Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        shape: Shape,
        address: Address,
        lanes: u32,
    ) -> Result<()> {
        let all = addresses(r, address);
        self.load_at(r, scratch, place, shape, &all, lanes)
    }

    /// A load from addresses that are known.
    #[inline(always)]
    pub(super) fn load_at(
        &mut self,
        r: &mut Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        shape: Shape,
        all: &[u64; 32],
        lanes: u32,
    ) -> Result<()> {
        in_spaces(shape.space, all, lanes, |space, addresses, lanes| {
            let stride = counters::stride(addresses, lanes);
            self.request(place, shape.bytes(), space, (addresses, lanes, stride), "reads")?;
            match space {
                Space::Global | Space::Generic | Space::Constant => {
                    if space == Space::Constant {
                        self.in_constant_memory(addresses, lanes, shape.bytes())?;
                    }
                    self.load_global(r, place, shape, (addresses, lanes, stride))?;
                }
                Space::Shared => {
                    let done = self.load_shared(r, scratch, place, shape, addresses, lanes);
                    if let Err(fault) = done {
                        let accessed = (addresses, lanes);
                        self.load_unwritten(r, scratch, place, shape, accessed, fault)?;
                    }
                }
                Space::Local => load_local(r, scratch, shape, addresses, lanes)?,
                Space::Parameter => self.load_parameters(r, shape, addresses, lanes)?,
            }
            self.trace_access(r, place, shape, space, addresses, lanes, What::Load)
        })
    }

    pub(super) fn store(
        &mut self,
        r: &Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        shape: Shape,
        address: Address,
        lanes: u32,
    ) -> Result<()> {
        let all = addresses(r, address);
        self.store_at(r, scratch, place, shape, &all, lanes)
    }

    /// A store to addresses that are known.
    #[inline(always)]
    pub(super) fn store_at(
        &mut self,
        r: &Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        shape: Shape,
        all: &[u64; 32],
        lanes: u32,
    ) -> Result<()> {
        in_spaces(shape.space, all, lanes, |space, addresses, lanes| {
            let stride = counters::stride(addresses, lanes);
            self.request(place, shape.bytes(), space, (addresses, lanes, stride), "writes")?;
            match space {
                Space::Global | Space::Generic | Space::Constant => {
                    self.store_global(r, place, shape, (addresses, lanes, stride))?;
                }
                Space::Shared => {
                    self.store_shared(r, scratch, place, shape, addresses, lanes)?;
                }
                Space::Local => store_local(r, scratch, shape, addresses, lanes)?,
                Space::Parameter => return no_parameter("writes", addresses, lanes),
            }
            self.progress |= space != Space::Local;
            self.trace_access(r, place, shape, space, addresses, lanes, What::Store)
        })
    }

    /// Refuses a request that is misaligned; counts it otherwise.
    #[inline(always)]
    fn request(
        &mut self,
        place: &Place,
        bytes: u32,
        space: Space,
        (addresses, lanes, stride): Asked<'_>,
        verb: &str,
    ) -> Result<()> {
        // Equally far apart, all are aligned if the first one and the distance are.
        if stride.is_none_or(|stride| (addresses[0] | stride) & u64::from(bytes - 1) != 0) {
            aligned(addresses, lanes, bytes, verb, || self.what(space, addresses, lanes, bytes))?;
        }
        match (space, stride) {
            (Space::Global | Space::Generic, Some(stride)) => {
                let traffic = &mut self.tally.traffic[place.pc as usize];
                traffic.requests += 1;
                traffic.bytes += 32 * u64::from(bytes);
                traffic.sectors += counters::sectors_apart(addresses, stride);
            }
            _ => self.count(place, space, addresses, lanes, bytes),
        }
        Ok(())
    }

    /// Counts a request.
    pub(super) fn count(
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
                let (wavefronts, conflicts) = counters::wavefronts(addresses, lanes, bytes);
                traffic.wavefronts += wavefronts;
                traffic.conflicts += conflicts;
            }
            Space::Local | Space::Constant | Space::Parameter => {}
            _ => traffic.sectors += counters::sectors(addresses, lanes),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "what an event is made of")]
    pub(super) fn trace_access(
        &mut self,
        r: &Registers,
        place: &Place,
        shape: Shape,
        space: Space,
        addresses: &[u64; 32],
        lanes: u32,
        what: fn(Accessed) -> What,
    ) -> Result<()> {
        if matches!(space, Space::Local | Space::Constant | Space::Parameter) {
            return Ok(());
        }
        let kernel = self.launch.kernel;
        let Some(trace) = &mut self.trace else { return Ok(()) };
        trace.push(&mut self.account, shape.count, || {
            let values = shape.slots[..shape.count.into()].iter();
            Event {
                block: place.block,
                warp: place.warp,
                lanes,
                line: kernel.places[place.pc as usize].line,
                source: kernel.source_of(place.pc as usize),
                what: what(Accessed {
                    shared: space == Space::Shared,
                    bytes: shape.ty.bytes(),
                    addresses: *addresses,
                    values: values
                        .map(|&slot| std::array::from_fn(|lane| r.lane(slot, shape.wide, lane)))
                        .collect(),
                }),
            }
        })
    }

    /// What the first lane's address is, as a phrase.
    pub(super) fn what(
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
            _ => crate::global_memory::describe(self.slots, addresses[lane]),
        }
    }
}

/// Reports the lanes whose address is no multiple of the access's size.
#[inline(always)]
pub(super) fn aligned(
    addresses: &[u64; 32],
    lanes: u32,
    bytes: u32,
    verb: &str,
    what: impl FnOnce() -> String,
) -> Result<()> {
    let all = if lanes == ALL {
        addresses.iter().fold(0, |all, address| all | address)
    } else {
        each(lanes).fold(0, |all, lane| all | addresses[lane])
    };
    if all & u64::from(bytes - 1) == 0 {
        return Ok(());
    }
    misaligned(addresses, lanes, bytes, verb, &what())
}

#[cold]
fn misaligned(addresses: &[u64; 32], lanes: u32, bytes: u32, verb: &str, what: &str) -> Result<()> {
    let odd = each(lanes).filter(|&lane| addresses[lane] & u64::from(bytes - 1) != 0);
    let odd = odd.fold(0, |mask, lane| mask | 1 << lane);
    let message = format!("{verb} {bytes} bytes at {what}, which is no multiple of {bytes}");
    fault(ReportKind::Misaligned, odd, message)
}

/// What an access moves, as `W` words of 32 bits per lane: 1 for up to four bytes, 2 for eight, 4
/// for sixteen.
pub(super) type Moved<const W: usize> = [[u32; W]; 32];

/// Puts what a load read into the registers.
#[inline(always)]
pub(super) fn spread<const W: usize>(
    r: &mut Registers,
    shape: &Shape,
    lanes: u32,
    moved: &Moved<W>,
) {
    let slots = &shape.slots[..shape.count.into()];
    match shape.ty {
        // Values of whole words in registers of their size.
        Type::U32 | Type::S32 | Type::F32 if !shape.wide => {
            for (k, &slot) in slots.iter().enumerate() {
                r.set_words(slot, lanes, |i| moved[i][k % W]);
            }
        }
        Type::U64 | Type::S64 | Type::F64 => {
            for (k, &slot) in slots.iter().enumerate() {
                let (low, high) = (2 * k % W, (2 * k + 1) % W);
                r.set_longs(slot, lanes, |i| {
                    u64::from(moved[i][low]) | u64::from(moved[i][high]) << 32
                });
            }
        }
        _ => {
            for lane in each(lanes) {
                for (k, &slot) in slots.iter().enumerate() {
                    r.set_lane(slot, shape.wide, lane, extended(shape.ty, &moved[lane], k));
                }
            }
        }
    }
}

/// Value number `k` of an access, filling its register by zeros or, if its type is signed, by its
/// sign.
pub(super) fn extended(ty: Type, words: &[u32], k: usize) -> u64 {
    // Short values of a vector share words.
    let first = 8 * ty.bytes() as usize * k;
    let bits = words[first / 32 % words.len()] >> (first % 32);
    match ty {
        Type::U8 => u64::from(bits & 0xff),
        Type::S8 => bits as i8 as i64 as u64,
        Type::S16 => bits as i16 as i64 as u64,
        Type::S32 => bits as i32 as i64 as u64,
        _ if ty.bytes() == 2 => u64::from(bits & 0xffff),
        _ => bits.into(),
    }
}

/// What a store takes from the registers.
#[inline(always)]
pub(super) fn gathered<const W: usize>(r: &Registers, shape: &Shape) -> Moved<W> {
    let mut moved = [[0; W]; 32];
    for (k, &slot) in shape.slots[..shape.count.into()].iter().enumerate() {
        match shape.ty.bytes() {
            8 => {
                let value = r.longs(slot);
                for i in 0..32 {
                    moved[i][2 * k % W] = value[i] as u32;
                    moved[i][(2 * k + 1) % W] = (value[i] >> 32) as u32;
                }
            }
            4 if !shape.wide => {
                let value = r.words(slot);
                for i in 0..32 {
                    moved[i][k % W] = value[i];
                }
            }
            bytes => {
                let (first, bits) = (8 * bytes as usize * k, 8 * bytes);
                let part = u32::MAX >> (32 - bits);
                for (i, moved) in moved.iter_mut().enumerate() {
                    let value = r.lane(slot, shape.wide, i) as u32 & part;
                    moved[first / 32 % W] |= value << (first % 32);
                }
            }
        }
    }
    moved
}
