//! The look of a series, in the plot and in the legend alike.

use plotters::prelude::*;

use super::{Area, Result};

/// The way in which a series' points are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Mark {
    Line,
    Dashes,
    Dots,
    /// A line with a dot at every point, for measurements.
    Measured,
}

/// The form of a dot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dot {
    /// A filled circle.
    Disc,
    /// A circle filled with the background.
    Ring,
    /// A filled square.
    Square,
    /// A filled triangle.
    Triangle,
    /// Two crossed lines.
    Cross,
}

impl Dot {
    /// All forms, for several series of one colour.
    pub const ALL: [Dot; 5] = [Dot::Disc, Dot::Ring, Dot::Square, Dot::Triangle, Dot::Cross];
}

/// A series' mark, form of dots and colour.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    pub mark: Mark,
    pub dot: Dot,
    pub color: RGBColor,
}

pub(super) struct Pixels<'a, 'b>(pub &'a Area<'b>);

/// The width of lines, the length of a dash, and the gap after it.
const WIDTH: u32 = 2;
const DASH: f64 = 6.0;
const SPACE: f64 = 4.0;

impl Look {
    pub(super) fn new(mark: Mark, color: RGBColor) -> Self {
        Look { mark, dot: Dot::Disc, color }
    }

    /// Draws a series through these positions.
    pub(super) fn series(self, pixels: &Pixels, places: &[(i32, i32)]) -> Result {
        match self.mark {
            Mark::Line | Mark::Measured => pixels.line(places, self.color)?,
            Mark::Dashes => pixels.dashes(places, self.color)?,
            Mark::Dots => {}
        }
        if matches!(self.mark, Mark::Dots | Mark::Measured) {
            places.iter().try_for_each(|&place| pixels.dot(place, self.dot, self.color))?;
        }
        Ok(())
    }

    /// Draws a sample for the legend.
    pub(super) fn sample(self, pixels: &Pixels, (x, y): (i32, i32), length: i32) -> Result {
        let middle = (x + length / 2, y);
        match self.mark {
            Mark::Dots => self.series(pixels, &[middle]),
            Mark::Measured => {
                pixels.line(&[(x, y), (x + length, y)], self.color)?;
                pixels.dot(middle, self.dot, self.color)
            }
            Mark::Line | Mark::Dashes => self.series(pixels, &[(x, y), (x + length, y)]),
        }
    }
}

impl Pixels<'_, '_> {
    fn line(&self, places: &[(i32, i32)], color: RGBColor) -> Result {
        if places.len() > 1 {
            self.0.draw(&PathElement::new(places.to_vec(), color.stroke_width(WIDTH)))?;
        }
        Ok(())
    }

    /// Draws a dashed line; the dashes continue from one segment to the next.
    fn dashes(&self, places: &[(i32, i32)], color: RGBColor) -> Result {
        let mut walked = 0.0;
        let mut dash: Vec<(i32, i32)> = Vec::new();
        for piece in places.windows(2) {
            let [from, to] = [piece[0], piece[1]].map(|(x, y)| (f64::from(x), f64::from(y)));
            let length = (to.0 - from.0).hypot(to.1 - from.1);
            let at = |along: f64| {
                let share = if length > 0.0 { along / length } else { 0.0 };
                let between = |from: f64, to: f64| (from + share * (to - from)).round() as i32;
                (between(from.0, to.0), between(from.1, to.1))
            };
            let mut along = 0.0;
            while along < length {
                let phase = walked % (DASH + SPACE);
                let (drawn, left) = match phase < DASH {
                    true => (true, DASH - phase),
                    false => (false, DASH + SPACE - phase),
                };
                let step = left.min(length - along);
                if drawn && dash.is_empty() {
                    dash.push(at(along));
                }
                along += step;
                walked += step;
                if drawn {
                    dash.push(at(along));
                    if step == left {
                        self.line(&std::mem::take(&mut dash), color)?;
                    }
                }
            }
        }
        self.line(&dash, color)
    }

    fn dot(&self, (x, y): (i32, i32), dot: Dot, color: RGBColor) -> Result {
        let filled = color.filled();
        match dot {
            Dot::Disc => self.0.draw(&Circle::new((x, y), 3, filled))?,
            Dot::Ring => {
                self.0.draw(&Circle::new((x, y), 3, WHITE.filled()))?;
                self.0.draw(&Circle::new((x, y), 3, color.stroke_width(WIDTH)))?;
            }
            Dot::Square => {
                self.0.draw(&Rectangle::new([(x - 3, y - 3), (x + 3, y + 3)], filled))?;
            }
            Dot::Triangle => {
                let corners = vec![(x, y - 5), (x - 4, y + 3), (x + 4, y + 3)];
                self.0.draw(&Polygon::new(corners, filled))?;
            }
            Dot::Cross => {
                self.line(&[(x - 4, y - 4), (x + 4, y + 4)], color)?;
                self.line(&[(x - 4, y + 4), (x + 4, y - 4)], color)?;
            }
        }
        Ok(())
    }
}
