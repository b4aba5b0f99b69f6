//! Every kernel has one spelling, for writing and for reading.

use linrec::Direction;
use linrec::kernels::{ElementType, KernelChoice, Pass};
use proptest::prelude::*;

/// Draws a configuration of any family with any sizes: a tuner's candidate with other numbers.
fn any_kernel() -> impl Strategy<Value = String> {
    let families = KernelChoice::families();
    (0..families.len(), any::<prop::sample::Index>(), any::<[u32; 4]>()).prop_map(
        move |(family, index, numbers)| {
            let all = KernelChoice::candidates(families[family], ElementType::F32);
            let name = all[index.index(all.len())].to_string();
            let (family, rest) = name.split_once(':').unwrap();
            let (sizes, options) = rest.split_once(':').unwrap_or((rest, ""));
            let sizes: Vec<String> =
                sizes.split('x').zip(numbers).map(|(_, number)| number.to_string()).collect();
            let colon = if options.is_empty() { "" } else { ":" };
            format!("{family}:{}{colon}{options}", sizes.join("x"))
        },
    )
}

proptest! {
    #[test]
    fn kernels_are_written_as_they_were_read(name in any_kernel()) {
        let choice: KernelChoice = name.parse().unwrap();
        prop_assert_eq!(choice.to_string(), name);
        prop_assert_eq!(choice.to_string().parse(), Ok(choice));
    }

    #[test]
    fn any_text_is_read_or_refused_without_a_panic(
        text in "(ref|tile|pipe|rows|wide|flat)?[:x0-9aw]{0,16}",
    ) {
        if let Ok(choice) = text.parse::<KernelChoice>() {
            prop_assert_eq!(choice.to_string().parse(), Ok(choice));
        }
    }
}

#[test]
fn no_two_kernels_share_a_spelling_or_an_entry() {
    for element in ElementType::ALL {
        let (mut names, mut entries) = (Vec::new(), Vec::new());
        for family in KernelChoice::families() {
            let all = KernelChoice::candidates(family, element);
            assert!(!all.is_empty(), "{family}");
            for choice in all {
                assert_eq!(choice.name(), family);
                assert_eq!(choice.to_string().parse(), Ok(choice));
                names.push(choice.to_string());
                entries.push((
                    choice.entry(element, Pass::Forward, Direction::Forward),
                    choice.file_name(element),
                ));
            }
        }
        let many = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), many);
        // Kernels that differ only in their launch share both.
        entries.sort();
        entries.dedup();
        let mut files: Vec<_> = entries.iter().map(|(_, file)| file).collect();
        files.dedup();
        assert_eq!(files.len(), entries.len());
    }
}

#[test]
fn omitted_parts_take_their_usual_values() {
    for (short, whole) in [
        ("ref", "ref:64"),
        ("tile", "tile:4x256:0"),
        ("pipe", "pipe:8x64:0"),
        ("pipe:4x128", "pipe:4x128:0"),
        ("pipe:8x64:0:3", "pipe:8x64:0"),
        ("rows", "rows:16x2x32"),
        ("rows:16x2:w", "rows:16x2x32:w"),
        ("wide", "wide:2x128"),
        ("wide:4x256:a0:w", "wide:4x256:w"),
    ] {
        assert_eq!(short.parse::<KernelChoice>().unwrap().to_string(), whole, "{short}");
    }
    assert_eq!("tile:4x256:0:2".parse::<KernelChoice>().unwrap().passes(), [Pass::Forward]);
}

#[test]
fn a_text_that_is_no_kernel_is_named() {
    for name in [
        "",
        "ref:",
        "ref:x",
        "ref:64:0",
        "ref:064",
        "pipe:8x64:",
        "pipe:8x64:3",
        "pipe:8x64:0:4",
        "pipe:8x64:0:b2",
        "pipe:8x64:w",
        "pipe:8x64x2",
        "pipe:+8x64",
        "wide:8x2/64",
        "wide:4x128:wa1",
        "wide:4x128:a1w",
        "wide:4x128:w:a1",
        "wide:4x128:w:w",
        "rows:4x1/128:a1",
        "flat:4x1",
        "ref:99999999999",
        "pipe-8x64-0",
    ] {
        let error = name.parse::<KernelChoice>().unwrap_err().to_string();
        assert!(error.contains(&format!("`{name}`; write ref:64, tile:4x256:0, ")), "{error}");
    }
}
