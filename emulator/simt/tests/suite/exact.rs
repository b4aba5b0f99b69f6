//! Floating point by integers of any length: the IEEE 754 operations in every rounding, from their
//! definition and nothing else.
//!
//! The emulator computes with the host's floating point where it can. So an error that both make
//! would show nowhere, unless the definition is written a second time without any of it. The tests
//! at the end compare it with the host, where the host has the operation.

use std::cmp::Ordering;

/// A binary format: bits of its fraction field and of its exponent field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    pub fraction: u32,
    pub exponent: u32,
}

pub const F16: Format = Format { fraction: 10, exponent: 5 };
pub const BF16: Format = Format { fraction: 7, exponent: 8 };
pub const F32: Format = Format { fraction: 23, exponent: 8 };
pub const F64: Format = Format { fraction: 52, exponent: 11 };

/// `.rn`, `.rz`, `.rm`, `.rp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Nearest,
    Zero,
    Down,
    Up,
}

pub const MODES: [(&str, Mode); 4] =
    [("rn", Mode::Nearest), ("rz", Mode::Zero), ("rm", Mode::Down), ("rp", Mode::Up)];

/// A natural number: 32 bits a digit, the lowest first, no zeros on top.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Natural(Vec<u32>);

/// A number, an infinity or NaN.
#[derive(Debug, Clone)]
pub enum Number {
    Nan,
    Infinite {
        negative: bool,
    },
    /// `size * 2^exponent`, and a little more than that if `sticky`.
    Finite {
        negative: bool,
        size: Natural,
        exponent: i64,
        sticky: bool,
    },
}

impl Natural {
    pub fn new(value: u128) -> Natural {
        Natural((0..4).map(|i| (value >> (32 * i)) as u32).collect()).trimmed()
    }

    fn trimmed(mut self) -> Natural {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
        self
    }

    pub fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    fn bits(&self) -> i64 {
        self.0.last().map_or(0, |top| 32 * self.0.len() as i64 - i64::from(top.leading_zeros()))
    }

    fn bit(&self, i: i64) -> bool {
        self.0.get((i / 32) as usize).is_some_and(|digit| digit >> (i % 32) & 1 == 1)
    }

    fn any_below(&self, i: i64) -> bool {
        (0..i.min(self.bits())).any(|k| self.bit(k))
    }

    fn left(&self, by: i64) -> Natural {
        let mut digits = vec![0; (by / 32) as usize];
        let mut carry = 0;
        for &digit in &self.0 {
            let wide = u64::from(digit) << (by % 32) | carry;
            digits.push(wide as u32);
            carry = wide >> 32;
        }
        digits.push(carry as u32);
        Natural(digits).trimmed()
    }

    fn right(&self, by: i64) -> Natural {
        let (skip, by) = ((by / 32) as usize, by % 32);
        let digit = |i: usize| u64::from(self.0.get(i).copied().unwrap_or(0));
        let digits = (skip..self.0.len()).map(|i| ((digit(i) | digit(i + 1) << 32) >> by) as u32);
        Natural(digits.collect()).trimmed()
    }

    fn compare(&self, other: &Natural) -> Ordering {
        let by_length = self.0.len().cmp(&other.0.len());
        by_length.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }

    fn plus(&self, other: &Natural) -> Natural {
        let mut carry = 0;
        let length = self.0.len().max(other.0.len()) + 1;
        let digit = |of: &Natural, i: usize| u64::from(of.0.get(i).copied().unwrap_or(0));
        let digits = (0..length).map(|i| {
            carry += digit(self, i) + digit(other, i);
            let low = carry as u32;
            carry >>= 32;
            low
        });
        Natural(digits.collect()).trimmed()
    }

    /// `self - other`, which must not be negative.
    fn minus(&self, other: &Natural) -> Natural {
        let mut borrow = 0;
        let digits = self.0.iter().enumerate().map(|(i, &digit)| {
            let take = i64::from(other.0.get(i).copied().unwrap_or(0)) + borrow;
            let left = i64::from(digit) - take;
            borrow = i64::from(left < 0);
            left as u32
        });
        Natural(digits.collect()).trimmed()
    }

    fn times(&self, other: &Natural) -> Natural {
        let mut digits = vec![0_u32; self.0.len() + other.0.len()];
        for (i, &a) in self.0.iter().enumerate() {
            let mut carry = 0;
            for (k, &b) in other.0.iter().enumerate() {
                carry += u64::from(a) * u64::from(b) + u64::from(digits[i + k]);
                digits[i + k] = carry as u32;
                carry >>= 32;
            }
            digits[i + other.0.len()] = carry as u32;
        }
        Natural(digits).trimmed()
    }

    /// The number, if it has at most 127 bits.
    fn small(&self) -> Option<u128> {
        (self.bits() < 128)
            .then(|| self.0.iter().rev().fold(0, |all, &d| all << 32 | u128::from(d)))
    }
}

impl Number {
    pub fn decode(bits: u64, format: Format) -> Number {
        let Format { fraction, exponent } = format;
        let negative = bits >> (fraction + exponent) & 1 == 1;
        let field = bits >> fraction & ((1 << exponent) - 1);
        let rest = bits & ((1 << fraction) - 1);
        let bias = (1 << (exponent - 1)) - 1;
        if field == (1 << exponent) - 1 {
            return if rest == 0 { Number::Infinite { negative } } else { Number::Nan };
        }
        let size = if field == 0 { rest } else { rest | 1 << fraction };
        let exponent = field.max(1) as i64 - bias - i64::from(fraction);
        Number::Finite { negative, size: Natural::new(size.into()), exponent, sticky: false }
    }

    pub fn integer(value: i128) -> Number {
        let (negative, size) = (value < 0, Natural::new(value.unsigned_abs()));
        Number::Finite { negative, size, exponent: 0, sticky: false }
    }

    pub fn is_nan(&self) -> bool {
        matches!(self, Number::Nan)
    }

    /// Rounds to a format. NaN becomes one that is quiet.
    pub fn encode(&self, format: Format, mode: Mode) -> u64 {
        let Format { fraction, exponent: field_bits } = format;
        let bias = (1_i64 << (field_bits - 1)) - 1;
        let infinity = ((1_u64 << field_bits) - 1) << fraction;
        let signed =
            |negative: bool, bits: u64| bits | u64::from(negative) << (fraction + field_bits);
        match self {
            Number::Nan => infinity | 1 << (fraction - 1),
            Number::Infinite { negative } => signed(*negative, infinity),
            Number::Finite { negative, size, exponent, sticky } => {
                // The exponent of the last place that is kept.
                let precision = i64::from(fraction) + 1;
                let smallest = 1 - bias - i64::from(fraction);
                let last = (size.bits() + exponent - precision).max(smallest);
                let kept = rounded(size, last - exponent, *sticky, *negative, mode);
                let kept = kept.small().unwrap_or(u128::MAX) as u64;
                let bits = if kept >> fraction == 0 {
                    kept
                } else {
                    // Rounding may have carried into one place more, or from subnormal to normal.
                    let carried = kept >> (fraction + 1);
                    let field = last + i64::from(fraction) + bias + carried as i64;
                    if field >= (1 << field_bits) - 1 {
                        let stays = match mode {
                            Mode::Nearest => false,
                            Mode::Zero => true,
                            Mode::Down => !negative,
                            Mode::Up => *negative,
                        };
                        return signed(*negative, if stays { infinity - 1 } else { infinity });
                    }
                    (field as u64) << fraction | kept >> carried & ((1 << fraction) - 1)
                };
                signed(*negative, bits)
            }
        }
    }

    /// Returns the number rounded to an integer, or `None` for NaN. An infinity becomes the largest
    /// or the smallest integer.
    pub fn to_integer(&self, mode: Mode) -> Option<i128> {
        match self {
            Number::Nan => None,
            Number::Infinite { negative } => Some(if *negative { i128::MIN } else { i128::MAX }),
            Number::Finite { negative, size, exponent, sticky } => {
                let size = rounded(size, -exponent, *sticky, *negative, mode);
                let size = size.small().map_or(i128::MAX, |size| size as i128);
                Some(if *negative { -size } else { size })
            }
        }
    }

    /// Rounds to an integer and keeps the sign of a zero.
    pub fn integral(&self, mode: Mode) -> Number {
        match self {
            Number::Finite { negative, size, exponent, sticky } if *exponent < 0 => {
                Number::Finite {
                    negative: *negative,
                    size: rounded(size, -exponent, *sticky, *negative, mode),
                    exponent: 0,
                    sticky: false,
                }
            }
            other => other.clone(),
        }
    }

    pub fn negated(&self) -> Number {
        match self.clone() {
            Number::Nan => Number::Nan,
            Number::Infinite { negative } => Number::Infinite { negative: !negative },
            Number::Finite { negative, size, exponent, sticky } => {
                Number::Finite { negative: !negative, size, exponent, sticky }
            }
        }
    }

    fn is_negative(&self) -> bool {
        match self {
            Number::Nan => false,
            Number::Infinite { negative } | Number::Finite { negative, .. } => *negative,
        }
    }

    fn is_zero(&self) -> bool {
        matches!(self, Number::Finite { size, .. } if size.is_zero())
    }

    /// Compares two numbers; `None` if one is NaN. Zeros are equal.
    pub fn order(&self, other: &Number) -> Option<Ordering> {
        if self.is_nan() || other.is_nan() {
            return None;
        }
        // The sign of the difference, which is exact.
        if let (Number::Infinite { negative: a }, Number::Infinite { negative: b }) = (self, other)
        {
            return Some(b.cmp(a));
        }
        let difference = sum(self, &other.negated(), Mode::Nearest);
        Some(match () {
            () if difference.is_zero() => Ordering::Equal,
            () if difference.is_negative() => Ordering::Less,
            () => Ordering::Greater,
        })
    }
}

/// `size / 2^drop` (`sticky`: and a little more) as an integer.
fn rounded(size: &Natural, drop: i64, sticky: bool, negative: bool, mode: Mode) -> Natural {
    if drop <= 0 {
        assert!(!sticky, "what is known exactly has no bits to drop");
        return size.left(-drop);
    }
    let down = size.right(drop);
    let half = size.bit(drop - 1);
    let rest = sticky || size.any_below(drop - 1);
    let up = match mode {
        Mode::Nearest => half && (rest || down.bit(0)),
        Mode::Zero => false,
        Mode::Down => negative && (half || rest),
        Mode::Up => !negative && (half || rest),
    };
    if up { down.plus(&Natural::new(1)) } else { down }
}

/// `a + b`, exact. The mode decides the sign of a sum that is zero.
pub fn sum(a: &Number, b: &Number, mode: Mode) -> Number {
    match (a, b) {
        (Number::Nan, _) | (_, Number::Nan) => Number::Nan,
        (Number::Infinite { negative: a }, Number::Infinite { negative: b }) if a != b => {
            Number::Nan
        }
        (Number::Infinite { .. }, _) => a.clone(),
        (_, Number::Infinite { .. }) => b.clone(),
        (
            Number::Finite { negative: s, size: x, exponent: e, .. },
            Number::Finite { negative: t, size: y, exponent: f, .. },
        ) => {
            let exponent = *e.min(f);
            let (x, y) = (x.left(e - exponent), y.left(f - exponent));
            let (negative, size) = match x.compare(&y) {
                _ if s == t => (*s, x.plus(&y)),
                Ordering::Greater => (*s, x.minus(&y)),
                Ordering::Less => (*t, y.minus(&x)),
                Ordering::Equal => (mode == Mode::Down, Natural::default()),
            };
            Number::Finite { negative, size, exponent, sticky: false }
        }
    }
}

/// `a * b`, exact.
pub fn product(a: &Number, b: &Number) -> Number {
    let negative = a.is_negative() != b.is_negative();
    match (a, b) {
        (Number::Nan, _) | (_, Number::Nan) => Number::Nan,
        (Number::Infinite { .. }, other) | (other, Number::Infinite { .. }) => {
            if other.is_zero() {
                Number::Nan
            } else {
                Number::Infinite { negative }
            }
        }
        (
            Number::Finite { size: x, exponent: e, .. },
            Number::Finite { size: y, exponent: f, .. },
        ) => Number::Finite { negative, size: x.times(y), exponent: e + f, sticky: false },
    }
}

/// `a / b`, with more bits than any format has, and a note if that is not all.
pub fn quotient(a: &Number, b: &Number) -> Number {
    let negative = a.is_negative() != b.is_negative();
    match (a, b) {
        (Number::Nan, _) | (_, Number::Nan) => Number::Nan,
        (Number::Infinite { .. }, Number::Infinite { .. }) => Number::Nan,
        (Number::Infinite { .. }, _) => Number::Infinite { negative },
        (_, Number::Infinite { .. }) => {
            Number::Finite { negative, size: Natural::default(), exponent: 0, sticky: false }
        }
        (
            Number::Finite { size: x, exponent: e, .. },
            Number::Finite { size: y, exponent: f, .. },
        ) => match (x.small(), y.small()) {
            (Some(0), Some(0)) => Number::Nan,
            (_, Some(0)) => Number::Infinite { negative },
            (Some(x), Some(y)) => {
                let shift = i64::from(x.leading_zeros().min(127));
                let x = x << shift;
                // With less than 60 bits of quotient, take more of the dividend: y is below 2^53.
                let (size, rest) = (x / y, x % y);
                Number::Finite {
                    negative,
                    // Two more places hold the note where exactly representable quotients end.
                    size: Natural::new(size),
                    exponent: e - f - shift,
                    sticky: rest != 0,
                }
            }
            _ => unreachable!("operands have at most 53 bits"),
        },
    }
}

/// The square root, in the same way.
pub fn root(a: &Number) -> Number {
    match a {
        Number::Finite { size, .. } if size.is_zero() => a.clone(),
        Number::Infinite { negative: false } => a.clone(),
        Number::Finite { negative: false, size, exponent, .. } => {
            let size = size.small().unwrap_or(0);
            let mut shift = i64::from(size.leading_zeros());
            if (exponent - shift) % 2 != 0 {
                shift -= 1;
            }
            let radicand = size << shift;
            let size = radicand.isqrt();
            Number::Finite {
                negative: false,
                size: Natural::new(size),
                exponent: (exponent - shift) / 2,
                sticky: size * size != radicand,
            }
        }
        _ => Number::Nan,
    }
}

/// Returns whether two values of a format have the same bits or are both NaN.
pub fn same(a: u64, b: u64, format: Format) -> bool {
    a == b || Number::decode(a, format).is_nan() && Number::decode(b, format).is_nan()
}

pub fn same_f16(a: u64, b: u64) -> bool {
    same(a, b, F16)
}

pub fn same_bf16(a: u64, b: u64) -> bool {
    same(a, b, BF16)
}

pub fn same_f32(a: u64, b: u64) -> bool {
    same(a, b, F32)
}

pub fn same_f64(a: u64, b: u64) -> bool {
    same(a, b, F64)
}

/// The operand or result of `.ftz`: a zero of its sign if it is subnormal.
pub fn flushed(bits: u64, format: Format) -> u64 {
    let Format { fraction, exponent } = format;
    let field = bits >> fraction & ((1 << exponent) - 1);
    if field == 0 { bits >> (fraction + exponent) << (fraction + exponent) } else { bits }
}

/// A result of `.ftz`: a zero of its sign, if it is subnormal when rounded to as many bits with any
/// exponent. (PTX does not say whether before or after rounding; an H200 does it so.)
pub fn encode_flushed(number: &Number, format: Format, mode: Mode) -> u64 {
    let bits = number.encode(format, mode);
    let wide = Format { exponent: format.exponent + 3, ..format };
    let rounded = Number::decode(number.encode(wide, mode), wide);
    let size = if rounded.is_negative() { rounded.negated() } else { rounded };
    let least = Number::decode(1 << format.fraction, format);
    match size.order(&least) {
        Some(Ordering::Less) => bits & 1 << (format.fraction + format.exponent),
        _ => bits,
    }
}

/// The result of `.sat`: between +0 and 1, and +0 for NaN.
pub fn saturated(bits: u64, format: Format) -> u64 {
    let one = ((1 << (format.exponent - 1)) - 1) << format.fraction;
    match Number::decode(bits, format) {
        Number::Nan => 0,
        number if number.is_negative() => 0,
        _ => bits.min(one),
    }
}

/// The host's own arithmetic rounds to nearest: the definitions here must agree with it.
#[test]
fn the_definition_agrees_with_the_host_where_it_can() {
    let numbers = crate::values::f64s();
    for &a in &numbers {
        let x = Number::decode(a, F64);
        assert!(same_f64(x.encode(F64, Mode::Up), a));
        let narrow = (f64::from_bits(a) as f32).to_bits().into();
        assert!(same_f32(x.encode(F32, Mode::Nearest), narrow), "{a:#x}");
        let square_root = f64::from_bits(a).sqrt().to_bits();
        assert!(same_f64(root(&x).encode(F64, Mode::Nearest), square_root), "{a:#x}");
        for &b in &numbers {
            let y = Number::decode(b, F64);
            let (f, g) = (f64::from_bits(a), f64::from_bits(b));
            let all = [
                (sum(&x, &y, Mode::Nearest), f + g),
                (product(&x, &y), f * g),
                (quotient(&x, &y), f / g),
                (sum(&product(&x, &y), &x, Mode::Nearest), f.mul_add(g, f)),
            ];
            for (mine, host) in all {
                assert!(same_f64(mine.encode(F64, Mode::Nearest), host.to_bits()), "{f:e} {g:e}");
            }
            assert_eq!(x.order(&y), f.partial_cmp(&g));
        }
    }
}
