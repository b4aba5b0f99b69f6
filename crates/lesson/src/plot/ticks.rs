//! The ticks of an axis and their labels.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

/// The map of an axis from values to positions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scale {
    Linear,
    /// Logarithmic, with ticks at the powers of this base.
    Log(f64),
}

impl Scale {
    /// Returns the position of a value on the axis, or `None` if a logarithmic axis cannot show it.
    pub(super) fn place(self, value: f64) -> Option<f64> {
        let place = match self {
            Scale::Linear => value,
            Scale::Log(base) => value.log(base),
        };
        place.is_finite().then_some(place)
    }

    /// Returns the positions of the ticks within a range, at most about eight.
    pub(super) fn ticks(self, (low, high): (f64, f64)) -> Vec<f64> {
        let step = match self {
            Scale::Linear => round_step((high - low) / 6.0),
            Scale::Log(_) => ((high - low) / 8.0).ceil().max(1.0),
        };
        let first = (low / step - 1e-9).ceil() as i64;
        let last = (high / step + 1e-9).floor() as i64;
        (first..=last).map(|i| i as f64 * step).collect()
    }

    /// Returns the label of a tick.
    pub(super) fn label(self, place: f64) -> String {
        let value = match self {
            Scale::Linear => place,
            Scale::Log(base) => base.powf(place),
        };
        // Steps of 0.1 add up to 0.30000000000000004; a tick means 0.3.
        let value = (value * 1e9).round() / 1e9;
        match value.abs() {
            _ if self == Scale::Log(10.0) && place < -2.0 => format!("1e{}", place.round()),
            v if v > 0.0 && !(1e-4..1e6).contains(&v) => format!("{value:e}"),
            _ => format!("{value}"),
        }
    }
}

/// An axis in the form that plotters expects: a range of positions, with ticks chosen here.
pub(super) struct Axis {
    pub scale: Scale,
    pub range: (f64, f64),
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, (from, to): (i32, i32)) -> i32 {
        let share = (place - self.range.0) / (self.range.1 - self.range.0);
        from + (share * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match hint.weight().allow_light_points() {
            true => Vec::new(),
            false => self.scale.ticks(self.range),
        }
    }

    fn range(&self) -> Range<f64> {
        self.range.0..self.range.1
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, place: &f64) -> String {
        self.scale.label(*place)
    }
}

/// Returns the smallest of 1, 2 and 5 times a power of ten that is not below `step`.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|f| f * power >= step * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::Scale;

    #[test]
    fn linear_ticks_are_round() {
        let ticks = Scale::Linear.ticks((0.0, 1.0));
        assert_eq!(
            ticks.iter().map(|&t| Scale::Linear.label(t)).collect::<Vec<_>>().join(" "),
            "0 0.2 0.4 0.6 0.8 1"
        );
        assert_eq!(Scale::Linear.ticks((-3.0, 9.0)), [-2.0, 0.0, 2.0, 4.0, 6.0, 8.0]);
    }

    #[test]
    fn logarithmic_ticks_are_powers() {
        let scale = Scale::Log(2.0);
        assert_eq!(scale.ticks((4.0, 7.5)), [4.0, 5.0, 6.0, 7.0]);
        assert_eq!(scale.label(4.0), "16");
        assert_eq!(Scale::Log(10.0).label(-12.0), "1e-12");
        assert_eq!(scale.place(0.0), None);
    }
}
