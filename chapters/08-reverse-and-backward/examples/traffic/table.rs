//! Nsight Compute's numbers beside the kernels' names.

use std::error::Error;
use std::fs;
use std::path::Path;

/// The metrics that are kept: their columns in ours, and their names in Nsight Compute's table.
const METRICS: [(&str, &str); 19] = [
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

/// Joins the table that `ncu` wrote, one row for each launch, with the file that names the launches in order.
pub fn join(ncu: &Path, labels: &Path, csv: &Path) -> Result<(), Box<dyn Error>> {
    let (ncu, labels) = (fs::read_to_string(ncu)?, fs::read_to_string(labels)?);
    let mut rows = ncu.lines().skip_while(|line| !line.starts_with("\"ID\"")).map(cells);
    let header = rows.next().ok_or("no line begins with \"ID\": this is no table of ncu's")?;
    let units = rows.next().unwrap_or_default();
    let launches: Vec<_> = rows.filter(|row| row.len() == header.len()).collect();
    let labels: Vec<&str> = labels.lines().collect();
    if launches.len() != labels.len() {
        let (found, named) = (launches.len(), labels.len());
        return Err(format!("{found} launches were counted, and {named} are named").into());
    }
    let columns: Vec<_> = METRICS
        .iter()
        .filter_map(|&(name, metric)| {
            let place = header.iter().position(|column| column == metric);
            if place.is_none() {
                eprintln!("ncu has no column {metric}");
            }
            Some((name, place?))
        })
        .collect();
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let mut text = format!("direction,engine,num_seqs,seq_len,{}\n", names.join(","));
    for (label, launch) in labels.iter().zip(&launches) {
        text += label;
        for &(_, place) in &columns {
            let unit = units.get(place).map(String::as_str).unwrap_or_default();
            text +=
                &format!(",{}", (100.0 * number(&launch[place])? * scale(unit)?).round() / 100.0);
        }
        text += "\n";
    }
    fs::write(csv, text)?;
    Ok(())
}

/// Of each kernel in the source page that `ncu` printed: its loads and stores of global memory that were executed,
/// and how many executed instructions lie between the first and the last of them, both included.
pub fn spans(ncu: &Path, csv: &Path) -> Result<(), Box<dyn Error>> {
    let page = fs::read_to_string(ncu)?;
    let mut text = String::from("kernel,loads,loads_span,stores,stores_span\n");
    for kernel in page.split("\"Kernel Name\",\"").skip(1) {
        let mut rows = kernel.lines().map(cells);
        let name = rows.next().and_then(|row| row.first().cloned());
        let name = name.as_deref().unwrap_or_default().trim_matches(['"', ',']);
        let header = rows.next().ok_or("a kernel without a table")?;
        let place = |column: &str| {
            let place = header.iter().position(|name| name == column);
            place.ok_or_else(|| format!("the page has no column `{column}`"))
        };
        let (source, executed) = (place("Source")?, place("Instructions Executed")?);
        let code: Vec<String> = rows
            .filter(|row| row.len() == header.len() && row[executed] != "0")
            .map(|row| row[source].clone())
            .collect();
        let span = |opcode: &str| {
            let is_one = |line: &String| line.split(' ').any(|word| word.starts_with(opcode));
            let first = code.iter().position(is_one).unwrap_or(0);
            let last = code.iter().rposition(is_one).unwrap_or(0);
            format!("{},{}", code.iter().filter(|line| is_one(line)).count(), last - first + 1)
        };
        text += &format!("{name},{},{}\n", span("LDG"), span("STG"));
    }
    fs::write(csv, text)?;
    Ok(())
}

/// The cells of a line of CSV, in which every cell is quoted.
fn cells(line: &str) -> Vec<String> {
    let line = line.strip_prefix('"').unwrap_or(line);
    let line = line.strip_suffix('"').unwrap_or(line);
    line.split("\",\"").map(str::to_owned).collect()
}

/// A number, perhaps with commas between its thousands.
fn number(text: &str) -> Result<f64, Box<dyn Error>> {
    text.replace(',', "").parse().map_err(|_| format!("`{text}` is no number").into())
}

/// What a unit stands for.
fn scale(unit: &str) -> Result<f64, Box<dyn Error>> {
    Ok(match unit {
        "" | "byte" | "inst" | "sector" | "request" | "warp" | "ns" | "%" => 1.0,
        other => return Err(format!("the unit `{other}` is not known here").into()),
    })
}
