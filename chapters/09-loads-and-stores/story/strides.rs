//! A distance between elements that the compiler knows, or does not know.

use bench::draw::{differ, near_one};
use ch08_reverse_and_backward::count::of;
use lesson::plot::{self, Chart};
use lesson::{Kind, Lesson, Table};
use linrec::device::{Device, KernelEngine};
use linrec::kernels::Pass;
use linrec::simt::{Access, Counters};
use linrec::{Direction, Engine, Options};

use crate::record::{span, times, traffic, traffic_elements};
use crate::strides::{self, Known, SIZES, entry, launch, module};

/// Runs the four kernels of both sizes, and shows their times on an H200.
pub(super) fn strides(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("strides", "One line, two kernels")?;
    let shape @ (num_seqs, seq_len) = (3, 1300);
    let (x, c) = near_one(shape, 84);
    let flat = |array: &ndarray::Array2<f32>| array.iter().copied().collect::<Vec<f32>>();
    let mut different = 0.0;
    for (elems, threads) in SIZES {
        let all = module(device)?;
        for direction in [Direction::Forward, Direction::Reverse] {
            let options = Options { direction, ..Options::default() };
            // Of this size only 8 x 64 is shipped; all kernels of one tile size have the same
            // outputs.
            let mut expected = None;
            if (elems, threads) == SIZES[1] {
                let engine = KernelEngine::<f32>::new(device, strides::pipe((elems, threads)))?;
                expected = Some(flat(&engine.forward(x.view(), c.view(), &options)?.outputs));
            }
            for known in Known::ALL {
                let kernel = all.function(&entry((elems, threads), known))?;
                let (inputs, coeffs) = (device.upload(&flat(&x))?, device.upload(&flat(&c))?);
                let mut outputs = device.allocate::<f32>(num_seqs * seq_len)?;
                let size = (elems, threads);
                launch(&kernel, (size, 0), &inputs, &coeffs, &mut outputs, shape, direction)
                    .run(&device.stream())?;
                let outputs = outputs.download()?;
                different += differ(&outputs, &*expected.get_or_insert_with(|| outputs.clone()));
            }
        }
    }
    lesson.say(
        "The pipe kernel with the distance between a thread's elements in a variable: in its loads, in its stores, in \
         both, or in neither. Both directions:",
    );
    lesson.check("numbers that differ between the four", different, 0.0);
    lesson.say("One sequence of 4096 in the emulator:");
    let mut table = Table::new(["kernel", "in a variable", "requests", "sectors", "instructions"]);
    let mut sectors = Vec::new();
    for size in SIZES {
        for known in Known::ALL {
            let counters = counted(size, known, (1, 4096))?;
            let (loads, stores) =
                (of(&counters, Access::GlobalLoad), of(&counters, Access::GlobalStore));
            sectors.push((size, loads.sectors + stores.sectors));
            table.row([
                format!("{} x {}", size.0, size.1),
                known.variable().to_owned(),
                (loads.requests + stores.requests).to_string(),
                (loads.sectors + stores.sectors).to_string(),
                counters.instructions.to_string(),
            ]);
        }
    }
    lesson.table("strides.csv", Kind::Computed, &table)?;
    let unlike = sectors.windows(2).filter(|two| two[0].0 == two[1].0 && two[0].1 != two[1].1);
    lesson.check("kernels of a size whose sectors differ", unlike.count() as f64, 0.0);
    measured(lesson)
}

/// Counts one of the kernels on the emulator.
fn counted(size: (u32, u32), known: Known, shape: (usize, usize)) -> lesson::Result<Counters> {
    let device = Device::simt();
    let ones = device.upload(&vec![1.0_f32; shape.0 * shape.1])?;
    let mut outputs = device.allocate::<f32>(ones.len())?;
    let all = module(&device)?;
    let kernel = all.function(&entry(size, known))?;
    let launch = launch(&kernel, (size, 0), &ones, &ones, &mut outputs, shape, Direction::Forward);
    Ok(launch.run(&device.stream())?.counters().cloned().unwrap_or_default())
}

fn measured(lesson: &mut Lesson) -> lesson::Result {
    lesson.say(
        "The same on the H200, 13200 sequences of 4096. In the machine code: how many instructions there are from the \
         first store of a tile to the last, both included. To L2: sectors written, as a multiple of the outputs' own:",
    );
    let runs = times(Pass::Forward, "f32")?;
    let header =
        ["kernel", "in a variable", "from first to last store", "stores to L2", "speed / roof"];
    let mut table = Table::new(header);
    let mut chart = Chart::new("Stores further apart are joined less often")
        .axes("instructions from the first store to the last", "sectors written to L2 / sectors")
        .y_range(0.0, 7.0);
    for (number, size) in SIZES.into_iter().enumerate() {
        let mut points = Vec::new();
        for known in Known::ALL {
            let Known { to_loads, to_stores } = known;
            let kernel = format!("linrec_strides_{}_{}_{to_loads}_{to_stores}", size.0, size.1);
            let engine = format!("strides:{}x{}:{}", size.0, size.1, known.variable());
            let span = span(&kernel, "stores_span").ok_or("a kernel is missing in the record")?;
            let written = traffic(Pass::Forward, &engine, "l2_writes").unwrap_or(f64::NAN);
            let multiple = written * 32.0 / (4.0 * traffic_elements());
            let ratio = runs.median(&engine, 4096).map_or(f64::NAN, |run| run.ratio);
            points.push((span, multiple));
            table.row([
                format!("{} x {}", size.0, size.1),
                known.variable().to_owned(),
                span.to_string(),
                format!("{multiple:.2}"),
                format!("{ratio:.2}"),
            ]);
            let key = format!("stride_{}_{}", size.0, known.variable());
            lesson.value(&key, format!("{ratio:.2}"), Kind::Computed);
            let key = format!("span_{}_{}", size.0, known.variable());
            lesson.value(&key, span, Kind::Computed);
        }
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        chart = chart.measured(&format!("{} x {}", size.0, size.1), points);
        chart = chart.color(plot::kernels::variant("pipe", number)).dot(plot::Dot::ALL[number]);
    }
    let written = |engine| {
        let sectors = traffic(Pass::Forward, engine, "l2_writes").unwrap_or(f64::NAN);
        format!("{:.2}", sectors * 32.0 / (4.0 * traffic_elements()))
    };
    lesson.value("written_pipe", written("pipe:8x64:0"), Kind::Computed);
    lesson.value("written_nothing", written("strides:8x64:nothing"), Kind::Computed);
    let pipe = runs.median("pipe:8x64:0", 4096).map_or(f64::NAN, |run| run.ratio);
    lesson.value("pipe_8", format!("{pipe:.2}"), Kind::Computed);
    lesson.table("spans.csv", Kind::Computed, &table)?;
    let svg = plot::svg(&[&chart])?;
    lesson.figure("spans.svg", "Distance between stores", Kind::Computed, &svg)
}
