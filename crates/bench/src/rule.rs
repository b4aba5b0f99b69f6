//! Makes the rule by which the library chooses a kernel from a record of measurements.

use linrec::kernels::{ElementType, KernelChoice, Pass, Tuned};

use crate::Row;

/// Returns the finalists of every measured shape, the fastest first. The finalists of a kernel are
/// its fastest configuration, and the fastest among those that support any row length, among those
/// that are shipped, and among those with both properties.
pub fn finalists(lines: &[Row]) -> Vec<Tuned> {
    let measured: Vec<Tuned> = lines.iter().filter_map(tuned).collect();
    let mut rule = Vec::new();
    for shape in shapes(&measured) {
        let mut here: Vec<Tuned> =
            measured.iter().filter(|line| shape_of(line) == shape).copied().collect();
        here.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
        let shipped: Vec<KernelChoice> = KernelChoice::shipped(shape.0).collect();
        let mut seen = Vec::new();
        for line in here {
            let any_rows = line.choice.multiple_of(line.element) == 1;
            let is_shipped = shipped.contains(&line.choice);
            // A line is kept if it is the first of its kernel in one of the groups that it belongs
            // to.
            let groups =
                [(true, true), (any_rows, true), (true, is_shipped), (any_rows, is_shipped)]
                    .into_iter()
                    .enumerate()
                    .filter(|(_, (rows, ships))| *rows && *ships)
                    .map(|(group, _)| (line.choice.name(), group));
            let groups: Vec<_> = groups.collect();
            if groups.iter().any(|group| !seen.contains(group)) {
                rule.push(line);
            }
            seen.extend(groups);
        }
    }
    rule
}

/// Returns the finalists of a record together with the lines of an earlier rule whose kernel and
/// shape the record lacks. A record need not repeat all earlier measurements.
pub fn renewed(earlier: &[Tuned], lines: &[Row]) -> Vec<Tuned> {
    let new = finalists(lines);
    let known = |line: &Tuned| {
        let mut mine = new.iter().filter(|other| other.choice.name() == line.choice.name());
        mine.any(|other| shape_of(other) == shape_of(line))
    };
    let kept = earlier.iter().filter(|line| !known(line));
    let mut all: Vec<Tuned> = new.iter().chain(kept).copied().collect();
    // The sort is stable, so lines of one shape with equal speed keep their order.
    let order = shapes(&all);
    let place = |line: &Tuned| order.iter().position(|shape| *shape == shape_of(line));
    all.sort_by(|a, b| place(a).cmp(&place(b)).then(b.ratio.total_cmp(&a.ratio)));
    all
}

/// Formats the rule as the file that the library includes.
pub fn to_csv(rule: &[Tuned]) -> String {
    let lines: String = rule.iter().map(|line| line.to_csv() + "\n").collect();
    format!("{}\n{lines}", Tuned::HEADER)
}

fn tuned(line: &Row) -> Option<Tuned> {
    Some(Tuned {
        element: line.element,
        pass: line.pass,
        num_seqs: line.num_seqs as u64,
        seq_len: line.seq_len as u64,
        choice: line.engine.parse().ok()?,
        ms: line.ms.value,
        ratio: line.ratio.value,
    })
}

type Shape = (ElementType, Pass, u64, u64);

fn shape_of(line: &Tuned) -> Shape {
    (line.element, line.pass, line.num_seqs, line.seq_len)
}

fn shapes(lines: &[Tuned]) -> Vec<Shape> {
    let mut shapes: Vec<Shape> = Vec::new();
    for element in ElementType::ALL {
        for pass in Pass::ALL {
            let mine = lines.iter().filter(|line| line.element == element && line.pass == pass);
            let mut mine: Vec<Shape> = mine.map(shape_of).collect();
            mine.sort_by_key(|&(_, _, num_seqs, seq_len)| (num_seqs, seq_len));
            mine.dedup();
            shapes.extend(mine);
        }
    }
    shapes
}

/// Returns the rule's fastest configuration of a named kernel at exactly this shape.
pub fn best(
    rule: &[Tuned],
    name: &str,
    element: ElementType,
    pass: Pass,
    (num_seqs, seq_len): (usize, usize),
) -> Option<Tuned> {
    let shape = (element, pass, num_seqs as u64, seq_len as u64);
    let mine = rule.iter().filter(|line| shape_of(line) == shape && line.choice.name() == name);
    mine.max_by(|a, b| a.ratio.total_cmp(&b.ratio)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::tests::line;

    #[test]
    fn finalists_are_the_fastest_of_each_kind() {
        let shape = (13_200, 4096);
        let lines: Vec<Row> = [
            ("roof", 1.0),
            ("pipe:16x128:0", 0.9),
            ("pipe:4x64:0", 0.8),
            ("pipe:8x64:0", 0.5),
            ("wide:4x256:a1:w", 0.99),
            ("wide:4x512:w", 0.98),
            ("wide:4x512", 0.97),
            ("wide:2x128", 0.96),
            ("wide:2x64", 0.1),
            ("empty", 9.0),
        ]
        .map(|(engine, ratio)| line(Pass::Forward, engine, shape, ratio))
        .into();
        let names = |rule: &[Tuned]| -> Vec<String> {
            rule.iter().map(|line| line.choice.to_string()).collect()
        };
        let rule = finalists(&lines);
        let expected =
            ["wide:4x256:a1:w", "wide:4x512", "wide:2x128", "pipe:16x128:0", "pipe:8x64:0"];
        assert_eq!(names(&rule), expected);
        assert_eq!(names(&Tuned::read(&to_csv(&rule)).unwrap()), expected);
        let f32 = ElementType::F32;
        let pipe = best(&rule, "pipe", f32, Pass::Forward, shape).unwrap();
        assert_eq!(pipe.choice.to_string(), "pipe:16x128:0");
        assert!(best(&rule, "pipe", f32, Pass::Backward, shape).is_none());
        assert!(best(&rule, "ref", f32, Pass::Forward, shape).is_none());
    }

    #[test]
    fn lines_that_a_record_lacks_stay_in_the_rule() {
        let of = |engine, shape, ratio| line(Pass::Forward, engine, shape, ratio);
        let earlier = finalists(&[
            of("wide:2x128", (1, 1024), 0.5),
            of("pipe:8x64:0", (1, 1024), 0.4),
            of("wide:2x128", (1, 4096), 0.3),
        ]);
        let rule =
            renewed(&earlier, &[of("wide:4x256", (1, 1024), 0.45), of("roof", (1, 16), 1.0)]);
        let names: Vec<_> =
            rule.iter().map(|line| (line.seq_len, line.choice.to_string())).collect();
        let expected = [(1024, "wide:4x256"), (1024, "pipe:8x64:0"), (4096, "wide:2x128")];
        assert_eq!(names, expected.map(|(len, name)| (len, name.to_owned())));
        assert_eq!(renewed(&earlier, &[]), earlier);
    }

    #[test]
    fn the_later_of_two_measurements_does_not_hide_the_other() {
        // Measured again with more runs: the record contains both lines, and the rule names the
        // kernel once.
        let lines = [("ref:64", 0.5), ("ref:64", 0.6)]
            .map(|(engine, ratio)| line(Pass::Forward, engine, (1, 16), ratio));
        assert_eq!(finalists(&lines).len(), 1);
    }
}
