//! What the compiler makes of the kernel.

use linrec::kernels::{ElementType, OPTIONS};
use linrec::lesson::{self, Kind, Lesson};
use linrec::simt::Module;

use crate::by_hand::CHOICE;

/// Shows a few lines of the PTX, and that every operation says how it rounds.
pub fn compile(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("ptx", "From source to PTX")?;
    let program = CHOICE.program(ElementType::F32);
    let ptx = program.shipped().ok_or("the reference kernel is not shipped for f32")?;
    let symbol = ptx.symbol("linrec_ref_fwd<float, false>").unwrap_or_default();
    lesson.say(&format!(
        "{} was compiled with {}. In the PTX, linrec_ref_fwd<float, false> is called {symbol}. This is the \
         loop for the last elements, those that are left over when four steps are done at a time:",
        program.file,
        OPTIONS.join(" "),
    ));
    lesson.show(last_loop(ptx.text(), symbol).join("\n"));

    let lines = ptx.text().lines();
    let fused = lines.clone().filter(|line| line.trim().starts_with("fma.rn.f32")).count();
    lesson.say(&format!(
        "The four instances of this type have {} lines, with {fused} fma.rn.f32 among them: multiply, add, \
         and then round once, to nearest.",
        lines.count(),
    ));
    let unrounded = Module::parse(ptx.text())?.unrounded().len();
    lesson.check("operations that do not say how they round", unrounded as f64, 0.0);
    lesson.value("options", OPTIONS.join(" "), Kind::Computed);
    Ok(())
}

/// The label and the lines of a kernel's last loop.
fn last_loop(ptx: &str, symbol: &str) -> Vec<String> {
    let entry = format!(".entry {symbol}(");
    let kernel = ptx.lines().skip_while(|line| !line.contains(&entry));
    let kernel: Vec<&str> = kernel.take_while(|line| *line != "}").collect();
    let start = kernel.iter().rposition(|line| line.contains(".pragma")).unwrap_or(0);
    let body = kernel[start..].iter().filter(|line| !line.contains(".pragma"));
    let end = body.clone().position(|line| line.contains("bra")).map_or(0, |last| last + 1);
    // The label that the loop's branch goes to stands just before.
    let label = kernel[start.saturating_sub(1)].to_owned();
    [label].into_iter().chain(body.take(end).map(|line| aligned(line.trim()))).collect()
}

/// A line with its operands in a column of their own, instead of behind a tab.
fn aligned(line: &str) -> String {
    match line.split_once('\t') {
        Some((opcode, operands)) => format!("  {opcode:<14}{}", operands.trim_start()),
        None => format!("  {line}"),
    }
}
