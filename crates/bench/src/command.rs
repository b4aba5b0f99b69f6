//! `tour bench`: measures the library's engines and the roof in one run: the kernels on a GPU if
//! there is one, else the CPU engine and the plain loop.

use std::path::PathBuf;

use lesson::output::println;
use linrec::cpu::Simd;
use linrec::device::Device;
use linrec::kernels::ElementType;

use crate::destination::Destination;
use crate::{DeviceChoice, Peer, cpu, group, race};

/// The command's arguments.
#[derive(Debug, Clone, clap::Args)]
pub struct Settings {
    /// Write every single run to this file as CSV.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Replace the CSV file if there is one.
    #[arg(long, requires = "csv")]
    overwrite: bool,

    /// Measure each engine this many times.
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,

    /// Let the arrays take this much memory together, in MiB, where they must exceed the caches.
    #[arg(long, value_name = "MIB", default_value_t = 480, value_parser = clap::value_parser!(u32).range(1..=65536))]
    memory: u32,

    /// Let the arrays take this much memory together, in KiB, where they must fit into a core's own
    /// cache.
    #[arg(long, value_name = "KIB", default_value_t = 384, value_parser = clap::value_parser!(u32).range(1..=65536))]
    cache: u32,

    /// Use narrower vector instructions than this machine's widest: AVX-512, AVX2 or portable. This
    /// measures the CPU unless a device is named.
    #[arg(long, value_name = "NAME", value_parser = simd)]
    simd: Option<Simd>,

    /// Write tables and figures to this folder.
    #[arg(long, value_name = "FOLDER", default_value = "target/tour")]
    out: PathBuf,

    /// The device to measure: cpu, cuda or cuda:1; by default the first GPU, or else the CPU.
    #[arg(long, value_name = "NAME", default_value_t, hide_default_value = true)]
    device: DeviceChoice,

    /// Measure all GPUs of this machine and one of them: with rows divided among them, and with
    /// rows cut along their length.
    #[arg(long, conflicts_with_all = ["device", "simd", "element", "lengths", "tuned"])]
    group: bool,

    /// On a GPU: the element type.
    #[arg(long, value_name = "TYPE", default_value = "f32")]
    element: ElementType,

    /// On a GPU: the sequence lengths, instead of 16 to 65536.
    #[arg(long, value_name = "L,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    lengths: Vec<u32>,

    /// On a GPU: run the configurations in this tuned.csv of `tour tune` instead of the library's
    /// own choice.
    #[arg(long, value_name = "FILE")]
    tuned: Option<PathBuf>,
}

/// Opens the GPU to measure, or returns `None` for the CPU.
fn gpu(settings: &Settings) -> lesson::Result<Option<Device>> {
    let device = match settings.device {
        DeviceChoice::Cpu => return Ok(None),
        // Only the CPU has these vector instructions.
        DeviceChoice::Auto if settings.simd.is_some() => return Ok(None),
        choice => choice.open()?,
    };
    match (device.is_simt(), settings.device) {
        (false, _) => Ok(Some(device)),
        (true, DeviceChoice::Auto) => Ok(None),
        (true, _) => Err("an emulator has no speed to measure; write cpu, cuda or cuda:1".into()),
    }
}

/// Parses the name of vector instructions, as `tour doctor` prints it.
fn simd(name: &str) -> Result<Simd, String> {
    let named = |simd: &Simd| simd.to_string().eq_ignore_ascii_case(name);
    let simd = Simd::ALL.into_iter().find(named);
    let simd =
        simd.ok_or_else(|| format!("choose from {}", Simd::ALL.map(|s| s.to_string()).join(", ")))?;
    simd.is_available().then_some(simd).ok_or_else(|| String::from("this machine does not have it"))
}

/// Measures this machine, prints the tables, and writes them with their figures. On a GPU, the
/// figure shows `peers` as well. Returns true if all results were right.
///
/// # Errors
///
/// Returns an error if the CSV file cannot be written (before anything is measured), if the output
/// folder cannot be written, if the device fails, or if there is not enough memory.
pub fn run(settings: &Settings, peers: &[Peer]) -> lesson::Result<bool> {
    let csv = settings.csv.as_deref().map(|path| Destination::new(path, settings.overwrite));
    let csv = csv.transpose()?;
    let (passed, rows) = match gpu(settings)? {
        _ if settings.group => {
            (true, group::run(&group::groups()?, &group::CASES, settings.runs as usize)?)
        }
        Some(device) => {
            let settings = race::Settings {
                element: settings.element,
                lengths: settings.lengths.iter().map(|&len| len as usize).collect(),
                runs: settings.runs as usize,
                tuned: settings.tuned.clone(),
                out: settings.out.clone(),
            };
            race::run(&device, &settings, peers)?
        }
        None => cpu::run(&cpu::Settings {
            runs: settings.runs,
            memory: settings.memory,
            cache: settings.cache,
            simd: settings.simd,
            out: settings.out.clone(),
        })?,
    };
    // Of several processes, one has all rows.
    if let Some(csv) = csv.filter(|_| !rows.is_empty()) {
        csv.write(&rows)?;
        println!("Every run is in {}.", csv.path().display());
    }
    Ok(passed)
}
