//! What instructions compute: the operations on registers, and the types that they come in.
//!
//! An operation is a field of its instruction, so that instructions with the same operands are one
//! row of the table in `instruction`. The documentation of an operation lists the types that the
//! parser gives to it; the machine may rely on that. Numbers of 16 bits as wider ones are here as
//! well, since textures and products of matrices need them beside arithmetic. Each operation is
//! tested by the family of its opcode in the suite.

/// Unary operations and the types they come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Unary {
    /// A copy of the bits: U16 to U64, F32, F64.
    Move,
    /// S16, S32, S64 and floats.
    Negate,
    Absolute,
    /// `not.b16`, `.b32`, `.b64`.
    Not,
    /// `cnot`: 1 where the operand is 0, else 0.
    LogicalNot,
    /// U32 and U64 (`popc`, `clz`, `bfind`: the destination is a 32-bit slot in both cases).
    PopCount,
    LeadingZeros,
    BitReverse,
    /// `bfind` of U32, S32, U64, S64: the position of the most significant bit, 2^32-1 if there is
    /// none; with `shift` the shift that brings it to the top.
    FindBit {
        shift: bool,
    },
    /// `sqrt.rn` of F32 and F64.
    Sqrt,
    /// `rcp.rn` of F32 and F64.
    Reciprocal,
    /// `cvt` of F32 to `tf32`: with the low 13 bits zero.
    Tf32 {
        round: Tf32Round,
        relu: bool,
    },
    /// `ex2.approx`, `lg2.approx`, `rcp.approx`, `rsqrt.approx`, `sqrt.approx`, `sin.approx`,
    /// `cos.approx`, `tanh.approx` of F32 (`ftz`: subnormal operands and results are zeros); of F64
    /// `rcp.approx.ftz` and `rsqrt.approx.ftz`; of halves and pairs of them `ex2.approx` (of bf16
    /// with `ftz`) and `tanh.approx`. The bits of these are not those of a GPU: see
    /// `approximate.rs`.
    Approximate {
        function: Approximate,
        ftz: bool,
    },
}

/// To nearest with ties away from zero or to even, or toward zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Tf32Round {
    Away,
    Even,
    Zero,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Approximate {
    Ex2,
    Lg2,
    Rcp,
    Rsqrt,
    Sqrt,
    Sin,
    Cos,
    Tanh,
}

/// Operations of two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Binary {
    /// Integers U16 to S64, wrapping. (Of floats: [`Arithmetic`].)
    Add,
    Sub,
    /// `mul.lo`, `mul.hi`.
    MulLow,
    MulHigh,
    /// Divided by zero, both give all ones (as an H100 does; PTX leaves it open).
    Div,
    Rem,
    /// Integers U16 to S64; floats: the other operand if one is NaN, and −0 below +0.
    Min,
    Max,
    /// `min.NaN` and `max.NaN` of floats: NaN if one is.
    MinNan,
    MaxNan,
    /// `.b16`, `.b32`, `.b64`.
    And,
    Or,
    Xor,
    /// Shifts by the type's width or more give 0, or the sign.
    Shl,
    Shr,
    /// `div.approx` and `div.full` of f32.
    Quotient,
    QuotientFull,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Arithmetic {
    Add,
    Sub,
    Mul,
    Div,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Ternary {
    MadLow,
    MadHigh,
    /// `shf.l` and `shf.r` of U32: `a` is the lower word, `b` the upper; `wrap` or clamp the shift
    /// `c`.
    FunnelLeft {
        wrap: bool,
    },
    FunnelRight {
        wrap: bool,
    },
    /// `prmt.b32`: which bytes of `a` and `b`, of which `c` says more.
    Permute(Permute),
    /// `sad`: `c + |a - b|`.
    AbsoluteDifference,
    /// `mad24` of U32 and S32: the low 24 bits of `a` and `b`, the lower or upper 32 of their
    /// product; `sat`: of S32.
    Mad24 {
        high: bool,
        sat: bool,
    },
    /// `dp4a` and `dp2a`: `c` and the products of bytes of `b` with bytes of `a`, or with its
    /// halves.
    DotProduct {
        with: Factors,
        a_signed: bool,
        b_signed: bool,
    },
    /// `szext` of U32 and S32: the low `b` bits of `a`, extended; `wrap` or clamp `b`.
    Extend {
        wrap: bool,
    },
    /// `bmsk`: `b` ones from position `a`; `wrap` or clamp both.
    Mask {
        wrap: bool,
    },
    /// `vadd2`, `vadd4` and their like, on the halves or bytes of words.
    Simd(Simd),
    /// `vadd`, `vmad` and their like, on a part of each word.
    Video(Video),
    /// `fns`: the position of the `c`-th one of `a` from position `b` on, or down from it.
    FindNth,
}

/// An operation on two halves or four bytes of `a` and `b`, which are extended by zeros or signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Simd {
    pub(crate) op: SimdOp,
    /// 16 or 8.
    pub(crate) bits: u8,
    /// Of `a`, of `b` and of the results.
    pub(crate) signed: [bool; 3],
    pub(crate) finish: SimdFinish,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum SimdOp {
    Add,
    Sub,
    /// `vavrg`: half the sum, and half of 1 away from zero.
    Average,
    AbsoluteDifference,
    Min,
    Max,
    /// `vset`: 1 where it holds, else 0.
    Compare(Compare),
}

/// What becomes of the results: side by side, cut off or clamped to their bits (`.sat`), or summed
/// up with `c` (`.add`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum SimdFinish {
    Cut,
    Clamp,
    Sum,
}

/// An operation on a byte, a half or all of `a` and `b`, which are extended by zeros or signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Video {
    pub(crate) op: VideoOp,
    /// Of `a` and of `b`.
    pub(crate) signed: [bool; 2],
    pub(crate) select: [Part32; 2],
    pub(crate) end: VideoEnd,
}

/// A part of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Part32 {
    Whole,
    Byte(u8),
    Half(u8),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum VideoOp {
    Add,
    Sub,
    AbsoluteDifference,
    Min,
    Max,
    /// By the low bits of `b`, or by 32 at most.
    ShiftLeft {
        wrap: bool,
    },
    ShiftRight {
        wrap: bool,
    },
    Compare(Compare),
    /// `vmad`: the product and `c`, and 1 (`more`).
    MultiplyAdd {
        more: bool,
    },
}

/// What becomes of the result: it is all, `c` is added, or it replaces a part of `c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum VideoEnd {
    Plain,
    Add,
    Merge(Part32),
}

/// How `prmt` picks its four bytes: by four selectors, or by one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Permute {
    Selectors,
    /// `.f4e` and `.b4e`: four from there on, forward or backward.
    Forward,
    Backward,
    /// `.rc8` and `.rc16`: one byte or one half again and again.
    Byte,
    Half,
    /// `.ecl` and `.ecr`: those of `a`, with none below or above that one.
    ClampLeft,
    ClampRight,
}

/// What the bytes of `b` are multiplied with: all four with bytes, the lower or the upper two with
/// halves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Factors {
    Bytes,
    LowHalves,
    HighHalves,
}

/// What `testp` asks of a number. Zeros count as normal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum TestFloat {
    Finite,
    Infinite,
    Number,
    NotANumber,
    Normal,
    Subnormal,
}

/// What carries: a sum, a difference (of which the flag is that it does not borrow), a sum with
/// half of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Carry {
    Add,
    Sub,
    MadLow,
    MadHigh,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// Of floats: `num` holds for any two numbers, and `nan` for none but where one is NaN.
    Always,
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Logic {
    And,
    Or,
    Xor,
}

/// What `f16` bits are as `f32`: exact.
pub(crate) fn half_as_f32(bits: u16) -> f32 {
    half_as_f64(bits) as f32
}

pub(crate) fn half_as_f64(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    sign * match exponent {
        0 => fraction * power(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * power(exponent - 25),
    }
}

/// `2^exponent`, for exponents of normal numbers.
pub(crate) fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}
