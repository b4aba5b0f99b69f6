//! Lines and points over two axes.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::legend::{self, Entry};
use super::mark::{Dot, Look, Mark, Pixels};
use super::ticks::{Axis, Scale};
use super::{Area, COLORS, Panel, Result, font};

/// A chart of one or more series. A logarithmic axis leaves out the values that it cannot show.
#[derive(Debug, Clone)]
pub struct Chart {
    title: String,
    labels: (String, String),
    scales: (Scale, Scale),
    y_range: Option<(f64, f64)>,
    series: Vec<Series>,
}

#[derive(Debug, Clone)]
struct Series {
    label: String,
    points: Vec<(f64, f64)>,
    look: Look,
}

impl Chart {
    /// Makes an empty chart.
    pub fn new(title: &str) -> Self {
        Chart {
            title: title.to_owned(),
            labels: Default::default(),
            scales: (Scale::Linear, Scale::Linear),
            y_range: None,
            series: Vec::new(),
        }
    }

    /// Sets the axes' names, with units.
    pub fn axes(mut self, x: &str, y: &str) -> Self {
        self.labels = (x.to_owned(), y.to_owned());
        self
    }

    /// Makes the x axis logarithmic, with ticks at powers of `base`.
    pub fn log_x(mut self, base: f64) -> Self {
        self.scales.0 = Scale::Log(base);
        self
    }

    /// Makes the y axis logarithmic, with ticks at powers of `base`.
    pub fn log_y(mut self, base: f64) -> Self {
        self.scales.1 = Scale::Log(base);
        self
    }

    /// Fixes the range of the y axis instead of fitting it to the data.
    pub fn y_range(mut self, low: f64, high: f64) -> Self {
        self.y_range = Some((low, high));
        self
    }

    /// Adds a line.
    pub fn line(self, label: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        self.series(label, points, Mark::Line)
    }

    /// Adds a dashed line, for an expectation next to measurements.
    pub fn dashed(self, label: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        self.series(label, points, Mark::Dashes)
    }

    /// Adds dots.
    pub fn dots(self, label: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        self.series(label, points, Mark::Dots)
    }

    /// Adds a line with a dot at every point, for measurements.
    pub fn measured(self, label: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        self.series(label, points, Mark::Measured)
    }

    fn series(
        mut self,
        label: &str,
        points: impl IntoIterator<Item = (f64, f64)>,
        mark: Mark,
    ) -> Self {
        let (x, y) = self.scales;
        let place = |(a, b): (f64, f64)| Some((x.place(a)?, y.place(b)?));
        let points = points.into_iter().filter_map(place).collect();
        let look = Look::new(mark, COLORS[self.series.len() % COLORS.len()]);
        self.series.push(Series { label: label.to_owned(), points, look });
        self
    }

    /// Sets the colour of the last series, for example to the colour of a [kernel](super::kernels),
    /// instead of the next of [`COLORS`].
    pub fn color(mut self, color: RGBColor) -> Self {
        if let Some(last) = self.series.last_mut() {
            last.look.color = color;
        }
        self
    }

    /// Sets the form of the last series' dots.
    pub fn dot(mut self, dot: Dot) -> Self {
        if let Some(last) = self.series.last_mut() {
            last.look.dot = dot;
        }
        self
    }

    /// Returns the range that the series cover along one axis, with a margin along y.
    fn range(&self, coordinate: impl Fn(&(f64, f64)) -> f64, margin: f64) -> (f64, f64) {
        let places = self.series.iter().flat_map(|series| &series.points).map(coordinate);
        let (low, high) = places
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), p| (low.min(p), high.max(p)));
        match high - low {
            span if span > 0.0 => (low - margin * span, high + margin * span),
            // Without data, or with a single value, any range around it will do.
            _ if low.is_finite() => (low - 1.0, low + 1.0),
            _ => (0.0, 1.0),
        }
    }
}

/// The distances from the panel's upper edge to the middle of the title, and to the legend.
const TITLE: i32 = 20;
const HEAD: i32 = 34;

impl Panel for Chart {
    fn height(&self, width: u32) -> u32 {
        (width * 5 / 9).max(280) + legend::height(&self.entries(), width as i32) as u32
    }

    fn draw(&self, area: &Area) -> Result {
        let (x_scale, y_scale) = self.scales;
        let (x_low, x_high) = self.range(|point| point.0, 0.0);
        let fixed = self.y_range.and_then(|(a, b)| Some((y_scale.place(a)?, y_scale.place(b)?)));
        let (y_low, y_high) = fixed.unwrap_or_else(|| self.range(|point| point.1, 0.06));

        let (width, _) = area.dim_in_pixel();
        let centered = font(17).pos(Pos::new(HPos::Center, VPos::Center));
        area.draw(&Text::new(self.title.clone(), (width as i32 / 2, TITLE), centered))?;
        let entries = self.entries();
        legend::draw(area, &entries, HEAD)?;
        let (_, below) = area.split_vertically(HEAD + legend::height(&entries, width as i32));

        let mut context = ChartBuilder::on(&below)
            .margin(12)
            .margin_top(8)
            .margin_right(26)
            .x_label_area_size(46)
            .y_label_area_size(62)
            .build_cartesian_2d(
                Axis { scale: x_scale, range: (x_low, x_high) },
                Axis { scale: y_scale, range: (y_low, y_high) },
            )?;
        context
            .configure_mesh()
            .x_desc(&self.labels.0)
            .y_desc(&self.labels.1)
            .label_style(font(13))
            .axis_desc_style(font(14))
            .light_line_style(TRANSPARENT)
            .bold_line_style(RGBColor(128, 128, 128).mix(0.25))
            .axis_style(RGBColor(128, 128, 128))
            .draw()?;

        let plot = context.plotting_area();
        let corner = area.get_base_pixel();
        for series in &self.series {
            let place = |&(x, y): &(f64, f64)| {
                let (x, y) = plot.map_coordinate(&(x, y.clamp(y_low, y_high)));
                (x - corner.0, y - corner.1)
            };
            let places: Vec<_> = series.points.iter().map(place).collect();
            series.look.series(&Pixels(area), &places)?;
        }
        Ok(())
    }
}

impl Chart {
    /// Returns the legend's entries: the series that have a label.
    fn entries(&self) -> Vec<Entry<'_>> {
        let labelled = self.series.iter().filter(|series| !series.label.is_empty());
        labelled.map(|series| (series.label.as_str(), series.look)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot;

    fn count(svg: &str, color: RGBColor) -> usize {
        svg.matches(&format!("#{:02X}{:02X}{:02X}", color.0, color.1, color.2)).count()
    }

    #[test]
    fn the_legend_shows_the_curves_dashes() {
        let points = [(0.0, 0.0), (1.0, 0.0)];
        let solid = plot::svg(&[&Chart::new("").line("a", points)]).unwrap();
        assert_eq!(count(&solid, COLORS[0]), 2, "curve and sample");
        let dashed = plot::svg(&[&Chart::new("").dashed("a", points)]).unwrap();
        let without = plot::svg(&[&Chart::new("").dashed("", points)]).unwrap();
        assert_eq!(count(&dashed, COLORS[0]) - count(&without, COLORS[0]), 3, "dashes of a sample");
    }

    #[test]
    fn the_legend_is_above_the_plot() {
        let chart = Chart::new("title").line("the only label", [(0.0, 0.0), (1.0, 1.0)]);
        let bare = Chart::new("title").line("", [(0.0, 0.0), (1.0, 1.0)]);
        assert!(chart.height(720) > bare.height(720));
        let svg = plot::svg(&[&chart]).unwrap();
        let words = svg.find("the only label").unwrap();
        let axis = svg.find("stroke=\"#808080\"").unwrap();
        assert!(words < axis);
    }

    #[test]
    fn a_series_has_the_colour_it_was_given() {
        let chart =
            Chart::new("").line("a", [(0.0, 0.0), (1.0, 1.0)]).color(COLORS[4]).dot(Dot::Ring);
        let svg = plot::svg(&[&chart]).unwrap();
        assert_eq!((count(&svg, COLORS[4]), count(&svg, COLORS[0])), (2, 0));
    }
}
