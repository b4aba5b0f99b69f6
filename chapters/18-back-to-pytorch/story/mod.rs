//! The run of the chapter. It needs no Python: results that were trained or measured with PyTorch
//! come from records.

mod measured;
mod trained;

use ch04_gradient::differences::central_differences;
use lesson::{Kind, Lesson, Table};
use linrec::{Options, backward, forward};
use ndarray::{Array1, Array2, ArrayView1};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::double::{Arguments, double_backward};
use crate::layout::Layout;

pub(crate) fn run(lesson: &mut Lesson) -> lesson::Result {
    lesson.engine("cpu; records of PyTorch");
    layouts(lesson)?;
    double(lesson)?;
    measured::calls(lesson)?;
    measured::race(lesson)?;
    measured::two_sums(lesson)?;
    measured::selective(lesson)?;
    measured::peers(lesson)?;
    trained::copying(lesson)?;
    trained::characters(lesson)
}

fn layouts(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("layouts", "One memory, many arrays")?;
    lesson.say(
        "Twelve numbers lie in memory. What an array of them is, is said by three lists: how many elements there are \
         along each axis, how far it is to the next one, and where the first one is. Counted in elements:",
    );
    let rows = Layout::rows(&[3, 4]);
    let arrays = [
        ("x", rows.clone()),
        ("x.T", rows.clone().transposed(0, 1)),
        ("x[:, ::2]", rows.clone().every(1, 2)),
        ("numpy's x[:, ::-1]", rows.clone().every(1, -1)),
        ("c.expand(3, 4)", Layout::rows(&[4]).repeated(3)),
        ("x.unfold(0, …)", Layout { shape: vec![3, 4], strides: vec![2, 1], offset: 0 }),
    ];
    let mut table = Table::new(["array", "shape", "strides", "begins", "places", "may be written"]);
    for (name, layout) in &arrays {
        let places: Vec<_> = layout.places().iter().take(6).map(ToString::to_string).collect();
        let written = if layout.may_meet_itself() { "no" } else { "yes" };
        table.row([
            (*name).to_owned(),
            format!("{:?}", layout.shape),
            format!("{:?}", layout.strides),
            layout.offset.to_string(),
            format!("{} …", places.join(" ")),
            written.to_owned(),
        ]);
    }
    lesson.table("layouts.csv", Kind::Computed, &table)?;
    lesson.say(
        "In the last two, several indices name one element. Such an array may be read. Two threads that write it \
         would meet in one place, so as a result it is refused.",
    );
    let mut missed = 0;
    let (mut refused, mut in_vain) = (0, 0);
    for strides in (0..7 * 7 * 7).map(|n| [n % 7, n / 7 % 7, n / 49]) {
        let strides = strides.map(|stride| stride - 3);
        let layout = Layout { shape: vec![2, 3, 2], strides: strides.to_vec(), offset: 0 };
        let (may, does) = (layout.may_meet_itself(), layout.meets_itself());
        refused += usize::from(may);
        in_vain += usize::from(may && !does);
        missed += usize::from(does && !may);
    }
    lesson.say(&format!(
        "To look at every element would take as long as the recurrence. The check looks at the strides alone. Of all 343 \
         layouts of shape [2, 3, 2] with strides from -3 to 3 it refuses {refused}, {in_vain} of them needlessly."
    ));
    lesson.value("refused", refused, Kind::Computed);
    lesson.value("refused_in_vain", in_vain, Kind::Computed);
    lesson.check("layouts with shared elements that are not refused", missed as f64, 0.0);
    Ok(())
}

/// The rows and steps of the second derivatives in the comparison.
const SHAPE: (usize, usize) = (3, 40);

fn double(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("double", "The gradient of the gradient")?;
    let mut rng = StdRng::seed_from_u64(18);
    let mut draw =
        |low: f64, high: f64| Array2::from_shape_fn(SHAPE, |_| rng.random_range(low..high));
    let (x, c, g) = (draw(-1.0, 1.0), draw(0.98, 1.0), draw(-1.0, 1.0));
    let (of_d_inputs, of_d_coeffs) = (draw(-1.0, 1.0), draw(-1.0, 1.0));
    let outputs = forward(x.view(), c.view(), &Options::default())?.outputs;
    let first = backward(g.view(), c.view(), outputs.view(), &Options::default())?;
    let second = double_backward(&Arguments {
        coeffs: c.view(),
        outputs: outputs.view(),
        d_inputs: first.d_inputs.view(),
        of_d_inputs: of_d_inputs.view(),
        of_d_coeffs: of_d_coeffs.view(),
    })?;
    // The loss whose gradients these are, a function of the backward pass's results.
    let loss = |g: &Array2<f64>, c: &Array2<f64>, y: &Array2<f64>| -> lesson::Result<f64> {
        let made = backward(g.view(), c.view(), y.view(), &Options::default())?;
        Ok((&made.d_inputs * &of_d_inputs).sum() + (&made.d_coeffs * &of_d_coeffs).sum())
    };
    lesson.say(&format!(
        "A backward pass is a function of d_outputs, coefficients and outputs. Its gradients, for {} rows of {} steps, \
         beside slopes that were measured by moving each number a little:",
        SHAPE.0, SHAPE.1
    ));
    let slopes = |which: usize| -> lesson::Result<Array1<f64>> {
        let at = [&g, &c, &outputs][which].flatten().to_owned();
        central_differences(at.view(), 1e-5, |moved: ArrayView1<f64>| {
            let moved = moved.to_owned().into_shape_with_order(SHAPE)?;
            let mut all = [&g, &c, &outputs];
            all[which] = &moved;
            loss(all[0], all[1], all[2])
        })
    };
    let results = [&second.of_d_outputs, &second.of_coeffs, &second.of_outputs];
    for (which, name) in ["d_outputs", "coefficients", "outputs"].into_iter().enumerate() {
        let (got, slopes) = (results[which].flatten().to_owned(), slopes(which)?);
        let largest = slopes.iter().fold(0.0_f64, |most, slope| most.max(slope.abs()));
        let off = (&got - &slopes).iter().fold(0.0_f64, |most, gap| most.max(gap.abs()));
        lesson.check(&format!("by the {name}, distance from the slopes"), off / largest, 1e-7);
    }
    lesson.say("Each pass is one walk along the sequence, and products beside it:");
    let mut table = Table::new(["pass", "walk", "inputs of the walk"]);
    table.row(["forward", "→", "x"]);
    table.row(["backward", "←", "gradient by y"]);
    table.row(["double backward", "→", "gradients by dx and, times y one step before, by dc"]);
    table.row(["forward mode", "→", "change of x, and y one step before times change of c"]);
    lesson.table("passes.csv", Kind::Computed, &table)
}
