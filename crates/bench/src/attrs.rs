//! `tour attrs`: the resources of an SM that each configuration of a kernel uses.
//!
//! On a GPU, the driver reports registers, local and shared memory, and the number of blocks that
//! fit on an SM; this module prints one table per kernel and writes it as CSV. Without a GPU
//! nothing can report registers, since the driver assigns them when it translates PTX. The command
//! then prints the record of an H200 and what the shipped PTX declares. The tests at the end of
//! this file read a table back and count declared registers.

use std::path::PathBuf;

use lesson::output::println;
use lesson::{Table, machine};
use linrec::device::{Device, Job, Recurrence, Storage, dispatch};
use linrec::kernels::{ElementType, KernelChoice, Pass, shipped_as};
use linrec::{Direction, Error};
use serde::{Deserialize, Serialize};

use crate::csv::{self, displayed};
use crate::{DeviceChoice, field, folder, write};

/// A sequence length at which every block has all of its threads.
const LONG: u64 = 1 << 20;

/// The command's arguments.
#[derive(Debug, Clone, clap::Args)]
pub struct Settings {
    /// The kernels; all by default
    #[arg(value_name = "KERNEL", value_parser = KernelChoice::families())]
    kernels: Vec<String>,

    /// The element type: f32, f64, bf16, f16, complex64 or complex128
    #[arg(long, value_name = "TYPE", default_value = "f32")]
    element: ElementType,

    /// The folder for the tables
    #[arg(long, value_name = "FOLDER", default_value = "target/tour/tune")]
    out: PathBuf,

    /// The device: simt, cuda or cuda:1; by default the first GPU, or else the emulator
    #[arg(long, value_name = "NAME", default_value_t, hide_default_value = true)]
    device: DeviceChoice,
}

/// The resources that a kernel uses in one pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Taken {
    /// The kernel's name, in [`KernelChoice`]'s notation.
    pub kernel: String,
    /// The element type of the arrays.
    #[serde(with = "displayed")]
    pub element: ElementType,
    /// The pass.
    #[serde(with = "displayed")]
    pub pass: Pass,
    /// The number of threads per block.
    pub threads: u32,
    /// The number of 32-bit registers per thread.
    pub registers: u32,
    /// The local memory of a thread, in bytes.
    pub local_bytes: u32,
    /// The shared memory of a block as compiled, in bytes.
    pub shared_bytes: u32,
    /// The dynamic shared memory that the launch adds, in bytes.
    pub dynamic_bytes: u32,
    /// The number of blocks that an SM holds at a time.
    pub blocks: u32,
    /// The number of warps that an SM holds at a time.
    pub warps: u32,
    /// The percentage of an SM's warp slots that these warps take.
    pub occupancy: u32,
}

/// The columns of a table: the fields of [`Taken`].
const HEADER: &str = "kernel,element,pass,threads,registers,local_bytes,shared_bytes,dynamic_bytes,\
                      blocks,warps,occupancy";

/// Prints and writes the tables. On a machine without a GPU, prints the record of an H200 and the
/// declarations of the shipped PTX.
///
/// # Errors
///
/// Returns an error if a file cannot be written or the device fails.
pub fn run(settings: &Settings, record: &[Taken]) -> lesson::Result {
    let device = settings.device.open()?;
    let kernels: Vec<&str> = match settings.kernels.is_empty() {
        true => KernelChoice::families().to_vec(),
        false => settings.kernels.iter().map(String::as_str).collect(),
    };
    if device.is_simt() {
        return without_gpu(&kernels, settings.element, record);
    }
    folder(&settings.out)?;
    let path = settings.out.join("machine.csv");
    write(&path, &machine_of(&device).to_csv())?;
    for kernel in kernels {
        let ask = Ask { device: &device, kernel };
        let (taken, refused) = dispatch(settings.element, ask)?;
        let table = csv::table(HEADER, &taken)?;
        println!("\n{kernel} of {} on {}:\n\n{}", settings.element, device.name(), table.to_text());
        for (choice, why) in refused {
            println!("{choice}: {why}");
        }
        let path = settings.out.join(format!("attrs-{kernel}-{}.csv", settings.element));
        write(&path, &table.to_csv())?;
    }
    Ok(())
}

fn machine_of(device: &Device) -> Table {
    let attributes = device.attributes();
    let (major, minor) = attributes.compute_capability;
    let cuda = attributes.cuda_version.unwrap_or_default();
    let mut table = Table::new([
        "machine",
        "architecture",
        "multiprocessors",
        "highest_clock_mhz",
        "highest_memory_clock_mhz",
        "memory_bus_bits",
        "l2_mib",
        "shared_bytes_of_a_block",
        "cuda",
        "date",
    ]);
    let mhz = |khz: Option<u32>| khz.map_or_else(String::new, |khz| (khz / 1000).to_string());
    table.row([
        device.name().to_owned(),
        format!("sm_{major}{minor}"),
        attributes.multiprocessors.to_string(),
        mhz(attributes.clock_khz),
        mhz(attributes.memory_clock_khz),
        attributes.memory_bus_bits.unwrap_or(0).to_string(),
        (attributes.l2_bytes.unwrap_or(0) >> 20).to_string(),
        attributes.shared_bytes_opt_in.to_string(),
        format!("{}.{}", cuda.0, cuda.1),
        machine::date(),
    ]);
    table
}

struct Ask<'a> {
    device: &'a Device,
    kernel: &'a str,
}

impl Job for Ask<'_> {
    type Output = lesson::Result<(Vec<Taken>, Vec<(KernelChoice, Error)>)>;

    fn run<S: Storage>(self) -> Self::Output {
        let choices = KernelChoice::candidates(self.kernel, S::ELEMENT);
        let message = format!("compiling {}", self.kernel);
        let (loaded, refused) = field::load::<S>(self.device, choices, &message);
        let mut rows = Vec::new();
        for recurrence in &loaded {
            for pass in Pass::ALL {
                rows.push(taken(recurrence, pass)?);
            }
        }
        Ok((rows, refused))
    }
}

/// Queries the driver. A kernel that cannot be launched has 0 blocks on an SM.
// ANCHOR: taken
fn taken<S: Storage>(recurrence: &Recurrence<S>, pass: Pass) -> lesson::Result<Taken> {
    let choice = recurrence.kernel(pass, (1, LONG as usize), true)?;
    let function = recurrence.function(pass, Direction::Forward)?;
    let attributes = function.attributes();
    let geometry = choice.geometry(S::ELEMENT, pass, 1, LONG);
    let long = (1, LONG as usize);
    let blocks = match field::refused(recurrence, pass, long)? {
        Some(_) => 0,
        None => function.occupancy(geometry.threads, geometry.shared_bytes)?.unwrap_or(0),
    };
    let slots = recurrence.device().attributes().threads_per_multiprocessor.unwrap_or(2048) / 32;
    let warps = blocks * geometry.threads.div_ceil(32);
    Ok(Taken {
        kernel: choice.to_string(),
        element: S::ELEMENT,
        pass,
        threads: geometry.threads,
        registers: attributes.registers.unwrap_or(0),
        local_bytes: attributes.local_bytes,
        shared_bytes: attributes.shared_bytes,
        dynamic_bytes: geometry.shared_bytes,
        blocks,
        warps,
        occupancy: (100.0 * f64::from(warps) / f64::from(slots.max(1))).round_ties_even() as u32,
    })
}
// ANCHOR_END: taken

fn without_gpu(kernels: &[&str], element: ElementType, record: &[Taken]) -> lesson::Result {
    println!(
        "There is no GPU here. The driver assigns registers when it translates PTX for a GPU, so this machine \
         cannot tell how many registers a kernel uses."
    );
    let wanted = |taken: &&Taken| {
        let kernel = taken.kernel.split(':').next().unwrap_or_default();
        taken.element == element && kernels.contains(&kernel)
    };
    let recorded: Vec<Taken> = record.iter().filter(wanted).cloned().collect();
    if recorded.is_empty() {
        println!("\nThere is no record of {element} on an H200 either.");
    } else {
        println!("\nThis is the record of another machine, an NVIDIA H200, and not of this one:\n");
        println!("{}", csv::table(HEADER, &recorded)?.to_text());
    }
    println!("And this is what the shipped PTX declares, on any machine:\n");
    println!("{}", of_ptx(kernels, element)?.to_text());
    Ok(())
}

/// Makes a table of the declarations in the PTX of the shipped kernels. PTX has no limit on
/// registers, so it declares about one for every intermediate result.
///
/// # Errors
///
/// Returns an error if the emulator cannot parse the PTX.
pub fn of_ptx(kernels: &[&str], element: ElementType) -> lesson::Result<Table> {
    let mut table = Table::new([
        "kernel",
        "pass",
        "names of registers",
        "local bytes",
        "shared bytes",
        "largest block",
    ]);
    let shipped = KernelChoice::shipped(element).filter(|choice| kernels.contains(&choice.name()));
    for choice in shipped {
        let Some(ptx) = shipped_as(&choice.program(element)) else { continue };
        let module = Device::simt().module(ptx.text())?;
        for pass in Pass::ALL {
            let entry = choice.entry(element, pass, Direction::Forward);
            let function = module.function(&entry)?;
            let attributes = function.attributes();
            table.row([
                choice.to_string(),
                pass.name().to_owned(),
                names(ptx.text(), function.name()).to_string(),
                attributes.local_bytes.to_string(),
                attributes.shared_bytes.to_string(),
                attributes.max_threads_per_block.to_string(),
            ]);
        }
    }
    Ok(table)
}

/// Counts the registers that a kernel declares in PTX, in units of 32 bits and without predicates.
pub fn names(ptx: &str, symbol: &str) -> u32 {
    let head = format!(".entry {symbol}(");
    let body = ptx.lines().skip_while(|line| !line.contains(&head)).take_while(|line| *line != "}");
    let declared = body.filter_map(|line| {
        // For example: .reg .b64 %rd<118>;
        let (kind, names) = line.trim().strip_prefix(".reg .")?.split_once('%')?;
        let count: u32 = names.split_once('<')?.1.split_once('>')?.0.parse().ok()?;
        let words = match kind.trim() {
            "pred" => 0,
            kind if kind.ends_with("64") => 2,
            _ => 1,
        };
        // Registers are numbered from 0, but the compiler begins at 1.
        Some(words * count.saturating_sub(1))
    });
    declared.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_of_ptx_are_counted_by_kernel() {
        let ptx = ".visible .entry one(\n)\n{\n\t.reg .pred \t%p<4>;\n\t.reg .f32 \t%f<11>;\n\t.reg .b64 \
                   \t%rd<6>;\n\tret;\n}\n.visible .entry two(\n)\n{\n\t.reg .b32 \t%r<3>;\n\tret;\n}\n";
        assert_eq!((names(ptx, "one"), names(ptx, "two"), names(ptx, "three")), (20, 2, 0));
    }

    #[test]
    fn shipped_kernels_are_tabulated_from_ptx() {
        let table = of_ptx(&["pipe", "wide"], ElementType::F32).unwrap().to_csv();
        assert!(table.contains("pipe:8x64:2,backward,"), "{table}");
        assert!(!table.contains("ref:64"), "{table}");
    }

    #[test]
    fn a_table_is_read_back() {
        let taken = Taken {
            kernel: String::from("pipe:8x64:0"),
            element: ElementType::F32,
            pass: Pass::Backward,
            threads: 64,
            registers: 40,
            local_bytes: 16,
            shared_bytes: 512,
            dynamic_bytes: 0,
            blocks: 24,
            warps: 48,
            occupancy: 75,
        };
        let text = csv::table(HEADER, std::slice::from_ref(&taken)).unwrap().to_csv();
        assert!(text.ends_with(",24,48,75\n"), "{text}");
        assert_eq!(csv::read::<Taken>(&text).unwrap(), [taken]);
        let error = csv::read::<Taken>("kernel,element\na,b,c\n").unwrap_err().to_string();
        assert!(error.contains("`a,b,c`"), "{error}");
    }

    #[test]
    fn a_gpu_reports_its_kernels_resources() {
        for device in linrec::device::under_test() {
            if device.is_simt() {
                continue;
            }
            let recurrence = Recurrence::<f32>::new(&device, KernelChoice::default()).unwrap();
            let taken = taken(&recurrence, Pass::Forward).unwrap();
            assert!(taken.registers > 8 && taken.blocks > 0, "{taken:?}");
        }
    }
}
