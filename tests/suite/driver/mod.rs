//! The device layer with a driver that fails.
//!
//! Every test starts a process that loads `libcuda.c` in place of the driver and plays a scenario
//! with it. The fake driver fails at the call that the test chooses, counts calls, and notices what
//! no program may do: using what was freed, freeing twice, forgetting to free. The tests assert the
//! text of every error, and that nothing is left behind.

pub mod fake;
mod scenario;

use fake::{Outcome, run, run_lacking, run_without};

/// An error that all drivers have and that ends the use of a device; one that is newer than the
/// oldest supported driver; and two that no driver has.
const CODES: [i32; 4] = [719, 919, i32::MAX, -1];

const OPTIONAL: [&str; 7] = [
    "cuFuncGetParamInfo",
    WORDS[0],
    WORDS[1],
    BETWEEN_PROCESSES[0],
    BETWEEN_PROCESSES[1],
    BETWEEN_PROCESSES[2],
    BETWEEN_PROCESSES[3],
];
/// The functions for several processes: see the tests of groups.
const BETWEEN_PROCESSES: [&str; 4] = [
    "cuIpcCloseMemHandle",
    "cuIpcGetMemHandle",
    "cuIpcOpenMemHandle_v2",
    "cuMemGetAddressRange_v2",
];
const WORDS: [&str; 2] = ["cuGetErrorName", "cuGetErrorString"];

/// The functions that release something; their results are ignored.
const GIVING_BACK: [&str; 8] = [
    "cuDevicePrimaryCtxRelease_v2",
    "cuEventDestroy_v2",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
    "cuMemFreeAsync",
    "cuMemFree_v2",
    "cuModuleUnload",
    "cuStreamDestroy_v2",
];

/// Functions that are also called while releasing.
const ALSO_FOR_GIVING_BACK: [&str; 3] =
    ["cuCtxGetCurrent", "cuCtxSynchronize", "cuStreamWaitEvent"];

/// Runs of the scenario that together call every function: without failures; on a GPU whose memory
/// is not allocated in stream order; with errors that have words; and with an error that ends the
/// opening half-way.
const WAYS: [&str; 4] = ["", "set 115 0;", "fail cuInit 0 999;", "fail cuDeviceGetName 1 999;"];

macro_rules! with_the_fake_driver {
    ($($(#[$doc:meta])* fn $name:ident() $body:block)*) => {$(
        $(#[$doc])*
        #[test]
        #[cfg_attr(not(target_os = "linux"), ignore = "needs the loader of Linux")]
        fn $name() $body
    )*};
}

#[test]
#[ignore = "is started by other tests, with a scenario"]
fn a_process_with_a_scenario() {
    match std::env::var(fake::SCENARIO) {
        Ok(name) => scenario::play(&name),
        Err(_) => println!("there is no scenario in {}", fake::SCENARIO),
    }
}

with_the_fake_driver! {
    fn a_driver_in_good_health() {
        for way in &WAYS[..2] {
            let outcome = run("everything", way);
            outcome.must_end_well(way);
            let errors: Vec<_> = outcome.errors().collect();
            let [ptx, kernel, memory] = errors[..] else { panic!("{errors:?}") };
            let words = "cuda:0: loading PTX of version 8.0 (line 1; error : there is no .target) failed";
            assert!(ptx.starts_with(words), "{ptx}");
            assert!(ptx.contains("code 218)"), "{ptx}");
            assert!(kernel.starts_with("cuda:0: loading the kernel `not_compiled` failed"), "{kernel}");
            assert!(kernel.contains("code 500)"), "{kernel}");
            assert!(memory.contains("out of memory: asked for 4398046511104 bytes"), "{memory}");
            let values: Vec<_> =
                outcome.steps.iter().filter_map(|step| step.strip_prefix("values: ")).collect();
            assert_eq!(values, ["[2.0, 4.0, 6.0]", "[8.0, 16.0, 24.0]", "[256.0, 512.0, 768.0]"]);
            nothing_is_left(&outcome, way);
        }
    }

    fn every_function_is_called_on_some_way() {
        let outcomes = WAYS.map(|way| run("everything", way));
        for function in functions_of_one_process(&outcomes[0]) {
            let calls: u32 = outcomes.iter().map(|outcome| outcome.count(function)).sum();
            assert!(calls > 0, "{function} is never called");
        }
    }

    fn a_function_that_fails_is_an_error_with_its_number() {
        // All functions and codes, each in the first run that calls the function.
        let usual = WAYS.map(|way| (way, run("everything", way)));
        let functions: Vec<&String> = functions_of_one_process(&usual[0].1).collect();
        std::thread::scope(|scope| {
            for part in functions.chunks(functions.len().div_ceil(2)) {
                let usual = &usual;
                scope.spawn(move || part.iter().for_each(|function| fails(function, usual)));
            }
        });
    }

    fn a_function_that_is_absent_is_an_error() {
        let usual = run("everything", "");
        assert!(usual.calls.len() > 40);
        for function in usual.calls.keys() {
            let outcome = run_without(function, "everything");
            outcome.must_end_well(function);
            let text: Vec<_> = outcome.errors().collect();
            if OPTIONAL.contains(&function.as_str()) {
                assert_eq!(outcome.steps.len(), usual.steps.len(), "without {function}: {text:?}");
                continue;
            }
            assert_eq!(text.len(), 3, "{text:?}");
            let words = format!("CUDA: the NVIDIA driver's library has no {function}: it is older");
            assert!(text.iter().all(|text| text.starts_with(&words)), "{text:?}");
        }
    }

    fn nonsense_in_place_of_an_answer_is_an_error() {
        // The functions with an answer, and the calls whose answer is checked.
        for (function, call, words) in [
            ("cuCtxGetCurrent", 0, ""),
            ("cuDeviceGet", 1, ""),
            ("cuDeviceGetAttribute", 2, "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT is -1"),
            ("cuDeviceGetAttribute", 0, " is -1"),
            ("cuDeviceGetCount", 1, "counting devices failed: the driver says that all went well, but"),
            ("cuDeviceGetName", 1, ""),
            ("cuDevicePrimaryCtxRetain", 1, "the context is null"),
            ("cuDriverGetVersion", 1, "knows CUDA 0.0 at most"),
            ("cuEventCreate", 1, "making an event failed: the driver says that all went well, but"),
            ("cuEventElapsedTime", 1, "timing failed: the driver says that all went well, but"),
            ("cuFuncGetAttribute", 2, "loading the kernel `scale` failed: the driver says"),
            ("cuFuncGetParamInfo", 2, "its parameter 2, `factor`, is declared at byte 8 with a size of 4 and"),
            ("cuGraphInstantiateWithFlags", 1, "making a graph failed: the driver says"),
            ("cuMemAllocAsync", 1, "allocating 12 bytes failed: the driver says that all went well, but"),
            ("cuMemGetInfo_v2", 1, ""),
            ("cuModuleGetFunction", 1, "the kernel is null"),
            ("cuModuleLoadDataEx", 1, "the module is null"),
            ("cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", 1, "-1 blocks fit"),
            ("cuStreamCreate", 1, "making a stream failed: the driver says that all went well, but"),
            ("cuStreamEndCapture", 1, "making a graph failed: the driver says"),
        ] {
            let what = format!("odd {function} {call};");
            let outcome = run("everything", &what);
            outcome.must_end_well(&what);
            let errors: Vec<_> = outcome.errors().collect();
            assert!(errors.iter().any(|error| error.contains(words)), "{what} {errors:?}");
            nothing_is_left(&outcome, &what);
        }
        for function in WORDS {
            let what = format!("fail cuMemGetInfo_v2 1 919; odd {function} 0;");
            let outcome = run("everything", &what);
            outcome.must_end_well(&what);
            assert!(outcome.errors().any(|error| error.contains("no words for (code 919)")));
        }
    }

    fn parameters_that_were_compiled_otherwise_are_refused() {
        let loading = "cuda:0: loading the kernel `scale`: ";
        for (what, words) in [
            (
                "size scale 3 4096;",
                "its parameter 3, `len`, is declared at byte 12 with a size of 4 and compiled at byte 12 with a size \
                 of 4096",
            ),
            ("size scale 4 8;", "3 parameters are declared, and the driver compiled 4"),
            ("fail cuFuncGetParamInfo 3 1;", "3 parameters are declared, and the driver compiled 2"),
        ] {
            let outcome = run("launch among secrets", what);
            outcome.must_end_well(what);
            let errors: Vec<_> = outcome.errors().collect();
            assert_eq!(errors, [format!("{loading}{words}")], "{what}");
            assert_eq!(outcome.count("cuLaunchKernel"), 0);
        }
    }

    /// Memory and streams of another library are used in their order, and stay the other library's.
    fn memory_and_streams_that_are_lent() {
        let outcome = run("lent", "");
        outcome.must_end_well("lent");
        let errors: Vec<_> = outcome.errors().collect();
        assert_eq!(errors.len(), 3, "{errors:?}");
        for (error, address) in errors.iter().zip(["0x0", "0x", "0xfffffffffffffffc"]) {
            assert!(error.starts_with(&format!("cuda:0: memory at {address}")), "{error}");
            assert!(error.contains("cannot hold 3 numbers of 4 bytes each"), "{error}");
        }
        let values: Vec<_> =
            outcome.steps.iter().filter_map(|step| step.strip_prefix("values: ")).collect();
        assert_eq!(values, ["[8.0, 12.0]", "[4.0, 8.0, 12.0]"]);
        let has_step = |step: &str| outcome.steps.iter().any(|other| other == step);
        assert!(has_step("aligned: true") && has_step("part aligned: false"), "{:?}", outcome.steps);
        nothing_is_left(&outcome, "lent");
    }

    /// A driver that hides its sizes and reads more than the PTX declares gets zeros.
    fn a_mistaken_size_reads_zeros() {
        for bytes in [5, 4096, 32_764] {
            let what = format!("size scale 3 {bytes};");
            let outcome = run_lacking("cuFuncGetParamInfo", "launch among secrets", &what);
            outcome.must_end_well(&what);
            assert_eq!(outcome.steps[1..3], ["launch: ok", "scaled: true"]);
        }
    }

    fn a_code_has_the_drivers_words_if_there_are_any() {
        let outcome = run("everything", "fail cuMemGetInfo_v2 1 999;");
        let words = "cuda:0: asking for the free memory failed: unknown error (CUDA_ERROR_UNKNOWN, code 999)";
        assert_eq!(outcome.errors().next(), Some(words));
        let outcome = run("everything", "fail cuMemGetInfo_v2 1 919;");
        let words = "cuda:0: asking for the free memory failed: an error that the driver has no words for \
                    (code 919)";
        assert_eq!(outcome.errors().next(), Some(words));
        let without = run_without("cuGetErrorName", "everything");
        assert!(without.errors().any(|error| error.contains("(code 500)")));
    }

    fn a_lost_device_stays_lost_and_only_a_new_process_helps() {
        let outcome = run("leave a buffer", "");
        outcome.must_end_well("leave a buffer");
        assert_eq!(outcome.steps[0], "launch: ok", "a GPU says so later");
        let errors: Vec<_> = outcome.errors().collect();
        assert_eq!(errors.len(), 6, "{errors:?}");
        for (error, begins) in errors.iter().zip([
            "cuda:0: copying to the host failed: a kernel read or wrote an address outside",
            "cuda:0: copying to the device failed: a kernel read or wrote an address outside",
            "cuda:0: allocating 32 bytes failed: a kernel read or wrote an address outside",
            "cuda:0: waiting for the device failed: a kernel read or wrote an address outside",
            "cuda:0: opening the device: it was lost when copying to the host failed: a kernel",
            "cuda:0: opening the device: it was lost when copying to the host failed: a kernel",
        ]) {
            assert!(error.starts_with(begins), "{error}");
            for words in ["code 700)", "`scale`", "LINREC_DEVICE=simt", "only a new process does"] {
                assert!(error.contains(words), "`{words}` is not in: {error}");
            }
        }
        assert!(outcome.steps.contains(&"devices: 1".into()), "the emulator is left");
        assert_eq!(outcome.count("cuDevicePrimaryCtxRetain"), 1, "opening a lost device again retains no context");
        let again = run("open twice", "");
        assert_eq!(again.errors().count(), 0, "a new process has the device");
    }

    /// If the first calls of a driver fail, opening fails; if later ones do, nothing panics.
    fn lasting_errors_of_any_call_are_reported() {
        let usual = run("everything", "");
        for function in [
            "cuLaunchKernel",
            "cuLaunchCooperativeKernel",
            "cuStreamSynchronize",
            "cuMemcpyDtoHAsync_v2",
            "cuGraphLaunch",
        ] {
            for call in 1..=usual.count(function) {
                for code in [700, 919] {
                    let what = format!("sticky {function} {call} {code};");
                    let outcome = run("everything", &what);
                    outcome.must_end_well(&what);
                    let says_it = |error: &str| error.contains(&format!("code {code})"));
                    assert!(outcome.errors().any(says_it), "{what} {:?}", outcome.steps);
                }
            }
        }
    }

    fn cooperative_launches_in_graphs_have_as_many_blocks_as_fit() {
        let outcome = run("cooperative", "");
        outcome.must_end_well("cooperative");
        let refused = "error: cuda:0: launching `scale`: a cooperative launch has all its blocks on the device at \
                       once: the grid of [129, 1, 1] has 129 blocks, and 128 fit, of 64 threads and 0 bytes of \
                       dynamic shared memory each; launch at most 128";
        assert_eq!(outcome.steps, [
            "attribute: true".into(),
            "resident blocks: ok".into(),
            "blocks: 128".into(),
            "launch: ok".into(),
            format!("too many: {refused}"),
            "graph: ok".into(),
            format!("graph of too many: {refused}"),
            "replay: ok".into(),
            "replay: ok".into(),
            "download: ok".into(),
            "values: [8.0, 16.0]".into(),
            String::from("end"),
        ]);
        // One for the launch, one for the graph, and none for the refused launches.
        let counts = ["cuLaunchCooperativeKernel", "cuLaunchKernel"].map(|name| outcome.count(name));
        assert_eq!(counts, [2, 0]);
    }

    fn cooperative_launches_that_a_driver_does_not_take() {
        let outcome = run("cooperative", "set 95 0;");
        outcome.must_end_well("no cooperative launches");
        let words = "cuda:0: asking how many blocks of `scale` fit at once: the device takes no cooperative launches";
        assert_eq!(outcome.errors().collect::<Vec<_>>(), [words]);

        // The driver finds less space than it reported, at the launch and while recording.
        for (call, step) in [(1, "launching `scale`"), (2, "making a graph")] {
            let what = format!("fail cuLaunchCooperativeKernel {call} 720;");
            let outcome = run("cooperative", &what);
            outcome.must_end_well(&what);
            let words = format!(
                "cuda:0: {step} failed: the blocks of a cooperative launch are more than the device holds at once; \
                 launch fewer (code 720)"
            );
            assert_eq!(outcome.errors().filter(|&error| *error == words).count(), 1, "{:?}", outcome.steps);
            assert!(outcome.steps.iter().any(|step| step == "download: ok"), "the device is not lost");
            nothing_is_left(&outcome, &what);
        }
    }

    fn memory_is_not_freed_under_a_copy_to_the_host() {
        // The upload waits for each of its 16 chunks, so the 17th wait is the download's.
        let wait = "late cuMemcpyDtoHAsync_v2; fail cuStreamSynchronize 17 719;";
        let outcome = run("a late download", wait);
        outcome.must_end_well(wait);
        assert!(outcome.steps[0].starts_with("download: error: cuda:0: copying to the host failed"));
        assert_eq!(outcome.steps[1..3], ["the copy ends: ok", "untouched: true"]);
    }

    fn a_copy_to_the_device_does_not_read_what_the_caller_has_back() {
        let wait = "late cuMemcpyHtoDAsync_v2; fail cuStreamSynchronize 1 719;";
        let outcome = run("a late upload", wait);
        outcome.must_end_well(wait);
        assert!(outcome.steps[0].starts_with("upload: error: cuda:0: copying to the device failed"));
        assert_eq!(outcome.steps[1..3], ["the copy ends: ok", "copied: true"]);
    }

    fn a_copy_to_the_device_goes_in_chunks() {
        let outcome = run("many chunks", "");
        outcome.must_end_well("chunks");
        assert_eq!(outcome.steps[0], "equal: true");
        assert_eq!((outcome.count("cuMemcpyHtoDAsync_v2"), outcome.count("cuMemcpyDtoHAsync_v2")), (3, 1));
        nothing_is_left(&outcome, "chunks");
    }
}

/// Returns the functions that a single process calls.
fn functions_of_one_process(outcome: &Outcome) -> impl Iterator<Item = &String> {
    outcome.calls.keys().filter(|function| !BETWEEN_PROCESSES.contains(&function.as_str()))
}

/// Makes a function fail at several of its calls, with all codes.
fn fails(function: &str, usual: &[(&str, Outcome)]) {
    let called = usual.iter().find(|(_, outcome)| outcome.count(function) > 0);
    let (way, usual) = called.unwrap_or_else(|| panic!("{function} is never called"));
    let last = usual.count(function);
    let mut calls = vec![0, 1, 2, 3, last / 2, last];
    calls.retain(|&call| call <= last);
    calls.sort_unstable();
    calls.dedup();
    for call in calls {
        let codes = if call == 1 { &CODES[..] } else { &CODES[..2] };
        for code in codes {
            let what = format!("{way} fail {function} {call} {code};");
            let outcome = run("everything", &what);
            outcome.must_end_well(&what);
            if WORDS.contains(&function) {
                continue;
            }
            let number = format!("code {code})");
            let error = outcome.errors().find(|error| error.contains(&number));
            let gives_back = GIVING_BACK.contains(&function)
                || call > 1 && ALSO_FOR_GIVING_BACK.contains(&function);
            match error {
                Some(error) => assert!(error.contains(" failed: "), "{what} {error}"),
                None => assert!(gives_back, "{what} {:?}", outcome.steps),
            }
            // An error that ends the use of a device may leave it in disorder.
            if *code != 719 && call != 0 && !gives_back {
                nothing_is_left(&outcome, &what);
            }
        }
    }
}

/// Panics if anything is left that is not kept for the whole process.
fn nothing_is_left(outcome: &Outcome, what: &str) {
    for kind in ["allocation", "stream", "event", "graph", "exec"] {
        let left = outcome.left(kind);
        assert_eq!(left, 0, "{what}: {left} of {kind} are left; {:?}", outcome.steps);
    }
    // The device and its modules.
    assert!(
        outcome.left("context") <= 1 && outcome.left("module") <= 1,
        "{what}: {:?}",
        outcome.live
    );
}
