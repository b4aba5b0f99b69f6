//! Makes `traffic.csv` from what Nsight Compute wrote: how much each kernel moves between the L1 caches, the L2
//! cache and the memory, and how busy these are. On the machine with the GPU (`race` is an example of `linrec`;
//! its first kernel in every round is the roof):
//!
//! ```text
//! ncu --csv --page raw --print-units base --clock-control none --kernel-name 'regex:linrec|elementwise' \
//!     --section MemoryWorkloadAnalysis --section MemoryWorkloadAnalysis_Tables --section SpeedOfLight \
//!     --section Occupancy race --kernels pipe:4x128:0 --lengths 4096 --passes forward --runs 1 >one.csv
//! ```
//!
//! And then, with all such files:
//!
//! ```text
//! cargo run -p ch07-pipe-kernel --example traffic -- chapters/07-pipe-kernel/results/h200/traffic.csv one.csv
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use std::process::ExitCode;

/// The columns of the table, and what Nsight Compute calls them.
const METRICS: [(&str, &str); 10] = [
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

/// Sequences of a race on a machine with 132 multiprocessors, and elements of one block of the roof.
const NUM_SEQS: u64 = 13_200;
const ROOF_BLOCK: u64 = 256 * 4;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((table, files)) = arguments.split_first().filter(|(_, files)| !files.is_empty())
    else {
        eprintln!("usage: traffic TABLE FILE...");
        return ExitCode::from(2);
    };
    match make(table, files) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn make(table: &str, files: &[String]) -> Result<(), Box<dyn Error>> {
    let mut rows = BTreeMap::new();
    for file in files {
        read(&std::fs::read_to_string(file)?, &mut rows)
            .map_err(|error| format!("{file}: {error}"))?;
    }
    let mut text = String::from("engine,seq_len");
    for (name, _) in METRICS {
        text += &format!(",{name}");
    }
    for ((engine, seq_len), cells) in rows {
        text += &format!("\n{engine},{seq_len},{}", cells.join(","));
    }
    std::fs::write(table, text + "\n")?;
    Ok(())
}

/// Adds a file's rows. Every kernel runs twice, the first time to load what is loaded late; the second one stays.
fn read(text: &str, rows: &mut BTreeMap<(String, u64), Vec<String>>) -> Result<(), Box<dyn Error>> {
    let lines = text.lines().skip_while(|line| !line.starts_with("\"ID\""));
    let mut lines = lines.map(|line| line.trim_matches('"').split("\",\"").collect::<Vec<_>>());
    let header = lines.next().ok_or("there is no table")?;
    let column = |name: &str| {
        let place = header.iter().position(|column| *column == name);
        place.ok_or_else(|| format!("there is no column `{name}`"))
    };
    let (name, grid) = (column("Kernel Name")?, column("Grid Size")?);
    let metrics = METRICS.map(|(_, metric)| column(metric));
    let mut seq_len = 0;
    for cells in lines {
        let cell = |place: usize| cells.get(place).copied().unwrap_or_default();
        let symbol = cell(name);
        // The second line of the table has units.
        if symbol.is_empty() {
            continue;
        }
        if symbol.starts_with("elementwise") {
            let blocks: u64 =
                cell(grid).trim_start_matches('(').split(',').next().unwrap_or_default().parse()?;
            seq_len = blocks * ROOF_BLOCK / NUM_SEQS;
        }
        let mut values = Vec::new();
        for metric in &metrics {
            values.push(cell(metric.clone()?).replace(',', ""));
        }
        rows.insert((engine(symbol), seq_len), values);
    }
    Ok(())
}

/// The name in a race of a kernel in PTX.
fn engine(symbol: &str) -> String {
    let parts: Vec<&str> = symbol.split('_').collect();
    match parts.as_slice() {
        ["linrec", kernel, _, _, elems, threads, memcode, _] => {
            format!("{kernel}:{elems}x{threads}:{memcode}")
        }
        ["linrec", "ref", ..] => String::from("ref:64"),
        _ => String::from("roof"),
    }
}
