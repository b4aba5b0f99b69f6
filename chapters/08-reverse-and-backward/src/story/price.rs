//! Where the sectors of each way go, and who is busy: what Nsight Compute counted on an H200.

use linrec::kernels::Pass as KernelPass;
use linrec::lesson::{self, Kind, Lesson, Table};
use linrec::simt::Access;

use crate::count::{count, of};
use crate::pipe;
use crate::record::{Pass, times, traffic, traffic_elements};

const SECTOR: f64 = 32.0;

/// Puts counters beside times.
pub fn price(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("price", "Where the sectors go")?;
    let elements = traffic_elements();
    lesson.say(
        "Nsight Compute on the H200, 13200 sequences of 4096, forward. Sectors that the multiprocessors ask for, and \
         those that get as far as L2, both as multiples of the arrays' own; and bytes that are read from DRAM and written to it, per element:",
    );
    let header = [
        "kernel",
        "memcode",
        "loads",
        "L2 reads",
        "stores",
        "L2 writes",
        "DRAM reads",
        "writes",
        "speed / roof",
    ];
    let mut table = Table::new(header);
    let runs = times(Pass::Forward, "f32")?;
    let get = |engine: &str, what: &str| traffic(Pass::Forward, engine, what).unwrap_or(f64::NAN);
    let kernels = [("4x128", "4 x 128"), ("8x64", "8 x 64")];
    for (size, name) in kernels {
        for memcode in 0..3 {
            let engine = format!("pipe:{size}:{memcode}");
            let multiple = |what: &str, arrays: f64| {
                format!("{:.2}", get(&engine, what) * SECTOR / (4.0 * arrays * elements))
            };
            let bytes = |what: &str| format!("{:.2}", get(&engine, what) / elements);
            let ratio = runs.median(&engine, 4096).map_or(f64::NAN, |run| run.ratio);
            table.row([
                name.to_owned(),
                memcode.to_string(),
                multiple("load_sectors", 2.0),
                multiple("l2_reads", 2.0),
                multiple("store_sectors", 1.0),
                multiple("l2_writes", 1.0),
                bytes("dram_read"),
                bytes("dram_written"),
                format!("{ratio:.2}"),
            ]);
        }
    }
    lesson.table("traffic.csv", Kind::Computed, &table)?;
    let multiple = |engine: &str| get(engine, "l2_writes") * SECTOR / (4.0 * elements);
    // Three arrays, two of them shifted.
    for (key, what) in [("back_asked", "load_sectors"), ("back_l2", "l2_reads")] {
        let sectors = traffic(Pass::Backward, "pipe:8x64:1", what).unwrap_or(f64::NAN);
        let multiple = sectors * SECTOR / (4.0 * 3.0 * elements);
        lesson.value(key, format!("{multiple:.2}"), Kind::Computed);
    }
    lesson.value("written_4", format!("{:.1}", multiple("pipe:4x128:0")), Kind::Computed);
    lesson.value("written_8", format!("{:.1}", multiple("pipe:8x64:0")), Kind::Computed);

    lesson.say(
        "The same launches: instructions of warps and passes over the banks of shared memory for every 32 elements, \
         and how busy the caches and DRAM were:",
    );
    let header = [
        "kernel",
        "memcode",
        "instructions",
        "shared passes",
        "conflicts",
        "L1 busy",
        "L2 busy",
        "DRAM busy",
    ];
    let mut table = Table::new(header);
    for (size, name) in kernels {
        for memcode in 0..3 {
            let engine = format!("pipe:{size}:{memcode}");
            // For every 32 elements, that is what one warp would do if it had one each.
            let per_32 = |whats: [&str; 2]| {
                let sum: f64 = whats.iter().map(|what| get(&engine, what)).sum();
                format!("{:.1}", 32.0 * sum / elements)
            };
            table.row([
                name.to_owned(),
                memcode.to_string(),
                format!("{:.0}", 32.0 * get(&engine, "instructions") / elements),
                per_32(["shared_load_wavefronts", "shared_store_wavefronts"]),
                per_32(["shared_load_conflicts", "shared_store_conflicts"]),
                format!("{:.0} %", get(&engine, "l1_percent")),
                format!("{:.0} %", get(&engine, "l2_percent")),
                format!("{:.0} %", get(&engine, "dram_percent")),
            ]);
        }
    }
    lesson.table("work.csv", Kind::Computed, &table)?;
    for (key, engine, what) in [
        ("l2_busy_0", "pipe:8x64:0", "l2_percent"),
        ("l2_busy_1", "pipe:8x64:1", "l2_percent"),
        ("dram_busy_1", "pipe:8x64:1", "dram_percent"),
        ("l1_busy_2", "pipe:8x64:2", "l1_percent"),
    ] {
        lesson.value(key, format!("{:.0} %", get(engine, what)), Kind::Computed);
    }

    equal_counts(lesson)
}

/// Whether the emulator's requests, sectors and conflicts are those of the GPU.
fn equal_counts(lesson: &mut Lesson) -> lesson::Result {
    // Every block does the same: one is enough.
    let (mut unequal, num_seqs) = (0, traffic_elements() / 4096.0);
    let mut conflicts = Vec::new();
    for pass in Pass::BOTH {
        for memcode in 0..3 {
            let kernel_pass = match pass {
                Pass::Forward => KernelPass::Forward,
                Pass::Backward => KernelPass::Backward,
            };
            let counters = count::<f32>(pipe(memcode), kernel_pass, (1, 4096))?;
            let engine = format!("pipe:8x64:{memcode}");
            let gpu = |what| traffic(pass, &engine, what).unwrap_or(f64::NAN) / num_seqs;
            let (loads, stores) =
                (of(&counters, Access::GlobalLoad), of(&counters, Access::GlobalStore));
            for (ours, theirs) in [
                (loads.requests, gpu("load_requests")),
                (loads.sectors, gpu("load_sectors")),
                (stores.requests, gpu("store_requests")),
                (stores.sectors, gpu("store_sectors")),
            ] {
                unequal += usize::from(ours as f64 != theirs);
            }
            let [into, from] =
                [Access::SharedStore, Access::SharedLoad].map(|on| of(&counters, on).conflicts);
            let theirs = gpu("shared_load_conflicts") + gpu("shared_store_conflicts");
            conflicts.push((pass, memcode, into + from, theirs));
        }
    }
    lesson.check(
        "requests and sectors of all three that the emulator counts otherwise",
        unequal as f64,
        0.0,
    );
    lesson.say(
        "Conflicts of one sequence, by the emulator and by Nsight Compute (the latter on average):",
    );
    let mut table = Table::new(["pass", "memcode", "emulator", "H200"]);
    for (pass, memcode, ours, theirs) in conflicts {
        table.row([
            pass.name().to_owned(),
            memcode.to_string(),
            ours.to_string(),
            format!("{theirs:.0}"),
        ]);
    }
    lesson.table("conflicts.csv", Kind::Computed, &table)
}
