//! Which configuration to take, from the record.

use linrec::lesson::{self, Kind, Lesson, Table};

use crate::record::{Pass, speed};

/// The configuration that the post takes at every length.
const FIXED: &str = "pipe:8x64:0";

/// The best of the record at each length.
pub fn choose(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("choose", "Which one to take")?;
    lesson.say(
        "The fastest of the record's eight configurations, and 8 x 64 with memcode 0, which the post takes for every \
         length; f32, as a part of the roof:",
    );
    let header =
        ["length", "forward", "ratio", "8 x 64", "backward", "ratio, backward", "8 x 64, backward"];
    let mut table = Table::new(header);
    let mut naive = [0, 0];
    let lengths: Vec<usize> = speed(Pass::Forward)?.lengths();
    for &seq_len in &lengths {
        let mut row = vec![seq_len.to_string()];
        for pass in Pass::BOTH {
            let runs = speed(pass)?;
            let (name, best) = runs.best("pipe", seq_len).ok_or("the record is empty")?;
            let fixed = runs.median(FIXED, seq_len).ok_or("the record is not complete")?;
            let parts: Vec<&str> = name.split(':').collect();
            let [_, size, memcode] = parts.as_slice() else { return Err("no pipe".into()) };
            naive[0] += usize::from(*memcode == "0");
            naive[1] += 1;
            row.push(format!("{}, {memcode}", size.replace('x', " x ")));
            row.push(format!("{:.2}", best.ratio));
            row.push(format!("{:.2}", fixed.ratio));
        }
        table.row(row);
    }
    lesson.table("choose.csv", Kind::Computed, &table)?;
    lesson.value("naive_wins", naive[0], Kind::Computed);
    lesson.value("of_lengths", naive[1], Kind::Computed);
    Ok(())
}
