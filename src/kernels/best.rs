//! The measured rule for the fastest kernel of a shape.
//!
//! `tour tune` measures kernels at many shapes and writes the fastest of each shape to a table,
//! which is part of this library. A query takes the kernel of the nearest measured shape that can
//! compute it. Distances are ratios of the numbers of sequences and of the lengths, and shapes
//! whose rows are not whole vectors, or other element types, are farther away. A kernel whose
//! blocks share sequences is only taken near shapes at which its family was measured. The tests at
//! the end of this file try the rule with a small table, and the whole table with shapes far beyond
//! it.

use std::sync::OnceLock;

use super::families::KernelChoice;
use super::{ElementType, Pass};
use crate::Error;

/// The measurements, as `tour tune` wrote them.
const MEASURED: &str = include_str!("tuned.csv");

/// A kernel that was among the fastest at a shape: a line of the measured rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tuned {
    /// The type of the elements.
    pub element: ElementType,
    /// The pass.
    pub pass: Pass,
    /// The number of sequences.
    pub num_seqs: u64,
    /// The length of the sequences.
    pub seq_len: u64,
    /// The kernel.
    pub choice: KernelChoice,
    /// The time, in milliseconds.
    pub ms: f64,
    /// The speed as a part of the roof's speed in the same rounds of measurements.
    pub ratio: f64,
}

impl Tuned {
    /// The columns of the rule.
    pub const HEADER: &'static str = "element,pass,num_seqs,seq_len,kernel,ms,ratio";

    /// Reads a rule: lines with the columns of [`Tuned::HEADER`].
    ///
    /// ```
    /// use linrec::kernels::Tuned;
    ///
    /// let csv = format!("{}\nf32,forward,13200,4096,wide:4x256:w,0.150,0.99\n", Tuned::HEADER);
    /// let rule = Tuned::read(&csv)?;
    /// assert_eq!(rule[0].choice.name(), "wide");
    /// assert_eq!(rule[0].to_csv(), "f32,forward,13200,4096,wide:4x256:w,0.150000,0.9900");
    /// # Ok::<(), linrec::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] with the line that cannot be read.
    pub fn read(csv: &str) -> Result<Vec<Tuned>, Error> {
        let mut lines = csv.lines();
        let header = lines.next().unwrap_or_default();
        if header != Tuned::HEADER {
            return Err(unreadable(header));
        }
        lines.map(|line| Tuned::from_line(line).ok_or_else(|| unreadable(line))).collect()
    }

    fn from_line(line: &str) -> Option<Tuned> {
        let cells: Vec<&str> = line.split(',').collect();
        let [element, pass, num_seqs, seq_len, kernel, ms, ratio] = cells[..] else { return None };
        Some(Tuned {
            element: element.parse().ok()?,
            pass: pass.parse().ok()?,
            num_seqs: num_seqs.parse().ok()?,
            seq_len: seq_len.parse().ok()?,
            choice: kernel.parse().ok()?,
            ms: ms.parse().ok()?,
            ratio: ratio.parse().ok()?,
        })
    }

    /// Returns the line of the rule, without its end.
    pub fn to_csv(&self) -> String {
        let Tuned { element, pass, num_seqs, seq_len, choice, ms, ratio } = self;
        format!("{element},{pass},{num_seqs},{seq_len},{choice},{ms:.6},{ratio:.4}")
    }

    /// Returns the rule that is part of this library, measured on an H200.
    pub fn measured() -> &'static [Tuned] {
        static RULE: OnceLock<Vec<Tuned>> = OnceLock::new();
        // A test reads it; without it, every choice would be the default.
        RULE.get_or_init(|| Tuned::read(MEASURED).unwrap_or_default())
    }
}

fn unreadable(line: &str) -> Error {
    let what = format!("the line `{line}`; its columns are {}", Tuned::HEADER);
    Error::Unsupported { engine: String::from("the measured rule"), what }
}

/// The case that a kernel is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Query {
    /// The type of the elements.
    pub element: ElementType,
    /// The pass.
    pub pass: Pass,
    /// The number of sequences.
    pub num_seqs: u64,
    /// The length of the sequences.
    pub seq_len: u64,
    /// True if every row begins and ends at a multiple of 16 bytes: the length is a multiple of a
    /// 16-byte vector, and all arrays begin at a multiple of 16 bytes.
    pub whole: bool,
    /// True if the PTX of the kernel must be part of this library. Other kernels may have to be
    /// compiled when they are loaded.
    pub shipped_only: bool,
}

impl KernelChoice {
    /// Returns the fastest kernel of the measured shape that is nearest to this one.
    ///
    /// The distance of two shapes is given by the ratios of numbers of sequences and of lengths. An
    /// element type that was not measured (or only far from the shape) uses the measurements of
    /// another type of the same size, or else of `f32` with rows of the same number of bytes. A
    /// kernel whose blocks share sequences is taken only if its family was measured with at least
    /// as many sequences that were at most twice as long. The rule was measured on an H200 and is a
    /// good guess elsewhere. A [`Recurrence`](crate::device::Recurrence) by the [fastest
    /// kernel](crate::device::Choice) uses it at every new shape.
    ///
    /// ```
    /// use linrec::kernels::{ElementType, KernelChoice, Pass, Query, shipped_as};
    ///
    /// let choice = KernelChoice::best(Query {
    ///     element: ElementType::F32,
    ///     pass: Pass::Forward,
    ///     num_seqs: 10_000,
    ///     seq_len: 1000,
    ///     whole: true,
    ///     shipped_only: true,
    /// });
    /// assert!(shipped_as(&choice.program(ElementType::F32)).is_some());
    /// ```
    pub fn best(query: Query) -> KernelChoice {
        KernelChoice::best_where(query, |_| true)
    }

    /// As [`KernelChoice::best`], among the kernels that `allowed` accepts.
    pub(crate) fn best_where(query: Query, allowed: impl Fn(KernelChoice) -> bool) -> KernelChoice {
        best_of(Tuned::measured(), query, allowed).unwrap_or_else(|| {
            // For every type a kernel is shipped that takes any rows. Later families are faster,
            // except for kernels whose blocks share rows, which are for few rows.
            let any = KernelChoice::shipped(query.element).filter(|choice| {
                let geometry = choice.geometry(query.element, query.pass, 1, 1);
                choice.max_len(query.element).is_none()
                    && choice.multiple_of(query.element) == 1
                    && geometry.shared_out.is_none()
            });
            any.last().unwrap_or_default()
        })
    }

    /// Returns the fastest kernel of one family, as [`KernelChoice::best`] does; `None` if no
    /// measured kernel of the family takes such rows.
    pub fn best_named(family: &str, query: Query) -> Option<KernelChoice> {
        best_of(Tuned::measured(), query, |choice| choice.name() == family)
    }
}

/// The distance of another element type, in factors of two of the shape.
const OTHER_ELEMENT: f64 = 8.0;

/// The weight of a kernel whose blocks share sequences. It takes a workspace, and a device that
/// holds all of its blocks at once, so it must be faster than the others and not only as fast.
const SHARED: f64 = 0.99;

fn best_of(
    rule: &[Tuned],
    wanted: Query,
    allowed: impl Fn(KernelChoice) -> bool,
) -> Option<KernelChoice> {
    let shipped: Vec<KernelChoice> = match wanted.shipped_only {
        true => KernelChoice::shipped(wanted.element).collect(),
        false => Vec::new(),
    };
    let takes = |choice: KernelChoice| {
        choice.takes(wanted.element, wanted.seq_len)
            && (wanted.whole || choice.multiple_of(wanted.element) == 1)
            && (!wanted.shipped_only || shipped.contains(&choice))
            && allowed(choice)
    };
    // For another type, the length of rows with the same number of bytes.
    let seq_len = |line: &Tuned| {
        let bytes = wanted.seq_len.saturating_mul(wanted.element.bytes() as u64);
        bytes / line.element.bytes() as u64
    };
    // Blocks that share rows are for few long rows. Some kernel of the family must have been
    // measured with at least as many rows, which were not much longer.
    let mut known: Vec<(&str, ElementType)> = rule
        .iter()
        .filter(|line| line.pass == wanted.pass && shares(line))
        .filter(|line| wanted.num_seqs <= line.num_seqs && seq_len(line) >= line.seq_len / 2)
        .map(family)
        .collect();
    known.dedup();
    let speaks = |line: &Tuned| {
        // A kernel of another type must be one that a tuner would try.
        let tried = || KernelChoice::candidates(line.choice.name(), wanted.element);
        !shares(line)
            || (known.contains(&family(line))
                && (line.element == wanted.element || tried().contains(&line.choice)))
    };
    let lines = || {
        let mine = rule.iter().filter(|line| line.pass == wanted.pass && takes(line.choice));
        mine.filter(|line| speaks(line))
    };
    let other = stand_in(wanted.element, |other| lines().any(|line| line.element == other));
    let distance = |line: &Tuned| {
        // Rows that begin anywhere and rows of whole vectors differ by a factor of two.
        let vector = 16 / line.element.bytes().min(16) as u64;
        let other = wanted.whole != line.seq_len.is_multiple_of(vector);
        octaves(line.num_seqs, wanted.num_seqs)
            + octaves(line.seq_len, seq_len(line))
            + f64::from(u8::from(other))
            + if line.element == wanted.element { 0.0 } else { OTHER_ELEMENT }
    };
    let speed = |line: &Tuned| line.ratio * if shares(line) { SHARED } else { 1.0 };
    // The nearest shape first, and the fastest of it.
    lines()
        .filter(|line| line.element == wanted.element || Some(line.element) == other)
        .map(|line| (distance(line), -speed(line), line.choice))
        .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)))
        .map(|(.., choice)| choice)
}

/// Returns whether the blocks of the line's kernel share sequences.
fn shares(line: &Tuned) -> bool {
    line.choice.geometry(line.element, line.pass, 1, 1).shared_out.is_some()
}

fn family(line: &Tuned) -> (&'static str, ElementType) {
    (line.choice.name(), line.element)
}

/// Returns the type whose measurements are used in place of the element's: a measured type of the
/// same size, or `f32`.
fn stand_in(element: ElementType, measured: impl Fn(ElementType) -> bool) -> Option<ElementType> {
    let alike = ElementType::ALL.into_iter().filter(|other| other.bytes() == element.bytes());
    let mut others = alike.chain([ElementType::F32]).filter(|&other| other != element);
    others.find(|&other| measured(other))
}

/// Returns the ratio of two numbers, in factors of two.
fn octaves(one: u64, other: u64) -> f64 {
    ((one.max(1) as f64).log2() - (other.max(1) as f64).log2()).abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::shipped_as;

    const RULE: &str = "element,pass,num_seqs,seq_len,kernel,ms,ratio
f32,forward,10000,16,rows:4x1x128:w,0.005,0.95
f32,forward,10000,16,rows:4x1x128,0.005,0.93
f32,forward,10000,16,ref:64,0.008,0.60
f32,forward,10000,4096,wide:4x256:w,0.15,0.99
f32,forward,10000,4096,wide:2x128,0.16,0.95
f32,forward,10000,4096,pipe:4x128:0,0.17,0.90
f32,forward,10000,4093,wide:1x512,0.15,0.98
f32,forward,1,4096,wide:2x1024:w,0.01,0.2
f32,forward,10000,1024,tile:4x256:0,0.05,0.999
f32,forward,10000,1024,wide:2x128,0.05,0.99
f32,backward,10000,4096,pipe:4x64:0,0.3,0.9
f64,forward,10000,512,wide:4x64,0.1,0.9
";

    const F32: ElementType = ElementType::F32;

    fn pick(element: ElementType, num_seqs: u64, seq_len: u64, whole: bool) -> String {
        let (pass, shipped_only) = (Pass::Forward, false);
        let wanted = Query { element, pass, num_seqs, seq_len, whole, shipped_only };
        best_of(&Tuned::read(RULE).unwrap(), wanted, |_| true).unwrap().to_string()
    }

    #[test]
    fn the_fastest_kernel_of_the_nearest_shape_is_taken() {
        assert_eq!(pick(F32, 13_200, 4096, true), "wide:4x256:w");
        assert_eq!(pick(F32, 13_200, 5000, true), "wide:4x256:w");
        assert_eq!(pick(F32, 13_200, 12, true), "rows:4x1x128:w");
        assert_eq!(pick(F32, 2, 4096, true), "wide:2x1024:w");
        assert_eq!(pick(F32, 13_200, 1 << 40, true), "wide:4x256:w");
        assert_eq!(pick(F32, 13_200, 0, true), "rows:4x1x128:w");
    }

    #[test]
    fn rows_that_begin_anywhere_use_measurements_of_such_rows() {
        assert_eq!(pick(F32, 13_200, 4093, false), "wide:1x512");
        // 4096 is nearer to 4095, but was measured with rows of whole vectors.
        assert_eq!(pick(F32, 13_200, 4095, false), "wide:1x512");
        // Short rows were measured as whole vectors only: the best kernel that takes any row.
        assert_eq!(pick(F32, 13_200, 15, false), "rows:4x1x128");
        // The caller claims whole vectors, but the length is not a multiple.
        assert_eq!(pick(F32, 13_200, 15, true), "rows:4x1x128");
    }

    #[test]
    fn the_kernel_takes_the_length() {
        assert_eq!(pick(F32, 13_200, 1024, true), "tile:4x256:0");
        assert_eq!(pick(F32, 13_200, 1028, true), "wide:2x128");
        // Four lanes with a vector each hold 16 steps.
        assert_eq!(pick(F32, 13_200, 20, true), "ref:64");
    }

    #[test]
    fn types_stand_in_for_each_other() {
        assert_eq!(pick(ElementType::F64, 13_200, 16, true), "wide:4x64");
        assert_eq!(pick(ElementType::Complex64, 13_200, 512, true), "wide:4x64");
        // Neither bf16 nor f16 was measured: rows of as many bytes in f32.
        assert_eq!(pick(ElementType::Bf16, 13_200, 32, true), "rows:4x1x128:w");
        assert_eq!(pick(ElementType::Complex128, 13_200, 1024, true), "wide:4x256:w");
    }

    #[test]
    fn passes_are_told_apart_and_what_is_not_allowed_is_left_out() {
        let rule = Tuned::read(RULE).unwrap();
        let wanted = Query {
            element: F32,
            pass: Pass::Backward,
            num_seqs: 10_000,
            seq_len: 16,
            whole: true,
            shipped_only: false,
        };
        assert_eq!(best_of(&rule, wanted, |_| true).unwrap().to_string(), "pipe:4x64:0");
        assert!(best_of(&rule, wanted, |choice| choice.name() == "wide").is_none());
        assert!(best_of(&[], wanted, |_| true).is_none());
    }

    #[test]
    fn the_measured_rule_can_be_read_and_covers_both_passes() {
        let rule = Tuned::read(MEASURED).unwrap();
        for pass in Pass::ALL {
            assert!(rule.iter().any(|line| line.element == F32 && line.pass == pass));
        }
        for line in &rule {
            assert!(
                line.choice.max_len(line.element).is_none_or(|most| line.seq_len <= most),
                "{line:?}"
            );
            assert_eq!(line.seq_len % line.choice.multiple_of(line.element), 0, "{line:?}");
            assert!(line.ms > 0.0 && line.ratio > 0.0, "{line:?}");
            assert_eq!(Tuned::from_line(&line.to_csv()).map(|read| read.choice), Some(line.choice));
        }
    }

    #[test]
    fn what_shares_sequences_speaks_for_few_and_long_ones_only() {
        let rule = Tuned::read(&format!(
            "{}\nf32,forward,16,65536,waves:4x288,1,0.9\nf32,forward,16,65536,wide:2x128,1,0.5\n\
             f32,forward,9000,65536,waves:2x288,1,0.981\nf32,forward,9000,65536,wide:4x256,1,0.98\n",
            Tuned::HEADER
        ));
        let rule = rule.unwrap();
        let pick = |element, num_seqs, seq_len| {
            let (pass, whole, shipped_only) = (Pass::Forward, true, false);
            let wanted = Query { element, pass, num_seqs, seq_len, whole, shipped_only };
            best_of(&rule, wanted, |_| true).unwrap().to_string()
        };
        assert_eq!(pick(F32, 16, 65_536), "waves:4x288");
        assert_eq!(pick(F32, 17, 65_536), "waves:4x288");
        assert_eq!(pick(F32, 1, 1 << 30), "waves:4x288");
        assert_eq!(pick(F32, 16, 1 << 15), "waves:4x288");
        // More rows, or too short ones.
        assert_eq!(pick(F32, 9001, 65_536), "wide:4x256");
        assert_eq!(pick(F32, 16, (1 << 15) - 4), "wide:2x128");
        // It must be more than slightly faster.
        assert_eq!(pick(F32, 9000, 65_536), "wide:4x256");
        // Rows of the same number of bytes.
        assert_eq!(pick(ElementType::Bf16, 16, 131_072), "waves:4x288");
        assert_eq!(pick(ElementType::Complex128, 16, 1 << 13), "waves:4x288");
        assert_eq!(pick(ElementType::Bf16, 16, 32_768), "wide:2x128");
    }

    #[test]
    fn shapes_far_from_all_of_a_type_are_taken_from_another() {
        let rule = Tuned::read(&format!(
            "{}\nf32,forward,16,1048576,waves:4x288,1,0.9\ncomplex128,forward,13200,16,rows:8x2x32,1,0.9\n\
             complex128,forward,13200,65536,wide:2x128,1,0.9\n",
            Tuned::HEADER
        ));
        let rule = rule.unwrap();
        let choice = |num_seqs, seq_len| {
            let (element, pass) = (ElementType::Complex128, Pass::Forward);
            let (whole, shipped_only) = (true, false);
            let wanted = Query { element, pass, num_seqs, seq_len, whole, shipped_only };
            best_of(&rule, wanted, |_| true).unwrap().name()
        };
        // This type was measured only with many rows.
        assert_eq!((choice(1, 1 << 22), choice(16, 1 << 20)), ("waves", "waves"));
        assert_eq!((choice(13_200, 16), choice(13_200, 1 << 16)), ("rows", "wide"));
    }

    /// Numbers of rows and lengths, close together and far beyond the measurements.
    fn grid() -> impl Iterator<Item = (u64, u64)> {
        let rows = (1..=300).step_by(13).chain([2, 4, 16, 66, 132, 264, 265, 300, 1000, 13_200]);
        let lengths = (4..=30).flat_map(|log| [1 << log, (1 << log) * 5 / 4, (1 << log) - 1]);
        rows.flat_map(move |rows| lengths.clone().map(move |len| (rows, len)))
    }

    #[test]
    fn nearly_the_fastest_of_the_nearest_shape_is_picked_everywhere() {
        let rule = Tuned::measured();
        let types = [ElementType::F32, ElementType::Bf16];
        for (element, pass) in types.into_iter().flat_map(|of| Pass::ALL.map(|pass| (of, pass))) {
            let lines = || rule.iter().filter(|line| (line.element, line.pass) == (element, pass));
            let shared = |name: &str| matches!(name, "waves" | "once");
            // The most rows that a family was measured with, if they were not much longer.
            let most = |name: &str, seq_len: u64| {
                let mine = lines().filter(|line| line.choice.name() == name);
                let long = mine.filter(|line| seq_len >= line.seq_len / 2);
                long.map(|line| line.num_seqs).max().unwrap_or(0)
            };
            for (num_seqs, seq_len) in grid() {
                let whole = seq_len.is_multiple_of(16 / element.bytes() as u64);
                let query = Query { element, pass, num_seqs, seq_len, whole, shipped_only: false };
                let choice = KernelChoice::best(query);
                assert!(choice.takes(element, seq_len), "{query:?}: {choice}");
                let fits = |name: &str| !shared(name) || num_seqs <= most(name, seq_len);
                assert!(fits(choice.name()), "{query:?}: {choice}");
                // A block for each of a few long rows leaves most of the GPU idle.
                let is_idle = num_seqs <= 40 && seq_len >= 1 << 18;
                assert!(!is_idle || shared(choice.name()), "{query:?}: {choice}");
                let far = |line: &Tuned| {
                    let same = line.seq_len.is_multiple_of(16 / element.bytes() as u64) == whole;
                    octaves(line.num_seqs, num_seqs)
                        + octaves(line.seq_len, seq_len)
                        + f64::from(u8::from(!same))
                };
                let fitting: Vec<_> =
                    ["waves", "once"].into_iter().filter(|name| fits(name)).collect();
                let takes = |line: &&Tuned| {
                    let (name, multiple) = (line.choice.name(), line.choice.multiple_of(element));
                    line.choice.takes(element, seq_len)
                        && (whole || multiple == 1)
                        && (!shared(name) || fitting.contains(&name))
                };
                let nearest = lines().filter(takes).map(far).fold(f64::INFINITY, f64::min);
                let here = || lines().filter(takes).filter(|line| far(line) <= nearest);
                let best = here().map(|line| line.ratio).fold(0.0, f64::max);
                let picked = here().filter(|line| line.choice == choice);
                let ratio = picked.map(|line| line.ratio).fold(0.0, f64::max);
                assert!(ratio >= 0.9 * best, "{query:?}: {choice} has {ratio} of {best}");
            }
        }
    }

    #[test]
    fn every_type_and_shape_has_a_kernel_that_takes_it() {
        for element in ElementType::ALL {
            for (num_seqs, seq_len) in [(0, 0), (1, 1), (1, 1 << 30), (13_200, 4093), (1 << 30, 3)]
            {
                for (whole, shipped_only) in
                    [(false, false), (false, true), (true, false), (true, true)]
                {
                    for pass in Pass::ALL {
                        let query = Query { element, pass, num_seqs, seq_len, whole, shipped_only };
                        let choice = KernelChoice::best(query);
                        assert!(choice.takes(element, seq_len), "{query:?}: {choice}");
                        assert!(whole || choice.multiple_of(element) == 1, "{query:?}: {choice}");
                        let is_shipped = shipped_as(&choice.program(element)).is_some();
                        assert!(!shipped_only || is_shipped, "{element}: {choice}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named() {
        let error = Tuned::read("a,b\n").unwrap_err().to_string();
        assert!(error.contains("`a,b`") && error.contains("num_seqs"), "{error}");
        let cut = &RULE[..RULE.len() - 20];
        let error = Tuned::read(cut).unwrap_err().to_string();
        assert!(error.contains("`f64,forward,"), "{error}");
    }
}
