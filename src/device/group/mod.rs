//! Several devices, and the recurrence over all of them.
//!
//! A [`Group`] is the ranks of a computation, one for each device, and [`Group::run`] does each
//! rank's work. [`GroupRecurrence`] is the recurrence whose sequences are [split](Split) over them.
//! This file makes groups: of the devices of this program, or of one device for each process. It
//! also starts a thread for each rank and ends the work of all ranks if one fails. The tests are
//! `tests/suite/group`, with emulated devices, processes, an NCCL that fails on purpose, and GPUs.

mod cut;
pub(super) mod engine;
mod environment;
mod frame;
mod hub;
mod kernels;
mod link;
mod mail;
mod meeting;
mod peers;
mod rank;
mod recurrence;
mod split;
mod turn;
mod way;

pub use rank::Rank;
pub use recurrence::GroupRecurrence;
pub use split::{Part, Split};
pub use way::{Links, Way};

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::slice;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::Device;
use super::backend::Communicator;
use super::lock::lock;
use crate::Error;
use environment::JobProcess;
use link::Link;
use mail::InFlight;
use meeting::{Meeting, Seat};
use turn::{InTurn, Party, Work};

/// The ranks of a computation over several devices, one for each.
///
/// ```
/// use linrec::device::{Device, ForwardOptions, Group, GroupRecurrence, Split};
///
/// // Four emulated devices; those of a machine with GPUs are `Device::gpus()`.
/// let group = Group::from_devices(&Device::emulated(4))?;
/// let shape = (1, 1000); // one sequence of 1000 steps, of which each rank has 250
/// let parts = group.run(|rank| {
///     let recurrence = GroupRecurrence::<f32>::new(rank, Split::Steps);
///     let len = recurrence.part(shape)?.len();
///     let (device, ones) = (rank.device(), vec![1.0; len]);
///     let (inputs, coeffs) = (device.upload(&ones)?, device.upload(&ones)?);
///     let mut outputs = device.allocate(len)?;
///     recurrence.forward_into(&inputs, &coeffs, &mut outputs, shape, ForwardOptions::default())?;
///     outputs.download()
/// })?;
/// assert_eq!(parts[3].last(), Some(&1000.0)); // it was a cumulative sum
/// # Ok::<(), linrec::Error>(())
/// ```
///
/// # Failures
///
/// A rank ends the work of all ranks if its work returns an error or panics, if it ends while other
/// ranks wait for it, or if it calls another operation than they do: whatever another rank waits
/// for is then an error, which says why. No rank waits longer than the
/// [deadline](Group::with_deadline) for another one. If all ranks are in one program, an array that
/// was sent and that no rank has received when all have ended is an error, too.
///
/// After passes [by mail](Way::Mailboxes) a run ends when the devices are done. If a device has
/// waited for a state longer than the deadline, because another rank's launch did not run, that is
/// an error as well, and the devices stay usable.
#[derive(Debug)]
pub struct Group {
    members: Members,
    deadline: Duration,
}

/// The processes that the ranks are in.
#[derive(Debug)]
enum Members {
    /// All ranks are in this program, one for each device.
    Here(Vec<Device>),
    /// All ranks are in this program, on GPUs that exchange arrays by NCCL.
    Linked(Linked),
    /// One rank is in this process.
    One(Member),
}

/// GPUs, and a communicator for each.
#[derive(Debug)]
struct Linked {
    devices: Vec<Device>,
    communicators: Vec<Arc<dyn Communicator>>,
    /// Locked during a run: the messages of two runs at once would mix.
    running: Mutex<()>,
}

impl Drop for Linked {
    fn drop(&mut self) {
        let party = Party::new(&self.devices);
        let home = self.devices.first().map(Device::stream);
        // NCCL frees memory that other GPUs reach.
        let _turn =
            home.map(|home| party.take_turn(Work::Other, &home, rank::after(Group::DEADLINE)));
        self.communicators.clear();
    }
}

/// The rank of this process.
#[derive(Debug)]
struct Member {
    device: Device,
    /// It serves every run, so that a failure lasts.
    link: Arc<Link>,
}

impl Drop for Member {
    fn drop(&mut self) {
        self.link.leave(None);
    }
}

impl Group {
    /// The time that ranks wait for each other, unless [`Group::with_deadline`] changes it.
    pub const DEADLINE: Duration = Duration::from_secs(60);

    /// Makes a group of ranks in this program, one for each device: emulated devices
    /// ([`Device::emulated`]), or GPUs, which exchange arrays by NCCL.
    ///
    /// NCCL, in version 2.14 or newer, is looked for when it is first needed: the file that
    /// `LINREC_NCCL` names, or `libnccl.so.2` where the system's linker finds it, or the file of an
    /// active Python environment. It takes seconds to begin. With `LINREC_NCCL=none` arrays go
    /// through the memory of the host instead, as by [`Group::through_host`]. Once something has
    /// failed in a run on GPUs, the group cannot be used any more.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if `devices` is empty, if some are emulated and others not, or if a
    /// GPU is given twice; [`Error::Device`] if NCCL is missing, with the way out, or if it fails.
    pub fn from_devices(devices: &[Device]) -> Result<Group, Error> {
        let emulated = devices.iter().filter(|device| device.is_simt()).count();
        let takes_nccl = devices.iter().any(|device| device.backend.takes_nccl());
        if devices.len() < 2 || !takes_nccl {
            return Group::through_host(devices);
        }
        let repeated =
            devices.iter().enumerate().any(|(index, device)| devices[..index].contains(device));
        if emulated > 0 || repeated {
            let what = match repeated {
                true => "one GPU for two ranks",
                false => "emulated devices together with GPUs",
            };
            let what = format!("{what}; `Group::through_host` does");
            return Err(Error::Unsupported { engine: "NCCL".into(), what });
        }
        let communicators = communicators(devices, Group::DEADLINE)?;
        let running = Mutex::default();
        let linked = Linked { devices: devices.to_vec(), communicators, running };
        Ok(Group { members: Members::Linked(linked), deadline: Group::DEADLINE })
    }

    /// Makes a group of ranks in this program, one for each device of any kind. Ranks exchange
    /// arrays through the memory of the host, which is slower than a link between GPUs. A device
    /// that is given several times is shared by as many ranks.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if `devices` is empty.
    pub fn through_host(devices: &[Device]) -> Result<Group, Error> {
        if devices.is_empty() {
            let what = String::from("0 devices; a rank needs one");
            return Err(Error::Unsupported { engine: "a group".into(), what });
        }
        Ok(Group { members: Members::Here(devices.to_vec()), deadline: Group::DEADLINE })
    }

    /// Makes the group of a job of several processes, of which this process is one rank. torchrun,
    /// SLURM (`srun`) or Open MPI (`mpirun`) has started the job, or another launcher that sets the
    /// variables of torchrun for each process: `RANK`, `WORLD_SIZE`, `LOCAL_RANK`, `MASTER_ADDR`
    /// and `MASTER_PORT`.
    ///
    /// SLURM's variables are `SLURM_PROCID`, `SLURM_NTASKS` and `SLURM_LOCALID`; Open MPI's are
    /// `OMPI_COMM_WORLD_RANK`, `OMPI_COMM_WORLD_SIZE` and `OMPI_COMM_WORLD_LOCAL_RANK`. Ranks meet
    /// at the host `MASTER_ADDR` (under SLURM the first host of the step if it is not set), at the
    /// port *behind* `MASTER_PORT`, since torch may use that port itself: 29501 by default. Every
    /// program that reaches the port can take part, so that it belongs into a private network, like
    /// the ports of torch and NCCL.
    ///
    /// The device is the GPU number `LOCAL_RANK`, or the only GPU that the process sees. Without a
    /// GPU, or if `LINREC_DEVICE` is `simt`, it is an emulated device, so that a job runs on a
    /// laptop as well. GPUs exchange arrays by NCCL, as in [`Group::from_devices`]:
    ///
    /// ```console
    /// $ torchrun --nproc-per-node 4 --no-python target/release/my-program
    /// $ for rank in 0 1 2 3; do RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=4 \
    ///       MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 LINREC_DEVICE=simt my-program & done; wait
    /// ```
    ///
    /// All processes have to come before the [deadline](Group::DEADLINE). The group serves several
    /// runs, until something fails in one of them. Drop it at the end of the program: rank 0, where
    /// all others meet, then waits until they drop theirs.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if a variable is missing or has an impossible value, if not all processes
    /// come in time, if two have the same rank or not all the same number of ranks, if some have
    /// GPUs and others not, or if the device or NCCL is missing.
    pub fn from_environment() -> Result<Group, Error> {
        Group::from_environment_within(Group::DEADLINE)
    }

    /// Makes the same group with another deadline, for the meeting and for all later operations.
    ///
    /// # Errors
    ///
    /// As for [`Group::from_environment`].
    pub fn from_environment_within(deadline: Duration) -> Result<Group, Error> {
        let until = rank::after(deadline);
        let place = JobProcess::of_environment().map_err(|why| Error::device("a group", why))?;
        let post = hub::meet(&place, until)?;
        let mut link = Link { number: place.rank, size: place.size, post, nccl: None };
        match join(place.local, &mut link, until) {
            Ok(device) => {
                let members = Members::One(Member { device, link: Arc::new(link) });
                Ok(Group { members, deadline })
            }
            Err(error) => {
                link.leave(Some(&error.to_string()));
                Err(error)
            }
        }
    }

    /// True if this process was started as one of several, according to the variables that
    /// [`Group::from_environment`] reads.
    pub fn is_started() -> bool {
        environment::is_started()
    }

    /// Lets ranks wait for at most `deadline` for each other in every operation; the default is a
    /// minute ([`Group::DEADLINE`]). The time that a rank computes while others wait for it counts.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Group {
        Group { deadline, ..self }
    }

    /// The number of ranks.
    pub fn size(&self) -> usize {
        match &self.members {
            Members::Here(devices) | Members::Linked(Linked { devices, .. }) => devices.len(),
            Members::One(member) => member.link.size,
        }
    }

    /// The devices of the ranks of this process.
    pub fn devices(&self) -> &[Device] {
        match &self.members {
            Members::Here(devices) | Members::Linked(Linked { devices, .. }) => devices,
            Members::One(member) => slice::from_ref(&member.device),
        }
    }

    /// Does `work` for each rank of this process, and returns the results in the order of ranks.
    /// Several ranks have a thread each.
    ///
    /// # Errors
    ///
    /// The error of the first rank that failed. If its work panicked, [`Error::Device`] with the
    /// panic's message.
    pub fn run<R: Send>(
        &self,
        work: impl Fn(&Rank) -> Result<R, Error> + Sync,
    ) -> Result<Vec<R>, Error> {
        match &self.members {
            Members::Here(devices) => self.run_here(devices, &[], work),
            Members::Linked(Linked { devices, communicators, running }) => {
                let _alone = lock(running);
                self.run_here(devices, communicators, work)
            }
            Members::One(member) => {
                let Member { device, link } = member;
                let (device, link) = (device.clone(), link.clone());
                let party = Party::new(self.devices());
                let in_flight = InFlight::new(&party);
                let rank = Rank { device, deadline: self.deadline, link, in_flight };
                let outcome = ended(&rank, &work).map(|one| vec![one]);
                party.leave();
                outcome.inspect_err(|error| rank.link.leave(Some(&error.to_string())))
            }
        }
    }

    fn run_here<R: Send>(
        &self,
        devices: &[Device],
        communicators: &[Arc<dyn Communicator>],
        work: impl Fn(&Rank) -> Result<R, Error> + Sync,
    ) -> Result<Vec<R>, Error> {
        let size = devices.len();
        let failures = Mutex::new(Vec::new());
        let one = |rank: Rank| {
            rank.device().backend.run_by_itself();
            match ended(&rank, &work) {
                Ok(result) => {
                    rank.link.leave(None);
                    Some(result)
                }
                Err(error) => {
                    // Before the others know of it, so that their errors come behind.
                    lock(&failures).push(error.clone());
                    rank.link.leave(Some(&error.to_string()));
                    None
                }
            }
        };
        let party = Party::new(devices);
        let seats = Meeting::of_threads(size);
        let meeting = seats.first().map(Seat::meeting);
        let ranks = seats.into_iter().zip(devices).enumerate();
        let ranks: Vec<_> = ranks
            .map(|(number, (seat, device))| {
                let nccl = communicators.get(number).cloned();
                let nccl = nccl.map(|nccl| InTurn::of(&party, device, nccl));
                let link = Arc::new(Link { number, size, post: Box::new(seat), nccl });
                let (device, in_flight) = (device.clone(), InFlight::new(&party));
                Rank { device, deadline: self.deadline, link, in_flight }
            })
            .collect();
        // Until the launches of all ranks are done, they may post to any rank's mailboxes.
        let _in_flight: Vec<_> = ranks.iter().map(|rank| rank.in_flight.clone()).collect();
        let results: Vec<Option<R>> = thread::scope(|scope| {
            let one = &one;
            let started: Vec<_> = ranks
                .into_iter()
                .map(|rank| {
                    let name = format!("rank {}", rank.number());
                    let link = rank.link.clone();
                    let started =
                        thread::Builder::new().name(name).spawn_scoped(scope, move || one(rank));
                    started.inspect_err(|_| link.leave(Some("no thread could be started for it")))
                })
                .collect();
            let joined = started.into_iter().map(|thread| match thread {
                Ok(thread) => thread.join().unwrap_or(None),
                Err(error) => {
                    let message = format!("no thread could be started: {error}");
                    lock(&failures).push(Error::device("a rank", message));
                    None
                }
            });
            joined.collect()
        });
        party.leave();
        if let Some(first) = lock(&failures).first() {
            return Err(first.clone());
        }
        match meeting.and_then(|meeting| meeting.unread()) {
            Some(unread) => Err(Error::device("a group", unread)),
            None => Ok(results.into_iter().flatten().collect()),
        }
    }
}

/// Takes the device of a process, agrees with the other ranks on its kind, and connects GPUs by
/// NCCL.
fn join(local: usize, link: &mut Link, until: Instant) -> Result<Device, Error> {
    let device = Device::of_process(local)?;
    let takes_nccl = device.backend.takes_nccl();
    let kind = match takes_nccl {
        _ if device.is_simt() => "an emulated device",
        true => "a GPU",
        false => "a GPU, and arrays through the host",
    };
    link.agree(&format!("begin with {kind}"), until)?;
    if takes_nccl && link.size > 1 {
        link.connect(&device, until)?;
    }
    Ok(device)
}

/// Makes the communicators of ranks in this program, each with its own GPU.
///
/// # Errors
///
/// If NCCL is missing, or ranks do not meet in time.
fn communicators(
    devices: &[Device],
    deadline: Duration,
) -> Result<Vec<Arc<dyn Communicator>>, Error> {
    let id = devices[0].backend.nccl_id()?;
    let failed = Mutex::new(None);
    Group::through_host(devices)?.with_deadline(deadline).run(|rank| {
        let is_off = || lock(&failed).clone();
        let (backend, until) = (rank.device().backend.clone(), rank::after(deadline));
        let party = &rank.in_flight.party;
        let _turn = party.take_turn(Work::Other, &rank.device().stream(), until)?;
        // The passes that are under way must not wait for NCCL.
        rank.device().synchronize()?;
        let met = backend.communicator(&id, rank.number(), rank.size(), &is_off, until);
        met.inspect_err(|error| *lock(&failed) = Some(error.to_string()))
    })
}

/// Returns what `work` returns, once its passes by mail are done; an error if it panics, or if mail
/// did not come.
fn ended<R>(rank: &Rank, work: impl Fn(&Rank) -> Result<R, Error>) -> Result<R, Error> {
    let outcome = unpanicked(rank, work);
    let settled = rank.in_flight.settle(rank);
    outcome.and_then(|result| settled.map(|()| result))
}

/// Returns what `work` returns; an error if it panics.
fn unpanicked<R>(rank: &Rank, work: impl Fn(&Rank) -> Result<R, Error>) -> Result<R, Error> {
    // After a panic only the caller's own values may be incomplete, and the caller gets the error.
    panic::catch_unwind(AssertUnwindSafe(|| work(rank)))
        .unwrap_or_else(|panic| Err(rank.link.error(format!("panicked: {}", words(&*panic)))))
}

/// Returns a panic's message.
fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a word")
}
