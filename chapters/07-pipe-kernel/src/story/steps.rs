//! What the number of steps per thread does to requests and sectors.

use ch05_ref_kernel::exercises::sectors;
use linrec::device::{Device, ForwardOptions, Recurrence};
use linrec::lesson::{self, Kind, Lesson, Table};
use linrec::simt::Access;

use crate::PIPE;

/// Counts, by the emulator and from the addresses.
pub fn steps(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("steps", "Steps per thread")?;
    lesson.say(
        "A warp loads its part of one array, each lane its own neighbouring steps, one request for each step. Up to 8 \
         steps counted by the emulator, beyond that from the addresses:",
    );
    let header =
        ["steps per thread", "requests", "sectors per request", "requests for each sector"];
    let mut table = Table::new(header);
    let mut differ = 0;
    for steps in [1, 2, 4, 8, 16, 32] {
        let addresses: Vec<u64> = (0..32).map(|lane| lane * steps * 4).collect();
        let per_request = sectors(&addresses, 4) as u64;
        if steps <= 8 {
            differ += usize::from(counted(steps)? != (steps, per_request));
        }
        table.row([
            // As many requests as steps; of the floats that they load, 8 lie in a sector.
            steps.to_string(),
            steps.to_string(),
            per_request.to_string(),
            (per_request * steps / (32 * steps / 8)).to_string(),
        ]);
    }
    lesson.table("steps.csv", Kind::Computed, &table)?;
    lesson.check("rows that the emulator counts differently", differ as f64, 0.0);
    Ok(())
}

/// Load requests of one array and sectors in each, of one warp whose lanes have so many steps.
fn counted(steps: u64) -> lesson::Result<(u64, u64)> {
    let device = Device::simt();
    let ones = device.upload(&vec![1.0_f32; 32 * steps as usize])?;
    let mut outputs = device.allocate(ones.len())?;
    let recurrence = Recurrence::<f32>::new(&device, PIPE)?;
    let (shape, options) = ((1, ones.len()), ForwardOptions::default());
    let launched = recurrence.forward_into(&ones, &ones, &mut outputs, shape, options)?;
    let Some(counters) = launched.counters() else { return Ok((0, 0)) };
    let requests = counters.requests(Access::GlobalLoad);
    // Two arrays are loaded.
    Ok((requests / 2, counters.sectors(Access::GlobalLoad) / requests.max(1)))
}
