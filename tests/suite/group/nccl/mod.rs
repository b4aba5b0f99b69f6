//! A group on GPUs with NCCL, in whose place `libnccl.c` works or fails, over the fake driver.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::processes::Job;
use crate::driver::fake;

const LONG: Duration = Duration::from_secs(300);
const SHORT: Duration = Duration::from_millis(2500);

/// The outputs of three ranks with a fake GPU each, and their folder.
struct Run {
    texts: Vec<String>,
    folder: tempfile::TempDir,
}

impl Run {
    fn new(scenario: &str, deadline: Duration, instructions: &str) -> Run {
        Run::over(&library(), scenario, deadline, instructions)
    }

    fn over(nccl: &Path, scenario: &str, deadline: Duration, instructions: &str) -> Run {
        Run::made(nccl, scenario, deadline, instructions, &[])
    }

    fn made(
        nccl: &Path,
        scenario: &str,
        deadline: Duration,
        instructions: &str,
        more: &[(usize, &str, &str)],
    ) -> Run {
        let folder = tempfile::tempdir().unwrap();
        // The fake driver reports no parameters, as it does not know the library's kernels.
        let driver = fake::lacking(fake::library(), fake::FILE, "cuFuncGetParamInfo");
        let libraries = std::env::join_paths([&driver, nccl]).unwrap();
        let variables = [
            ("LINREC_DEVICE", String::from("cuda")),
            ("LD_LIBRARY_PATH", libraries.into_string().unwrap()),
            ("FAKE_NCCL_FOLDER", folder.path().to_str().unwrap().to_owned()),
            ("FAKE_NCCL", instructions.to_owned()),
        ];
        let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, &**value)).collect();
        let removed =
            ["VIRTUAL_ENV", "CONDA_PREFIX", "LINREC_NCCL", "CUDA_VISIBLE_DEVICES", "FAKE_CUDA"];
        let job = Job::new(scenario, &[0, 1, 2], deadline).with(more);
        let texts = job.run_with(&variables, &removed);
        Run { texts, folder }
    }

    /// Runs with a driver that fails on one rank.
    fn with(scenario: &str, driver: &str, rank: usize) -> Run {
        Run::made(&library(), scenario, LONG, "", &[(rank, "FAKE_CUDA", driver)])
    }

    /// Returns the number of communicators that were finalized, destroyed and aborted.
    fn ends(&self) -> [usize; 3] {
        ["finalized", "destroyed", "aborted"].map(|how| {
            let file = |rank: &usize| self.folder.path().join(format!("{how}-0-{rank}"));
            (0..3).filter(|rank| file(rank).exists()).count()
        })
    }
}

/// Returns the folder of the fake NCCL, which is compiled once.
fn library() -> PathBuf {
    fake::compiled("fake-nccl", "libnccl.so.2", include_str!("libnccl.c"))
}

macro_rules! with_the_fake_libraries {
    ($(fn $name:ident() $body:block)*) => {$(
        #[test]
        #[cfg_attr(not(target_os = "linux"), ignore = "needs the loader of Linux")]
        fn $name() $body
    )*};
}

with_the_fake_libraries! {
    fn arrays_are_exchanged_and_communicators_taken_down() {
        let run = Run::new("arrays", LONG, "");
        assert_eq!(run.texts, ["[0, 0, 1, 1, 2, 2] [2, 2] 2", "[0, 0, 1, 1, 2, 2] [2, 2] 0", "[0, 0, 1, 1, 2, 2] [2, 2] 1"]);
        assert_eq!(run.ends(), [3, 3, 0]);
    }

    fn no_nccl_is_an_error_with_the_way_out() {
        let run = Run::over(Path::new("/nowhere"), "arrays", LONG, "");
        for text in &run.texts {
            assert!(text.contains("NCCL: libnccl.so.2 was not found; install NCCL 2.14 or newer"), "{text}");
            assert!(text.contains("pip install") && text.contains("LINREC_NCCL"), "{text}");
        }
        let run = Run::new("arrays", LONG, "version 2804");
        for text in &run.texts {
            assert!(text.contains("its version is 2804, and 21400 (2.14) is the oldest"), "{text}");
        }
    }

    fn a_missing_function_is_an_error() {
        let functions = ["ncclCommInitRankConfig", "ncclAllGather", "ncclCommAbort"];
        for function in functions {
            let lacking = fake::lacking(&library(), "libnccl.so.2", function);
            let run = Run::over(&lacking, "arrays", LONG, "");
            for text in &run.texts {
                assert!(text.contains("the library found lacks a function"), "{function}: {text}");
            }
        }
    }

    fn a_function_that_fails_is_an_error_on_all_ranks() {
        for (instructions, words) in [
            ("fail ncclGetVersion 5", "some error (code 5)"),
            ("fail ncclGetUniqueId 2", "making an id failed: some error (code 2)"),
            ("fail ncclCommInitRankConfig 12345", "it has no words for it (code 12345)"),
            ("fail ncclCommGetAsyncError -7", "some error (code -7)"),
            ("fail ncclAllGather 3", "all-gather failed: some error (code 3)"),
            ("fail ncclBroadcast 1", "broadcast failed: some error (code 1)"),
            ("fail ncclSend 2", "some error (code 2)"),
            ("fail ncclRecv 4", "some error (code 4)"),
            ("state 6", "remote process exited (code 6)"),
            ("state 999999", "it has no words for it (code 999999)"),
        ] {
            let run = Run::new("arrays", LONG, instructions);
            for text in &run.texts {
                assert!(text.contains(words), "{instructions}: {text}");
            }
            let [finalized, destroyed, aborted] = run.ends();
            assert_eq!((finalized, destroyed), (0, 0), "{instructions}");
            // Before the first communicator exists, there is none to abort.
            let begun = ["AllGather", "Broadcast", "Send", "Recv", "AsyncError", "state"];
            let begun = begun.iter().any(|name| instructions.contains(name));
            assert_eq!(aborted, if begun { 3 } else { 0 }, "{instructions}");
        }
    }

    fn an_operation_that_never_ends_is_aborted_at_the_deadline() {
        for name in ["ncclCommInitRankConfig", "ncclAllGather", "ncclBroadcast", "ncclSend", "ncclRecv"] {
            let run = Run::new("arrays", SHORT, &format!("hang {name}"));
            for text in &run.texts {
                assert!(text.contains("not all ranks came in time"), "{name}: {text}");
            }
            assert_eq!(run.ends(), [0, 0, 3], "{name}");
        }
    }

    fn mailboxes_in_the_memory_of_other_processes() {
        let run = Run::new("mailboxes", LONG, "");
        assert_eq!(run.texts, ["opened and closed"; 3]);
        for (instructions, words) in [
            ("fail cuIpcGetMemHandle 1 801", "naming memory to another process failed"),
            ("fail cuIpcOpenMemHandle_v2 2 201", "opening memory of another process failed"),
            ("odd cuIpcOpenMemHandle_v2 1", "the memory is at 0x0"),
            ("odd cuIpcGetMemHandle 1", "opening memory of another process failed"),
            ("fail cuMemGetAddressRange_v2 1 1", "opening memory of another process failed"),
            ("odd cuMemGetAddressRange_v2 1", "it has 1 bytes where"),
        ] {
            let run = Run::with("mailboxes", instructions, 1);
            let texts = &run.texts;
            for text in texts {
                assert!(text.contains("mailboxes between these processes"), "{instructions}: {text}");
                assert!(text.contains("take another way"), "{instructions}: {text}");
            }
            assert!(texts[1].contains(words) || instructions.starts_with("odd cuIpcGet"), "{instructions}: {texts:?}");
            assert!(texts[0].contains(words) || texts[0].contains("rank 1 of 3"), "{instructions}: {texts:?}");
        }
    }

    fn a_receiver_reports_another_length() {
        let run = Run::new("other lengths", LONG, "");
        assert!(run.texts[1].contains("receive: there are 3 bytes for an array of 4"), "{:?}", run.texts);
        for text in [&run.texts[0], &run.texts[2]] {
            assert!(text.contains("rank 1 failed"), "{text}");
        }
    }

    fn a_process_that_dies_ends_the_waits_of_the_others() {
        let run = Run::new("rank 1 dies in NCCL", LONG, "hang ncclAllGather");
        assert_eq!(run.texts[1], "");
        for text in [&run.texts[0], &run.texts[2]] {
            assert!(text.contains("rank 1 failed: its process has ended"), "{text}");
        }
        assert_eq!(run.ends(), [0, 0, 2]);
    }
}
