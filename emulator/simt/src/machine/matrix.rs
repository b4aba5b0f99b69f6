//! Products of matrices, which all lanes of a warp compute together.

use super::state::{ALL, Lanes as At, Place, Registers, Run, Scratch};
use crate::isa::{Element, Fragment, How, Instruction, Op, Part, Product, Slot};
use crate::machine::arithmetic::tensor::{
    Number, double_sum, integer, integer_sum, rounded, sum, summand,
};
use crate::report::{Lanes, ReportKind, Result, fault};

/// Returns whether all lanes of the warp have come.
pub(crate) fn together(at: At) -> Result<bool> {
    let (missing, skip) = (!at.active, at.path & !at.active);
    if missing == 0 {
        return Ok(true);
    }
    if skip != 0 {
        let skips = if skip.is_power_of_two() { "skips" } else { "skip" };
        let message =
            format!("needs all lanes of its warp together, and {} {skips} it", Lanes(skip));
        return fault(ReportKind::Shuffle, at.active, message);
    }
    if at.alive & missing != 0 {
        return Ok(false);
    }
    let why = match at.exists & missing {
        0 => "which the block does not have",
        _ => "some of which left the kernel before",
    };
    let message = format!("needs all 32 lanes of its warp, and so {}, {why}", Lanes(missing));
    fault(ReportKind::Shuffle, at.active, message)
}

impl Run<'_> {
    /// Executes `mma.sync`, whose factors are in the instruction before it.
    pub(crate) fn multiply(
        &mut self,
        r: &mut Registers,
        _: &mut Scratch<'_>,
        place: &Place,
        product: Product,
        sums: [&[Slot; 8]; 2],
    ) -> Result<()> {
        let before = (place.pc as usize).checked_sub(1);
        let before = before.and_then(|pc| self.launch.kernel.code.get(pc));
        if let Some(Instruction { op: Op::Factors { a, b, .. }, .. }) = before {
            multiply(r, product, [a, b], sums);
        }
        Ok(())
    }

    /// Executes `movmatrix`, which transposes a matrix.
    pub(crate) fn transpose(
        &mut self,
        r: &mut Registers,
        _: &mut Scratch<'_>,
        _: &Place,
        d: Slot,
        a: Slot,
    ) -> Result<()> {
        let a = *r.words(a);
        let element =
            |row: usize, column: usize| a[4 * row + column / 2] >> (16 * (column % 2)) & 0xffff;
        r.set_words(d, ALL, |lane| {
            let (row, column) = (lane / 4, 2 * (lane % 4));
            element(column, row) | element(column + 1, row) << 16
        });
        Ok(())
    }
}

/// Collects the bits of a matrix's elements from the lanes, row by row.
fn gathered(r: &Registers, fragment: Fragment, slots: &[Slot; 8]) -> Vec<u64> {
    let ([rows, columns], element) = (fragment.extents(), fragment.element);
    let mut all = vec![0; rows * columns];
    let (each, bits) = (element.in_register(), element.bits());
    let mask = u64::MAX >> (64 - bits);
    for (register, &slot) in slots.iter().enumerate().take(fragment.registers()) {
        for lane in 0..32 {
            let held = r.lane(slot, element.is_wide(), lane);
            for i in 0..each {
                let [row, column] = fragment.place(register, lane, i);
                all[row * columns + column] = held >> (bits * i) & mask;
            }
        }
    }
    all
}

/// Puts the elements of a matrix into the registers of the lanes.
fn spread(r: &mut Registers, fragment: Fragment, slots: &[Slot; 8], all: &[u64]) {
    let ([_, columns], element) = (fragment.extents(), fragment.element);
    for (register, &slot) in slots.iter().enumerate().take(fragment.registers()) {
        let value = |lane: usize| {
            (0..element.in_register()).fold(0, |held, i| {
                let [row, column] = fragment.place(register, lane, i);
                held | all[row * columns + column] << (element.bits() * i)
            })
        };
        match element.is_wide() {
            true => r.set_longs(slot, ALL, value),
            false => r.set_words(slot, ALL, |lane| value(lane) as u32),
        }
    }
}

/// Computes `d = a b + c`.
fn multiply(r: &mut Registers, product: Product, [a, b]: [&[Slot; 8]; 2], [c, d]: [&[Slot; 8]; 2]) {
    let [m, n, k] = product.shape.extents();
    // A GPU executes `wmma` of `tf32`, m16n16k8, as two instructions (`HMMA.1684`, by NVIDIA's
    // disassembler): one for depths 0 to 3, one for depths 4 to 7. The sum of the first is the
    // summand of the second. All other products, including `mma` of m16n8k8, are one instruction.
    let at_once = if product.a == Element::Tf32 && n == 16 { k / 2 } else { k };
    let fragment = |part| product.fragment(part);
    let a = gathered(r, fragment(Part::A), a);
    let b = gathered(r, fragment(Part::B), b);
    let c = gathered(r, fragment(Part::C), c);
    let mut result = vec![0; m * n];
    let places = || (0..m).flat_map(|row| (0..n).map(move |column| (row, column)));
    match product.a {
        Element::F16 | Element::Bf16 | Element::Tf32 => {
            let numbers = |element, bits: &[u64]| -> Vec<Number> {
                bits.iter().map(|&bits| Number::of(element, bits)).collect()
            };
            let a = numbers(product.a, &a);
            // The columns become contiguous.
            let b: Vec<u64> = (0..n)
                .flat_map(|j| (0..k).map(move |i| (i, j)))
                .map(|(i, j)| b[i * n + j])
                .collect();
            let b = numbers(product.b, &b);
            // The type of the sum is the type of summand and result if they have the same.
            // Otherwise it is `f32`, and the half is converted.
            let inner = if product.c == product.d { product.d } else { Element::F32 };
            let mut c: Vec<u32> =
                c.iter().map(|&bits| summand(product.c, bits as u32, inner)).collect();
            for (i, j) in places() {
                let (row, column, place) = (&a[i * k..][..k], &b[j * k..][..k], i * n + j);
                for (row, column) in row.chunks(at_once).zip(column.chunks(at_once)) {
                    c[place] = sum(row, column, Number::of(inner, c[place].into()), inner);
                }
                result[place] = rounded(inner, c[place], product.d).into();
            }
        }
        Element::F64 => {
            for (i, j) in places() {
                let pairs = (0..k).map(|l| [a[i * k + l], b[l * n + j]]);
                result[i * n + j] = double_sum(pairs, c[i * n + j]);
            }
        }
        _ => {
            for (i, j) in places() {
                let products = (0..k).map(|l| {
                    let (x, y) = (a[i * k + l], b[l * n + j]);
                    match product.how {
                        How::CountXor => (x ^ y) as i64,
                        How::CountAnd => (x & y) as i64,
                        _ => integer(product.a, x) * integer(product.b, y),
                    }
                });
                result[i * n + j] = integer_sum(products, c[i * n + j] as u32, product.how).into();
            }
        }
    }
    spread(r, product.result(), d, &result);
}
