//! The colours of kernels: one colour for each kernel, in every figure of the book.

use plotters::style::RGBColor;

use super::COLORS;
use super::sketch::GREY;

/// The colours of the kernels, by the first part of their names in records.
///
/// The roof is grey. No kernel of this library shares a colour with other people's code.
const KERNELS: [(&str, RGBColor); 14] = [
    ("wide", COLORS[0]),
    ("pipe", COLORS[1]),
    ("tile", COLORS[2]),
    ("ref", COLORS[3]),
    ("rows", COLORS[4]),
    ("look_back", COLORS[5]),
    ("fused", RGBColor(0, 165, 170)),
    ("roof", GREY),
    // On the CPU.
    ("cpu", RGBColor(140, 100, 210)),
    ("loop", RGBColor(150, 150, 30)),
    // By other authors.
    ("post", RGBColor(160, 100, 60)),
    ("post's Triton", RGBColor(115, 165, 60)),
    ("accelerated-scan", RGBColor(205, 60, 100)),
    ("mamba", RGBColor(100, 130, 165)),
];

/// The colour of the memory's speed by its data sheet: the text's colour, which the reader's theme
/// sets.
pub const BANDWIDTH: RGBColor = RGBColor(0, 0, 0);

/// Returns the colour of a kernel: `wide`, or `wide:4x1x128` as in a record. A name that is not in
/// the table has the text's colour.
pub fn color(name: &str) -> RGBColor {
    let family = name.split(':').next().unwrap_or(name);
    let found = KERNELS.iter().find(|(kernel, _)| *kernel == family);
    found.map_or(BANDWIDTH, |(_, color)| *color)
}

/// Returns the colour of a kernel's variant: the kernel's own colour for the first, lighter or
/// darker colours for the others.
pub fn variant(name: &str, number: usize) -> RGBColor {
    let own = color(name);
    match number % 4 {
        0 => own,
        1 => mixed(own, RGBColor(255, 255, 255), 0.45),
        2 => mixed(own, RGBColor(0, 0, 0), 0.3),
        _ => mixed(own, GREY, 0.6),
    }
}

/// Mixes two colours, for the steps on the way from one kernel to another.
pub fn mixed(from: RGBColor, to: RGBColor, share: f64) -> RGBColor {
    let mix = |from: u8, to: u8| {
        (f64::from(from) + share * (f64::from(to) - f64::from(from))).round() as u8
    };
    RGBColor(mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_kernels_share_a_colour() {
        for (i, (name, color)) in KERNELS.iter().enumerate() {
            let RGBColor(red, green, blue) = *color;
            for (other, RGBColor(r, g, b)) in &KERNELS[..i] {
                let apart = red.abs_diff(*r).max(green.abs_diff(*g)).max(blue.abs_diff(*b));
                assert!(apart > 30, "{name} looks like {other}");
            }
        }
    }

    #[test]
    fn a_configuration_has_the_colour_of_its_kernel() {
        assert_eq!(color("wide:4x1x128"), COLORS[0]);
        assert_eq!(variant("pipe", 0), color("pipe"));
        assert_ne!(variant("pipe", 1), color("pipe"));
        assert_eq!(mixed(COLORS[0], COLORS[1], 1.0), COLORS[1]);
    }
}
