//! Draws throughput against length.

use lesson::plot::{self, Chart, Panel, kernels};
use linrec::kernels::{ElementType, Pass};

use crate::{Peer, Race, Run};

const OURS: [&str; 6] = ["wide", "pipe", "tile", "ref", "rows", "roof"];

/// The quoted peers: a part of the peer's name, its name in the legend, and its name in the table
/// of colours.
const QUOTED: [(&str, &str, &str); 3] = [
    ("accelerated-scan", "accelerated-scan (quoted)", "accelerated-scan"),
    ("CUDA pipe best", "the post's CUDA pipe (quoted)", "post"),
    ("Triton pipe", "the post's Triton pipe (quoted)", "post's Triton"),
];

/// The memory bandwidth of an H200 by its data sheet, in GB/s: the limit of every program.
pub const H200_GB_PER_S: f64 = 4800.0;

const DATA_SHEET: &str = "4.8 TB/s: the data sheet";

/// Adds the roof to a chart of ratios to the roof, and the bandwidth of an H200's data sheet where
/// it is below `top`. `roof` is the roof's speed in GB/s at each position along x.
pub fn with_roof(chart: Chart, roof: impl IntoIterator<Item = (f64, f64)>, top: f64) -> Chart {
    let roof: Vec<(f64, f64)> = roof.into_iter().collect();
    let physical = roof.iter().map(|&(x, gb_per_s)| (x, H200_GB_PER_S / gb_per_s));
    chart
        .dashed("the roof", roof.iter().map(|&(x, _)| (x, 1.0)))
        .color(kernels::color("roof"))
        .dashed(DATA_SHEET, physical.filter(|&(_, ratio)| ratio <= top))
        .color(kernels::BANDWIDTH)
}

/// Draws throughput against length for both passes, with the peers as dashed curves.
///
/// # Errors
///
/// Returns an error if the figure cannot be drawn.
pub fn figure(race: &Race, peers: &[Peer], element: ElementType) -> lesson::Result<String> {
    let chart = |pass: Pass| -> Chart {
        let lengths: Vec<usize> =
            race.lengths(pass).into_iter().filter(|len| len.is_power_of_two()).collect();
        let speed = |run: Run| run.gb_per_s;
        let fastest = lengths.iter().filter_map(|&len| race.median(pass, "roof", len)).map(speed);
        let fastest = fastest.fold(0.0, f64::max);
        let mut chart = Chart::new(&format!("{}, {element}", pass.name()))
            .axes("length of a sequence", "GB/s")
            .log_x(2.0)
            .y_range(0.0, (1.1 * fastest).max(1.05 * H200_GB_PER_S));
        for name in OURS {
            let of = |len: usize| match name {
                "roof" => race.median(pass, name, len),
                _ => race.kernel(pass, name, len).map(|(_, run)| run),
            };
            let points = lengths.iter().filter_map(|&len| Some((len as f64, of(len)?.gb_per_s)));
            let label = if name == "roof" { "the roof" } else { name };
            chart = chart.measured(label, points).color(kernels::color(name));
        }
        for (part, label, name) in QUOTED {
            let mine = peers.iter().filter(|peer| peer.pass == pass && peer.name.contains(part));
            let points: Vec<_> = mine.map(|peer| (peer.seq_len as f64, peer.gb_per_s)).collect();
            // A peer without points gets no entry in the legend.
            let label = if points.is_empty() { "" } else { label };
            chart = chart.dashed(label, points).color(kernels::color(name));
        }
        let physical = lengths.iter().map(|&len| (len as f64, H200_GB_PER_S));
        chart.dashed(DATA_SHEET, physical).color(kernels::BANDWIDTH)
    };
    let charts = Pass::ALL.map(chart);
    let panels: Vec<&dyn Panel> = charts.iter().map(|chart| chart as &dyn Panel).collect();
    plot::grid(&panels, 1)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const CSV: &str =
        "date,machine,element,direction,engine,num_seqs,seq_len,ms,gb_per_s,ratio
2026-11-21,NVIDIA H200,f32,forward,roof,13200,16,0.005,500,1
2026-11-21,NVIDIA H200,f32,forward,rows:4x1x128,13200,16,0.010,250,0.5
2026-11-21,NVIDIA H200,f32,forward,roof,13200,32,0.005,1000,1
2026-11-21,NVIDIA H200,f32,forward,rows:8x1x128:w,13200,32,0.005,1000,1
2026-11-21,NVIDIA H200,f32,backward,roof,13200,16,0.005,900,1
";

    #[test]
    fn the_data_sheet_is_a_multiple_of_the_roof() {
        let chart =
            with_roof(Chart::new(""), [(16.0, 500.0), (4096.0, 4000.0), (8192.0, 4200.0)], 1.25);
        let svg = plot::svg(&[&chart]).unwrap();
        assert!(svg.contains("the roof") && svg.contains("4.8 TB/s"));
    }

    #[test]
    fn every_drawn_kernel_has_a_colour() {
        let quoted = QUOTED.map(|(_, _, name)| name);
        for name in OURS.into_iter().chain(quoted) {
            assert_ne!(kernels::color(name), kernels::BANDWIDTH, "{name}");
        }
    }

    #[test]
    fn a_race_becomes_a_figure() {
        let race = Race::read(CSV).unwrap();
        let peer = Peer {
            pass: Pass::Forward,
            num_seqs: 13_200,
            seq_len: 16,
            name: String::from("accelerated-scan 0.2"),
            gb_per_s: 100.0,
        };
        let svg = figure(&race, &[peer], ElementType::F32).unwrap();
        assert!(svg.contains("accelerated-scan (quoted)") && svg.contains("backward"));
        assert!(svg.contains("data sheet"));
        figure(&Race::default(), &[], ElementType::F32).unwrap();
    }
}
