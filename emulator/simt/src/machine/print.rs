//! The conversions of `printf`, as in C: flags, a width, a precision, a size and a kind.
//!
//! `Spec::read` parses one conversion of a format. `piece` then formats one value, whose bits the
//! caller has read from the arguments. The output is what C prints. This module reads no memory, so
//! that its text depends on its arguments alone. Widths and precisions are bounded, and so is the
//! length of the text. Tested below, and by `calls.ptx` in `tests/cases`.

/// A conversion, such as `%-8.3lf`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spec {
    left: bool,
    zeros: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
    /// The number of `l` minus the number of `h`, from -2 to 2.
    size: i32,
    pub(crate) kind: u8,
}

/// The largest width, and the largest precision.
const MOST_WIDE: usize = 1000;

impl Spec {
    /// Reads the conversion at the beginning of a format, and returns it with its length. Returns
    /// `None` if CUDA has no such conversion.
    pub(crate) fn read(format: &[u8]) -> Option<(Spec, usize)> {
        let (mut spec, mut at) = (Spec::default(), 1);
        loop {
            match format.get(at)? {
                b'-' => spec.left = true,
                b'0' => spec.zeros = true,
                b'+' => spec.plus = true,
                b' ' => spec.space = true,
                b'#' => spec.alternate = true,
                _ => break,
            }
            at += 1;
        }
        let number = |at: &mut usize| {
            let mut value = 0_usize;
            while let Some(digit) = format.get(*at).filter(|byte| byte.is_ascii_digit()) {
                value = value.saturating_mul(10).saturating_add(usize::from(digit - b'0'));
                *at += 1;
            }
            value
        };
        spec.width = number(&mut at);
        if format.get(at) == Some(&b'.') {
            at += 1;
            spec.precision = Some(number(&mut at));
        }
        while let Some(byte @ (b'h' | b'l')) = format.get(at) {
            spec.size += if *byte == b'h' { -1 } else { 1 };
            at += 1;
        }
        spec.kind = *format.get(at)?;
        let is_known = b"cdiouxXpfFeEgGs%".contains(&spec.kind) && (-2..=2).contains(&spec.size);
        is_known.then_some((spec, at + 1))
    }

    pub(crate) fn is_too_wide(&self) -> bool {
        self.width.max(self.precision.unwrap_or(0)) > MOST_WIDE
    }

    /// Returns the most bytes of a string that the conversion prints.
    pub(crate) fn most(&self) -> usize {
        self.precision.unwrap_or(usize::MAX)
    }

    /// Returns the number of bytes that the argument takes.
    pub(crate) fn bytes(&self) -> u32 {
        match self.kind {
            b'd' | b'i' | b'o' | b'u' | b'x' | b'X' if self.size <= 0 => 4,
            b'c' => 4,
            _ => 8,
        }
    }
}

/// Formats the bits of an argument. If it is a string, `string` holds the bytes of the string.
pub(crate) fn piece(spec: &Spec, bits: u64, string: &[u8]) -> Vec<u8> {
    let positive = if spec.plus {
        "+"
    } else if spec.space {
        " "
    } else {
        ""
    };
    match spec.kind {
        b'c' => padded(spec, "", vec![bits as u8], false),
        b's' => {
            let length = spec.precision.unwrap_or(string.len()).min(string.len());
            padded(spec, "", string[..length].to_vec(), false)
        }
        b'p' if bits == 0 => padded(spec, "", b"(nil)".to_vec(), false),
        b'p' => padded(spec, "0x", format!("{bits:x}").into(), false),
        b'd' | b'i' => {
            let value = match spec.size {
                ..-1 => i64::from(bits as i8),
                -1 => i64::from(bits as i16),
                0 => i64::from(bits as i32),
                _ => bits as i64,
            };
            let sign = if value < 0 { "-" } else { positive };
            digits(spec, sign, value.unsigned_abs().to_string())
        }
        b'o' | b'u' | b'x' | b'X' => {
            let value = match spec.size {
                ..-1 => bits & 0xff,
                -1 => bits & 0xffff,
                0 => bits & 0xffff_ffff,
                _ => bits,
            };
            let (prefix, text) = match spec.kind {
                b'o' => ("0", format!("{value:o}")),
                b'x' => ("0x", format!("{value:x}")),
                b'X' => ("0X", format!("{value:X}")),
                _ => ("", value.to_string()),
            };
            digits(spec, if spec.alternate && value != 0 { prefix } else { "" }, text)
        }
        _ => {
            let value = f64::from_bits(bits);
            let sign = if value.is_sign_negative() { "-" } else { positive };
            let text = float(spec, value.abs());
            let text = if spec.kind.is_ascii_uppercase() { text.to_uppercase() } else { text };
            padded(spec, sign, text.into(), value.is_finite())
        }
    }
}

/// Formats an integer, with at least as many digits as the precision asks for.
fn digits(spec: &Spec, sign: &str, digits: String) -> Vec<u8> {
    let text = match spec.precision {
        Some(0) if digits == "0" => String::new(),
        Some(precision) => format!("{digits:0>precision$}"),
        None => digits,
    };
    padded(spec, sign, text.into(), spec.precision.is_none())
}

/// Formats a number that is not negative.
fn float(spec: &Spec, value: f64) -> String {
    if !value.is_finite() {
        return if value.is_nan() { "nan" } else { "inf" }.to_string();
    }
    let precision = spec.precision.unwrap_or(6);
    match spec.kind.to_ascii_lowercase() {
        b'f' => format!("{value:.precision$}"),
        b'e' => exponential(value, precision).0,
        _ => {
            let precision = precision.max(1);
            let (text, exponent) = exponential(value, precision - 1);
            let is_small = exponent < -4 || exponent >= precision as i32;
            let text = match is_small {
                true => text,
                false => format!("{value:.*}", (precision as i32 - 1 - exponent) as usize),
            };
            let (mantissa, end) = text.split_at(text.find('e').unwrap_or(text.len()));
            if spec.alternate || !mantissa.contains('.') {
                return text;
            }
            mantissa.trim_end_matches('0').trim_end_matches('.').to_string() + end
        }
    }
}

/// Formats a number as in `1.5e+00`, and returns the exponent as well.
fn exponential(value: f64, precision: usize) -> (String, i32) {
    let text = format!("{value:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    (format!("{mantissa}e{sign}{:02}", exponent.abs()), exponent)
}

/// Fills up to the width on the left or right, or with zeros behind the sign.
fn padded(spec: &Spec, sign: &str, text: Vec<u8>, may_have_zeros: bool) -> Vec<u8> {
    let missing = spec.width.saturating_sub(sign.len() + text.len());
    let fill = |byte: u8| std::iter::repeat_n(byte, missing);
    let (mut all, sign) = (Vec::new(), sign.bytes());
    if spec.left {
        all.extend(sign.chain(text).chain(fill(b' ')));
    } else if spec.zeros && may_have_zeros {
        all.extend(sign.chain(fill(b'0')).chain(text));
    } else {
        all.extend(fill(b' ').chain(sign).chain(text));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(format: &str, bits: u64) -> String {
        let (spec, length) = Spec::read(format.as_bytes()).unwrap();
        assert_eq!(length, format.len());
        String::from_utf8(piece(&spec, bits, b"text")).unwrap()
    }

    /// The expected texts are the output of glibc 2.36.
    #[test]
    fn conversions_are_those_of_c() {
        for (format, bits, expected) in [
            ("%d", u64::from(u32::MAX), "-1"),
            ("%ld", u64::MAX, "-1"),
            ("%lld", i64::MIN as u64, "-9223372036854775808"),
            ("%hd", 0x1_8000, "-32768"),
            ("%hhd", 0x80, "-128"),
            ("%5d", 7, "    7"),
            ("%-5i", 7, "7    "),
            ("%05d", -7_i32 as u32 as u64, "-0007"),
            ("%+d", 7, "+7"),
            ("% d", 7, " 7"),
            ("%.3d", 7, "007"),
            ("%6.3d", 7, "   007"),
            ("%.0d", 0, ""),
            ("%u", u64::from(u32::MAX), "4294967295"),
            ("%x", 0xabc, "abc"),
            ("%#X", 0xabc, "0XABC"),
            ("%#o", 8, "010"),
            ("%08lx", 0xabc, "00000abc"),
            ("%c", 65, "A"),
            ("%3c", 65, "  A"),
            ("%s", 0, "text"),
            ("%6s", 0, "  text"),
            ("%-6.2s", 0, "te    "),
            ("%p", 0, "(nil)"),
            ("%p", 0x1000, "0x1000"),
        ] {
            assert_eq!(print(format, bits), expected, "{format} of {bits:#x}");
        }
        for (format, value, expected) in [
            ("%f", 1.5_f64, "1.500000"),
            ("%.2f", -0.125, "-0.12"),
            ("%8.3f", 3.0, "   3.000"),
            ("%-8.1f", 2.25, "2.2     "),
            ("%08.3f", -3.0, "-003.000"),
            ("%+.0f", 2.5, "+2"),
            ("%e", 1234.5, "1.234500e+03"),
            ("%.0e", 0.00012, "1e-04"),
            ("%E", 1e100, "1.000000E+100"),
            ("%g", 0.0, "0"),
            ("%g", 100_000.0, "100000"),
            ("%g", 1_000_000.0, "1e+06"),
            ("%g", 0.0001, "0.0001"),
            ("%g", 0.00001, "1e-05"),
            ("%.3g", 1234.0, "1.23e+03"),
            ("%#g", 1.5, "1.50000"),
            ("%g", 0.1, "0.1"),
            ("%f", f64::INFINITY, "inf"),
            ("%06F", f64::NEG_INFINITY, "  -INF"),
            ("%g", f64::NAN, "nan"),
        ] {
            assert_eq!(print(format, value.to_bits()), expected, "{format} of {value}");
        }
        for format in ["%", "%5", "%n", "%a", "%*d", "%lllld"] {
            assert!(Spec::read(format.as_bytes()).is_none(), "{format}");
        }
    }
}
