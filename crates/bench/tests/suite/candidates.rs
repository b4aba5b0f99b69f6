//! Which configurations there are of a kernel, and which of them are worth a measurement at a
//! length: each family says it of itself.

use bench::LENGTHS;
use linrec::kernels::{ElementType, KernelChoice};

#[test]
fn every_configuration_is_there_once_and_has_a_name() {
    for element in ElementType::ALL {
        for kernel in KernelChoice::families() {
            let all = KernelChoice::candidates(kernel, element);
            assert!(!all.is_empty());
            for (place, choice) in all.iter().enumerate() {
                assert_eq!(choice.name(), kernel);
                assert_eq!(choice.to_string().parse(), Ok(*choice));
                assert!(!all[..place].contains(choice), "{choice}");
            }
        }
    }
    assert!(KernelChoice::candidates("other", ElementType::F32).is_empty());
}

#[test]
fn every_length_has_configurations_and_every_configuration_a_length() {
    for element in ElementType::ALL {
        for kernel in ["ref", "pipe", "rows", "wide"] {
            let all = KernelChoice::candidates(kernel, element);
            for len in LENGTHS {
                // Rows must fit into a warp.
                if kernel == "rows" && len > 32 {
                    continue;
                }
                if kernel == "wide" && len < 256 {
                    continue;
                }
                let here = all.iter().filter(|choice| choice.is_worth(element, len as u64)).count();
                assert!(here > 0, "{kernel} of {element} at {len}");
            }
            for choice in all {
                let somewhere = LENGTHS.iter().any(|&len| choice.is_worth(element, len as u64));
                assert!(somewhere, "{choice} of {element}");
            }
        }
    }
}

#[test]
fn a_launch_is_measured_once() {
    for kernel in ["tile", "pipe"] {
        for len in LENGTHS {
            let worth = KernelChoice::candidates(kernel, ElementType::F32)
                .into_iter()
                .filter(|choice| choice.is_worth(ElementType::F32, len as u64));
            let mut launches = Vec::new();
            for choice in worth {
                let pass = linrec::kernels::Pass::Forward;
                let geometry = choice.geometry(ElementType::F32, pass, 1, len as u64);
                // The elements of a thread, and the memcode.
                let name = choice.to_string();
                let (elems, rest) = name.split_once('x').unwrap();
                let memcode = rest.split_once(':').unwrap().1;
                let launch = (geometry.threads, elems.to_owned(), memcode.to_owned());
                assert!(!launches.contains(&launch), "{choice} at {len}");
                launches.push(launch);
            }
        }
    }
}
