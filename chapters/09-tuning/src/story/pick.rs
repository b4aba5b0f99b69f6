//! The rule by which the library picks.

use linrec::kernels::{ElementType, KernelChoice, Pass, Tuned};
use linrec::lesson::{self, Kind, Lesson, Table};

use super::cell;

/// What the library takes for some shapes.
pub fn pick(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("pick", "The rule")?;
    let rule = Tuned::measured();
    lesson.say(&format!(
        "The library's table has {} finalists. What KernelChoice::best takes for 13200 sequences of f32: any \
         configuration, for rows of whole words; any, for rows that begin anywhere; and of the shipped ones.",
        rule.len()
    ));
    let mut table = Table::new(["pass", "length", "rows of whole words", "any rows", "shipped"]);
    for pass in Pass::ALL {
        for len in [16, 64, 256, 1024, 4096, 65_536] {
            let best = |whole, shipped| {
                KernelChoice::best(ElementType::F32, pass, 13_200, len, whole, shipped).spec()
            };
            let names = [best(true, false), best(false, false), best(true, true)];
            table.row([pass.name().to_owned(), len.to_string()].into_iter().chain(names));
        }
    }
    lesson.table("pick.csv", Kind::Computed, &table)?;
    few(lesson, rule)?;
    let known = ElementType::ALL.into_iter().all(|element| {
        let choice = KernelChoice::best(element, Pass::Forward, 100, 1000, false, true);
        choice.program(element).shipped().is_some()
    });
    lesson.check("types without a shipped kernel", f64::from(u8::from(!known)), 0.0);
    lesson.value("finalists", rule.len(), Kind::Computed);
    Ok(())
}

/// Few and long rows.
fn few(lesson: &mut Lesson, rule: &[Tuned]) -> lesson::Result {
    lesson.step("few", "Few and long rows")?;
    let few = |line: &&Tuned| line.num_seqs < 13_200 && line.element == ElementType::F32;
    let mut shapes: Vec<(u64, u64)> = rule
        .iter()
        .filter(few)
        .filter(|line| line.pass == Pass::Forward)
        .map(|line| (line.num_seqs, line.seq_len))
        .collect();
    shapes.sort_unstable();
    shapes.dedup();
    lesson.say(match shapes.is_empty() {
        true => "No shape with fewer sequences has been measured yet.",
        false => "The fastest where there are fewer sequences, forward, in f32:",
    });
    let header = ["sequences", "length", "ms", "GB/s", "/ roof", "configuration"];
    let mut table = Table::new(header);
    for (num_seqs, seq_len) in shapes {
        let mine = rule.iter().filter(|line| {
            let shape = (line.num_seqs, line.seq_len);
            shape == (num_seqs, seq_len)
                && line.pass == Pass::Forward
                && line.element == ElementType::F32
        });
        let Some(best) = mine.max_by(|a, b| a.ratio.total_cmp(&b.ratio)) else { continue };
        let gb_per_s = 12.0 * (num_seqs * seq_len) as f64 / best.ms / 1e6;
        if (num_seqs, seq_len) == (1, 1 << 20) {
            lesson.value("one_row", cell(Some(gb_per_s), 0), Kind::Computed);
        }
        table.row([
            num_seqs.to_string(),
            seq_len.to_string(),
            format!("{:.4}", best.ms),
            cell(Some(gb_per_s), 1),
            cell(Some(best.ratio), 3),
            best.choice.spec(),
        ]);
    }
    lesson.table("few.csv", Kind::Computed, &table)
}
