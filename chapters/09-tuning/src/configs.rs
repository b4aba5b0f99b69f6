//! Which configurations there are of a kernel, and which of them are worth a measurement at a length.

use linrec::kernels::{Config, ElementType, KernelChoice, WideConfig};

/// The kernels, by their names.
pub const KERNELS: [&str; 4] = ["ref", "tile", "pipe", "wide"];

/// Threads of a block: all that a GPU takes, in powers of two.
const THREADS: [u32; 6] = [32, 64, 128, 256, 512, 1024];

/// Every configuration of a kernel, in a fixed order.
// ANCHOR: all
pub fn all(kernel: &str, element: ElementType) -> Vec<KernelChoice> {
    match kernel {
        "ref" => THREADS.map(|threads| KernelChoice::Ref { threads }).to_vec(),
        "tile" => tiles().map(KernelChoice::Tile).collect(),
        "pipe" => tiles().map(KernelChoice::Pipe).collect(),
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

/// Some lanes of a warp for each row, or a block for each row with tiles ahead; each for any rows, and for
/// rows of whole words.
fn wide(element: ElementType) -> Vec<KernelChoice> {
    let mut configs = Vec::new();
    for lanes in [2, 4, 8, 16, 32] {
        for words in [1, 2, 4] {
            for threads in [32, 64, 128] {
                configs.push((lanes, words, threads, 0));
            }
        }
    }
    for threads in [64, 128, 256, 512, 1024] {
        for words in [1, 2, 4, 8] {
            for ahead in [0, 1, 2] {
                configs.push((threads, words, threads, ahead));
            }
        }
    }
    let sensible = |&(lanes, words, threads, ahead): &(u32, u32, u32, u32)| {
        let bytes = words * 16;
        match (lanes < threads, ahead) {
            // More than a tile of 2 KiB for a part of a warp belongs to a warp or a block.
            (true, _) => lanes * bytes <= 2048,
            // What is loaded ahead pays when there is much of it.
            (false, 0) => words <= 4 && threads * bytes <= 32 << 10,
            (false, _) => threads >= 128 && words >= 2 && threads * bytes <= 64 << 10,
        }
    };
    // A warp for a row, with one warp in the block, is both of the first and of the second kind.
    let of = |(lanes, words, threads, ahead), whole| {
        KernelChoice::Wide(WideConfig { lanes, words, threads, ahead, whole })
    };
    let kept: Vec<_> = configs.into_iter().filter(sensible).collect();
    let both = |config| [of(config, false), of(config, true)];
    let choices = kept.into_iter().flat_map(both);
    // An element of 16 bytes is a word of its own: all rows are whole.
    choices.filter(|choice| element.bytes() < 16 || !is_whole(*choice)).collect()
}

fn is_whole(choice: KernelChoice) -> bool {
    matches!(choice, KernelChoice::Wide(config) if config.whole)
}

/// Whether a configuration is measured at a length: it takes such sequences, is not the same launch as a
/// smaller one, and is neither a hundred times too large nor too small.
// ANCHOR: worth
pub fn worth(choice: KernelChoice, element: ElementType, seq_len: usize) -> bool {
    let len = seq_len as u64;
    if choice.max_len().is_some_and(|most| len > most) || len % choice.multiple_of(element) != 0 {
        return false;
    }
    match choice {
        // With half of the threads the launch would be the same.
        KernelChoice::Tile(config) | KernelChoice::Pipe(config) => {
            config.max_threads_per_block == 32 || config.max_tile() / 2 < len
        }
        KernelChoice::Wide(config) => {
            let tile = config.tile(element);
            if config.lanes <= 32 {
                return tile <= 4 * len && len <= 8 * tile && len <= 512;
            }
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
            for kernel in ["ref", "pipe", "wide"] {
                let all = all(kernel, element);
                for len in LENGTHS {
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
