//! The tile kernel in tiles, on every device. The pipe kernel is judged with the library's engines.

use ch07_pipe_kernel::{InTiles, TILE, TILE_LEN};
use linrec::contract::{self, Domain};
use linrec::device::{KernelEngine, under_test};

/// Two tiles of the one length, ten of the other.
const MAX_LEN: usize = 1000;

#[test]
fn any_engine_in_tiles_passes() {
    for device in under_test() {
        // Tiles that are no multiple of anything, and shorter than the kernel could take.
        for tile in [TILE_LEN, 100] {
            let kernel = KernelEngine::<f32>::new(&device, TILE).unwrap();
            let domain = Domain { max_len: MAX_LEN, tile, ..kernel.domain() };
            let report = contract::run::<f32>(&InTiles::new(&kernel, tile), &domain.as_asked());
            assert!(report.passed(), "{report}");
            println!("{report}");
        }
    }
}
