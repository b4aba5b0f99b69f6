//! The instructions: one table, of which each row is an instruction.
//!
//! The table is a macro, `instruction_table!`, that passes its rows to another macro. Here
//! `define!` generates from them the type [`Op`], the visitor of operands, and the classes for
//! counting. The machine generates from the same rows the `match` that executes them
//! (`machine::step`), so this file does not depend on the machine. A new instruction needs a row
//! here, the function that the row names, and a case of the parser (`parse::decode`).
//! `tests/suite/coverage.rs` checks that some test covers every opcode in the rows.

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

/// Passes all instructions to the macro `$callback`. A row is
///
/// ```text
/// Name "opcode" … { attributes; operands that are read; operands that are written }
///     class, access; executor(arguments);
/// ```
///
/// - The opcodes are the PTX opcodes that become this instruction, up to the first dot.
/// - An operand is `name: type = bank`. Without a bank it is in 32-bit slots. An address, a guard
///   and the number of a barrier determine their bank by their type. `many(wide, count)` takes the
///   first `count` of several slots. The documentation of an instruction lists its types; F16,
///   F16x2 and F32 include the types with Ftz.
/// - The class is how the instruction is counted. The access is how its requests to memory are
///   counted, if it makes any.
/// - The executor is a function of the machine. Its other arguments are the same for all rows of a
///   section:
///   - `computing`: works on registers alone; `executor(registers, …, lanes)`;
///   - `voting`: the same, but the lanes that a mask names compute together; the first argument is
///     the mask;
///   - `flowing`: the executor returns the place where the lanes continue;
///   - `together`: all lanes of a warp execute it; `run.executor(registers, scratch, place, …)`;
///   - `moving`: accesses memory, and the lanes continue; the same, with the lanes as the last
///     argument;
///   - `fetching`: the same on textures and surfaces, without `scratch`;
///   - `stepping`: everything else, `run.executor(registers, scratch, place, lanes, …)`, which
///     returns the place where the lanes continue.
macro_rules! instruction_table {
    ($callback:ident) => { $callback! {
computing {
    /// `a * b + c` of floats with one rounding, of the types of [`Op::Arithmetic`].
    Fma "fma" "mad" { ty: Type, round: Round, clamp: Clamp;
        a: Slot = of(ty), b: Slot = of(ty), c: Slot = of(ty); d: Slot = of(ty) }
        Class::Float; float::fma(ty, round, clamp, [d, a, b, c]);
    /// `add`, `sub`, `mul` of floats and `div` of F32 and F64, rounded. Halves are rounded to
    /// nearest. F64 is not clamped.
    Arithmetic "add" "sub" "mul" "div" { op: Arithmetic, ty: Type, round: Round, clamp: Clamp;
        a: Slot = of(ty), b: Slot = of(ty); d: Slot = of(ty) }
        Class::Float; float::arithmetic(op, ty, round, clamp, [d, a, b]);
    /// An operation on two operands of the result's type; a shift is by a 32-bit slot.
    Binary "add" "sub" "mul" "div" "rem" "min" "max" "and" "or" "xor" "shl" "shr" "copysign" {
        op: Binary, ty: Type; a: Slot = of(ty), b: Slot = shift(op, ty); d: Slot = of(ty) }
        Class::of(ty); moves::binary(op, ty, [d, a, b]);
    /// An operation on one operand of the destination's type.
    Unary "mov" "neg" "abs" "not" "cnot" "popc" "clz" "brev" "bfind" "sqrt" "rcp" "rsqrt" "ex2"
        "lg2" "sin" "cos" "tanh" "cvt" {
        op: Unary, ty: Type; a: Slot = of(ty); d: Slot = count(op, ty) }
        Class::of_unary(op, ty); moves::unary(op, ty, d, a);
    /// `mad.lo`, `mad.hi` and `sad` of U16 to S64, or an operation on words. `c` repeats `b` in an
    /// operation that does not read it.
    Ternary "mad" "sad" "shf" "prmt" "mul24" "mad24" "dp4a" "dp2a" "szext" "bmsk" "fns" "vadd"
        "vsub" "vabsdiff" "vmin" "vmax" "vshl" "vshr" "vmad" "vset" "vadd2" "vadd4" "vsub2" "vsub4"
        "vavrg2" "vavrg4" "vabsdiff2" "vabsdiff4" "vmin2" "vmin4" "vmax2" "vmax4" "vset2" "vset4" {
        op: Ternary, ty: Type;
        a: Slot = of(ty), b: Slot = of(ty), c: Slot = of(ty); d: Slot = of(ty) }
        Class::Integer; ternary::ternary(op, ty, [d, a, b, c]);
    /// `add`, `sub` and `mad` of U32 to S64 that read the carry flag (`takes`) or write it
    /// (`gives`). PTX has one flag for each thread, CC.CF, which is a predicate here. `c` is the
    /// summand of `mad`; for other operations it repeats `b`.
    Carry "add" "sub" "mad" "addc" "subc" "madc" { op: Carry, ty: Type;
        a: Slot = of(ty), b: Slot = of(ty), c: Slot = of(ty), takes: Option<Slot> = Predicate;
        d: Slot = of(ty), gives: Option<Slot> = Predicate }
        Class::Integer; ternary::carry(op, ty, [takes, gives], [d, a, b, c]);
    /// `mul.wide`: operands of type `ty` (U16, S16, U32, S32) and a product of twice their width.
    MulWide "mul" { ty: Type; a: Slot, b: Slot; d: Slot = product(ty) }
        Class::Integer; integer::wide(ty, [d, a, b], None);
    /// `mad.wide`: the same plus `c`, which is as wide as the product.
    MadWide "mad" { ty: Type; a: Slot, b: Slot, c: Slot = product(ty); d: Slot = product(ty) }
        Class::Integer; integer::wide(ty, [d, a, b], Some(c));
    /// `bfe`: `c` bits of `a` (U32 to S64) from position `b` on. Signed types extend the sign. `b`
    /// and `c` are 32-bit slots. As on a GPU, their low 8 bits count, for 64-bit types all 32.
    BitExtract "bfe" { ty: Type; a: Slot = of(ty), b: Slot, c: Slot; d: Slot = of(ty) }
        Class::Integer; integer::extract(ty, [d, a, b, c]);
    /// `bfi`: `b` (U32 or U64) with the low `len` bits of `a` inserted at `pos`. `pos` and `len`
    /// are 32-bit slots, whose bits count as in [`Op::BitExtract`].
    BitInsert "bfi" { ty: Type;
        a: Slot = of(ty), b: Slot = of(ty), pos: Slot, len: Slot; d: Slot = of(ty) }
        Class::Integer; integer::insert(ty, [d, a, b], [pos, len]);
    /// `lop3.b32` with its truth table.
    Lop3 "lop3" "copysign" { table: u8; a: Slot, b: Slot, c: Slot; d: Slot }
        Class::Integer; integer::lop3(table, [d, a, b, c]);
    /// `selp`: `a` where the predicate is true, else `b`. U16 to F64.
    Select "selp" "set" "slct" { ty: Type;
        a: Slot = of(ty), b: Slot = of(ty), predicate: Slot = Predicate; d: Slot = of(ty) }
        Class::Integer; moves::select(ty, [d, a, b], predicate);
    /// `setp`: compares U16 to S64 and floats. `complement` gets the opposite result before
    /// `combine`, or the result of the upper halves of pairs. With `or_unordered`, a comparison of
    /// floats is also true if an operand is NaN (`ltu`, `neu`, `nan` and so on).
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
    /// `cvt`, but not of pairs. A float becomes an integer by `round`, clamped to the type. A float
    /// becomes a narrower float by `round`. With `integral`, a float is rounded to an integer of
    /// the same float type. Integers are clamped to the type or not at all.
    Convert "cvt" { to: Type, from: Type, round: Round, integral: bool, clamp: Clamp;
        a: Slot = of(from); d: Slot = of(to) }
        Class::of_two(to, from);
        convert::convert(convert::Conversion { to, from, round, integral, clamp }, d, a);
    /// `cvt.rn.f16x2.f32 d, a, b`, and the same for bf16 (`to`: F16 or Bf16). `a` becomes the upper
    /// half, `b` the lower.
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
    /// The reverse of `Pack32`, as above.
    Unpack32 "mov" "cvt" { ; a: Slot = Long; d: [Option<Slot>; 2] }
        Class::Integer; moves::unpack_long(&d, a, 32);
    /// The reverse of `Pack16x4`, as above.
    Unpack16x4 "mov" { ; a: Slot = Long; d: [Option<Slot>; 4] }
        Class::Integer; moves::unpack_long(&d, a, 16);
    /// `cvta.SPACE` to generic addresses, or `cvta.to.SPACE` back (`to`). 64-bit slots.
    ConvertAddress "cvta" { space: Space, to: bool; a: Slot = Long; d: Slot = Long }
        Class::Integer; moves::convert_address(space, to, [d, a]);
    /// `activemask`.
    ActiveMask "activemask" { ; ; d: Slot } Class::Integer; moves::active_mask(d);
    /// The factors of the product of matrices that follows, with `counts` registers in use: a part
    /// of the next instruction, not counted. One instruction for both would make every [`Op`]
    /// larger.
    Factors "mma" "wmma" { wide: bool, counts: [u8; 2];
        a: [Slot; 8] = many(wide, &counts[0]), b: [Slot; 8] = many(wide, &counts[1]); }
        Class::Integer; moves::nothing();
    /// The destination of the bulk copy that follows, and the mbarrier that it notifies. It is a
    /// part of the next instruction and not counted.
    BulkTarget "cp" { ; to: Address, mbarrier: Address; } Class::Integer; moves::nothing();
    /// `nanosleep`, `prefetch`, …: counted, but without an effect.
    Nothing "nanosleep" "prefetch" "prefetchu" "cp" { ; ; } Class::Nothing; moves::nothing();
}
voting {
    /// `vote.sync.{all,any,uni}.pred`.
    Vote "vote" { op: Vote; a: Guard, mask: Slot; d: Slot = Predicate }
        Class::Shuffle; lanes::vote(mask, op, d, a);
    /// `vote.sync.ballot.b32`.
    Ballot "vote" { ; a: Guard, mask: Slot; d: Slot } Class::Shuffle; lanes::ballot(mask, d, a);
    /// `elect.sync`: elects one lane of the mask, here the lowest active one. `d` gets its number,
    /// and `p` is true in that lane.
    Elect "elect" { ; mask: Slot; d: Option<Slot>, p: Slot = Predicate }
        Class::Shuffle; lanes::elect(mask, d, p);
    /// `redux.sync`: U32 and S32 (`add`, `min`, `max`), U32 (`and`, `or`, `xor`).
    Reduce "redux" { op: Binary, ty: Type; a: Slot, mask: Slot; d: Slot }
        Class::Shuffle; lanes::reduce(mask, op, ty, d, a);
    /// `match.any.sync` of U32 and U64: the lanes with the same value. `match.all.sync` (`all`):
    /// the mask if all lanes have the same value, else 0; `valid` is true if they have.
    Match "match" { all: bool, ty: Type; a: Slot = of(ty), mask: Slot;
        d: Slot, valid: Option<Slot> = Predicate }
        Class::Shuffle; lanes::match_values(mask, (all, ty), (d, valid), a);
}
flowing {
    /// `bra` and `bra.uni` (which promises that the branch does not diverge).
    Branch "bra" "brx" { target: u32, uniform: bool; ; } Class::Control; Next::Branch(target);
    /// `exit`, and `ret` from a kernel.
    Exit "exit" "ret" { ; ; } Class::Control; Next::exit();
    /// `mov` from `%clock`, `%clock64` and similar registers: the number of instructions that the
    /// warp has executed.
    Clock "mov" { part: Clock; ; d: Slot = clock(part) } Class::Integer; Next::Clock(part, d);
}
together {
    /// `mma.sync` and `wmma.mma.sync`: `d = a b + c`, with the factors from the instruction before.
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
    /// `ldmatrix`: loads `count` matrices of eight rows of eight halves from shared memory, also by
    /// generic addresses in it.
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
    /// `ld` of `count` (1, 2, 4) values of type `ty`. In a wider slot, U8 and U16 are extended by
    /// zeros, and S8, S16 and S32 by their sign. With `wide`, the destinations are 64-bit slots.
    Load "ld" { space: Space, order: Order, ty: Type, count: u8, wide: bool;
        address: Address; d: [Slot; 4] = many(wide, count) }
        Class::of_space(space), Access::load(space);
        load(Vector { space, order, ty, count, wide, slots: d }, address);
    /// `ld.param` from a byte offset among the parameters.
    LoadParam "ld" { ty: Type, count: u8, wide: bool, offset: u32; ;
        d: [Slot; 4] = many(wide, count) }
        Class::Parameter; load_parameter(Vector::plain(ty, count, wide, d), offset);
    /// `cp.async.{ca,cg}.shared.global [to], [from], bytes{, source bytes}` of 4, 8 or 16 bytes.
    CopyAsync "cp" { bytes: u8; to: Address, from: Address, source_bytes: Option<Slot>; }
        Class::Global, Some(Access::CopyAsync);
        copy_async(Copy { to, from, bytes: bytes.into(), source_bytes });
    /// `cp.async.commit_group`.
    CommitGroup "cp" { ; ; } Class::Nothing; commit_group();
    /// `cp.async.wait_group n`, or `wait_all` (`None`), which also waits for uncommitted copies.
    WaitGroup "cp" { pending: Option<u32>; ; } Class::Nothing; wait_group(pending);
    /// `cp.async.bulk` from shared to global memory: `bytes` is a 32-bit slot.
    BulkOut "cp" { ; to: Address, from: Address, bytes: Slot; }
        Class::Global, Some(Access::GlobalStore); copy_out((to, from, bytes));
}
fetching {
    /// `tex`, at a place given by 32-bit slots, the layer first. Coordinates are F32, or S32 for
    /// linear memory (`linear`). Returns four values of U32, S32 or F32; `object` is a 64-bit slot.
    Fetch "tex" { geometry: Geometry, linear: bool, ty: Type;
        object: Slot = Long, at: [Slot; 3] = place(geometry); d: [Slot; 4] }
        Class::Texture, Some(Access::TextureFetch);
        fetch((geometry, linear, ty), (d, object, at));
    /// `suld.b`, at a place given by S32, where x counts bytes. Returns `count` values of type U8
    /// to U64, in 64-bit slots if `wide`.
    SurfaceLoad "suld" {
        geometry: Geometry, outside: Outside, ty: Type, count: u8, wide: bool;
        object: Slot = Long, at: [Slot; 3] = place(geometry); d: [Slot; 4] = many(wide, count) }
        Class::Texture, Some(Access::SurfaceLoad);
        surface_load(&Surface {
            geometry, outside, shape: Vector::plain(ty, count, wide, d), object, at
        });
    /// `sust.b`.
    SurfaceStore "sust" {
        geometry: Geometry, outside: Outside, ty: Type, count: u8, wide: bool;
        object: Slot = Long, at: [Slot; 3] = place(geometry), a: [Slot; 4] = many(wide, count); }
        Class::Texture, Some(Access::SurfaceStore);
        surface_store(&Surface {
            geometry, outside, shape: Vector::plain(ty, count, wide, a), object, at
        });
    /// `txq`, or `suq` for surfaces.
    ObjectQuery "txq" "suq" { query: Query, surface: bool; object: Slot = Long; d: Slot }
        Class::Integer; query((query, surface), d, object);
}
stepping {
    /// `st` of `count` values; of a wider slot, the low bits are stored.
    Store "st" { space: Space, order: Order, ty: Type, count: u8, wide: bool;
        address: Address, a: [Slot; 4] = many(wide, count); }
        Class::of_space(space), Access::store(space);
        store(Vector { space, order, ty, count, wide, slots: a }, address);
    /// `atom` (with `d`) and `red` (without). `c` is the new value for `cas`.
    Atomic "atom" "red" { op: Atomic, space: Space, order: Order, ty: Type;
        address: Address, b: Slot = of(ty), c: Slot = of(ty); d: Option<Slot> = of(ty) }
        Class::Atomic, Access::atomic(space);
        atomic(atomic::Operation { op, space, order, ty, d, b, c }, address);
    /// `membar` and `fence`: `Block` orders accesses within the block, `Device` within the grid.
    Fence "membar" "fence" { scope: Scope; ; } Class::Atomic; fence(scope);
    /// `shfl.sync` of a 32-bit slot; `b`, `c`, `mask` are 32-bit slots. `valid` is true if the
    /// source was in range.
    Shuffle "shfl" { op: Shuffle; a: Slot, b: Slot, c: Slot, mask: Slot;
        d: Slot, valid: Option<Slot> = Predicate }
        Class::Shuffle; shuffle(op, lanes::Operands { d, valid, a, b, c, mask });
    /// `bar.warp.sync mask`.
    WarpBarrier "bar" { ; mask: Slot; } Class::Barrier; warp_barrier(mask);
    /// `bar.sync id` and `barrier.sync id` for `threads` threads (a 32-bit slot), or for the block.
    Barrier "bar" "barrier" { ; id: BarrierId, threads: Option<Slot>; }
        Class::Barrier; barrier(id, (threads, true));
    /// `bar.arrive` and `barrier.arrive`: the same, but the lanes do not wait.
    BarrierArrive "bar" "barrier" { ; id: BarrierId, threads: Slot; }
        Class::Barrier; barrier(id, (Some(threads), false));
    /// `bar.red` and `barrier.red`: [`Op::Barrier`] with a reduction of a predicate. The result is
    /// known when all threads have arrived; see `Block::release` and `Block::wake`.
    BarrierReduce "bar" "barrier" { op: Reduction;
        id: BarrierId, threads: Option<Slot>, a: Guard; d: Slot = reduced(op) }
        Class::Barrier; barrier(id, (threads, true));
    /// `mbarrier.init.shared.b64 [address], count` (a 32-bit slot).
    MbarrierInit "mbarrier" { ; address: Address, count: Slot; }
        Class::Barrier; mbarrier(mbarrier::Operation::Initialize { count }, address);
    /// `mbarrier.inval`.
    MbarrierInvalidate "mbarrier" { ; address: Address; }
        Class::Barrier; mbarrier(mbarrier::Operation::Invalidate, address);
    /// `mbarrier.arrive`: `d` (64 bits) gets the state before; `count` (32 bits) is 1 by default.
    MbarrierArrive "mbarrier" "cp" { ; address: Address, count: Option<Slot>;
        d: Option<Slot> = Long }
        Class::Barrier; mbarrier(mbarrier::Operation::Arrive { d, count }, address);
    /// `mbarrier.expect_tx` and `mbarrier.arrive.expect_tx` (`arrives`): the phase expects `bytes`
    /// more bytes of bulk copies. Without bytes, the phase takes over what the lanes have done, as
    /// for `cp.async.mbarrier.arrive`.
    MbarrierExpect "mbarrier" "cp" { arrives: bool;
        address: Address, bytes: Option<Slot>; d: Option<Slot> = Long }
        Class::Barrier; mbarrier(mbarrier::Operation::Expect { d, bytes, arrives }, address);
    /// `mbarrier.test_wait` and `try_wait`: `d` is true if the phase is over. With `parity`,
    /// `phase` is a 32-bit slot with the parity of a phase, else a 64-bit slot with a state.
    MbarrierTest "mbarrier" { parity: bool;
        address: Address, phase: Slot = phase_of(parity); d: Slot = Predicate }
        Class::Barrier; mbarrier(mbarrier::Operation::Test { d, phase, parity }, address);
    /// `cp.async.bulk` from global to shared memory: `bytes` is a 32-bit slot.
    BulkIn "cp" { ; from: Address, bytes: Slot; }
        Class::Global, Some(Access::CopyAsync); copy_in(from, bytes);
    /// Call number `site` of the kernel, to a function or through `target`, a 64-bit slot.
    Call "call" { site: u32; target: Option<Slot> = Long; } Class::Control; call(site, target);
    /// `ret` from the function that has this number in the kernel.
    Return "ret" { function: u32; ; } Class::Control; come_back(function);
    /// `trap`.
    Trap "trap" "brx" { ; ; } Class::Control; trap();
}
    } };
}
pub(crate) use instruction_table;

/// Generates [`Op`] from the table, and all methods that need the rows alone.
macro_rules! define {
    ($($section:ident { $(
        $(#[$doc:meta])*
        $name:ident $($opcode:literal)+ {
            $($attribute:ident: $attribute_type:ty),*;
            $($read:ident: $read_type:ty $(= $read_bank:expr)?),*;
            $($write:ident: $write_type:ty $(= $write_bank:expr)?),*
        } $class:expr $(, $access:expr)?; $($executor:ident)::+ ($($argument:expr),*);
    )* })*) => {
        /// An instruction without its guard. `d` is the destination.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub(crate) enum Op { $($(
            $(#[$doc])*
            $name {
                $($attribute: $attribute_type,)* $($read: $read_type,)* $($write: $write_type,)*
            },
        )*)* }

        impl Op {
            /// Returns the class by which the instruction is counted.
            #[expect(unused_variables, reason = "of a row, the class needs few fields")]
            pub(crate) fn class(&self) -> Class {
                match *self { $($(
                    Op::$name { $($attribute,)* $($read: _,)* $($write: _,)* } => $class,
                )*)* }
            }

            /// Returns the access by which its requests to memory are counted, if it makes any.
            #[expect(unused_variables, reason = "of a row, the access needs at most the space")]
            pub(crate) fn access(&self) -> Option<Access> {
                match *self { $($(
                    Op::$name { $($attribute,)* $($read: _,)* $($write: _,)* } => {
                        None$(.or($access))?
                    }
                )*)* }
            }

            /// Returns the section of the table that contains the instruction.
            fn section(&self) -> &'static str {
                match self { $($(Op::$name { .. })|* => stringify!($section),)* }
            }

            /// Calls `visit` for every operand: first those read, then those written.
            #[expect(unused_variables, reason = "of a row, the banks need few attributes")]
            fn each_slot(&mut self, visit: &mut Visit<'_>) {
                use Bank::{Long, Predicate};
                match self { $($(Op::$name { $($attribute,)* $($read,)* $($write,)* } => {
                    $($read.each(bank!($($read_bank)?), Role::Reads, visit);)*
                    $($write.each(bank!($($write_bank)?), Role::Writes, visit);)*
                })*)* }
            }
        }

        /// The emulator's instructions: the section of the table, the name, and the PTX opcodes
        /// that become the instruction, up to their first dots. Tests use it.
        #[doc(hidden)]
        pub fn instructions() -> &'static [(&'static str, &'static str, &'static [&'static str])] {
            &[$($((stringify!($section), stringify!($name), &[$($opcode),+]),)*)*]
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
    /// Returns a comparison that is false if an operand is NaN, and has one result.
    pub(crate) fn set_predicate(
        compare: Compare,
        ty: Type,
        d: Slot,
        combine: Option<(Logic, Guard)>,
        [a, b]: [Slot; 2],
    ) -> Op {
        Op::SetPredicate { compare, or_unordered: false, ty, a, b, combine, d, complement: None }
    }

    /// Returns true if the instruction works on registers alone.
    pub(crate) fn is_computing(&self) -> bool {
        self.section() == "computing"
    }

    /// Returns true if all lanes of a warp execute it together, without a mask that names them.
    pub(crate) fn is_of_matrices(&self) -> bool {
        self.section() == "together"
    }

    /// Returns true if the instruction works on textures or surfaces.
    pub(crate) fn is_of_objects(&self) -> bool {
        self.section() == "fetching"
    }

    /// Returns true if it is a part of the next instruction and not counted.
    pub(crate) fn is_part(&self) -> bool {
        matches!(self, Op::Factors { .. } | Op::BulkTarget { .. })
    }

    /// Returns true if no lane continues at the instruction after it.
    pub(crate) fn ends_path(&self) -> bool {
        self.class() == Class::Control && !matches!(self, Op::Call { .. })
    }
}

/// The use of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Reads,
    Writes,
}

/// The caller of a visitor, which gets each operand with its use and its bank.
type Visit<'v> = dyn FnMut(Role, Bank, &mut Slot) + 'v;

/// A bank, and the number of slots of an operand that are in use.
struct Slots(Bank, usize);

impl From<Bank> for Slots {
    fn from(bank: Bank) -> Slots {
        Slots(bank, usize::MAX)
    }
}

/// A type of operand.
trait Operand {
    fn each(&mut self, slots: impl Into<Slots>, role: Role, visit: &mut Visit<'_>);
}

/// Operands with at most one slot, in the bank of the row or of their type.
macro_rules! operands {
    ($($type:ty: |$operand:ident, $bank:ident| $slot:expr;)*) => { $(impl Operand for $type {
        fn each(&mut self, slots: impl Into<Slots>, role: Role, visit: &mut Visit<'_>) {
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
    fn each(&mut self, slots: impl Into<Slots>, role: Role, visit: &mut Visit<'_>) {
        let Slots(bank, count) = slots.into();
        self.iter_mut().take(count).for_each(|slot| slot.each(bank, role, visit));
    }
}

/// Returns the bank of 64-bit slots if `wide`, else of 32-bit slots.
fn sized(wide: bool) -> Bank {
    if wide { Bank::Long } else { Bank::Word }
}

/// Returns the bank of a type.
fn of(ty: &Type) -> Bank {
    sized(ty.is_wide())
}

/// Returns the bank of a second operand: shifts have a 32-bit slot.
fn shift(op: &Binary, ty: &Type) -> Bank {
    sized(ty.is_wide() && !matches!(op, Binary::Shl | Binary::Shr))
}

/// Returns the bank of a result: counts and positions have 32 bits.
fn count(op: &Unary, ty: &Type) -> Bank {
    let counts = matches!(op, Unary::PopCount | Unary::LeadingZeros | Unary::FindBit { .. });
    sized(ty.is_wide() && !counts)
}

/// Returns the bank of a product that is twice as wide as its factors.
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

/// Returns the slots of a texel's place.
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

/// Returns the number of registers that `wmma.load` writes for a matrix. Factors of halves take
/// eight registers, which hold some elements more than once.
pub(crate) fn held(fragment: Fragment) -> usize {
    match (fragment.part, fragment.element) {
        (Part::A | Part::B, Element::F16) => 8,
        _ => fragment.registers(),
    }
}

impl Instruction {
    /// Calls `visit` for every slot that the instruction names, the guard's slot first.
    pub(crate) fn each_slot(&mut self, visit: &mut Visit<'_>) {
        if let Some(guard) = &mut self.guard {
            visit(Role::Reads, Bank::Predicate, &mut guard.predicate);
        }
        self.op.each_slot(visit);
    }

    /// Returns the registers that it reads, without its guard, and the registers that it writes.
    pub(crate) fn slots(&self) -> [Vec<(Bank, Slot)>; 2] {
        let (mut op, mut slots) = (self.op, [Vec::new(), Vec::new()]);
        op.each_slot(&mut |role, bank, slot| slots[role as usize].push((bank, *slot)));
        slots
    }
}
