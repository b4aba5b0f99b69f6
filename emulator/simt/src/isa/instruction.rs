//! The instructions: one table, of which each row is an instruction.
//!
//! The table is a macro, `instruction_table!`, that hands its rows to another macro. Here
//! `define!` makes the type [`Op`] of them, what visits the operands, and what an instruction
//! counts as; the machine makes the `match` that executes it of the same rows (`machine::step`), so
//! that this file does not know the machine. A new instruction is a row here, the function that
//! the row names, and a case of the parser (`parse::decode`). Every row is tested from outside, by
//! the opcodes that it stands for: `tests/suite/coverage.rs`.

use super::class::{Access, Class};
use super::matrix::{Element, Fragment, Part, Product};
use super::operand::{
    Address, Atomic, Bank, BarrierId, Base, Clamp, Clock, Geometry, Guard, Order, Outside, Query,
    Reduction, Round, Scope, Shuffle, Slot, Space, Type, Vote,
};
use super::operation::{Arithmetic, Binary, Carry, Compare, Logic, Ternary, TestFloat, Unary};

/// An instruction of a kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Instruction {
    pub(crate) guard: Option<Guard>,
    pub(crate) op: Op,
}

/// Hands all instructions to the macro `$callback`. A row is
///
/// ```text
/// Name "opcode" … { attributes; operands that are read; operands that are written }
///     class, access; executor(arguments);
/// ```
///
/// - The opcodes are those of PTX that become this instruction, up to the first dot.
/// - An operand is `name: type = bank`. Without a bank it is in 32-bit slots; an address, a guard
///   and the number of a barrier know their own banks. `many(wide, count)` are the first `count`
///   of several slots. The types of an instruction are those that its documentation lists, and of
///   F16, F16x2 and F32 also those with Ftz.
/// - The class is what the instruction counts as, and the access is what is counted of its requests
///   to memory, if it makes any.
/// - The executor is a function of the machine. What it is called with beside these arguments is
///   the same for all rows of a section:
///   - `computing`: on registers alone; `executor(registers, …, lanes)`;
///   - `voting`: the lanes that a mask names compute together; likewise, and the first argument is
///     the mask;
///   - `flowing`: the executor makes the place where the lanes go next;
///   - `together`: all lanes of a warp execute it; `run.executor(registers, scratch, place, …)`;
///   - `moving`: memory is accessed, and the lanes go on; likewise, with the lanes as the last
///     argument;
///   - `fetching`: the same on textures and surfaces, without `scratch`;
///   - `stepping`: everything else, `run.executor(registers, scratch, place, lanes, …)`, which
///     returns where the lanes go next.
macro_rules! instruction_table {
    ($callback:ident) => { $callback! {
computing {
    /// `a * b + c` of floats with one rounding; as [`Op::Arithmetic`].
    Fma "fma" "mad" { ty: Type, round: Round, clamp: Clamp;
        a: Slot = of(ty), b: Slot = of(ty), c: Slot = of(ty); d: Slot = of(ty) }
        Class::Float; float::fma(ty, round, clamp, [d, a, b, c]);
    /// `add`, `sub`, `mul` of floats, `div` of F32 and F64, rounded: halves to nearest. F64 is not
    /// clamped.
    Arithmetic "add" "sub" "mul" "div" { op: Arithmetic, ty: Type, round: Round, clamp: Clamp;
        a: Slot = of(ty), b: Slot = of(ty); d: Slot = of(ty) }
        Class::Float; float::arithmetic(op, ty, round, clamp, [d, a, b]);
    /// An operation on two operands of the destination's type; `b` of a shift is a 32-bit slot.
    Binary "add" "sub" "mul" "div" "rem" "min" "max" "and" "or" "xor" "shl" "shr" "copysign" {
        op: Binary, ty: Type; a: Slot = of(ty), b: Slot = shift(op, ty); d: Slot = of(ty) }
        Class::of(ty); moves::binary(op, ty, [d, a, b]);
    /// An operation on one operand of the destination's type.
    Unary "mov" "neg" "abs" "not" "cnot" "popc" "clz" "brev" "bfind" "sqrt" "rcp" "rsqrt" "ex2"
        "lg2" "sin" "cos" "tanh" "cvt" {
        op: Unary, ty: Type; a: Slot = of(ty); d: Slot = count(op, ty) }
        Class::of_unary(op, ty); moves::unary(op, ty, d, a);
    /// `mad.lo`, `mad.hi` and `sad` of U16 to S64, or an operation on words. Of an operation with
    /// two operands, `c` is `b`.
    Ternary "mad" "sad" "shf" "prmt" "mul24" "mad24" "dp4a" "dp2a" "szext" "bmsk" "fns" "vadd"
        "vsub" "vabsdiff" "vmin" "vmax" "vshl" "vshr" "vmad" "vset" "vadd2" "vadd4" "vsub2" "vsub4"
        "vavrg2" "vavrg4" "vabsdiff2" "vabsdiff4" "vmin2" "vmin4" "vmax2" "vmax4" "vset2" "vset4" {
        op: Ternary, ty: Type;
        a: Slot = of(ty), b: Slot = of(ty), c: Slot = of(ty); d: Slot = of(ty) }
        Class::Integer; ternary::ternary(op, ty, [d, a, b, c]);
    /// `add`, `sub` and `mad` of U32 to S64 that read the carry flag (`takes`) or write it
    /// (`gives`). PTX has one flag for each thread, CC.CF; here it is a predicate. `c` is the
    /// summand of `mad`, else the same as `b`.
    Carry "add" "sub" "mad" "addc" "subc" "madc" { op: Carry, ty: Type;
        a: Slot = of(ty), b: Slot = of(ty), c: Slot = of(ty), takes: Option<Slot> = Predicate;
        d: Slot = of(ty), gives: Option<Slot> = Predicate }
        Class::Integer; ternary::carry(op, ty, [takes, gives], [d, a, b, c]);
    /// `mul.wide`: operands of type `ty` (U16, S16, U32, S32), a product of twice its width.
    MulWide "mul" { ty: Type; a: Slot, b: Slot; d: Slot = product(ty) }
        Class::Integer; integer::wide(ty, [d, a, b], None);
    /// `mad.wide`: the same plus `c`, which is as wide as the product.
    MadWide "mad" { ty: Type; a: Slot, b: Slot, c: Slot = product(ty); d: Slot = product(ty) }
        Class::Integer; integer::wide(ty, [d, a, b], Some(c));
    /// `bfe`: `c` bits of `a` (U32 to S64) from position `b` on, both 32-bit slots, extended by
    /// their sign for signed types. Position and count are the low 8 bits, and of 64-bit types all
    /// 32, as on a GPU.
    BitExtract "bfe" { ty: Type; a: Slot = of(ty), b: Slot, c: Slot; d: Slot = of(ty) }
        Class::Integer; integer::extract(ty, [d, a, b, c]);
    /// `bfi`: `b` (U32 or U64) with the low `len` bits of `a` put in at `pos`, both 32-bit slots.
    /// As many bits of these count as for [`Op::BitExtract`].
    BitInsert "bfi" { ty: Type;
        a: Slot = of(ty), b: Slot = of(ty), pos: Slot, len: Slot; d: Slot = of(ty) }
        Class::Integer; integer::insert(ty, [d, a, b], [pos, len]);
    /// `lop3.b32` with its table.
    Lop3 "lop3" "copysign" { table: u8; a: Slot, b: Slot, c: Slot; d: Slot }
        Class::Integer; integer::lop3(table, [d, a, b, c]);
    /// `selp`: `a` where the predicate holds, else `b`. U16 to F64.
    Select "selp" "set" "slct" { ty: Type;
        a: Slot = of(ty), b: Slot = of(ty), predicate: Slot = Predicate; d: Slot = of(ty) }
        Class::Integer; moves::select(ty, [d, a, b], predicate);
    /// `setp`: compares U16 to S64 and floats. `complement` gets the opposite before `combine`, and
    /// of pairs what the upper halves give. With `or_unordered`, a comparison of floats also holds
    /// if an operand is NaN (`ltu`, `neu`, `nan` and so on).
    SetPredicate "setp" "set" "slct" "isspacep" "brx" {
        compare: Compare, or_unordered: bool, ty: Type;
        a: Slot = of(ty), b: Slot = of(ty), combine: Option<(Logic, Guard)>;
        d: Slot = Predicate, complement: Option<Slot> = Predicate }
        Class::of(ty);
        moves::set_predicate((compare, or_unordered, ty), [a, b], combine, (d, complement));
    /// `testp` of F32 and F64.
    Test "testp" { test: TestFloat, ty: Type; a: Slot = of(ty); d: Slot = Predicate }
        Class::Float; moves::test(test, ty, d, a);
    /// `and.pred`, `or.pred`, `xor.pred`; `mov.pred` is `or` of the operand with itself.
    Predicate "and" "or" "xor" "mov" { op: Logic;
        a: Slot = Predicate, b: Slot = Predicate; d: Slot = Predicate }
        Class::Integer; moves::logic(op, [d, a, b]);
    /// `not.pred`.
    NotPredicate "not" { ; a: Slot = Predicate; d: Slot = Predicate }
        Class::Integer; moves::not(d, a);
    /// `cvt`. Float to integer rounds to an integer by `round` and clamps to the type; float to a
    /// float that holds less rounds by `round`; `integral`: float to float of the same type,
    /// rounded to an integer; integers are clamped to the type, or not at all. No pairs.
    Convert "cvt" { to: Type, from: Type, round: Round, integral: bool, clamp: Clamp;
        a: Slot = of(from); d: Slot = of(to) }
        Class::of_two(to, from);
        convert::convert(convert::Conversion { to, from, round, integral, clamp }, d, a);
    /// `cvt.rn.f16x2.f32 d, a, b`, and the same for bf16 (`to`: F16 or Bf16): `a` in the upper
    /// half, `b` in the lower.
    ConvertPair "cvt" { to: Type, round: Round, clamp: Clamp; a: Slot, b: Slot; d: Slot }
        Class::Float; convert::convert_pair((to, round, clamp), [d, a, b]);
    /// `mov.b32 d, {a, b}` of 16-bit values, the first in the lower half.
    Pack16 "mov" { ; parts: [Slot; 2]; d: Slot } Class::Integer; moves::pack16(d, parts);
    /// `mov.b64 d, {a, b}` of 32-bit values.
    Pack32 "mov" { ; parts: [Slot; 2]; d: Slot = Long } Class::Integer; moves::pack32(d, parts);
    /// `mov.b64 d, {a, b, c, e}` of 16-bit values.
    Pack16x4 "mov" { ; parts: [Slot; 4]; d: Slot = Long } Class::Integer; moves::pack16x4(d, parts);
    /// The reverse of `Pack16`. A part that the PTX writes as `_` is `None`.
    Unpack16 "mov" { ; a: Slot; d: [Option<Slot>; 2] } Class::Integer; moves::unpack16(d, a);
    /// The reverse of `Pack32`; likewise.
    Unpack32 "mov" "cvt" { ; a: Slot = Long; d: [Option<Slot>; 2] }
        Class::Integer; moves::unpack_long(&d, a, 32);
    /// The reverse of `Pack16x4`; likewise.
    Unpack16x4 "mov" { ; a: Slot = Long; d: [Option<Slot>; 4] }
        Class::Integer; moves::unpack_long(&d, a, 16);
    /// `cvta.SPACE` (`to`: false) from a space to generic addresses, and `cvta.to.SPACE` back;
    /// 64-bit slots.
    ConvertAddress "cvta" { space: Space, to: bool; a: Slot = Long; d: Slot = Long }
        Class::Integer; moves::convert_address(space, to, d, a);
    /// `activemask`.
    ActiveMask "activemask" { ; ; d: Slot } Class::Integer; moves::active_mask(d);
    /// The factors of the product of matrices that is the next instruction, of which `counts`
    /// registers matter. A part of that instruction, and not counted: all in one would make every
    /// instruction larger.
    Factors "mma" "wmma" { wide: bool, counts: [u8; 2];
        a: [Slot; 8] = many(wide, &counts[0]), b: [Slot; 8] = many(wide, &counts[1]); }
        Class::Integer; moves::nothing();
    /// The destination of the bulk copy that is the next instruction, and the mbarrier that is
    /// notified. A part of that instruction, and not counted.
    BulkTarget "cp" { ; to: Address, mbarrier: Address; } Class::Integer; moves::nothing();
    /// `nanosleep`, `prefetch`, …: counted, without effect.
    Nothing "nanosleep" "prefetch" "prefetchu" "cp" { ; ; } Class::Nothing; moves::nothing();
}
voting {
    /// `vote.sync.{all,any,uni}.pred`.
    Vote "vote" { op: Vote; a: Guard, mask: Slot; d: Slot = Predicate }
        Class::Shuffle; lanes::vote(mask, op, d, a);
    /// `vote.sync.ballot.b32`.
    Ballot "vote" { ; a: Guard, mask: Slot; d: Slot } Class::Shuffle; lanes::ballot(mask, d, a);
    /// `elect.sync`: elects one lane of the mask, here the lowest that is there. `d` gets its
    /// number, and `p` holds in that lane.
    Elect "elect" { ; mask: Slot; d: Option<Slot>, p: Slot = Predicate }
        Class::Shuffle; lanes::elect(mask, d, p);
    /// `redux.sync`: U32 and S32 (`add`, `min`, `max`), U32 (`and`, `or`, `xor`).
    Reduce "redux" { op: Binary, ty: Type; a: Slot, mask: Slot; d: Slot }
        Class::Shuffle; lanes::reduce(mask, op, ty, d, a);
    /// `match.any.sync` of U32 and U64: the lanes that have the same value. `match.all.sync`
    /// (`all`): the mask if all have, else 0; `valid` gets whether they have.
    Match "match" { all: bool, ty: Type; a: Slot = of(ty), mask: Slot;
        d: Slot, valid: Option<Slot> = Predicate }
        Class::Shuffle; lanes::match_values(mask, (all, ty), (d, valid), a);
}
flowing {
    /// `bra` and `bra.uni` (which promises that the branch does not diverge).
    Branch "bra" "brx" { target: u32, uniform: bool; ; } Class::Control; Next::Branch(target);
    /// `exit`, and `ret` from a kernel.
    Exit "exit" "ret" { ; ; } Class::Control; Next::exit();
    /// `mov` of `%clock`, `%clock64` and their like: the number of instructions that the warp has
    /// executed.
    Clock "mov" { part: Clock; ; d: Slot = clock(part) } Class::Integer; Next::Clock(part, d);
}
together {
    /// `mma.sync` and `wmma.mma.sync`: `d = a b + c`, with the factors of the instruction before.
    Multiply "mma" "wmma" { product: Product;
        c: [Slot; 8] = summand(product); d: [Slot; 8] = result(product) }
        Class::Matrix; multiply(product, [&c, &d]);
    /// `wmma.load`: `stride` is a 32-bit slot.
    MatrixLoad "wmma" { fragment: Fragment, space: Space;
        address: Address, stride: Slot; d: [Slot; 8] = loaded(fragment) }
        Class::of_space(space), Access::load(space);
        move_fragment((fragment, Where { space, address, stride }), (&d, false));
    /// `wmma.store`.
    MatrixStore "wmma" { fragment: Fragment, space: Space;
        address: Address, stride: Slot, a: [Slot; 8] = stored(fragment); }
        Class::of_space(space), Access::store(space);
        move_fragment((fragment, Where { space, address, stride }), (&a, true));
    /// `ldmatrix`, with `count` matrices of eight rows of eight halves: shared memory, or generic
    /// addresses that are there.
    RowsLoad "ldmatrix" { count: u8, transposed: bool, space: Space;
        address: Address; d: [Slot; 4] = many(&false, count) }
        Class::Shared, Some(Access::SharedLoad);
        move_rows(Rows { count, transposed, space, address }, (&d, false));
    /// `stmatrix`.
    RowsStore "stmatrix" { count: u8, transposed: bool, space: Space;
        address: Address, a: [Slot; 4] = many(&false, count); }
        Class::Shared, Some(Access::SharedStore);
        move_rows(Rows { count, transposed, space, address }, (&a, true));
    /// `movmatrix`.
    RowsTranspose "movmatrix" { ; a: Slot; d: Slot } Class::Shuffle; transpose(d, a);
}
moving {
    /// `ld`, with `count` (1, 2, 4) values of type `ty`. Into a wider slot U8, U16 extend by zero,
    /// S8, S16, S32 by sign; `wide`: the destinations are 64-bit slots.
    Load "ld" { space: Space, order: Order, ty: Type, count: u8, wide: bool;
        address: Address; d: [Slot; 4] = many(wide, count) }
        Class::of_space(space), Access::load(space);
        load(Vector { space, order, ty, count, wide, slots: d }, address);
    /// `ld.param`, at a byte offset among the parameters.
    LoadParam "ld" { ty: Type, count: u8, wide: bool, offset: u32; ;
        d: [Slot; 4] = many(wide, count) }
        Class::Parameter; load_parameter(Vector::plain(ty, count, wide, d), offset);
    /// `cp.async.{ca,cg}.shared.global [to], [from], bytes{, source bytes}`: bytes 4, 8, 16.
    CopyAsync "cp" { bytes: u8; to: Address, from: Address, source_bytes: Option<Slot>; }
        Class::Global, Some(Access::CopyAsync);
        copy_async(Copy { to, from, bytes: bytes.into(), source_bytes });
    /// `cp.async.commit_group`.
    CommitGroup "cp" { ; ; } Class::Nothing; commit_group();
    /// `cp.async.wait_group n`; `wait_all` also waits for copies that were not committed (`None`).
    WaitGroup "cp" { pending: Option<u32>; ; } Class::Nothing; wait_group(pending);
    /// `cp.async.bulk` from shared to global memory: `bytes` is a 32-bit slot.
    BulkOut "cp" { ; to: Address, from: Address, bytes: Slot; }
        Class::Global, Some(Access::GlobalStore); copy_out((to, from, bytes));
}
fetching {
    /// `tex`, at a place of as many 32-bit slots as the geometry has numbers, the layer first,
    /// coordinates as F32 or, of linear memory (`linear`), S32. Four values of type U32, S32 or
    /// F32; `object` is a 64-bit slot.
    Fetch "tex" { geometry: Geometry, linear: bool, ty: Type;
        object: Slot = Long, at: [Slot; 3] = place(geometry); d: [Slot; 4] }
        Class::Texture, Some(Access::TextureFetch);
        fetch((geometry, linear, ty), (d, object, at));
    /// `suld.b`, at a place by S32, of which x counts bytes: `count` values of type U8 to U64, into
    /// 64-bit slots if `wide`.
    SurfaceLoad "suld" {
        geometry: Geometry, outside: Outside, ty: Type, count: u8, wide: bool;
        object: Slot = Long, at: [Slot; 3] = place(geometry); d: [Slot; 4] = many(wide, count) }
        Class::Texture, Some(Access::SurfaceLoad);
        surface_load(&Surface { geometry, outside, ty, count, wide, slots: d, object, at });
    /// `sust.b`.
    SurfaceStore "sust" {
        geometry: Geometry, outside: Outside, ty: Type, count: u8, wide: bool;
        object: Slot = Long, at: [Slot; 3] = place(geometry), a: [Slot; 4] = many(wide, count); }
        Class::Texture, Some(Access::SurfaceStore);
        surface_store(&Surface { geometry, outside, ty, count, wide, slots: a, object, at });
    /// `txq`, and of surfaces `suq`.
    ObjectQuery "txq" "suq" { query: Query, surface: bool; object: Slot = Long; d: Slot }
        Class::Integer; query((query, surface), d, object);
}
stepping {
    /// `st`, with `count` values; of a wider slot the low bits are stored.
    Store "st" { space: Space, order: Order, ty: Type, count: u8, wide: bool;
        address: Address, a: [Slot; 4] = many(wide, count); }
        Class::of_space(space), Access::store(space);
        store(Vector { space, order, ty, count, wide, slots: a }, address);
    /// `atom` (with `d`) and `red` (without). `c` is the new value of `cas`.
    Atomic "atom" "red" { op: Atomic, space: Space, order: Order, ty: Type;
        address: Address, b: Slot = of(ty), c: Slot = of(ty); d: Option<Slot> = of(ty) }
        Class::Atomic, Access::atomic(space);
        atomic(atomic::Operation { op, space, order, ty, d, b, c }, address);
    /// `membar` and `fence`: `Block` orders within the block, `Device` within the grid.
    Fence "membar" "fence" { scope: Scope; ; } Class::Atomic; fence(scope);
    /// `shfl.sync` of a 32-bit slot; `b`, `c`, `mask` are 32-bit slots; `valid` gets whether the
    /// source was in range.
    Shuffle "shfl" { op: Shuffle; a: Slot, b: Slot, c: Slot, mask: Slot;
        d: Slot, valid: Option<Slot> = Predicate }
        Class::Shuffle; shuffle(op, lanes::Operands { d, valid, a, b, c, mask });
    /// `bar.warp.sync mask`.
    WarpBarrier "bar" { ; mask: Slot; } Class::Barrier; warp_barrier(mask);
    /// `bar.sync id` and `barrier.sync id` by `threads` threads of the block (a 32-bit slot), or by
    /// all.
    Barrier "bar" "barrier" { ; id: BarrierId, threads: Option<Slot>; }
        Class::Barrier; barrier(id, (threads, true));
    /// `bar.arrive` and `barrier.arrive`: the same without waiting.
    BarrierArrive "bar" "barrier" { ; id: BarrierId, threads: Slot; }
        Class::Barrier; barrier(id, (Some(threads), false));
    /// `bar.red` and `barrier.red`: [`Op::Barrier`] at which the threads reduce a predicate. The
    /// result is known when all have come: see `Block::release` and `Block::wake`.
    BarrierReduce "bar" "barrier" { op: Reduction;
        id: BarrierId, threads: Option<Slot>, a: Guard; d: Slot = reduced(op) }
        Class::Barrier; barrier(id, (threads, true));
    /// `mbarrier.init.shared.b64 [address], count` (a 32-bit slot).
    MbarrierInit "mbarrier" { ; address: Address, count: Slot; }
        Class::Barrier; mbarrier(mbarrier::Operation::Initialize { count }, address);
    /// `mbarrier.inval`.
    MbarrierInvalidate "mbarrier" { ; address: Address; }
        Class::Barrier; mbarrier(mbarrier::Operation::Invalidate, address);
    /// `mbarrier.arrive`: the 64-bit slot `d` gets the state before; `count` is a 32-bit slot, or
    /// else 1.
    MbarrierArrive "mbarrier" "cp" { ; address: Address, count: Option<Slot>;
        d: Option<Slot> = Long }
        Class::Barrier; mbarrier(mbarrier::Operation::Arrive { d, count }, address);
    /// `mbarrier.expect_tx` and `mbarrier.arrive.expect_tx` (`arrives`): `bytes` more bytes of bulk
    /// copies belong to the phase. Without bytes the phase learns what the lanes have done, as it
    /// does with `cp.async.mbarrier.arrive`.
    MbarrierExpect "mbarrier" "cp" { arrives: bool;
        address: Address, bytes: Option<Slot>; d: Option<Slot> = Long }
        Class::Barrier; mbarrier(mbarrier::Operation::Expect { d, bytes, arrives }, address);
    /// `mbarrier.test_wait` and `try_wait`: whether the phase of a parity is over (`phase` is a
    /// 32-bit slot), or the phase of a state (a 64-bit slot).
    MbarrierTest "mbarrier" { parity: bool;
        address: Address, phase: Slot = phase_of(parity); d: Slot = Predicate }
        Class::Barrier; mbarrier(mbarrier::Operation::Test { d, phase, parity }, address);
    /// `cp.async.bulk` from global to shared memory: `bytes` is a 32-bit slot.
    BulkIn "cp" { ; from: Address, bytes: Slot; }
        Class::Global, Some(Access::CopyAsync); copy_in(from, bytes);
    /// The call number `site` of the kernel, of a function or (`target`, a 64-bit slot) through a
    /// pointer.
    Call "call" { site: u32; target: Option<Slot> = Long; } Class::Control; call(site, target);
    /// `ret` from the function with that number in the kernel.
    Return "ret" { function: u32; ; } Class::Control; come_back(function);
    /// `trap`.
    Trap "trap" "brx" { ; ; } Class::Control; trap();
}
    } };
}
pub(crate) use instruction_table;

/// Makes [`Op`] of the table, and what follows from a row alone.
macro_rules! define {
    ($($section:ident { $(
        $(#[$doc:meta])*
        $name:ident $($opcode:literal)+ {
            $($attribute:ident: $attribute_type:ty),*;
            $($read:ident: $read_type:ty $(= $read_bank:expr)?),*;
            $($write:ident: $write_type:ty $(= $write_bank:expr)?),*
        } $class:expr $(, $access:expr)?; $($executor:ident)::+ ($($argument:expr),*);
    )* })*) => {
        /// What an instruction does. `d` is the destination.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub(crate) enum Op { $($(
            $(#[$doc])*
            $name {
                $($attribute: $attribute_type,)* $($read: $read_type,)* $($write: $write_type,)*
            },
        )*)* }

        impl Op {
            /// What the instruction counts as.
            #[expect(unused_variables, reason = "of a row, the class needs few fields")]
            pub(crate) fn class(&self) -> Class {
                match *self { $($(
                    Op::$name { $($attribute,)* $($read: _,)* $($write: _,)* } => $class,
                )*)* }
            }

            /// What its requests to memory count as, if it makes any.
            #[expect(unused_variables, reason = "of a row, the access needs at most the space")]
            pub(crate) fn access(&self) -> Option<Access> {
                match *self { $($(
                    Op::$name { $($attribute,)* $($read: _,)* $($write: _,)* } => {
                        None$(.or($access))?
                    }
                )*)* }
            }

            /// The section of the table with the instruction.
            fn section(&self) -> &'static str {
                match self { $($(Op::$name { .. })|* => stringify!($section),)* }
            }

            /// Calls `visit` with every operand: those that are read, then those that are written.
            #[expect(unused_variables, reason = "of a row, the banks need few attributes")]
            fn each_slot(&mut self, visit: &mut impl FnMut(Role, Bank, &mut Slot)) {
                use Bank::{Long, Predicate};
                match self { $($(Op::$name { $($attribute,)* $($read,)* $($write,)* } => {
                    $($read.each(bank!($($read_bank)?), Role::Reads, visit);)*
                    $($write.each(bank!($($write_bank)?), Role::Writes, visit);)*
                })*)* }
            }
        }

        /// The emulator's instructions, each with the opcodes of PTX that become it, up to their
        /// first dots: what a test of all of them goes by.
        #[doc(hidden)]
        pub fn instructions() -> &'static [(&'static str, &'static [&'static str])] {
            &[$($((stringify!($name), &[$($opcode),+]),)*)*]
        }
    };
}

macro_rules! bank {
    () => {
        Bank::Word
    };
    ($bank:expr) => {
        $bank
    };
}

instruction_table!(define);

impl Op {
    /// Returns whether it works on registers alone.
    pub(crate) fn is_computing(&self) -> bool {
        self.section() == "computing"
    }

    /// Returns whether all lanes of a warp execute it together, although no mask says so.
    pub(crate) fn is_of_matrices(&self) -> bool {
        self.section() == "together"
    }

    /// Returns whether it works on textures or surfaces.
    pub(crate) fn is_of_objects(&self) -> bool {
        self.section() == "fetching"
    }

    /// Returns whether it is a part of the instruction behind it, and not counted.
    pub(crate) fn is_part(&self) -> bool {
        matches!(self, Op::Factors { .. } | Op::BulkTarget { .. })
    }

    /// Returns whether no lane that executes it goes on behind it.
    pub(crate) fn ends_path(&self) -> bool {
        self.class() == Class::Control && !matches!(self, Op::Call { .. })
    }
}

/// What an instruction does with an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Reads,
    Writes,
}

/// A bank, and how many of an operand's slots are in it: all that are not unused.
struct Slots(Bank, usize);

impl From<Bank> for Slots {
    fn from(bank: Bank) -> Slots {
        Slots(bank, usize::MAX)
    }
}

/// What can be an operand.
trait Operand {
    fn each(
        &mut self,
        slots: impl Into<Slots>,
        role: Role,
        visit: &mut impl FnMut(Role, Bank, &mut Slot),
    );
}

/// Operands that are, or may have, one slot in a bank that the row gives or they know.
macro_rules! operands {
    ($($type:ty: |$operand:ident, $bank:ident| $slot:expr;)*) => { $(impl Operand for $type {
        fn each(
            &mut self,
            slots: impl Into<Slots>,
            role: Role,
            visit: &mut impl FnMut(Role, Bank, &mut Slot),
        ) {
            let ($operand, Slots($bank, _)) = (self, slots.into());
            if let Some((bank, slot)) = $slot {
                visit(role, bank, slot);
            }
        }
    })* };
}

operands! {
    Slot: |slot, bank| Some((bank, slot));
    Option<Slot>: |slot, bank| slot.as_mut().map(|slot| (bank, slot));
    Guard: |guard, _bank| Some((Bank::Predicate, &mut guard.predicate));
    Option<(Logic, Guard)>: |guard, _bank|
        guard.as_mut().map(|(_, guard)| (Bank::Predicate, &mut guard.predicate));
    BarrierId: |id, bank| match id {
        BarrierId::Number(_) => None,
        BarrierId::Register(slot) => Some((bank, slot)),
    };
    Address: |address, _bank| match &mut address.base {
        Base::Zero => None,
        Base::Word(slot) => Some((Bank::Word, slot)),
        Base::Long(slot) => Some((Bank::Long, slot)),
    };
}

impl<T: Operand, const N: usize> Operand for [T; N] {
    fn each(
        &mut self,
        slots: impl Into<Slots>,
        role: Role,
        visit: &mut impl FnMut(Role, Bank, &mut Slot),
    ) {
        let Slots(bank, count) = slots.into();
        self.iter_mut().take(count).for_each(|slot| slot.each(bank, role, visit));
    }
}

/// 64-bit slots if `wide`, else 32-bit ones.
fn sized(wide: bool) -> Bank {
    if wide { Bank::Long } else { Bank::Word }
}

/// Slots of a type.
fn of(ty: &Type) -> Bank {
    sized(ty.is_wide())
}

/// The second operand of an operation: of shifts a 32-bit slot.
fn shift(op: &Binary, ty: &Type) -> Bank {
    sized(ty.is_wide() && !matches!(op, Binary::Shl | Binary::Shr))
}

/// The result of an operation: a count, or a position, in 32 bits.
fn count(op: &Unary, ty: &Type) -> Bank {
    let counts = matches!(op, Unary::PopCount | Unary::LeadingZeros | Unary::FindBit { .. });
    sized(ty.is_wide() && !counts)
}

/// A product that is twice as wide as its factors.
fn product(ty: &Type) -> Bank {
    sized(ty.bytes() > 2)
}

fn clock(part: &Clock) -> Bank {
    sized(*part == Clock::Whole)
}

fn phase_of(parity: &bool) -> Bank {
    sized(!parity)
}

fn reduced(op: &Reduction) -> Bank {
    if *op == Reduction::Count { Bank::Word } else { Bank::Predicate }
}

fn many(wide: &bool, count: &u8) -> Slots {
    Slots(sized(*wide), usize::from(*count))
}

/// The place of a texel.
fn place(geometry: &Geometry) -> Slots {
    Slots(Bank::Word, geometry.numbers())
}

fn summand(product: &Product) -> Slots {
    Slots(sized(product.a.is_wide()), product.fragment(Part::C).registers())
}

fn result(product: &Product) -> Slots {
    Slots(sized(product.a.is_wide()), product.result().registers())
}

fn loaded(fragment: &Fragment) -> Slots {
    Slots(sized(fragment.element.is_wide()), held(*fragment))
}

fn stored(fragment: &Fragment) -> Slots {
    Slots(sized(fragment.element.is_wide()), fragment.registers())
}

/// Registers of a matrix that `wmma.load` writes: factors of halves are held in eight, some of them
/// more than once.
pub(crate) fn held(fragment: Fragment) -> usize {
    match (fragment.part, fragment.element) {
        (Part::A | Part::B, Element::F16) => 8,
        _ => fragment.registers(),
    }
}

impl Instruction {
    /// Calls `visit` with every slot that the instruction names, its guard's first.
    pub(crate) fn each_slot(&mut self, visit: &mut impl FnMut(Role, Bank, &mut Slot)) {
        if let Some(guard) = &mut self.guard {
            visit(Role::Reads, Bank::Predicate, &mut guard.predicate);
        }
        self.op.each_slot(visit);
    }

    /// The registers that it reads, its guard left out, and those that it writes.
    pub(crate) fn slots(&self) -> [Vec<(Bank, Slot)>; 2] {
        let (mut op, mut slots) = (self.op, [Vec::new(), Vec::new()]);
        op.each_slot(&mut |role, bank, slot| slots[role as usize].push((bank, *slot)));
        slots
    }
}
