//! The recurrence over ranks: the contract, and equal bits.
//!
//! Every way to find the state before a stretch (two passes, the tail first, mailboxes)
//! holds the contract, for several numbers of ranks and pieces and for every storage type. Further
//! tests compare bits: with one device, with another number of ranks, and between passes that reuse
//! the same mailboxes. The emulator's counters show which bytes and which mail each way takes.

use super::{SIZES, emulated};
use half::{bf16, f16};
use linrec::contract::{self, CoeffKind, Domain, Table};
use linrec::device::{
    BackwardOptions, Choice, Device, ForwardOptions, Group, GroupEngine, GroupRecurrence,
    KernelEngine, Rank, Split, Storage, Way,
};
use linrec::kernels::{ElementType, KernelChoice};
use linrec::simt::Access;
use linrec::{Direction, Element, Engine, Options, reference};
use num_complex::Complex;

/// Judges an engine over `drawn` cases, or over the whole table if the environment asks for it.
fn hold<S: Storage>(engine: &GroupEngine<S>, drawn: usize) {
    let full = engine.domain().as_asked();
    let quick = full.table == Table::Quick;
    judge::<S>(engine, if quick { Domain { table: Table::Drawn(drawn), ..full } } else { full });
}

pub(super) fn judge<S: Storage>(engine: &GroupEngine<S>, domain: Domain) {
    let report = contract::run_stored::<S>(engine, &domain);
    println!("{report}");
    assert!(report.passed(), "{report}");
}

#[test]
fn sequences_that_are_cut_hold_the_contract() {
    for ranks in SIZES {
        hold::<f32>(&GroupEngine::new(emulated(ranks), Split::Steps), 20);
    }
}

#[test]
fn sequences_of_fewer_steps_than_ranks_hold_the_contract() {
    for ranks in [2, 8] {
        let engine = GroupEngine::<f32>::new(emulated(ranks), Split::Steps);
        judge(&engine, Domain { max_len: ranks + 1, table: Table::Quick, ..engine.domain() });
    }
}

#[test]
fn sequences_distributed_over_ranks_hold_the_contract() {
    for ranks in SIZES {
        hold::<f32>(&GroupEngine::new(emulated(ranks), Split::Rows), 20);
    }
}

#[test]
fn several_pieces_on_each_rank_hold_the_contract() {
    for (ranks, pieces) in [(1, 4), (2, 8), (3, 6)] {
        let engine = GroupEngine::new(emulated(ranks), Split::Steps).with_pieces(pieces);
        hold::<f32>(&engine, 20);
    }
}

#[test]
fn the_tail_first_holds_the_contract() {
    let engine = |ranks| GroupEngine::new(emulated(ranks), Split::Steps).with_way(Way::TailFirst);
    for ranks in SIZES {
        hold::<f32>(&engine(ranks), 12);
    }
    let engine = engine(8);
    judge::<f32>(&engine, Domain { max_len: 9, table: Table::Quick, ..engine.domain() });
}

/// The last piece is shorter, or the last pieces are empty.
#[test]
fn lengths_that_cannot_be_divided_have_the_bits_of_their_pieces() {
    let [forward, reverse] = [Direction::Forward, Direction::Reverse];
    // The bits are the same if rows and pieces begin at multiples of 16 bytes.
    for (num_seqs, seq_len, direction, has_bits) in [
        (3, 16 * 1024 + 4, forward, true),
        (1, 16 * 1024 + 1, reverse, true),
        (1, 49, forward, true),
        (2, 16 * 1024 + 1, reverse, false),
        (3, 8 * 40 + 3, forward, false),
        (2, 19, reverse, false),
    ] {
        let case = dense(num_seqs, seq_len, direction, CoeffKind::NearOne);
        let mut first = None;
        for ranks in [1, 2, 4, 8] {
            for group in [emulated(ranks), shared(ranks)] {
                let engine = GroupEngine::<f32>::new(group, Split::Steps).with_pieces(16);
                contract::check(&engine, &engine.domain(), &case)
                    .unwrap_or_else(|what| panic!("{case}: {what}"));
                let found = bits_of::<f32>(&engine, &case);
                let is_first = *first.get_or_insert(found.clone()) == found;
                assert!(is_first || !has_bits, "{case}: {}", engine.name());
            }
        }
    }
    // By the usual number of pieces.
    for group in [emulated(3), shared(3)] {
        let engine = GroupEngine::<f32>::new(group, Split::Steps);
        let case = dense(2, (1 << 16) + 1, forward, CoeffKind::NearOne);
        contract::check(&engine, &engine.domain(), &case)
            .unwrap_or_else(|what| panic!("{case}: {what}"));
    }
}

/// Makes ranks that reach each other's memory, since they share an emulated device.
fn shared(ranks: usize) -> Group {
    Group::through_host(&vec![Device::simt(); ranks]).expect("there are devices")
}

#[test]
fn mailboxes_hold_the_contract() {
    // By all blocks together; by one block for each sequence, if another kernel is named; and
    // between two passes.
    fn engines<S: Storage>(ranks: usize) -> [GroupEngine<S>; 3] {
        // Not every kernel is shipped for every type, and there may be no compiler.
        let other = KernelChoice::shipped(S::ELEMENT).find(|kernel| !kernel.takes_mail());
        let other: Choice = other.expect("there are others").into();
        let (once, twice) = (Way::Mailboxes, Way::Passes);
        [(Choice::Fastest, once), (other, once), (Choice::Fastest, twice)]
            .map(|(choice, way)| GroupEngine::by(shared(ranks), Split::Steps, choice).with_way(way))
    }
    fn by_mail<S: Storage>(ranks: usize, drawn: usize) {
        for engine in engines::<S>(ranks) {
            hold::<S>(&engine, drawn);
        }
    }
    for ranks in SIZES {
        by_mail::<f32>(ranks, 6);
    }
    // Fewer steps than ranks as well.
    for engine in engines::<f32>(3) {
        judge::<f32>(&engine, Domain { max_len: 4, table: Table::Quick, ..engine.domain() });
    }
    by_mail::<f64>(3, 4);
    by_mail::<bf16>(3, 4);
    by_mail::<f16>(3, 4);
    by_mail::<Complex<f32>>(3, 4);
    by_mail::<Complex<f64>>(3, 4);
}

/// Passes one after the other, in both directions, with the same mailboxes and then with others.
#[test]
fn mailboxes_serve_one_pass_after_the_other() {
    for ranks in [2, 4] {
        let parts = shared(ranks).run(|rank| {
            let by = |way| GroupRecurrence::<f32>::new(rank, Split::Steps).with_way(way);
            let (mail, passes) = (by(Way::Mailboxes), by(Way::Passes).with_pieces(ranks));
            let in_blocks = KernelChoice::default();
            let in_blocks = GroupRecurrence::<f32>::by(rank, Split::Steps, in_blocks)?;
            let in_blocks = in_blocks.with_way(Way::Mailboxes);
            for (turn, rows) in [3, 3, 3, 7, 2].into_iter().enumerate() {
                let shape = (rows, 40 * ranks);
                let len = mail.part(shape)?.len();
                let numbers = |factor: usize| -> Vec<f32> {
                    (0..len).map(|index| ((index + turn) * factor % 8) as f32 / 8.0).collect()
                };
                let x = rank.device().upload(&numbers(5))?;
                let c = rank.device().upload(&numbers(3))?;
                let mut results = Vec::new();
                for recurrence in [&mail, &in_blocks, &passes] {
                    for direction in [Direction::Forward, Direction::Reverse, Direction::Forward] {
                        let mut y = rank.device().allocate(len)?;
                        let (mut dx, mut dc) =
                            (rank.device().allocate(len)?, rank.device().allocate(len)?);
                        let options = ForwardOptions { direction, ..Default::default() };
                        recurrence.forward_into(&x, &c, &mut y, shape, options)?;
                        let options = BackwardOptions { direction, ..Default::default() };
                        recurrence.backward_into(&x, &c, &y, &mut dx, &mut dc, shape, options)?;
                        results.extend([y.download()?, dx.download()?]);
                    }
                }
                let (by_mail, exact) = results.split_at(2 * results.len() / 3);
                let near = |a: &f32, b: &f32| (a - b).abs() <= 1e-5 * (1.0 + b.abs());
                let near =
                    |(a, b): (&Vec<f32>, &Vec<f32>)| a.iter().zip(b).all(|(a, b)| near(a, b));
                let both = exact.iter().chain(exact);
                assert!(by_mail.iter().zip(both).all(near), "turn {turn} on {ranks} ranks");
            }
            Ok(())
        });
        parts.unwrap();
    }
}

#[test]
fn mailboxes_need_memory_that_ranks_reach() {
    let ones = ndarray::Array2::<f32>::ones((2, 64));
    let by_mail = |group| GroupEngine::<f32>::new(group, Split::Steps).with_way(Way::Mailboxes);
    let outcome = by_mail(emulated(2)).forward(ones.view(), ones.view(), &Options::default());
    let error = outcome.unwrap_err().to_string();
    assert!(error.contains("reaching the memory of simt:"), "{error}");
    let engine = by_mail(shared(2)).with_pieces(4);
    let outcome = engine.forward(ones.view(), ones.view(), &Options::default());
    assert!(outcome.unwrap_err().to_string().contains("4 pieces by mailboxes"));
}

/// Tests enough pieces that they are walked in groups or, if the last group would not be full, in
/// turns.
#[test]
fn many_pieces_hold_the_contract() {
    let passes = |ranks| GroupEngine::<f32>::new(emulated(ranks), Split::Steps);
    let by_mail = |ranks| GroupEngine::<f32>::new(shared(ranks), Split::Steps);
    let [forward, reverse] = [Direction::Forward, Direction::Reverse];
    let groups = vec![(passes(1), reverse), (passes(4), reverse), (by_mail(8), reverse)];
    let turns = vec![(passes(1), forward), (by_mail(2), forward)];
    for (pieces, engines) in [(1024, groups), (2080, turns)] {
        let mut first = None;
        for (engine, direction) in engines {
            let case = dense(1, 4 * pieces, direction, CoeffKind::NearOne);
            let engine = engine.with_pieces(pieces);
            contract::check(&engine, &engine.domain(), &case)
                .unwrap_or_else(|what| panic!("{case}: {what}"));
            let found = bits_of::<f32>(&engine, &case);
            assert!(*first.get_or_insert(found.clone()) == found, "{}", engine.name());
        }
    }
}

/// Makes a case with an initial state.
fn dense(
    num_seqs: usize,
    seq_len: usize,
    direction: Direction,
    coeffs: CoeffKind,
) -> contract::Case {
    contract::Case {
        num_seqs,
        seq_len,
        direction,
        initial: true,
        coeffs,
        log_coeffs: false,
        inputs: contract::InputKind::Dense,
        layout: contract::Layout::Standard,
    }
}

/// The rounding of a late input in a piece does not grow with the tiles before it: here each tile
/// would round it up.
#[test]
fn long_pieces_are_put_together_as_a_tree() {
    const TILE: usize = 2048;
    let seq_len = 1 << 18;
    let mut inputs = ndarray::Array2::<f32>::zeros((1, seq_len));
    let half = seq_len / 2;
    let little = 0.99 * f32::EPSILON / 2.0;
    (TILE - 1..half - 1).step_by(TILE).for_each(|step| inputs[[0, step]] = little);
    inputs[[0, half - 1]] = 1.0;
    let coeffs = ndarray::Array2::ones((1, seq_len));
    for (group, way) in [
        (emulated(2), Way::Passes),
        (emulated(2), Way::TailFirst),
        (shared(2), Way::Passes),
        (shared(2), Way::TailByMail),
    ] {
        let engine = GroupEngine::<f32>::new(group, Split::Steps).with_way(way).with_pieces(2);
        let options = Options::default();
        let found = engine.forward(inputs.view(), coeffs.view(), &options).unwrap().outputs;
        let exact = reference::forward(inputs.view(), coeffs.view(), &options).unwrap().outputs;
        let domain = engine.domain();
        let (levels, exp_ulps) = ((domain.levels)(seq_len), domain.exp_ulps);
        let rounding = reference::Rounding { levels, exp_ulps };
        let bound = reference::forward_bound(inputs.view(), coeffs.view(), &options, rounding);
        let bound = bound.unwrap().outputs;
        // The step after the piece, where the bound allows the fewest roundings.
        let off = (f64::from(found[[0, half]]) - exact[[0, half]]).abs();
        assert!(off <= bound[[0, half]], "{way}: {off:e} of {:e}", bound[[0, half]]);
    }
}

/// Tests long stretches, in which the search for the tail covers several tiles, with coefficients
/// that fade, that do not, and that vanish.
pub(super) fn hold_over_tails<S>(engine: &GroupEngine<S>, seq_len: usize)
where
    S: Storage<Accum = S> + Element,
{
    for coeffs in [CoeffKind::Gate, CoeffKind::NearOne, CoeffKind::Zeros] {
        for direction in [Direction::Forward, Direction::Reverse] {
            let case = dense(2, seq_len, direction, coeffs);
            contract::check(engine, &engine.domain(), &case)
                .unwrap_or_else(|what| panic!("{case}: {what}"));
        }
    }
}

#[test]
fn the_tail_may_begin_anywhere() {
    for pieces in [2, 8] {
        let engine = GroupEngine::<f32>::new(emulated(2), Split::Steps);
        hold_over_tails(&engine.with_pieces(pieces).with_way(Way::TailFirst), 80_000);
    }
    let waves = KernelChoice::shipped(ElementType::F32).find(KernelChoice::takes_mail);
    let waves = waves.expect("one is shipped");
    for (ranks, seq_len) in [(2, 80_000), (4, 80_003)] {
        for kernel in [waves, KernelChoice::default()] {
            let engine = GroupEngine::<f32>::by(shared(ranks), Split::Steps, kernel);
            hold_over_tails(&engine.with_way(Way::TailByMail), seq_len);
        }
    }
    fn by_mail<S: Storage<Accum = S> + Element>() {
        let engine = GroupEngine::<S>::new(shared(2), Split::Steps).with_way(Way::TailByMail);
        hold_over_tails(&engine, 8_200);
    }
    by_mail::<f64>();
    by_mail::<Complex<f32>>();
}

/// States that are published early in one pass, late in the next, and early again.
#[test]
fn mailboxes_serve_tails_published_early_and_late() {
    let shape = (3, 2 * 20_480);
    let checked = shared(2).run(|rank| {
        let by = |way| GroupRecurrence::<f32>::new(rank, Split::Steps).with_way(way);
        let in_blocks = KernelChoice::default();
        let in_blocks = GroupRecurrence::<f32>::by(rank, Split::Steps, in_blocks)?;
        let by_mail = [by(Way::TailByMail), in_blocks.with_way(Way::TailByMail)];
        let passes = by(Way::Passes).with_pieces(2);
        let len = passes.part(shape)?.len();
        // Sums of eighths, which are exact while coefficients are one.
        let eighths: Vec<f32> = (0..len).map(|index| (index * 5 % 8) as f32 / 8.0).collect();
        let x = rank.device().upload(&eighths)?;
        for coeff in [0.5, 1.0, 0.5, 1.0, 1.0, 0.5] {
            let c = rank.device().upload(&vec![coeff; len])?;
            let computed = |recurrence: &GroupRecurrence<f32>| {
                let [mut y, mut dx, mut dc] = [(); 3].map(|()| rank.device().zeros(len).unwrap());
                recurrence.forward_into(&x, &c, &mut y, shape, Default::default())?;
                let options = Default::default();
                recurrence.backward_into(&x, &c, &y, &mut dx, &mut dc, shape, options)?;
                Ok::<_, linrec::Error>([y.download()?, dx.download()?])
            };
            let exact = computed(&passes)?;
            for recurrence in &by_mail {
                let found = computed(recurrence)?;
                let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-6 * b.abs();
                let near = found.iter().flatten().zip(exact.iter().flatten()).all(near);
                assert!(near, "coefficients of {coeff} on rank {}", rank.number());
            }
        }
        Ok(())
    });
    checked.unwrap();
}

/// Computes forward and backward by mail in two groups at the same time, which `make` makes over
/// the same devices, given whether in the opposite order. All inputs and coefficients are one.
pub(super) fn take_turns(
    make: impl Fn(bool) -> Group + Sync,
    rounds: usize,
    shape: (usize, usize),
) {
    let compute = |rank: &Rank| {
        let by = |way| GroupRecurrence::<f32>::new(rank, Split::Steps).with_way(way);
        let ways = [Way::Mailboxes, Way::Passes].map(by);
        for round in 0..rounds {
            let by_mail = &ways[round % 2];
            let (part, device) = (by_mail.part(shape)?, rank.device());
            let ones = device.upload(&vec![1.0_f32; part.len()])?;
            let [mut y, mut dx, mut dc] =
                [device.zeros(part.len())?, device.zeros(part.len())?, device.zeros(part.len())?];
            by_mail.forward_into(&ones, &ones, &mut y, shape, Default::default())?;
            let options = Default::default();
            by_mail.backward_into(&ones, &ones, &y, &mut dx, &mut dc, shape, options)?;
            let firsts = [y.download()?[0], dx.download()?[0]];
            let start = part.steps.start;
            assert_eq!(firsts, [start + 1, shape.1 - start].map(|first| first as f32), "{round}");
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        for is_reversed in [false, true] {
            let (make, compute) = (&make, &compute);
            scope.spawn(move || make(is_reversed).run(compute).expect("both groups go on"));
        }
    });
}

#[test]
fn groups_that_share_devices_take_turns() {
    // Emulated ranks that send mail share a device, which has no order.
    let devices = vec![Device::simt(); 2];
    let make = |_| Group::through_host(&devices).expect("there are devices");
    take_turns(make, 20, (3, 640));
}

/// After a pass that failed on one rank alone, its next pass would take the mail of another pass.
#[test]
fn ranks_with_different_mailboxes_get_an_error() {
    let outcome = shared(2).run(|rank| {
        let by_mail = || GroupRecurrence::<f32>::new(rank, Split::Steps);
        let (first, other) = (by_mail(), by_mail());
        let len = first.part((2, 640))?.len();
        let x = rank.device().zeros(len)?;
        let mut y = rank.device().zeros(len)?;
        first.forward_into(&x, &x, &mut y, (2, 640), Default::default())?;
        let second = if rank.number() == 0 { &first } else { &other };
        second.forward_into(&x, &x, &mut y, (2, 640), Default::default())
    });
    let error = outcome.unwrap_err().to_string();
    assert!(error.contains("ranks disagree") && error.contains("after mail 2 of 2"), "{error}");
}

/// With fading coefficients, a state is published before any rank asks for it, and only once.
#[test]
fn a_tail_is_published_before_its_stretch() {
    let shape = (3, 2 * 20_480);
    let mail = |way: Way, coeff: f32| {
        let counted = shared(2).run(|rank| {
            let in_blocks = KernelChoice::default();
            let recurrence = GroupRecurrence::<f32>::by(rank, Split::Steps, in_blocks)?;
            let recurrence = recurrence.with_way(way);
            let len = recurrence.part(shape)?.len();
            let x = rank.device().upload(&vec![1.0_f32; len])?;
            let c = rank.device().upload(&vec![coeff; len])?;
            let [mut y, mut dx, mut dc] =
                [rank.device().zeros(len)?, rank.device().zeros(len)?, rank.device().zeros(len)?];
            let forward = recurrence.forward_into(&x, &c, &mut y, shape, Default::default())?;
            let options = Default::default();
            let backward =
                recurrence.backward_into(&x, &c, &y, &mut dx, &mut dc, shape, options)?;
            Ok([forward, backward].map(|launched| {
                let counters = launched.counters().expect("the emulator counts");
                let sites = |word: &'static str| {
                    counters.sites.iter().filter(move |site| site.opcode.contains(word))
                };
                let sum = |word| sites(word).map(|site| site.bytes / 8).sum::<u64>();
                [sum("ld.relaxed.sys"), sum("st.relaxed.sys")]
            }))
        });
        counted.unwrap()
    };
    // For each rank and pass: how often it looked at mail, and how often it posted some. Each row's
    // state is posted once and received by the first look; its sender has looked once whether it
    // was posted early. Backward, outputs before the stretches are posted and received once, too.
    assert_eq!(mail(Way::TailByMail, 0.5), [[[3, 3], [3, 3]], [[3, 0], [6, 3]]]);
    let counted = mail(Way::TailByMail, 1.0);
    let [[forward, _], [after, _]] = counted[..] else { panic!("of two ranks") };
    assert!(forward == [3, 3] && after[0] > 3 && after[1] == 0, "{counted:?}");
}

/// If coefficients fade, the first pass reads the last tiles only.
#[test]
fn the_first_pass_reads_only_the_tail() {
    let shape = (2, 64 * 1024);
    let bytes = |way: Way, coeff: f32| {
        let counted = shared(2).run(|rank| {
            // By a kernel whose blocks do not communicate, in a piece for each rank.
            let kernel: KernelChoice = "pipe:8x64:0".parse().expect("it is one");
            let recurrence = GroupRecurrence::<f32>::by(rank, Split::Steps, kernel)?;
            let recurrence = recurrence.with_way(way).with_pieces(2);
            let len = recurrence.part(shape)?.len();
            let inputs = rank.device().upload(&vec![1.0_f32; len])?;
            let coeffs = rank.device().upload(&vec![coeff; len])?;
            let mut outputs = rank.device().allocate(len)?;
            let launched = recurrence.forward_into(
                &inputs,
                &coeffs,
                &mut outputs,
                shape,
                Default::default(),
            )?;
            let counters = launched.counters().expect("the emulator counts");
            let is_load = |access| matches!(access, Access::GlobalLoad | Access::CopyAsync);
            // Without the polls for mail.
            let loads = counters
                .sites
                .iter()
                .filter(|site| is_load(site.access) && !site.opcode.contains("relaxed.sys"));
            Ok(loads.map(|site| site.bytes).sum::<u64>() as f64 / len as f64)
        });
        counted.unwrap()[1]
    };
    // Inputs and coefficients, twice or once.
    for (way, coeff, least, most) in [
        (Way::Passes, 0.5, 16.0, 16.1),
        (Way::TailFirst, 1.0, 16.0, 16.1),
        (Way::TailFirst, 0.5, 8.0, 9.5),
        (Way::Mailboxes, 1.0, 8.0, 8.1),
        // The stretch and its tail; the last rank looks for no tail.
        (Way::TailByMail, 1.0, 8.0, 8.1),
    ] {
        let read = bytes(way, coeff);
        assert!((least..=most).contains(&read), "{way} over {coeff}: {read}");
    }
}

#[test]
fn every_type_holds_the_contract() {
    fn both<S: Storage>() {
        hold::<S>(&GroupEngine::new(emulated(3), Split::Steps), 20);
        let tail_first = GroupEngine::new(emulated(3), Split::Steps).with_way(Way::TailFirst);
        hold::<S>(&tail_first, 8);
        hold::<S>(&GroupEngine::new(emulated(2), Split::Rows), 10);
    }
    both::<f64>();
    both::<bf16>();
    both::<f16>();
    both::<Complex<f32>>();
    both::<Complex<f64>>();
}

#[test]
fn every_forward_kernel_may_compute_the_pieces() {
    for kernel in ["ref:64", "pipe:8x64:0", "waves:4x288"] {
        let kernel: KernelChoice = kernel.parse().unwrap();
        let engine = GroupEngine::by(emulated(2), Split::Steps, kernel).with_pieces(4);
        hold::<f32>(&engine, 12);
    }
}

/// Returns everything that an engine computes for a case of the table, as bytes.
pub(super) fn bits<S: Storage>(
    engine: &impl Engine<S::Accum>,
    num_seqs: usize,
    seq_len: usize,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    for direction in [Direction::Forward, Direction::Reverse] {
        for log_coeffs in [false, true] {
            let case = dense(num_seqs, seq_len, direction, CoeffKind::NearOne);
            bytes.extend(bits_of::<S>(engine, &contract::Case { log_coeffs, ..case }));
        }
    }
    bytes
}

fn bits_of<S: Storage>(engine: &impl Engine<S::Accum>, case: &contract::Case) -> Vec<u8> {
    let data = case.data::<S::Accum>();
    let options: &Options<_> = &data.options;
    let coeffs = data.coeffs();
    let out = engine.forward(data.inputs.view(), coeffs, options).unwrap();
    let y = out.outputs.mapv(|y| S::narrow(y).widen());
    let back = engine.backward(data.d_outputs.view(), coeffs, y.view(), options).unwrap();
    let arrays = [y, back.d_inputs, back.d_coeffs];
    let states = [out.final_state, back.d_initial];
    let all = arrays.iter().flatten().chain(states.iter().flatten());
    all.flat_map(|number| bytemuck::bytes_of(number).to_vec()).collect()
}

#[test]
fn sequences_distributed_over_ranks_have_the_bits_of_one_device() {
    fn same<S: Storage>() {
        for (num_seqs, seq_len) in [(17, 133), (5, 500)] {
            let one = bits::<S>(&Device::simt().engine::<S>(), num_seqs, seq_len);
            for ranks in SIZES {
                let engine = GroupEngine::<S>::new(emulated(ranks), Split::Rows);
                let got = bits::<S>(&engine, num_seqs, seq_len);
                assert!(got == one, "{} {num_seqs} x {seq_len}", engine.name());
            }
        }
    }
    same::<f32>();
    same::<bf16>();
    same::<Complex<f64>>();
}

#[test]
fn sequences_that_are_cut_have_the_bits_of_their_pieces() {
    fn same<S: Storage>() {
        for (num_seqs, seq_len) in [(3, 8 * 40), (1, 8 * 136)] {
            let engine =
                |ranks| GroupEngine::<S>::new(emulated(ranks), Split::Steps).with_pieces(8);
            let one = bits::<S>(&engine(1), num_seqs, seq_len);
            for ranks in [2, 4, 8] {
                assert!(bits::<S>(&engine(ranks), num_seqs, seq_len) == one, "{ranks} ranks");
            }
            for ranks in [2, 4, 8] {
                let by_mail = GroupEngine::<S>::new(shared(ranks), Split::Steps).with_pieces(8);
                assert!(bits::<S>(&by_mail, num_seqs, seq_len) == one, "{ranks} ranks, by mail");
            }
            let tail = |ranks| engine(ranks).with_way(Way::TailFirst);
            for ranks in [1, 4] {
                assert!(bits::<S>(&tail(ranks), num_seqs, seq_len) == one, "the tail first");
            }
            let other = GroupEngine::<S>::new(emulated(2), Split::Steps).with_pieces(2);
            assert!(bits::<S>(&other, num_seqs, seq_len) != one, "another number of pieces");
        }
    }
    same::<f32>();
    same::<f16>();
    same::<Complex<f32>>();
}

#[test]
fn long_sequences_are_cut_in_the_same_way_for_every_number_of_ranks() {
    let (num_seqs, seq_len) = (128, 16 * 1024);
    let [two, four] = [2, 4].map(|ranks| {
        let parts = emulated(ranks).run(|rank| {
            let recurrence = GroupRecurrence::<f32>::new(rank, Split::Steps);
            let part = recurrence.part((num_seqs, seq_len))?;
            let numbers = |factor: usize| {
                part.rows
                    .clone()
                    .flat_map(|row| part.steps.clone().map(move |step| (row, step)))
                    .map(|(row, step)| ((row * 31 + step * factor) % 97) as f32 / 97.0)
                    .collect::<Vec<_>>()
            };
            let inputs = rank.device().upload(&numbers(7))?;
            let coeffs = rank.device().upload(&numbers(13))?;
            let mut outputs = rank.device().allocate(part.len())?;
            recurrence.forward_into(
                &inputs,
                &coeffs,
                &mut outputs,
                (num_seqs, seq_len),
                Default::default(),
            )?;
            // The last output of each row, from the rank that has it.
            let outputs = outputs.download()?;
            Ok(outputs.chunks(part.steps.len()).map(|row| row[row.len() - 1]).collect::<Vec<_>>())
        });
        parts.unwrap().pop().unwrap()
    });
    assert!(two == four);
}

#[test]
fn one_rank_has_the_bits_of_one_device() {
    let alone = KernelEngine::<f32>::new(&Device::simt(), Choice::Fastest).unwrap();
    for split in [Split::Rows, Split::Steps] {
        let engine = GroupEngine::<f32>::new(emulated(1), split);
        assert!(bits::<f32>(&engine, 3, 700) == bits::<f32>(&alone, 3, 700));
    }
}
