//! The tables of the best configurations.

use std::path::Path;

use lesson::Table;
use lesson::output::println;
use linrec::kernels::{ElementType, KernelChoice, Pass};

use super::{Settings, Trouble};
use crate::{Row, write};

/// Prints both tables and writes them next to the record.
pub fn show(settings: &Settings, lines: &[Row]) -> lesson::Result {
    for pass in Pass::ALL {
        let table = best(lines, &settings.kernel, settings.element, pass);
        let name = format!("best-{}-{}-{}.csv", settings.kernel, settings.element, pass.name());
        let path = settings.out.join(name);
        println!("\nThe fastest {} of {}, {}:\n", settings.kernel, settings.element, pass.name());
        println!("{}", table.to_text());
        write(&path, &table.to_csv())?;
    }
    Ok(())
}

/// Makes a table of the fastest configuration at each shape: runtime, bytes, throughput, and the
/// configuration.
pub fn best(lines: &[Row], kernel: &str, element: ElementType, pass: Pass) -> Table {
    let mine = |line: &&Row| {
        let choice = line.engine.parse::<KernelChoice>();
        let is_kernel = choice.is_ok_and(|choice| choice.name() == kernel);
        is_kernel && line.element == element && line.pass == pass
    };
    let mine: Vec<&Row> = lines.iter().filter(mine).collect();
    let mut shapes: Vec<_> = mine.iter().map(|line| (line.num_seqs, line.seq_len)).collect();
    shapes.sort_unstable();
    shapes.dedup();
    let header = ["sequences", "length", "ms", "GB", "GB/s", "/ roof", "configuration"];
    let mut table = Table::new(header);
    for shape in shapes {
        let here = mine.iter().filter(|line| (line.num_seqs, line.seq_len) == shape);
        let Some(best) = here.max_by(|a, b| a.ratio.value.total_cmp(&b.ratio.value)) else {
            continue;
        };
        let shape = [shape.0, shape.1].map(|number| number.to_string());
        table.row(shape.into_iter().chain(best.cells()));
    }
    table
}

/// Writes the configurations that were not measured, with the reasons.
pub fn write_trouble(
    out: &Path,
    kernel: &str,
    element: ElementType,
    trouble: &[Trouble],
) -> lesson::Result {
    let mut table = Table::new(["kernel", "element", "pass", "why"]);
    let mut rows: Vec<[String; 4]> = trouble
        .iter()
        .map(|trouble| {
            let pass = trouble.pass.map_or("both", Pass::name);
            let why = trouble.why.replace('\n', " ");
            [trouble.choice.to_string(), element.to_string(), pass.to_owned(), why]
        })
        .collect();
    rows.dedup();
    for row in rows {
        table.row(row);
    }
    write(&out.join(format!("skipped-{kernel}-{element}.csv")), &table.to_csv())
}

#[cfg(test)]
mod tests {
    use super::best;
    use crate::log::tests::line;
    use linrec::kernels::{ElementType, Pass};

    #[test]
    fn the_fastest_of_each_shape() {
        let lines = [
            line(Pass::Forward, "roof", (10, 16), 1.0),
            line(Pass::Forward, "pipe:8x64:0", (10, 16), 0.5),
            line(Pass::Forward, "pipe:4x64:0", (10, 16), 0.7),
            line(Pass::Forward, "tile:4x64:0", (10, 16), 0.9),
            line(Pass::Backward, "pipe:16x64:0", (10, 16), 0.9),
            line(Pass::Forward, "pipe:8x64:1", (10, 8), 0.25),
        ];
        let csv = best(&lines, "pipe", ElementType::F32, Pass::Forward).to_csv();
        let expected = "sequences,length,ms,GB,GB/s,/ roof,configuration\n\
                        10,8,0.2500,0.000,0,0.250,8x64:1\n10,16,0.2500,0.000,0,0.700,4x64:0\n";
        assert_eq!(csv, expected);
    }
}
