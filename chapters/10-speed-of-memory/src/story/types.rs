//! Numbers of other sizes.

use linrec::kernels::{ElementType, Pass};
use linrec::lesson::{self, Kind, Lesson, Table};

use super::cell;
use crate::record;

/// The fastest for every type.
pub fn types(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("types", "Numbers of 2 to 16 bytes")?;
    let lines = record::types()?;
    lesson.say(
        "13200 sequences on an H200: the fastest kernel as a part of the roof for numbers of that size, and how many \
         elements it computes in the time in which f32 computes one.",
    );
    let header =
        ["type", "bytes", "pass", "256", "4096", "65536", "elements, 4096", "elements, 65536"];
    let mut table = Table::new(header);
    let of = |element: ElementType, pass: Pass, len: usize| {
        lines.iter().find(|line| (line.element, line.pass, line.seq_len) == (element, pass, len))
    };
    for element in ElementType::ALL {
        for pass in Pass::ALL {
            let ratio = |len| cell(of(element, pass, len).map(|line| line.ratio), 3);
            let more = |len| {
                let both = of(ElementType::F32, pass, len).zip(of(element, pass, len));
                cell(both.map(|(f32, mine)| f32.ms() / mine.ms()), 2)
            };
            table.row([
                element.to_string(),
                element.bytes().to_string(),
                pass.name().to_owned(),
                ratio(256),
                ratio(4096),
                ratio(65_536),
                more(4096),
                more(65_536),
            ]);
        }
    }
    lesson.table("types.csv", Kind::Computed, &table)?;
    for element in [ElementType::Bf16, ElementType::F16] {
        let both = of(ElementType::F32, Pass::Forward, 4096).zip(of(element, Pass::Forward, 4096));
        let more = cell(both.map(|(f32, mine)| f32.ms() / mine.ms()), 2);
        lesson.value(&format!("{element}_4096"), more, Kind::Computed);
    }
    Ok(())
}
