//! The ways in which ranks find the states before their stretches of sequences that are cut, and a
//! model of the time that each takes.

use std::fmt;

use super::split::{Cutting, Usual};
use crate::device::Shape;

/// The most steps in which one block looks for the tail of a stretch, while all others wait.
const LONGEST_LOOK: usize = 1 << 16;
/// The steps of a tail that one block looks at in a second: 65,536 in some 30 microseconds on an
/// H100 (`chapters/17-several-gpus/results/h100/group.csv.gz`: one row of ones took two of them
/// 4.23 ms, and one, without a look, 4.20).
const LOOKED_AT_IN_A_SECOND: f64 = 2e9;

/// The least number of sequences, and the most steps of each on a rank, for which each sequence has
/// one block. Otherwise all blocks of a rank share each sequence: the next rank then begins when
/// one sequence has gone through, instead of as many as there are blocks.
const MANY: usize = 20 * 132;
const LONG: usize = 1 << 18;

/// True if each sequence has one block on each rank, for this number of steps on a rank.
pub(super) fn has_blocks_of_their_own(num_seqs: usize, stretch_len: usize) -> bool {
    num_seqs >= MANY && stretch_len < LONG
}

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
    /// Every rank reads its stretches twice: for the transitions of its pieces, and then for the
    /// outputs. In between, states go by mail from each rank to the next, as with
    /// [`Way::Mailboxes`], if ranks reach each other's memory. Otherwise all ranks exchange their
    /// transitions in one all-gather. Results have the same bits in both cases. They depend on the
    /// number of pieces, and, up to 8 ranks, not on the number of ranks.
    #[default]
    Passes,
    /// As [`Way::Passes`] with an all-gather, but the first pass, which reads each piece from its
    /// end to its beginning, stops where the product of the coefficients behind has become zero. It
    /// then costs next to nothing if coefficients fade. Numbers before such a place that are not
    /// finite do not reach the ranks behind.
    TailFirst,
    /// Every stretch is read once. A rank takes the state of each sequence from a mailbox in its
    /// device's memory, and puts the state behind into a mailbox of the next rank. Ranks are on
    /// GPUs of one host that reach each other's memory, in one program or in processes (on Linux,
    /// by CUDA's handles of memory; a recurrence's mailboxes, 32 bytes for each sequence of `f32`,
    /// then stay until the process ends), or on one emulated device
    /// ([`Group::through_host`](super::Group::through_host)), where their launches take turns. If a
    /// mailbox cannot be reached, all ranks get [`Error::Unsupported`](crate::Error::Unsupported)
    /// before anything is launched. Results depend on the number of ranks.
    ///
    /// If there are 2640 short sequences or more, each has one block on each rank. Otherwise all
    /// blocks of a rank share each sequence, one after the other
    /// ([`KernelChoice::Waves`](crate::kernels::KernelChoice::Waves)).
    ///
    /// Other work on a device, in another stream or process, only makes a pass late. A block that
    /// waits for a state longer than the group's [deadline](super::Group::with_deadline) gives up:
    /// its launch goes on with NaN to its end, and so do the launches that wait for it. Every
    /// rank then gets an error, from one of its next 16 passes by mail or from the end of
    /// [`Group::run`](super::Group::run), and the devices stay usable. Groups in one program that
    /// share devices take turns. Groups of several processes cannot: if they share GPUs and queue
    /// their passes in different orders, they wait for each other until the deadline. Two ranks of
    /// one GPU are refused with [`Error::Unsupported`](crate::Error::Unsupported).
    Mailboxes,
    /// As [`Way::Mailboxes`], and before it a look from the end of each stretch, as in
    /// [`Way::TailFirst`]: over a quarter of the stretch, and 65,536 steps at most. If coefficients
    /// fade, the next rank has its state before this one has begun, and ranks compute at the same
    /// time, even a single sequence. If they do not fade, the look finds nothing, and the next rank
    /// gets its state by mail when the stretch is done. Numbers before such a place that are not
    /// finite do not reach the ranks behind.
    TailByMail,
}

/// `passes`, `tail first`, `mailboxes`, `tail by mail`.
impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Way::Passes => "passes",
            Way::TailFirst => "tail first",
            Way::Mailboxes => "mailboxes",
            Way::TailByMail => "tail by mail",
        })
    }
}

/// The times of messages and of a device's memory, for [`Way::expected`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Links {
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
    /// by mail.
    pub peers: bool,
}

impl Links {
    /// H200s in one host with NCCL: 12.7 µs for an all-gather of 16 bytes in each of 13,200 rows,
    /// 257 GB/s for 64 MiB, a memory of 4335 GB/s, a store that is visible after 0.79 µs, and 132
    /// SMs. The numbers were measured in November 2026 on four GPUs, by programs for this purpose
    /// and not by this library, in which ranks also compare their calls through the host and wait
    /// for each message.
    pub const H200: Links = Links {
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

    /// True if each stretch is read once, so that it is one piece. States then go by mail, so that
    /// ranks have to reach each other's memory.
    pub fn reads_once(self) -> bool {
        matches!(self, Way::Mailboxes | Way::TailByMail)
    }

    /// Returns the expected seconds of a forward pass by this way, for all sequences of a shape
    /// over `ranks` ranks, with elements of `bytes` bytes and coefficients that do not fade.
    ///
    /// A pass that moves `n` bytes takes `n / memory`. Two passes move five thirds of the bytes of
    /// one. Their first pass has a block for each piece, which may be too few blocks. Then ranks
    /// exchange two numbers for each piece, here of one piece for each sequence; by mail each rank
    /// sends one state to the next instead. With mailboxes the last rank begins when the sequences
    /// that a device works on at a time have gone through the others: one sequence if there are
    /// few, and as many as there are blocks if there are many. For tails by mail a block for each
    /// sequence first looks for the tail, tile after tile. The estimate is for sequences that have
    /// none.
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
            Way::Passes if links.peers => first() + once + others * links.store,
            Way::Passes | Way::TailFirst => first() + once + gather,
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

    /// Returns the way that is expected to be the fastest for any coefficients. If coefficients are
    /// known to fade, use [`Way::TailByMail`], or [`Way::TailFirst`] without mail.
    ///
    /// ```
    /// use linrec::device::{Links, Way};
    ///
    /// // Many long rows are read once where ranks reach each other's memory.
    /// let shape = (13_200, 65_536);
    /// assert_eq!(Way::fastest(shape, 4, 2, Links::H200), Way::Mailboxes);
    /// let between_hosts = Links { peers: false, ..Links::H200 };
    /// assert_eq!(Way::fastest(shape, 4, 2, between_hosts), Way::Passes);
    /// // All blocks share each of few rows. With mailboxes a single row would be on one device at
    /// // a time.
    /// assert_eq!(Way::fastest((16, 1 << 26), 4, 4, Links::H200), Way::Mailboxes);
    /// assert_eq!(Way::fastest((1, 1 << 30), 4, 4, Links::H200), Way::Passes);
    /// assert_eq!(Way::fastest((1, (1 << 30) + 1), 4, 4, Links::H200), Way::Passes);
    /// ```
    pub fn fastest(shape: impl Into<Shape>, bytes: usize, ranks: usize, links: Links) -> Way {
        let shape = shape.into();
        let time = |way: Way| way.expected(shape, bytes, ranks, links);
        match links.peers && time(Way::Mailboxes) < time(Way::Passes) {
            true => Way::Mailboxes,
            false => Way::Passes,
        }
    }
}
