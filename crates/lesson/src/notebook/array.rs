//! Shows arrays: their shape, their first and last numbers, and a line plot for each row.

use ndarray::{ArrayBase, Data, Ix1, Ix2};

use super::content::{Content, Show, escaped};
use super::number::short;
use super::sparkline::sparkline;
use linrec::Element;

/// The largest number of elements written for a row, and the largest number of rows.
const NUMBERS: usize = 10;
const ROWS: usize = 6;

impl<T: Element> Show for [T] {
    fn content(&self) -> Content {
        let title = format!("{} [{}]", name::<T>(), self.len());
        let numbers = numbers(self);
        let html =
            format!("<div><b>{title}</b><br/>{}<br/>{}</div>", line(self), escaped(&numbers));
        Content::html(format!("{title}: {numbers}"), html)
    }
}

impl<T: Element, S: Data<Elem = T>> Show for ArrayBase<S, Ix1> {
    fn content(&self) -> Content {
        self.to_vec().content()
    }
}

impl<T: Element, S: Data<Elem = T>> Show for ArrayBase<S, Ix2> {
    fn content(&self) -> Content {
        let (num_seqs, seq_len) = self.dim();
        let title = format!("{} [{num_seqs}, {seq_len}]", name::<T>());
        let mut plain = title.clone();
        let mut rows = String::new();
        for (at, row) in self.rows().into_iter().take(ROWS).enumerate() {
            let row = row.to_vec();
            let numbers = numbers(&row);
            plain += &format!("\n{at}: {numbers}");
            let (line, numbers) = (line(&row), escaped(&numbers));
            rows += &format!("<tr><td>{at}</td><td>{line}</td><td>{numbers}</td></tr>");
        }
        if num_seqs > ROWS {
            let more = format!("… and {} more", num_seqs - ROWS);
            plain += &format!("\n{more}");
            rows += &format!("<tr><td colspan=\"3\">{more}</td></tr>");
        }
        Content::html(plain, format!("<div><b>{title}</b><table>{rows}</table></div>"))
    }
}

/// Returns the element type's name without its path: `Complex<f64>`.
fn name<T>() -> String {
    let name = std::any::type_name::<T>();
    let word = |word: &str| word.rsplit("::").next().unwrap_or_default().to_owned();
    name.split('<').map(word).collect::<Vec<_>>().join("<")
}

fn numbers<T: Element>(row: &[T]) -> String {
    let list = |row: &[T]| row.iter().map(|&value| short(value)).collect::<Vec<_>>().join(", ");
    match row.len() {
        0 => "nothing".to_owned(),
        len if len <= NUMBERS => list(row),
        len => format!("{}, …, {}", list(&row[..NUMBERS - 2]), list(&row[len - 2..])),
    }
}

/// Draws a row as a line; complex numbers are drawn by their modulus.
fn line<T: Element>(row: &[T]) -> String {
    let real = |&value: &T| value.to_string().parse().unwrap_or_else(|_| value.modulus());
    sparkline(&row.iter().map(real).collect::<Vec<f64>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array1, Array2, array, s};
    use num_complex::Complex;

    #[test]
    fn shape_and_numbers_are_shown_for_any_strides() {
        let values = array![[1.0_f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
        assert_eq!(
            values.slice(s![.., ..;-1]).content().plain,
            "f32 [2, 3]\n0: 3, 2, 1\n1: 6, 5, 4"
        );
    }

    #[test]
    fn long_and_empty_arrays_are_abbreviated() {
        let long = Array1::from_iter((0..1000).map(f64::from));
        assert_eq!(long.content().plain, "f64 [1000]: 0, 1, 2, 3, 4, 5, 6, 7, …, 998, 999");
        assert_eq!(Array1::<f64>::zeros(0).content().plain, "f64 [0]: nothing");
        let many = Array2::<f64>::zeros((9, 1)).content();
        assert!(many.plain.ends_with("5: 0\n… and 3 more"), "{}", many.plain);
        assert_eq!(Array2::<f64>::zeros((0, 3)).content().plain, "f64 [0, 3]");
    }

    #[test]
    fn complex_numbers_have_both_parts() {
        assert_eq!([Complex::new(0.0, 1.5)].content().plain, "Complex<f64> [1]: 0+1.5i");
    }
}
