//! Examines the devices of this machine: finds them, explains what is missing, and tries the
//! kernels.

use lesson::output::println;
use lesson::{Table, clock};
use linrec::contract::{self, Domain};
use linrec::device::{Attributes, Device, KernelEngine, driver, nvrtc};
use linrec::kernels::KernelChoice;

const GIB: f64 = (1_u64 << 30) as f64;

/// Adds everything that was found to the table. Returns the reasons for everything that was not, as
/// sentences.
pub fn look(table: &mut Table) -> Vec<String> {
    let mut missing = Vec::new();
    match driver() {
        Ok(driver) => {
            let (major, minor) = driver.cuda_version;
            let file = driver.file.map_or_else(String::new, |file| format!(", {}", file.display()));
            table.row(["NVIDIA driver", &format!("for CUDA {major}.{minor}{file}")]);
        }
        Err(error) => {
            table.row(["NVIDIA driver", "none that can be used (see below)"]);
            missing.push(error.to_string());
        }
    }
    for device in Device::all() {
        table.row([device.label(), &describe(&device)]);
    }
    let gpus = driver().map_or(0, |driver| driver.devices);
    let refused = (0..gpus).filter_map(|ordinal| Device::cuda(ordinal).err());
    missing.extend(refused.map(|error| error.to_string()));

    match nvrtc::Nvrtc::find() {
        Ok(nvrtc) => {
            let (major, minor) = nvrtc.version();
            let found = format!("{major}.{minor}, {}", nvrtc.path().display());
            table.row(["NVRTC, the CUDA compiler", &found]);
        }
        Err(error) => {
            table.row(["NVRTC, the CUDA compiler", "none (see below)"]);
            missing.push(error.to_string());
        }
    }
    let cache = match nvrtc::cache_folder() {
        Ok(Some(folder)) => folder.display().to_string(),
        Ok(None) => "none".to_owned(),
        Err(error) => {
            missing.push(error.to_string());
            "none (see below)".to_owned()
        }
    };
    table.row(["cache of compiled kernels", &cache]);
    match Device::auto() {
        Ok(device) => table.row(["device that is taken", device.label()]),
        Err(error) => {
            table.row(["device that is taken", "none (see below)"]);
            missing.push(error.to_string());
        }
    }
    missing
}

/// Runs the reference kernel on every device and compares it with the reference. Returns true if
/// all results are right.
pub fn try_kernels() -> bool {
    let mut passed = true;
    for device in Device::all() {
        let (elapsed, tried) = clock::time(|| {
            let engine = KernelEngine::<f32>::new(&device, KernelChoice::default())?;
            let domain = Domain { max_len: 1000, ..engine.domain() };
            Ok::<_, linrec::Error>(contract::run::<f32>(&engine, &domain))
        });
        match tried {
            Ok(report) => {
                println!("  {report}, {}", clock::text(elapsed));
                passed &= report.passed();
            }
            Err(error) => {
                println!("  {error}");
                passed = false;
            }
        }
    }
    passed
}

fn describe(device: &Device) -> String {
    let Attributes { multiprocessors, compute_capability: (major, minor), .. } =
        device.attributes();
    if device.is_simt() {
        return format!("the emulator of a GPU, on {multiprocessors} threads");
    }
    let memory = match device.memory() {
        Ok((free, total)) => {
            let (free, total) = (free as f64 / GIB, total as f64 / GIB);
            format!("{total:.0} GiB of memory ({free:.0} free)")
        }
        Err(error) => error.to_string(),
    };
    format!("{}, sm_{major}{minor}, {multiprocessors} SMs, {memory}", device.name())
}
