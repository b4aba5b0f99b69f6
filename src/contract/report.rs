//! The outcome of a run of the table.

use std::fmt;

use super::Case;

/// The outcome of the table for one engine and one element type.
#[derive(Debug, Clone)]
pub struct Report {
    /// The engine's name.
    pub engine: String,
    /// The element type's name.
    pub element: &'static str,
    /// The number of cases that ran.
    pub cases: usize,
    /// The number of cases outside the engine's domain.
    pub outside: usize,
    /// The largest error, in units of its bound; at most 1 if all cases passed.
    pub worst: f64,
    /// The case with the largest error.
    pub worst_case: Option<Case>,
    /// The cases that failed.
    pub failures: Vec<Failure>,
}

/// A case that failed.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The case, in words.
    pub case: String,
    /// The wrong value and its error, or the engine's error.
    pub what: String,
}

impl Report {
    pub(super) fn new(engine: &str, element: &'static str, outside: usize) -> Self {
        Report {
            engine: engine.to_owned(),
            element,
            cases: 0,
            outside,
            worst: 0.0,
            worst_case: None,
            failures: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, case: &Case, outcome: Result<f64, String>) {
        match outcome {
            Ok(error) => {
                self.cases += 1;
                if error > self.worst {
                    self.worst = error;
                    self.worst_case = Some(case.clone());
                }
            }
            Err(_) => self.add_failure(case, outcome.map(drop)),
        }
    }

    pub(super) fn add_failure(&mut self, case: impl fmt::Display, outcome: Result<(), String>) {
        self.cases += 1;
        if let Err(what) = outcome {
            self.failures.push(Failure { case: case.to_string(), what });
        }
    }

    /// Returns whether at least one case ran and none failed.
    pub fn passed(&self) -> bool {
        self.failures.is_empty() && self.cases > 1
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { engine, element, cases, outside, worst, .. } = self;
        write!(f, "{engine}, {element}: {cases} cases, {outside} outside its domain, ")?;
        write!(f, "largest error {worst:.2} of the bound")?;
        if let Some(case) = &self.worst_case {
            write!(f, " ({case})")?;
        }
        if !self.failures.is_empty() {
            write!(f, "\n{} failures:", self.failures.len())?;
            for Failure { case, what } in self.failures.iter().take(10) {
                write!(f, "\n  {case}: {what}")?;
            }
        }
        Ok(())
    }
}
