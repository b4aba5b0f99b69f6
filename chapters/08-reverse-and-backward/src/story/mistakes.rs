//! A coefficient that was not shifted, and who notices.

use ch07_pipe_kernel::suspect::examine;
use linrec::device::{Device, KernelEngine};
use linrec::lesson::{self, Kind, Lesson, Table};

use crate::{pipe, suspect};

/// The longest cases that are tried.
const MAX_LEN: usize = 65;

/// Tries the broken kernel on each kind of coefficients.
pub fn mistakes(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("mistakes", "A mistake to be found")?;
    let (engine, domain) = suspect::load()?;
    lesson.say(&format!(
        "{}, which breaks no rule of the machine. The contract's cases up to {MAX_LEN} steps, by their coefficients:",
        suspect::NAME,
    ));
    let mut table = Table::new(["coefficients", "cases", "wrong"]);
    let mut wrong = 0;
    for verdict in suspect::by_kind(&engine, &domain, MAX_LEN) {
        let (cases, mistaken) = verdict.cases;
        wrong += mistaken;
        table.row([format!("{:?}", verdict.kind), cases.to_string(), mistaken.to_string()]);
    }
    lesson.table("mistakes.csv", Kind::Computed, &table)?;
    let found = examine(&engine, &domain).map(|found| found.to_string()).unwrap_or_default();
    lesson.say("The first that goes wrong, the longest sequences first:");
    lesson.quote(&found);
    lesson.check(
        "mistakes that went unnoticed",
        u8::from(wrong == 0 || found.is_empty()).into(),
        0.0,
    );
    let right = KernelEngine::<f32>::new(&Device::simt(), pipe(0))?;
    let [inputs, initial] = suspect::shared_coefficient(&engine, &right, 1000)?;
    let off = f64::from(inputs.max(initial));
    lesson.check("with one coefficient for all steps, the mistake's largest error", off, 0.0);
    Ok(())
}
