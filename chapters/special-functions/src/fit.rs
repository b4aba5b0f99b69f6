//! Finds out whether any coefficients of a quadratic explain all results of a segment.
//!
//! A result `y`, of a sum whose lower bits are dropped, means that `y <= c0 + c1 x + c2 s < y + 1`.
//! So `c0` must be at least `y - c1 x - c2 s` for every `x`, and less than 1 above it: such a `c0`
//! exists exactly if these differences spread over less than 1. The spread is a convex function of
//! `c1` and `c2`, so its minimum can be found.

/// The unit in the last place of a result, in units of the sum's last bit. (Any power of two works:
/// it only scales `c1` and `c2`.)
pub const ULP: f64 = 32768.0;

/// The coefficients with the smallest spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// The coefficient of `x`.
    pub c1: f64,
    /// The coefficient of the square.
    pub c2: f64,
    /// The least and the largest of `y - c1 x - c2 s`, in units of the sum's last bit.
    pub limits: (f64, f64),
}

impl Fit {
    /// Returns the spread, in units of the result's last place: below 1 a `c0` exists.
    pub fn spread(&self) -> f64 {
        (self.limits.1 - self.limits.0) / ULP
    }

    /// Returns the number of results that differ with `c0` in the middle.
    pub fn misses(&self, results: &[u32], squares: &[f64]) -> usize {
        let c0 = f64::midpoint(self.limits.0, self.limits.1) + ULP / 2.0;
        let sum = |x: usize| c0 + self.c1 * x as f64 + self.c2 * squares[x];
        let right = |x: usize| (0.0..ULP).contains(&(sum(x) - f64::from(results[x]) * ULP));
        (0..results.len()).filter(|&x| !right(x)).count()
    }
}

// ANCHOR: limits
/// The least and the largest of `y - c1 x - c2 s` over the arguments `xs`, with their positions.
pub fn limits(
    results: &[u32],
    squares: &[f64],
    [c1, c2]: [f64; 2],
    xs: impl Iterator<Item = usize>,
) -> [(f64, usize); 2] {
    let mut least = (f64::INFINITY, 0);
    let mut largest = (f64::NEG_INFINITY, 0);
    for x in xs {
        let c0 = f64::from(results[x]) * ULP - c1 * x as f64 - c2 * squares[x];
        if c0 < least.0 {
            least = (c0, x);
        }
        if c0 > largest.0 {
            largest = (c0, x);
        }
    }
    [least, largest]
}
// ANCHOR_END: limits

// ANCHOR: best
/// The coefficients with the smallest spread. The search begins with a few arguments and adds those
/// at which their best coefficients fail worst, until none fails by more than the few.
pub fn best(results: &[u32], squares: &[f64]) -> Fit {
    let mut few: Vec<usize> = (0..=32).map(|i| i * (results.len() - 1) / 32).collect();
    loop {
        let (c, spread) = best_of_few(results, squares, &few);
        let [least, largest] = limits(results, squares, c, 0..results.len());
        if largest.0 - least.0 <= spread + 1.0 || few.len() > 400 {
            return Fit { c1: c[0], c2: c[1], limits: (least.0, largest.0) };
        }
        few.extend([least.1, largest.1]);
    }
}
// ANCHOR_END: best

/// Returns the coefficients with the smallest spread over a `few` arguments, and the spread. The
/// function is convex, so a search within a search finds them.
fn best_of_few(results: &[u32], squares: &[f64], few: &[usize]) -> ([f64; 2], f64) {
    let spread = |c: [f64; 2]| {
        let [least, largest] = limits(results, squares, c, few.iter().copied());
        largest.0 - least.0
    };
    let last = results.len() - 1;
    let rise = (f64::from(results[last]) - f64::from(results[0])) * ULP;
    let best_slope = |c2: f64| {
        // The line has to pass both ends within an ulp or two.
        let chord = (rise - c2 * (squares[last] - squares[0])) / last as f64;
        minimum(chord - 2.0, chord + 2.0, 40, |c1| spread([c1, c2]))
    };
    let (c2, _) = minimum(0.0, 2048.0, 50, |c2| best_slope(c2).1);
    let (c1, smallest) = best_slope(c2);
    ([c1, c2], smallest)
}

/// Returns the place of the minimum of a convex function, and its value.
fn minimum(mut low: f64, mut high: f64, steps: usize, f: impl Fn(f64) -> f64) -> (f64, f64) {
    for _ in 0..steps {
        let third = (high - low) / 3.0;
        if f(low + third) <= f(high - third) {
            high -= third;
        } else {
            low += third;
        }
    }
    let middle = f64::midpoint(low, high);
    (middle, f(middle))
}

/// A pair of coefficients for which a `c0` exists.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// The coefficient of `x`.
    pub c1: f64,
    /// The coefficient of the square.
    pub c2: f64,
    /// The least `c0`, and the bound that it must stay below.
    pub c0: (f64, f64),
}

/// Returns the pairs of multiples of `grid` near the best coefficients for which a `c0` exists.
pub fn on_grid(results: &[u32], squares: &[f64], fit: &Fit, grid: f64) -> Vec<Pair> {
    let mut found = Vec::new();
    let near = |c: f64, reach: i32| {
        let middle = (c / grid).round();
        (-reach..=reach).map(move |step| (middle + f64::from(step)) * grid)
    };
    for c2 in near(fit.c2, (6.0 / grid) as i32) {
        for c1 in near(fit.c1, (3.0 / grid) as i32) {
            // Most pairs fail at a few arguments already.
            let some = (0..results.len()).step_by(997);
            let [least, largest] = limits(results, squares, [c1, c2], some);
            if largest.0 - least.0 >= ULP {
                continue;
            }
            let [least, largest] = limits(results, squares, [c1, c2], 0..results.len());
            if largest.0 - least.0 < ULP {
                found.push(Pair { c1, c2, c0: (largest.0, least.0 + ULP) });
            }
        }
    }
    found
}

// ANCHOR: constant
/// The largest `k`, and the constants below `2^k`, such that every `c0` can be a multiple of
/// `2^k` plus that constant.
pub fn shared_constant(all: &[Pair]) -> (u32, Vec<i64>) {
    let whole = |pair: &Pair| pair.c0.0.ceil() as i64..pair.c0.1.ceil() as i64;
    let shared = |k: u32| -> Vec<i64> {
        let rest = |c0: i64| c0.rem_euclid(1 << k);
        let of_first = all.first().map_or(0..0, whole).map(rest);
        of_first
            .filter(|&rest_of_first| {
                all.iter().all(|pair| whole(pair).any(|c0| rest(c0) == rest_of_first))
            })
            .collect()
    };
    let largest = (0..40).rev().find(|&k| !shared(k).is_empty()).unwrap_or(0);
    (largest, shared(largest))
}
// ANCHOR_END: constant
