//! Which registers an operation reads and writes.

use super::instruction::{Instruction, Op, held};
use super::matrix::Part;
use super::operand::{Address, Bank, BarrierId, Base, Clock, Reduction, Slot, Type};
use super::operation::{Binary, Unary};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Reads,
    Writes,
}

fn of(ty: Type) -> Bank {
    if ty.is_wide() { Bank::Long } else { Bank::Word }
}

fn base(address: &mut Address, visit: &mut impl FnMut(Role, Bank, &mut Slot)) {
    match &mut address.base {
        Base::Zero => {}
        Base::Word(slot) => visit(Role::Reads, Bank::Word, slot),
        Base::Long(slot) => visit(Role::Reads, Bank::Long, slot),
    }
}

fn barrier(id: &mut BarrierId, visit: &mut impl FnMut(Role, Bank, &mut Slot)) {
    if let BarrierId::Register(slot) = id {
        visit(Role::Reads, Bank::Word, slot);
    }
}

/// Calls `visit` with every slot that the instruction names, its guard's first.
pub(crate) fn each_slot(
    instruction: &mut Instruction,
    visit: &mut impl FnMut(Role, Bank, &mut Slot),
) {
    use Bank::{Long, Predicate, Word};
    use Role::{Reads, Writes};

    if let Some(guard) = &mut instruction.guard {
        visit(Reads, Predicate, &mut guard.predicate);
    }
    match &mut instruction.op {
        Op::Unary { op, ty, d, a } => {
            let counts =
                matches!(op, Unary::PopCount | Unary::LeadingZeros | Unary::FindBit { .. });
            visit(Reads, of(*ty), a);
            visit(Writes, if counts { Word } else { of(*ty) }, d);
        }
        Op::Binary { op, ty, d, a, b } => {
            let shifts = matches!(op, Binary::Shl | Binary::Shr);
            visit(Reads, of(*ty), a);
            visit(Reads, if shifts { Word } else { of(*ty) }, b);
            visit(Writes, of(*ty), d);
        }
        Op::Arithmetic { ty, d, a, b, .. } => {
            visit(Reads, of(*ty), a);
            visit(Reads, of(*ty), b);
            visit(Writes, of(*ty), d);
        }
        Op::Fma { ty, d, a, b, c, .. } | Op::Ternary { ty, d, a, b, c, .. } => {
            [a, b, c].into_iter().for_each(|slot| visit(Reads, of(*ty), slot));
            visit(Writes, of(*ty), d);
        }
        Op::Carry { ty, takes, gives, d, a, b, c, .. } => {
            [a, b, c].into_iter().for_each(|slot| visit(Reads, of(*ty), slot));
            takes.iter_mut().for_each(|slot| visit(Reads, Predicate, slot));
            visit(Writes, of(*ty), d);
            gives.iter_mut().for_each(|slot| visit(Writes, Predicate, slot));
        }
        Op::MulWide { ty, d, a, b } => {
            [a, b].into_iter().for_each(|slot| visit(Reads, Word, slot));
            visit(Writes, if ty.bytes() == 2 { Word } else { Long }, d);
        }
        Op::MadWide { ty, d, a, b, c } => {
            let product = if ty.bytes() == 2 { Word } else { Long };
            [a, b].into_iter().for_each(|slot| visit(Reads, Word, slot));
            visit(Reads, product, c);
            visit(Writes, product, d);
        }
        Op::BitExtract { ty, d, a, b, c } => {
            visit(Reads, of(*ty), a);
            [b, c].into_iter().for_each(|slot| visit(Reads, Word, slot));
            visit(Writes, of(*ty), d);
        }
        Op::BitInsert { ty, d, a, b, pos, len } => {
            [a, b].into_iter().for_each(|slot| visit(Reads, of(*ty), slot));
            [pos, len].into_iter().for_each(|slot| visit(Reads, Word, slot));
            visit(Writes, of(*ty), d);
        }
        Op::Lop3 { d, a, b, c, .. } => {
            [a, b, c].into_iter().for_each(|slot| visit(Reads, Word, slot));
            visit(Writes, Word, d);
        }
        Op::Select { ty, d, a, b, predicate } => {
            [a, b].into_iter().for_each(|slot| visit(Reads, of(*ty), slot));
            visit(Reads, Predicate, predicate);
            visit(Writes, of(*ty), d);
        }
        Op::SetPredicate { ty, d, complement, combine, a, b, .. } => {
            [a, b].into_iter().for_each(|slot| visit(Reads, of(*ty), slot));
            if let Some((_, guard)) = combine {
                visit(Reads, Predicate, &mut guard.predicate);
            }
            visit(Writes, Predicate, d);
            complement.iter_mut().for_each(|slot| visit(Writes, Predicate, slot));
        }
        Op::Test { ty, d, a, .. } => {
            visit(Reads, of(*ty), a);
            visit(Writes, Predicate, d);
        }
        Op::Predicate { d, a, b, .. } => {
            [a, b].into_iter().for_each(|slot| visit(Reads, Predicate, slot));
            visit(Writes, Predicate, d);
        }
        Op::NotPredicate { d, a } => {
            visit(Reads, Predicate, a);
            visit(Writes, Predicate, d);
        }
        Op::Convert { to, from, d, a, .. } => {
            visit(Reads, of(*from), a);
            visit(Writes, of(*to), d);
        }
        Op::ConvertPair { d, a, b, .. } => {
            [a, b].into_iter().for_each(|slot| visit(Reads, Word, slot));
            visit(Writes, Word, d);
        }
        Op::Pack16 { d, parts } => {
            parts.iter_mut().for_each(|slot| visit(Reads, Word, slot));
            visit(Writes, Word, d);
        }
        Op::Pack32 { d, parts } => {
            parts.iter_mut().for_each(|slot| visit(Reads, Word, slot));
            visit(Writes, Long, d);
        }
        Op::Pack16x4 { d, parts } => {
            parts.iter_mut().for_each(|slot| visit(Reads, Word, slot));
            visit(Writes, Long, d);
        }
        Op::Unpack16 { d, a } => {
            visit(Reads, Word, a);
            d.iter_mut().flatten().for_each(|slot| visit(Writes, Word, slot));
        }
        Op::Unpack32 { d, a } => {
            visit(Reads, Long, a);
            d.iter_mut().flatten().for_each(|slot| visit(Writes, Word, slot));
        }
        Op::Unpack16x4 { d, a } => {
            visit(Reads, Long, a);
            d.iter_mut().flatten().for_each(|slot| visit(Writes, Word, slot));
        }
        Op::ConvertAddress { d, a, .. } => {
            visit(Reads, Long, a);
            visit(Writes, Long, d);
        }
        Op::Load { count, wide, d, address, .. } => {
            base(address, visit);
            let bank = if *wide { Long } else { Word };
            d[..usize::from(*count)].iter_mut().for_each(|slot| visit(Writes, bank, slot));
        }
        Op::LoadParam { count, wide, d, .. } => {
            let bank = if *wide { Long } else { Word };
            d[..usize::from(*count)].iter_mut().for_each(|slot| visit(Writes, bank, slot));
        }
        Op::Store { count, wide, a, address, .. } => {
            base(address, visit);
            let bank = if *wide { Long } else { Word };
            a[..usize::from(*count)].iter_mut().for_each(|slot| visit(Reads, bank, slot));
        }
        Op::Atomic { ty, d, address, b, c, .. } => {
            base(address, visit);
            [b, c].into_iter().for_each(|slot| visit(Reads, of(*ty), slot));
            d.iter_mut().for_each(|slot| visit(Writes, of(*ty), slot));
        }
        Op::CopyAsync { to, from, source_bytes, .. } => {
            base(to, visit);
            base(from, visit);
            source_bytes.iter_mut().for_each(|slot| visit(Reads, Word, slot));
        }
        Op::Shuffle { d, valid, a, b, c, mask, .. } => {
            [a, b, c, mask].into_iter().for_each(|slot| visit(Reads, Word, slot));
            visit(Writes, Word, d);
            valid.iter_mut().for_each(|slot| visit(Writes, Predicate, slot));
        }
        Op::Vote { d, a, mask, .. } => {
            visit(Reads, Predicate, &mut a.predicate);
            visit(Reads, Word, mask);
            visit(Writes, Predicate, d);
        }
        Op::Ballot { d, a, mask } => {
            visit(Reads, Predicate, &mut a.predicate);
            visit(Reads, Word, mask);
            visit(Writes, Word, d);
        }
        Op::Reduce { d, a, mask, .. } => {
            [a, mask].into_iter().for_each(|slot| visit(Reads, Word, slot));
            visit(Writes, Word, d);
        }
        Op::Match { ty, d, valid, a, mask, .. } => {
            visit(Reads, of(*ty), a);
            visit(Reads, Word, mask);
            visit(Writes, Word, d);
            valid.iter_mut().for_each(|slot| visit(Writes, Predicate, slot));
        }
        Op::Elect { d, p, mask } => {
            visit(Reads, Word, mask);
            d.iter_mut().for_each(|slot| visit(Writes, Word, slot));
            visit(Writes, Predicate, p);
        }
        Op::ActiveMask { d } => visit(Writes, Word, d),
        Op::Clock { part, d } => {
            visit(Writes, if *part == Clock::Whole { Long } else { Word }, d);
        }
        Op::WarpBarrier { mask } => visit(Reads, Word, mask),
        Op::Barrier { id, threads } => {
            barrier(id, visit);
            threads.iter_mut().for_each(|slot| visit(Reads, Word, slot));
        }
        Op::BarrierArrive { id, threads } => {
            barrier(id, visit);
            visit(Reads, Word, threads);
        }
        Op::BarrierReduce { op, id, threads, d, a } => {
            barrier(id, visit);
            threads.iter_mut().for_each(|slot| visit(Reads, Word, slot));
            visit(Reads, Predicate, &mut a.predicate);
            visit(Writes, if *op == Reduction::Count { Word } else { Predicate }, d);
        }
        Op::Factors { wide, counts, a, b } => {
            let bank = if *wide { Long } else { Word };
            for (slots, count) in [a, b].into_iter().zip(counts) {
                slots[..usize::from(*count)].iter_mut().for_each(|slot| visit(Reads, bank, slot));
            }
        }
        Op::Multiply { product, c, d } => {
            let bank = if product.a.is_wide() { Long } else { Word };
            let (read, written) = (product.fragment(Part::C), product.result());
            c[..read.registers()].iter_mut().for_each(|slot| visit(Reads, bank, slot));
            d[..written.registers()].iter_mut().for_each(|slot| visit(Writes, bank, slot));
        }
        Op::MatrixLoad { fragment, d, address, stride, .. } => {
            base(address, visit);
            visit(Reads, Word, stride);
            let bank = if fragment.element.is_wide() { Long } else { Word };
            d[..held(*fragment)].iter_mut().for_each(|slot| visit(Writes, bank, slot));
        }
        Op::MatrixStore { fragment, a, address, stride, .. } => {
            base(address, visit);
            visit(Reads, Word, stride);
            let bank = if fragment.element.is_wide() { Long } else { Word };
            a[..fragment.registers()].iter_mut().for_each(|slot| visit(Reads, bank, slot));
        }
        Op::RowsLoad { count, d, address, .. } => {
            base(address, visit);
            d[..usize::from(*count)].iter_mut().for_each(|slot| visit(Writes, Word, slot));
        }
        Op::RowsStore { count, a, address, .. } => {
            base(address, visit);
            a[..usize::from(*count)].iter_mut().for_each(|slot| visit(Reads, Word, slot));
        }
        Op::RowsTranspose { d, a } => {
            visit(Reads, Word, a);
            visit(Writes, Word, d);
        }
        Op::MbarrierInit { address, count } => {
            base(address, visit);
            visit(Reads, Word, count);
        }
        Op::MbarrierInvalidate { address } => base(address, visit),
        Op::MbarrierArrive { d, address, count } => {
            base(address, visit);
            count.iter_mut().for_each(|slot| visit(Reads, Word, slot));
            d.iter_mut().for_each(|slot| visit(Writes, Long, slot));
        }
        Op::MbarrierExpect { d, address, bytes, .. } => {
            base(address, visit);
            bytes.iter_mut().for_each(|slot| visit(Reads, Word, slot));
            d.iter_mut().for_each(|slot| visit(Writes, Long, slot));
        }
        Op::BulkTarget { to: one, mbarrier: other } => {
            base(one, visit);
            base(other, visit);
        }
        Op::BulkIn { from, bytes } => {
            base(from, visit);
            visit(Reads, Word, bytes);
        }
        Op::BulkOut { to, from, bytes } => {
            base(to, visit);
            base(from, visit);
            visit(Reads, Word, bytes);
        }
        Op::MbarrierTest { d, address, phase, parity } => {
            base(address, visit);
            visit(Reads, if *parity { Word } else { Long }, phase);
            visit(Writes, Predicate, d);
        }
        Op::Fetch { geometry, d, object, at, .. } => {
            visit(Reads, Long, object);
            at[..geometry.numbers()].iter_mut().for_each(|slot| visit(Reads, Word, slot));
            d.iter_mut().for_each(|slot| visit(Writes, Word, slot));
        }
        Op::SurfaceLoad { geometry, count, wide, d, object, at, .. } => {
            visit(Reads, Long, object);
            at[..geometry.numbers()].iter_mut().for_each(|slot| visit(Reads, Word, slot));
            let bank = if *wide { Long } else { Word };
            d[..usize::from(*count)].iter_mut().for_each(|slot| visit(Writes, bank, slot));
        }
        Op::SurfaceStore { geometry, count, wide, a, object, at, .. } => {
            visit(Reads, Long, object);
            at[..geometry.numbers()].iter_mut().for_each(|slot| visit(Reads, Word, slot));
            let bank = if *wide { Long } else { Word };
            a[..usize::from(*count)].iter_mut().for_each(|slot| visit(Reads, bank, slot));
        }
        Op::ObjectQuery { d, object, .. } => {
            visit(Reads, Long, object);
            visit(Writes, Word, d);
        }
        Op::Call { target, .. } => target.iter_mut().for_each(|slot| visit(Reads, Long, slot)),
        Op::Fence { .. }
        | Op::CommitGroup
        | Op::WaitGroup { .. }
        | Op::Branch { .. }
        | Op::Return { .. }
        | Op::Exit
        | Op::Trap
        | Op::Nothing => {}
    }
}

/// The first register that an instruction writes.
pub(crate) fn written(instruction: &Instruction) -> Option<(Bank, Slot)> {
    let (mut instruction, mut first) = (*instruction, None);
    each_slot(&mut instruction, &mut |role, bank, slot| {
        if role == Role::Writes {
            first.get_or_insert((bank, *slot));
        }
    });
    first
}

/// The registers that an instruction reads, its guard left out, and those that it writes.
pub(crate) fn slots(instruction: &Instruction) -> [Vec<(Bank, Slot)>; 2] {
    let mut instruction = Instruction { guard: None, ..*instruction };
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    each_slot(&mut instruction, &mut |role, bank, slot| match role {
        Role::Reads => reads.push((bank, *slot)),
        Role::Writes => writes.push((bank, *slot)),
    });
    [reads, writes]
}
