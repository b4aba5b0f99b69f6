//! Tables, for the terminal and as CSV.

/// A table of text cells: a header and rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Makes an empty table with these column names.
    pub fn new<S: Into<String>>(header: impl IntoIterator<Item = S>) -> Self {
        Table { header: header.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row; missing cells are empty.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        let mut row: Vec<String> = cells.into_iter().map(Into::into).collect();
        row.resize(self.header.len(), String::new());
        self.rows.push(row);
    }

    /// Returns the columns' names.
    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// Returns the cells, row by row.
    pub fn rows(&self) -> impl Iterator<Item = &[String]> {
        self.rows.iter().map(Vec::as_slice)
    }

    /// Formats the table for a terminal: numbers are aligned right, words left.
    pub fn to_text(&self) -> String {
        let widths: Vec<usize> = (0..self.header.len()).map(|column| self.width(column)).collect();
        let numeric: Vec<bool> = (0..self.header.len()).map(|c| self.is_numeric(c)).collect();
        let line = |cells: &[String]| {
            let cells = cells.iter().zip(&widths).zip(&numeric).map(|((cell, &width), numeric)| {
                if *numeric { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
        };
        let rule = widths.iter().map(|&width| "─".repeat(width)).collect::<Vec<_>>().join("  ");
        let body: String = self.rows.iter().map(|row| line(row)).collect();
        format!("{}{rule}\n{body}", line(&self.header))
    }

    /// Formats the table as CSV (RFC 4180).
    pub fn to_csv(&self) -> String {
        let quote = |cell: &String| match cell.contains([',', '"', '\n']) {
            true => format!("\"{}\"", cell.replace('"', "\"\"")),
            false => cell.clone(),
        };
        let line =
            |cells: &Vec<String>| cells.iter().map(quote).collect::<Vec<_>>().join(",") + "\n";
        line(&self.header) + &self.rows.iter().map(line).collect::<String>()
    }

    fn column(&self, column: usize) -> impl Iterator<Item = &String> {
        self.rows.iter().map(move |row| &row[column])
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.column(column).chain([&self.header[column]]);
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    }

    /// Returns true if every cell is empty, a dash, or begins with a number (a unit may follow).
    fn is_numeric(&self, column: usize) -> bool {
        let number = |cell: &String| match cell.split_whitespace().next() {
            None | Some("–") => true,
            Some(word) => word.parse::<f64>().is_ok(),
        };
        self.column(column).any(|cell| !cell.is_empty()) && self.column(column).all(number)
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn text_aligns_numbers_right_and_csv_quotes_commas() {
        let mut table = Table::new(["name", "L"]);
        table.row(["loop", "16"]);
        table.row(["tree, 2 threads", "65536"]);
        let expected = "name                 L\n───────────────  ─────\nloop                16\ntree, 2 threads  65536\n";
        assert_eq!(table.to_text(), expected);
        assert_eq!(table.to_csv(), "name,L\nloop,16\n\"tree, 2 threads\",65536\n");
    }
}
