//! Special registers: where a thread stands in its warp, block and grid.

use super::program::{Compare, Special};

/// The special register of that name.
pub(super) fn special(name: &str) -> Option<Special> {
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
        _ => return None,
    })
}

/// Why a special register that PTX has is not here.
pub(super) fn unsupported(name: &str) -> Option<&'static str> {
    Some(match name.split('.').next()? {
        "%clock" | "%clock_hi" | "%clock64" | "%globaltimer" | "%globaltimer_lo"
        | "%globaltimer_hi" => {
            "the emulator has no clock, and a result that depends on time is not reproducible"
        }
        "%smid" | "%nsmid" | "%gridid" => {
            "where a block runs depends on the machine, and a result that depends on it is not reproducible"
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
