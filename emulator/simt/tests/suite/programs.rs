//! Random programs that are right come to the same however they are written, and in whatever order
//! their blocks run. Mutated kernels, on any arguments, give counters or a report and do nothing
//! else.

use std::collections::BTreeSet;

use simt::Module;
use simt_fuzz::execution::{Outcome, corpus, execute, input};
use simt_fuzz::parser::Random;
use simt_fuzz::programs::{Program, Way, Writing, inputs, module, results, word_name};

#[test]
fn programs_give_the_same_bits_in_every_writing_and_every_order() {
    let mut different = BTreeSet::new();
    for seed in 0..PROGRAMS {
        let program = Program::new(seed);
        match found(&program, seed, &BTreeSet::new()) {
            Ok(words) => assert!(different.insert(words), "seed {seed} does nothing"),
            Err(_) => {
                let omitted =
                    program.superfluous(|omitted| found(&program, seed, omitted).is_err());
                let what = found(&program, seed, &omitted).unwrap_err();
                let text = program.text(&omitted, Writing::default());
                panic!("seed {seed}: {what}\n{text}");
            }
        }
    }
}

/// The results of a program, if they are the same in all ways.
fn found(program: &Program, seed: u64, omitted: &BTreeSet<u32>) -> Result<Vec<u32>, String> {
    let given = inputs(seed);
    let mut first: Option<Vec<u32>> = None;
    for (writing, way) in WAYS {
        let source = module(&[program.kernel("program", omitted, writing)]);
        let parsed = Module::parse(&source).map_err(|error| error.to_string())?;
        let kernel = parsed.kernel("program").ok_or_else(|| {
            let refusal = parsed.refusal("program").expect("it is there or refused");
            let line = source.lines().nth(refusal.line as usize - 1).unwrap_or_default();
            format!("{refusal}: {line}")
        })?;
        let found = results(kernel, &given, way).map_err(|report| {
            let line = source.lines().nth((report.line as usize).max(1) - 1).unwrap_or_default();
            format!("{report}: {line}")
        })?;
        let wanted = first.get_or_insert_with(|| found.clone());
        if let Some(word) = (0..found.len()).find(|&word| found[word] != wanted[word]) {
            let (name, found, wanted) = (word_name(word), found[word], wanted[word]);
            return Err(format!("{writing:?}, {way:?}: {name} is {found:#x}, not {wanted:#x}"));
        }
    }
    Ok(first.unwrap_or_default())
}

const PROGRAMS: u64 = 200;

const WAYS: [(Writing, Way); 4] = [
    (Writing { turned: 0, with_dead_code: false, branches_to: false }, Way::InOrder),
    (Writing { turned: 3, with_dead_code: false, branches_to: true }, Way::Backwards),
    (Writing { turned: 0, with_dead_code: true, branches_to: false }, Way::Together),
    (Writing { turned: 5, with_dead_code: true, branches_to: true }, Way::Traced),
];

#[test]
fn mutated_kernels_neither_panic_nor_escape() {
    let (corpus, mut random) = (corpus(), Random(1));
    let (mut ran, mut reported) = (0, std::collections::HashMap::new());
    for number in 0..RUNS {
        let (source, seed) = (input(&corpus, &mut random), random.draw());
        match std::panic::catch_unwind(|| execute(&source, &mut Random(seed))) {
            Ok(Outcome::Refused) => {}
            Ok(Outcome::Ran) => ran += 1,
            Ok(Outcome::Reported(kind)) => *reported.entry(kind).or_insert(0) += 1,
            Err(_) => {
                panic!("number {number} with seed {seed}:\n{}", String::from_utf8_lossy(&source))
            }
        }
    }
    // So that no change makes the parser refuse nearly all of them.
    assert!(ran > RUNS / 100, "{ran} of {RUNS} ran: {reported:?}");
    assert!(reported.len() >= 8, "{reported:?}");
}

const RUNS: usize = 6_000;
