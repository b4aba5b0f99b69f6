//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Runs CUDA kernels without a GPU, and says what they cost and what they do wrong.
///
/// It exits with 0 if all went well, with 1 if a kernel did something wrong or its results are not
/// those expected, and with 2 if it could not be run.
#[derive(Debug, Parser)]
#[command(name = "simt", version, max_term_width = 120)]
pub struct Options {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Run(Box<Run>),
    List(List),
    Compile(Compile),
}

/// A file with kernels.
#[derive(Debug, Args)]
pub struct Source {
    /// PTX; or CUDA C++, which NVRTC compiles for compute_80 if it is found
    /// (`pip install nvidia-cuda-nvrtc-cu12`)
    pub file: PathBuf,

    /// An option for NVRTC, beside `-lineinfo` and the folder of the file; may be repeated
    #[arg(long = "compile", value_name = "OPTION", allow_hyphen_values = true)]
    pub compile: Vec<String>,

    /// A file that is included as NAME, wherever it is; may be repeated
    #[arg(long = "header", value_name = "NAME=FILE")]
    pub headers: Vec<String>,
}

/// Shows the kernels of a file: what they take, and the variables of their module.
#[derive(Debug, Args)]
#[command(after_help = "Example: simt list kernels.ptx")]
pub struct List {
    #[command(flatten)]
    pub source: Source,

    /// An instance of a template that is to be compiled, as C++ writes it: `scale<float>`; may be
    /// repeated
    #[arg(long, value_name = "NAME")]
    pub kernel: Vec<String>,
}

/// Compiles CUDA C++ with NVRTC, and prints the PTX. `run` and `list` do it as well, with a file
/// named `.cu`.
#[derive(Debug, Args)]
#[command(after_help = "Example: simt compile --kernel 'scale<float>' kernels.cu >kernels.ptx")]
pub struct Compile {
    #[command(flatten)]
    pub source: Source,

    /// An instance of a template that is to be there, as C++ writes it: `scale<float>`; may be
    /// repeated
    #[arg(long, value_name = "NAME")]
    pub kernel: Vec<String>,
}

/// Runs a kernel, and prints what is in its buffers then and what it cost; or what it does wrong,
/// and where.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct Run {
    #[command(flatten)]
    pub source: Source,

    /// The kernel, by its name in the PTX or in C++; may be left out where there is one
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,

    /// Blocks along x, y and z: `4` or `4,2` or `4,2,1`
    #[arg(long, value_name = "X,Y,Z", default_value = "1", value_parser = extent)]
    pub grid: [u32; 3],

    /// Threads of a block along x, y and z
    #[arg(long, value_name = "X,Y,Z", default_value = "32", value_parser = extent)]
    pub block: [u32; 3],

    /// Bytes of dynamic shared memory
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub shared: u32,

    /// The next argument of the kernel; see below
    #[arg(long = "arg", value_name = "ARGUMENT", allow_hyphen_values = true)]
    pub arguments: Vec<String>,

    /// A buffer that is no argument but is pointed to by one; made before the arguments
    #[arg(long = "buffer", value_name = "NAME:TYPE[COUNT]=FILL")]
    pub buffers: Vec<String>,

    /// A variable of the module: what it holds before the launch (without `=FILL`, as it is), and
    /// what it is shown as
    #[arg(long = "variable", value_name = "NAME:TYPE[COUNT]=FILL")]
    pub variables: Vec<String>,

    /// Prints a buffer or variable, in full or its first so many numbers; at first the beginning of
    /// all of them
    #[arg(long, value_name = "NAME[:COUNT]")]
    pub print: Vec<String>,

    /// Writes a buffer's or variable's bytes to a file
    #[arg(long, value_name = "NAME=FILE")]
    pub write: Vec<String>,

    /// Writes the launch to a folder, for another machine: `launch.txt` with the arguments' bytes,
    /// and all buffers and variables, as they were before in `before` and as they are then in
    /// `after`
    #[arg(long, value_name = "FOLDER")]
    pub save: Option<PathBuf>,

    /// What a buffer or variable is to hold afterwards, as in an argument: `y=@expected.bin`
    #[arg(long, value_name = "NAME=FILL")]
    pub expect: Vec<String>,

    /// How far a number may be from the one expected, relative to that where it is above 1; at
    /// first the bits have to be the same (NaN is any NaN)
    #[arg(long, value_name = "NUMBER", default_value_t = 0.0)]
    pub tolerance: f64,

    /// Prints what every instruction that accesses memory did, and instructions by what they do
    #[arg(long)]
    pub counters: bool,

    /// Prints the first so many events: what the lanes held at every load, store, shuffle and
    /// barrier
    #[arg(long, value_name = "EVENTS", num_args = 0..=1, default_missing_value = "100")]
    pub trace: Option<usize>,

    /// Runs all blocks together, taking turns, as kernels need whose blocks wait for each other
    /// (where that can be seen in the kernel it is done anyway)
    #[arg(long)]
    pub together: bool,

    /// Runs only the blocks from the first up to the second number
    #[arg(long, value_name = "FIRST..END", value_parser = range)]
    pub blocks: Option<(u64, u64)>,

    /// How many instructions warps may execute in all
    #[arg(long, value_name = "COUNT", default_value_t = simt::Launch::INSTRUCTIONS)]
    pub instructions: u64,
}

const AFTER: &str = "\
Arguments:
  u32=1024                a number; types are u8 u16 u32 u64 i8 i16 i32 i64 f16 bf16 f32 f64
  f32[1024]=random        a new buffer, and its address; x:f32[1024]=random has the name x, others are arg0, arg1, …
  f32[1024]               a buffer that nothing has been written to: a kernel that reads there is told so
  &x  &x+256              the address of a buffer made before, or so many bytes behind it
  null                    a null pointer
  {&x; u32=7; f32(3)=0}   a struct, laid out as C++ does; f32(3) is an array inside of it
  *{&x; &y}               a new buffer that holds this, and its address
  bytes=00ff12            bytes as they are
  tex2d(f32, 64x32)=0     a texture over a new buffer, and its handle; t:tex2d(u8x4, 64x32, border)=random has a name. Shapes are
                          texlinear(f32, 100) for tex1Dfetch, tex1d, tex2d, tex3d, and with layers, the last number, texa1d
                          and texa2d; texels are of 1, 2 or 4 numbers (u8x4). Behind them: wrap, clamp (if nothing else is
                          said), mirror or border; normalized coordinates; values as floats up to 1 (floats)
  surf2d(f32, 64x32)=0    a surface, likewise: surf1d, surf2d, surf3d, surfa1d, surfa2d
Fills:
  0    1,2,3              a number for all, or one for each
  random  random:-1..1    from 0 up to 1, of integers from 0 up to 100; or between two numbers; the same in every run
  index  index*4%7+1      the element's number, and what is made of it, from left to right
  @file                   the bytes of a file
Example:
  simt run saxpy.ptx --grid 4 --block 256 --arg u32=1000 --arg f32=2 --arg x:f32[1000]=random --arg y:f32[1000]=0 --print y:8";

/// `4`, `4,2`, `4,2,1`
pub fn extent(text: &str) -> Result<[u32; 3], String> {
    let mut extent = [1; 3];
    let parts: Vec<_> = text.split(',').collect();
    if parts.len() > 3 {
        return Err(format!("{} numbers; there are three axes", parts.len()));
    }
    for (axis, part) in extent.iter_mut().zip(parts) {
        *axis = part
            .trim()
            .parse()
            .map_err(|_| format!("`{part}` is no number of blocks or threads"))?;
    }
    Ok(extent)
}

fn range(text: &str) -> Result<(u64, u64), String> {
    let wrong = || format!("`{text}` is no range such as 0..4");
    let (first, end) = text.split_once("..").ok_or_else(wrong)?;
    let number = |text: &str| text.trim().parse().map_err(|_| wrong());
    Ok((number(first)?, number(end)?))
}
