//! The atlas: what its maps say at places where the answer is known.

use ch15_log_space::LogSpace;
use ch15_log_space::atlas::{Grid, Legend, Map, Method, draw, map, sixteen_bits};

fn grid() -> Grid {
    Grid { rates: vec![10.0, 0.1, -0.1, -10.0], lengths: vec![16, 64, 256, 8192], sequences: 1 }
}

fn whole() -> Method {
    Method::LogSpace(LogSpace::whole())
}

#[test]
fn errors_stay_below_the_bounds() {
    for method in [Method::Loop, Method::TwoThreads, Method::Tree, whole()] {
        let single = map::<f32>(&grid(), &method, "f32").unwrap();
        let double = map::<f64>(&grid(), &method, "f64").unwrap();
        for map in [single, double] {
            let share = map.largest_share();
            assert!(share > 0.0 && share <= 1.0, "{method:?}, {}: {share}", map.title);
        }
    }
    for method in [Method::Loop, Method::TwoThreads, Method::Tree, whole()] {
        for map in sixteen_bits(&grid(), &method, "stored").unwrap() {
            let share = map.largest_share();
            assert!(share > 0.0 && share <= 1.0, "{method:?}, {}: {share}", map.title);
        }
    }
}

#[test]
fn an_error_above_the_bound_is_seen() {
    let mut map = map::<f32>(&grid(), &whole(), "f32").unwrap();
    let cell = [2, 0];
    map.errors[cell] = 2.0 * map.bounds[cell];
    assert!(map.largest_share() >= 2.0);
    map.errors[cell] = f64::INFINITY;
    assert!(map.largest_share() > 1e300);
}

#[test]
fn ranges_end_where_the_types_end() {
    // 16 factors of e^10 on average are beyond f32 and far within f64.
    let single: Map = map::<f32>(&grid(), &Method::Loop, "f32").unwrap();
    let double: Map = map::<f64>(&grid(), &Method::Loop, "f64").unwrap();
    assert!(single.errors[[0, 0]].is_nan() && !double.errors[[0, 0]].is_nan());
    assert!(double.errors[[0, 3]].is_nan());
    assert!(single.errors.row(3).iter().all(|error| error.is_finite()));

    // A way of 80,000 cannot be stored in float16, but in bfloat16.
    let [bf16, f16] = sixteen_bits(&grid(), &whole(), "log space").unwrap();
    assert!(f16.errors[[3, 3]].is_infinite() && f16.bounds[[3, 3]].is_infinite());
    assert!(bf16.errors[[3, 3]].is_finite());
}

#[test]
fn a_reach_keeps_what_whole_sums_lose() {
    let whole = map::<f32>(&grid(), &whole(), "whole").unwrap();
    let restarting = Method::LogSpace(LogSpace::restarting(8.0));
    let restarting = map::<f32>(&grid(), &restarting, "restarting").unwrap();
    // Long decays: here even the bound of the one is below the error of the other.
    assert!(restarting.bounds[[3, 3]] < whole.errors[[3, 3]]);
}

#[test]
fn a_page_draws_every_map() {
    let grid = grid();
    let map = map::<f32>(&grid, &Method::Loop, "the loop").unwrap();
    let legend = Legend { powers: (-8, 0), contours: [-6, -4, -2] };
    let svg = draw(&grid, &[&map, &map, &map], legend).unwrap();
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    assert_eq!(svg.matches("the loop").count(), 3);
}
