//! The rank of this process in a job, from the variables that the job's launcher sets.
//!
//! torchrun, Open MPI and SLURM each set their own variables for the same numbers. The first of
//! these launchers whose rank is set counts.
//!
//! No value is trusted: numbers have bounds, texts have a largest length, and an error names the
//! variable and its value. Rank 0 listens one port above MASTER_PORT, which torch may be using. The
//! tests are at the end of this file.

use std::env;
use std::num::NonZeroU16;

/// The most characters of a variable's text.
const MOST_CHARACTERS: usize = 1000;

/// A process of a job, and where it meets the first one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JobProcess {
    pub(super) rank: usize,
    pub(super) size: usize,
    /// The number of this process among those on its host.
    pub(super) local: usize,
    /// The host of rank 0, and the port at which it listens.
    pub(super) host: String,
    pub(super) port: u16,
    /// The job, if it has a name.
    pub(super) job: String,
}

/// A launcher, and its names for the rank, the number of ranks, the number on the host, and the
/// job.
type Names = [&'static str; 5];

const STARTERS: [Names; 3] = [
    ["torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RUN_ID"],
    [
        "Open MPI",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "PMIX_NAMESPACE",
    ],
    ["SLURM", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_JOB_ID"],
];

/// True if the environment says that this process is one of a job.
pub(super) fn is_started() -> bool {
    STARTERS.iter().any(|[_, rank, ..]| of_environment(rank).is_some())
}

/// Returns a variable of this process, if it is not empty.
fn of_environment(name: &str) -> Option<String> {
    let value = env::var_os(name).filter(|value| !value.is_empty())?;
    Some(value.to_string_lossy().trim().to_owned())
}

/// The default port of torch, as in torchrun.
const PORT: u16 = 29_500;

impl JobProcess {
    /// Reads the environment of this process.
    ///
    /// # Errors
    ///
    /// A sentence that names the variable that is missing or has an impossible value.
    pub(super) fn of_environment() -> Result<JobProcess, String> {
        JobProcess::read(of_environment)
    }

    /// Reads the variables through `variable`.
    fn read(variable: impl Fn(&str) -> Option<String>) -> Result<JobProcess, String> {
        let started = STARTERS.into_iter().find(|[_, rank, ..]| variable(rank).is_some());
        let Some([starter, rank_name, size_name, local_name, job_name]) = started else {
            let names = STARTERS.map(|[starter, rank, ..]| format!("{rank} ({starter})"));
            return Err(format!(
                "no variable says which rank this process is: {}; start it with one of these, or set RANK, \
                 WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT",
                names.join(", ")
            ));
        };
        let number = |name: &str| {
            let unset =
                || format!("{rank_name} is set and {name} is not, although {starter} sets both");
            let value = variable(name).ok_or_else(unset)?;
            if value.chars().count() > MOST_CHARACTERS {
                return Err(format!("{name} has more than {MOST_CHARACTERS} characters"));
            }
            // These counts are passed on in 32 bits.
            let number = value.parse::<u16>().map(usize::from);
            number.map_err(|_| format!("{name}={value} is not a number from 0 to 65535"))
        };
        let (rank, size) = (number(rank_name)?, number(size_name)?);
        if rank >= size {
            return Err(format!(
                "{rank_name}={rank} and {size_name}={size}: ranks are counted from 0"
            ));
        }
        let local = number(local_name)?;
        let (host, port) = meeting_point(&variable, size)?;
        let job = variable(job_name).unwrap_or_default();
        Ok(JobProcess { rank, size, local, host, port, job: job.chars().take(64).collect() })
    }
}

/// Returns the host and the port of rank 0. The port is one above the port of torch, which may be
/// in use.
fn meeting_point(
    variable: impl Fn(&str) -> Option<String>,
    size: usize,
) -> Result<(String, u16), String> {
    let port = variable("MASTER_PORT").map_or(Ok(PORT + 1), |value| {
        let next = value.parse::<NonZeroU16>().ok().and_then(|port| port.checked_add(1));
        let why = "ranks meet at the next port; give one from 1 to 65534";
        next.map(NonZeroU16::get).ok_or_else(|| format!("MASTER_PORT={value}: {why}"))
    })?;
    let host = variable("MASTER_ADDR").or_else(|| first_host(&variable("SLURM_STEP_NODELIST")?));
    match host {
        Some(host) => Ok((host, port)),
        None if size == 1 => Ok((String::from("127.0.0.1"), port)),
        None => Err(String::from(
            "MASTER_ADDR is not set: set it to the host of rank 0 for all ranks; under SLURM that is \
             `scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1`",
        )),
    }
}

/// Returns the first host of a list as SLURM writes it: `node[03-07,11],other`.
fn first_host(list: &str) -> Option<String> {
    let end = list.find([',', '[']).unwrap_or(list.len());
    let (name, rest) = list.split_at(end);
    let Some(numbers) = rest.strip_prefix('[') else {
        return Some(name.to_owned()).filter(|name| !name.is_empty());
    };
    let (numbers, behind) = numbers.split_once(']')?;
    let first = numbers.split([',', '-']).next()?;
    let behind = behind.split(',').next()?;
    // A second list in one name is rare, and is not supported.
    (!behind.contains('[')).then(|| format!("{name}{first}{behind}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads variables like `RANK=5 WORLD_SIZE=8`, of which the first with a name counts.
    fn read(variables: &str) -> Result<JobProcess, String> {
        let pairs = variables.split(' ').filter_map(|variable| variable.split_once('='));
        JobProcess::read(|name| Some(pairs.clone().find(|pair| pair.0 == name)?.1.to_owned()))
    }

    const TORCHRUN: &str = "RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 MASTER_ADDR=node03 MASTER_PORT=29500";

    #[test]
    fn each_starter_is_understood() {
        let slurm = "SLURM_PROCID=5 SLURM_NTASKS=8 SLURM_LOCALID=1 SLURM_JOB_ID=77 \
                     SLURM_STEP_NODELIST=gpu[03-04]";
        let mpi = "OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=1 \
                   MASTER_ADDR=10.0.0.1 MASTER_PORT=1234";
        for (variables, host, port, job) in [
            (TORCHRUN, "node03", 29_501, ""),
            (slurm, "gpu03", 29_501, "77"),
            (mpi, "10.0.0.1", 1235, ""),
        ] {
            let (host, job) = (host.to_owned(), job.to_owned());
            let expected = JobProcess { rank: 5, size: 8, local: 1, host, port, job };
            assert_eq!(read(variables), Ok(expected));
        }
    }

    #[test]
    fn errors_name_missing_and_impossible_variables() {
        let none = read("").unwrap_err();
        for name in ["RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "torchrun", "MASTER_PORT"] {
            assert!(none.contains(name), "{none}");
        }
        for name in ["WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR"] {
            let error = read(&TORCHRUN.replace(name, "OTHER")).unwrap_err();
            assert!(error.contains(name) && error.contains("set"), "{error}");
        }
        for (set, expected) in [
            ("RANK=8", "RANK=8 and WORLD_SIZE=8: ranks are counted from 0"),
            ("RANK=-1", "RANK=-1 is not a number"),
            ("WORLD_SIZE=0", "RANK=5 and WORLD_SIZE=0"),
            ("WORLD_SIZE=99999999999", "WORLD_SIZE=99999999999 is not a number"),
            ("LOCAL_RANK=", "LOCAL_RANK= is not a number"),
            ("MASTER_PORT=65535", "MASTER_PORT=65535"),
            ("MASTER_PORT=0", "MASTER_PORT=0"),
            ("MASTER_PORT=http", "MASTER_PORT=http"),
        ] {
            let error = read(&format!("{set} {TORCHRUN}")).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn the_first_host_of_a_list() {
        for (list, host) in [
            ("gpu7", Some("gpu7")),
            ("gpu7,gpu9", Some("gpu7")),
            ("gpu[003-007,11]", Some("gpu003")),
            ("gpu[11,3]-x,a", Some("gpu11-x")),
            ("r[1-2]n[1-4]", None),
            ("", None),
            ("gpu[3", None),
        ] {
            assert_eq!(first_host(list).as_deref(), host, "{list}");
        }
    }
}
