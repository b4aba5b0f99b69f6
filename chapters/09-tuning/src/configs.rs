//! Which configurations there are of a kernel, and which of them are worth a measurement at a length.

use linrec::kernels::{Config, ElementType, KernelChoice, RowsConfig, WideConfig};

/// The kernels, by their names.
pub const KERNELS: [&str; 5] = ["ref", "tile", "pipe", "rows", "wide"];

/// Threads of a block: all that a GPU takes, in powers of two.
const THREADS: [u32; 6] = [32, 64, 128, 256, 512, 1024];

/// Every configuration of a kernel, in a fixed order.
// ANCHOR: all
pub fn all(kernel: &str, element: ElementType) -> Vec<KernelChoice> {
    match kernel {
        "ref" => THREADS.map(|threads| KernelChoice::Ref { threads }).to_vec(),
        "tile" => tiles().map(KernelChoice::Tile).collect(),
        "pipe" => tiles().map(KernelChoice::Pipe).collect(),
        "rows" => rows(element),
        "wide" => wide(element),
        _ => Vec::new(),
    }
}

fn tiles() -> impl Iterator<Item = Config> {
    [4, 8, 16, 32].into_iter().flat_map(|max_elems_per_thread| {
        THREADS.into_iter().flat_map(move |max_threads_per_block| {
            [0, 1, 2].map(|memcode| Config {
                max_elems_per_thread,
                max_threads_per_block,
                memcode,
                algocode: 3,
            })
        })
    })
}
// ANCHOR_END: all

/// Some lanes of a warp for each row, which they hold; for any rows, and for rows of whole words.
fn rows(element: ElementType) -> Vec<KernelChoice> {
    let mut configs = Vec::new();
    for lanes in [1, 2, 4, 8, 16, 32] {
        for words in [1, 2, 4] {
            for threads in [32, 64, 128] {
                for whole in wholes(element) {
                    configs.push(RowsConfig { lanes, words, threads, whole: *whole });
                }
            }
        }
    }
    // What holds less than the shortest sequences of the tables is left out.
    let holds = |config: &RowsConfig| config.max_len(element) >= 16;
    configs.into_iter().filter(holds).map(KernelChoice::Rows).collect()
}

/// A block for each row, tile by tile.
fn wide(element: ElementType) -> Vec<KernelChoice> {
    let mut configs = Vec::new();
    for threads in [32, 64, 128, 256, 512, 1024] {
        for words in [1, 2, 4, 8] {
            for ahead in [0, 1, 2] {
                let bytes = threads * words * 16;
                // What is loaded ahead pays when there is much of it, and shared memory is full at some point.
                let sensible = match ahead {
                    0 => words <= 4 && bytes <= 32 << 10,
                    _ => threads >= 128 && words >= 2 && bytes <= 64 << 10,
                };
                for whole in wholes(element).iter().filter(|_| sensible) {
                    configs.push(WideConfig { words, threads, ahead, whole: *whole });
                }
            }
        }
    }
    configs.into_iter().map(KernelChoice::Wide).collect()
}

/// An element of 16 bytes is a word of its own: all rows are whole.
fn wholes(element: ElementType) -> &'static [bool] {
    if element.bytes() < 16 { &[false, true] } else { &[false] }
}

/// Whether a configuration takes sequences of a length.
pub fn takes(choice: KernelChoice, element: ElementType, seq_len: usize) -> bool {
    let len = seq_len as u64;
    let fits = choice.max_len(element).is_none_or(|most| len <= most);
    fits && len.is_multiple_of(choice.multiple_of(element))
}

/// Whether a configuration is worth a measurement at a length: it takes such sequences, is not the same launch as a
/// smaller one, and is neither a hundred times too large nor too small.
// ANCHOR: worth
pub fn worth(choice: KernelChoice, element: ElementType, seq_len: usize) -> bool {
    if !takes(choice, element, seq_len) {
        return false;
    }
    let len = seq_len as u64;
    match choice {
        // With half of the threads the launch would be the same.
        KernelChoice::Tile(config) | KernelChoice::Pipe(config) => {
            config.max_threads_per_block == 32 || config.max_tile() / 2 < len
        }
        // More than a few times too large, and most lanes have nothing to do.
        KernelChoice::Rows(config) => config.max_len(element) < 4 * len,
        KernelChoice::Wide(config) => {
            let tile = config.tile(element);
            let ahead = config.ahead == 0 || tile < len;
            ahead && tile <= 2 * len && len.min(1 << 16) <= 32 * tile
        }
        _ => true,
    }
}
// ANCHOR_END: worth

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LENGTHS;

    #[test]
    fn every_configuration_is_there_once_and_has_a_name() {
        for element in ElementType::ALL {
            for kernel in KERNELS {
                let all = all(kernel, element);
                assert!(!all.is_empty());
                for (place, choice) in all.iter().enumerate() {
                    assert_eq!(choice.name(), kernel);
                    assert_eq!(choice.spec().parse(), Ok(*choice));
                    assert!(!all[..place].contains(choice), "{choice}");
                }
            }
        }
        assert!(all("other", ElementType::F32).is_empty());
    }

    #[test]
    fn every_length_has_configurations_and_every_configuration_a_length() {
        for element in ElementType::ALL {
            for kernel in ["ref", "pipe", "rows", "wide"] {
                let all = all(kernel, element);
                for len in LENGTHS {
                    // Rows must fit into a warp.
                    if kernel == "rows" && len > 32 {
                        continue;
                    }
                    if kernel == "wide" && len < 256 {
                        continue;
                    }
                    let here = all.iter().filter(|choice| worth(**choice, element, len)).count();
                    assert!(here > 0, "{kernel} of {element} at {len}");
                }
                for choice in all {
                    let somewhere = LENGTHS.iter().any(|&len| worth(choice, element, len));
                    assert!(somewhere, "{choice} of {element}");
                }
            }
        }
    }

    #[test]
    fn a_launch_is_measured_once() {
        for kernel in ["tile", "pipe"] {
            for len in LENGTHS {
                let worth = all(kernel, ElementType::F32)
                    .into_iter()
                    .filter(|choice| worth(*choice, ElementType::F32, len));
                let mut launches = Vec::new();
                for choice in worth {
                    let (KernelChoice::Tile(config) | KernelChoice::Pipe(config)) = choice else {
                        continue;
                    };
                    let pass = linrec::kernels::Pass::Forward;
                    let geometry = choice.geometry(ElementType::F32, pass, 1, len as u64);
                    let launch = (geometry.threads, config.max_elems_per_thread, config.memcode);
                    assert!(!launches.contains(&launch), "{choice} at {len}");
                    launches.push(launch);
                }
            }
        }
    }
}
