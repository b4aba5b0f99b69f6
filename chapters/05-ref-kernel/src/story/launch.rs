//! Which device, a launch by hand, and what is refused.

use ch01_sequential_loop::linrec as sequential;
use linrec::device::{Buffer, Device, KernelEngine, Recurrence};
use linrec::kernels::{ElementType, KernelChoice};
use linrec::lesson::{self, Kind, Lesson, Table};
use linrec::{Direction, Engine, Error, Options};
use ndarray::Array2;

use crate::by_hand::{self, CHOICE, THREADS};

/// Says where the kernels run.
pub fn which(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("device", "Which device")?;
    if device.is_simt() {
        lesson.say(
            "The kernels run on the emulator: no NVIDIA GPU was found, or LINREC_DEVICE=simt asks for \
             it. The emulator executes the same PTX as a GPU does, an instruction of 32 lanes at a time, \
             and comes to the same bits. It also counts, and it explains mistakes.",
        );
        return Ok(());
    }
    let attributes = device.attributes();
    let (major, minor) = attributes.compute_capability;
    lesson.say(&format!(
        "The kernels run on {} ({}): {} multiprocessors of architecture sm_{major}{minor}. What is \
         counted, and every mistake, comes from the emulator.",
        device.name(),
        device.label(),
        attributes.multiprocessors,
    ));
    Ok(())
}

/// Three short sequences through the kernel, launched by hand.
pub fn launch(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("launch", "A launch by hand")?;
    let inputs = [1.0, 2.0, 3.0, 4.0, 1.0, 0.0, 0.0, 0.0, 8.0, 4.0, 2.0, 1.0];
    let coeffs = [0.5, 0.5, 0.5, 0.5, 2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 0.0, 1.0];
    let (outputs, _) = by_hand::forward(device, &inputs, &coeffs, (3, 4))?;

    lesson.say("Three sequences of four elements, one thread for each:");
    let mut table = Table::new(["thread", "inputs", "coeffs", "outputs"]);
    let mut wrong = 0;
    for (thread, row) in (0..3).map(|thread| (thread, 4 * thread..4 * thread + 4)) {
        let numbers = [&inputs[row.clone()], &coeffs[row.clone()], &outputs[row.clone()]];
        let cells =
            numbers.map(|numbers| numbers.iter().map(f32::to_string).collect::<Vec<_>>().join(" "));
        table.row([thread.to_string()].into_iter().chain(cells));
        wrong += usize::from(
            sequential(&inputs[row.clone()], &coeffs[row.clone()], 0.0) != outputs[row],
        );
    }
    lesson.table("launch.csv", Kind::Computed, &table)?;
    lesson.say(&format!(
        "The launch had one block of {THREADS} threads. Of these, {} found that there is no sequence for \
         them, and left.",
        THREADS - 3,
    ));
    lesson.check("sequences that differ from chapter 1's loop", wrong as f64, 0.0);
    Ok(())
}

/// What is refused, and with which words.
pub fn refuse(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("checks", "What is refused")?;
    let device = Device::simt();
    let mut told = 0;
    let mut tell = |lesson: &mut Lesson, what: &str, outcome: Result<(), Error>| {
        if let Err(error) = outcome {
            told += 1;
            lesson.say(&format!("{what}:"));
            lesson.quote(&error.to_string());
        }
    };
    let (six, five) = (device.upload(&[1.0_f32; 6])?, device.upload(&[1.0_f32; 5])?);
    let mut outputs = device.allocate::<f32>(6)?;

    let recurrence = Recurrence::<f32>::new(&device, CHOICE)?;
    let outcome = recurrence.forward_into(&six, &five, &mut outputs, (2, 3), Default::default());
    tell(lesson, "Two sequences of three, and five coefficients", outcome.map(drop));

    let crowded = Recurrence::<f32>::new(&device, KernelChoice::Ref { threads: 2048 })?;
    let outcome = crowded.forward_into(&six, &six, &mut outputs, (2, 3), Default::default());
    tell(lesson, "A block of 2048 threads", outcome.map(drop));

    let kernel = by_hand::instance::<f32>(&device, Direction::Forward)?;
    let launch = kernel.launch(1, 64).arg(&six).arg(&six).arg(&mut outputs);
    let launch = launch.arg(None::<&Buffer<f32>>).arg(None::<&Buffer<f32>>);
    let outcome = launch.arg(2_i32).arg(3_i32).run(&device.stream());
    tell(lesson, "A 32-bit number where the kernel takes 64 bits", outcome.map(drop));

    let module = device.program(&CHOICE.program(ElementType::F32))?;
    let outcome = module.function("linrec_ref_fwd<int, false>");
    tell(lesson, "An instance that nobody compiled", outcome.map(drop));

    let ones = Array2::<f32>::ones((2, 3));
    let options = Options { log_coeffs: true, ..Options::default() };
    let engine = KernelEngine::<f32>::new(&device, CHOICE)?;
    let outcome = engine.forward(ones.view(), ones.view(), &options);
    tell(lesson, "Coefficients as logarithms", outcome.map(drop));

    lesson.say(
        "The launch by hand does not look at the arrays' lengths. With five coefficients the kernel reads a \
         sixth, and the emulator stops it there:",
    );
    if let Err(error) = by_hand::forward(&device, &[1.0; 6], &[1.0; 5], (2, 3)) {
        told += 1;
        lesson.quote(&error.to_string());
    }
    lesson.check("wrong calls that went unnoticed", f64::from(6 - told), 0.0);
    Ok(())
}
