//! The events of an instruction for a reader: sectors of a request, banks of shared memory, lanes
//! of a shuffle.

use serde_json::{Value, json};
use simt::{Accessed, Event, What, sectors, wavefronts};

use crate::number;
use crate::scene::Array;

/// The size of a sector in bytes.
const SECTOR: u64 = 32;

/// Returns an event for the page: a sentence, and the data of its drawing.
pub fn event(event: &Event, arrays: &[Array]) -> Value {
    let who = format!("warp {}, {}", event.warp, number::lanes(event.lanes));
    let mut shown = match &event.what {
        What::Barrier => {
            json!({ "kind": "barrier", "says": format!("{who}: arrives at the barrier") })
        }
        What::Shuffle { mode, before, after, sources } => {
            let moved = number::lanes(
                (0..32)
                    .filter(|&lane| {
                        usize::from(sources[lane]) != lane && event.lanes >> lane & 1 == 1
                    })
                    .fold(0, |mask, lane| mask | 1 << lane),
            );
            json!({
                "kind": "shuffle",
                "says": format!("{who}: shuffle {mode}; {moved} get a value of another lane"),
                "from": sources.iter().map(|&lane| u32::from(lane)).collect::<Vec<_>>(),
                "before": before.iter().map(|&bits| word(bits)).collect::<Vec<_>>(),
                "after": after.iter().map(|&bits| word(bits)).collect::<Vec<_>>(),
            })
        }
        What::Load(accessed) => access("loads", &who, event.lanes, accessed, arrays),
        What::Store(accessed) => access("stores", &who, event.lanes, accessed, arrays),
        What::Copy(copied) => {
            let read =
                (0..32).filter(|&lane| event.lanes >> lane & 1 == 1 && copied.read[lane] > 0);
            let asking = read.fold(0, |mask, lane| mask | 1 << lane);
            let touched = if asking == 0 { 0 } else { sectors(&copied.from, asking) };
            let bytes = copied.bytes;
            json!({
                "kind": "global",
                "says": format!(
                    "{who}: copy of {bytes} bytes each begins, from global to shared memory: {}",
                    count(touched, "sector")
                ),
                "sectors": sector_list(&copied.from, asking, arrays),
            })
        }
    };
    shown["lanes"] = json!(event.lanes);
    shown
}

fn access(verb: &str, who: &str, lanes: u32, accessed: &Accessed, arrays: &[Array]) -> Value {
    let Accessed { shared, bytes, addresses, values } = accessed;
    let each = bytes * values.len() as u32;
    if *shared {
        let (passes, conflicts) = wavefronts(addresses, lanes, each);
        let words =
            each_lane(lanes).map(|lane| json!([lane, addresses[lane] / 4, each.div_ceil(4)]));
        let cost = if conflicts == 0 {
            String::new()
        } else {
            format!(", {conflicts} of them for bank conflicts")
        };
        return json!({
            "kind": "shared",
            "says": format!("{who}: {verb} {each} bytes each, shared memory: {}{cost}", count(passes, "pass")),
            "words": words.collect::<Vec<_>>(),
            "conflicts": conflicts,
        });
    }
    let touched = sectors(addresses, lanes);
    let array = each_lane(lanes).next().and_then(|lane| find(arrays, addresses[lane]));
    let place = array.map_or("global memory".to_owned(), |array| format!("`{}`", array.name));
    json!({
        "kind": "global",
        "says": format!("{who}: {verb} {each} bytes each, {place}: {}", count(touched, "sector")),
        "sectors": sector_list(addresses, lanes, arrays),
    })
}

/// Returns each touched sector: its place in its array, and the lanes that access it.
fn sector_list(addresses: &[u64; 32], lanes: u32, arrays: &[Array]) -> Value {
    let mut list: Vec<(u64, u32)> = Vec::new();
    for lane in each_lane(lanes) {
        let sector = addresses[lane] / SECTOR;
        match list.iter_mut().find(|(one, _)| *one == sector) {
            Some((_, members)) => *members |= 1 << lane,
            None => list.push((sector, 1 << lane)),
        }
    }
    list.sort_unstable();
    list.into_iter()
        .map(|(sector, members)| {
            let address = sector * SECTOR;
            let (name, first) = match find(arrays, address) {
                Some(array) => (&*array.name, (address - array.address) / array.ty.bytes() as u64),
                None => ("", 0),
            };
            let elements =
                find(arrays, address).map_or(0, |array| SECTOR / array.ty.bytes() as u64);
            json!({ "array": name, "first": first, "elements": elements, "lanes": members })
        })
        .collect()
}

/// Returns the array that contains an address.
pub fn find(arrays: &[Array], address: u64) -> Option<&Array> {
    arrays.iter().find(|array| {
        (array.address..array.address + (array.count * array.ty.bytes()).max(1) as u64)
            .contains(&address)
    })
}

fn each_lane(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |lane| mask >> lane & 1 == 1)
}

fn count(number: u64, what: &str) -> String {
    let ending = match (number, what) {
        (1, _) => "",
        (_, "pass") => "es",
        _ => "s",
    };
    format!("{number} {what}{ending}")
}

/// Returns a word of unknown type as text.
pub fn word(bits: u32) -> String {
    if number::looks_like_float(bits) && bits != 0 {
        number::float(f32::from_bits(bits).into())
    } else {
        (bits as i32).to_string()
    }
}
