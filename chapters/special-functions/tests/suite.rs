//! Tests of the appendix's tools, on functions whose answer is known.

use appendix_special_functions::errors::{Over, in_ulps};
use appendix_special_functions::fit::{self, ULP};
use appendix_special_functions::squares::{Square, folded};

/// The number of bits of an argument within a segment.
const BITS: u32 = 14;
/// The lowest column of the made-up squarer.
const DROPPED: u32 = 13;

fn squares(square: Square) -> Vec<f64> {
    let unit = f64::from(DROPPED).exp2();
    (0..1_u32 << BITS).map(|x| square.of(x) as f64 / unit).collect()
}

/// Returns the results of a table's entry.
fn results([c0, c1, c2]: [i64; 3]) -> Vec<u32> {
    let of = |x: u32| {
        let square = (folded(x, DROPPED) >> DROPPED) as i64;
        ((c0 + c1 * i64::from(x) + c2 * square) >> 15) as u32
    };
    (0..1 << BITS).map(of).collect()
}

#[test]
fn squares_lack_only_the_columns_that_are_left_out() {
    for x in (0..1_u32 << 17).step_by(13) {
        let exact = u64::from(x) * u64::from(x);
        assert_eq!(folded(x, 0), exact);
        assert_eq!(Square::Array(0).of(x), exact);
        // An array without its columns below 2^19, product by product.
        let bit = |i: u32| u64::from(x >> i & 1);
        let array: u64 = (0..17)
            .flat_map(|i| (0..17).map(move |j| (i, j)))
            .filter(|(i, j)| i + j >= 19)
            .map(|(i, j)| (bit(i) & bit(j)) << (i + j))
            .sum();
        assert_eq!(Square::Array(19).of(x), array);
        assert_eq!(folded(x, 20), array, "its pairs are one column further");
        assert_eq!(Square::Array(18).of(x) - folded(x, 19), bit(9) << 18, "one partial product");
    }
}

#[test]
fn an_entry_is_found_only_with_the_right_square() {
    for entry in [[3_000_000_127, 18_001, 977], [2_500_000_000, -30_007, 641]] {
        let results = results(entry);
        let right = squares(Square::Folded(DROPPED));
        let best = fit::best(&results, &right);
        assert!(best.spread() < 1.0, "{best:?}");
        assert_eq!(best.misses(&results, &right), 0);
        let found = fit::on_grid(&results, &right, &best, 1.0);
        let of_entry =
            found.iter().find(|pair| [pair.c1, pair.c2] == [entry[1] as f64, entry[2] as f64]);
        let Some(pair) = of_entry else { panic!("{entry:?} is not in {found:?}") };
        assert!((pair.c0.0..pair.c0.1).contains(&(entry[0] as f64)), "{pair:?}");

        let exact = squares(Square::Exact);
        let best = fit::best(&results, &exact);
        assert!(best.spread() > 1.0, "{best:?}");
        assert!(best.misses(&results, &exact) > 0);
    }
}

#[test]
fn one_wrong_result_leaves_no_entry() {
    let mut results = results([3_000_000_127, 18_001, 977]);
    results[7_777] += 1;
    let best = fit::best(&results, &squares(Square::Folded(DROPPED)));
    assert!(best.spread() > 1.0, "{best:?}");
}

#[test]
fn a_shared_constant_is_found() {
    let pair = |c0: f64| fit::Pair { c1: 0.0, c2: 0.0, c0: (c0 - 0.5, c0 + 0.5) };
    let shared = fit::shared_constant(&[5.0 + 3.0 * 64.0, 5.0 + 64.0, 5.0 + 6.0 * 64.0].map(pair));
    assert_eq!(shared, (6, vec![5]));
}

#[test]
fn errors_of_a_function_are_measured() {
    let over = |function| Over {
        function,
        exact: f64::sqrt,
        bits: (1.0_f32.to_bits(), 1.25_f32.to_bits()),
    };
    let right = over(|x| (f64::from(f32::from_bits(x)).sqrt() as f32).to_bits()).errors();
    assert_eq!((right.arguments, right.rounded, right.off), (1 << 21, 1 << 21, 0));
    assert_eq!(right.backward, (0, 0));
    assert!(right.high.0 <= 0.5 && right.low.0 >= -0.5, "{right:?}");

    // One result that is too high by 3 numbers, in the middle of a thread's part and at the
    // beginning of one.
    for place in [0x3f80_0000 + 12_345, 0x3f80_0000 + (1 << 18)] {
        let right = |x: u32| (f64::from(f32::from_bits(x)).sqrt() as f32).to_bits();
        let wrong = match place {
            0x3f80_3039 => over(|x| right_but(x, 0x3f80_3039)),
            _ => over(|x| right_but(x, 0x3f84_0000)),
        };
        let errors = wrong.errors();
        assert_eq!((errors.rounded, errors.off), ((1 << 21) - 1, 3));
        assert_eq!(errors.high.1, place);
        let after = right(place + 1);
        assert_eq!(errors.backward, (1, right(place) + 3 - after));
    }
    assert_eq!(in_ulps(1.0 + f32::EPSILON, 1.0), 1.0);
    assert_eq!(in_ulps(-4.0, -4.5), 0.5 * f64::from(1 << 21));
    assert_eq!(ULP, 32768.0);
}

fn right_but(x: u32, place: u32) -> u32 {
    (f64::from(f32::from_bits(x)).sqrt() as f32).to_bits() + if x == place { 3 } else { 0 }
}
