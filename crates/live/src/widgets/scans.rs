//! Widgets for the cut between two threads, and the tree over many (chapter 2).

use ch01_sequential_loop::linrec;
use ch02_two_threads::{Part, merge_groups};
use ndarray::Array1;

use super::Controls;
use super::drawing::{Drawing, WIDTH, range};
use crate::number::float;
use crate::values::elements;

/// Draws the outputs of a sequence in two parts, and the outputs that the second thread computes
/// before it knows the state.
pub fn cut(controls: &mut Controls<'_>) -> Result<(Drawing, String), String> {
    let len = controls.whole("length", 48, 2..=96);
    let cut = controls.whole("cut", 16, 1..=95).min(len - 1);
    let coeff = controls.slider("coefficient", 0.9, 0.0..=1.0, 0.01);
    let (inputs, coeffs) = (elements("gates", len)?, vec![coeff; len]);
    let whole = linrec(&inputs, &coeffs, 0.0);

    let (inputs, coeffs, mut outputs) =
        (Array1::from(inputs), Array1::from(coeffs), Array1::zeros(len));
    let part = Part::new(inputs.view(), coeffs.view(), outputs.view_mut());
    let (mut first, mut second) = part.map_err(|error| error.to_string())?.split_at(cut);
    let carry = first.scan(0.0);
    second.scan(0.0);
    let transition = second.transition();
    drop((first, second));
    let local = outputs.slice(ndarray::s![cut..]).to_vec();

    let mut drawing = Drawing::new(240.0);
    let axes = drawing.axes(len, range(&whole));
    drawing.curve(&axes, 0, &whole, "first");
    drawing.curve(&axes, cut, &local, "second");
    let says = format!(
        "Thread 1 has {cut} steps, thread 2 has {}. Thread 2 begins from zero (the dashed curve), and then adds {} times its products, the last of which is {}.",
        len - cut,
        float(carry),
        float(transition.coeff),
    );
    Ok((drawing, says))
}

/// Draws the parts that each transition spans, level by level.
pub fn tree(controls: &mut Controls<'_>) -> Result<(Drawing, String), String> {
    let parts = controls.whole("parts", 8, 2..=32);
    let level = controls.whole("level", 1, 0..=5);
    // An entry has the first and the last part that it covers.
    let mut entries: Vec<(usize, usize)> = (0..parts).map(|part| (part, part)).collect();
    let (cell, row) = (WIDTH / parts as f64, 26.0);
    let levels = parts.next_power_of_two().ilog2() as usize;
    let mut drawing = Drawing::new(row * (levels.min(level) + 1) as f64 + 8.0);
    let mut combined = 0;
    for now in 0..=level.min(levels) {
        if now > 0 {
            merge_groups(&mut entries, 1 << (now - 1), |left, right| {
                combined += 1;
                (left.0, right.1)
            });
        }
        for (part, (begin, end)) in entries.iter().enumerate() {
            let place = (cell * part as f64 + 1.0, row * now as f64 + 4.0);
            let done = if *begin == 0 { 0.6 } else { 0.12 };
            drawing.cell(place, (cell - 2.0, row - 4.0), "positive", done);
            let text = if begin == end { format!("{begin}") } else { format!("{begin}–{end}") };
            if cell > 30.0 {
                drawing.text((place.0 + cell / 2.0, place.1 + 15.0), "middle", &text);
            }
        }
    }
    let done = entries.iter().filter(|(begin, _)| *begin == 0).count();
    let says = format!(
        "After level {} of {levels}, with {combined} combinations, {done} of {parts} transitions begin at part 0.",
        level.min(levels)
    );
    Ok((drawing, says))
}
