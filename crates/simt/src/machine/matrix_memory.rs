//! Matrices that a warp loads and stores: `wmma.load` and `wmma.store`, `ldmatrix` and `stmatrix`.
//!
//! Each lane accesses what it holds: of `wmma` register by register, whole ones where their elements lie side by side in memory,
//! and of what is to be stored two at a time. So it is counted, and so races are told; how a GPU deals the accesses out is not
//! known. The rows of `ldmatrix` and `stmatrix` count as one request of sixteen bytes a row.

use super::Run;
use super::access::{LOCAL_WINDOW, SHARED_WINDOW, Shape, addresses, aligned};
use super::fault::{Result, fault};
use super::registers::{ALL, Registers};
use super::warp::{Place, Scratch};
use crate::counters::lanes as each;
use crate::matrix::{Element, Fragment, Part};
use crate::program::{Address, Order, Slot, Space, Type};
use crate::report::ReportKind;
use crate::trace::What;

/// Where a matrix lies.
#[derive(Clone, Copy)]
pub(super) struct Where {
    pub(super) space: Space,
    pub(super) address: Address,
    pub(super) stride: Slot,
}

/// A matrix in memory.
#[derive(Clone, Copy)]
struct Matrix {
    fragment: Fragment,
    space: Space,
    begin: u64,
    /// From row to row or from column to column, in elements.
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

    /// Where lanes have an element of a register.
    fn addresses(self, register: usize, i: usize) -> [u64; 32] {
        let bytes = self.fragment.element.bits() as u64 / 8;
        std::array::from_fn(|lane| {
            let [row, column] = self.fragment.place(register, lane, i).map(|place| place as u64);
            let (outer, inner) = if self.fragment.columns { (column, row) } else { (row, column) };
            let element = outer.wrapping_mul(self.stride).wrapping_add(inner);
            self.begin.wrapping_add(element.wrapping_mul(bytes))
        })
    }

    /// An access of so many registers, each of them whole.
    fn whole(self, slots: &[Slot]) -> Shape {
        let wide = self.fragment.element.is_wide();
        let ty = if wide { Type::U64 } else { Type::U32 };
        self.shape(ty, wide, slots)
    }

    fn shape(self, ty: Type, wide: bool, slots: &[Slot]) -> Shape {
        let count = slots.len() as u8;
        let slots = std::array::from_fn(|i| slots[i % slots.len()]);
        Shape { space: self.space, order: Order::Weak, ty, count, wide, slots }
    }

    /// Registers that one access moves: two, where their elements lie side by side. None if it takes several to move one.
    fn at_once(self) -> usize {
        let Fragment { part, element, columns, .. } = self.fragment;
        match part {
            Part::C if element.in_register() == 1 && !columns => 2,
            _ => usize::from(self.fragment.is_contiguous()),
        }
    }

    /// The type of an element that is accessed by itself.
    fn element(self) -> Type {
        if self.fragment.element.bits() == 8 { Type::U8 } else { Type::U16 }
    }
}

/// Rows of eight halves, eight to a matrix.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub(super) count: u8,
    pub(super) transposed: bool,
    pub(super) space: Space,
    pub(super) address: Address,
}

impl Rows {
    /// Where lanes have their first or second element of a matrix.
    fn addresses(self, rows: &[u64; 32], matrix: usize, i: usize) -> [u64; 32] {
        std::array::from_fn(|lane| {
            let (along, across) = (2 * (lane % 4) + i, lane / 4);
            let (row, column) = if self.transposed { (along, across) } else { (across, along) };
            rows[8 * matrix + row].wrapping_add(2 * column as u64)
        })
    }

    /// The lanes that give addresses.
    fn lanes(self) -> u32 {
        ALL >> (32 - 8 * u32::from(self.count))
    }
}

impl Run<'_> {
    pub(super) fn load_fragment(
        &mut self,
        r: &mut Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        fragment: Fragment,
        at: Where,
        d: &[Slot; 8],
    ) -> Result<()> {
        let matrix = Matrix::of(r, fragment, at)?;
        let (count, bits) = (fragment.registers(), fragment.element.bits());
        match matrix.at_once() {
            0 => {
                for (register, &slot) in d.iter().enumerate().take(count) {
                    let mut all = [0; 32];
                    for i in 0..fragment.element.in_register() {
                        let shape = matrix.shape(matrix.element(), false, &[slot]);
                        let from = matrix.addresses(register, i);
                        self.load_at(r, scratch, place, shape, &from, ALL)?;
                        let part = r.words(slot);
                        all = std::array::from_fn(|lane| all[lane] | part[lane] << (bits * i));
                    }
                    r.set_words(slot, ALL, |lane| all[lane]);
                }
            }
            step => {
                for register in (0..count).step_by(step) {
                    let shape = matrix.whole(&d[register..register + step]);
                    let from = matrix.addresses(register, 0);
                    self.load_at(r, scratch, place, shape, &from, ALL)?;
                }
            }
        }
        // Factors of halves are held in eight registers, some of them more than once.
        if fragment.part != Part::C && fragment.element == Element::F16 {
            for register in count..8 {
                let value = *r.words(d[register % count]);
                r.set_words(d[register], ALL, |lane| value[lane]);
            }
        }
        Ok(())
    }

    pub(super) fn store_fragment(
        &mut self,
        r: &mut Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        fragment: Fragment,
        at: Where,
        a: &[Slot; 8],
    ) -> Result<()> {
        let matrix = Matrix::of(r, fragment, at)?;
        let (count, bits) = (fragment.registers(), fragment.element.bits());
        match matrix.at_once() {
            0 => {
                for (register, &slot) in a.iter().enumerate().take(count) {
                    for i in 0..fragment.element.in_register() {
                        let shape = matrix.shape(matrix.element(), false, &[slot]);
                        let to = matrix.addresses(register, i);
                        self.store_shifted(r, scratch, place, shape, &to, bits * i)?;
                    }
                }
            }
            step => {
                for register in (0..count).step_by(step) {
                    let shape = matrix.whole(&a[register..register + step]);
                    let to = matrix.addresses(register, 0);
                    self.store_at(r, scratch, place, shape, &to, ALL)?;
                }
            }
        }
        Ok(())
    }

    /// Stores what a register holds above its low bits.
    fn store_shifted(
        &mut self,
        r: &mut Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        shape: Shape,
        to: &[u64; 32],
        bits: usize,
    ) -> Result<()> {
        let (slot, value) = (shape.slots[0], *r.words(shape.slots[0]));
        r.set_words(slot, ALL, |lane| value[lane] >> bits);
        let stored = self.store_at(r, scratch, place, shape, to, ALL);
        r.set_words(slot, ALL, |lane| value[lane]);
        stored
    }

    /// The places of rows in shared memory, of the lanes that give them; the others' have no meaning.
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
        aligned(&all, lanes, 16, verb, || self.what(Space::Shared, &all, lanes, 16))?;
        self.count(place, Space::Shared, &all, lanes, 16);
        Ok(all)
    }

    /// `ldmatrix`.
    pub(super) fn load_rows(
        &mut self,
        r: &mut Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        rows: Rows,
        d: &[Slot; 4],
    ) -> Result<()> {
        let all = self.rows(r, place, rows, "reads")?;
        for (matrix, &slot) in d.iter().enumerate().take(rows.count.into()) {
            let shape = Shape {
                space: Space::Shared,
                order: Order::Weak,
                ty: Type::U32,
                count: 1,
                wide: false,
                slots: [slot; 4],
            };
            let first = rows.addresses(&all, matrix, 0);
            if rows.transposed {
                let low = self.half(r, scratch, place, shape, &first)?;
                let upper = rows.addresses(&all, matrix, 1);
                let upper = self.half(r, scratch, place, shape, &upper)?;
                r.set_words(slot, ALL, |lane| low[lane] | upper[lane] << 16);
            } else {
                self.load_plainly(r, scratch, place, shape, &first)?;
            }
            self.trace_access(r, place, shape, Space::Shared, &first, ALL, What::Load)?;
        }
        Ok(())
    }

    /// A half for each lane, by way of a register. What nothing accesses in smaller parts is read in words.
    fn half(
        &mut self,
        r: &mut Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        shape: Shape,
        at: &[u64; 32],
    ) -> Result<[u32; 32]> {
        let in_words = self.grain == 2;
        let (from, ty) = match in_words {
            true => (at.map(|address| address & !3), Type::U32),
            false => (*at, Type::U16),
        };
        self.load_plainly(r, scratch, place, Shape { ty, ..shape }, &from)?;
        let value = r.words(shape.slots[0]);
        Ok(std::array::from_fn(|lane| match in_words {
            true => value[lane] >> (8 * (at[lane] % 4)) & 0xffff,
            false => value[lane],
        }))
    }

    /// A load of shared memory that has been counted.
    fn load_plainly(
        &mut self,
        r: &mut Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        shape: Shape,
        from: &[u64; 32],
    ) -> Result<()> {
        match self.load_shared(r, scratch, place, shape, from, ALL) {
            Ok(()) => Ok(()),
            Err(fault) => self.load_unwritten(r, scratch, place, shape, (from, ALL), fault),
        }
    }

    /// `stmatrix`.
    pub(super) fn store_rows(
        &mut self,
        r: &mut Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        rows: Rows,
        a: &[Slot; 4],
    ) -> Result<()> {
        let all = self.rows(r, place, rows, "writes")?;
        self.progress = true;
        for (matrix, &slot) in a.iter().enumerate().take(rows.count.into()) {
            let ty = if rows.transposed { Type::U16 } else { Type::U32 };
            let shape = Shape {
                space: Space::Shared,
                order: Order::Weak,
                ty,
                count: 1,
                wide: false,
                slots: [slot; 4],
            };
            let first = rows.addresses(&all, matrix, 0);
            self.store_shared(r, scratch, place, shape, &first, ALL)?;
            if rows.transposed {
                let value = *r.words(slot);
                r.set_words(slot, ALL, |lane| value[lane] >> 16);
                let upper = rows.addresses(&all, matrix, 1);
                let stored = self.store_shared(r, scratch, place, shape, &upper, ALL);
                r.set_words(slot, ALL, |lane| value[lane]);
                stored?;
            }
            let shape = Shape { ty: Type::U32, ..shape };
            self.trace_access(r, place, shape, Space::Shared, &first, ALL, What::Store)?;
        }
        Ok(())
    }
}
