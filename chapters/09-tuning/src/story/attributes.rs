//! What the driver says of compiled kernels.

use linrec::kernels::{ElementType, Pass};
use linrec::lesson::{self, Kind, Lesson, Table};

use super::NOTHING;
use crate::attrs::{self, Taken};
use crate::record;

/// Tiles of 4 to 32 elements a thread, at the smallest and the largest block.
pub fn attributes(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("attributes", "What a kernel takes")?;
    let taken = record::attrs()?;
    lesson.say(&format!(
        "From the record of an H200, f32: registers of a thread, bytes of local memory behind a plus where there are \
         any, and the share of the places for warps that blocks of 256 or 1024 threads can take. {}",
        if taken.is_empty() { NOTHING } else { "" }
    ));
    let header = [
        "elements",
        "kernel",
        "forward, 256",
        "warps",
        "backward, 256",
        "warps",
        "forward, 1024",
        "warps",
        "backward, 1024",
        "warps",
    ];
    let mut table = Table::new(header);
    for kernel in ["tile", "pipe"] {
        for elems in [4, 8, 16, 32] {
            let mut cells = vec![elems.to_string(), kernel.to_owned()];
            for threads in [256, 1024] {
                let name = format!("{kernel}:{elems}x{threads}:0");
                for pass in Pass::ALL {
                    let taken = taken.iter().find(|t| t.kernel == name && t.pass == pass);
                    cells.push(taken.map_or_else(|| String::from("–"), registers));
                    let share = taken.map(|t| 100.0 * f64::from(t.warps()) / 64.0);
                    cells.push(share.map_or_else(|| String::from("–"), |s| format!("{s:.0} %")));
                }
            }
            table.row(cells);
        }
    }
    lesson.table("attributes.csv", Kind::Computed, &table)?;
    spills(lesson, &taken)
}

fn registers(taken: &Taken) -> String {
    match taken.local_bytes {
        0 => taken.registers.to_string(),
        bytes => format!("{} + {bytes} B", taken.registers),
    }
}

/// Which configurations spill.
fn spills(lesson: &mut Lesson, taken: &[Taken]) -> lesson::Result {
    lesson.step("spills", "What does not fit")?;
    let spilling: Vec<&Taken> = taken.iter().filter(|taken| taken.local_bytes > 0).collect();
    lesson.say(&format!(
        "Of {} kernels of the record, {} keep something in local memory, and {} cannot be launched at all:",
        taken.len(),
        spilling.len(),
        taken.iter().filter(|taken| taken.blocks == 0).count()
    ));
    let mut table = Table::new(["kernel", "pass", "of", "spill", "most bytes", "by"]);
    for kernel in ["ref", "tile", "pipe", "rows", "wide"] {
        for pass in Pass::ALL {
            let of = |taken: &&&Taken| {
                taken.pass == pass && taken.kernel.split(':').next() == Some(kernel)
            };
            let all = taken.iter().filter(|taken| of(&taken)).count();
            let mine: Vec<_> = spilling.iter().filter(|taken| of(taken)).collect();
            let most = mine.iter().max_by_key(|taken| taken.local_bytes);
            table.row([
                kernel.to_owned(),
                pass.name().to_owned(),
                all.to_string(),
                mine.len().to_string(),
                most.map_or_else(|| String::from("–"), |taken| taken.local_bytes.to_string()),
                most.map_or_else(String::new, |taken| taken.kernel.clone()),
            ]);
        }
    }
    lesson.table("spills.csv", Kind::Computed, &table)?;
    lesson.value("spilling", spilling.len(), Kind::Computed);
    lesson.value("kernels", taken.len(), Kind::Computed);
    Ok(())
}

/// What PTX alone says.
pub fn ptx(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("ptx", "What PTX says of it")?;
    lesson.say(
        "Before the driver translates it, a kernel has as many registers as it likes. These are the shipped kernels \
         for f32, with the 32-bit registers that their PTX gives a name to:",
    );
    let table = attrs::of_ptx(&["ref", "tile", "pipe", "rows", "wide"], ElementType::F32)?;
    lesson.table("ptx.csv", Kind::Computed, &table)
}
