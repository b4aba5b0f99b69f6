//! The memory sectors that one load instruction of a warp requests: launches each kernel of
//! `access_patterns.cu` once on the emulator, which counts.

use std::collections::BTreeSet;
use std::fmt;

use linrec::Error;
use linrec::device::Device;
use linrec::simt::{Access, Counters, Trace, What};

use crate::by_hand::shipped;

/// A pattern in which the lanes of a warp load elements of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// Consecutive lanes load consecutive elements of this many floats: 1 (`float`), 2 (`float2`)
    /// or 4 (`float4`).
    Coalesced(u32),
    /// Consecutive lanes load consecutive elements of 8 bytes, `double`.
    Double,
    /// Consecutive lanes load consecutive floats, from this one on.
    Shifted(u32),
    /// Lane `i` loads float number `i * stride`.
    Strided(u32),
    /// Lane `i` walks along a row of this length, as in the reference kernel.
    Rows(u32),
    /// All lanes load the same float.
    Broadcast,
}

/// The patterns of the page's table.
pub const PATTERNS: [Pattern; 10] = [
    Pattern::Coalesced(1),
    Pattern::Shifted(1),
    Pattern::Coalesced(2),
    Pattern::Double,
    Pattern::Coalesced(4),
    Pattern::Broadcast,
    Pattern::Strided(2),
    Pattern::Strided(4),
    Pattern::Strided(8),
    Pattern::Rows(1000),
];

/// The number of threads in the single block: four warps.
const THREADS: u32 = 128;

/// The cost of a pattern.
#[derive(Debug, Clone)]
pub struct Cost {
    /// All counters of the launch.
    pub counters: Counters,
    /// The address of each lane in the first warp's first load, in bytes from the first sector that
    /// the load touches.
    pub addresses: [u64; 32],
    /// The bytes that each lane loads there.
    pub bytes: u64,
}

impl Cost {
    /// Returns the number of sectors per request, on average over the launch.
    pub fn sectors_per_request(&self, access: Access) -> f64 {
        self.counters.sectors(access) as f64 / self.counters.requests(access).max(1) as f64
    }

    /// Returns the fraction of the bytes fetched by the first load that some lane requested.
    pub fn used(&self) -> f64 {
        let requested = self.addresses.iter().flat_map(|&start| start..start + self.bytes);
        let bytes: BTreeSet<u64> = requested.collect();
        let sectors: BTreeSet<u64> = bytes.iter().map(|byte| byte / 32).collect();
        bytes.len() as f64 / (32 * sectors.len().max(1)) as f64
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Coalesced(1) => f.write_str("float, consecutive"),
            Pattern::Coalesced(floats) => write!(f, "float{floats}, consecutive"),
            Pattern::Double => f.write_str("double, consecutive"),
            Pattern::Shifted(by) => write!(f, "float, consecutive, shifted by {by}"),
            Pattern::Strided(stride) => write!(f, "float, every {stride}"),
            Pattern::Rows(len) => write!(f, "float, one row of {len} per lane"),
            Pattern::Broadcast => f.write_str("float, all the same"),
        }
    }
}

impl Pattern {
    /// Returns the C++ name of the kernel's instance.
    fn entry(self) -> String {
        match self {
            Pattern::Coalesced(1) => "copy_coalesced<float>".into(),
            Pattern::Coalesced(floats) => format!("copy_coalesced<float{floats}>"),
            Pattern::Double => "copy_coalesced<double>".into(),
            Pattern::Shifted(_) => "copy_shifted".into(),
            Pattern::Strided(_) => "copy_strided".into(),
            Pattern::Rows(_) => "copy_rows".into(),
            Pattern::Broadcast => "copy_broadcast".into(),
        }
    }

    /// Runs the kernel on the emulator and counts.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Device`] if there is no such kernel (a vector of 3 floats, for example), or
    /// if there is too little memory.
    pub fn cost(self) -> Result<Cost, Error> {
        let device = Device::simt();
        let kernel = shipped(&device, "access_patterns")?.function(&self.entry())?;
        // The kernel's two numbers: the extent of its loop, and the pattern's own number.
        let threads = i64::from(THREADS);
        let (floats, extent, own) = match self {
            Pattern::Coalesced(floats) => (threads * i64::from(floats), threads, None),
            Pattern::Double => (2 * threads, threads, None),
            Pattern::Shifted(by) => (threads + i64::from(by), threads, Some(by)),
            Pattern::Strided(stride) => {
                let floats = threads * i64::from(stride);
                (floats, floats, Some(stride))
            }
            Pattern::Rows(len) => (threads * i64::from(len), threads, None),
            Pattern::Broadcast => (threads, threads, None),
        };
        let len = usize::try_from(floats).unwrap_or_default();
        let from = device.upload(&vec![1.0_f32; len])?;
        let mut to = device.allocate::<f32>(len)?;
        let mut trace = Trace::new(8);
        let launch = kernel.launch(1, THREADS).arg(&from).arg(&mut to).arg(extent);
        let launch = match (self, own) {
            (Pattern::Rows(len), _) => launch.arg(i64::from(len)),
            (_, Some(number)) => launch.arg(number),
            (_, None) => launch,
        };
        let launched = launch.traced(&mut trace).run(&device.stream())?;
        let counters = launched.counters().cloned().unwrap_or_default();
        let (addresses, bytes) = first_load(&trace).unwrap_or(([0; 32], 0));
        Ok(Cost { counters, addresses, bytes })
    }
}

/// Returns the addresses of the trace's first load, in bytes from the first sector, and the number
/// of bytes per lane.
pub(crate) fn first_load(trace: &Trace) -> Option<([u64; 32], u64)> {
    trace.events.iter().find_map(|event| match &event.what {
        What::Load(load) if !load.shared => {
            let start = load.addresses.iter().min().copied().unwrap_or(0) / 32 * 32;
            let bytes = u64::from(load.bytes) * load.values.len() as u64;
            Some((load.addresses.map(|address| address - start), bytes))
        }
        _ => None,
    })
}
