//! The two computations of a recurrence.

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// One of the two computations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pass {
    /// The outputs.
    Forward,
    /// The gradients.
    Backward,
}

impl Pass {
    /// Both passes.
    pub const ALL: [Pass; 2] = [Pass::Forward, Pass::Backward];

    /// Returns `forward` or `backward`.
    pub fn name(self) -> &'static str {
        match self {
            Pass::Forward => "forward",
            Pass::Backward => "backward",
        }
    }

    /// Returns the number of arrays that the pass reads and writes: 3 forward, 5 backward.
    pub fn arrays(self) -> usize {
        match self {
            Pass::Forward => 3,
            Pass::Backward => 5,
        }
    }
}

impl fmt::Display for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
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

#[cfg(test)]
mod tests {
    use super::Pass;

    #[test]
    fn passes_are_read_by_name() {
        for pass in Pass::ALL {
            assert_eq!(pass.to_string().parse(), Ok(pass));
        }
        assert!("up".parse::<Pass>().unwrap_err().to_string().contains("`up`"));
    }
}
