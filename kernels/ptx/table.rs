// Written by `cargo xtask ptx`; do not edit.

static SOURCES: &[(&str, &str)] = &[
    ("access_patterns.cu", include_str!("../access_patterns.cu")),
    ("activation.cuh", include_str!("../activation.cuh")),
    ("block_scan.cu", include_str!("../block_scan.cu")),
    ("contract.cu", include_str!("../contract.cu")),
    ("element.cuh", include_str!("../element.cuh")),
    ("elementwise.cu", include_str!("../elementwise.cu")),
    #[cfg(feature = "studies")]
    ("exercises/loads_ahead.cu", include_str!("../exercises/loads_ahead.cu")),
    #[cfg(feature = "studies")]
    ("exercises/reverse_by_shfl_down.cu", include_str!("../exercises/reverse_by_shfl_down.cu")),
    #[cfg(feature = "studies")]
    ("exercises/spread_tail.cu", include_str!("../exercises/spread_tail.cu")),
    #[cfg(feature = "studies")]
    ("exercises/variable_stride.cu", include_str!("../exercises/variable_stride.cu")),
    ("expand.cu", include_str!("../expand.cu")),
    ("exponential.cu", include_str!("../exponential.cu")),
    ("exponential.cuh", include_str!("../exponential.cuh")),
    #[cfg(feature = "studies")]
    ("fused/block_scan.cu", include_str!("../fused/block_scan.cu")),
    #[cfg(feature = "studies")]
    ("fused/fused.cuh", include_str!("../fused/fused.cuh")),
    #[cfg(feature = "studies")]
    ("fused/lane.cu", include_str!("../fused/lane.cu")),
    #[cfg(feature = "studies")]
    ("fused/quad.cu", include_str!("../fused/quad.cu")),
    #[cfg(feature = "studies")]
    ("ladder/blocked.cu", include_str!("../ladder/blocked.cu")),
    #[cfg(feature = "studies")]
    ("ladder/early.cu", include_str!("../ladder/early.cu")),
    #[cfg(feature = "studies")]
    ("ladder/hints.cu", include_str!("../ladder/hints.cu")),
    #[cfg(feature = "studies")]
    ("ladder/ladder.cuh", include_str!("../ladder/ladder.cuh")),
    #[cfg(feature = "studies")]
    ("ladder/persistent.cu", include_str!("../ladder/persistent.cu")),
    #[cfg(feature = "studies")]
    ("ladder/pieces.cu", include_str!("../ladder/pieces.cu")),
    #[cfg(feature = "studies")]
    ("ladder/ring.cu", include_str!("../ladder/ring.cu")),
    #[cfg(feature = "studies")]
    ("ladder/vectors.cu", include_str!("../ladder/vectors.cu")),
    #[cfg(feature = "studies")]
    ("ladder/walk.cu", include_str!("../ladder/walk.cu")),
    ("linrec_once.cu", include_str!("../linrec_once.cu")),
    ("linrec_pieces.cu", include_str!("../linrec_pieces.cu")),
    ("linrec_pipe.cu", include_str!("../linrec_pipe.cu")),
    ("linrec_ref.cu", include_str!("../linrec_ref.cu")),
    ("linrec_rows.cu", include_str!("../linrec_rows.cu")),
    ("linrec_tile.cu", include_str!("../linrec_tile.cu")),
    ("linrec_waves.cu", include_str!("../linrec_waves.cu")),
    ("linrec_wide.cu", include_str!("../linrec_wide.cu")),
    #[cfg(feature = "studies")]
    ("long/chained.cu", include_str!("../long/chained.cu")),
    #[cfg(feature = "studies")]
    ("long/decoupled.cu", include_str!("../long/decoupled.cu")),
    #[cfg(feature = "studies")]
    ("long/long.cuh", include_str!("../long/long.cuh")),
    #[cfg(feature = "studies")]
    ("long/mailbox.cu", include_str!("../long/mailbox.cu")),
    #[cfg(feature = "studies")]
    ("long/three.cu", include_str!("../long/three.cu")),
    ("look_back.cu", include_str!("../look_back.cu")),
    ("mail.cuh", include_str!("../mail.cuh")),
    ("mbarrier.cuh", include_str!("../mbarrier.cuh")),
    ("memio.cuh", include_str!("../memio.cuh")),
    ("scan.cuh", include_str!("../scan.cuh")),
    ("selective.cuh", include_str!("../selective.cuh")),
    ("selective_scan.cuh", include_str!("../selective_scan.cuh")),
    ("selective_scan_bwd.cu", include_str!("../selective_scan_bwd.cu")),
    ("selective_scan_bwd.cuh", include_str!("../selective_scan_bwd.cuh")),
    ("selective_scan_bwd_plain.cu", include_str!("../selective_scan_bwd_plain.cu")),
    ("selective_scan_ends.cuh", include_str!("../selective_scan_ends.cuh")),
    ("selective_scan_fwd.cu", include_str!("../selective_scan_fwd.cu")),
    ("selective_scan_fwd_plain.cu", include_str!("../selective_scan_fwd_plain.cu")),
    ("selective_scan_held.cuh", include_str!("../selective_scan_held.cuh")),
    ("selective_scan_tile.cuh", include_str!("../selective_scan_tile.cuh")),
    ("selective_scan_walk.cuh", include_str!("../selective_scan_walk.cuh")),
    ("sub_warp.cuh", include_str!("../sub_warp.cuh")),
    ("sums.cu", include_str!("../sums.cu")),
    ("transition.cuh", include_str!("../transition.cuh")),
    ("waves.cuh", include_str!("../waves.cuh")),
    ("wide.cuh", include_str!("../wide.cuh")),
];

static ARCHIVES: &[&[u8]] = &[
    #[cfg(feature = "studies")]
    include_bytes!("mistakes.zst"),
    include_bytes!("others.zst"),
    include_bytes!("recurrence.zst"),
    include_bytes!("selective-scan.zst"),
    #[cfg(feature = "studies")]
    include_bytes!("studies.zst"),
];
