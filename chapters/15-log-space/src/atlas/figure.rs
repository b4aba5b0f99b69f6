//! A page of the atlas: maps in two columns, with the bound as contour, and a legend.

use lesson::Result;
use lesson::plot::{Area, WIDTH, without_defaults};
use plotters::prelude::*;

use super::{Grid, Map};

/// The meaning of the colours and contours of a page.
#[derive(Debug, Clone, Copy)]
pub struct Legend {
    /// The errors at the light and the dark end, as powers of ten.
    pub powers: (i32, i32),
    /// The powers of ten at which the bound has a contour, from the thinnest line to the thickest.
    pub contours: [i32; 3],
}

const LEFT: i32 = 74;
const RIGHT: i32 = 32;
const TOP: i32 = 40;
const BOTTOM: i32 = 40;
const ROW: i32 = 10;
const LEGEND: i32 = 150;
const SHADES: i32 = 32;

/// The colours of cells in which a method fails, and of cells whose number the type cannot hold.
const FAILED: RGBColor = RGBColor(186, 74, 0);
const NO_NUMBER: RGBColor = RGBColor(150, 150, 150);
/// The colour of the contours.
const LINE: RGBColor = RGBColor(230, 126, 0);

/// Draws maps that share a grid and a legend.
///
/// # Errors
///
/// Returns an error if the backend cannot draw.
pub fn draw(grid: &Grid, maps: &[&Map], legend: Legend) -> Result<String> {
    let (panel_width, panel_height) =
        (WIDTH as i32 / 2, TOP + BOTTOM + ROW * grid.rates.len() as i32);
    let height = maps.len().div_ceil(2) as i32 * panel_height + LEGEND;
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height as u32)).into_drawing_area();
        root.fill(&WHITE)?;
        for (i, map) in maps.iter().enumerate() {
            let i = i as i32;
            let place = (i % 2 * panel_width, i / 2 * panel_height);
            panel(&root, place, panel_width, grid, map, legend)?;
        }
        draw_legend(&root, height - LEGEND, legend)?;
        root.present()?;
    }
    Ok(without_defaults(&svg))
}

fn panel(
    area: &Area,
    (left, top): (i32, i32),
    width: i32,
    grid: &Grid,
    map: &Map,
    legend: Legend,
) -> Result {
    let (rows, columns) = map.errors.dim();
    let x = |column: usize| {
        left + LEFT + (width - LEFT - RIGHT) * column as i32 / columns.max(1) as i32
    };
    let y = |row: usize| top + TOP + ROW * row as i32;
    area.draw(&Text::new(map.title.clone(), (left + LEFT, top + 10), font()))?;

    for (row, errors) in map.errors.rows().into_iter().enumerate() {
        let colors: Vec<_> = errors.iter().map(|&error| color(error, legend)).collect();
        let mut column = 0;
        for run in colors.chunk_by(|a, b| a == b) {
            // One pixel overlaps the neighbours, which are drawn over it: no seams in a scaled
            // figure.
            let (right, below) = (column + run.len(), row + 1);
            let seam = |further: bool| i32::from(further);
            let end = (x(right) + seam(right < columns), y(below) + seam(below < rows));
            let corners = [(x(column), y(row)), end];
            area.draw(&Rectangle::new(corners, run[0].filled()))?;
            column += run.len();
        }
    }

    // A contour runs along the edges between cells on different sides of its level.
    for (power, width) in legend.contours.into_iter().zip([1, 2, 4]) {
        let inside = |row: usize, column: usize| {
            map.bounds[[row, column]] <= 10_f64.powi(power) && !map.errors[[row, column]].is_nan()
        };
        let edge = |from, to| area.draw(&PathElement::new([from, to], LINE.stroke_width(width)));
        for row in 0..rows {
            for column in 0..columns {
                if column > 0 && inside(row, column - 1) != inside(row, column) {
                    edge((x(column), y(row)), (x(column), y(row + 1)))?;
                }
                if row > 0 && inside(row - 1, column) != inside(row, column) {
                    edge((x(column), y(row)), (x(column + 1), y(row)))?;
                }
            }
        }
    }

    for (column, len) in grid.lengths.iter().enumerate().filter(|(column, _)| column % 4 == 0) {
        let text = len.to_string();
        let middle = (x(column) + x(column + 1)) / 2;
        area.draw(&Text::new(text.clone(), (middle - 5 * text.len() as i32, y(rows) + 8), font()))?;
    }
    for (row, &rate) in grid.rates.iter().enumerate() {
        let power = rate.abs().log10();
        let whole = (power - power.round()).abs() < 1e-9;
        // The smallest rates of both signs are neighbours and share a label.
        let smallest = grid.rates.get(row + 1).is_some_and(|next| *next == -rate);
        let text = match (whole, power.round() as i64) {
            _ if smallest => format!("±{}", short(rate.abs())),
            (true, 1 | -1) if rate > 0.0 => format!("+{}", short(rate)),
            (true, 1 | -1) => format!("−{}", short(-rate)),
            _ => continue,
        };
        let end = x(0) - 6 - 10 * text.chars().count() as i32;
        area.draw(&Text::new(text, (end, y(row) - if smallest { 0 } else { 5 }), font()))?;
    }
    Ok(())
}

fn short(value: f64) -> String {
    format!("{}", (value * 1e6).round() / 1e6)
}

fn color(error: f64, legend: Legend) -> RGBColor {
    if error.is_nan() {
        return NO_NUMBER;
    }
    if error.is_infinite() {
        return FAILED;
    }
    let (low, high) = (f64::from(legend.powers.0), f64::from(legend.powers.1));
    let share = ((error.log10() - low) / (high - low)).clamp(0.0, 1.0);
    shade((share * f64::from(SHADES)).round() as i32)
}

fn shade(shade: i32) -> RGBColor {
    let share = f64::from(shade) / f64::from(SHADES);
    let mix = |light: f64, dark: f64| (light + (dark - light) * share).round() as u8;
    RGBColor(mix(242.0, 0.0), mix(242.0, 50.0), mix(236.0, 120.0))
}

fn draw_legend(area: &Area, top: i32, legend: Legend) -> Result {
    let (left, width) = (LEFT, 330);
    for i in 0..=SHADES {
        let x = |i: i32| left + width * i / (SHADES + 1);
        area.draw(&Rectangle::new([(x(i), top + 8), (x(i + 1), top + 28)], shade(i).filled()))?;
    }
    let (low, high) = legend.powers;
    let label = |text: String, place: (i32, i32)| area.draw(&Text::new(text, place, font()));
    label(format!("1e{low}"), (left, top + 34))?;
    label(
        if high == 0 { "1".to_owned() } else { format!("1e{high}") },
        (left + width - 14, top + 34),
    )?;
    label("relative error".to_owned(), (left + 88, top + 34))?;

    for (row, (color, text)) in
        [(FAILED, "failed: not a number"), (NO_NUMBER, "out of the type’s range")]
            .iter()
            .enumerate()
    {
        let y = top + 8 + 28 * row as i32;
        area.draw(&Rectangle::new([(430, y), (458, y + 20)], color.filled()))?;
        label((*text).to_owned(), (468, y - 1))?;
    }
    label("bound:".to_owned(), (left, top + 74))?;
    for (i, (power, width)) in legend.contours.into_iter().zip([1, 2, 4]).enumerate() {
        let x = left + 80 + 150 * i as i32;
        let line = [(x, top + 84), (x + 36, top + 84)];
        area.draw(&PathElement::new(line, LINE.stroke_width(width)))?;
        let text = if power == 0 { "1".to_owned() } else { format!("1e{power}") };
        label(text, (x + 46, top + 74))?;
    }
    label("across: length; from top to bottom: mean of ln |c|".to_owned(), (left, top + 112))?;
    Ok(())
}

/// Returns a font that is legible on a phone, where the figure is half as wide.
fn font() -> TextStyle<'static> {
    ("sans-serif", 24).into_text_style(&(1, 1)).color(&BLACK)
}
