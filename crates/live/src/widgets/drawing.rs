//! Drawings: SVG whose classes have the colours of the page.

use std::fmt::Write;
use std::ops::Range;

/// The width of every drawing, in the units of its `viewBox`.
pub const WIDTH: f64 = 640.0;
/// The margins around the axes. The labels are at the left and below.
const LEFT: f64 = 52.0;
const BELOW: f64 = 24.0;
const ABOVE: f64 = 10.0;
const RIGHT: f64 = 8.0;

/// A drawing that is being made.
pub struct Drawing {
    height: f64,
    body: String,
}

/// Axes, which map values to places in the drawing.
pub struct Axes {
    x: Range<f64>,
    y: Range<f64>,
    height: f64,
}

impl Drawing {
    pub fn new(height: f64) -> Drawing {
        Drawing { height, body: String::new() }
    }

    /// Returns the SVG. `label` describes it to readers who cannot see it.
    pub fn svg(&self, label: &str) -> String {
        let label = escaped(label);
        format!(
            r#"<svg viewBox="0 0 {WIDTH} {}" role="img" aria-label="{label}">{}</svg>"#,
            self.height, self.body
        )
    }

    pub fn text(&mut self, (x, y): (f64, f64), anchor: &str, text: &str) {
        let text = escaped(text);
        let _ = write!(
            self.body,
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{text}</text>"#
        );
    }

    /// Draws a box. `share` is the opacity of its colour, from 0 to 1.
    pub fn cell(
        &mut self,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
        class: &str,
        share: f64,
    ) {
        let _ = write!(
            self.body,
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill-opacity="{share:.2}"/>"#
        );
    }

    pub fn stroke(&mut self, (x, y): (f64, f64), (to_x, to_y): (f64, f64), class: &str) {
        let _ =
            write!(self.body, r#"<path class="{class}" d="M{x:.1} {y:.1}L{to_x:.1} {to_y:.1}"/>"#);
    }

    /// Draws axes over positions `0..len` and values in `y`, with a few labels.
    pub fn axes(&mut self, len: usize, y: Range<f64>) -> Axes {
        let high = if y.end > y.start { y.end } else { y.start + 1.0 };
        let axes = Axes { x: 0.0..(len.max(2) - 1) as f64, y: y.start..high, height: self.height };
        for i in 0..=4 {
            let value = axes.y.start + (axes.y.end - axes.y.start) * f64::from(i) / 4.0;
            let (left, place) = axes.place(0.0, value);
            self.stroke((left, place), (WIDTH - RIGHT, place), "grid");
            self.text(
                (left - 6.0, place + 4.0),
                "end",
                &crate::number::float((value * 1000.0).round() / 1000.0),
            );
            let at = (axes.x.end * f64::from(i) / 4.0).round();
            let (place, _) = axes.place(at, axes.y.start);
            self.text((place, self.height - 6.0), "middle", &format!("{at}"));
        }
        axes
    }

    /// Draws a curve through the values from position `first` on, with gaps where one is not
    /// finite.
    pub fn curve(&mut self, axes: &Axes, first: usize, values: &[f64], class: &str) {
        let mut path = String::new();
        let mut down = false;
        for (l, &value) in values.iter().enumerate() {
            if value.is_finite() {
                let (x, y) = axes.place((first + l) as f64, value);
                let _ = write!(path, "{}{x:.1} {y:.1}", if down { 'L' } else { 'M' });
            }
            down = value.is_finite();
        }
        let _ = write!(self.body, r#"<path class="{class}" d="{path}"/>"#);
    }

    /// Draws a bar from zero for each value.
    pub fn bars(&mut self, axes: &Axes, values: &[f64], class: &str) {
        let width = (0.7 * (WIDTH - LEFT - RIGHT) / values.len().max(2) as f64).max(1.0);
        for (l, &value) in values.iter().enumerate().filter(|(_, value)| value.is_finite()) {
            let ((x, top), (_, zero)) = (axes.place(l as f64, value), axes.place(0.0, 0.0));
            self.cell((x - width / 2.0, top.min(zero)), (width, (zero - top).abs()), class, 1.0);
        }
    }
}

impl Axes {
    /// Returns the position of a value in the drawing. A value outside of the axes is moved to
    /// their end.
    fn place(&self, x: f64, y: f64) -> (f64, f64) {
        let share = |value: f64, range: &Range<f64>| {
            ((value - range.start) / (range.end - range.start)).clamp(0.0, 1.0)
        };
        let (right, down) = (share(x, &self.x), share(y, &self.y));
        (
            LEFT + right * (WIDTH - LEFT - RIGHT),
            self.height - BELOW - down * (self.height - BELOW - ABOVE),
        )
    }
}

/// Returns the range of zero and all finite values.
pub fn range<'a>(values: impl IntoIterator<Item = &'a f64>) -> Range<f64> {
    let finite = values.into_iter().filter(|value| value.is_finite());
    finite.fold(0.0..0.0, |range, &value| range.start.min(value)..range.end.max(value))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}
