//! A model on paper compared with measurements, and a simulation of many hosts.

use lesson::plot::{self, Chart};
use lesson::{Kind, Lesson, Table};
use linrec::device::{self, Links};

use super::pictures;
use crate::quoted;
use crate::simulate::{Cluster, Hop, MESSAGE, Stages, Way, Work};

/// The work of each GPU in the trials.
const WORK: Work = Work { rows: 13_200, steps: 16_384 };
/// The number of GPUs in a host.
const PER_HOST: usize = 8;
/// The nominal bandwidth of a network card of 400 Gbit/s for each GPU.
const BETWEEN_LINK: f64 = 50e9;
/// The number of groups in the measured pipeline.
const GROUPS: usize = 12;

fn cluster(between: f64) -> Cluster {
    let (inside, message) = (Links::H200, MESSAGE);
    Cluster { per_host: PER_HOST, inside, message, between, between_link: BETWEEN_LINK }
}

pub(super) fn paper(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("model", "A model on paper")?;
    let ranks = 4;
    let shape = (WORK.rows, WORK.steps * ranks);
    let alone = device::Way::Passes.expected(shape, 4, 1, Links::H200);
    let gathering = Links { peers: false, ..Links::H200 };
    let formula = |way: device::Way, links| way.expected(shape, 4, ranks, links);
    // The page's formula.
    let message = 2.0 * MESSAGE + (shape.0 * 4) as f64 / GROUPS as f64 / Links::H200.link;
    let pipeline = (GROUPS + ranks - 1) as f64 * (alone / 4.0 / GROUPS as f64 + message);
    let trials = quoted::trials()?;
    let trial = |words: &str| {
        trials.iter().find(|trial| trial.case.contains(words)).map(|trial| trial.value)
    };
    let simulated = |way| cluster(0.0).efficiency(WORK, ranks, way);
    lesson.say(&format!(
        "{} rows of {} steps over {ranks} GPUs of one host. Efficiency by the library's formulas, by the simulation, and as it was \
         measured by the trial programs:",
        shape.0, shape.1
    ));
    let mut table = Table::new(["way", "formula", "simulated", "measured"]);
    let (passes, boxes) =
        (formula(device::Way::Passes, gathering), formula(device::Way::Mailboxes, Links::H200));
    let rows = [
        ("two passes", passes, Way::Gather, "in two passes with"),
        ("pipeline of 12 groups", pipeline, Way::Pipeline(GROUPS), "pipeline of 12"),
        ("mailboxes", boxes, Way::Mailboxes, "an ordinary kernel"),
    ];
    let mut far: f64 = 0.0;
    for (name, formula, way, words) in rows {
        let (simulated, measured) = (simulated(way), trial(words).unwrap_or(f64::NAN));
        far = far.max((simulated - measured).abs());
        let cells = [alone / 4.0 / formula, simulated, measured].map(|part| format!("{part:.2}"));
        table.row([name.to_owned()].into_iter().chain(cells));
    }
    lesson.table("model.csv", Kind::Computed, &table)?;
    lesson.check("distance of simulated and measured efficiency", far, 0.03);
    let alone = cluster(0.0).alone(WORK);
    lesson.value("alone_us", format!("{:.0}", 1e6 * alone), Kind::Computed);

    let each = |groups: usize| Stages { ranks, groups, each: alone / groups as f64 };
    let pipeline = each(GROUPS).spans(|_| Hop::busy(MESSAGE));
    let waves = WORK.rows.div_ceil(Links::H200.at_a_time);
    let boxes = each(waves).spans(|_| Hop::seen_after(Links::H200.store));
    let svg = pictures::stages(&pipeline, &boxes)?;
    lesson.figure("stages.svg", "Who works when", Kind::Computed, &svg)?;
    Ok(())
}

pub(super) fn hosts(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("hosts", "Eight to 1024 GPUs")?;
    lesson.say(&format!(
        "A simulation. Each GPU has {} rows of {} steps, whatever the number of GPUs, so that rows grow with it. Hosts \
         of {PER_HOST} have the links that were measured. Between hosts nothing was measured: {:.0} GB/s is what a card of 400 Gbit/s \
         is called for, and a message is taken to cost 6, 20 or 60 µs. Efficiency at 20 µs:",
        WORK.rows,
        WORK.steps,
        BETWEEN_LINK * 1e-9,
    ));
    let counts: Vec<usize> = (3..=10).map(|power| 1 << power).collect();
    let ways = |cluster: Cluster, ranks: usize| {
        let groups = cluster.best_pipeline(WORK, ranks);
        let all = [Way::Gather, Way::Rounds, Way::TailFirst(0.05), Way::Pipeline(groups)];
        (groups, all.map(|way| cluster.efficiency(WORK, ranks, way)))
    };
    let header =
        ["GPUs", "all tell all", "in rounds", "tail first", "pipeline", "groups of the pipeline"];
    let mut table = Table::new(header);
    let simulated: Vec<_> = counts.iter().map(|&ranks| ways(cluster(20e-6), ranks)).collect();
    for (&ranks, &(groups, all)) in counts.iter().zip(&simulated) {
        let cells = all.map(|part| format!("{part:.2}"));
        table.row([ranks.to_string()].into_iter().chain(cells).chain([groups.to_string()]));
    }
    lesson.table("hosts.csv", Kind::Computed, &table)?;
    let most = simulated.last().map_or([0.0; 4], |&(_, most)| most);
    for (key, part) in ["gather", "rounds", "tail", "pipeline"].into_iter().zip(most) {
        lesson.value(&format!("hosts_{key}"), format!("{part:.2}"), Kind::Computed);
    }

    let mut slow = Table::new([
        "message between hosts",
        "all tell all",
        "in rounds",
        "tail first",
        "pipeline",
    ]);
    for between in [6e-6, 20e-6, 60e-6] {
        let (_, all) = ways(cluster(between), 256);
        let cells = all.map(|part| format!("{part:.2}"));
        slow.row([format!("{:.0} µs", between * 1e6)].into_iter().chain(cells));
    }
    lesson.say("The same for 256 GPUs, where messages between hosts cost less or more:");
    lesson.table("between.csv", Kind::Computed, &slow)?;

    let names = ["All tell all", "In rounds", "Tail first", "Pipeline"];
    let mut chart = Chart::new("Efficiency over many hosts")
        .axes("GPUs", "part of the time in which a GPU does its own work")
        .log_x(2.0)
        .y_range(0.0, 1.0);
    for (index, name) in names.into_iter().enumerate() {
        let points = counts.iter().zip(&simulated);
        let points = points.map(|(&ranks, (_, all))| (ranks as f64, all[index]));
        chart = chart.line(name, points.collect::<Vec<_>>());
    }
    lesson.figure(
        "hosts.svg",
        "Efficiency over many hosts",
        Kind::Computed,
        &plot::svg(&[&chart])?,
    )?;
    Ok(())
}
