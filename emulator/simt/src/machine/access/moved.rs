//! The addresses of an access, and the values that move between memory and registers.

use crate::isa::{
    Address, Base, LOCAL_WINDOW, PARAMETER_WINDOW, SHARED_WINDOW, Space, Type, Vector, WINDOW_END,
};
use crate::machine::state::{ALL, Registers};
use crate::report::{ReportKind, Result, fault, lanes as each};

/// A request of a warp: the addresses, the lanes, and the distance that `stride` returns.
pub(crate) type Request<'a> = (&'a [u64; 32], u32, Option<u64>);

/// Returns every lane's address.
#[inline(always)]
pub(crate) fn addresses(r: &Registers, address: Address) -> [u64; 32] {
    match address.base {
        Base::Zero => [address.offset as u64; 32],
        Base::Word(slot) => {
            let base = r.words(slot);
            // 32-bit addresses wrap in 32 bits, as in shared memory.
            std::array::from_fn(|i| base[i].wrapping_add(address.offset as u32).into())
        }
        Base::Long(slot) => {
            let base = r.longs(slot);
            std::array::from_fn(|i| base[i].wrapping_add(address.offset as u64))
        }
    }
}

/// Splits a generic access: returns the addresses within the spaces, and each space's lanes.
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

/// Calls `access` once, or for a generic access once for every space that it touches.
#[inline(always)]
pub(crate) fn in_spaces(
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

/// Reports the lanes whose address is not a multiple of the access's size.
#[inline(always)]
pub(crate) fn aligned(
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

/// The values of an access, as `W` words of 32 bits for each lane: 1 for up to four bytes, 2 for
/// eight, 4 for sixteen.
pub(crate) type Moved<const W: usize> = [[u32; W]; 32];

/// Puts the values that a load has read into the registers.
#[inline(always)]
pub(crate) fn spread<const W: usize>(
    r: &mut Registers,
    shape: &Vector,
    lanes: u32,
    moved: &Moved<W>,
) {
    let slots = &shape.slots[..shape.count.into()];
    match shape.ty {
        // Values of whole words, in registers of the same size.
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

/// Returns value number `k` of an access, extended to its register: by the sign if its type is
/// signed, otherwise by zeros.
fn extended(ty: Type, words: &[u32], k: usize) -> u64 {
    // Short values of a vector share a word.
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

/// Collects the values of a store from the registers.
#[inline(always)]
pub(crate) fn gathered<const W: usize>(r: &Registers, shape: &Vector) -> Moved<W> {
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
