//! Kernels with one planted mistake each. Either the emulator reports it or the contract sees it in
//! the numbers.
//!
//! Every mistake in `kernels/mistakes.toml` has a function of its name, from which a macro makes
//! the test. The function asserts the kind of the report, the line of the source that it names, and
//! the words that make it useful to a reader; where the mistake shows only for some shapes, it also
//! asserts that the others pass. The correct kernels run the same way, and nothing may be reported
//! about them. Kernels that move vectors are in `vectors`.

mod vectors;

use std::collections::BTreeSet;
use std::ops::Range;

use crate::emulator::engine::{OnEmulator, SharedOut};
use crate::emulator::{Argument, Shipped, allocate, download, upload, zeros};
use linrec::contract::{self, Case, CoeffKind, Domain, suspect};
use linrec::device::KernelEngine;
use linrec::kernels::{
    self, Algocode, ElementType, Finder, KernelChoice, Memcode, Mistake, PipeConfig, TileConfig,
};
use linrec::reference::{self, Rounding};
use linrec::simt::{Memory, Report, ReportKind};
use linrec::{Engine, Options};
use ndarray::{Array2, array};
use vectors::*;

const NULL: Argument = Argument::Long(0);
/// The text of a shuffle in block_scan, which has two of them, in either order.
const SHUFFLE: &str = "__shfl_up_sync(kAllLanes, mine.";

fn text(name: &str) -> &'static str {
    kernels::source(&format!("broken/{name}.cu")).unwrap_or_else(|| panic!("no broken/{name}.cu"))
}

/// Returns the place of `snippet` in the form of a report: `kernels/broken/lost_carry.cu:84`.
fn place(name: &str, snippet: &str) -> String {
    let lines: Vec<_> = (1..)
        .zip(text(name).lines())
        .filter_map(|(number, line)| line.contains(snippet).then_some(number))
        .collect();
    assert_eq!(lines.len(), 1, "{name}.cu has `{snippet}` in the lines {lines:?}");
    format!("kernels/broken/{name}.cu:{}", lines[0])
}

/// Asserts a report's kind, the text `at` of the line that it names, and words of its sentence.
fn assert_report<T>(
    name: &str,
    outcome: Result<T, Report>,
    kind: ReportKind,
    at: &str,
    words: &[&str],
) -> Finder {
    let Err(report) = outcome else { panic!("{name}: nothing was found") };
    let sentence = report.to_string();
    println!("{sentence}");
    assert_eq!(report.kind, kind, "{sentence}");
    let (file, line) = report.source.expect("the PTX has line numbers");
    assert_eq!(*file, *format!("kernels/broken/{name}.cu"));
    let code = text(name).lines().nth(line as usize - 1).unwrap_or_default();
    assert!(code.contains(at), "`{at}` is not in line {line}, `{code}`: {sentence}");
    for words in words.iter().copied().chain([format!("{file}:{line}").as_str()]) {
        assert!(sentence.contains(words), "`{words}` is not in: {sentence}");
    }
    Finder::Emulator
}

/// Runs `block_scan` over three rows of ones with coefficients near one.
fn run_block_scan(name: &str, seq_len: usize) -> Result<(), Report> {
    let memory = Memory::new(1 << 30);
    let inputs = upload(&memory, "inputs", &vec![1.0; 3 * seq_len]);
    let coeffs = upload(&memory, "coeffs", &vec![0.99; 3 * seq_len]);
    let outputs = allocate(&memory, "outputs", 3 * seq_len);
    let final_state = allocate(&memory, "final_state", 3);
    let shape = [Argument::Long(3), Argument::Long(seq_len as u64)];
    let arguments = [&[inputs, coeffs, outputs, NULL, final_state], &shape[..]].concat();
    Shipped::new(name, "block_scan<false>").run(&memory, 3, 128, &arguments).map(drop)
}

fn assert_block_scan(
    name: &str,
    seq_len: usize,
    kind: ReportKind,
    at: &str,
    words: &[&str],
) -> Finder {
    let outcome = run_block_scan(&format!("broken/{name}"), seq_len);
    assert_report(name, outcome, kind, at, &[&["block_scan_false", "block 0"], words].concat())
}

fn missing_barrier_after_publishing(name: &str) -> Finder {
    let written = place(name, "if (lane == 31) totals[warp] = mine;");
    let words =
        ["warp 1", "reads", "shared memory", "lane 31 of warp 0 writes", &written, "no barrier"];
    assert_block_scan(name, 300, ReportKind::Race, "totals[w].coeff", &words)
}

fn missing_barrier_before_reuse(name: &str) -> Finder {
    let read = place(name, "elems[k] = staging[");
    let words = ["writes", "shared memory", "reads", &read, "no barrier"];
    assert_block_scan(name, 300, ReportKind::Race, "staging[step] = step < seq_len", &words)
}

fn barrier_in_divergent_branch(name: &str) -> Finder {
    // The first warp has gone on to the barrier of store_tile.
    let planted = place(name, "if (warp > 0) __syncthreads();");
    let words = ["warp 0", "waits at a barrier", "of warp 1 at another", &planted];
    assert_block_scan(name, 300, ReportKind::Barrier, "__syncthreads();", &words);
    Finder::Emulator
}

fn barrier_for_one_lane(name: &str) -> Finder {
    // The other lanes go on to a shuffle that names lane 31, and would never continue.
    let planted = place(name, "__syncthreads();  // MISTAKE");
    let words = ["lanes 0-30", "waits for lanes that its mask names", "lane 31", &planted];
    assert_block_scan(name, 300, ReportKind::Shuffle, SHUFFLE, &words)
}

fn early_exit_before_shuffle(name: &str) -> Finder {
    // 75 threads have elements, so the third warp has 11 such lanes.
    let outcome = run_block_scan(&format!("broken/{name}"), 300);
    let words = ["warp 2", "lanes 0-10", "names lanes 11-31", "left the kernel before"];
    assert_report(name, outcome, ReportKind::Shuffle, SHUFFLE, &words);
    // With elements for every thread nothing is wrong: the mistake needs an odd length.
    assert_eq!(run_block_scan(&format!("broken/{name}"), 512), Ok(()));
    Finder::Emulator
}

fn wrong_shuffle_mask(name: &str) -> Finder {
    let words = ["mask 0x0000ffff", "does not name lane 16"];
    assert_block_scan(name, 512, ReportKind::Shuffle, SHUFFLE, &words)
}

fn shuffle_in_divergent_branch(name: &str) -> Finder {
    let words = ["lanes 1-31", "waits for lanes that its mask names", "lane 0"];
    assert_block_scan(name, 512, ReportKind::Shuffle, SHUFFLE, &words)
}

fn uninitialised_shared_memory(name: &str) -> Finder {
    // Step 256 is the first one of lane 0 of warp 2.
    let words = ["warp 2", "lane 0", "offset 1024 of shared memory", "nothing has written"];
    assert_block_scan(name, 300, ReportKind::Uninitialized, "elems[k] = staging[", &words);
    // Nothing is wrong in a row of full rounds only.
    assert_eq!(run_block_scan(&format!("broken/{name}"), 512), Ok(()));
    Finder::Emulator
}

fn out_of_bounds_tail(name: &str) -> Finder {
    let memory = Memory::new(1 << 30);
    let array = |name, len: usize| upload(&memory, name, &vec![0.5; len]);
    let (inputs, coeffs) = (array("inputs", 33 * 10), array("coeffs", 33 * 10));
    let outputs = allocate(&memory, "outputs", 33 * 10);
    let shape = [Argument::Long(33), Argument::Long(10)];
    let arguments = [&[inputs, coeffs, outputs, NULL, NULL], &shape[..]].concat();
    let kernel = Shipped::new(&format!("broken/{name}"), "linrec_ref_fwd<float, false>");
    let outcome = kernel.run(&memory, 1, 64, &arguments);
    // Thread 33 is lane 1 of the second warp.
    let words = ["linrec_ref_fwd_float_false", "block 0, warp 1", "reads", "buffer", "1320 bytes"];
    let at = "state = multiply_add(state, widen(coeffs[l]), widen(inputs[l]));";
    assert_report(name, outcome, ReportKind::OutOfBounds, at, &words)
}

/// Runs the last 32 of 2^25 + 32 sequences of 64 elements; their rows begin at element 2^31.
fn run_last_rows(name: &str) -> Result<Vec<f32>, Report> {
    const SEQ_LEN: usize = 64;
    const NUM_SEQS: usize = (1 << 25) + 32;
    let memory = Memory::new(1 << 40);
    // Only the touched part of these 25 GB takes memory.
    let [inputs, coeffs, outputs] =
        ["inputs", "coeffs", "outputs"].map(|name| allocate(&memory, name, NUM_SEQS * SEQ_LEN));
    let start = 4 << 31;
    for (buffer, value) in [(coeffs, 0.5_f32), (inputs, 1.0)] {
        let Argument::Long(address) = buffer else { unreachable!() };
        memory.write(address + start, &value.to_le_bytes().repeat(32 * SEQ_LEN)).unwrap();
    }
    let shape = [NUM_SEQS, SEQ_LEN].map(|number| Argument::Long(number as u64));
    let arguments = [&[inputs, coeffs, outputs, NULL, NULL], &shape[..]].concat();
    let blocks = NUM_SEQS as u32 / 32;
    let last = u64::from(blocks) - 1..u64::from(blocks);
    let kernel = Shipped::new(name, "linrec_ref_fwd<float, false>");
    kernel.run_range(&memory, blocks, 32, &arguments, last)?;
    let Argument::Long(address) = outputs else { unreachable!() };
    Ok(download(&memory, Argument::Long(address + start), SEQ_LEN))
}

fn row_offset_32_bits(name: &str) -> Finder {
    let outcome = run_last_rows(&format!("broken/{name}"));
    let at = "state = multiply_add(state, widen(coeffs[l]), widen(inputs[l]));";
    let words = ["block 1048576", "8589934592 bytes before", "buffer `inputs`"];
    assert_report(name, outcome, ReportKind::OutOfBounds, at, &words);

    let outputs = run_last_rows("ref-f32").unwrap();
    assert_eq!(outputs[..3], [1.0, 1.5, 1.75]);
    assert_eq!(outputs[63], 2.0);
    Finder::Emulator
}

/// Runs `look_back` over a long sequence of ones with coefficients near one; returns the outputs
/// and the final state.
fn run_look_back(name: &str, seq_len: usize) -> Result<(Vec<f32>, f32), Report> {
    let memory = Memory::new(1 << 30);
    let blocks = seq_len.div_ceil(256);
    let arguments = [
        upload(&memory, "inputs", &vec![1.0; seq_len]),
        upload(&memory, "coeffs", &vec![0.99; seq_len]),
        allocate(&memory, "outputs", seq_len),
        upload(&memory, "initial", &[50.0]),
        allocate(&memory, "final_state", 1),
        Argument::Long(seq_len as u64),
        zeros(&memory, "next_tile", 1),
        zeros(&memory, "published", blocks),
        allocate(&memory, "states", blocks),
    ];
    Shipped::new(name, "look_back").run(&memory, blocks as u32, 32, &arguments)?;
    let final_state = download(&memory, arguments[4], 1)[0];
    Ok((download(&memory, arguments[2], seq_len), final_state))
}

fn unpublished_neighbour(name: &str) -> Finder {
    let words =
        ["look_back", "block 1", "lane 31", "buffer `states`", "block 0 writes", "nothing orders"];
    let outcome = run_look_back(&format!("broken/{name}"), 1000);
    assert_report(name, outcome, ReportKind::Race, "state = states[tile - 1];", &words);
    Finder::Emulator
}

fn published_too_early(name: &str) -> Finder {
    let written = place(name, "states[tile] = fmaf(");
    let words =
        ["look_back", "block 1", "buffer `states`", "block 0 writes", &written, "nothing orders"];
    let outcome = run_look_back(&format!("broken/{name}"), 1000);
    assert_report(name, outcome, ReportKind::Race, "state = states[tile - 1];", &words);
    Finder::Emulator
}

/// Runs `linrec_once` with tiles of 512 steps over a long sequence of ones with coefficients near
/// one; returns the outputs.
fn run_once(name: &str, seq_len: usize) -> Result<Vec<f32>, Report> {
    let memory = Memory::new(1 << 30);
    let shared_out = SharedOut { tile_vectors: 128 };
    let mut arguments = vec![
        upload(&memory, "inputs", &vec![1.0; seq_len]),
        upload(&memory, "coeffs", &vec![0.99; seq_len]),
        allocate(&memory, "outputs", seq_len),
        NULL,
        NULL,
        Argument::Long(1),
        Argument::Long(seq_len as u64),
    ];
    arguments.extend(shared_out.arguments(&memory, (1, seq_len)));
    let kernel = Shipped::new(name, "linrec_once_fwd<float, 4, 512, false, false>");
    kernel.run(&memory, shared_out.tiles(seq_len) as u32, 512, &arguments)?;
    Ok(download(&memory, arguments[2], seq_len))
}

fn published_by_a_plain_store(name: &str) -> Finder {
    let report = run_once(&format!("broken/{name}"), 1000).expect_err("a race");
    println!("{report}");
    assert_eq!(report.kind, ReportKind::Race);
    for words in ["linrec_once_fwd", "buffer `workspace`", "nothing orders the two"] {
        assert!(report.to_string().contains(words), "`{words}` is not in: {report}");
    }
    Finder::Emulator
}

/// Runs `long/chained` over four tiles of 256 ones with coefficients of one half, with one launch
/// for each input and the same workspace. Each launch runs `ranges` of its blocks one after the
/// other, and the first block is late. Returns the outputs of the last launch.
fn run_chained(name: &str, inputs: &[f32], ranges: &[Range<u64>]) -> Result<Vec<f32>, Report> {
    const SEQ_LEN: usize = 4 * 256;
    let memory = Memory::new(1 << 30);
    let kernel = Shipped::new(name, "long_chained<1, 64>");
    let coeffs = upload(&memory, "coeffs", &vec![0.5; SEQ_LEN]);
    let workspace = zeros(&memory, "workspace", 5 * 32);
    let delays = upload(&memory, "delays", &[f32::from_bits(200), 0.0, 0.0, 0.0]);
    let mut outputs = Vec::new();
    for &input in inputs {
        let place = allocate(&memory, "outputs", SEQ_LEN);
        let arguments = [
            upload(&memory, "inputs", &vec![input; SEQ_LEN]),
            coeffs,
            place,
            NULL,
            NULL,
            Argument::Long(SEQ_LEN as u64),
            workspace,
            delays,
        ];
        for range in ranges {
            kernel.run_range(&memory, 4, 64, &arguments, range.clone())?;
        }
        outputs = download(&memory, place, SEQ_LEN);
    }
    Ok(outputs)
}

/// All blocks at once, and the later blocks first.
// Each element is a slice of ranges, and one slice has a single range.
#[allow(clippy::single_range_in_vec_init)]
const CHAINED: [&[Range<u64>]; 2] = [&[0..4], &[2..4, 0..2]];

fn published_without_release(name: &str) -> Finder {
    let written = place(name, "published->state = state;");
    let words = ["long_chained", "block 1", "buffer `workspace`", &written, "nothing orders"];
    let outcome = run_chained(&format!("broken/{name}"), &[1.0; 2], CHAINED[0]);
    assert_report(name, outcome, ReportKind::Race, "return published->state;", &words);
    Finder::Emulator
}

fn epoch_before_state(name: &str) -> Finder {
    let written = place(name, "published->state = state;");
    let words = ["long_chained", "block 1", "buffer `workspace`", &written, "nothing orders"];
    let outcome = run_chained(&format!("broken/{name}"), &[1.0; 2], CHAINED[0]);
    assert_report(name, outcome, ReportKind::Race, "return published->state;", &words);
    Finder::Emulator
}

fn taken_before_published(name: &str) -> Finder {
    // Either access may come first: the state may be written at any time while it is read.
    let report = run_chained(&format!("broken/{name}"), &[1.0; 2], CHAINED[0]).unwrap_err();
    println!("{report}");
    assert_eq!(report.kind, ReportKind::Race);
    let both = [
        place(name, "published->state = state;"),
        place(name, "const float state = published->state;"),
    ];
    for words in [&both[0], &both[1], "buffer `workspace`", "nothing orders the two"] {
        assert!(report.to_string().contains(words), "`{words}` is not in: {report}");
    }
    Finder::Emulator
}

fn tile_by_number(name: &str) -> Finder {
    let report = run_chained(&format!("broken/{name}"), &[1.0; 2], CHAINED[1]).unwrap_err();
    println!("{report}");
    assert_eq!(report.kind, ReportKind::NoProgress);
    let words = ["long_chained", "block 2", "2 blocks wait for what none of them does"];
    for words in words {
        assert!(report.to_string().contains(words), "`{words}` is not in: {report}");
    }
    // Nothing is wrong if blocks begin in the order of their numbers.
    assert!(run_chained(&format!("broken/{name}"), &[1.0; 2], CHAINED[0]).is_ok());
    Finder::Emulator
}

fn epoch_that_stays(name: &str) -> Finder {
    // In the second launch, the second block takes the state left by the first launch before the
    // first block writes its own, and the emulator sees it. The first launch has no mistake.
    let read = place(name, "return published->state;");
    let words =
        ["block 0", "writes", "buffer `workspace`", "block 1 reads", &read, "nothing orders"];
    let outcome = run_chained(&format!("broken/{name}"), &[1.0, 3.0], CHAINED[0]);
    assert_report(name, outcome, ReportKind::Race, "published->state = state;", &words);
    assert!(run_chained(&format!("broken/{name}"), &[1.0], CHAINED[0]).is_ok());
    Finder::Emulator
}

/// Runs `long/mailbox` over two rows of ones with coefficients of one half, cut over two devices,
/// with one launch for each input, the same mailboxes and the next epoch. `order` is the order of
/// the launches; the first one has the first turn. Returns the last output of the first row.
fn run_mail(name: &str, inputs: &[f32], order: [usize; 2]) -> Result<f32, Report> {
    const STRETCH: usize = 300;
    let memory = Memory::new(1 << 30);
    let kernel = Shipped::new(name, "long_mailbox<1, 64>");
    let coeffs = upload(&memory, "coeffs", &[0.5; 2 * STRETCH]);
    let mail = zeros(&memory, "mail", 2 * 32);
    let mut last = 0.0;
    for (epoch, &input) in (1..).zip(inputs) {
        let inputs = upload(&memory, "inputs", &[input; 2 * STRETCH]);
        let outputs = [(); 2].map(|()| allocate(&memory, "outputs", 2 * STRETCH));
        let arguments = order.map(|rank| {
            let (from, to) = if rank == 0 { (NULL, mail) } else { (mail, NULL) };
            let [epoch, len] = [epoch, STRETCH as u64].map(Argument::Long);
            vec![inputs, coeffs, outputs[rank], from, to, epoch, len]
        });
        kernel.run_side_by_side(&memory, 2, 64, &arguments)?;
        last = download(&memory, outputs[1], 2 * STRETCH)[0];
    }
    Ok(last)
}

fn mail_without_fence(name: &str) -> Finder {
    let written = place(name, "to->state = state;");
    let words = ["of launch 1", "buffer `mail`", "of launch 0 writes", &written, "nothing orders"];
    let outcome = run_mail(&format!("broken/{name}"), &[1.0], [0, 1]);
    assert_report(name, outcome, ReportKind::Race, "return from->state;", &words);
    Finder::Emulator
}

fn mail_of_any_epoch(name: &str) -> Finder {
    // The first launch finds only its own mail.
    assert_eq!(
        run_mail(&format!("broken/{name}"), &[1.0], [1, 0]).map(|last| last > 1.0),
        Ok(true)
    );
    // In the second launch, the mail of the first is taken before the new mail is there.
    let words = ["buffer `mail`", "of launch", "nothing orders"];
    let outcome = run_mail(&format!("broken/{name}"), &[1.0, 3.0], [1, 0]);
    assert_report(name, outcome, ReportKind::Race, "to->state = state;", &words);
    Finder::Emulator
}

fn block_scan(name: &str) -> (OnEmulator, Domain) {
    let entries = ["block_scan<false>", "block_scan<true>"];
    let engine = OnEmulator {
        name: name.to_owned(),
        forward: Some(entries),
        backward: None,
        threads: 128,
        seqs_per_block: 1,
    };
    let domain = Domain {
        max_len: 512,
        tile: 512,
        levels: Domain::tree_levels,
        backward: false,
        log_coeffs: false,
        ..Domain::default()
    };
    (engine, domain.as_asked())
}

fn linrec_ref(name: &str) -> (OnEmulator, Domain) {
    let engine = OnEmulator {
        name: name.to_owned(),
        forward: Some(["linrec_ref_fwd<float, false>", "linrec_ref_fwd<float, true>"]),
        backward: Some(["linrec_ref_bwd<float, false>", "linrec_ref_bwd<float, true>"]),
        threads: 64,
        seqs_per_block: 64,
    };
    (engine, Domain { max_len: 1000, log_coeffs: false, ..Domain::default() }.as_asked())
}

/// Returns the contract's verdict on each case of the table with these coefficients.
fn judge(
    engine: &dyn Engine<f32>,
    domain: &Domain,
    coeffs: CoeffKind,
) -> Vec<(Case, Result<f64, String>)> {
    let mine = domain.cases().into_iter();
    let mine = mine.filter(|case| case.coeffs == coeffs && case.num_seqs > 0);
    mine.map(|case| (case.clone(), contract::check(engine, domain, &case))).collect()
}

fn lost_carry(name: &str) -> Finder {
    let (engine, domain) = block_scan(&format!("broken/{name}"));
    // In a row that ends early the loss shows in the final state, which padding keeps.
    let full = |case: &Case| case.seq_len > 384;
    let (mut hidden, mut seen) = (0, 0);
    for (case, outcome) in judge(&engine, &domain, CoeffKind::Gate) {
        if full(&case) {
            assert!(outcome.is_ok(), "{case}: {outcome:?}");
            hidden += 1;
        }
    }
    for (case, outcome) in judge(&engine, &domain, CoeffKind::NearOne) {
        if full(&case) {
            let what = outcome.expect_err("a lost carry");
            assert!(what.starts_with("outputs"), "{case}: {what}");
            seen += 1;
        }
    }
    assert!(hidden > 0 && seen > 0, "{hidden} cases hide it and {seen} show it");
    Finder::Contract
}

fn unshifted_coefficient(name: &str) -> Finder {
    let (engine, domain) = linrec_ref(&format!("broken/{name}"));
    let mut seen = 0;
    for (case, outcome) in judge(&engine, &domain, CoeffKind::Gate) {
        // A single step has no step after it.
        if case.seq_len > 2 {
            assert!(
                outcome.as_ref().is_err_and(|what| what.starts_with("d_inputs")),
                "{case}: {outcome:?}"
            );
            seen += 1;
        }
    }
    assert!(seen > 0);
    // A coefficient shared by all steps hides it.
    for (case, outcome) in judge(&engine, &domain, CoeffKind::One) {
        assert!(outcome.is_ok(), "{case}: {outcome:?}");
    }
    Finder::Contract
}

/// Loads one of the library's kernels from another source, as an engine.
fn per_sequence(name: &str, choice: KernelChoice) -> (KernelEngine<f32>, Domain) {
    let (engine, domain) = suspect::load(&format!("broken/{name}"), choice).unwrap();
    (engine, domain.as_asked())
}

/// Returns the contract's verdict on the cases with coefficients near one, with their lengths.
fn judge_near_one(
    engine: &KernelEngine<f32>,
    domain: &Domain,
) -> Vec<(usize, Result<f64, String>)> {
    let cases = judge(engine, domain, CoeffKind::NearOne).into_iter();
    cases.map(|(case, outcome)| (case.seq_len, outcome)).collect()
}

const PIPE: KernelChoice = KernelChoice::Pipe(PipeConfig {
    max_elems_per_thread: 8,
    max_threads_per_block: 64,
    memcode: Memcode::Direct,
    algocode: Algocode::Block,
});

fn totals_not_in_turns(name: &str) -> Finder {
    let (engine, domain) = per_sequence(name, PIPE);
    let mut found = 0;
    for (seq_len, outcome) in judge_near_one(&engine, &domain) {
        // One tile has 512 steps: up to this length no total is published twice.
        match outcome {
            Ok(_) => assert!(seq_len <= 512, "{seq_len} steps passed"),
            Err(what) => {
                assert!(seq_len > 512, "{seq_len}: {what}");
                let words = ["writes", "shared memory", "reads", "no barrier lies between"];
                assert!(words.iter().all(|words| what.contains(words)), "{what}");
                found += 1;
            }
        }
    }
    assert!(found > 0);
    Finder::Emulator
}

fn forgotten_between_tiles(name: &str) -> Finder {
    let (engine, domain) = per_sequence(name, PIPE);
    let mut seen = 0;
    for (seq_len, outcome) in judge_near_one(&engine, &domain) {
        if seq_len <= 512 {
            assert!(outcome.is_ok(), "{seq_len}: {outcome:?}");
        } else {
            let what = outcome.expect_err("a forgotten state");
            assert!(what.starts_with("outputs"), "{seq_len}: {what}");
            seen += 1;
        }
    }
    assert!(seen > 0);
    Finder::Contract
}

fn unshifted_in_scan(name: &str) -> Finder {
    let (engine, domain) = per_sequence(name, PIPE);
    let mut seen = 0;
    for (seq_len, outcome) in judge_near_one(&engine, &domain) {
        // Short sequences of sparse inputs may have no gradient at all.
        if seq_len > 100 {
            let what = outcome.expect_err("an unshifted coefficient");
            assert!(what.starts_with("d_inputs"), "{seq_len}: {what}");
            seen += 1;
        }
    }
    assert!(seen > 0);
    Finder::Contract
}

fn zero_for_missing_coefficients(name: &str) -> Finder {
    let tile = KernelChoice::Tile(TileConfig::DEFAULT);
    let (engine, domain) = per_sequence(name, tile);
    let (mut seen, mut hidden) = (0, 0);
    for (seq_len, outcome) in judge_near_one(&engine, &domain) {
        // A full tile lacks no coefficients.
        if seq_len == 1024 {
            assert!(outcome.is_ok(), "{outcome:?}");
            hidden += 1;
        } else if seq_len > 1 {
            seen += usize::from(outcome.is_err());
        }
    }
    assert!(seen > 0 && hidden > 0, "{seen} cases show it and {hidden} hide it");
    Finder::Contract
}

#[test]
fn the_correct_kernels_pass() {
    for (engine, domain) in [linrec_ref("ref-f32"), block_scan("block_scan")] {
        let report = contract::run::<f32>(&engine, &domain);
        println!("{report}");
        assert!(report.passed(), "{report}");
    }
    for ranges in CHAINED {
        let outputs = run_chained("long/chained", &[1.0, 3.0], ranges).unwrap();
        assert_eq!(outputs[1023], 6.0);
    }
    for order in [[0, 1], [1, 0]] {
        // From a state of 6 to 6 / 2 + 3.
        assert_eq!(run_mail("long/mailbox", &[1.0, 3.0], order), Ok(6.0));
    }
    run_once("once-4x512-f32", 1000).unwrap();
    for seq_len in [1, 255, 256, 257, 1000, 5000] {
        let (outputs, final_state) = run_look_back("look_back", seq_len).unwrap();
        let (inputs, coeffs) =
            (Array2::ones((1, seq_len)), Array2::from_elem((1, seq_len), 0.99_f32));
        let options = Options { initial: Some(array![50.0].into()), ..Options::default() };
        let rounding = Rounding { levels: Domain::tree_levels(seq_len), exp_ulps: 0.0 };
        let exact = reference::forward(inputs.view(), coeffs.view(), &options).unwrap();
        let bound =
            reference::forward_bound(inputs.view(), coeffs.view(), &options, rounding).unwrap();
        for (l, &output) in outputs.iter().enumerate() {
            let error = (f64::from(output) - exact.outputs[[0, l]]).abs();
            assert!(error <= bound.outputs[[0, l]], "step {l} of {seq_len}: off by {error}");
        }
        let error = (f64::from(final_state) - exact.final_state[0]).abs();
        assert!(error <= bound.final_state[0], "final state of {seq_len}: off by {error}");
    }
}

#[test]
fn block_scan_takes_any_length_up_to_its_tile() {
    for seq_len in [1, 4, 127, 128, 129, 300, 511, 512] {
        assert_eq!(run_block_scan("block_scan", seq_len), Ok(()), "{seq_len}");
    }
}

#[test]
fn every_mistake_is_one_edit_of_a_correct_kernel() {
    let mut names = BTreeSet::new();
    for mistake in Mistake::all() {
        let Mistake { name, find, replace, why, .. } = mistake;
        assert!(names.insert(name), "{name} is there twice");
        let planted = text(name);
        assert_eq!(planted.matches("MISTAKE").count(), 1, "{name} marks its mistake once");
        assert_eq!(planted.matches(&**replace).count(), 1, "{name}");
        assert!(find != replace && !why.is_empty(), "{name} is its twin");
        let lines = find.lines().count().max(replace.lines().count());
        assert!(lines <= 4, "{name} changes {lines} lines");
    }
    assert!(names.len() >= 37, "{} mistakes", names.len());
    // Edits that match nowhere, or in several places.
    let mistake = &Mistake::all()[0];
    let twin = kernels::source(&mistake.twin).unwrap();
    for twin in [String::new(), format!("{twin}\n{twin}")] {
        assert!(mistake.plant(&twin).unwrap_err().contains("not exactly once"));
    }
}

/// Makes a test of each function, which has the name of a mistake and returns what finds it.
macro_rules! mistakes {
    ($($name:ident),* $(,)?) => {
        const HERE: &[&str] = &[$(stringify!($name)),*];

        mod mistake {
            $(#[test]
            fn $name() {
                let name = stringify!($name);
                let finder = super::$name(name);
                assert_eq!(super::planted(name).found_by, finder, "{name}");
            })*
        }
    };
}

mistakes! {
    barrier_for_one_lane,
    barrier_in_divergent_branch,
    copies_not_awaited,
    early_exit_before_shuffle,
    epoch_before_state,
    epoch_that_stays,
    forgotten_between_tiles,
    head_forgotten,
    lanes_of_other_rows,
    last_coefficient_twice,
    lost_carry,
    mail_of_any_epoch,
    mail_without_fence,
    missing_barrier_after_publishing,
    missing_barrier_before_reuse,
    one_place_for_totals,
    out_of_bounds_tail,
    published_by_a_plain_store,
    published_too_early,
    published_without_release,
    row_offset_32_bits,
    shuffle_in_divergent_branch,
    slot_taken_too_early,
    taken_before_published,
    tile_by_number,
    totals_not_in_turns,
    uninitialised_shared_memory,
    unpublished_neighbour,
    unshifted_coefficient,
    unshifted_in_scan,
    vector_not_aligned,
    wrong_shuffle_mask,
    zero_for_missing_coefficients,
}

fn planted(name: &str) -> &'static Mistake {
    let found = Mistake::all().iter().find(|mistake| mistake.name == name);
    found.unwrap_or_else(|| panic!("kernels/mistakes.toml has no {name}"))
}

/// A mistake is found by the test of its name here; the mistakes of the fused scan by the tests of
/// chapter 14, which examine all of them. Nothing is found in a twin: `the_correct_kernels_pass`
/// and the same chapter run those outside of the catalogue, and `contract` runs the catalogue.
#[test]
fn every_mistake_and_its_twin_are_tested() {
    const TWINS: [&str; 5] =
        ["block_scan.cu", "linrec_ref.cu", "long/chained.cu", "long/mailbox.cu", "look_back.cu"];
    let chapter_14 = "fused/quad.cu";
    let in_catalogue: Vec<_> = KernelChoice::shipped(ElementType::F32)
        .map(|choice| format!("linrec_{}.cu", choice.name()))
        .collect();
    for Mistake { name, twin, .. } in Mistake::all() {
        assert!(HERE.contains(&&**name) || twin == chapter_14, "no test finds {name}");
        let judged = TWINS.contains(&&**twin) || in_catalogue.contains(twin) || twin == chapter_14;
        assert!(judged, "no test runs {twin}, the twin of {name}");
    }
    for name in HERE {
        planted(name);
    }
}
