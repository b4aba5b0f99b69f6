//! The cost of a request: sectors of global memory, and passes over the banks of shared memory.

/// Returns the distance in bytes between the addresses of neighbouring lanes, if the warp is full
/// and all distances are equal and not negative. For such a request, the cost follows without a
/// loop over the lanes.
pub(crate) fn stride(addresses: &[u64; 32], mask: u32) -> Option<u64> {
    let stride = addresses[1].wrapping_sub(addresses[0]);
    let mut expected =
        [0, 1, 2, 3].map(|lane: u64| addresses[0].wrapping_add(lane.wrapping_mul(stride)));
    let mut differ = [0; 4];
    for four in addresses.chunks_exact(4) {
        for k in 0..4 {
            differ[k] |= four[k] ^ expected[k];
            expected[k] = expected[k].wrapping_add(stride.wrapping_mul(4));
        }
    }
    let holds = differ == [0; 4] && addresses[0] <= addresses[31] && stride < 1 << 40;
    (mask == u32::MAX && holds).then_some(stride)
}

/// Returns the [`sectors`] of a full warp whose lanes have this stride.
pub(crate) fn sectors_apart(addresses: &[u64; 32], stride: u64) -> u64 {
    if stride < 32 { (addresses[31] >> 5) - (addresses[0] >> 5) + 1 } else { 32 }
}

/// Returns the number of 32-byte sectors that the lanes of `mask` touch, each with one aligned
/// access of at most 16 bytes; 1 if the mask is empty.
pub fn sectors(addresses: &[u64; 32], mask: u32) -> u64 {
    let far = addresses.iter().fold(0, |far, address| far | (address ^ addresses[0]));
    if mask == u32::MAX && far >> 36 == 0 {
        // Full warps with addresses near each other, mostly in order: a loop that vectorizes.
        let sector: [i32; 32] = addresses.map(|address| (address >> 5) as i32 & i32::MAX);
        let (mut changes, mut falls) = (0, 0);
        for i in 1..32 {
            changes += u32::from(sector[i] != sector[i - 1]);
            falls += u32::from(sector[i] < sector[i - 1]);
        }
        if falls == 0 {
            return u64::from(1 + changes);
        }
    }
    let mut all = [0; 32];
    let mut used = 0;
    for lane in lanes(mask) {
        let sector = addresses[lane] >> 5;
        // Neighbouring lanes mostly share a sector, or their sectors are in order.
        if used == 0 || all[used - 1] != sector {
            all[used] = sector;
            used += 1;
        }
    }
    let all = &mut all[..used];
    all.sort_unstable();
    1 + all.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64
}

/// Returns the number of passes over the 32 banks of shared memory that an access takes, and the
/// part of them that is due to conflicts. Accesses of 8 bytes are served for half a warp at a time,
/// accesses of 16 bytes for a quarter. Lanes that read the same word share it.
pub fn wavefronts(addresses: &[u64; 32], mask: u32, bytes: u32) -> (u64, u64) {
    let words = (bytes / 4).max(1) as u64;
    // Adjacent or equal addresses, or a single lane, never conflict.
    if let Some(stride) = stride(addresses, mask)
        && (stride == 0 || stride == u64::from(bytes.max(4)))
    {
        return (words, 0);
    }
    if mask.is_power_of_two() {
        return (1, 0);
    }
    let group = 32 / words as usize;
    let (mut total, mut least) = (0, 0);
    for start in (0..32).step_by(group) {
        let members = mask & ((u64::MAX >> (64 - group)) << start) as u32;
        if members == 0 {
            continue;
        }
        let mut seen = [0_u64; 32];
        let mut used = 0;
        for lane in lanes(members) {
            let first = addresses[lane] >> 2;
            for word in first..first + words {
                seen[used] = word;
                used += 1;
            }
        }
        let seen = &mut seen[..used];
        if !seen.is_sorted() {
            seen.sort_unstable();
        }
        let mut per_bank = [0_u64; 32];
        for (i, word) in seen.iter().enumerate() {
            per_bank[(word % 32) as usize] += u64::from(i == 0 || seen[i - 1] != *word);
        }
        total += per_bank.iter().max().copied().unwrap_or(0);
        least += 1;
    }
    (total, total - least)
}

/// Returns the lanes of a mask, in order.
pub(crate) fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        (rest != 0).then(|| {
            let lane = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            lane
        })
    })
}

#[cfg(test)]
mod tests {
    use crate::report::traffic::{sectors, wavefronts};

    fn strided(stride: u64) -> [u64; 32] {
        std::array::from_fn(|lane| 4096 + lane as u64 * stride)
    }

    #[test]
    fn sectors_of_strided_accesses() {
        assert_eq!(sectors(&strided(4), u32::MAX), 4);
        assert_eq!(sectors(&strided(16), u32::MAX), 16);
        assert_eq!(sectors(&strided(400), u32::MAX), 32);
        assert_eq!(sectors(&strided(0), u32::MAX), 1);
        let mut backward = strided(4);
        backward.reverse();
        assert_eq!(sectors(&backward, u32::MAX), 4);
        assert_eq!(sectors(&strided(4), 0b1_0000_0001), 2);
    }

    #[test]
    fn wavefronts_of_strided_accesses() {
        assert_eq!(wavefronts(&strided(4), u32::MAX, 4), (1, 0));
        assert_eq!(wavefronts(&strided(8), u32::MAX, 4), (2, 1));
        assert_eq!(wavefronts(&strided(128), u32::MAX, 4), (32, 31));
        assert_eq!(wavefronts(&strided(132), u32::MAX, 4), (1, 0));
        assert_eq!(wavefronts(&strided(0), u32::MAX, 4), (1, 0));
        assert_eq!(wavefronts(&strided(8), u32::MAX, 8), (2, 0));
        assert_eq!(wavefronts(&strided(16), u32::MAX, 16), (4, 0));
        assert_eq!(wavefronts(&strided(32), u32::MAX, 16), (8, 4));
    }

    /// Addresses outside of memory must not fail here; they are checked later.
    #[test]
    fn addresses_at_the_ends_of_numbers() {
        for addresses in [[u64::MAX - 3; 32], strided(u64::MAX / 31 - 4096)] {
            for bytes in [1, 2, 4, 8, 16] {
                let addresses = addresses.map(|address| address / bytes * bytes);
                let (passes, conflicts) = wavefronts(&addresses, u32::MAX, bytes as u32);
                assert!(passes > conflicts);
                assert!((1..=32).contains(&sectors(&addresses, u32::MAX)));
            }
        }
    }
}
