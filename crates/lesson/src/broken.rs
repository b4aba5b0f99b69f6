//! Kernels with a planted mistake: the program that examines one of them, and what a chapter's run
//! and tests do with all of them.

use std::fmt::{Debug, Display};
use std::process::ExitCode;

use linrec::Error;
use linrec::contract::suspect::{self, Finding};

use crate::Lesson;
use crate::output::{self, eprintln, println};

/// The `main` function of a program that lists kernels with a planted mistake and reports what is
/// found in one of them.
///
/// `twins` are the correct kernels (`linrec_tile.cu`); every broken kernel is a copy of a twin with
/// one mistake. The broken kernel that the command line names is passed to `examine`. Without a
/// name, the program lists all of them.
pub fn main(
    twins: &[&str],
    examine: impl FnOnce(&str) -> Result<Option<Finding>, Error>,
) -> ExitCode {
    let mut broken: Vec<_> =
        twins.iter().flat_map(|twin| suspect::names(twin).map(move |name| (name, twin))).collect();
    broken.sort_unstable();
    let Some(requested) = std::env::args().nth(1) else {
        println!("Kernels with one mistake each; name one to see what is found:");
        for (name, _) in broken {
            println!("  {name}");
        }
        return output::end(ExitCode::SUCCESS);
    };
    let name = requested.trim_start_matches("kernels/").trim_start_matches("broken/");
    let name = name.trim_end_matches(".cu");
    let Some((_, twin)) = broken.into_iter().find(|(broken, _)| *broken == name) else {
        eprintln!(
            "error: there is no broken kernel `{requested}` here; run without a name to list all"
        );
        return ExitCode::from(2);
    };
    println!("broken/{name}.cu, which should do what kernels/{twin} does");
    println!("(`cargo xtask ptx --show broken/{name}.cu` prints it and marks the mistake)");
    match examine(name) {
        Ok(Some(finding)) => println!("{}:\n  {}", finding.case, finding.what),
        Ok(None) => println!("nothing was found"),
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    }
    output::end(ExitCode::SUCCESS)
}

/// Examines the kernels with these names one after the other, and quotes what is found in each.
/// Returns the number of kernels in which nothing is found.
///
/// # Errors
///
/// Returns the error of `examine`, which is an error about a kernel that does not exist.
pub fn narrate<F: Display>(
    lesson: &mut Lesson,
    names: impl IntoIterator<Item = &'static str>,
    examine: impl Fn(&str) -> Result<Option<F>, Error>,
) -> crate::Result<usize> {
    let mut unnoticed = 0;
    for name in names {
        let found = examine(name)?.map(|finding| finding.to_string());
        unnoticed += usize::from(found.is_none());
        lesson.say(&format!("{name}:"));
        lesson.quote(found.as_deref().unwrap_or("nothing was found"));
    }
    Ok(unnoticed)
}

/// Asserts that `examine` finds every mistake in a sentence with these words, that it finds nothing
/// in the correct kernel, and that it refuses a kernel that does not exist.
#[track_caller]
pub fn assert_found<F: Display + Debug>(
    mistakes: impl IntoIterator<Item = (&'static str, &'static str)>,
    correct: &str,
    examine: impl Fn(&str) -> Result<Option<F>, Error>,
) {
    for (name, words) in mistakes {
        let found = examine(name).map(|finding| finding.map(|finding| finding.to_string()));
        let is_named = matches!(&found, Ok(Some(sentence)) if sentence.contains(words));
        assert!(is_named, "{name}: {found:?} does not say `{words}`");
    }
    assert!(matches!(examine(correct), Ok(None)), "{correct}: {:?}", examine(correct));
    assert!(examine("nothing_of_the_kind").is_err());
}
