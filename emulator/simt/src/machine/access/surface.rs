//! Loads and stores of surfaces.

use super::moved::{gathered, spread};
use super::texture::{Done, meant};
use crate::isa::{Geometry, Outside, Slot, Vector};
use crate::machine::state::{Place, Registers, Run};
use crate::memory::texture::Object;
use crate::report::{Count, ReportKind, Result, What, fault, lanes as each};

pub(crate) struct Surface {
    pub(crate) geometry: Geometry,
    pub(crate) outside: Outside,
    pub(crate) shape: Vector,
    pub(crate) object: Slot,
    pub(crate) at: [Slot; 3],
}

impl Surface {
    fn bytes(&self) -> u32 {
        self.shape.bytes()
    }

    fn nothing(&self) -> Done {
        Done { lanes: 0, addresses: [0; 32], bytes: self.bytes(), count: self.shape.count }
    }

    fn opcode(&self, stores: bool) -> String {
        let name = if stores { "sust" } else { "suld" };
        format!("{name}.b.{}", self.geometry.name())
    }
}

impl<'a> Run<'a> {
    #[inline(never)]
    pub(crate) fn surface_load(
        &mut self,
        r: &mut Registers,
        place: &Place,
        access: &Surface,
        lanes: u32,
    ) -> Result<()> {
        let (mut done, mut moved) = (access.nothing(), [[0; 4]; 32]);
        for lane in each(lanes) {
            let (object, found) = self.surface_at(r, access, false, lane)?;
            if let Some(address) = found {
                done.add(lane, address, access.bytes());
                moved[lane] = self.read_object(place, object, (address, access.bytes()), lane)?;
            }
        }
        spread(r, &access.shape, lanes, &moved);
        self.count_objects(place, lanes, &done);
        self.trace_objects(r, place, &done, (&access.shape.slots, access.shape.wide), What::Load)
    }

    #[inline(never)]
    pub(crate) fn surface_store(
        &mut self,
        r: &Registers,
        place: &Place,
        access: &Surface,
        lanes: u32,
    ) -> Result<()> {
        let mut done = access.nothing();
        let mut objects = [None; 32];
        for lane in each(lanes) {
            let (object, found) = self.surface_at(r, access, true, lane)?;
            if let Some(address) = found {
                done.add(lane, address, access.bytes());
                objects[lane] = Some(object);
            }
        }
        let moved = gathered(r, &access.shape);
        for (lane, object) in objects.into_iter().enumerate() {
            let Some(object) = object else { continue };
            let at = (done.addresses[lane], access.bytes());
            self.write_object(place, object, at, &moved[lane], lane)?;
        }
        self.progress = true;
        self.count_objects(place, lanes, &done);
        self.trace_objects(r, place, &done, (&access.shape.slots, access.shape.wide), What::Store)
    }

    /// Returns a lane's surface, and the address in it; see [`surface_place`].
    fn surface_at(
        &self,
        r: &Registers,
        access: &Surface,
        stores: bool,
        lane: usize,
    ) -> Result<(&'a Object, Option<u64>)> {
        let object = meant(self.objects, r.longs(access.object)[lane], false, lane)?;
        let numbers = access.at.map(|slot| r.words(slot)[lane]);
        Ok((object, surface_place(object, access, numbers, stores, lane)?))
    }
}

/// Returns the address of an access, or `None` if it is outside and has no effect.
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
    // An H100 takes the low 31 bits of a layer's number: 2^31 is layer 0, and -1 is past the last
    // layer.
    let layer = i64::from(numbers[0] & !(1 << 31));
    let mut at = match geometry {
        Geometry::One => [a, 0, 0],
        Geometry::Two => [a, b, 0],
        Geometry::Three => [a, b, c],
        Geometry::Layers1 => [b, 0, layer],
        Geometry::Layers2 => [b, c, layer],
    };
    let what = || {
        let axes = match geometry {
            Geometry::One => 1,
            Geometry::Two => 2,
            _ => 3,
        };
        let coordinates = &at[..axes];
        format!(
            "{verb} {} at byte {} of a row{} of {object}",
            Count(access.bytes(), "byte"),
            coordinates[0],
            match coordinates {
                [_, y] => format!(", y {y},"),
                [_, y, z] if geometry == Geometry::Three => format!(", y {y}, z {z},"),
                [..] if geometry == Geometry::Layers1 => format!(", layer {},", numbers[0]),
                [_, y, _] => format!(", y {y}, layer {},", numbers[0]),
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
