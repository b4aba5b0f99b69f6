//! A picture of requests: lanes above, the sectors they touch below.

use linrec::lesson::Result;
use linrec::lesson::plot::{Area, COLORS, Panel};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// One request of a warp whose lanes load a float each.
pub struct Request {
    /// What is said above it.
    pub name: &'static str,
    /// Where each lane's float lies, in bytes from the start of a sector.
    pub addresses: [u64; 32],
}

/// Requests, one below the other.
pub struct Requests(pub Vec<Request>);

const LEFT: i32 = 12;
const ROW: i32 = 116;
/// From the top of a row: its name, the lanes, the sectors.
const LANES: i32 = 34;
const SECTORS: i32 = 84;
const LANE: i32 = 7;
const WORD: i32 = 2;
const SECTOR: i32 = 8 * WORD + 1;
/// From one sector to the next; those that are neighbours in memory touch.
const GAP: i32 = 5;
const HEIGHT: i32 = 14;

impl Panel for Requests {
    fn height(&self, _width: u32) -> u32 {
        (ROW * self.0.len() as i32 + 6) as u32
    }

    fn draw(&self, area: &Area) -> Result {
        let width = area.dim_in_pixel().0 as i32 - 2 * LEFT;
        for (row, request) in self.0.iter().enumerate() {
            draw_request(area, request, ROW * row as i32 + 6, width)?;
        }
        Ok(())
    }
}

fn draw_request(area: &Area, request: &Request, top: i32, width: i32) -> Result {
    let mut sectors: Vec<u64> = request.addresses.iter().map(|address| address / 32).collect();
    sectors.dedup();
    let text = ("sans-serif", 14).into_text_style(&(1, 1)).color(&BLACK);
    let title = format!("{}: {} sectors", request.name, sectors.len());
    let left = Pos::new(HPos::Left, VPos::Center);
    area.draw(&Text::new(title, (LEFT, top + 10), text.pos(left)))?;

    // Where each sector is drawn: in the middle, with a gap where memory lies between two of them.
    let step = |pair: &[u64]| SECTOR + if pair[1] == pair[0] + 1 { 0 } else { GAP };
    let length = SECTOR + sectors.windows(2).map(step).sum::<i32>();
    let mut places = vec![LEFT + (width - length) / 2];
    for pair in sectors.windows(2) {
        places.push(places[places.len() - 1] + step(pair));
    }
    let y = top + SECTORS;
    let grey = RGBColor(128, 128, 128);
    for &x in &places {
        let corners = [(x, y), (x + SECTOR, y + HEIGHT)];
        area.draw(&Rectangle::new(corners, grey.mix(0.35).filled()))?;
    }
    for (lane, address) in request.addresses.iter().enumerate() {
        let sector = sectors.iter().position(|sector| *sector == address / 32).unwrap_or(0);
        let word = places[sector] + WORD * (address % 32 / 4) as i32;
        area.draw(&Rectangle::new([(word, y), (word + WORD, y + HEIGHT)], COLORS[1].filled()))?;
        let x = LEFT + width * lane as i32 / 32 + (width / 32 - LANE) / 2;
        let line = [(x + LANE / 2, top + LANES + LANE), (word + WORD / 2, y)];
        area.draw(&PathElement::new(line, COLORS[0].mix(0.8).stroke_width(1)))?;
        let corners = [(x, top + LANES), (x + LANE, top + LANES + LANE)];
        area.draw(&Rectangle::new(corners, COLORS[0].filled()))?;
    }
    for &x in &places {
        let corners = [(x, y), (x + SECTOR, y + HEIGHT)];
        area.draw(&Rectangle::new(corners, grey.stroke_width(1)))?;
    }
    Ok(())
}
