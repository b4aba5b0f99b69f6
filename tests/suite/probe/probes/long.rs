//! The kernels for one long sequence, with tiles of 256 steps.

use linrec::device::{Buffer, Function, Launch, Launched};
use linrec::reference;
use linrec::simt::Counters;
use linrec::{Direction, Error, Options};
use ndarray::{Array1, Array2};

use super::Ran;
use super::plan::tree;
use super::recurrences::{Problem, judge, rows};

/// Threads of a block, steps of a tile, and tiles.
const THREADS: u32 = 64;
const TILE: usize = 256;
const TILES: usize = 4;

/// Launches a kernel with communicating blocks twice with one workspace, over other inputs and then
/// over these; the block with the first tile is late. In the first launch the emulator runs the
/// later blocks first, as a GPU may.
pub fn communicating(kernel: &Function) -> Result<Ran, Error> {
    const SEQ_LEN: usize = TILE * TILES - 24;
    let device = kernel.device();
    let problem = Problem::<f32>::new(1, SEQ_LEN, Direction::Forward);
    let (inputs, coeffs) = (problem.inputs.view(), problem.coeffs.view());
    let numbers = |array: &Array2<f32>| array.iter().copied().collect::<Vec<_>>();
    let (x, c) =
        (device.upload(&numbers(&problem.inputs))?, device.upload(&numbers(&problem.coeffs))?);
    let others = device.upload(&vec![7.0_f32; SEQ_LEN])?;
    let start = problem.options.initial.as_ref().map(|start| device.upload(&start.to_vec()));
    let start = start.transpose()?;
    let mut workspace = device.allocate_named::<u32>("workspace", 32 * (TILES + 1))?;
    workspace.zero()?;
    let delays = device.upload(&[200_i32, 0, 0, 0])?;
    let mut y = device.allocate_named::<f32>("outputs", SEQ_LEN)?;
    let mut last = device.allocate_named::<f32>("final_state", 1)?;
    let all = 0..TILES as u64;
    let (early, late) = (0..all.end / 2, all.end / 2..all.end);
    // A GPU runs whole grids only.
    let in_parts = if device.is_simt() { vec![late, early] } else { vec![all.clone()] };
    let mut counters = Counters::default();
    for (x, parts) in [(&others, in_parts), (&x, vec![all])] {
        y.poison()?;
        last.poison()?;
        for blocks in parts {
            let launch = kernel.launch(TILES as u32, THREADS).arg(x).arg(&c).arg(&mut y);
            let launch = launch.arg(start.as_ref()).arg(&mut last).arg(SEQ_LEN as i64);
            let mut launch = launch.arg(&mut workspace).arg(&delays);
            if device.is_simt() {
                launch = launch.blocks(blocks);
            }
            add(&mut counters, &launch.run(&device.stream())?);
        }
        device.synchronize()?;
    }
    let exact = reference::forward(inputs, coeffs, &problem.options)?;
    let bound = reference::forward_bound(inputs, coeffs, &problem.options, tree(SEQ_LEN))?;
    let (outputs, last) = (rows(1, SEQ_LEN, y.download()?), Array1::from_vec(last.download()?));
    let verdict = judge("outputs", &outputs, &exact.outputs, &bound.outputs)
        .and_then(|()| judge("final_state", &last, &exact.final_state, &bound.final_state));
    Ok(Ran { counters: device.is_simt().then_some(counters), verdict })
}

/// Computes rows cut over three devices that reach each other's memory, which here are one device:
/// two launches of each, with the same mailboxes, over other inputs and then over these. The
/// emulator runs them alongside each other; a GPU runs them in the order in which states pass
/// through them.
pub fn mailbox(kernel: &Function) -> Result<Ran, Error> {
    const ROWS: usize = 3;
    const RANKS: usize = 3;
    const STRETCH: usize = TILE + 88;
    const LINE: usize = 32; // words
    let device = kernel.device();
    let mut problem = Problem::<f32>::new(ROWS, RANKS * STRETCH, Direction::Forward);
    problem.options.initial = None;
    let part = |array: &Array2<f32>, rank: usize| -> Vec<f32> {
        array.slice(ndarray::s![.., rank * STRETCH..(rank + 1) * STRETCH]).iter().copied().collect()
    };
    let mut mail = device.allocate_named::<u32>("mail", RANKS * ROWS * LINE)?;
    mail.zero()?;
    let boxes: Result<Vec<_>, Error> =
        (0..RANKS).map(|rank| mail.slice(rank * ROWS * LINE..(rank + 1) * ROWS * LINE)).collect();
    let boxes = boxes?;
    let mut counters = Counters::default();
    let mut outputs = Array2::zeros((ROWS, RANKS * STRETCH));
    for (epoch, is_last) in [(1_u32, false), (2, true)] {
        let mut arrays = Vec::new();
        for rank in 0..RANKS {
            let x = match is_last {
                true => part(&problem.inputs, rank),
                false => vec![7.0; ROWS * STRETCH],
            };
            let mut y = device.allocate_named::<f32>("outputs", ROWS * STRETCH)?;
            y.poison()?;
            arrays.push((device.upload(&x)?, device.upload(&part(&problem.coeffs, rank))?, y));
        }
        let mut to: Vec<_> = boxes[1..].iter().map(|next| next.slice(..).map(Some)).collect();
        to.push(Ok(None));
        let mut to = to.into_iter().collect::<Result<Vec<_>, Error>>()?;
        let launches = arrays.iter_mut().zip(&mut to).enumerate().map(|(rank, ((x, c, y), to))| {
            let from = (rank > 0).then(|| &boxes[rank]);
            let launch = kernel.launch(ROWS as u32, THREADS).arg(&*x).arg(&*c).arg(y);
            launch.arg(from).arg(to.as_mut()).arg(epoch).arg(STRETCH as i64)
        });
        if device.is_simt() {
            let launches: Vec<_> = launches.collect();
            for launched in Launch::run_side_by_side(&launches)? {
                add(&mut counters, &launched);
            }
        } else {
            for launch in launches {
                launch.run(&device.stream())?;
            }
        }
        for (rank, (_, _, y)) in arrays.iter().enumerate() {
            let steps = rank * STRETCH..(rank + 1) * STRETCH;
            let mut place = outputs.slice_mut(ndarray::s![.., steps]);
            place.iter_mut().zip(y.download()?).for_each(|(to, from)| *to = from);
        }
    }
    let (inputs, coeffs) = (problem.inputs.view(), problem.coeffs.view());
    let exact = reference::forward(inputs, coeffs, &problem.options)?;
    let rounding = tree(RANKS * STRETCH);
    let bound = reference::forward_bound(inputs, coeffs, &problem.options, rounding)?;
    let verdict = judge("outputs", &outputs, &exact.outputs, &bound.outputs);
    Ok(Ran { counters: device.is_simt().then_some(counters), verdict })
}

/// Computes the transition of each tile.
pub fn reduce(kernel: &Function) -> Result<Ran, Error> {
    let device = kernel.device();
    // Every tile is a separate sequence.
    let problem = Problem::<f32>::new(TILES, TILE, Direction::Forward);
    let (x, c) = arrays(kernel, &problem)?;
    let mut tiles = device.allocate_named::<f32>("tiles", 2 * TILES)?;
    tiles.poison()?;
    let launch = kernel.launch(TILES as u32, THREADS).arg(&x).arg(&c);
    let launched = launch.arg((TILES * TILE) as i64).arg(&mut tiles).run(&device.stream())?;
    let tiles = rows(TILES, 2, tiles.download()?);

    // The product of the coefficients is the final state from one without inputs.
    let nothing = Array2::zeros((TILES, TILE));
    let from_one =
        Options { initial: Some(Array1::<f32>::ones(TILES).into()), ..Options::default() };
    let cases =
        [("coeff", nothing.view(), from_one), ("state", problem.inputs.view(), Options::default())];
    let mut verdict = Ok(());
    for (place, (name, inputs, options)) in cases.into_iter().enumerate() {
        let coeffs = problem.coeffs.view();
        let exact = reference::forward(inputs, coeffs, &options)?.final_state;
        let bound = reference::forward_bound(inputs, coeffs, &options, tree(TILE))?.final_state;
        let found = tiles.column(place).to_owned();
        verdict = verdict.and_then(|()| judge(name, &found, &exact, &bound));
    }
    Ok(Ran { counters: launched.counters().cloned(), verdict })
}

/// Computes the state before each tile, with more tiles than the block takes at a time.
pub fn scan(kernel: &Function) -> Result<Ran, Error> {
    const MANY: usize = 4096 + 77;
    let device = kernel.device();
    let problem = Problem::<f32>::new(1, MANY, Direction::Forward);
    let pairs = problem.coeffs.iter().zip(&problem.inputs).flat_map(|(&c, &x)| [c, x]);
    let tiles = device.upload(&pairs.collect::<Vec<_>>())?;
    let start = problem.options.initial.as_ref().map_or(0.0, |start| start[0]);
    let initial = device.upload(&[start])?;
    let mut states = device.allocate_named::<f32>("states", MANY)?;
    states.poison()?;
    let launch = kernel.launch(1, 1024).arg(&tiles).arg(&initial).arg(&mut states);
    let launched = launch.arg(MANY as i32).run(&device.stream())?;
    let states = states.download()?;

    // The state before a tile is the state after the tile before.
    let (inputs, coeffs) = (problem.inputs.view(), problem.coeffs.view());
    let exact = reference::forward(inputs, coeffs, &problem.options)?.outputs;
    let bound = reference::forward_bound(inputs, coeffs, &problem.options, tree(MANY))?.outputs;
    let before = |array: &Array2<f64>| array.iter().take(MANY - 1).copied().collect::<Array1<_>>();
    let found = Array1::from_vec(states[1..].to_vec());
    let verdict = judge("states", &found, &before(&exact), &before(&bound));
    let first = states[0].to_bits() == start.to_bits();
    let verdict =
        verdict.and_then(|()| if first { Ok(()) } else { Err(String::from("states[0]")) });
    Ok(Ran { counters: launched.counters().cloned(), verdict })
}

/// Computes the outputs of each tile from the state before it.
pub fn apply(kernel: &Function) -> Result<Ran, Error> {
    let device = kernel.device();
    let problem = Problem::<f32>::new(TILES, TILE, Direction::Forward);
    let (x, c) = arrays(kernel, &problem)?;
    let start = problem.options.initial.as_ref().map_or(Vec::new(), |start| start.to_vec());
    let states = device.upload(&start)?;
    let mut y = device.allocate_named::<f32>("outputs", TILES * TILE)?;
    let mut last = device.allocate_named::<f32>("final_state", 1)?;
    y.poison()?;
    last.poison()?;
    let launch = kernel.launch(TILES as u32, THREADS).arg(&x).arg(&c).arg(&mut y).arg(&states);
    let launch = launch.arg(&mut last).arg((TILES * TILE) as i64);
    let launched = launch.run(&device.stream())?;

    let (inputs, coeffs) = (problem.inputs.view(), problem.coeffs.view());
    let exact = reference::forward(inputs, coeffs, &problem.options)?.outputs;
    let bound = reference::forward_bound(inputs, coeffs, &problem.options, tree(TILE))?.outputs;
    let outputs = rows(TILES, TILE, y.download()?);
    let is_last = last.download()?[0].to_bits() == outputs[[TILES - 1, TILE - 1]].to_bits();
    let verdict = judge("outputs", &outputs, &exact, &bound)
        .and_then(|()| if is_last { Ok(()) } else { Err(String::from("final_state")) });
    Ok(Ran { counters: launched.counters().cloned(), verdict })
}

fn arrays(kernel: &Function, problem: &Problem<f32>) -> Result<(Buffer<f32>, Buffer<f32>), Error> {
    let numbers = |array: &Array2<f32>| array.iter().copied().collect::<Vec<_>>();
    let device = kernel.device();
    Ok((device.upload(&numbers(&problem.inputs))?, device.upload(&numbers(&problem.coeffs))?))
}

fn add(counters: &mut Counters, launched: &Launched) {
    if let Some(counted) = launched.counters() {
        *counters += counted;
    }
}
