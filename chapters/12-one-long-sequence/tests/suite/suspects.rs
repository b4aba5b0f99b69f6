//! The planted mistakes are found, and their twin is innocent.

use ch12_one_long_sequence::suspect::{examine, names};

#[test]
fn every_mistake_is_found() {
    let words = [
        ("told_without_release", "nothing orders the two"),
        ("told_too_early", "nothing orders the two"),
        ("taken_before_told", "nothing orders the two"),
        ("tile_by_number", "makes no progress"),
        ("epoch_that_stays", "which warp 0 of block 1 reads"),
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
    assert!(examine("long/chained").unwrap().is_none());
    assert!(examine("nothing_of_the_kind").is_err());
}
