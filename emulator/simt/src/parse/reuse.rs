//! Register allocation: slots that several registers use, one after the other.
//!
//! In PTX, nearly every instruction writes a new register, and few registers are live at a time. A
//! register occupies its slot from the first to the last instruction at which it is live, in the
//! order of the code. Then the next register gets the slot (linear scan; Poletto and Sarkar, 1999).
//! This reduces the registers of a warp to a tenth, in memory and in the cache.
//!
//! Results do not change. Each lane has a separate part of every slot, an instruction reads its
//! operands before it writes, and an instruction across lanes only reads from lanes that execute
//! it. Registers that may be read before they are written are live from the start. They get slots
//! that no other register used before, so they read zeros. Tested here, and by `suite/programs.rs`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::isa::{Bank, Instruction, Kernel, Op, Preset, Role, Slot};

/// Limits per instruction, for the words of the sets and for the words visited, so that the time is
/// linear in the length of the code. Code beyond a limit keeps its slots; compilers' code needs a
/// tenth.
const MOST_WORDS: usize = 16;
const MOST_STEPS: usize = 64;

/// A basic block: instructions that are executed in sequence, and the blocks that follow.
struct Block {
    begin: usize,
    end: usize,
    next: [Option<usize>; 2],
}

/// The number of a register that is not live at the beginning of any block.
const WITHIN_BLOCKS: u32 = u32::MAX;

/// Assigns the slots of a kernel again.
pub(super) fn reuse(kernel: &mut Kernel) {
    let counts = kernel.slots.map(|count| count as usize);
    let first_of = [0, counts[0], counts[0] + counts[1]];
    let all = first_of[2] + counts[2];
    let index = |bank: Bank, slot: Slot| first_of[bank as usize] + usize::from(slot);
    let mut constant = vec![false; all];
    for preset in &mut kernel.presets {
        let (bank, slot) = place(preset);
        constant[index(bank, *slot)] = true;
    }
    let Some(spans) = spans(&kernel.code, all, index) else { return };

    // Constants come first, since they are live throughout.
    let mut order: Vec<usize> = (0..all).filter(|&i| constant[i] || spans[i].is_some()).collect();
    let begin = |i: usize| if constant[i] { None } else { spans[i].map(|(first, _)| first) };
    order.sort_by_key(|&i| begin(i));
    let mut slots: Vec<Slot> = vec![0; all];
    let mut counts = [0; 3];
    let mut free: [BinaryHeap<Reverse<Slot>>; 3] = Default::default();
    let mut taken: [BinaryHeap<Reverse<(usize, Slot)>>; 3] = Default::default();
    for i in order {
        let bank = first_of.iter().rposition(|&first| first <= i).unwrap_or(0);
        let first = begin(i).unwrap_or(0);
        while let Some(&Reverse((last, slot))) = taken[bank].peek()
            && last < first
        {
            taken[bank].pop();
            free[bank].push(Reverse(slot));
        }
        let slot = free[bank].pop().map_or(counts[bank], |Reverse(slot)| slot);
        counts[bank] = counts[bank].max(slot + 1);
        slots[i] = slot;
        if let (false, Some((_, last))) = (constant[i], spans[i]) {
            taken[bank].push(Reverse((last, slot)));
        }
    }
    for instruction in &mut kernel.code {
        instruction.each_slot(&mut |_, bank, slot| *slot = slots[index(bank, *slot)]);
    }
    for preset in &mut kernel.presets {
        let (bank, slot) = place(preset);
        *slot = slots[index(bank, *slot)];
    }
    kernel.slots = counts.map(u32::from);
}

/// Sets the live range of each named register; the whole code if the analysis takes too long.
pub(super) fn note_live(kernel: &mut Kernel) {
    let counts = kernel.slots.map(|count| count as usize);
    let first_of = [0, counts[0], counts[0] + counts[1]];
    let index = |bank: Bank, slot: Slot| first_of[bank as usize] + usize::from(slot);
    let all = first_of[2] + counts[2];
    let spans = spans(&kernel.code, all, index);
    let end = kernel.code.len() as u32;
    for register in &mut kernel.registers {
        register.live = match &spans {
            // From the instruction after the first write to the last read.
            Some(spans) => spans[index(register.bank, register.slot)]
                .map_or(0..0, |(first, last)| first.div_ceil(2) as u32..(last / 2 + 1) as u32),
            None => 0..end,
        };
    }
}

/// Returns the slot of a preset.
pub(super) fn place(preset: &mut Preset) -> (Bank, &mut Slot) {
    match preset {
        Preset::Word { slot, .. } | Preset::Special { slot, .. } => (Bank::Word, slot),
        Preset::Long { slot, .. } | Preset::Global { slot, .. } | Preset::Frame { slot } => {
            (Bank::Long, slot)
        }
        Preset::Predicate { slot, .. } => (Bank::Predicate, slot),
    }
}

/// Returns the first and last place at which each register is live, if any. Instruction i reads at
/// 2 i and writes at 2 i + 1. Returns `None` if the analysis exceeds a limit.
fn spans(
    code: &[Instruction],
    registers: usize,
    index: impl Fn(Bank, Slot) -> usize,
) -> Option<Vec<Option<(usize, usize)>>> {
    let blocks = blocks(code);
    let visit = |at: usize, visit: &mut dyn FnMut(Role, usize)| {
        let mut instruction = code[at];
        instruction.each_slot(&mut |role, bank, slot| visit(role, index(bank, *slot)));
    };

    // Registers that a block may read before it writes them.
    let mut number = vec![WITHIN_BLOCKS; registers];
    let mut exposed: Vec<(usize, usize)> = Vec::new();
    let mut written_in = vec![usize::MAX; registers];
    let mut across = 0;
    for (block, Block { begin, end, .. }) in blocks.iter().enumerate() {
        for (instruction, at) in code[*begin..*end].iter().zip(*begin..) {
            visit(at, &mut |role, register| {
                if role == Role::Reads && written_in[register] != block {
                    if number[register] == WITHIN_BLOCKS {
                        number[register] = across;
                        across += 1;
                    }
                    exposed.push((block, number[register] as usize));
                }
            });
            // A write with a guard is not certain.
            if instruction.guard.is_none() {
                visit(at, &mut |role, register| {
                    if role == Role::Writes {
                        written_in[register] = block;
                    }
                });
            }
        }
    }
    let words = (across as usize).div_ceil(64);
    if words * blocks.len() > MOST_WORDS * code.len() {
        return None;
    }
    let mut live = vec![0_u64; words * blocks.len()];
    let mut written = live.clone();
    for (block, number) in exposed {
        live[block * words + number / 64] |= 1 << (number % 64);
    }
    for (block, Block { begin, end, .. }) in blocks.iter().enumerate() {
        for at in (*begin..*end).filter(|&at| code[at].guard.is_none()) {
            visit(at, &mut |role, register| {
                if role == Role::Writes && number[register] != WITHIN_BLOCKS {
                    let number = number[register] as usize;
                    written[block * words + number / 64] |= 1 << (number % 64);
                }
            });
        }
    }

    // A register is live at the end of a block if it is live at the beginning of a successor.
    let after = |live: &[u64], block: &Block, word: usize| {
        block.next.iter().flatten().fold(0, |all, next| all | live[next * words + word])
    };
    let (mut changed, mut steps) = (true, 0);
    while changed {
        changed = false;
        steps += words * blocks.len();
        if steps > MOST_STEPS * code.len() {
            return None;
        }
        for (i, block) in blocks.iter().enumerate().rev() {
            for word in 0..words {
                let here = i * words + word;
                let now = live[here] | after(&live, block, word) & !written[here];
                changed |= now != live[here];
                live[here] = now;
            }
        }
    }

    let mut spans: Vec<Option<(usize, usize)>> = vec![None; registers];
    let mut touch = |register: usize, at: usize| {
        let (first, last) = spans[register].unwrap_or((at, at));
        spans[register] = Some((first.min(at), last.max(at)));
    };
    for at in 0..code.len() {
        visit(at, &mut |role, register| {
            touch(register, 2 * at + usize::from(role == Role::Writes))
        });
    }
    let mut register_of = vec![0; across as usize];
    for (register, &number) in number.iter().enumerate().filter(|(_, n)| **n != WITHIN_BLOCKS) {
        register_of[number as usize] = register;
    }
    for (i, block) in blocks.iter().enumerate() {
        for word in 0..words {
            let (before, after) = (live[i * words + word], after(&live, block, word));
            for bit in 0..64 {
                if before >> bit & 1 == 1 {
                    touch(register_of[64 * word + bit], 2 * block.begin);
                }
                if after >> bit & 1 == 1 {
                    touch(register_of[64 * word + bit], 2 * block.end - 1);
                }
            }
        }
    }
    Some(spans)
}

fn blocks(code: &[Instruction]) -> Vec<Block> {
    let mut begins = vec![false; code.len()];
    for (at, instruction) in code.iter().enumerate() {
        let leads = match instruction.op {
            Op::Branch { target, .. } => Some(target as usize),
            Op::Exit {} | Op::Return { .. } | Op::Trap {} => None,
            _ => continue,
        };
        for begin in leads.into_iter().chain([at + 1]) {
            if let Some(begins) = begins.get_mut(begin) {
                *begins = true;
            }
        }
    }
    let starts: Vec<usize> = (0..code.len()).filter(|&at| at == 0 || begins[at]).collect();
    let block_at = |at: usize| starts.binary_search(&at).ok();
    let ends = starts.iter().skip(1).copied().chain([code.len()]);
    let block = |(&begin, end): (&usize, usize)| {
        let last = code[end - 1];
        let falls = last.guard.is_some() || !last.op.ends_path();
        let leads = match last.op {
            Op::Branch { target, .. } => block_at(target as usize),
            _ => None,
        };
        Block { begin, end, next: [leads, if falls { block_at(end) } else { None }] }
    };
    starts.iter().zip(ends).map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::Module;

    /// Parses a kernel; returns it with its numbers of words, longs and predicates.
    fn kernel(statements: &str) -> (Kernel, [u32; 3]) {
        let source = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry kernel(.param .u64 a)\n{{\n\
             .reg .pred %p<9>; .reg .b32 %r<99>; .reg .b64 %rd<9>;\n{statements}\n}}\n"
        );
        let module = Module::parse(&source).unwrap_or_else(|error| panic!("{error}"));
        let kernel = Kernel::clone(module.kernel("kernel").unwrap());
        let counts = kernel.slots;
        (kernel, counts)
    }

    #[test]
    fn a_chain_of_registers_takes_one_slot() {
        let adds: String =
            (1..50).map(|i| format!("add.u32 %r{}, %r{i}, %r{i};\n", i + 1)).collect();
        let store = "ld.param.u64 %rd1, [a]; st.global.u32 [%rd1], %r50;";
        // One slot besides the constant.
        assert_eq!(kernel(&format!("mov.u32 %r1, 7;\n{adds}{store}")).1, [2, 1, 0]);
    }

    #[test]
    fn what_is_needed_in_a_loop_is_kept_to_its_end() {
        let (kernel, counts) = kernel(
            "mov.u32 %r1, %tid.x;
            mov.u32 %r2, 5;
            AGAIN:
            add.u32 %r3, %r1, %r2;
            add.u32 %r4, %r3, %r1;
            setp.ne.u32 %p1, %r4, 0;
            @%p1 bra AGAIN;
            add.u32 %r5, %r4, %r4;
            ld.param.u64 %rd1, [a];
            st.global.u32 [%rd1], %r5;",
        );
        let ops: Vec<Op> = kernel.code.iter().map(|instruction| instruction.op).collect();
        let Op::Binary { d: sum, a: kept, b: too, .. } = ops[2] else { panic!() };
        let Op::Binary { d: last, .. } = ops[3] else { panic!() };
        // %tid and the constants 5 and 0; then %r1 and %r2, and one slot for both sums.
        assert_eq!((counts, sum), ([6, 1, 1], last));
        assert!(kept != too && sum != kept && sum != too);
    }

    /// A register read before it is written is zero; lanes that do not write preserve it.
    #[test]
    fn what_may_be_read_first_shares_with_nothing_before() {
        let (kernel, counts) = kernel(
            "mov.u32 %r1, 3;
            add.u32 %r2, %r1, %r1;
            setp.eq.u32 %p1, %r2, 6;
            @%p1 mov.u32 %r3, 4;
            ld.param.u64 %rd1, [a];
            st.global.u32 [%rd1], %r3;",
        );
        let slot = |at: usize| match kernel.code[at].op {
            Op::Unary { d, .. } | Op::Binary { d, .. } => d,
            _ => panic!(),
        };
        assert_eq!(slot(0), slot(1));
        assert_ne!(slot(0), slot(3));
        assert_eq!(counts, [5, 1, 1]);
    }

    /// Results that nothing reads must not share a slot with another result of the instruction.
    #[test]
    fn results_of_one_instruction_lie_apart() {
        let (kernel, _) = kernel(
            "ld.param.u64 %rd1, [a];
            ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1];
            st.global.u32 [%rd1], %r2;",
        );
        let Op::Load { mut d, .. } = kernel.code[1].op else { panic!() };
        d.sort_unstable();
        assert!(d.windows(2).all(|pair| pair[0] != pair[1]), "{d:?}");
    }
}
