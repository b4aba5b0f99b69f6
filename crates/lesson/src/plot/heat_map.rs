//! Draws a matrix as colours.

use ndarray::Array2;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::ticks::Scale;
use super::{Area, Panel, Result, font};

/// A matrix as a heat map: rows from top to bottom, columns from left to right, with a colour bar.
#[derive(Debug, Clone)]
pub struct HeatMap {
    title: String,
    values: Array2<f64>,
    range: (f64, f64),
    labels: (String, String),
}

/// The number of shades. Neighbours with the same shade are drawn as one rectangle.
const SHADES: f64 = 64.0;

impl HeatMap {
    /// Makes a heat map of `values`. Its colours cover `range`; a value outside has the colour of
    /// the nearer end, and NaN is grey.
    pub fn new(title: &str, values: Array2<f64>, range: (f64, f64)) -> Self {
        HeatMap { title: title.to_owned(), values, range, labels: Default::default() }
    }

    /// Sets the names of the columns and the rows.
    pub fn axes(mut self, columns: &str, rows: &str) -> Self {
        self.labels = (columns.to_owned(), rows.to_owned());
        self
    }

    /// Returns the shade of a value, a whole number from 0 to [`SHADES`], or `None` for NaN.
    fn shade(&self, value: f64) -> Option<u32> {
        let (low, high) = self.range;
        let share = ((value - low) / (high - low)).clamp(0.0, 1.0);
        (!share.is_nan()).then(|| (share * SHADES).round() as u32)
    }

    /// Returns a shade's colour: light for zero, blue for positive values, orange for negative
    /// values.
    fn color(&self, shade: Option<u32>) -> RGBColor {
        let Some(shade) = shade else { return RGBColor(128, 128, 128) };
        let (low, high) = self.range;
        let value = low + (high - low) * f64::from(shade) / SHADES;
        let strength = (value / low.abs().max(high.abs())).clamp(-1.0, 1.0);
        const LIGHT: [f64; 3] = [240.0, 240.0, 236.0];
        let dark = if strength >= 0.0 { [0.0, 73.0, 141.0] } else { [186.0, 74.0, 0.0] };
        let mix = |i: usize| (LIGHT[i] + (dark[i] - LIGHT[i]) * strength.abs()).round() as u8;
        RGBColor(mix(0), mix(1), mix(2))
    }
}

const LEFT: i32 = 40;
const TOP: i32 = 40;
const BAR_AND_LABELS: i32 = 76;

impl Panel for HeatMap {
    fn height(&self, width: u32) -> u32 {
        let (rows, columns) = self.values.dim();
        let side = width as i32 - LEFT - BAR_AND_LABELS;
        let height = side * rows.max(1) as i32 / columns.max(1) as i32;
        (height.clamp(40, 2 * side) + TOP + 34) as u32
    }

    fn draw(&self, area: &Area) -> Result {
        let (rows, columns) = self.values.dim();
        let (width, height) = area.dim_in_pixel();
        let (plot_width, plot_height) =
            (width as i32 - LEFT - BAR_AND_LABELS, height as i32 - TOP - 34);
        let x = |column: usize| LEFT + plot_width * column as i32 / columns.max(1) as i32;
        let y = |row: usize| TOP + plot_height * row as i32 / rows.max(1) as i32;

        area.draw(&Text::new(self.title.clone(), (LEFT, 14), font(15)))?;
        for (r, row) in self.values.rows().into_iter().enumerate() {
            let shades: Vec<_> = row.iter().map(|&value| self.shade(value)).collect();
            let mut column = 0;
            for run in shades.chunk_by(|a, b| a == b) {
                let corners = [(x(column), y(r)), (x(column + run.len()), y(r + 1))];
                area.draw(&Rectangle::new(corners, self.color(run[0]).filled()))?;
                column += run.len();
            }
        }
        self.draw_bar(area, x(columns) + 12, (y(0), y(rows)))?;
        // The numbers of rows and columns, centred on their cells.
        let below = font(12).pos(Pos::new(HPos::Center, VPos::Top));
        for column in whole_ticks(columns) {
            let place = ((x(column) + x(column + 1)) / 2, y(rows) + 3);
            area.draw(&Text::new(column.to_string(), place, below.clone()))?;
        }
        let left = font(12).pos(Pos::new(HPos::Right, VPos::Center));
        for row in whole_ticks(rows) {
            let place = (LEFT - 4, (y(row) + y(row + 1)) / 2);
            area.draw(&Text::new(row.to_string(), place, left.clone()))?;
        }
        area.draw(&Text::new(self.labels.0.clone(), (LEFT, y(rows) + 18), font(13)))?;
        let sideways = font(13).transform(FontTransform::Rotate270);
        area.draw(&Text::new(self.labels.1.clone(), (2, y(rows)), sideways))?;
        Ok(())
    }
}

/// Returns the rows or columns (of `count`) whose number is written: at most about seven.
fn whole_ticks(count: usize) -> impl Iterator<Item = usize> {
    let ticks = Scale::Linear.ticks((0.0, count.saturating_sub(1) as f64));
    let whole = ticks.into_iter().filter(|tick| tick.fract() == 0.0).map(|tick| tick as usize);
    whole.filter(move |&tick| tick < count)
}

impl HeatMap {
    /// Draws the colour bar with labels at the ends of the range, and at zero if the range contains
    /// it.
    fn draw_bar(&self, area: &Area, left: i32, (top, bottom): (i32, i32)) -> Result {
        let (low, high) = self.range;
        let y = |share: f64| bottom - ((bottom - top) as f64 * share).round() as i32;
        for shade in 0..=SHADES as u32 {
            let (from, to) =
                (f64::from(shade) / (SHADES + 1.0), f64::from(shade + 1) / (SHADES + 1.0));
            let corners = [(left, y(to)), (left + 12, y(from))];
            area.draw(&Rectangle::new(corners, self.color(Some(shade)).filled()))?;
        }
        let zero = (low < 0.0 && high > 0.0).then_some(0.0);
        for value in [Some(low), zero, Some(high)].into_iter().flatten() {
            let place = (left + 17, y((value - low) / (high - low)) - 6);
            area.draw(&Text::new(format!("{value}"), place, font(12)))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_columns_are_numbered() {
        assert_eq!(whole_ticks(24).collect::<Vec<_>>(), [0, 5, 10, 15, 20]);
        assert_eq!(whole_ticks(3).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!((whole_ticks(1).count(), whole_ticks(0).count()), (1, 0));
        let map = HeatMap::new("", Array2::zeros((64, 35)), (0.0, 2.0));
        let svg = crate::plot::svg(&[&map]).unwrap();
        assert!(svg.contains("\n60\n"));
    }
}
