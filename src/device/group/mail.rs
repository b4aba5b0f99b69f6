//! Rows that are cut into stretches, each read once: blocks take states from mailboxes of their
//! rank and put states into mailboxes of the next rank.
//!
//! A rank has a mailbox for each row in its own memory, which the others reach. The launches of all
//! ranks are in flight at the same time. Two sets of mailboxes alternate, so that the host may
//! queue a pass while the one before it is under way. If there are many rows, each has a block,
//! which waits for the mail of its row alone. If there are few, all blocks share one row after the
//! other by the waves kernels, which take the state before a row from its mail. The tests are
//! `tests/suite/group/recurrence.rs`, which hold every way to the contract.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use super::cut::{Call, Cut};
use super::rank::after;
use super::split::Cutting;
use super::turn::{self, Party, Turn, Work};
use super::way::{Way, has_blocks_of_their_own};
use super::{Group, Rank};
use crate::Error;
use crate::device::launch::Mail;
use crate::device::lock::lock;
use crate::device::recurrence::{CoScheduled, PassCall};
use crate::device::{
    BackwardOptions, Buffer, Choice, ForwardOptions, Launch, Launched, Recurrence, Shape, Storage,
    Stream,
};
use crate::kernels::KernelChoice;

/// The mailboxes of all ranks, as one rank has them.
#[derive(Debug, Default)]
pub(super) struct Boxes(Mutex<Option<All>>);

#[derive(Debug)]
struct All {
    rows: usize,
    /// The number of the last pass that used them.
    epoch: u32,
    all: Arc<OfRanks>,
}

/// The mailboxes of all ranks.
#[derive(Debug)]
struct OfRanks {
    arrays: Vec<Buffer<u8>>,
    party: Arc<Party>,
    home: Stream,
}

impl Drop for OfRanks {
    fn drop(&mut self) {
        let _turn = self.party.take_turn(Work::Other, &self.home, after(Group::DEADLINE));
        self.arrays.clear();
    }
}

/// The passes by mail that may be under way on a rank, at most two.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) party: Arc<Party>,
    passes: Mutex<VecDeque<Pass>>,
}

/// A pass by mail.
#[derive(Debug)]
struct Pass {
    /// The mailboxes of all ranks. A launch posts there even after the other rank has given up.
    all: Arc<OfRanks>,
    rows: usize,
    way: Way,
}

impl InFlight {
    pub(super) fn new(party: &Arc<Party>) -> Arc<InFlight> {
        Arc::new(InFlight { party: party.clone(), passes: Mutex::default() })
    }

    /// Waits until the mailboxes of the next pass are free on this rank, for `num_seqs` sequences
    /// and mailboxes with [this state](Boxes::state). Ranks call this before they agree on a pass.
    ///
    /// # Errors
    ///
    /// As for [`InFlight::settle`], which is called now and then.
    pub(super) fn make_room(
        &self,
        rank: &Rank,
        (rows, epoch): (usize, u32),
        num_seqs: usize,
    ) -> Result<(), Error> {
        // New mailboxes take the place of those that passes under way post to.
        match rows != num_seqs || (epoch / 2).is_multiple_of(SETTLED_EVERY) {
            true => self.settle(rank)?,
            false => turn::wait_for_the_one_before_the_last(rank.device())?,
        }
        // Not later, when another rank may be queueing: to free memory is work between passes.
        lock(&self.passes).truncate(1);
        Ok(())
    }

    /// Waits until the device is done, if there were passes by mail, and returns an error unless
    /// they got all mail.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if a block has waited until the deadline, or if the device fails.
    pub(super) fn settle(&self, rank: &Rank) -> Result<(), Error> {
        let passes = lock(&self.passes);
        if !passes.is_empty() {
            rank.device().synchronize()?;
        }
        for Pass { all, rows, way } in passes.iter() {
            if all.arrays[rank.number()].slice(..8)?.download()?.iter().any(|&byte| byte != 0) {
                return Err(rank.link.error(format!(
                    "a pass over {rows} sequences, {way}: a state of another rank did not come \
                     within {:?}, the group's deadline, or that rank has given up itself; results \
                     of this rank since then are not valid. The other rank's launch did not run in \
                     time: other work may hold its GPU, its process may have ended, or groups of \
                     several processes may share GPUs and queue their passes in different orders",
                    rank.deadline
                )));
            }
        }
        Ok(())
    }

    /// Notes a pass. All ranks have [made room](InFlight::make_room).
    fn note(&self, pass: Pass) {
        lock(&self.passes).push_front(pass);
    }
}

/// The number of passes after which a rank waits for its device, to see whether all mail came.
const SETTLED_EVERY: u32 = 16;

/// The bytes of `MailHead` of `kernels/mail.cuh`, before each set of mailboxes.
const HEAD: usize = 24;
/// The sets of a rank: for states and for last outputs, of passes that follow each other.
const SETS: usize = 4;

/// Makes the mailboxes of a rank, with `bytes` bytes in each set.
fn of_rank(rank: &Rank, bytes: usize) -> Result<Buffer<u8>, Error> {
    // A test has no time: there each instruction of the emulator counts as a nanosecond.
    let longest = if cfg!(test) { Duration::from_micros(50) } else { Duration::MAX };
    let most = u64::try_from(rank.deadline.min(longest).as_nanos()).unwrap_or(u64::MAX);
    let len = HEAD + bytes;
    let array = Buffer::for_peers(rank.device(), "mail", SETS * len)?;
    for set in 0..SETS {
        let to_next = ((set + 1) % SETS * len) as i64 - (set * len) as i64;
        let words = [[0; 8], most.to_le_bytes(), to_next.to_le_bytes()];
        array.slice(set * len..set * len + HEAD)?.upload(words.as_flattened())?;
    }
    Ok(array)
}

/// The rank that mail comes from, and the rank that it goes to.
type Ways = (Option<usize>, Option<usize>);

impl Boxes {
    /// The number of rows that have mailboxes, and the number of the last pass. Ranks compare both:
    /// after a rank has failed alone, its next pass would take the mail of another pass.
    pub(super) fn state(&self) -> (usize, u32) {
        lock(&self.0).as_ref().map_or((0, 0), |boxes| (boxes.rows, boxes.epoch))
    }

    /// Returns the mailboxes for a pass over `rows` rows with states of type `A`: one pair for the
    /// states from one neighbour and to the other, and one pair for the last outputs. All ranks
    /// call this with the same number and way, and have [made room](InFlight::make_room). The pass
    /// is queued on the stream before the turn is dropped.
    pub(super) fn take<A>(
        &self,
        (rank, stream): (&Rank, &Stream),
        rows: usize,
        way: Way,
        [states, lasts]: [Ways; 2],
    ) -> Result<([Mail; 2], Turn), Error> {
        // Less than the kernels' `kFailed`. At the last epoch ranks have settled.
        const LAST: u32 = !(2 * SETTLED_EVERY - 1);
        let mut boxes = lock(&self.0);
        let usable = boxes.take().filter(|boxes| boxes.rows == rows && boxes.epoch < LAST);
        let mut usable = match usable {
            Some(usable) => usable,
            None => {
                // `Mailbox` of `kernels/mail.cuh`: as many bytes for epochs as for the state.
                let box_bytes = 2 * size_of::<A>();
                let (party, home) = (rank.in_flight.party.clone(), rank.device().stream());
                let turn = party.take_turn(Work::Other, &home, rank.until())?;
                let arrays = rank.share(of_rank(rank, rows * box_bytes)?)?;
                drop(turn);
                All { rows, epoch: 0, all: Arc::new(OfRanks { arrays, party, home }) }
            }
        };
        // Odd where a state may be posted early: the kernels' `is_posted`.
        usable.epoch = (usable.epoch / 2 + 1) * 2 + u32::from(way == Way::TailByMail);
        let taken = [usable.of(rank, states, 0)?, usable.of(rank, lasts, 1)?];
        rank.in_flight.note(Pass { all: usable.all.clone(), rows, way });
        *boxes = Some(usable);
        Ok((taken, rank.in_flight.party.take_turn(Work::Pass, stream, rank.until())?))
    }
}

impl All {
    /// Returns the mailboxes of a kind, 0 or 1.
    fn of(&self, rank: &Rank, (before, behind): Ways, kind: usize) -> Result<Mail, Error> {
        let of = |rank: usize| {
            let all = &self.all.arrays[rank];
            let len = all.len() / SETS;
            let set = 2 * (self.epoch as usize / 2 % 2) + kind;
            all.slice(set * len + HEAD..(set + 1) * len)
        };
        Ok(Mail {
            from: before.map(|_| of(rank.number())).transpose()?,
            to: behind.map(of).transpose()?,
            epoch: self.epoch,
        })
    }
}

/// The waves kernels by which ranks share sequences, unless another kernel was named.
#[derive(Debug)]
pub(super) struct Shared<S>(OnceLock<Recurrence<S>>);

impl<S> Default for Shared<S> {
    fn default() -> Self {
        Shared(OnceLock::new())
    }
}

impl<S: Storage> Shared<S> {
    /// Returns the kernel by which all blocks share each sequence, if these sequences are computed
    /// so: the named kernel, or one by shape.
    fn of<'a>(
        &'a self,
        recurrence: &'a Recurrence<S>,
        cutting: Cutting,
    ) -> Result<Option<&'a Recurrence<S>>, Error> {
        let device = recurrence.device();
        // The emulator holds fewer blocks that wait.
        let of_their_own =
            has_blocks_of_their_own(cutting.whole.num_seqs, cutting.piece_len) && !device.is_simt();
        match recurrence.choice() {
            Choice::Kernel(kernel) => return Ok(kernel.takes_mail().then_some(recurrence)),
            _ if of_their_own || !device.attributes().cooperative => return Ok(None),
            _ => {}
        }
        if let Some(shared) = self.0.get() {
            return Ok(Some(shared));
        }
        let Some(kernel) = KernelChoice::shipped(S::ELEMENT).find(KernelChoice::takes_mail) else {
            return Ok(None);
        };
        let shared = Recurrence::new(device, kernel)?;
        Ok(Some(self.0.get_or_init(|| shared)))
    }
}

impl<A: Storage<Accum = A>> Call<'_, A> {
    /// Computes by a kernel whose blocks share each sequence, co-scheduled with the other ranks.
    fn share(
        &mut self,
        mail: &mut Mail,
        compute: impl FnOnce(Shape, CoScheduled) -> Result<Launched, Error>,
    ) -> Result<(), Error> {
        let run = |launch: Launch, stream: &Stream| self.rank.run_beside(launch, stream);
        let launched =
            compute(self.pieces, CoScheduled { mail, like: self.stretch(), queue: &run })?;
        self.launched = launched.and(&self.launched);
        Ok(())
    }

    /// Publishes to the next rank the state behind this rank's stretches, if their last `tail`
    /// steps determine it. For the gradient, the inputs are those of its recurrence, and there are
    /// outputs.
    fn tell_tails<S: Storage<Accum = A>>(
        &mut self,
        (inputs, coeffs, outputs): (&Buffer<S>, &Buffer<S>, Option<&Buffer<S>>),
        tail: usize,
        mail: &mut Mail,
    ) -> Result<(), Error> {
        let launch = self.each_piece(&self.kernels.ends).filter(|_| tail > 0);
        let launch = launch.map(|launch| launch.arg(inputs).arg(coeffs).arg(outputs));
        let nothing = || None::<&mut Buffer<A>>;
        let launch = launch.map(|launch| launch.arg(nothing()).arg(nothing()));
        self.run_with_mail(launch.map(|launch| launch.arg(tail as i64)), mail)
    }

    /// Runs a launch that takes mail over the stretches, co-scheduled with the other ranks'.
    fn run_with_mail(&mut self, launch: Option<Launch>, mail: &mut Mail) -> Result<(), Error> {
        self.run_beside(launch.map(|launch| launch.with_mail(mail)))
    }
}

impl<S: Storage> Cut<S> {
    /// Computes the outputs of this rank's stretch of each row, after a look over the last steps of
    /// each if the way looks.
    pub(super) fn forward_by_mail(
        &self,
        rank: &Rank,
        recurrence: &Recurrence<S>,
        (inputs, coeffs, outputs): (&Buffer<S>, &Buffer<S>, &mut Buffer<S>),
        (cutting, way): (Cutting, Way),
        options: ForwardOptions<S::Accum>,
    ) -> Result<Launched, Error> {
        let ForwardOptions { direction, initial, final_state, stream, .. } = options;
        let home = rank.device().stream();
        let stream = stream.unwrap_or(&home);
        let mut call = self.call(rank, cutting, direction, stream)?;
        let shared = self.shared.of(recurrence, cutting)?;
        let ([mut mail, _], _turn) = self.mail(&call, way, false)?;
        call.tell_tails((inputs, coeffs, None), way.tail(cutting), &mut mail)?;
        let mut last = final_state.is_some().then(|| call.room(1)).transpose()?;
        let initial = initial.filter(|_| mail.from.is_none());
        if let Some(shared) = shared {
            let options = ForwardOptions {
                direction,
                log_coeffs: false,
                initial,
                final_state: last.as_deref_mut(),
                stream: Some(stream),
            };
            call.share(&mut mail, |pieces, launches| {
                let pass = PassCall::forward([inputs, coeffs], [outputs], pieces, options);
                shared.compute_alongside(pass, launches)
            })?;
        } else {
            let launch = call.each_piece(&call.kernels.forward);
            let launch = launch.map(|launch| launch.arg(inputs).arg(coeffs).arg(outputs));
            let launch = launch.map(|launch| launch.arg(initial).arg(last.as_deref_mut()));
            call.run_with_mail(launch, &mut mail)?;
        }
        if let (Some(final_state), Some(last)) = (final_state, last) {
            call.tell_all(&last, final_state, direction)?;
        }
        Ok(call.launched)
    }

    /// Computes the gradients of this rank's stretch of each row, which flow the other way.
    pub(super) fn backward_by_mail(
        &self,
        rank: &Rank,
        recurrence: &Recurrence<S>,
        [d_outputs, coeffs, outputs]: [&Buffer<S>; 3],
        [d_inputs, d_coeffs]: [&mut Buffer<S>; 2],
        (cutting, way): (Cutting, Way),
        options: BackwardOptions<S::Accum>,
    ) -> Result<Launched, Error> {
        let BackwardOptions { direction, initial, d_initial, stream, .. } = options;
        let home = rank.device().stream();
        let stream = stream.unwrap_or(&home);
        let mut call = self.call(rank, cutting, direction, stream)?;
        let shared = self.shared.of(recurrence, cutting)?;
        let ([mut mail, mut lasts], _turn) = self.mail(&call, way, true)?;
        // First the work that waits for no other rank.
        call.tell_tails((d_outputs, coeffs, Some(outputs)), way.tail(cutting), &mut mail)?;
        let mut known = call.room(1)?;
        let launch = call.each_row(&call.kernels.previous);
        let initial = initial.filter(|_| lasts.from.is_none());
        let launch = launch.map(|launch| launch.arg(outputs).arg(initial).arg(&mut *known));
        let num_seqs = call.pieces.num_seqs as i64;
        call.run_with_mail(launch.map(|launch| launch.arg(num_seqs)), &mut lasts)?;
        let mut ends = d_initial.is_some().then(|| call.room(1)).transpose()?;
        if let Some(shared) = shared {
            let options = BackwardOptions {
                direction,
                log_coeffs: false,
                initial: Some(&*known),
                d_initial: ends.as_deref_mut(),
                stream: Some(stream),
            };
            let (inputs, results) = ([d_outputs, coeffs, outputs], [d_inputs, d_coeffs]);
            call.share(&mut mail, |pieces, launches| {
                let pass = PassCall::backward(inputs, results, pieces, options);
                shared.compute_alongside(pass, launches)
            })?;
        } else {
            let none: Option<&Buffer<S::Accum>> = None;
            let launch = call.each_piece(&call.kernels.backward_by_mail);
            let launch = launch.map(|launch| launch.arg(d_outputs).arg(coeffs).arg(outputs));
            let launch = launch.map(|launch| launch.arg(none).arg(&*known));
            let launch = launch.map(|launch| launch.arg(d_inputs).arg(d_coeffs));
            let launch = launch.map(|launch| launch.arg(ends.as_deref_mut()));
            call.run_with_mail(launch, &mut mail)?;
        }
        if let (Some(d_initial), Some(ends)) = (d_initial, ends) {
            call.tell_all(&ends, d_initial, direction.reversed())?;
        }
        Ok(call.launched)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Device, Group, GroupRecurrence, Split};
    use crate::{Direction, Error};

    /// Computes [3, 640] in reverse by mail. Rank 2, which is the first then, agrees and does not
    /// launch if it is `absent`. All inputs and coefficients are one.
    fn reverse(device: &Device, by: Choice, way: Way, absent: bool) -> Result<Vec<f32>, Error> {
        let (shape, direction) = ((3, 640), Direction::Reverse);
        let group = Group::through_host(&[device.clone(), device.clone(), device.clone()])?;
        let last = group.run(|rank| {
            let recurrence = GroupRecurrence::<f32>::by(rank, Split::Steps, by)?.with_way(way);
            if absent && rank.number() == 2 {
                let cutting = recurrence.cutting(shape.into())?.expect("it is cut");
                recurrence.agree("forward", cutting, direction, false, [false; 2])?;
                let home = (rank, &rank.device().stream());
                let ways = [(None, Some(1)), (None, None)];
                let (_mail, _turn) = Boxes::default().take::<f32>(home, 3, way, ways)?;
                for _ in 0..2 {
                    rank.link.post.gather("launching side by side", &[], rank.until())?;
                }
                return Ok(Vec::new());
            }
            let len = recurrence.part(shape)?.len();
            let ones = rank.device().upload(&vec![1.0_f32; len])?;
            let mut outputs = rank.device().allocate(len)?;
            let options = ForwardOptions { direction, ..Default::default() };
            recurrence.forward_into(&ones, &ones, &mut outputs, shape, options)?;
            outputs.download()
        });
        last.map(|mut parts| parts.swap_remove(0))
    }

    #[test]
    fn a_launch_that_never_comes_is_an_error_and_the_device_stays_usable() {
        let device = Device::simt();
        let in_blocks = KernelChoice::default();
        let ways = [(Choice::Fastest, Way::Mailboxes), (in_blocks.into(), Way::Mailboxes)];
        for (by, way) in ways.into_iter().chain([(Choice::Fastest, Way::Passes)]) {
            let error = reverse(&device, by, way, true).unwrap_err().to_string();
            assert!(error.contains("a state of another rank did not come within 60s"), "{error}");
            assert!(error.contains(&format!("a pass over 3 sequences, {way}")), "{error}");
            let first = reverse(&device, by, way, false).expect("all launches come")[0];
            assert_eq!(first, 640.0, "{way}");
        }
    }
}
