//! Fetches from textures, loads and stores of surfaces, and what they are asked for.
//!
//! Each lane may have a handle of its own. Texels are read and written as global memory is, so that all that is known of
//! that holds of them; and what a launch has written it may not read through a texture or surface, since these are read
//! through a cache that does not see it.

use super::Run;
use super::access::extended;
use super::fault::{Fault, Result, fault};
use super::registers::{Registers, Words};
use super::warp::Place;
use crate::counters::lanes as each;
use crate::global_memory::{self, Named};
use crate::program::{Op, Order, Slot, Type};
use crate::report::{Count, ReportKind};
use crate::texture::coordinate::{channel, texel};
use crate::texture::{self, Element, Extent, Geometry, Object, Outside, Query, Table};
use crate::trace::{Accessed, Event, What};

/// What lanes have accessed: where, and the values.
struct Done {
    lanes: u32,
    addresses: [u64; 32],
    bytes: u32,
    /// Of these bytes so many numbers; for a fetch those of the last texture.
    count: u8,
}

/// An instruction on surfaces.
struct Surface {
    geometry: Geometry,
    outside: Outside,
    ty: Type,
    count: u8,
    wide: bool,
    slots: [Slot; 4],
    object: Slot,
    at: [Slot; 3],
}

impl Surface {
    fn bytes(&self) -> u32 {
        self.ty.bytes() * u32::from(self.count)
    }

    fn nothing(&self) -> Done {
        Done { lanes: 0, addresses: [0; 32], bytes: self.bytes(), count: self.count }
    }

    fn opcode(&self, stores: bool) -> String {
        let name = if stores { "sust" } else { "suld" };
        format!("{name}.b.{}", self.geometry.name())
    }
}

impl<'a> Run<'a> {
    /// Executes an instruction on textures or surfaces.
    #[inline(never)]
    pub(super) fn objects(
        &mut self,
        r: &mut Registers,
        place: &Place,
        op: &Op,
        lanes: u32,
    ) -> Result<()> {
        match *op {
            Op::Fetch { geometry, linear, ty, d, object, at } => {
                self.fetch(r, place, (geometry, linear, ty), (d, object, at), lanes)
            }
            Op::SurfaceLoad { geometry, outside, ty, count, wide, d, object, at } => {
                let access = Surface { geometry, outside, ty, count, wide, slots: d, object, at };
                self.surface_load(r, place, &access, lanes)
            }
            Op::SurfaceStore { geometry, outside, ty, count, wide, a, object, at } => {
                let access = Surface { geometry, outside, ty, count, wide, slots: a, object, at };
                self.surface_store(r, place, &access, lanes)
            }
            Op::ObjectQuery { query, surface, d, object } => {
                let handles = *r.longs(object);
                for lane in each(lanes) {
                    let object = meant(self.objects, handles[lane], !surface, lane)?;
                    r.set_lane(d, false, lane, answer(object, query, lane)?.into());
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn fetch(
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

    /// That a fetch goes with the texture.
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

    fn surface_load(
        &mut self,
        r: &mut Registers,
        place: &Place,
        access: &Surface,
        lanes: u32,
    ) -> Result<()> {
        let handles = *r.longs(access.object);
        let at = access.at.map(|slot| *r.words(slot));
        let mut done = access.nothing();
        for lane in each(lanes) {
            let object = meant(self.objects, handles[lane], false, lane)?;
            let numbers = at.map(|words| words[lane]);
            let words = match surface_place(object, access, numbers, false, lane)? {
                Some(address) => {
                    done.add(lane, address, access.bytes());
                    self.read_object(place, object, (address, access.bytes()), lane)?
                }
                None => [0; 4],
            };
            for k in 0..usize::from(access.count) {
                let value = match access.ty.bytes() {
                    8 => u64::from(words[2 * k % 4]) | u64::from(words[(2 * k + 1) % 4]) << 32,
                    _ => extended(access.ty, &words, k),
                };
                r.set_lane(access.slots[k % 4], access.wide, lane, value);
            }
        }
        self.count_objects(place, lanes, &done);
        self.trace_objects(r, place, &done, (&access.slots, access.wide), What::Load)
    }

    fn surface_store(
        &mut self,
        r: &Registers,
        place: &Place,
        access: &Surface,
        lanes: u32,
    ) -> Result<()> {
        let handles = *r.longs(access.object);
        let at = access.at.map(|slot| *r.words(slot));
        let mut done = access.nothing();
        for lane in each(lanes) {
            let object = meant(self.objects, handles[lane], false, lane)?;
            let numbers = at.map(|words| words[lane]);
            if let Some(address) = surface_place(object, access, numbers, true, lane)? {
                done.add(lane, address, access.bytes());
            }
        }
        for lane in each(done.lanes) {
            let object = meant(self.objects, handles[lane], false, lane)?;
            let (bytes, mut words) = (access.ty.bytes(), [0; 4]);
            for k in 0..usize::from(access.count) {
                let value = r.lane(access.slots[k % 4], access.wide, lane);
                let first = bytes as usize * k;
                match bytes {
                    8 => {
                        words[2 * k % 4] = value as u32;
                        words[(2 * k + 1) % 4] = (value >> 32) as u32;
                    }
                    _ => {
                        let part = value as u32 & u32::MAX >> (32 - 8 * bytes);
                        words[first / 4 % 4] |= part << (8 * (first % 4));
                    }
                }
            }
            let address = done.addresses[lane];
            let written = self.write(place, Order::Weak, address, access.bytes(), words, lane);
            written.map_err(|fault| through(fault, object, "writes"))?;
        }
        self.progress = true;
        self.count_objects(place, lanes, &done);
        self.trace_objects(r, place, &done, (&access.slots, access.wide), What::Store)
    }

    /// Reads texels that are there.
    fn read_object(
        &mut self,
        place: &Place,
        object: &Object,
        (address, bytes): (u64, u32),
        lane: usize,
    ) -> Result<[u32; 4]> {
        let (buffer, offset) = self.locate(address, bytes, lane, "reads")?;
        let mut written = false;
        if let Some(order) = &mut self.order {
            for word in address / 4..(address + u64::from(bytes)).div_ceil(4) {
                written |= order.has_written(&mut self.account, word)?;
            }
        } else if let Some(page) = buffer.page(global_memory::page_of(offset)) {
            let first = global_memory::word_in_page(offset);
            let words = &page[first..first + bytes.div_ceil(4) as usize];
            written = words.iter().any(|word| word.is_written(&place.tags));
        }
        if written {
            let message = format!(
                "reads through {object} {} at offset {offset} of {}, which the same launch writes: textures and surfaces are \
                 read through a cache that does not see it",
                Count(bytes, "byte"),
                Named(buffer)
            );
            return fault(ReportKind::Race, 1 << lane, message);
        }
        let read = self.read(place, Order::Weak, address, bytes, lane);
        read.map_err(|fault| through(fault, object, "reads"))
    }

    fn count_objects(&mut self, place: &Place, lanes: u32, done: &Done) {
        let traffic = &mut self.tally.traffic[place.pc as usize];
        traffic.requests += u64::from(lanes != 0);
        traffic.bytes += u64::from(done.bytes) * u64::from(done.lanes.count_ones());
    }

    fn trace_objects(
        &mut self,
        r: &Registers,
        place: &Place,
        done: &Done,
        (slots, wide): (&[Slot; 4], bool),
        what: fn(Accessed) -> What,
    ) -> Result<()> {
        let kernel = self.launch.kernel;
        let Some(trace) = self.trace.as_mut().filter(|_| done.lanes != 0) else { return Ok(()) };
        trace.push(&mut self.account, done.count, || Event {
            block: place.block,
            warp: place.warp,
            lanes: done.lanes,
            line: kernel.places[place.pc as usize].line,
            source: kernel.source_of(place.pc as usize),
            what: what(Accessed {
                shared: false,
                bytes: done.bytes / u32::from(done.count),
                addresses: done.addresses,
                values: slots[..usize::from(done.count)]
                    .iter()
                    .map(|&slot| std::array::from_fn(|lane| r.lane(slot, wide, lane)))
                    .collect(),
            }),
        })
    }
}

impl Done {
    fn add(&mut self, lane: usize, address: u64, bytes: u32) {
        self.lanes |= 1 << lane;
        self.addresses[lane] = address;
        self.bytes = bytes;
    }
}

/// Says of a fault what has been read or written through.
fn through(mut fault: Box<Fault>, object: &Object, verb: &str) -> Box<Fault> {
    if let Some(rest) = fault.message.strip_prefix(verb) {
        fault.message = format!("{verb} through {object}{rest}");
    }
    fault
}

/// The texture, or else surface, that a handle means.
fn meant(table: &Table, handle: u64, texture: bool, lane: usize) -> Result<&Object> {
    let asked = if texture { "texture" } else { "surface" };
    let message = match texture::find(table, handle) {
        Ok(object) if object.sampler.is_some() == texture => return Ok(object),
        Ok(object) => format!("uses as a {asked} the handle of {object}"),
        Err(what) => format!("uses as a {asked} {what}"),
    };
    fault(ReportKind::Texture, 1 << lane, message)
}

/// Where in a texture coordinates are: along x, and along y and z or by the layer; `None` if there is nothing but zeros.
fn located(
    object: &Object,
    geometry: Geometry,
    numbers: [u32; 3],
    lane: usize,
) -> Result<Option<(u32, [u32; 2])>> {
    let (extent, Some(sampler)) = (object.image.extent, &object.sampler) else { return Ok(None) };
    let texels = extent.texels();
    if let Extent::Linear { width } = extent {
        return Ok((numbers[0] < width).then_some((numbers[0], [0; 2])));
    }
    let along =
        |axis: usize, number: u32| texel(f32::from_bits(number), texels[axis], sampler, axis);
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

/// A layer by its number.
fn layer(object: &Object, number: u32, lane: usize) -> Result<Option<u32>> {
    if object.image.extent.layers().is_some_and(|layers| number < layers) {
        return Ok(Some(number));
    }
    let message = format!("reads layer {number} of {object}");
    fault(ReportKind::OutOfBounds, 1 << lane, message)
}

/// The address that an access to a surface means; `None` if it is outside, and that is nothing.
fn surface_place(
    object: &Object,
    access: &Surface,
    numbers: [u32; 3],
    stores: bool,
    lane: usize,
) -> Result<Option<u64>> {
    let (image, bytes) = (&object.image, i64::from(access.bytes()));
    let verb = if stores { "writes" } else { "reads" };
    let geometry = access.geometry;
    if image.extent.geometry() != geometry {
        let opcode = access.opcode(stores);
        let message = format!("{verb} {object} by `{opcode}`, which is for another shape");
        return fault(ReportKind::Texture, 1 << lane, message);
    }
    let [a, b, c] = numbers.map(|number| i64::from(number as i32));
    let mut at = match geometry {
        Geometry::One => [a, 0, 0],
        Geometry::Two => [a, b, 0],
        Geometry::Three => [a, b, c],
        Geometry::Layers1 => [b, 0, a],
        Geometry::Layers2 => [b, c, a],
    };
    let what = || {
        let coordinates = &at[..match geometry {
            Geometry::One => 1,
            Geometry::Two => 2,
            _ => 3,
        }];
        format!(
            "{verb} {} at byte {} of a row{} of {object}",
            Count(access.bytes(), "byte"),
            coordinates[0],
            match coordinates {
                [_, y] => format!(", y {y},"),
                [_, y, z] if geometry == Geometry::Three => format!(", y {y}, z {z},"),
                [_, _, z] if geometry == Geometry::Layers1 => format!(", layer {z},"),
                [_, y, z] => format!(", y {y}, layer {z},"),
                _ => String::new(),
            }
        )
    };
    if at[0] % bytes != 0 {
        let message = format!("{}: that byte is no multiple of {bytes}", what());
        return fault(ReportKind::Misaligned, 1 << lane, message);
    }
    let [_, height, depth] = image.extent.texels().map(i64::from);
    let last = [image.row_bytes() as i64 - bytes, height - 1, depth - 1];
    if at.iter().zip(last).any(|(at, last)| *at < 0 || *at > last) {
        match access.outside {
            Outside::Zero => return Ok(None),
            // A row may be shorter than the access.
            Outside::Clamp if last[0] >= 0 => {
                for (at, last) in at.iter_mut().zip(last) {
                    *at = (*at).clamp(0, last);
                }
                at[0] -= at[0] % bytes;
            }
            Outside::Clamp | Outside::Trap => {
                let message = format!("{}, which is outside of it", what());
                return fault(ReportKind::OutOfBounds, 1 << lane, message);
            }
        }
    }
    let [x, y, z] = at;
    Ok(Some(image.place(x as u64, [y as u32, z as u32])))
}

/// What a texture or surface is asked for.
fn answer(object: &Object, query: Query, lane: usize) -> Result<u32> {
    let (extent, [width, height, depth]) = (object.image.extent, object.image.extent.texels());
    let three = matches!(extent, Extent::Array3d { .. });
    let has_rows = matches!(extent.geometry(), Geometry::Two | Geometry::Three | Geometry::Layers2);
    let (what, found) = match query {
        Query::Width => ("width", Some(width)),
        Query::Height => ("height", has_rows.then_some(height)),
        Query::Depth => ("depth", three.then_some(depth)),
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
