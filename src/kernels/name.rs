//! Kernels by name, as tables and command lines have them.

use std::str::FromStr;

use super::{Config, ElementType, KernelChoice, Pass, RowsConfig, WideConfig};
use crate::Error;

impl KernelChoice {
    /// A name that says everything about the choice, and from which it can be read again.
    ///
    /// `ref:64` for threads in a block; `pipe:8x64:0` for elements of a thread, threads and memcode (and `:a2`
    /// for another algocode than 3); `rows:16x2x32` for lanes, words and threads; `wide:2x128` for words and
    /// threads, with `:a1` for a tile ahead. `:w` and `:a1w` are for rows of whole words.
    ///
    /// ```
    /// use linrec::kernels::{Config, KernelChoice, WideConfig};
    ///
    /// let pipe = KernelChoice::Pipe(Config { memcode: 2, ..Config::default() });
    /// assert_eq!(pipe.spec(), "pipe:8x64:2");
    /// let wide = KernelChoice::Wide(WideConfig { ahead: 1, whole: true, ..WideConfig::default() });
    /// assert_eq!(wide.spec(), "wide:2x128:a1w");
    /// assert_eq!("wide:2x128:a1w".parse(), Ok(wide));
    /// ```
    pub fn spec(&self) -> String {
        let name = self.name();
        match self {
            KernelChoice::Ref { threads } => format!("{name}:{threads}"),
            KernelChoice::Tile(config) | KernelChoice::Pipe(config) => {
                let Config { max_elems_per_thread, max_threads_per_block, memcode, algocode } =
                    config;
                let stage = if *algocode == 3 { String::new() } else { format!(":a{algocode}") };
                format!("{name}:{max_elems_per_thread}x{max_threads_per_block}:{memcode}{stage}")
            }
            KernelChoice::Rows(RowsConfig { lanes, words, threads, whole }) => {
                format!("{name}:{lanes}x{words}x{threads}{}", if *whole { ":w" } else { "" })
            }
            KernelChoice::Wide(WideConfig { words, threads, ahead, whole }) => {
                let ahead = if *ahead == 0 { String::new() } else { format!("a{ahead}") };
                let options = ahead + if *whole { "w" } else { "" };
                let colon = if options.is_empty() { "" } else { ":" };
                format!("{name}:{words}x{threads}{colon}{options}")
            }
        }
    }
}

/// Reads what [`KernelChoice::spec`] writes; a memcode that is left out is 0.
impl FromStr for KernelChoice {
    type Err = Error;

    fn from_str(name: &str) -> Result<KernelChoice, Error> {
        read(name).ok_or_else(|| Error::Unsupported {
            engine: String::from("the catalogue of kernels"),
            what: format!(
                "`{name}`; write ref:64, tile:4x256:0, pipe:8x64:0, rows:16x2x32:w or wide:2x128:a1w"
            ),
        })
    }
}

fn read(name: &str) -> Option<KernelChoice> {
    let mut parts = name.split(':');
    let (kind, size) = (parts.next()?, parts.next()?);
    let mut rest: Vec<&str> = parts.collect();
    let choice = match kind {
        "ref" => KernelChoice::Ref { threads: number(size)? },
        "tile" | "pipe" => {
            let (elems, threads) = size.split_once('x')?;
            let memcode = if rest.is_empty() { 0 } else { number(rest.remove(0))? };
            let config = Config {
                max_elems_per_thread: number(elems)?,
                max_threads_per_block: number(threads)?,
                memcode,
                algocode: lettered('a', &mut rest)?.unwrap_or(3),
            };
            if kind == "tile" { KernelChoice::Tile(config) } else { KernelChoice::Pipe(config) }
        }
        "rows" => {
            let (lanes, size) = size.split_once('x')?;
            let (words, threads) = size.split_once('x')?;
            let whole = rest.first() == Some(&"w");
            if whole {
                rest.remove(0);
            }
            let (lanes, words, threads) = (number(lanes)?, number(words)?, number(threads)?);
            KernelChoice::Rows(RowsConfig { lanes, words, threads, whole })
        }
        "wide" => {
            let (words, threads) = size.split_once('x')?;
            let (mut ahead, mut whole) = (0, false);
            if !rest.is_empty() {
                let options = rest.remove(0);
                let tiles = options.strip_suffix('w');
                whole = tiles.is_some();
                let tiles = tiles.unwrap_or(options);
                // `w` alone, or `a1` with or without it.
                if !(whole && tiles.is_empty()) {
                    ahead = number(tiles.strip_prefix('a')?)?;
                }
            }
            let (words, threads) = (number(words)?, number(threads)?);
            KernelChoice::Wide(WideConfig { words, threads, ahead, whole })
        }
        _ => return None,
    };
    rest.is_empty().then_some(choice)
}

fn number(text: &str) -> Option<u32> {
    // Not `+8`, which `parse` takes.
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// The number of the next part if it begins with this letter; `None` if it does and is none.
fn lettered(letter: char, rest: &mut Vec<&str>) -> Option<Option<u32>> {
    let Some(text) = rest.first().and_then(|part| part.strip_prefix(letter)) else {
        return Some(None);
    };
    let value = number(text)?;
    rest.remove(0);
    Some(Some(value))
}

impl Pass {
    /// Both.
    pub const ALL: [Pass; 2] = [Pass::Forward, Pass::Backward];

    /// `forward` or `backward`.
    pub fn name(self) -> &'static str {
        match self {
            Pass::Forward => "forward",
            Pass::Backward => "backward",
        }
    }

    /// How many arrays the pass has to read and write: 3 forward, 5 backward.
    pub fn arrays(self) -> usize {
        match self {
            Pass::Forward => 3,
            Pass::Backward => 5,
        }
    }
}

impl FromStr for Pass {
    type Err = Error;

    fn from_str(name: &str) -> Result<Pass, Error> {
        Pass::ALL.into_iter().find(|pass| pass.name() == name).ok_or_else(|| Error::Unsupported {
            engine: String::from("the recurrence"),
            what: format!("the pass `{name}`; write forward or backward"),
        })
    }
}

impl FromStr for ElementType {
    type Err = Error;

    fn from_str(name: &str) -> Result<ElementType, Error> {
        let found = ElementType::ALL.into_iter().find(|element| element.rust_name() == name);
        found.ok_or_else(|| {
            let names = ElementType::ALL.map(ElementType::rust_name).join(", ");
            Error::Unsupported {
                engine: String::from("the catalogue of kernels"),
                what: format!("elements of type `{name}`; choose from {names}"),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        let tile = KernelChoice::Tile(Config { algocode: 2, ..Config::TILE });
        assert_eq!(tile.spec(), "tile:4x256:0:a2");
        let others = ElementType::ALL.into_iter().flat_map(KernelChoice::shipped);
        let (mut names, mut choices) = (Vec::new(), Vec::new());
        for choice in others.chain([tile]) {
            let name = choice.spec();
            assert_eq!(name.parse(), Ok(choice), "{name}");
            if !choices.contains(&choice) {
                assert!(!names.contains(&name), "{name}");
                names.push(name);
                choices.push(choice);
            }
        }
        assert_eq!("pipe:4x128".parse::<KernelChoice>().unwrap().spec(), "pipe:4x128:0");
    }

    #[test]
    fn what_is_no_kernel_is_named() {
        for name in [
            "",
            "ref",
            "ref:",
            "ref:x",
            "ref:64:0",
            "pipe:8",
            "pipe:8x64:",
            "pipe:8x64:0:b2",
            "pipe:8x64:0:a",
            "pipe:8x64:0:a2:w",
            "pipe:+8x64",
            "wide:8x2/64",
            "wide:4x128:wa1",
            "wide:4x128:w:w",
            "rows:4x128",
            "rows:4x1/128:a1",
            "flat:4x1",
            "ref:99999999999",
        ] {
            let error = name.parse::<KernelChoice>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{name}`")), "{error}");
        }
    }

    #[test]
    fn passes_and_elements_have_names() {
        for pass in Pass::ALL {
            assert_eq!(pass.name().parse(), Ok(pass));
        }
        assert!("up".parse::<Pass>().unwrap_err().to_string().contains("`up`"));
        for element in ElementType::ALL {
            assert_eq!(element.rust_name().parse(), Ok(element));
        }
        let error = "f8".parse::<ElementType>().unwrap_err().to_string();
        assert!(error.contains("`f8`") && error.contains("bf16"), "{error}");
    }
}
