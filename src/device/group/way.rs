//! The ways in which ranks find the states before their stretches of sequences that are cut, and a
//! model of the time that each takes.

use std::fmt;

use super::mail::has_blocks_of_their_own;
use super::split::{Cutting, Usual};
use crate::device::Shape;

/// The most steps in which one block looks for the tail of a stretch, while all others wait.
const LONGEST_LOOK: usize = 1 << 16;
/// The steps of a tail that one block looks at in a second: 65,536 in some 30 microseconds on an
/// H100 (`chapters/17-several-gpus/results/h100/group.csv.gz`: one row of ones took two of them
/// 4.23 ms, and one, without a look, 4.20).
const LOOKED_AT_IN_A_SECOND: f64 = 2e9;

/// Returns the number of steps at the end of a stretch in which a tail by mail is looked for.
fn look(stretch_len: usize) -> usize {
    (stretch_len / 4).min(LONGEST_LOOK)
}

/// A way in which ranks find the states before their stretches of sequences that are cut
/// ([`Split::Steps`](super::Split::Steps)).
///
/// Each is right for any coefficients. The fastest way depends on them, on the shape, and on the
/// time of messages: [`Way::expected`] has a model of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Way {
    /// Every rank reads its stretches twice: for the transitions of its pieces, which all ranks
    /// exchange in one all-gather, and then for the outputs. Results depend on the number of
    /// pieces, and, up to 8 ranks, not on the number of ranks.
    #[default]
    Passes,
    /// As [`Way::Passes`], but states go by mail from each rank to the next, as with
    /// [`Way::Mailboxes`], and no host acts between the two passes. Results have the same bits.
    PassesByMail,
    /// As [`Way::Passes`], but the first pass, which reads each piece from its end to its
    /// beginning, stops where the product of the coefficients behind has become zero. It then costs
    /// next to nothing if coefficients fade. Numbers before such a place that are not finite do not
    /// reach the ranks behind.
    TailFirst,
    /// Every stretch is read once. Sequences are dealt to groups. For each group in turn a rank
    /// receives the states from the rank before it, computes, and sends the states behind to the
    /// next. Ranks at the end begin late, and each group costs messages. Results depend on the
    /// number of ranks.
    Pipeline {
        /// The number of groups, from 1 to the number of sequences.
        groups: usize,
    },
    /// Every stretch is read once. A rank takes the state of each sequence from a mailbox in its
    /// device's memory, and puts the state behind into a mailbox of the next rank. Ranks are on
    /// GPUs of one host that reach each other's memory, in one program or in processes (on Linux,
    /// by CUDA's handles of memory; a recurrence's mailboxes, 16 bytes for each sequence of `f32`,
    /// then stay until the process ends), or on one emulated device
    /// ([`Group::through_host`](super::Group::through_host)), where their launches take turns. If a
    /// mailbox cannot be reached, all ranks get [`Error::Unsupported`](crate::Error::Unsupported)
    /// before anything is launched. Results depend on the number of ranks.
    ///
    /// If there are 2640 short sequences or more, each has one block on each rank. Otherwise all
    /// blocks of a rank share each sequence, one after the other
    /// ([`KernelChoice::Waves`](crate::kernels::KernelChoice::Waves)).
    ///
    /// A block that waits for some ten seconds ends its kernel with an error, so that a stretch has
    /// to take less time than that.
    Mailboxes,
    /// As [`Way::Mailboxes`], and before it a look from the end of each stretch, as in
    /// [`Way::TailFirst`]: over a quarter of the stretch, and 65,536 steps at most. If coefficients
    /// fade, the next rank has its state before this one has begun, and ranks compute at the same
    /// time, even a single sequence. If they do not fade, the look finds nothing, and the next rank
    /// gets its state by mail when the stretch is done. Numbers before such a place that are not
    /// finite do not reach the ranks behind.
    TailByMail,
}

/// `passes`, `passes by mail`, `tail first`, `pipeline of 12`, `mailboxes`, `tail by mail`.
impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Way::Passes => f.pad("passes"),
            Way::PassesByMail => f.pad("passes by mail"),
            Way::TailFirst => f.pad("tail first"),
            Way::Pipeline { groups } => write!(f, "pipeline of {groups}"),
            Way::Mailboxes => f.pad("mailboxes"),
            Way::TailByMail => f.pad("tail by mail"),
        }
    }
}

/// The times of messages and of a device's memory, for [`Way::expected`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Links {
    /// The seconds from one rank's call that sends a few bytes to the moment when the other rank
    /// has them.
    pub message: f64,
    /// The seconds that an all-gather of a few bytes takes.
    pub all_gather: f64,
    /// The bytes that a link moves in a second.
    pub link: f64,
    /// The bytes that a device's memory moves in a second.
    pub memory: f64,
    /// The seconds after which a kernel's store into another device's memory is visible there.
    pub store: f64,
    /// The number of sequences that a device works on at a time, with a block for each.
    pub at_a_time: usize,
    /// True if ranks are on GPUs of one host that reach each other's memory, so that states can go
    /// [by mail](Way::is_by_mail).
    pub peers: bool,
}

impl Links {
    /// H200s in one host with NCCL: 5.8 µs for 8 bytes from one to the next, 12.7 µs for an
    /// all-gather of 16 bytes in each of 13,200 rows, 257 GB/s for 64 MiB, a memory of 4335 GB/s, a
    /// store that is visible after 0.79 µs, and 132 SMs. The numbers were measured in November 2026
    /// on four GPUs, by programs for this purpose and not by this library, in which ranks also
    /// compare their calls through the host and wait for each message.
    pub const H200: Links = Links {
        message: 5.8e-6,
        all_gather: 12.7e-6,
        link: 257e9,
        memory: 4335e9,
        store: 0.79e-6,
        at_a_time: 132,
        peers: true,
    };
}

impl Way {
    /// Returns the number of steps at the end of a piece in which a tail is looked for.
    pub(super) fn tail(self, cutting: Cutting) -> usize {
        match self {
            Way::TailFirst => cutting.piece_len,
            Way::TailByMail => look(cutting.piece_len),
            _ => 0,
        }
    }

    /// True if each stretch is read once, so that it is one piece.
    pub(super) fn reads_once(self) -> bool {
        matches!(self, Way::Pipeline { .. } | Way::Mailboxes | Way::TailByMail)
    }

    /// True if states go by mail, so that ranks have to reach each other's memory.
    pub fn is_by_mail(self) -> bool {
        matches!(self, Way::PassesByMail | Way::Mailboxes | Way::TailByMail)
    }

    /// Returns the expected seconds of a forward pass by this way, for all sequences of a shape
    /// over `ranks` ranks, with elements of `bytes` bytes and coefficients that do not fade.
    ///
    /// A pass that moves `n` bytes takes `n / memory`. Two passes move five thirds of the bytes of
    /// one. Their first pass has a block for each piece, which may be too few blocks if a
    /// sequence's length cannot be divided. Then ranks exchange two numbers for each piece, here of
    /// one piece for each sequence; by mail each rank sends one state to the next instead. In a
    /// pipeline the last rank begins when the first group has gone through all others, and each
    /// group of each rank costs two messages. With mailboxes the last rank begins when the
    /// sequences that a device works on at a time have gone through the others: one sequence if
    /// there are few, and as many as there are blocks if there are many. For tails by mail a block
    /// for each sequence first looks for the tail, tile after tile. The estimate is for sequences
    /// that have none.
    pub fn expected(
        self,
        shape: impl Into<Shape>,
        bytes: usize,
        ranks: usize,
        links: Links,
    ) -> f64 {
        let shape @ Shape { num_seqs, seq_len } = shape.into();
        let (rows, others) = (num_seqs as f64, ranks.saturating_sub(1) as f64);
        let once = 3.0 * rows * seq_len as f64 * bytes as f64 / ranks.max(1) as f64 / links.memory;
        let exchange = 2.0 * rows * bytes as f64 * others / links.link;
        let gather = if ranks > 1 { links.all_gather + exchange } else { 0.0 };
        // The first of two passes; with two blocks on each SM it is as fast as memory.
        let first = || {
            let cutting = Cutting::new(shape, ranks, None, Usual::of(self, bytes));
            let blocks = num_seqs * cutting.map_or(1, |cutting| cutting.per_row);
            once * 2.0 / 3.0 * (2.0 * links.at_a_time as f64 / blocks.max(1) as f64).max(1.0)
        };
        match self {
            _ if ranks <= 1 => once,
            Way::Passes | Way::TailFirst => first() + once + gather,
            Way::PassesByMail => first() + once + others * links.store,
            Way::Pipeline { groups } => {
                let groups = groups.clamp(1, num_seqs.max(1)) as f64;
                let message = 2.0 * links.message + rows / groups * bytes as f64 / links.link;
                (groups + others) * (once / groups + message)
            }
            Way::Mailboxes | Way::TailByMail => {
                let looked_at = if self == Way::TailByMail { look(seq_len / ranks) } else { 0 };
                let in_vain = 2.0 * rows * looked_at as f64 * bytes as f64 / links.memory;
                // However few blocks there are, each loads one tile after the other.
                let look = in_vain.max(looked_at as f64 / LOOKED_AT_IN_A_SECOND);
                let of_their_own = has_blocks_of_their_own(num_seqs, seq_len / ranks);
                let at_a_time = if of_their_own { links.at_a_time.max(1) } else { 1 };
                let begin = once / num_seqs.div_ceil(at_a_time).max(1) as f64;
                look + once + others * (begin + links.store)
            }
        }
    }

    /// Returns the pipeline with the number of groups that is expected to be the fastest. More
    /// groups hide the late beginning of the last ranks, and cost messages.
    pub fn pipeline(shape: impl Into<Shape>, bytes: usize, ranks: usize, links: Links) -> Way {
        let shape = shape.into();
        let once = Way::Passes.expected(shape, bytes, 1, links) / ranks.max(1) as f64;
        let others = ranks.saturating_sub(1) as f64;
        let best = (others * once / (2.0 * links.message)).sqrt().round();
        // NaN becomes 0.
        Way::Pipeline { groups: (best as usize).clamp(1, shape.num_seqs.max(1)) }
    }

    /// Returns the way that is expected to be the fastest for any coefficients. If coefficients are
    /// known to fade, use [`Way::TailByMail`], or [`Way::TailFirst`] without mail.
    ///
    /// A pipeline is for many sequences: in each of its groups there must be as many as a device
    /// works on at a time. With 264 sequences on two H200s, the gradient in a pipeline took eight
    /// times as long as in two passes, since a block works on each sequence.
    ///
    /// ```
    /// use linrec::device::{Links, Way};
    ///
    /// // Many long rows are read once: by mailboxes, or in a pipeline without them. Over 64 GPUs
    /// // a pipeline would begin late.
    /// let shape = (13_200, 65_536);
    /// assert_eq!(Way::fastest(shape, 4, 2, Links::H200), Way::Mailboxes);
    /// let between_hosts = Links { peers: false, ..Links::H200 };
    /// assert!(matches!(Way::fastest(shape, 4, 2, between_hosts), Way::Pipeline { .. }));
    /// assert_eq!(Way::fastest(shape, 4, 64, between_hosts), Way::Passes);
    /// // All blocks share each of few rows. With mailboxes a single row would be on one device at
    /// // a time.
    /// assert_eq!(Way::fastest((16, 1 << 26), 4, 4, Links::H200), Way::Mailboxes);
    /// assert_eq!(Way::fastest((1, 1 << 30), 4, 4, Links::H200), Way::PassesByMail);
    /// // An odd length would leave two passes one block on each device: avoid such lengths.
    /// assert_eq!(Way::fastest((1, (1 << 30) + 1), 4, 4, Links::H200), Way::Mailboxes);
    /// ```
    pub fn fastest(shape: impl Into<Shape>, bytes: usize, ranks: usize, links: Links) -> Way {
        let shape = shape.into();
        let busy = links.at_a_time.max(1);
        let mut ways = vec![Way::Passes];
        let pipeline = Way::pipeline(shape, bytes, ranks, links);
        let groups = if let Way::Pipeline { groups } = pipeline { groups } else { 1 };
        ways.extend((shape.num_seqs / groups >= busy).then_some(pipeline));
        ways.extend([Way::PassesByMail, Way::Mailboxes].into_iter().filter(|_| links.peers));
        let time = |way: &Way| way.expected(shape, bytes, ranks, links);
        ways.into_iter().min_by(|a, b| time(a).total_cmp(&time(b))).unwrap_or_default()
    }
}
