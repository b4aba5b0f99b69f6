//! Matrices that a warp loads and stores: `wmma.load` and `wmma.store`, `ldmatrix` and `stmatrix`.
//!
//! Each lane accesses the elements that it holds. `wmma` moves a whole register at once where its
//! elements are contiguous in memory, two registers at once in a row of a summand or a result, and
//! single elements otherwise. These accesses are counted and checked for races; how a GPU splits
//! them is not known. `ldmatrix` and `stmatrix` count as one request with sixteen bytes for each
//! row. Tested by `wmma.rs` and `matrix_rows.rs` in `tests/suite`, and by `products.ptx` in
//! `tests/cases`.

use super::moved::addresses;
use crate::isa::{
    Address, Element, Fragment, LOCAL_WINDOW, Order, Part, SHARED_WINDOW, Slot, Space, Type, Vector,
};
use crate::machine::state::{ALL, Place, Registers, Run, Scratch};
use crate::report::{Accessed, ReportKind, Result, What, fault, lanes as each};

/// The operands that locate a matrix in memory.
#[derive(Clone, Copy)]
pub(crate) struct Where {
    pub(crate) space: Space,
    pub(crate) address: Address,
    pub(crate) stride: Slot,
}

#[derive(Clone, Copy)]
struct Matrix {
    fragment: Fragment,
    space: Space,
    begin: u64,
    /// The distance between rows, or between columns if they are contiguous, in elements.
    stride: u64,
}

impl Matrix {
    fn of(r: &Registers, fragment: Fragment, at: Where) -> Result<Matrix> {
        let (all, strides) = (addresses(r, at.address), r.words(at.stride));
        for lane in 1..32 {
            if all[lane] != all[0] || strides[lane] != strides[0] {
                let message = format!(
                    "gives the address and the stride of a matrix, and lane {lane} of the same warp gives others"
                );
                return fault(ReportKind::Shuffle, ALL, message);
            }
        }
        let stride = strides[0].into();
        Ok(Matrix { fragment, space: at.space, begin: all[0], stride })
    }

    /// Returns the address of each lane's element number `i` of a register.
    fn addresses(self, register: usize, i: usize) -> [u64; 32] {
        let bytes = self.fragment.element.bits() as u64 / 8;
        std::array::from_fn(|lane| {
            let [row, column] = self.fragment.place(register, lane, i).map(|place| place as u64);
            let (outer, inner) = if self.fragment.columns { (column, row) } else { (row, column) };
            let element = outer.wrapping_mul(self.stride).wrapping_add(inner);
            self.begin.wrapping_add(element.wrapping_mul(bytes))
        })
    }

    /// Returns an access that moves all these registers, each as a whole.
    fn whole(self, slots: &[Slot]) -> Vector {
        let wide = self.fragment.element.is_wide();
        let ty = if wide { Type::U64 } else { Type::U32 };
        self.shape(ty, wide, slots)
    }

    fn shape(self, ty: Type, wide: bool, slots: &[Slot]) -> Vector {
        let count = slots.len() as u8;
        let slots = std::array::from_fn(|i| slots[i % slots.len()]);
        Vector { space: self.space, order: Order::Weak, ty, count, wide, slots }
    }

    /// Returns the number of registers that one access moves, or 0 if a register takes several
    /// accesses. It moves two where their elements are contiguous.
    fn at_once(self) -> usize {
        let Fragment { part, element, columns, .. } = self.fragment;
        match part {
            Part::C if element.in_register() == 1 && !columns => 2,
            _ => usize::from(self.fragment.is_contiguous()),
        }
    }

    /// Returns the type of an element that is accessed alone.
    fn element(self) -> Type {
        if self.fragment.element.bits() == 8 { Type::U8 } else { Type::U16 }
    }
}

/// The rows of matrices: eight rows to a matrix, eight halves to a row.
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    pub(crate) count: u8,
    pub(crate) transposed: bool,
    pub(crate) space: Space,
    pub(crate) address: Address,
}

impl Rows {
    /// Returns the address of each lane's first or second element of a matrix.
    fn addresses(self, rows: &[u64; 32], matrix: usize, i: usize) -> [u64; 32] {
        std::array::from_fn(|lane| {
            let (along, across) = (2 * (lane % 4) + i, lane / 4);
            let (row, column) = if self.transposed { (along, across) } else { (across, along) };
            rows[8 * matrix + row].wrapping_add(2 * column as u64)
        })
    }

    /// Returns the lanes that give addresses.
    fn lanes(self) -> u32 {
        ALL >> (32 - 8 * u32::from(self.count))
    }
}

impl Run<'_> {
    /// Executes `wmma.load`, or `wmma.store` if `stores`.
    pub(crate) fn move_fragment(
        &mut self,
        r: &mut Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        (fragment, at): (Fragment, Where),
        (slots, stores): (&[Slot; 8], bool),
    ) -> Result<()> {
        let matrix = Matrix::of(r, fragment, at)?;
        let count = fragment.registers();
        match matrix.at_once() {
            0 => {
                for (register, &slot) in slots.iter().enumerate().take(count) {
                    let shape = matrix.shape(matrix.element(), false, &[slot]);
                    let places = |i| matrix.addresses(register, i);
                    let bits = fragment.element.bits();
                    let parts = (0..fragment.element.in_register()).map(|i| (places(i), bits * i));
                    if stores {
                        self.store_parts(r, scratch, place, shape, parts)?;
                    } else {
                        self.load_parts(r, scratch, place, shape, parts)?;
                    }
                }
            }
            step => {
                for register in (0..count).step_by(step) {
                    let shape = matrix.whole(&slots[register..register + step]);
                    let places = matrix.addresses(register, 0);
                    match stores {
                        true => self.store_at(r, scratch, place, shape, &places, ALL)?,
                        false => self.load_at(r, scratch, place, shape, &places, ALL)?,
                    }
                }
            }
        }
        // Factors of halves take eight registers, and some elements are in two of them.
        if !stores && fragment.part != Part::C && fragment.element == Element::F16 {
            for register in count..8 {
                let value = *r.words(slots[register % count]);
                r.set_words(slots[register], ALL, |lane| value[lane]);
            }
        }
        Ok(())
    }

    /// Loads a register from several places. Each part has its addresses, and the number of bits
    /// below it in the register.
    fn load_parts(
        &mut self,
        r: &mut Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        shape: Vector,
        parts: impl Iterator<Item = ([u64; 32], usize)>,
    ) -> Result<()> {
        let (slot, mut all) = (shape.slots[0], [0; 32]);
        for (from, bits) in parts {
            self.load_at(r, scratch, place, shape, &from, ALL)?;
            let part = r.words(slot);
            all = std::array::from_fn(|lane| all[lane] | part[lane] << bits);
        }
        r.set_words(slot, ALL, |lane| all[lane]);
        Ok(())
    }

    /// Stores a register to several places, as `load_parts` loads it.
    fn store_parts(
        &mut self,
        r: &mut Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        shape: Vector,
        mut parts: impl Iterator<Item = ([u64; 32], usize)>,
    ) -> Result<()> {
        let (slot, value) = (shape.slots[0], *r.words(shape.slots[0]));
        let stored = parts.try_for_each(|(to, bits)| {
            r.set_words(slot, ALL, |lane| value[lane] >> bits);
            self.store_at(r, scratch, place, shape, &to, ALL)
        });
        r.set_words(slot, ALL, |lane| value[lane]);
        stored
    }

    /// Returns the addresses of rows in shared memory, for the lanes that give them. The other
    /// lanes' entries have no meaning.
    fn rows(&mut self, r: &Registers, place: &Place, rows: Rows, verb: &str) -> Result<[u64; 32]> {
        let (mut all, lanes) = (addresses(r, rows.address), rows.lanes());
        if rows.space == Space::Generic {
            for lane in each(lanes) {
                if !(SHARED_WINDOW..LOCAL_WINDOW).contains(&all[lane]) {
                    let what = self.what(Space::Generic, &all, 1 << lane, 1);
                    let message =
                        format!("{verb} a row of a matrix at {what}, which is not shared memory");
                    return fault(ReportKind::OutOfBounds, 1 << lane, message);
                }
                all[lane] -= SHARED_WINDOW;
            }
        }
        self.aligned_in(Space::Shared, &all, lanes, 16, verb)?;
        self.count(place, Space::Shared, &all, lanes, 16);
        Ok(all)
    }

    /// Executes `ldmatrix`, or `stmatrix` if `stores`.
    pub(crate) fn move_rows(
        &mut self,
        r: &mut Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        rows: Rows,
        (slots, stores): (&[Slot; 4], bool),
    ) -> Result<()> {
        let all = self.rows(r, place, rows, if stores { "writes" } else { "reads" })?;
        self.progress |= stores;
        for (matrix, &slot) in slots.iter().enumerate().take(rows.count.into()) {
            let whole = Vector::plain(Type::U32, 1, false, [slot; 4]);
            let shape = Vector { space: Space::Shared, ..whole };
            let [first, second] = [0, 1].map(|i| rows.addresses(&all, matrix, i));
            match (stores, rows.transposed) {
                (false, false) => self.load_plainly(r, scratch, place, shape, &first)?,
                (false, true) => {
                    let low = self.half(r, scratch, place, shape, &first)?;
                    let upper = self.half(r, scratch, place, shape, &second)?;
                    r.set_words(slot, ALL, |lane| low[lane] | upper[lane] << 16);
                }
                (true, false) => self.store_shared(r, scratch, place, shape, (&first, ALL))?,
                (true, true) => {
                    let half = Vector { ty: Type::U16, ..shape };
                    self.store_shared(r, scratch, place, half, (&first, ALL))?;
                    let value = *r.words(slot);
                    r.set_words(slot, ALL, |lane| value[lane] >> 16);
                    let stored = self.store_shared(r, scratch, place, half, (&second, ALL));
                    r.set_words(slot, ALL, |lane| value[lane]);
                    stored?;
                }
            }
            let what: fn(Accessed) -> What = if stores { What::Store } else { What::Load };
            self.trace_access(r, place, shape, Space::Shared, &first, ALL, what)?;
        }
        Ok(())
    }

    /// Loads a half for each lane, through a register. It reads whole words if the kernel never
    /// accesses less than a word.
    fn half(
        &mut self,
        r: &mut Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        shape: Vector,
        at: &[u64; 32],
    ) -> Result<[u32; 32]> {
        let in_words = self.grain == 2;
        let (from, ty) = match in_words {
            true => (at.map(|address| address & !3), Type::U32),
            false => (*at, Type::U16),
        };
        self.load_plainly(r, scratch, place, Vector { ty, ..shape }, &from)?;
        let value = r.words(shape.slots[0]);
        Ok(std::array::from_fn(|lane| match in_words {
            true => value[lane] >> (8 * (at[lane] % 4)) & 0xffff,
            false => value[lane],
        }))
    }

    /// Loads shared memory without counting the request again.
    fn load_plainly(
        &mut self,
        r: &mut Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        shape: Vector,
        from: &[u64; 32],
    ) -> Result<()> {
        let done = self.load_shared(r, scratch, place, shape, (from, ALL));
        done.or_else(|fault| self.load_unwritten(r, scratch, place, shape, (from, ALL), fault))
    }
}
