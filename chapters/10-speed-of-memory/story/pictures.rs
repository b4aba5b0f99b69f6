//! The pictures of the chapter.

use lesson::plot::{self, Chart, Panel};
use linrec::Error;
use linrec::device::Device;
use linrec::simt::{Trace, What};

use crate::kernel::Kernel;
use crate::rung::Rung;

// A picture of who asks for what, made from the emulator's trace.

/// A vector that a lane of the first warp asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Asked {
    /// The lane.
    pub lane: usize,
    /// Which of the warp's requests to the inputs, from 0.
    pub request: usize,
    /// Where the vector begins in the row, in bytes.
    pub offset: u64,
}

/// The vectors of the inputs that the first warp of a block asks for in its first tile.
///
/// # Errors
///
/// If the step is not shipped.
fn asked(rung: Rung) -> Result<Vec<Asked>, Error> {
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

    // Inputs and coefficients are one buffer here, and each vector is asked for twice: once for
    // each.
    let loads =
        trace.events.iter().filter(|event| event.warp == 0).filter_map(|event| match &event.what {
            What::Load(load) if !load.shared => Some((event.lanes, load.addresses)),
            _ => None,
        });
    let loads: Vec<_> = loads.collect();
    let base = loads.iter().flat_map(|(_, addresses)| addresses).min().copied().unwrap_or(0);
    let mut all: Vec<Asked> = Vec::new();
    for (lanes, addresses) in loads {
        let request = all.iter().map(|asked| asked.request + 1).max().unwrap_or(0);
        let mine = (0..32).filter(|lane| lanes >> lane & 1 > 0).map(|lane| Asked {
            lane,
            request,
            offset: addresses[lane] - base,
        });
        let mine: Vec<Asked> = mine.collect();
        let seen =
            |new: &Asked| all.iter().any(|old| (old.lane, old.offset) == (new.lane, new.offset));
        if !mine.iter().any(seen) {
            all.extend(mine);
        }
    }
    Ok(all)
}

/// For each step a panel: lanes against bytes.
///
/// # Errors
///
/// If a step is not shipped, or the picture cannot be drawn.
pub(super) fn requests(rungs: [Rung; 2]) -> lesson::Result<String> {
    let chart = |rung: Rung| -> lesson::Result<Chart> {
        let asked = asked(rung)?;
        let mut chart = Chart::new(rung.idea.name()).axes("bytes of the row", "lane");
        for (request, label) in ["first request", "second request"].into_iter().enumerate() {
            let mine = asked.iter().filter(|asked| asked.request == request);
            chart = chart.dots(label, mine.map(|asked| (asked.offset as f64, asked.lane as f64)));
        }
        Ok(chart.y_range(-1.0, 33.0))
    };
    let charts = [chart(rungs[0])?, chart(rungs[1])?];
    let panels: Vec<&dyn Panel> = charts.iter().map(|chart| chart as &dyn Panel).collect();
    plot::grid(&panels, 1)
}

#[cfg(test)]
mod tests {
    use super::asked;
    use crate::rung::{Idea, Rung};

    #[test]
    fn two_requests_of_32_vectors_that_cover_1024_bytes() {
        for (idea, apart) in [(Idea::Blocked, 32), (Idea::Pieces, 16)] {
            let asked = asked(Rung::shipped(idea)).unwrap();
            assert_eq!(asked.len(), 64);
            for request in 0..2 {
                let mine: Vec<_> = asked.iter().filter(|asked| asked.request == request).collect();
                assert!(mine.windows(2).all(|two| two[1].offset - two[0].offset == apart));
            }
            let mut offsets: Vec<u64> = asked.iter().map(|asked| asked.offset).collect();
            offsets.sort_unstable();
            assert!(offsets.iter().enumerate().all(|(i, &offset)| offset == 16 * i as u64));
        }
    }
}
