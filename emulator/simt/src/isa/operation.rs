//! The operations on registers that instructions compute, with the types that each supports.
//!
//! An operation is a field of its instruction, so instructions with the same operands share one row
//! of the table in `instruction`. The documentation of an operation lists its types. The parser
//! produces no others, and the machine relies on that. The conversions of 16-bit floats are here
//! because textures and products of matrices need them, too. The suite tests each operation with
//! the family of its opcode.

/// Operations on one operand, and their types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Unary {
    /// A copy of the bits: U16 to U64, F32, F64.
    Move,
    /// Floats, S16, S32 and S64; `Absolute` likewise.
    Negate,
    Absolute,
    /// `not.b16`, `.b32`, `.b64`.
    Not,
    /// `cnot`: 1 if the operand is 0, else 0.
    LogicalNot,
    /// `popc`, `clz` and `brev` of U32 and U64; the counts are 32-bit slots in both cases.
    PopCount,
    LeadingZeros,
    BitReverse,
    /// `bfind` of U32, S32, U64, S64: the position of the most significant bit, or 2^32-1 if no bit
    /// is set. With `shift`, the shift that moves this bit to the top.
    FindBit {
        shift: bool,
    },
    /// `sqrt.rn` of F32 and F64.
    Sqrt,
    /// `rcp.rn` of F32 and F64.
    Reciprocal,
    /// `cvt` of F32 to `tf32`, which clears the low 13 bits.
    Tf32 {
        round: Tf32Round,
        relu: bool,
    },
    /// Approximations of F32: `ex2.approx`, `lg2.approx`, `rcp.approx`, `rsqrt.approx`,
    /// `sqrt.approx`, `sin.approx`, `cos.approx`, `tanh.approx`. With `ftz`, subnormal operands and
    /// results become zeros. F64 has `rcp.approx.ftz` and `rsqrt.approx.ftz`. Halves and pairs have
    /// `ex2.approx` (bf16 with `ftz`) and `tanh.approx`. The bits of these differ from a GPU's; see
    /// `approximate.rs`.
    Approximate {
        function: Approximate,
        ftz: bool,
    },
}

/// The rounding: to nearest with ties away from zero, to nearest even, or toward zero.
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

/// Operations on two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Binary {
    /// Integers U16 to S64, wrapping. Floats use [`Arithmetic`].
    Add,
    Sub,
    /// `mul.lo`, `mul.hi`.
    MulLow,
    MulHigh,
    /// A division by zero gives all ones, as on an H100; PTX leaves it open.
    Div,
    Rem,
    /// Integers U16 to S64; floats: the other operand if one is NaN, and −0 is below +0.
    Min,
    Max,
    /// `min.NaN` and `max.NaN` of floats: NaN if an operand is NaN.
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
    /// `shf.l` and `shf.r` of U32: `a` is the lower word, `b` the upper, `c` the shift, which wraps
    /// if `wrap`, else is clamped.
    FunnelLeft {
        wrap: bool,
    },
    FunnelRight {
        wrap: bool,
    },
    /// `prmt.b32`: picks bytes of `a` and `b` as `c` selects.
    Permute(Permute),
    /// `sad`: `c + |a - b|`.
    AbsoluteDifference,
    /// `mad24` and `mul24` (`c` is 0) of U32 and S32: multiplies the low 24 bits of `a` and `b` and
    /// adds `c` to the lower or upper 32 bits of the product; with `sat`, clamps an S32.
    Mad24 {
        high: bool,
        sat: bool,
    },
    /// `dp4a` and `dp2a`: `c` plus the products of bytes of `b` with bytes or halves of `a`.
    DotProduct {
        with: Factors,
        a_signed: bool,
        b_signed: bool,
    },
    /// `szext` of U32, S32: the low `b` bits of `a`, extended; `b` wraps or is clamped.
    Extend {
        wrap: bool,
    },
    /// `bmsk`: `b` ones from position `a`. Both wrap if `wrap`, else are clamped.
    Mask {
        wrap: bool,
    },
    /// `vadd2`, `vadd4` and similar, on the halves or bytes of words.
    Simd(Simd),
    /// `vadd`, `vmad` and similar, on a part of each word.
    Video(Video),
    /// `fns`: the position of the `c`-th set bit of `a`, counted up or down from position `b`.
    FindNth,
}

/// An operation on the two halves or four bytes of `a` and `b`, extended by zeros or signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Simd {
    pub(crate) op: SimdOp,
    /// The bits of a part: 16 or 8.
    pub(crate) bits: u8,
    /// True if `a`, `b` and the results are signed.
    pub(crate) signed: [bool; 3],
    pub(crate) finish: SimdFinish,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum SimdOp {
    Add,
    Sub,
    /// `vavrg`: half the sum, rounded away from zero.
    Average,
    AbsoluteDifference,
    Min,
    Max,
    /// `vset`: 1 if the comparison is true, else 0.
    Compare(Compare),
}

/// The last step for the results: side by side and truncated, side by side and clamped (`.sat`), or
/// added to `c` (`.add`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum SimdFinish {
    Cut,
    Clamp,
    Sum,
}

/// An operation on a byte, a half or all of `a` and `b`, extended by zeros or signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Video {
    pub(crate) op: VideoOp,
    /// True if `a` and `b` are signed.
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
    /// A shift by the low bits of `b` if `wrap`, else by `b` but at most 32.
    ShiftLeft {
        wrap: bool,
    },
    ShiftRight {
        wrap: bool,
    },
    Compare(Compare),
    /// `vmad`: the product plus `c`, plus 1 if `more`.
    MultiplyAdd {
        more: bool,
    },
}

/// The last step for the result: none, adding `c`, or replacing a part of `c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum VideoEnd {
    Plain,
    Add,
    Merge(Part32),
}

/// The way in which `prmt` picks its four bytes: by four selectors, or by one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Permute {
    Selectors,
    /// `.f4e` and `.b4e`: four bytes from the number on, forward or backward.
    Forward,
    Backward,
    /// `.rc8` and `.rc16`: one byte or one half, repeated.
    Byte,
    Half,
    /// `.ecl` and `.ecr`: the bytes of `a`, clamped to those not below or not above the number.
    ClampLeft,
    ClampRight,
}

/// The factors for bytes of `b`: four bytes of `a`, or its halves for the lower or upper two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Factors {
    Bytes,
    LowHalves,
    HighHalves,
}

/// The property that `testp` tests. Zeros count as normal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum TestFloat {
    Finite,
    Infinite,
    Number,
    NotANumber,
    Normal,
    Subnormal,
}

/// An operation with a carry: a sum, a difference (whose flag is set if it does not borrow), or a
/// sum with half of a product.
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
    /// For floats: `num` is true for any two numbers, and `nan` is true only if an operand is NaN.
    Always,
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Logic {
    And,
    Or,
    Xor,
}

/// Converts `f16` bits to `f32` exactly.
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

/// Returns `2^exponent`, for exponents of normal numbers.
pub(crate) fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}
