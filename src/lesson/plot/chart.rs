//! Lines and points over two axes.

use plotters::prelude::*;
use plotters::style::Color;

use super::ticks::{Axis, Scale};
use super::{Area, COLORS, Panel, Result, font};

/// A chart of one or more series. Logarithmic axes leave out what they cannot show.
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
    mark: Mark,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Mark {
    Line,
    Dashes,
    Dots,
    /// A line with a dot at every point, for measurements.
    Measured,
}

impl Chart {
    /// An empty chart.
    pub fn new(title: &str) -> Self {
        Chart {
            title: title.to_owned(),
            labels: Default::default(),
            scales: (Scale::Linear, Scale::Linear),
            y_range: None,
            series: Vec::new(),
        }
    }

    /// Names the axes, with their units.
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

    /// Adds a dashed line: an expectation beside measurements.
    pub fn dashed(self, label: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        self.series(label, points, Mark::Dashes)
    }

    /// Adds dots.
    pub fn dots(self, label: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        self.series(label, points, Mark::Dots)
    }

    /// Adds a line with a dot at every point: measurements.
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
        self.series.push(Series { label: label.to_owned(), points, mark });
        self
    }

    /// The range of places that the series cover along one axis, with a margin along y.
    fn range(&self, coordinate: impl Fn(&(f64, f64)) -> f64, margin: f64) -> (f64, f64) {
        let places = self.series.iter().flat_map(|series| &series.points).map(coordinate);
        let (low, high) = places
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), p| (low.min(p), high.max(p)));
        match high - low {
            span if span > 0.0 => (low - margin * span, high + margin * span),
            // No data, or a single value: any range around it will do.
            _ if low.is_finite() => (low - 1.0, low + 1.0),
            _ => (0.0, 1.0),
        }
    }
}

impl Panel for Chart {
    fn height(&self, width: u32) -> u32 {
        (width * 5 / 9).max(280)
    }

    fn draw(&self, area: &Area) -> Result {
        let (x_scale, y_scale) = self.scales;
        let (x_low, x_high) = self.range(|point| point.0, 0.0);
        let fixed = self.y_range.and_then(|(a, b)| Some((y_scale.place(a)?, y_scale.place(b)?)));
        let (y_low, y_high) = fixed.unwrap_or_else(|| self.range(|point| point.1, 0.06));
        let mut context = ChartBuilder::on(area)
            .caption(&self.title, font(17))
            .margin(12)
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

        for (series, color) in self.series.iter().zip(COLORS.into_iter().cycle()) {
            let points = series.points.iter().copied();
            let dot = move |point| Circle::new(point, 3, color.filled());
            let annotation = match series.mark {
                Mark::Line => {
                    context.draw_series(LineSeries::new(points, color.stroke_width(2)))?
                }
                Mark::Dashes => context.draw_series(DashedLineSeries::new(
                    points,
                    6,
                    4,
                    color.stroke_width(2),
                ))?,
                Mark::Dots => context.draw_series(points.map(dot))?,
                Mark::Measured => {
                    context.draw_series(series.points.iter().copied().map(dot))?;
                    context.draw_series(LineSeries::new(points, color.stroke_width(2)))?
                }
            };
            if !series.label.is_empty() {
                annotation.label(&series.label).legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 18, y)], color.stroke_width(3))
                });
            }
        }
        if self.series.iter().any(|series| !series.label.is_empty()) {
            context
                .configure_series_labels()
                .position(self.emptiest_corner((x_low, x_high), (y_low, y_high)))
                .label_font(font(13))
                .background_style(WHITE.mix(0.8))
                .border_style(TRANSPARENT)
                .legend_area_size(24)
                .margin(8)
                .draw()?;
        }
        Ok(())
    }
}

impl Chart {
    /// The corner with the fewest points, for the legend.
    fn emptiest_corner(&self, x: (f64, f64), y: (f64, f64)) -> SeriesLabelPosition {
        let corners = [
            (true, true, SeriesLabelPosition::UpperRight),
            (false, true, SeriesLabelPosition::UpperLeft),
            (true, false, SeriesLabelPosition::LowerRight),
            (false, false, SeriesLabelPosition::LowerLeft),
        ];
        // A legend is wider than high, so a corner is half of the width and two fifths of the height.
        let weight = |right: bool, top: bool| -> f64 {
            let in_corner = |&&(a, b): &&(f64, f64)| {
                let (a, b) = ((a - x.0) / (x.1 - x.0), (b - y.0) / (y.1 - y.0));
                (if right { a > 0.5 } else { a < 0.5 }) && (if top { b > 0.6 } else { b < 0.4 })
            };
            let share = |series: &Series| {
                let inside = series.points.iter().filter(in_corner).count();
                inside as f64 / series.points.len().max(1) as f64
            };
            self.series.iter().map(share).sum()
        };
        let lightest =
            corners.into_iter().min_by(|a, b| weight(a.0, a.1).total_cmp(&weight(b.0, b.1)));
        lightest.map_or(SeriesLabelPosition::UpperRight, |(_, _, position)| position)
    }
}
