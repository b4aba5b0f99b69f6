//! The legend of a chart. It is drawn between the title and the plot so that it never hides data.

use plotters::prelude::*;

use super::mark::{Look, Pixels};
use super::{Area, Result, font};

/// A series' label and look.
pub(super) type Entry<'a> = (&'a str, Look);

const LINE: i32 = 19;
const SAMPLE: i32 = 26;
const GAP: i32 = 6;
const BETWEEN: i32 = 20;

pub(super) fn height(entries: &[Entry], width: i32) -> i32 {
    LINE * lines(entries, width).len() as i32
}

/// Draws the legend downwards from `top`, with each line centred in the panel.
pub(super) fn draw(area: &Area, entries: &[Entry], top: i32) -> Result {
    let panel = area.dim_in_pixel().0 as i32;
    for (row, line) in lines(entries, panel).into_iter().enumerate() {
        let y = top + LINE * row as i32 + LINE / 2;
        let mut x = (panel - line_width(line)) / 2;
        for &entry in line {
            let (label, look) = entry;
            look.sample(&Pixels(area), (x, y), SAMPLE)?;
            let words = (x + SAMPLE + GAP, y - 7);
            area.draw(&Text::new(label.to_owned(), words, font(13)))?;
            x += entry_width(&entry) + BETWEEN;
        }
    }
    Ok(())
}

/// Divides the entries into lines of as many entries as fit.
fn lines<'a, 'b>(entries: &'b [Entry<'a>], width: i32) -> Vec<&'b [Entry<'a>]> {
    let mut lines = Vec::new();
    let mut rest = entries;
    while !rest.is_empty() {
        let fitting = (1..=rest.len()).rev().find(|&n| line_width(&rest[..n]) <= width - 16);
        let (line, further) = rest.split_at(fitting.unwrap_or(1));
        lines.push(line);
        rest = further;
    }
    lines
}

fn line_width(line: &[Entry]) -> i32 {
    let entries: i32 = line.iter().map(entry_width).sum();
    entries + BETWEEN * (line.len() as i32 - 1).max(0)
}

/// Estimates the width of an entry generously, because the reader's browser chooses the font.
fn entry_width((label, _): &Entry) -> i32 {
    SAMPLE + GAP + label.chars().count() as i32 * 7
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::mark::Mark;

    #[test]
    fn entries_that_do_not_fit_go_to_another_line() {
        let look = Look::new(Mark::Line, BLACK);
        let entries = [("accelerated-scan", look), ("the roof", look), ("pipe", look)];
        assert_eq!(lines(&entries, 720).len(), 1);
        assert_eq!(lines(&entries, 300).iter().map(|line| line.len()).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(lines(&entries, 10).len(), 3);
        assert_eq!(height(&[], 720), 0);
    }
}
