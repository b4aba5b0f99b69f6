//! Each planted mistake is found, and what is right is not accused.

use ch17_several_gpus::suspect;

#[test]
fn every_mistake_is_named_in_a_sentence() {
    for (name, words) in suspect::NAMES.into_iter().zip([
        "rank 1 has ended without receiving an array that rank 0 has sent (1 in all)",
        "nothing orders the two",
        "pass 2: ",
    ]) {
        let found = suspect::examine(name).unwrap().unwrap_or_else(|| panic!("{name}"));
        println!("{found}");
        assert!(found.contains(words), "{name}: {found}");
    }
    assert_eq!(suspect::examine("mailbox"), Ok(None));
    assert!(suspect::examine("a mistake that nobody made").is_err());
}
