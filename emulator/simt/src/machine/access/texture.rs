//! Fetches from textures, and what fetches share with surfaces: handles, checks, queries, counters.
//!
//! Each lane may use a different handle. Texels are read and written in the same way as global
//! memory, so that the same checks find accesses out of bounds, unwritten bytes and races. A launch
//! may not read through a texture or surface what it has written, since a GPU reads them through a
//! cache that does not see the writes. The rule that turns coordinates into texels is in
//! `memory::texture`. Tested by `textures.rs`, `measured_textures.rs`, `textures_of_cuda.rs` and
//! `object_mistakes.rs` in `tests/suite`.

use crate::isa::{Geometry, Order, Query, Slot, Type};
use crate::machine::state::{Place, Registers, Run, Words};
use crate::memory::global::{self, Named};
use crate::memory::texture::coordinate::{channel, texel};
use crate::memory::texture::{self, Element, Extent, Object, Table};
use crate::report::{Accessed, Count, Fault, ReportKind, Result, What, fault, lanes as each};

/// The accesses of lanes to textures or surfaces, for counters and traces.
pub(crate) struct Done {
    pub(crate) lanes: u32,
    pub(crate) addresses: [u64; 32],
    pub(crate) bytes: u32,
    /// The number of values in these bytes; for a fetch, the number in a texel of the last texture.
    pub(crate) count: u8,
}

impl<'a> Run<'a> {
    /// Executes `txq` and `suq`.
    #[inline(never)]
    pub(crate) fn query(
        &mut self,
        r: &mut Registers,
        _: &Place,
        (query, surface): (Query, bool),
        d: Slot,
        object: Slot,
        lanes: u32,
    ) -> Result<()> {
        let handles = *r.longs(object);
        for lane in each(lanes) {
            let object = meant(self.objects, handles[lane], !surface, lane)?;
            r.set_lane(d, false, lane, answer(object, query, lane)?.into());
        }
        Ok(())
    }

    /// Executes `tex`.
    #[inline(never)]
    pub(crate) fn fetch(
        &mut self,
        r: &mut Registers,
        place: &Place,
        (geometry, linear, ty): (Geometry, bool, Type),
        (d, handles, at): ([Slot; 4], Slot, [Slot; 3]),
        lanes: u32,
    ) -> Result<()> {
        let handles = *r.longs(handles);
        let at: [Words; 3] = at.map(|slot| *r.words(slot));
        let mut done = Done { lanes: 0, addresses: [0; 32], bytes: 0, count: 1 };
        for lane in each(lanes) {
            let object = meant(self.objects, handles[lane], true, lane)?;
            self.suits(object, geometry, linear, ty, lane)?;
            let image = &object.image;
            let numbers = at.map(|words| words[lane]);
            let mut values = [0; 4];
            if let Some((x, plane)) = located(object, geometry, numbers, lane)? {
                let bytes = image.texel_bytes();
                let address = image.place(u64::from(x) * u64::from(bytes), plane);
                let words = self.read_object(place, object, (address, bytes), lane)?;
                let normalized = object.sampler.is_some_and(|sampler| sampler.normalized_values);
                for (number, value) in values.iter_mut().enumerate().take(image.channels as usize) {
                    *value = channel(&words, image.element, number as u32, normalized);
                }
                done.add(lane, address, bytes);
                done.count = image.channels as u8;
            }
            for (slot, value) in d.into_iter().zip(values) {
                r.set_lane(slot, false, lane, value.into());
            }
        }
        self.count_objects(place, lanes, &done);
        self.trace_objects(r, place, &done, (&d, false), What::Load)
    }

    /// Checks that the form of a fetch suits the texture.
    fn suits(
        &self,
        object: &Object,
        geometry: Geometry,
        linear: bool,
        ty: Type,
        lane: usize,
    ) -> Result<()> {
        let image = &object.image;
        let is_linear = matches!(image.extent, Extent::Linear { .. });
        let is_float = image.element.is_float()
            || object.sampler.is_some_and(|sampler| sampler.normalized_values);
        let why = if image.extent.geometry() != geometry {
            format!("by `tex.{}`, which is for another shape", geometry.name())
        } else if linear && !is_linear {
            "by an integer, as `tex1Dfetch` reads linear memory only".to_string()
        } else if is_linear && !linear {
            "by a float, and linear memory is read by integers, with `tex1Dfetch`".to_string()
        } else if is_float != (ty == Type::F32) {
            let asked = if ty == Type::F32 { "a float" } else { "an integer" };
            let are = if is_float { "floats" } else { "integers" };
            let element = Element::name(image.element);
            format!("as {asked}, and it is read as {are} (its elements are {element})")
        } else {
            return Ok(());
        };
        fault(ReportKind::Texture, 1 << lane, format!("reads {object} {why}"))
    }

    /// Reads texels that are inside the object.
    pub(crate) fn read_object(
        &mut self,
        place: &Place,
        object: &Object,
        (address, bytes): (u64, u32),
        lane: usize,
    ) -> Result<[u32; 4]> {
        let mut found = [0; 16];
        for (at, length) in pieces(address, bytes) {
            if self.is_written(place, at, length, lane)? {
                let (buffer, offset) = self.locate(at, length, lane, "reads")?;
                let message = format!(
                    "reads through {object} {} at offset {offset} of {}, which the same launch writes: textures and surfaces are \
                     read through a cache that does not see it",
                    Count(length, "byte"),
                    Named(buffer)
                );
                return fault(ReportKind::Race, 1 << lane, message);
            }
            let read = self.read(place, Order::Weak, at, length, lane);
            let words = read.map_err(|fault| through(fault, object, "reads"))?;
            let first = (at - address) as usize;
            found[first..first + length as usize]
                .copy_from_slice(&to_bytes(&words)[..length as usize]);
        }
        Ok(to_words(&found))
    }

    /// Writes texels that are inside the object.
    pub(crate) fn write_object(
        &mut self,
        place: &Place,
        object: &Object,
        (address, bytes): (u64, u32),
        words: &[u32; 4],
        lane: usize,
    ) -> Result<()> {
        let all = to_bytes(words);
        for (at, length) in pieces(address, bytes) {
            let (first, mut part) = ((at - address) as usize, [0; 16]);
            part[..length as usize].copy_from_slice(&all[first..first + length as usize]);
            let written = self.write(place, Order::Weak, at, length, to_words(&part), lane);
            written.map_err(|fault| through(fault, object, "writes"))?;
        }
        Ok(())
    }

    /// Returns true if the launch has written any of up to 16 aligned bytes.
    fn is_written(&mut self, place: &Place, address: u64, bytes: u32, lane: usize) -> Result<bool> {
        let words = bytes.div_ceil(4);
        if let Some(order) = &mut self.order {
            let mut words = address / 4..address / 4 + u64::from(words);
            let mut one = |word| order.has_written(&mut self.account, word, bytes >= 4);
            return words.try_fold(false, |any, word| Ok(any || one(word)?));
        }
        let (buffer, offset) = self.locate(address, bytes, lane, "reads")?;
        let Some(page) = buffer.page(global::page_of(offset)) else { return Ok(false) };
        let first = global::word_in_page(offset);
        let words = page.iter().skip(first).take(words as usize);
        Ok(words.into_iter().any(|word| word.is_written(&place.tags)))
    }

    pub(crate) fn count_objects(&mut self, place: &Place, lanes: u32, done: &Done) {
        let traffic = &mut self.tally.traffic[place.pc as usize];
        traffic.requests += u64::from(lanes != 0);
        traffic.bytes += u64::from(done.bytes) * u64::from(done.lanes.count_ones());
    }

    pub(crate) fn trace_objects(
        &mut self,
        r: &Registers,
        place: &Place,
        done: &Done,
        (slots, wide): (&[Slot; 4], bool),
        what: fn(Accessed) -> What,
    ) -> Result<()> {
        if done.lanes == 0 {
            return Ok(());
        }
        self.trace_lanes(place, done.lanes, done.count, || {
            let values = slots[..usize::from(done.count)].iter();
            let values = values.map(|&slot| r.lanes(slot, wide)).collect();
            let (bytes, addresses) = (done.bytes / u32::from(done.count), done.addresses);
            what(Accessed { shared: false, bytes, addresses, values })
        })
    }
}

impl Done {
    pub(crate) fn add(&mut self, lane: usize, address: u64, bytes: u32) {
        self.lanes |= 1 << lane;
        self.addresses[lane] = address;
        self.bytes = bytes;
    }
}

/// Splits bytes at an address into aligned pieces. Rows follow each other without gaps here, so a
/// row may begin at any byte.
fn pieces(address: u64, bytes: u32) -> impl Iterator<Item = (u64, u32)> {
    let (mut at, end) = (address, address + u64::from(bytes));
    std::iter::from_fn(move || {
        let left = (end - at) as u32;
        let piece = 1_u32 << at.trailing_zeros().min(4).min(left.checked_ilog2()?);
        at += u64::from(piece);
        Some((at - u64::from(piece), piece))
    })
}

fn to_bytes(words: &[u32; 4]) -> [u8; 16] {
    std::array::from_fn(|i| words[i / 4].to_le_bytes()[i % 4])
}

fn to_words(bytes: &[u8; 16]) -> [u32; 4] {
    std::array::from_fn(|i| u32::from_le_bytes(std::array::from_fn(|k| bytes[4 * i + k])))
}

/// Names in a fault the object through which memory is read or written.
fn through(mut fault: Box<Fault>, object: &Object, verb: &str) -> Box<Fault> {
    if let Some(rest) = fault.message.strip_prefix(verb) {
        fault.message = format!("{verb} through {object}{rest}");
    }
    fault
}

/// Returns the texture, or the surface if not `texture`, that a handle belongs to.
pub(crate) fn meant(table: &Table, handle: u64, texture: bool, lane: usize) -> Result<&Object> {
    let asked = if texture { "texture" } else { "surface" };
    let message = match texture::find(table, handle) {
        Ok(object) if object.sampler.is_some() == texture => return Ok(object),
        Ok(object) => format!("uses as a {asked} the handle of {object}"),
        Err(what) => format!("uses as a {asked} {what}"),
    };
    fault(ReportKind::Texture, 1 << lane, message)
}

/// Returns the texel at the given coordinates: its place along x, then along y and z, where a layer
/// counts as z. Returns `None` if the fetch gives only zeros.
fn located(
    object: &Object,
    geometry: Geometry,
    numbers: [u32; 3],
    lane: usize,
) -> Result<Option<(u32, [u32; 2])>> {
    let (extent, Some(sampler)) = (object.image.extent, &object.sampler) else { return Ok(None) };
    if let Extent::Linear { width } = extent {
        return Ok((numbers[0] < width).then_some((numbers[0], [0; 2])));
    }
    let along = |axis: usize, number: u32| texel(f32::from_bits(number), extent, sampler, axis);
    let [a, b, c] = numbers;
    let found = match geometry {
        Geometry::One => [along(0, a), Some(0), Some(0)],
        Geometry::Two => [along(0, a), along(1, b), Some(0)],
        Geometry::Three => [along(0, a), along(1, b), along(2, c)],
        Geometry::Layers1 => [along(0, b), Some(0), layer(object, a, lane)?],
        Geometry::Layers2 => [along(0, b), along(1, c), layer(object, a, lane)?],
    };
    Ok(match found {
        [Some(x), Some(y), Some(z)] => Some((x, [y, z])),
        _ => None,
    })
}

fn layer(object: &Object, number: u32, lane: usize) -> Result<Option<u32>> {
    if object.image.extent.layers().is_some_and(|layers| number < layers) {
        return Ok(Some(number));
    }
    let message = format!(
        "reads layer {number} of {object}, which has none such (an H100 reads the last one)"
    );
    fault(ReportKind::OutOfBounds, 1 << lane, message)
}

/// Returns the answer to a query of a texture or surface.
fn answer(object: &Object, query: Query, lane: usize) -> Result<u32> {
    let (extent, [width, height, depth]) = (object.image.extent, object.image.extent.texels());
    // On an H100 the depth of a texture with layers is their number. For surfaces it is not known.
    let has_depth = match extent {
        Extent::Array3d { .. } => true,
        _ => extent.layers().is_some() && object.sampler.is_some(),
    };
    let has_rows = matches!(extent.geometry(), Geometry::Two | Geometry::Three | Geometry::Layers2);
    let (what, found) = match query {
        Query::Width => ("width", Some(width)),
        Query::Height => ("height", has_rows.then_some(height)),
        Query::Depth => ("depth", has_depth.then_some(depth)),
        Query::Layers => ("number of layers", extent.layers()),
        Query::Normalized => {
            let sampler = object.sampler.as_ref();
            let normalized = sampler.is_some_and(|sampler| sampler.normalized_coordinates);
            return Ok(if normalized { u32::MAX } else { 0 });
        }
    };
    match found {
        Some(found) => Ok(found),
        None => {
            let message = format!("asks for the {what} of {object}, which has none");
            fault(ReportKind::Texture, 1 << lane, message)
        }
    }
}
