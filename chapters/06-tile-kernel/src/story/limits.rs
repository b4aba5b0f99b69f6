//! Where the tile ends.

use linrec::device::{Device, KernelEngine};
use linrec::kernels::Config;
use linrec::lesson::{self, Kind, Lesson, Table};
use linrec::simt::Class;
use linrec::{Engine, Options};
use ndarray::Array2;

use crate::stages::{CHOICE, counted};

/// 32-bit registers of a multiprocessor, of all architectures from sm_50 on.
const REGISTERS: u32 = 65_536;
/// The most that an instruction can name, and so a thread have.
const OF_A_THREAD: u32 = 255;

/// One step too many, and what registers there are.
pub fn limits(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("limits", "Where the tile ends")?;
    let engine = KernelEngine::<f32>::new(&Device::simt(), CHOICE)?;
    let most = Config::TILE.max_tile() as usize;
    let forward = |seq_len: usize| {
        let ones = Array2::<f32>::ones((1, seq_len));
        engine.forward(ones.view(), ones.view(), &Options::default())
    };
    let last = forward(most)?.final_state[0];
    lesson.say(&format!(
        "The sum of {most} ones is {last}. One step more, and the library says, before anything is launched:",
    ));
    let refused = forward(most + 1).err().map(|error| error.to_string());
    lesson.quote(refused.as_deref().unwrap_or("nothing"));
    let off = f64::from((last - most as f32).abs());
    lesson.check("the sum of the longest tile, error", off, 0.0);
    let unnoticed = refused.iter().all(|sentence| !sentence.contains("holds 1024 at most"));
    lesson.check("longer sequences that were not refused", f64::from(u8::from(unnoticed)), 0.0);

    lesson.say(&format!(
        "A larger tile takes more elements for each thread, or more threads. A multiprocessor has {REGISTERS} registers; \
         inputs and coefficients of f32 take two for each element.",
    ));
    let header = [
        "elements",
        "threads",
        "largest tile",
        "registers for them",
        "registers of a thread, at most",
    ];
    let mut table = Table::new(header);
    for (elems, threads) in [(4, 256), (4, 1024), (8, 1024), (16, 1024), (32, 1024), (32, 512)] {
        table.row([
            elems.to_string(),
            threads.to_string(),
            (elems * threads).to_string(),
            (2 * elems).to_string(),
            (REGISTERS / threads).min(OF_A_THREAD).to_string(),
        ]);
    }
    lesson.table("tiles.csv", Kind::Computed, &table)?;

    let launched = counted(CHOICE, (1, most))?;
    let counters = launched.counters().cloned().unwrap_or_default();
    let local = counters.class(Class::Local);
    lesson.say(
        "The arrays of our kernel are registers, all of them: no instruction goes to the memory for what does not fit.",
    );
    lesson.check("accesses to local memory", local as f64, 0.0);
    Ok(())
}
