//! `linrec_ref.cu`: one thread per sequence.

use super::family::{Family, Parts, truth};
use crate::Direction;
use crate::kernels::{ElementType, Geometry, Pass};

/// The options of the reference kernel's launch, written as `ref:64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RefConfig {
    /// The threads of a block.
    pub threads: u32,
}

impl RefConfig {
    /// 64 threads in a block.
    pub const DEFAULT: RefConfig = RefConfig { threads: 64 };
}

impl Default for RefConfig {
    fn default() -> Self {
        RefConfig::DEFAULT
    }
}

impl Family for RefConfig {
    fn name() -> &'static str {
        "ref"
    }

    fn parse(parts: &mut Parts) -> Option<Self> {
        let [threads] = parts.sizes([RefConfig::DEFAULT.threads])?;
        Some(RefConfig { threads })
    }

    fn from_arguments(_: Pass, arguments: &[&str]) -> Option<Self> {
        let [reverse] = arguments else { return None };
        truth(reverse).map(|_| RefConfig::DEFAULT)
    }

    fn candidates(_element: ElementType) -> Vec<Self> {
        [32, 64, 128, 256, 512, 1024].map(|threads| RefConfig { threads }).into()
    }

    fn spelled(&self) -> String {
        self.threads.to_string()
    }

    fn compiled(&self) -> String {
        String::new()
    }

    fn arguments(&self, _: Pass, direction: Direction) -> Vec<String> {
        vec![(direction == Direction::Reverse).to_string()]
    }

    fn takes_direction(&self) -> bool {
        false
    }

    fn geometry(&self, _: ElementType, _: Pass, num_seqs: u64, _: u64) -> Geometry {
        let RefConfig { threads } = *self;
        let blocks = num_seqs.div_ceil(u64::from(threads.max(1)));
        Geometry { blocks, threads, shared_bytes: 0, shared_out: None }
    }

    fn tile(&self, _: ElementType) -> Option<u64> {
        None
    }

    fn is_worth(&self, _: ElementType, _: u64) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sequence_has_a_thread_and_no_block_is_idle() {
        let geometry = |threads, num_seqs| {
            RefConfig { threads }.geometry(ElementType::F32, Pass::Forward, num_seqs, 10)
        };
        for (num_seqs, threads, blocks) in [(0, 64, 0), (1, 64, 1), (64, 64, 1), (65, 64, 2)] {
            assert_eq!(geometry(threads, num_seqs).blocks, blocks);
        }
        assert_eq!(geometry(1, u64::MAX).blocks, u64::MAX);
        assert_eq!(geometry(0, 3).threads, 0);
    }
}
