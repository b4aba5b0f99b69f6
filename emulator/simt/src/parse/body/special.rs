//! Special registers: the place of a thread in warp, block and grid; counters in place of clocks.

use crate::isa::{Clock, Compare, Reserved, Special};
use crate::parse::source::types::{Typed, U32, U64};

/// Returns the special register with a name.
pub(crate) fn special(name: &str) -> Option<Special> {
    let named = named!(name, Special {
        "%tid.x" => Tid(0), "%tid.y" => Tid(1), "%tid.z" => Tid(2), "%ntid.x" => Ntid(0),
        "%ntid.y" => Ntid(1), "%ntid.z" => Ntid(2), "%ctaid.x" => Ctaid(0), "%ctaid.y" => Ctaid(1),
        "%ctaid.z" => Ctaid(2), "%nctaid.x" => Nctaid(0), "%nctaid.y" => Nctaid(1),
        "%nctaid.z" => Nctaid(2), "%laneid" => LaneId, "%warpid" => WarpId, "%nwarpid" => WarpCount,
        "WARP_SZ" => WarpSize, "%lanemask_eq" => LaneMask(Compare::Eq),
        "%lanemask_le" => LaneMask(Compare::Le), "%lanemask_lt" => LaneMask(Compare::Lt),
        "%lanemask_ge" => LaneMask(Compare::Ge), "%lanemask_gt" => LaneMask(Compare::Gt),
        "%dynamic_smem_size" => DynamicShared, "%total_smem_size" => TotalShared,
        "%reserved_smem_offset_begin" => Reserved(Reserved::Begin),
        "%reserved_smem_offset_end" => Reserved(Reserved::End),
        "%reserved_smem_offset_cap" => Reserved(Reserved::Size),
        "%reserved_smem_offset_0" => Reserved(Reserved::Begin),
        "%reserved_smem_offset_1" => Reserved(Reserved::Middle), "%smid" => Multiprocessor,
        "%nsmid" => MultiprocessorCount,
    });
    named.or_else(|| Some(Special::Environment(environment(name)?)))
}

/// Returns the number of a register from `%envreg0` to `%envreg31`.
fn environment(name: &str) -> Option<u8> {
    let number = name.strip_prefix("%envreg")?;
    let is_written_so = number == "0" || !number.starts_with(['+', '0']);
    number.parse().ok().filter(|&number| is_written_so && number < 32)
}

/// Returns the part of the clock that a time register reads, and the type of the `mov`.
///
/// The emulator has no clock, since a result that depended on one would not be reproducible. All of
/// these registers count the instructions that the warp has executed. So they grow, and by the same
/// amount in every run, but the counts of two warps are not comparable.
pub(crate) fn clock(name: &str) -> Option<(Clock, Typed)> {
    Some(match name {
        "%clock" | "%globaltimer_lo" => (Clock::Low, U32),
        "%clock_hi" | "%globaltimer_hi" => (Clock::High, U32),
        "%clock64" | "%globaltimer" => (Clock::Whole, U64),
        _ => return None,
    })
}

/// Returns the reason why a special register of PTX is not supported.
pub(crate) fn unsupported(name: &str) -> Option<&'static str> {
    Some(match name.split('.').next()? {
        "%clock" | "%clock_hi" | "%clock64" | "%globaltimer" | "%globaltimer_lo"
        | "%globaltimer_hi" | "%gridid" => "it can only be moved, as a whole and to its own size",
        "%pm0" | "%pm1" | "%pm2" | "%pm3" | "%pm4" | "%pm5" | "%pm6" | "%pm7" => {
            "there are no performance counters: the launch returns its own"
        }
        "%tid" | "%ntid" | "%ctaid" | "%nctaid" => "it has the components .x, .y and .z",
        "%clusterid"
        | "%nclusterid"
        | "%cluster_ctaid"
        | "%cluster_nctaid"
        | "%cluster_ctarank"
        | "%cluster_nctarank"
        | "%is_explicit_cluster" => "there are no clusters of blocks",
        _ => return None,
    })
}
