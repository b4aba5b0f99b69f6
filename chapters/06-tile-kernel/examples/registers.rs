//! Compiles larger and larger tiles, and a tile whose loops are not unrolled, and asks NVIDIA's
//! assembler for the registers of a thread. No GPU is needed, only NVRTC (see `kernels/README.md`)
//! and `ptxas`: `pip install nvidia-cuda-nvcc-cu12`.
//!
//! ```text
//! cargo run --release -p ch06-tile-kernel --example registers -- \
//!     PTXAS chapters/06-tile-kernel/results/ptxas
//! cargo xtask pack chapters/06-tile-kernel/results/ptxas
//! ```

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use lesson::output::{self, eprintln, println};
use lesson::{Table, machine};
use linrec::Direction;
use linrec::device::nvrtc;
use linrec::kernels::{ElementType, KernelChoice, Pass, Program, TileConfig};

const ARCHITECTURE: &str = "sm_90";

/// Elements per thread, threads per block, and whether the loops over the elements are unrolled.
const TILES: [(u32, u32, bool); 9] = [
    (4, 256, true),
    (8, 256, true),
    (16, 256, true),
    (32, 256, true),
    (4, 1024, true),
    (8, 1024, true),
    (16, 1024, true),
    (32, 1024, true),
    (8, 256, false),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [ptxas, folder] = arguments.as_slice() else {
        eprintln!("usage: registers PTXAS FOLDER");
        return ExitCode::from(2);
    };
    output::finish(measure(ptxas, Path::new(folder)))
}

fn measure(ptxas: &str, folder: &Path) -> Result<(), Box<dyn Error>> {
    let header = ["elements", "threads", "tile", "unrolled", "registers", "stack", "spilled"];
    let mut table = Table::new(header);
    let mut compiler = String::new();
    for (elems, threads, unrolled) in TILES {
        let compiled =
            nvrtc::compile(&program(elems, threads, unrolled), nvrtc::SHIPPED_ARCHITECTURE)?;
        let output = assemble(ptxas, compiled.ptx.text())?;
        let spilled =
            before(&output, " bytes spill stores") + before(&output, " bytes spill loads");
        table.row([
            elems.to_string(),
            threads.to_string(),
            (elems * threads).to_string(),
            String::from(if unrolled { "yes" } else { "no" }),
            before(&output, " registers").to_string(),
            before(&output, " bytes stack frame").to_string(),
            spilled.to_string(),
        ]);
        compiler = compiled.compiler;
    }
    println!("{}", table.to_text().trim_end());
    let mut origin = Table::new(["compiler", "ptxas", "for", "date"]);
    let version = Command::new(ptxas).arg("--version").output()?;
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    let release = version.split("release ").nth(1).and_then(|text| text.split(',').next());
    origin.row([&compiler, release.unwrap_or("unknown"), ARCHITECTURE, &machine::date()]);
    fs::create_dir_all(folder)?;
    fs::write(folder.join("registers.csv"), table.to_csv())?;
    fs::write(folder.join("origin.csv"), origin.to_csv())?;
    Ok(())
}

/// Makes the program of the tile's forward pass in f32.
fn program(elems: u32, threads: u32, unrolled: bool) -> Program {
    let size = TileConfig {
        max_elems_per_thread: elems,
        max_threads_per_block: threads,
        ..TileConfig::DEFAULT
    };
    let choice = KernelChoice::Tile(size);
    let entry = choice.entry(ElementType::F32, Pass::Forward, Direction::Forward);
    let mut program = choice.program(ElementType::F32).with_entries([entry]);
    if !unrolled {
        for header in &mut program.headers {
            header.text = header.text.replace("#pragma unroll", "#pragma unroll 1").into();
        }
    }
    program
}

fn assemble(ptxas: &str, ptx: &str) -> Result<String, Box<dyn Error>> {
    let place = |ending: &str| {
        std::env::temp_dir().join(format!("registers-{}.{ending}", std::process::id()))
    };
    fs::write(place("ptx"), ptx)?;
    let mut command = Command::new(ptxas);
    command.args(["-v", "-arch", ARCHITECTURE, "-o"]).arg(place("cubin")).arg(place("ptx"));
    let output = command.output()?;
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    fs::remove_file(place("ptx"))?;
    if !output.status.success() {
        return Err(messages.into());
    }
    fs::remove_file(place("cubin"))?;
    Ok(messages)
}

/// Returns the number before these words, or 0 if they are missing.
fn before(output: &str, words: &str) -> u32 {
    let number = |text: &str| text.rsplit(' ').next()?.parse().ok();
    output.split_once(words).and_then(|(text, _)| number(text)).unwrap_or(0)
}
