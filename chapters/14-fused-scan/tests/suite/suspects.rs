//! The planted mistakes are found, and their twin is innocent.

use ch14_fused_scan::suspect::{examine, names};

#[test]
fn every_mistake_is_found() {
    let words = [
        ("walk_before_the_tile", "which nothing has written"),
        ("tile_before_the_end_of_the_walk", "no barrier"),
        ("sum_by_half_a_warp", "waits for lanes that its mask names"),
        ("powers_of_two_for_powers_of_e", "times its bound"),
    ];
    assert_eq!(names(), words.map(|(name, _)| name));
    for (name, words) in words {
        let found = examine(name).unwrap().map(|finding| finding.to_string());
        println!("{name}: {found:?}");
        assert!(found.is_some_and(|found| found.contains(words)), "{name}");
    }
}

#[test]
fn their_twin_is_innocent() {
    assert!(examine("fused/quad").unwrap().is_none());
    assert!(examine("nothing_of_the_kind").is_err());
}
