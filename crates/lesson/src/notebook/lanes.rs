//! Draws what the lanes of a warp did, as the emulator recorded it.
//!
//! An [`Event`] is drawn as two rows of 32 cells with lines between them, so that a reader sees
//! which lane a value came from, or which addresses a warp accessed. A [`Trace`] is shown as a
//! table of its events, and [`lanes`] draws all shuffles of a warp below each other. The drawings
//! are plain SVG, because their cells must line up with the lanes' numbers to the pixel. The tests
//! at the end of this file check the shapes that are drawn.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::content::{Content, Show, escaped};
use super::figure::Figure;
use crate::Table;
use linrec::simt::{Accessed, Event, Trace, What};

/// Sizes in pixels: a lane's cell, the space between the rows, and the space before lane 0.
const CELL: usize = 22;
const GAP: usize = 34;
const MARGIN: usize = 52;
const WIDTH: usize = MARGIN + 32 * CELL + 4;

/// The largest number of events in a table, and the largest number of shuffles in a drawing.
const LISTED: usize = 40;
const DRAWN: usize = 12;

/// Draws the shuffles of a warp of the first recorded block below each other: the value of each
/// lane before, the lane it receives from, and its value after. Draws at most twelve shuffles.
pub fn lanes(trace: &Trace, warp: u32) -> Figure {
    let block = trace.events.first().map(|event| event.block);
    let of_warp = trace.events.iter().filter(|e| Some(e.block) == block && e.warp == warp);
    let shuffles = of_warp.filter(|event| matches!(event.what, What::Shuffle { .. }));
    drawing(&shuffles.take(DRAWN).collect::<Vec<_>>(), &format!("warp {warp} has no shuffle"))
}

impl Show for Event {
    fn content(&self) -> Content {
        match drawing(&[self], "").content() {
            Content { rich: Some(rich), .. } => Content { plain: title(self), rich: Some(rich) },
            content => content,
        }
    }
}

impl Show for Trace {
    fn content(&self) -> Content {
        let mut table = Table::new(["event", "block", "warp", "lanes", "what", "line"]);
        for (at, event) in self.events.iter().enumerate().take(LISTED) {
            let numbers = [at.to_string(), event.block.to_string(), event.warp.to_string()];
            let words = [event.lanes.count_ones().to_string(), kind(event), place(event)];
            table.row(numbers.into_iter().chain(words));
        }
        let content = table.content();
        let unlisted = self.events.len().saturating_sub(LISTED);
        let mut more = String::new();
        if unlisted > 0 {
            more += &format!("… and {unlisted} more events. ");
        }
        if self.left_out > 0 {
            more += &format!("Another {} came after the limit.", self.left_out);
        }
        let rich = content.rich.map(|rich| rich.text).unwrap_or_default();
        let plain = format!("{}{}", content.plain, more.trim_end());
        Content::html(plain, format!("{rich}<p>{}</p>", more.trim_end()))
    }
}

/// Describes an event: `shuffle up`, `load of 16 bytes, shared`.
fn kind(event: &Event) -> String {
    match &event.what {
        What::Shuffle { mode, .. } => format!("shuffle {mode}"),
        What::Barrier => "barrier".to_owned(),
        What::Load(accessed) => format!("load {}", size(accessed)),
        What::Store(accessed) => format!("store {}", size(accessed)),
        What::Copy(copied) => format!("copy {} bytes", copied.bytes),
    }
}

fn size(accessed: &Accessed) -> String {
    let bytes = accessed.bytes as usize * accessed.values.len();
    format!("{bytes} bytes, {}", if accessed.shared { "shared" } else { "global" })
}

fn place(event: &Event) -> String {
    match &event.source {
        Some((file, line)) => format!("{file}:{line}"),
        None => format!("PTX {}", event.line),
    }
}

fn title(event: &Event) -> String {
    let what = match &event.what {
        What::Load(accessed) | What::Store(accessed) => {
            let rows = if accessed.shared { String::new() } else { sectors(event, accessed) };
            format!("{}{rows}", kind(event))
        }
        _ => kind(event),
    };
    format!("block {}, warp {}: {what} ({})", event.block, event.warp, place(event))
}

/// Counts the sectors of 32 bytes that the lanes touch.
fn sectors(event: &Event, accessed: &Accessed) -> String {
    let bytes = u64::from(accessed.bytes) * accessed.values.len() as u64;
    let touched: BTreeSet<u64> = active(event)
        .flat_map(|lane| {
            let first = accessed.addresses[lane];
            first / 32..=(first + bytes - 1) / 32
        })
        .collect();
    format!(", {} sectors", touched.len())
}

fn active(event: &Event) -> impl Iterator<Item = usize> {
    let lanes = event.lanes;
    (0..32).filter(move |lane| lanes >> lane & 1 == 1)
}

/// Draws the events below each other, or writes `nothing` if there are no events.
fn drawing(events: &[&Event], nothing: &str) -> Figure {
    let mut body = String::new();
    let mut y = 16;
    for event in events {
        text(&mut body, (4, y), "start", &title(event));
        y += 10;
        match &event.what {
            What::Shuffle { before, after, sources, .. } => {
                y = shuffle(&mut body, y, event, before, after, sources);
            }
            What::Load(accessed) | What::Store(accessed) => {
                y = access(&mut body, y, event, accessed);
            }
            What::Barrier | What::Copy(_) => {}
        }
        y += 24;
    }
    if events.is_empty() {
        text(&mut body, (4, y), "start", nothing);
        y += 24;
    }
    let height = y - 14;
    Figure::from_svg(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} \
         {height}\" font-family=\"sans-serif\" font-size=\"12\"><rect width=\"100%\" height=\"100%\" \
         fill=\"#FFFFFF\"/>{body}</svg>"
    ))
}

/// Draws the lanes' values before and after a shuffle, and a line from each source to its
/// destination.
fn shuffle(
    body: &mut String,
    y: usize,
    event: &Event,
    before: &[u32; 32],
    after: &[u32; 32],
    sources: &[u8; 32],
) -> usize {
    let lower = y + CELL + GAP;
    for (y, name, words) in [(y, "gave", before), (lower, "got", after)] {
        let values = words.map(|word| f64::from(f32::from_bits(word)));
        row(body, y, name, event, &values, |lane| brief(words[lane]));
    }
    for lane in active(event) {
        let (from, to) = (centre(usize::from(sources[lane])), centre(lane));
        // A value that stays in its lane needs no attention.
        let color = if from == to { "#BBBBBB" } else { "#D55E00" };
        // Writing to a string cannot fail.
        let _ = write!(
            body,
            "<path d=\"M{from} {}L{to} {}\" stroke=\"{color}\"/>",
            y + CELL + 1,
            lower - 1
        );
    }
    numbers(body, lower + CELL + 10);
    lower + CELL + 12
}

/// Draws where each lane's access begins, counted in values from the lowest address of all lanes.
fn access(body: &mut String, y: usize, event: &Event, accessed: &Accessed) -> usize {
    let lowest = active(event).map(|lane| accessed.addresses[lane]).min().unwrap_or(0);
    let offset = |lane: usize| {
        accessed.addresses[lane].saturating_sub(lowest) / u64::from(accessed.bytes.max(1))
    };
    let values = std::array::from_fn(|lane| offset(lane) as f64);
    row(body, y, "value no.", event, &values, |lane| offset(lane).to_string());
    numbers(body, y + CELL + 10);
    y + CELL + 12
}

/// Draws a row of 32 cells. A larger absolute value has a stronger colour: blue if positive, orange
/// if negative.
fn row(
    body: &mut String,
    y: usize,
    name: &str,
    event: &Event,
    values: &[f64; 32],
    words: impl Fn(usize) -> String,
) {
    text(body, (4, y + 15), "start", name);
    let finite = active(event).map(|lane| values[lane].abs()).filter(|size| size.is_finite());
    let largest = finite.fold(0.0, f64::max);
    for (lane, &value) in values.iter().enumerate() {
        let x = MARGIN + CELL * lane;
        let takes_part = event.lanes >> lane & 1 == 1;
        let (color, strength) = match value {
            _ if !takes_part => ("#888888", 0.5),
            value if value.is_nan() => ("#CC79A7", 0.8),
            value if largest > 0.0 => (
                if value < 0.0 { "#E69F00" } else { "#56B4E9" },
                (value.abs() / largest).min(1.0) * 0.8,
            ),
            _ => ("#56B4E9", 0.0),
        };
        let _ = write!(
            body,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{CELL}\" height=\"{CELL}\" fill=\"{color}\" \
             fill-opacity=\"{strength:.2}\" stroke=\"#888888\"/>"
        );
        if takes_part {
            let word = escaped(&words(lane));
            let (x, y) = (centre(lane), y + 14);
            let _ = write!(
                body,
                "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" font-size=\"9\">{word}</text>"
            );
        }
    }
}

fn numbers(body: &mut String, y: usize) {
    for lane in (0..32).step_by(4).chain([31]) {
        let _ = write!(
            body,
            "<text x=\"{}\" y=\"{y}\" text-anchor=\"middle\" font-size=\"9\" fill=\"#777777\">{lane}</text>",
            centre(lane)
        );
    }
}

fn centre(lane: usize) -> usize {
    MARGIN + CELL * lane + CELL / 2
}

fn text(body: &mut String, (x, y): (usize, usize), anchor: &str, words: &str) {
    let words = escaped(words);
    let _ = write!(body, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{words}</text>");
}

/// Formats a 32-bit word as a float in at most five characters.
fn brief(word: u32) -> String {
    let value = f32::from_bits(word);
    let text = match value.abs() {
        size if !size.is_finite() => value.to_string(),
        0.0 => "0".to_owned(),
        size if !(0.005..9999.5).contains(&size) => format!("{value:.0e}"),
        size if size < 9.995 => format!("{value:.2}"),
        size if size < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    };
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    };
    // `.5` is as easy to read as `0.5` and leaves more space.
    match text.strip_prefix("0.") {
        Some(rest) => format!(".{rest}"),
        None => text.replacen("-0.", "-.", 1),
    }
}

#[cfg(test)]
mod tests {
    use super::{Show, brief, lanes};
    use linrec::simt::{Accessed, Event, Trace, What};

    fn event(what: What, lanes: u32) -> Event {
        Event { block: 0, warp: 1, lanes, line: 7, source: Some(("k.cu".into(), 9)), what }
    }

    fn up() -> Event {
        let before = std::array::from_fn(|lane| (lane as f32).to_bits());
        let sources: [u8; 32] = std::array::from_fn(|lane| lane.saturating_sub(1) as u8);
        let after = sources.map(|lane| before[usize::from(lane)]);
        event(What::Shuffle { mode: "up", before, after, sources }, u32::MAX)
    }

    #[test]
    fn a_shuffle_is_drawn_with_an_arrow_for_each_lane() {
        let content = up().content();
        assert_eq!(content.plain, "block 0, warp 1: shuffle up (k.cu:9)");
        let svg = content.rich.unwrap().text;
        // From the centre of lane 0's cell to the centre of lane 1's cell; lane 0 keeps its value.
        assert!(svg.contains("<path d=\"M63 49L85 81\" stroke=\"#D55E00\"/>"), "{svg}");
        assert!(svg.contains("<path d=\"M63 49L63 81\" stroke=\"#BBBBBB\"/>"), "{svg}");
        assert_eq!(svg.matches("<path").count(), 32);
        assert_eq!(svg.matches("<rect x").count(), 64);
    }

    #[test]
    fn inactive_lanes_have_no_value() {
        let mut event = up();
        event.lanes = 0xffff;
        let svg = event.content().rich.unwrap().text;
        assert_eq!((svg.matches("<path").count(), svg.matches("<rect x").count()), (16, 64));
    }

    #[test]
    fn a_load_shows_the_sectors_of_its_lanes() {
        let of = |stride: u64| {
            let addresses = std::array::from_fn(|lane| 1024 + stride * lane as u64);
            let values = vec![[0; 32]];
            event(What::Load(Accessed { shared: false, bytes: 4, addresses, values }), u32::MAX)
        };
        assert!(of(4).content().plain.contains("load 4 bytes, global, 4 sectors"));
        assert!(of(12).content().plain.contains("12 sectors"));
    }

    #[test]
    fn only_the_shuffles_of_the_warp_are_drawn() {
        let mut trace = Trace::new(10);
        trace.events = vec![event(What::Barrier, u32::MAX), up(), up()];
        let svg = |warp| lanes(&trace, warp).content().rich.unwrap().text;
        assert_eq!(svg(1).matches("shuffle up").count(), 2);
        assert!(svg(0).contains("warp 0 has no shuffle"));
    }

    #[test]
    fn a_trace_is_a_table_and_counts_missing_events() {
        let mut trace = Trace::new(100);
        trace.events = vec![event(What::Barrier, u32::MAX); 43];
        trace.left_out = 5;
        let plain = trace.content().plain;
        assert!(plain.starts_with("event  block  warp  lanes  what"), "{plain}");
        assert!(plain.ends_with("… and 3 more events. Another 5 came after the limit."), "{plain}");
    }

    #[test]
    fn values_are_short() {
        for (value, expected) in [
            (0.0, "0"),
            (0.5, ".5"),
            (-0.25, "-.25"),
            (1.0, "1"),
            (12.34, "12.3"),
            (-123.4, "-123"),
            (1e-7, "1e-7"),
            (123456.0, "1e5"),
            (f32::NAN, "NaN"),
        ] {
            assert_eq!(brief(value.to_bits()), expected);
        }
    }
}
