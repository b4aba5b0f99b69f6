//! The command line: what each command takes, and the texts of its help.

use std::ops::Range;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::number::Type;
use crate::plan::array;

/// Runs CUDA kernels without a GPU, and reports what they cost and what they do wrong.
///
/// The exit code is 0 if all went well, 1 if a kernel did something wrong or its results differ
/// from those expected, and 2 if it could not be run.
#[derive(Debug, Parser)]
#[command(name = "simt", version, max_term_width = 120)]
pub struct Options {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Run(Box<Run>),
    /// Shows the kernels of a file, their parameters, and the variables of their module.
    #[command(after_help = "Example: simt list kernels.ptx")]
    List(Listed),
    /// Compiles CUDA C++ with NVRTC, and prints the PTX. `run` and `list` compile a file named
    /// `.cu` by themselves.
    #[command(after_help = "Example: simt compile --kernel 'scale<float>' kernels.cu >kernels.ptx")]
    Compile(Listed),
}

/// A file with kernels.
#[derive(Debug, Args)]
pub struct Source {
    /// PTX; or CUDA C++, which NVRTC compiles for compute_80 if it is found
    /// (`pip install nvidia-cuda-nvrtc-cu12`)
    pub file: PathBuf,

    /// An option for NVRTC, in addition to `-lineinfo` and the folder of the file; may be repeated
    #[arg(long = "compile", value_name = "OPTION", allow_hyphen_values = true)]
    pub compile: Vec<String>,

    /// A file that is included as NAME, wherever it is; may be repeated
    #[arg(long = "header", value_name = "NAME=FILE", value_parser = named)]
    pub headers: Vec<Named>,
}

/// A file, and the instances of its templates.
#[derive(Debug, Args)]
pub struct Listed {
    #[command(flatten)]
    pub source: Source,

    /// An instance of a template to compile, as C++ writes it: `scale<float>`; may be repeated
    #[arg(long, value_name = "NAME")]
    pub kernel: Vec<String>,
}

/// Runs a kernel. Prints what its buffers hold afterwards and what it cost, or what it does wrong,
/// and where.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct Run {
    #[command(flatten)]
    pub source: Source,

    /// The kernel, by its name in the PTX or in C++; needed if there are several
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

    /// A buffer that is not an argument, but that an argument points to; made before the arguments
    #[arg(long = "buffer", value_name = "NAME:TYPE[COUNT]=FILL")]
    pub buffers: Vec<String>,

    /// A variable of the module: how to show it, and what it holds before the launch (its initial
    /// value without `=FILL`)
    #[arg(long = "variable", value_name = "NAME:TYPE[COUNT]=FILL", value_parser = variable)]
    pub variables: Vec<Variable>,

    /// Prints a buffer or variable, all of it or its first COUNT numbers; by default the beginning
    /// of all of them
    #[arg(long, value_name = "NAME[:COUNT]", value_parser = print)]
    pub print: Vec<(String, Option<usize>)>,

    /// Writes the bytes of a buffer or variable to a file
    #[arg(long, value_name = "NAME=FILE", value_parser = named)]
    pub write: Vec<Named>,

    /// Writes the launch to a folder, for another machine: `launch.txt` with the bytes of the
    /// arguments, and all buffers and variables, from before the launch in `before` and from after
    /// it in `after`
    #[arg(long, value_name = "FOLDER")]
    pub save: Option<PathBuf>,

    /// The expected contents of a buffer or variable, filled as in an argument: `y=@expected.bin`
    #[arg(long, value_name = "NAME=FILL", value_parser = named)]
    pub expect: Vec<Named>,

    /// The largest distance of a number from the expected one, relative to it where it is above 1;
    /// by default the bits must be equal (any NaN equals any NaN)
    #[arg(long, value_name = "NUMBER", default_value_t = 0.0)]
    pub tolerance: f64,

    /// Prints the accesses of every instruction that uses memory, and the instructions by class
    #[arg(long)]
    pub counters: bool,

    /// Prints the first EVENTS events: the values of the lanes at every load, store, shuffle and
    /// barrier
    #[arg(long, value_name = "EVENTS", num_args = 0..=1, default_missing_value = "100")]
    pub trace: Option<usize>,

    /// Runs all blocks together and in turns, for kernels whose blocks wait for each other (on by
    /// itself where the kernel shows that they do)
    #[arg(long)]
    pub together: bool,

    /// Runs only the blocks from the first number up to the second
    #[arg(long, value_name = "FIRST..END", value_parser = range)]
    pub blocks: Option<Range<u64>>,

    /// The number of instructions that all warps together may execute
    #[arg(long, value_name = "COUNT", default_value_t = simt::Launch::INSTRUCTIONS)]
    pub instructions: u64,
}

const AFTER: &str = "\
Arguments:
  u32=1024                a number; types are u8 u16 u32 u64 i8 i16 i32 i64 f16 bf16 f32 f64
  f32[1024]=random        a new buffer, and its address; x:f32[1024]=random has the name x, others are arg0, arg1, …
  f32[1024]               a buffer that nothing has been written to: reading it is reported
  &x  &x+256              the address of a buffer made before, or of the byte 256 in it
  null                    a null pointer
  {&x; u32=7; f32(3)=0}   a struct, laid out as in C++; f32(3) is an array inside of it
  *{&x; &y}               a new buffer that holds this, and its address
  bytes=00ff12            bytes as they are
  tex2d(f32, 64x32)=0     a texture over a new buffer, and its handle; t:tex2d(u8x4, 64x32, border)=random has a name.
                          Shapes are texlinear(f32, 100) for tex1Dfetch, tex1d, tex2d, tex3d, and texa1d and texa2d with
                          the number of layers last; texels have 1, 2 or 4 numbers (u8x4). Options: wrap, clamp (the
                          default), mirror or border; normalized for normalized coordinates; floats for values up to 1
  surf2d(f32, 64x32)=0    a surface, likewise: surf1d, surf2d, surf3d, surfa1d, surfa2d
Fills:
  0    1,2,3              one number for all elements, or one for each
  random  random:-1..1    from 0 up to 1, for integers from 0 up to 100; or between two numbers; the same in every run
  index  index*4%7+1      the number of the element, and operations on it, from left to right
  @file                   the bytes of a file
Example:
  simt run saxpy.ptx --grid 4 --block 256 --arg u32=1000 --arg f32=2 --arg x:f32[1000]=random --arg y:f32[1000]=0 --print y:8";

/// A name, and what follows its `=`.
pub type Named = (String, String);

fn named(text: &str) -> Result<Named, String> {
    let (name, value) = text.split_once('=').ok_or("it has no `=`")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn print(text: &str) -> Result<(String, Option<usize>), String> {
    let Some((name, count)) = text.rsplit_once(':') else { return Ok((text.to_owned(), None)) };
    let count = count.parse().map_err(|_| format!("`{count}` is not a number of elements"))?;
    Ok((name.to_owned(), Some(count)))
}

/// `NAME:TYPE[COUNT]=FILL`, or `NAME:TYPE=FILL` for one number.
#[derive(Debug, Clone)]
pub struct Variable {
    pub name: String,
    pub ty: Type,
    pub count: usize,
    pub fill: String,
}

fn variable(text: &str) -> Result<Variable, String> {
    let (name, rest) = text.split_once(':').ok_or("it has no `:`")?;
    let (typed, fill) = rest.split_once('=').unwrap_or((rest, "unwritten"));
    let (ty, count) = array(typed, '[', ']')?;
    Ok(Variable { name: name.to_owned(), ty, count, fill: fill.to_owned() })
}

/// `4`, `4,2`, `4,2,1`
fn extent(text: &str) -> Result<[u32; 3], String> {
    let mut extent = [1; 3];
    let parts: Vec<_> = text.split(',').collect();
    if parts.len() > 3 {
        return Err(format!("{} numbers for three axes", parts.len()));
    }
    for (axis, part) in extent.iter_mut().zip(parts) {
        let wrong = |_| format!("`{part}` is not a number of blocks or threads");
        *axis = part.trim().parse().map_err(wrong)?;
    }
    Ok(extent)
}

fn range(text: &str) -> Result<Range<u64>, String> {
    let number = |text: &str| text.trim().parse().ok();
    let range = text.split_once("..").and_then(|(first, end)| Some(number(first)?..number(end)?));
    range.ok_or_else(|| format!("`{text}` is not a range such as 0..4"))
}
