//! Numbers as text that fits a table's cell.

/// Returns a float with up to six digits: `0.5`, `-1.25e-9`, `NaN`.
pub fn float(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 && value.is_sign_negative() {
            "-0".to_owned()
        } else {
            format!("{value}")
        };
    }
    let rounded = format!("{value:.5e}");
    let (digits, exponent) = rounded.split_once('e').unwrap_or((&rounded, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        trimmed(&format!("{value:.*}", (5 - exponent).max(0) as usize)).to_owned()
    } else {
        format!("{}e{exponent}", trimmed(digits))
    }
}

fn trimmed(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

/// Returns true if the bits are zero or look like a usual float, and should be shown as a float.
pub fn looks_like_float(bits: u32) -> bool {
    let exponent = (bits >> 23 & 0xff) as i32 - 127;
    bits == 0 || (-40..=40).contains(&exponent)
}

/// Describes lanes: `lane 3`, `lanes 0 to 15, 31`, `all lanes`.
pub fn lanes(mask: u32) -> String {
    if mask == u32::MAX {
        return "all lanes".to_owned();
    }
    let mut ranges = Vec::new();
    let mut lane = 0;
    while lane < 32 {
        let run = (mask >> lane).trailing_ones();
        match run {
            0 => lane += 1,
            1 => ranges.push(lane.to_string()),
            _ => ranges.push(format!("{lane} to {}", lane + run - 1)),
        }
        lane += run;
    }
    let plural = if mask.count_ones() == 1 { "" } else { "s" };
    if mask == 0 { "no lane".to_owned() } else { format!("lane{plural} {}", ranges.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_short() {
        for (value, text) in [
            (0.5, "0.5"),
            (-0.0, "-0"),
            (1.0 / 3.0, "0.333333"),
            (123_456.7, "123457"),
            (1e-9, "1e-9"),
            (-1.234_567_8e20, "-1.23457e20"),
            (999_999.9, "1e6"),
            (100.0, "100"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(float(value), text);
        }
    }

    #[test]
    fn lanes_are_written_as_ranges() {
        assert_eq!(lanes(u32::MAX), "all lanes");
        assert_eq!(lanes(0x8000_00ff), "lanes 0 to 7, 31");
        assert_eq!(lanes(8), "lane 3");
        assert_eq!(lanes(0), "no lane");
        assert_eq!(lanes(0xfffe_0000), "lanes 17 to 31");
    }
}
