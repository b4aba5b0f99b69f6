//! Special registers: where a thread stands in its warp, block and grid; and what counts instead of
//! a clock.

use crate::isa::{Clock, Compare, Reserved, Special};
use crate::parse::source::types::{Typed, U32, U64};

/// The special register of that name.
pub(crate) fn special(name: &str) -> Option<Special> {
    Some(match name {
        "%tid.x" => Special::Tid(0),
        "%tid.y" => Special::Tid(1),
        "%tid.z" => Special::Tid(2),
        "%ntid.x" => Special::Ntid(0),
        "%ntid.y" => Special::Ntid(1),
        "%ntid.z" => Special::Ntid(2),
        "%ctaid.x" => Special::Ctaid(0),
        "%ctaid.y" => Special::Ctaid(1),
        "%ctaid.z" => Special::Ctaid(2),
        "%nctaid.x" => Special::Nctaid(0),
        "%nctaid.y" => Special::Nctaid(1),
        "%nctaid.z" => Special::Nctaid(2),
        "%laneid" => Special::LaneId,
        "%warpid" => Special::WarpId,
        "%nwarpid" => Special::WarpCount,
        "WARP_SZ" => Special::WarpSize,
        "%lanemask_eq" => Special::LaneMask(Compare::Eq),
        "%lanemask_le" => Special::LaneMask(Compare::Le),
        "%lanemask_lt" => Special::LaneMask(Compare::Lt),
        "%lanemask_ge" => Special::LaneMask(Compare::Ge),
        "%lanemask_gt" => Special::LaneMask(Compare::Gt),
        "%dynamic_smem_size" => Special::DynamicShared,
        "%total_smem_size" => Special::TotalShared,
        "%reserved_smem_offset_begin" => Special::Reserved(Reserved::Begin),
        "%reserved_smem_offset_end" => Special::Reserved(Reserved::End),
        "%reserved_smem_offset_cap" => Special::Reserved(Reserved::Size),
        "%reserved_smem_offset_0" => Special::Reserved(Reserved::Begin),
        "%reserved_smem_offset_1" => Special::Reserved(Reserved::Middle),
        "%smid" => Special::Multiprocessor,
        "%nsmid" => Special::MultiprocessorCount,
        _ => Special::Environment(environment(name)?),
    })
}

/// `%envreg0` to `%envreg31`.
fn environment(name: &str) -> Option<u8> {
    let number = name.strip_prefix("%envreg")?;
    let is_written_so = number == "0" || !number.starts_with(['+', '0']);
    number.parse().ok().filter(|&number| is_written_so && number < 32)
}

/// What of its clock a register is that would tell the time on a GPU, and the type that it is moved
/// as.
///
/// There is no clock, and a result that depended on one would not be reproducible: all of these
/// count the instructions that the warp has executed. So they grow, by the same in every run, and
/// those of two warps are not comparable.
pub(crate) fn clock(name: &str) -> Option<(Clock, Typed)> {
    Some(match name {
        "%clock" | "%globaltimer_lo" => (Clock::Low, U32),
        "%clock_hi" | "%globaltimer_hi" => (Clock::High, U32),
        "%clock64" | "%globaltimer" => (Clock::Whole, U64),
        _ => return None,
    })
}

/// Why a special register that PTX has is not here.
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
