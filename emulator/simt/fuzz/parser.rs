//! The parser under test, its corpus, and mutations.
//!
//! [`parse`] asserts what must hold for any source: the parser does not panic, what it accepts is
//! no larger than the source, its errors are sentences with a line that exists, and the
//! declarations by themselves agree with the module. The mutations keep to the shape of PTX, which
//! leads further into a strict parser than random bytes do. The test `parser` of `simt-suite` runs
//! a fixed number of them, and the example `fuzz` of this package any number.

use std::path::Path;

use simt::{Declarations, Module, ParseError};

/// Parses a source, and asserts what must hold for every source. Returns whether all of its kernels
/// were accepted.
pub fn parse(bytes: &[u8]) -> bool {
    let Ok(source) = std::str::from_utf8(bytes) else { return false };
    let declarations = declarations(source);
    match Module::parse(source) {
        Ok(module) => {
            let kernels = module.kernels().count();
            let sum = |count: fn(&simt::Kernel) -> usize| -> usize {
                module.kernels().map(|kernel| count(kernel)).sum()
            };
            // An instruction has at least four bytes, and becomes at most four operations. A kernel
            // may lack an exit at its end, and contains a copy of each function that it calls.
            let linked = if source.contains("call") { 1 << 20 } else { 0 };
            assert!(sum(|kernel| kernel.instructions()) <= source.len() / 4 + kernels + linked);
            assert!(sum(|kernel| kernel.registers()) <= source.len() + linked);
            assert!(module.unrounded().len() <= source.len() / 8);
            let refused = module.refusals().count();
            module.refusals().for_each(|(_, error)| is_a_sentence(source, error));
            // A kernel may be refused because of its parameters.
            let Ok(declarations) = declarations else {
                assert!(refused > 0, "an accepted kernel has no declaration: {declarations:?}");
                return false;
            };
            let declared = declarations.entries().iter();
            let declared =
                declared.map(|entry| (entry.name(), entry.params(), entry.param_bytes()));
            let found = module
                .kernels()
                .map(|kernel| (kernel.name(), kernel.params(), kernel.param_bytes()));
            assert_eq!(declared.clone().count(), kernels + refused);
            let runs = |(name, ..): &(&str, _, _)| module.refusal(name).is_none();
            assert!(declared.filter(runs).eq(found), "{declarations:?}");
            refused == 0
        }
        Err(error) => {
            is_a_sentence(source, &error);
            false
        }
    }
}

/// Parses the declarations by themselves, and asserts what must hold for any.
fn declarations(source: &str) -> Result<Declarations, ParseError> {
    let declarations =
        Declarations::parse(source).inspect_err(|error| is_a_sentence(source, error))?;
    let entries = declarations.entries();
    let params = entries.iter().map(|entry| entry.params().len()).sum::<usize>();
    assert!(entries.len() <= source.len() / 8 && params <= source.len() / 8);
    for entry in entries {
        let mut end = 0;
        for param in entry.params() {
            assert!(param.offset >= end && param.align.is_power_of_two(), "{param:?}");
            assert!(param.offset.is_multiple_of(param.align) || param.bytes == 0, "{param:?}");
            end = param.offset + param.bytes;
        }
        assert!(entry.param_bytes() == end && end <= 32_764, "{entry:?}");
    }
    Ok(declarations)
}

fn is_a_sentence(source: &str, error: &ParseError) {
    let lines = source.bytes().filter(|&byte| byte == b'\n').count() + 1;
    assert!((1..=lines).contains(&(error.line as usize)), "line {}", error.line);
    assert!(!error.message.is_empty() && error.message.len() < 2000, "{}", error.message);
}

/// Returns the small sources that mutations begin with: parts of the kernels of every file of the
/// corpus.
pub fn corpus() -> Vec<String> {
    // The package of the emulator and the package of its tests both have `tests/data` above them.
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let folder = folders.map(|folder| folder.join("tests/data")).find(|data| data.is_dir());
    let folder = folder.expect("the corpus is in tests/data");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    // The files `tiles*` have nested blocks, which a part would cut.
    files.retain(|path| {
        path.extension().is_some_and(|extension| extension == "ptx")
            && !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("tiles"))
    });
    files.sort();
    let pieces = files.iter().flat_map(|path| pieces(&std::fs::read_to_string(path).unwrap()));
    pieces.chain([FUNCTIONS.to_string()]).collect()
}

/// A source with what the files of the corpus lack: variables with values, functions, and branches
/// by an index.
const FUNCTIONS: &str = ".version 8.0
.target sm_80
.address_size 64
.const .align 4 .f32 weights[2][2] = {{1.5, 0f40000000}, {-1.0}};
.func (.param .b32 out) walk(.param .b32 n, .reg .b64 at);
.visible .func (.param .b32 out) stroll(.param .b32 n, .reg .b64 at);
.visible .global .align 8 .u64 table[] = {weights, generic(weights)+4, walk};
.func (.param .b32 out) walk(.param .b32 n, .reg .b64 at)
.noreturn
{
.reg .b32 %r<5>; .reg .b64 %rd<5>; .reg .pred %p<3>;
.local .align 8 .b8 own[16];
.shared .b32 flag;
ld.param.u32 %r1, [n];
setp.eq.u32 %p1, %r1, 0;
@%p1 ret;
{
.param .b32 x;
.param .b32 y;
st.param.b32 [x+0], %r1;
mov.u64 %rd1, own;
call.uni (y), walk, (x, %rd1);
ld.param.b32 %r2, [y+0];
}
ld.shared.u32 %r3, [flag];
st.param.b32 [out+0], %r2;
ret;
}
.visible .entry calls(.param .align 8 .b8 p[16])
{
.reg .b32 %r<5>; .reg .b64 %rd<5>;
mov.u64 %rd1, p;
ld.param.u32 %r1, [%rd1+4];
ld.const.b32 %r1, [weights+8];
ld.global.u64 %rd2, [table+16];
prototype: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b64 _);
call (%r2), %rd2, (%r1, %rd1), prototype;
call (%r2), stroll, (%r1, %rd1);
list: .branchtargets once,
again;
brx.idx %r1, list;
once: add.u32 %r1, %r1, %r2;
again: ret;
}
.alias stroll, walk;
";

/// The number of lines in a part of a kernel.
const LINES: usize = 24;

fn pieces(source: &str) -> Vec<String> {
    let lines: Vec<&str> = source.lines().collect();
    let is_entry = |line: &&str| line.contains(".entry");
    let first = lines.iter().position(is_entry).unwrap_or(lines.len());
    let mut head = String::new();
    for line in &lines[..first] {
        // The variables that NVRTC declares and no kernel uses are left out.
        if !line.starts_with("//") && !line.contains("nv6target") && !line.is_empty() {
            head += line;
            head += "\n";
        }
    }
    let tail = if head.contains(".file") { "" } else { ".file 1 \"a.cu\"\n" };
    let mut pieces = vec![format!("{head}.visible .entry empty()\n{{\n}}\n")];
    let mut rest = &lines[first..];
    while let Some(end) = rest.iter().position(|&line| line == "}") {
        let begin = rest.iter().position(is_entry).unwrap_or(0).min(end);
        let kernel = &rest[begin..end];
        let last = kernel.iter().rposition(|line| is_declaration(line));
        let body = last.map_or(0, |last| last + 1);
        let declarations = kernel[..body].join("\n");
        for part in kernel[body..].chunks(LINES) {
            let part = part.join("\n");
            let labels = missing_labels(&declarations, &part);
            pieces.push(format!("{head}{declarations}\n{part}\n{labels}\n}}\n{tail}"));
        }
        rest = &rest[end + 1..];
    }
    pieces
}

/// Returns whether a line of a kernel declares registers or variables.
pub(super) fn is_declaration(line: &str) -> bool {
    [".reg", ".local", ".shared"].iter().any(|word| line.trim_start().starts_with(word))
}

/// Returns the labels that a part of a kernel branches to and does not have.
fn missing_labels(before: &str, part: &str) -> String {
    let mut labels: Vec<&str> = part
        .lines()
        .filter(|line| line.contains("bra"))
        .filter_map(|line| line.trim_end_matches(';').split_whitespace().last())
        .filter(|label| !format!("{before}\n{part}").contains(&format!("{label}:")))
        .collect();
    labels.sort();
    labels.dedup();
    labels.iter().map(|label| format!("{label}:\n")).collect()
}

/// A small and fast source of random numbers, the same on every machine: splitmix64 (Steele et al.,
/// 2014).
pub struct Random(pub u64);

impl Random {
    /// Draws the next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Draws a number below the limit, or 0 if the limit is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.draw() % limit.max(1) as u64) as usize
    }
}

/// Words at the edges of some rule of the language, with blanks between.
const WORDS: &str = "{ } [ ] ( ) < > ; : , | ! @ + - = . \" // /* */ % $ _ 0 -1 0x 0f \
    0d7FF0000000000000 0f3F800000 1e999 0x8 18446744073709551615 99999999999999999999 4294967296 \
    %r<1000000000> %r1 %p1 %rd1 %f1 WARP_SZ %tid.x é \0 \n ret; .param .ptr [WARP_SZ] .b128 .texref";
/// The same, for words that contain blanks.
const PHRASES: [&str; 4] =
    [".reg .b32 %r<3>;", ".entry k(", ".align 4096", ".align 8 .b8 p [4096]"];

fn word(random: &mut Random) -> &'static str {
    let mut words = WORDS.split(' ').chain(PHRASES);
    let count = words.clone().count();
    words.nth(random.below(count)).unwrap_or_default()
}

/// Changes a source in one, two, four or eight places.
pub fn mutate(seeds: &[String], random: &mut Random) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].clone().into_bytes();
    for _ in 0..1 << random.below(4) {
        mutate_once(&mut bytes, seeds, random);
    }
    bytes
}

fn mutate_once(bytes: &mut Vec<u8>, seeds: &[String], random: &mut Random) {
    if bytes.is_empty() {
        return;
    }
    let at = random.below(bytes.len());
    match random.below(12) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = random.draw() as u8,
        2 => drop(bytes.remove(at)),
        3 => bytes.truncate(at),
        4 => drop(bytes.splice(at..at, word(random).bytes())),
        5 => drop(bytes.splice(token(bytes, at), word(random).bytes())),
        6 => drop(bytes.drain(token(bytes, at))),
        7 => {
            // A token replaces another.
            let copied = bytes[token(bytes, random.below(bytes.len()))].to_vec();
            bytes.splice(token(bytes, at), copied);
        }
        8 => {
            // A token of another source replaces one.
            let other = seeds[random.below(seeds.len())].as_bytes();
            let copied = other[token(other, random.below(other.len()))].to_vec();
            bytes.splice(token(bytes, at), copied);
        }
        9 => {
            let copied = bytes[line(bytes, at)].to_vec();
            let place = line(bytes, random.below(bytes.len())).start;
            bytes.splice(place..place, copied);
        }
        10 => drop(bytes.drain(line(bytes, at))),
        _ => {
            let other = seeds[random.below(seeds.len())].as_bytes();
            let copied = other[line(other, random.below(other.len()))].to_vec();
            let place = line(bytes, at).start;
            bytes.splice(place..place, copied);
        }
    }
}

/// Returns the range of the word, or of the single other character, at a place.
fn token(bytes: &[u8], at: usize) -> std::ops::Range<usize> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'%' | b'$');
    if !is_word(&bytes[at]) {
        return at..at + 1;
    }
    let start = at - bytes[..at].iter().rev().take_while(|byte| is_word(byte)).count();
    start..at + bytes[at..].iter().take_while(|byte| is_word(byte)).count()
}

/// Returns the range of the line at a place, including its end.
fn line(bytes: &[u8], at: usize) -> std::ops::Range<usize> {
    let start = bytes[..at].iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let length = bytes[start..].iter().position(|&byte| byte == b'\n');
    start..length.map_or(bytes.len(), |length| start + length + 1)
}
