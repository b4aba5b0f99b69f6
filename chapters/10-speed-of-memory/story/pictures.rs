//! The pictures of the chapter.

use lesson::plot::{self, Chart, Panel};
use linrec::Error;
use linrec::device::Device;
use linrec::simt::{Trace, What};

use crate::kernel::Kernel;
use crate::rung::Rung;

/// A vector that a lane of the first warp requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Requested {
    pub lane: usize,
    /// The number of the warp's request to the inputs, from 0.
    pub request: usize,
    /// The position of the vector in the row, in bytes.
    pub offset: u64,
}

/// Returns the vectors of the inputs that the first warp of a block requests in its first tile.
///
/// # Errors
///
/// Returns an error if the step is not shipped.
fn requested(rung: Rung) -> Result<Vec<Requested>, Error> {
    let device = Device::simt();
    let seq_len = rung.tile() as usize;
    let row = device.upload(&vec![1.0_f32; seq_len])?;
    let mut outputs = device.allocate::<f32>(seq_len)?;
    let kernel = Kernel::new(&device, rung)?;
    let launch = kernel.function().launch(1, rung.threads).shared(rung.shared_bytes());
    let none = None::<&linrec::device::Buffer<f32>>;
    let launch = launch.arg(&row).arg(&row).arg(&mut outputs).arg(none).arg(none);
    let mut trace = Trace::new(1 << 16);
    launch.arg(1_i64).arg(seq_len as i64).traced(&mut trace).run(&device.stream())?;

    // Inputs and coefficients are the same buffer here, so each vector is requested twice.
    let loads =
        trace.events.iter().filter(|event| event.warp == 0).filter_map(|event| match &event.what {
            What::Load(load) if !load.shared => Some((event.lanes, load.addresses)),
            _ => None,
        });
    let loads: Vec<_> = loads.collect();
    let base = loads.iter().flat_map(|(_, addresses)| addresses).min().copied().unwrap_or(0);
    let mut all: Vec<Requested> = Vec::new();
    for (lanes, addresses) in loads {
        let request = all.iter().map(|requested| requested.request + 1).max().unwrap_or(0);
        let mine = (0..32).filter(|lane| lanes >> lane & 1 > 0).map(|lane| Requested {
            lane,
            request,
            offset: addresses[lane] - base,
        });
        let mine: Vec<Requested> = mine.collect();
        let seen = |new: &Requested| {
            all.iter().any(|old| (old.lane, old.offset) == (new.lane, new.offset))
        };
        if !mine.iter().any(seen) {
            all.extend(mine);
        }
    }
    Ok(all)
}

/// Draws a panel for each step: lanes against bytes.
///
/// # Errors
///
/// Returns an error if a step is not shipped, or the picture cannot be drawn.
pub(super) fn requests(rungs: [Rung; 2]) -> lesson::Result<String> {
    let chart = |rung: Rung| -> lesson::Result<Chart> {
        let requested = requested(rung)?;
        let mut chart = Chart::new(rung.idea.name()).axes("bytes of the row", "lane");
        for (request, label) in ["first request", "second request"].into_iter().enumerate() {
            let mine = requested.iter().filter(|requested| requested.request == request);
            chart = chart.dots(
                label,
                mine.map(|requested| (requested.offset as f64, requested.lane as f64)),
            );
        }
        Ok(chart.y_range(-1.0, 33.0))
    };
    let charts = [chart(rungs[0])?, chart(rungs[1])?];
    let panels: Vec<&dyn Panel> = charts.iter().map(|chart| chart as &dyn Panel).collect();
    plot::grid(&panels, 1)
}

#[cfg(test)]
mod tests {
    use super::requested;
    use crate::rung::{Idea, Rung};

    #[test]
    fn two_requests_of_32_vectors_that_cover_1024_bytes() {
        for (idea, apart) in [(Idea::Blocked, 32), (Idea::Pieces, 16)] {
            let requested = requested(Rung::shipped(idea)).unwrap();
            assert_eq!(requested.len(), 64);
            for request in 0..2 {
                let mine: Vec<_> =
                    requested.iter().filter(|requested| requested.request == request).collect();
                assert!(mine.windows(2).all(|two| two[1].offset - two[0].offset == apart));
            }
            let mut offsets: Vec<u64> =
                requested.iter().map(|requested| requested.offset).collect();
            offsets.sort_unstable();
            assert!(offsets.iter().enumerate().all(|(i, &offset)| offset == 16 * i as u64));
        }
    }
}
