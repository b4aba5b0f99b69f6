//! Reads the output of Nsight Compute (`ncu`) and joins it with the kernels' names in records.
//!
//! `ncu` writes a table with a row per launch, after the profiled program's own output. The names
//! that it gives are symbols of PTX, and its metrics have long names and several units. The
//! functions here make short tables of our own columns: [`by_shape`] for traffic between caches and
//! memory, [`join`] for the counters of a list of launches, and [`spans`] for the distance between
//! loads in compiled code. The tests at the end of this file read tables in `ncu`'s format.

use std::collections::BTreeMap;

use crate::csv::{self, Row, Table};
use crate::traffic::NUM_SEQS;

/// Column names of this project, each with a metric of Nsight Compute.
type Metrics<'a> = &'a [(&'a str, &'a str)];

/// The metrics of [`by_shape`]: traffic between caches and memory, and how busy they are.
const BY_SHAPE: [(&str, &str); 10] = [
    ("nanoseconds", "gpu__time_duration.sum"),
    ("resident_warps_percent", "sm__warps_active.avg.pct_of_peak_sustained_active"),
    ("loads_in_l1_percent", "l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct"),
    ("l2_sectors_read", "lts__t_sectors_srcunit_tex_op_read.sum"),
    ("l2_sectors_written", "lts__t_sectors_srcunit_tex_op_write.sum"),
    ("dram_bytes_read", "dram__bytes_read.sum"),
    ("dram_bytes_written", "dram__bytes_write.sum"),
    ("l1_busy_percent", "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed"),
    ("l2_input_busy_percent", "lts__xbar2lts_cycles_active.avg.pct_of_peak_sustained_elapsed"),
    ("dram_busy_percent", "dram__cycles_active.avg.pct_of_peak_sustained_elapsed"),
];

const JOINED: [(&str, &str); 19] = [
    ("load_requests", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"),
    ("load_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"),
    ("load_hits", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum"),
    ("l2_reads", "lts__t_sectors_srcunit_tex_op_read.sum"),
    ("dram_read", "dram__bytes_read.sum"),
    ("store_requests", "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"),
    ("store_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"),
    ("l2_writes", "lts__t_sectors_srcunit_tex_op_write.sum"),
    ("dram_written", "dram__bytes_write.sum"),
    ("shared_load_wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"),
    ("shared_load_conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"),
    ("shared_store_wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"),
    ("shared_store_conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"),
    ("instructions", "smsp__inst_executed.sum"),
    ("l2_percent", "lts__throughput.avg.pct_of_peak_sustained_elapsed"),
    ("l1_percent", "l1tex__throughput.avg.pct_of_peak_sustained_active"),
    ("warps", "sm__warps_active.avg.per_cycle_active"),
    ("nanoseconds", "gpu__time_duration.sum"),
    ("dram_percent", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"),
];

const ROOF_BLOCK: u64 = 256 * 4;

/// Reads the table in the output of `ncu --csv --page raw`, which follows the program's own output.
fn table(text: &str) -> lesson::Result<Table> {
    let begins =
        if text.starts_with("\"ID\"") { Some(0) } else { text.find("\n\"ID\"").map(|at| at + 1) };
    let begins = begins.ok_or("no line begins with \"ID\": this is not a table of ncu")?;
    Table::read(&text[begins..])
}

/// Makes a table with one line for each kernel and length, `engine,seq_len` and the metrics, from
/// the outputs of races under `ncu`. The first kernel of every round is the roof, and its number of
/// blocks determines the length. Every kernel runs twice, because the first run loads lazily; the
/// second run is recorded.
///
/// # Errors
///
/// Returns an error if a text contains no such table, or lacks a metric.
pub fn by_shape<'a>(texts: impl IntoIterator<Item = &'a str>) -> lesson::Result<String> {
    let mut rows = BTreeMap::new();
    for text in texts {
        let (table, mut seq_len) = (table(text)?, 0);
        // The first line contains units.
        for row in table.rows().skip(1) {
            let symbol = row.text("Kernel Name")?;
            if symbol.starts_with("elementwise") {
                let grid = row.text("Grid Size")?.trim_start_matches('(');
                let blocks: u64 = grid.split(',').next().unwrap_or_default().parse()?;
                seq_len = blocks * ROOF_BLOCK / NUM_SEQS;
            }
            let cell = |&(_, metric): &(&str, &str)| Ok(row.text(metric)?.replace(',', ""));
            let cells: lesson::Result<Vec<String>> = BY_SHAPE.iter().map(cell).collect();
            rows.insert((engine(symbol), seq_len), cells?);
        }
    }
    let mut text = format!("engine,seq_len,{}\n", names(&BY_SHAPE));
    for ((engine, seq_len), cells) in rows {
        let seq_len = seq_len.to_string();
        let row = [engine.as_str(), &seq_len].into_iter().chain(cells.iter().map(String::as_str));
        text += &(csv::row(row)? + "\n");
    }
    Ok(text)
}

/// Converts a symbol of PTX to the kernel's name in a race.
fn engine(symbol: &str) -> String {
    let parts: Vec<&str> = symbol.split('_').collect();
    match parts.as_slice() {
        ["linrec", kernel, _, _, elems, threads, memcode, _] => {
            format!("{kernel}:{elems}x{threads}:{memcode}")
        }
        // The kernel with one thread per sequence, which is raced with blocks of 64 threads.
        ["linrec", kernel, _, _, _] => format!("{kernel}:64"),
        ["linrec", ..] => symbol.to_owned(),
        _ => String::from("roof"),
    }
}

/// Joins `ncu`'s table, which has one row per launch, with lines that name the launches in order:
/// `direction,engine,num_seqs,seq_len`.
///
/// # Errors
///
/// Returns an error if the text contains no table of ncu's, if there are more or fewer names than
/// launches, or if a unit is unknown.
pub fn join(text: &str, labels: &str) -> lesson::Result<String> {
    let table = table(text)?;
    let mut rows = table.rows();
    let units = rows.next();
    let launches: Vec<Row> = rows.collect();
    let labels: Vec<&str> = labels.lines().collect();
    if launches.len() != labels.len() {
        let (found, named) = (launches.len(), labels.len());
        return Err(format!("{found} launches were counted, but {named} are named").into());
    }
    let (found, missing): (Vec<_>, Vec<_>) = JOINED
        .iter()
        .copied()
        .partition(|(_, metric)| units.is_some_and(|units| units.get(metric).is_some()));
    if let Some((_, metric)) = missing.first() {
        lesson::output::eprintln!("ncu has no column {metric}");
    }
    let mut text = format!("direction,engine,num_seqs,seq_len,{}\n", names(&found));
    for (label, launch) in labels.iter().zip(&launches) {
        text += label;
        for (_, metric) in &found {
            let scale = scale(units.and_then(|units| units.get(metric)).unwrap_or_default())?;
            let number = number(launch.text(metric)?)?;
            text += &format!(",{}", (100.0 * number * scale).round() / 100.0);
        }
        text += "\n";
    }
    Ok(text)
}

/// Reads the source page that `ncu` printed. For each kernel, returns the number of executed loads
/// and stores of global memory, and the number of executed instructions from the first to the last
/// of them, both included.
///
/// # Errors
///
/// Returns an error if a kernel has no table, or the table lacks a column.
pub fn spans(page: &str) -> lesson::Result<String> {
    let mut text = String::from("kernel,loads,loads_span,stores,stores_span\n");
    for kernel in page.split("\"Kernel Name\",\"").skip(1) {
        let (name, table) = kernel.split_once('\n').ok_or("a kernel without a table")?;
        let name = name.split("\",\"").next().unwrap_or_default().trim_matches(['"', ',', '\r']);
        // Lines after the table have other numbers of columns.
        let columns = |line: &str| line.matches("\",\"").count();
        let header = table.lines().next().ok_or("a kernel without a table")?;
        let rows = table.lines().filter(|line| columns(line) == columns(header));
        let table = Table::read(&rows.map(|line| format!("{line}\n")).collect::<String>())?;
        let mut code = Vec::new();
        for row in table.rows() {
            if row.text("Instructions Executed")? != "0" {
                code.push(row.text("Source")?);
            }
        }
        let span = |opcode: &str| {
            let is_one = |line: &str| line.split(' ').any(|word| word.starts_with(opcode));
            let first = code.iter().position(|line| is_one(line)).unwrap_or(0);
            let last = code.iter().rposition(|line| is_one(line)).unwrap_or(0);
            format!("{},{}", code.iter().filter(|line| is_one(line)).count(), last - first + 1)
        };
        text += &format!("{name},{},{}\n", span("LDG"), span("STG"));
    }
    Ok(text)
}

fn names(metrics: Metrics) -> String {
    metrics.iter().map(|&(name, _)| name).collect::<Vec<_>>().join(",")
}

fn number(text: &str) -> lesson::Result<f64> {
    text.replace(',', "").parse().map_err(|_| format!("`{text}` is not a number").into())
}

fn scale(unit: &str) -> lesson::Result<f64> {
    Ok(match unit {
        "" | "byte" | "inst" | "sector" | "request" | "warp" | "ns" | "%" => 1.0,
        other => return Err(format!("the unit `{other}` is not known here").into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(metrics: Metrics, launches: &[(&str, &str, &str)]) -> String {
        let line = |front: [&str; 3], cell: &str| {
            let cells = front.into_iter().chain(metrics.iter().map(|_| cell));
            format!("\"{}\"\n", cells.collect::<Vec<_>>().join("\",\""))
        };
        let header = ["ID", "Kernel Name", "Grid Size"].into_iter();
        let header: Vec<&str> = header.chain(metrics.iter().map(|&(_, metric)| metric)).collect();
        let mut text = format!("==PROF== Connected\n\"{}\"\n", header.join("\",\""));
        text += &line(["", "", ""], "%");
        for (name, grid, cell) in launches {
            text += &line(["1", name, grid], cell);
        }
        text
    }

    #[test]
    fn the_second_launch_of_each_kernel_is_recorded() {
        let text = written(
            &BY_SHAPE,
            &[
                ("elementwise_fwd", "(52800, 1, 1)", "1"),
                ("linrec_pipe_fwd_float_4_128_0_3", "(13200, 1, 1)", "1,234"),
                ("elementwise_fwd", "(52800, 1, 1)", "2.5"),
                ("linrec_pipe_fwd_float_4_128_0_3", "(13200, 1, 1)", "2,345"),
            ],
        );
        let table = by_shape([text.as_str()]).unwrap();
        let lines: Vec<&str> = table.lines().skip(1).collect();
        let all = |cell: &str| [cell; 10].join(",");
        let expected =
            [format!("pipe:4x128:0,4096,{}", all("2345")), format!("roof,4096,{}", all("2.5"))];
        assert_eq!(lines, expected);
        assert!(crate::traffic::read(&table).is_ok());
        assert!(by_shape(["nothing"]).is_err());
    }

    #[test]
    fn launches_get_their_names() {
        let launches = [("one", "(1, 1, 1)", "1,000.256"), ("two", "(1, 1, 1)", "3")];
        let text = written(&JOINED, &launches);
        let labels = "forward,roof,10,16\nbackward,pipe:8x64:0,10,16\n";
        let joined = join(&text, labels).unwrap();
        let lines: Vec<&str> = joined.lines().collect();
        assert!(lines[0].starts_with("direction,engine,num_seqs,seq_len,load_requests,"));
        assert!(lines[1].starts_with("forward,roof,10,16,1000.26,1000.26,"), "{joined}");
        assert!(lines[2].starts_with("backward,pipe:8x64:0,10,16,3,3,"), "{joined}");
        let error = join(&text, "forward,roof,10,16\n").unwrap_err().to_string();
        assert!(error.contains("2 launches"), "{error}");
    }

    #[test]
    fn loads_and_stores_of_the_machine_code() {
        let page = "\"Kernel Name\",\"linrec_a\"\n\"#\",\"Source\",\"Instructions Executed\"\n\
                    \"1\",\"      LDG.E R1, [R2]\",\"4\"\n\"2\",\"      IADD3 R1\",\"4\"\n\
                    \"3\",\"      LDG.E R1, [R2]\",\"4\"\n\"4\",\"      LDG.E R1, [R2]\",\"0\"\n\
                    \"5\",\"      @P0 STG.E [R2]\",\"4\"\n\n";
        let expected = "kernel,loads,loads_span,stores,stores_span\nlinrec_a,2,3,1,1\n";
        assert_eq!(spans(page).unwrap(), expected);
    }
}
