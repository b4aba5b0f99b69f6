//! What the instructions of a kernel say: operations, their types and operands.

use super::matrix::{Element, Fragment, Part, Product};
use super::operand::*;
use super::operation::{Arithmetic, Binary, Carry, Compare, Logic, Ternary, TestFloat, Unary};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Instruction {
    pub(crate) guard: Option<Guard>,
    pub(crate) op: Op,
}

/// `@%p` or `@!%p`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Guard {
    pub(crate) predicate: Slot,
    pub(crate) negated: bool,
}

/// The instructions. `d` is the destination. Types: only those listed at an instruction are ever
/// given to it, and of F16, F16x2 and F32 also those with Ftz.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Op {
    /// One operand of the destination's type.
    Unary {
        op: Unary,
        ty: Type,
        d: Slot,
        a: Slot,
    },
    /// Two operands of the destination's type. Of shifts, `b` is always a 32-bit slot.
    Binary {
        op: Binary,
        ty: Type,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    /// `add`, `sub`, `mul` of floats, `div` of F32 and F64, rounded: halves to nearest. F64 is not
    /// clamped.
    Arithmetic {
        op: Arithmetic,
        ty: Type,
        round: Round,
        clamp: Clamp,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    /// `a * b + c` of floats with one rounding; likewise.
    Fma {
        ty: Type,
        round: Round,
        clamp: Clamp,
        d: Slot,
        a: Slot,
        b: Slot,
        c: Slot,
    },
    /// `mad.lo`, `mad.hi` and `sad` of U16 to S64, or an operation on words. Where it has but two
    /// operands, `c` is `b`.
    Ternary {
        op: Ternary,
        ty: Type,
        d: Slot,
        a: Slot,
        b: Slot,
        c: Slot,
    },
    /// `add`, `sub` and `mad` of U32 to S64 that read the carry flag (`takes`) or write it
    /// (`gives`). PTX has one flag for each thread, CC.CF; here it is a predicate slot. `c` is the
    /// summand of `mad`, else the same as `b`.
    Carry {
        op: Carry,
        ty: Type,
        takes: Option<Slot>,
        gives: Option<Slot>,
        d: Slot,
        a: Slot,
        b: Slot,
        c: Slot,
    },
    /// `mul.wide`: operands of type `ty` (U16, S16, U32, S32), a product of twice its width.
    MulWide {
        ty: Type,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    /// `mad.wide`: the same plus `c`, which is as wide as the product.
    MadWide {
        ty: Type,
        d: Slot,
        a: Slot,
        b: Slot,
        c: Slot,
    },
    /// `bfe`: bits of `a` (U32 to S64) from position `b`, `c` many (both 32-bit slots),
    /// sign-extended for signed types. Both are the low 8 bits, and of 64-bit types all 32, as a
    /// GPU has it.
    BitExtract {
        ty: Type,
        d: Slot,
        a: Slot,
        b: Slot,
        c: Slot,
    },
    /// `bfi`: `b` (U32 or U64) with the low `len` bits of `a` put in at `pos` (both 32-bit slots,
    /// of which likewise).
    BitInsert {
        ty: Type,
        d: Slot,
        a: Slot,
        b: Slot,
        pos: Slot,
        len: Slot,
    },
    /// `lop3.b32` with its table.
    Lop3 {
        table: u8,
        d: Slot,
        a: Slot,
        b: Slot,
        c: Slot,
    },
    /// `selp`: `a` where the predicate holds, else `b`. U16 to F64.
    Select {
        ty: Type,
        d: Slot,
        a: Slot,
        b: Slot,
        predicate: Slot,
    },
    /// `setp`: compares U16 to S64 and floats; `complement` gets the opposite before `combine`, and
    /// of pairs what the upper halves give.
    SetPredicate {
        compare: Compare,
        /// For floats: the comparison also holds if an operand is NaN (`ltu`, `neu`, `nan` and so
        /// on).
        or_unordered: bool,
        ty: Type,
        d: Slot,
        complement: Option<Slot>,
        combine: Option<(Logic, Guard)>,
        a: Slot,
        b: Slot,
    },
    /// `testp` of F32 and F64.
    Test {
        test: TestFloat,
        ty: Type,
        d: Slot,
        a: Slot,
    },
    /// `and.pred`, `or.pred`, `xor.pred`; `mov.pred` is `or` of twice the same, `not.pred` is
    /// below.
    Predicate {
        op: Logic,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    NotPredicate {
        d: Slot,
        a: Slot,
    },
    /// `cvt`. Float to integer rounds to an integer by `round` and clamps to the type; float to a
    /// float that holds less rounds by `round`; `integral`: float to float of the same type,
    /// rounded to an integer; integers are clamped to the type, or not at all. No pairs.
    Convert {
        to: Type,
        from: Type,
        round: Round,
        integral: bool,
        clamp: Clamp,
        d: Slot,
        a: Slot,
    },
    /// `cvt.rn.f16x2.f32 d, a, b`, the same for bf16 (`to`: F16 or Bf16): `a` in the upper half,
    /// `b` in the lower.
    ConvertPair {
        to: Type,
        round: Round,
        clamp: Clamp,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    /// `mov.b32 d, {a, b}` of 16-bit values, the first in the lower half.
    Pack16 {
        d: Slot,
        parts: [Slot; 2],
    },
    /// `mov.b64 d, {a, b}` of 32-bit values.
    Pack32 {
        d: Slot,
        parts: [Slot; 2],
    },
    /// `mov.b64 d, {a, b, c, e}` of 16-bit values.
    Pack16x4 {
        d: Slot,
        parts: [Slot; 4],
    },
    /// The reverse of each; parts written as `_` in the PTX are `None`.
    Unpack16 {
        d: [Option<Slot>; 2],
        a: Slot,
    },
    Unpack32 {
        d: [Option<Slot>; 2],
        a: Slot,
    },
    Unpack16x4 {
        d: [Option<Slot>; 4],
        a: Slot,
    },
    /// `cvta.SPACE` (`to`: false) from a space to generic addresses and `cvta.to.SPACE` back;
    /// 64-bit slots.
    ConvertAddress {
        space: Space,
        to: bool,
        d: Slot,
        a: Slot,
    },

    /// `ld`, with `count` (1, 2, 4) values of type `ty`. Into a wider slot U8, U16 extend by zero,
    /// S8, S16, S32 by sign; `wide` says that the destinations are 64-bit slots.
    Load {
        space: Space,
        order: Order,
        ty: Type,
        count: u8,
        wide: bool,
        d: [Slot; 4],
        address: Address,
    },
    /// `ld.param`, at a byte offset among the parameters.
    LoadParam {
        ty: Type,
        count: u8,
        wide: bool,
        d: [Slot; 4],
        offset: u32,
    },
    /// `st`, with `count` values; of a wider slot the low bits are stored.
    Store {
        space: Space,
        order: Order,
        ty: Type,
        count: u8,
        wide: bool,
        a: [Slot; 4],
        address: Address,
    },
    /// `atom` (with `d`) and `red` (without). `c` is the new value of `cas`.
    Atomic {
        op: Atomic,
        space: Space,
        order: Order,
        ty: Type,
        d: Option<Slot>,
        address: Address,
        b: Slot,
        c: Slot,
    },
    /// `membar` and `fence`: `Cta` orders within the block, `Device` within the grid.
    Fence {
        scope: Scope,
    },
    /// `cp.async.{ca,cg}.shared.global [to], [from], bytes{, source bytes}`: bytes 4, 8, 16.
    CopyAsync {
        to: Address,
        from: Address,
        bytes: u8,
        source_bytes: Option<Slot>,
    },
    CommitGroup,
    /// `cp.async.wait_group n`; `wait_all` also waits for what was not committed (`None`).
    WaitGroup {
        pending: Option<u32>,
    },

    /// `shfl.sync` of a 32-bit slot; `b`, `c`, `mask` are 32-bit slots; `valid` gets whether the
    /// source was in range.
    Shuffle {
        op: Shuffle,
        d: Slot,
        valid: Option<Slot>,
        a: Slot,
        b: Slot,
        c: Slot,
        mask: Slot,
    },
    /// `vote.sync.{all,any,uni}.pred`.
    Vote {
        op: Vote,
        d: Slot,
        a: Guard,
        mask: Slot,
    },
    /// `vote.sync.ballot.b32`.
    Ballot {
        d: Slot,
        a: Guard,
        mask: Slot,
    },
    /// `redux.sync`: U32 and S32 (`add`, `min`, `max`), U32 (`and`, `or`, `xor`).
    Reduce {
        op: Binary,
        ty: Type,
        d: Slot,
        a: Slot,
        mask: Slot,
    },
    /// `match.any.sync` of U32 and U64: the lanes that have the same value. `match.all.sync`
    /// (`all`): the mask if all have, else 0, and `valid` gets whether they have.
    Match {
        all: bool,
        ty: Type,
        d: Slot,
        valid: Option<Slot>,
        a: Slot,
        mask: Slot,
    },
    ActiveMask {
        d: Slot,
    },
    /// `elect.sync`: one lane of the mask, here the lowest that is there: its number in `d`, and
    /// `p` in that one.
    Elect {
        d: Option<Slot>,
        p: Slot,
        mask: Slot,
    },
    /// `mov` of `%clock`, `%clock64` and their like: how many instructions the warp has executed.
    Clock {
        part: Clock,
        d: Slot,
    },
    /// `bar.sync id` and `barrier.sync id` by so many threads of the block, or by all (`threads` is
    /// a 32-bit slot).
    Barrier {
        id: BarrierId,
        threads: Option<Slot>,
    },
    /// `bar.arrive` and `barrier.arrive`: the same without waiting.
    BarrierArrive {
        id: BarrierId,
        threads: Slot,
    },
    /// `bar.red` and `barrier.red`: the same, and what all threads get of each one's predicate.
    BarrierReduce {
        op: Reduction,
        id: BarrierId,
        threads: Option<Slot>,
        d: Slot,
        a: Guard,
    },
    /// `bar.warp.sync mask`.
    WarpBarrier {
        mask: Slot,
    },

    /// The factors of the product of matrices that stands behind it, of which so many registers
    /// matter. A part of that instruction, and not counted: all in one would make every instruction
    /// larger.
    Factors {
        wide: bool,
        counts: [u8; 2],
        a: [Slot; 8],
        b: [Slot; 8],
    },
    /// `mma.sync` and `wmma.mma.sync`: `d = a b + c`, with the factors that stand before it.
    Multiply {
        product: Product,
        c: [Slot; 8],
        d: [Slot; 8],
    },
    /// `wmma.load`: `stride` is a 32-bit slot.
    MatrixLoad {
        fragment: Fragment,
        space: Space,
        d: [Slot; 8],
        address: Address,
        stride: Slot,
    },
    /// `wmma.store`.
    MatrixStore {
        fragment: Fragment,
        space: Space,
        a: [Slot; 8],
        address: Address,
        stride: Slot,
    },
    /// `ldmatrix`, with `count` matrices of eight rows of eight halves: shared memory, or generic
    /// addresses that are there.
    RowsLoad {
        count: u8,
        transposed: bool,
        space: Space,
        d: [Slot; 4],
        address: Address,
    },
    /// `stmatrix`.
    RowsStore {
        count: u8,
        transposed: bool,
        space: Space,
        a: [Slot; 4],
        address: Address,
    },
    /// `movmatrix`.
    RowsTranspose {
        d: Slot,
        a: Slot,
    },

    /// `mbarrier.init.shared.b64 [address], count` (a 32-bit slot).
    MbarrierInit {
        address: Address,
        count: Slot,
    },
    /// `mbarrier.inval`.
    MbarrierInvalidate {
        address: Address,
    },
    /// `mbarrier.arrive`: the 64-bit slot `d` gets the state before; `count` is a 32-bit slot, or
    /// else 1.
    MbarrierArrive {
        d: Option<Slot>,
        address: Address,
        count: Option<Slot>,
    },
    /// `mbarrier.expect_tx` and `mbarrier.arrive.expect_tx` (`arrives`): so many bytes of bulk
    /// copies belong to the phase. Without bytes: the phase learns what the lanes have done, as it
    /// does with `cp.async.mbarrier.arrive`.
    MbarrierExpect {
        d: Option<Slot>,
        address: Address,
        bytes: Option<Slot>,
        arrives: bool,
    },
    /// Where the bulk copy behind it goes, and which mbarrier learns of it. A part of that
    /// instruction, and not counted.
    BulkTarget {
        to: Address,
        mbarrier: Address,
    },
    /// `cp.async.bulk` from global to shared memory: `bytes` is a 32-bit slot.
    BulkIn {
        from: Address,
        bytes: Slot,
    },
    /// `cp.async.bulk` from shared to global memory.
    BulkOut {
        to: Address,
        from: Address,
        bytes: Slot,
    },
    /// `mbarrier.test_wait` and `try_wait`: whether the phase of a parity is over (`phase` is a
    /// 32-bit slot), or that of a state (a 64-bit slot).
    MbarrierTest {
        d: Slot,
        address: Address,
        phase: Slot,
        parity: bool,
    },

    /// `tex`, by `at`: as many 32-bit slots as the geometry has numbers, that of the layer first,
    /// coordinates as F32 or, of linear memory (`linear`), S32. Four values of type U32, S32 or
    /// F32; `object` is a 64-bit slot.
    Fetch {
        geometry: Geometry,
        linear: bool,
        ty: Type,
        d: [Slot; 4],
        object: Slot,
        at: [Slot; 3],
    },
    /// `suld.b`, likewise by S32, of which that along x counts bytes: `count` values of type U8 to
    /// U64, into 64-bit slots if `wide`.
    SurfaceLoad {
        geometry: Geometry,
        outside: Outside,
        ty: Type,
        count: u8,
        wide: bool,
        d: [Slot; 4],
        object: Slot,
        at: [Slot; 3],
    },
    /// `sust.b`.
    SurfaceStore {
        geometry: Geometry,
        outside: Outside,
        ty: Type,
        count: u8,
        wide: bool,
        a: [Slot; 4],
        object: Slot,
        at: [Slot; 3],
    },
    /// `txq`, and of surfaces `suq`.
    ObjectQuery {
        query: Query,
        surface: bool,
        d: Slot,
        object: Slot,
    },

    /// `bra` and `bra.uni` (which promises that the branch does not diverge).
    Branch {
        target: u32,
        uniform: bool,
    },
    /// `call` number so of the kernel, of a function or (`target`, a 64-bit slot) through a
    /// pointer.
    Call {
        site: u32,
        target: Option<Slot>,
    },
    /// `ret` from function number so of the kernel.
    Return {
        function: u32,
    },
    /// `exit`, and `ret` from a kernel.
    Exit,
    /// `trap`.
    Trap,
    /// `nanosleep`, `prefetch`, …: counted, without effect.
    Nothing,
}

impl Op {
    /// Whether no lane that executes it goes on behind it.
    pub(crate) fn ends_path(&self) -> bool {
        matches!(self, Op::Branch { .. } | Op::Exit | Op::Return { .. } | Op::Trap)
    }
}

impl Op {
    /// Whether all lanes of a warp execute it together, without that a mask says so.
    pub(crate) fn is_of_matrices(&self) -> bool {
        matches!(
            self,
            Op::Multiply { .. }
                | Op::MatrixLoad { .. }
                | Op::MatrixStore { .. }
                | Op::RowsLoad { .. }
                | Op::RowsStore { .. }
                | Op::RowsTranspose { .. }
        )
    }

    /// Whether it works on textures or surfaces.
    pub(crate) fn is_of_objects(&self) -> bool {
        matches!(
            self,
            Op::Fetch { .. }
                | Op::SurfaceLoad { .. }
                | Op::SurfaceStore { .. }
                | Op::ObjectQuery { .. }
        )
    }
}

/// Registers of a matrix that `wmma.load` writes: factors of halves are held in eight, some of them
/// more than once.
pub(crate) fn held(fragment: Fragment) -> usize {
    match (fragment.part, fragment.element) {
        (Part::A | Part::B, Element::F16) => 8,
        _ => fragment.registers(),
    }
}
