//! Level 2: the lanes of a warp, round after round.

use ch02_two_threads::Transition;
use linrec::lesson::{self, Kind, Lesson, Table, plot};

use super::layout::STEPS;
use super::picture::Rounds;
use crate::layout::shares;
use crate::levels::LANES;
use crate::watch::watch;

/// The lanes that are written out.
const SHOWN: [usize; 5] = [0, 1, 2, 3, 7];

/// Watches the shuffles of a warp.
pub fn warp(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("warp", "Level 2: the lanes of a warp")?;
    let watched = watch(&[1.0; STEPS], &[0.5; STEPS])?;
    // Before the first round, and after each of the five.
    let rounds = &watched.rounds;
    lesson.say(&format!(
        "The same {STEPS} steps: all inputs 1, all coefficients 1/2. A lane holds a transition: what it multiplies \
         the state with, and what it adds. The product 2^-k says that it spans k steps. Here are some lanes in \
         every round, and in the figure all of them.",
    ));
    let header = ["".into(), "from below".into()].into_iter();
    let mut table = Table::new(header.chain(SHOWN.map(|lane| format!("lane {lane}"))));
    for (round, lanes) in rounds.iter().enumerate() {
        let name = if round == 0 { "level 1".to_owned() } else { format!("round {round}") };
        let reach = if round == 0 { "–".to_owned() } else { (1 << (round - 1)).to_string() };
        let shown = SHOWN.map(|lane| &lanes[lane]);
        let shown = shown.map(|lane| format!("2^-{}, {}", span(lane), lane.state));
        table.row([name, reach].into_iter().chain(shown));
    }
    lesson.table("rounds.csv", Kind::Computed, &table)?;

    let shares = shares(STEPS, LANES);
    let last = rounds.last().map_or(&[][..], Vec::as_slice);
    let end = |lane: usize| shares[lane].steps().end;
    let wrong = (0..LANES).filter(|&lane| span(&last[lane]) != end(lane)).count();
    lesson.check("lanes that do not reach back to the first step", wrong as f64, 0.0);
    // 1 + 1/2 + 1/4 + … is 2 - 2^(1-k), which f32 holds for the k of the shown lanes.
    let shown = rounds.iter().flat_map(|lanes| SHOWN.map(|lane| lanes[lane]));
    let off = shown.map(|lane| f64::from((lane.state - (2.0 - 2.0 * lane.coeff)).abs()));
    lesson.check("states of those lanes off 2 - 2 * 2^-k", off.fold(0.0, f64::max), 0.0);
    lesson.value("rounds", rounds.len() - 1, Kind::Computed);
    let done =
        |round: usize| (0..LANES).filter(|&lane| span(&rounds[round][lane]) == end(lane)).count();
    lesson.value("done_after_1", done(1), Kind::Computed);
    lesson.value("done_after_3", done(3), Kind::Computed);

    let spans = rounds.iter().map(|lanes| lanes.iter().map(span).collect()).collect();
    let ends = (0..LANES).map(end).collect();
    let svg = plot::grid(&[&Rounds { spans, ends }], 1)?;
    lesson.figure("rounds.svg", "How far back a lane reaches", Kind::Computed, &svg)
}

/// The steps that a transition spans, if all coefficients are 1/2.
fn span(transition: &Transition<f32>) -> usize {
    -transition.coeff.log2().round() as usize
}
