//! Findings of the emulator, each as a sentence.

use std::fmt;
use std::sync::Arc;

use crate::isa::Kernel;

/// A finding: the mistake of a kernel, the threads that made it, and the place in the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The kind of mistake.
    pub kind: ReportKind,
    /// The kernel's name.
    pub kernel: String,
    /// The block's index in the grid.
    pub block: [u32; 3],
    /// The warp's number in its block.
    pub warp: u32,
    /// The lanes of the warp that are concerned, lane 0 in the lowest bit.
    pub lanes: u32,
    /// The line of the PTX, from 1; 0 if no instruction is concerned.
    pub line: u32,
    /// The file and line that the instruction was compiled from, if the PTX has them.
    pub source: Option<(Arc<str>, u32)>,
    /// The mistake, as the rest of a sentence.
    pub message: String,
}

/// The kinds of mistakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReportKind {
    /// An access outside of every buffer, or past the end of shared or local memory.
    OutOfBounds,
    /// An address that is not a multiple of the access's size.
    Misaligned,
    /// A write to constant memory, or to a parameter.
    ReadOnly,
    /// A read of memory that nothing has written.
    Uninitialized,
    /// Two accesses to one place, at least one of them a write, that nothing orders.
    Race,
    /// A barrier that some threads never reach although they have not exited, or a wrong use of an
    /// mbarrier.
    Barrier,
    /// A shuffle, vote or warp barrier whose mask does not name the lanes that execute it, or names
    /// lanes that do something else. (It may name lanes that have exited.) Or a product of matrices
    /// that not all lanes of a warp execute.
    Shuffle,
    /// All blocks wait for something that none of them will do.
    NoProgress,
    /// The launch has executed all instructions of its bound
    /// ([`Launch::instructions`](crate::Launch)) and has not ended.
    Instructions,
    /// The emulator needs more memory of the host than the launch may use
    /// ([`Launch::host_bytes`](crate::Launch)).
    HostBytes,
    /// The caller cancelled the launch ([`Launch::cancel`](crate::Launch)).
    Cancelled,
    /// The launch touched more memory than the device may take from its host, or the host has.
    OutOfMemory,
    /// A handle that does not name a texture or surface, or a use that does not fit what it names.
    Texture,
    /// A call through a pointer that does not point to a function, a call with wrong arguments or
    /// results, or calls that are nested too deeply.
    Call,
    /// An `assert` of the kernel failed.
    Assert,
    /// The kernel executed `trap`.
    Trap,
    /// The launch itself is wrong: arguments, block size, shared memory.
    Launch,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kernel)?;
        if self.line == 0 {
            return write!(f, ": {}", self.message);
        }
        match &self.source {
            Some((file, line)) => write!(f, " at {file}:{line} (PTX line {})", self.line)?,
            None => write!(f, " at PTX line {}", self.line)?,
        }
        let [x, y, z] = self.block;
        if y == 0 && z == 0 {
            write!(f, ", block {x}")?;
        } else {
            write!(f, ", block ({x}, {y}, {z})")?;
        }
        write!(f, ", warp {}, {}: {}", self.warp, Lanes(self.lanes), self.message)
    }
}

impl std::error::Error for Report {}

impl Report {
    /// Returns a finding that concerns the launch and none of its instructions.
    pub(crate) fn launch(kernel: &Kernel, message: String) -> Report {
        Report {
            kind: ReportKind::Launch,
            kernel: kernel.name().to_string(),
            block: [0; 3],
            warp: 0,
            lanes: 0,
            line: 0,
            source: None,
            message,
        }
    }
}

/// A mask, displayed as the lanes that it names: `lane 3`, `lanes 0-15, 31`.
pub(crate) struct Lanes(pub(crate) u32);

impl fmt::Display for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.count_ones() == 1 { "lane " } else { "lanes " })?;
        if self.0 == 0 {
            return f.write_str("(none)");
        }
        let (mut rest, mut start, mut first) = (self.0, 0, true);
        while rest != 0 {
            start += rest.trailing_zeros();
            let run = (self.0 >> start).trailing_ones();
            if !first {
                f.write_str(", ")?;
            }
            first = false;
            match run {
                1 => write!(f, "{start}")?,
                _ => write!(f, "{start}-{}", start + run - 1)?,
            }
            start += run;
            rest = self.0.checked_shr(start).unwrap_or(0);
        }
        Ok(())
    }
}

/// A number of things, displayed with a plural s unless the number is 1: `1 byte`, `4 bytes`.
pub(crate) struct Count<N>(pub(crate) N, pub(crate) &'static str);

impl<N: fmt::Display + PartialEq + From<u8>> fmt::Display for Count<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.0 == N::from(1) { "" } else { "s" };
        write!(f, "{} {}{plural}", self.0, self.1)
    }
}

#[cfg(test)]
mod tests {
    use crate::report::finding::{Count, Lanes};

    #[test]
    fn one_is_singular() {
        assert_eq!(Count(1, "byte").to_string(), "1 byte");
        assert_eq!(Count(0, "thread").to_string(), "0 threads");
    }

    #[test]
    fn masks_are_written_as_ranges() {
        assert_eq!(Lanes(0b1000).to_string(), "lane 3");
        assert_eq!(Lanes(0x8000_ffff).to_string(), "lanes 0-15, 31");
        assert_eq!(Lanes(u32::MAX).to_string(), "lanes 0-31");
        assert_eq!(Lanes(0b10110).to_string(), "lanes 1-2, 4");
    }
}
