//! Reads and writes records as CSV: rows of a known type, and tables of other programs by their
//! columns' names.
//!
//! Every record of the project goes through here. A row is a serde type whose fields are the names
//! of the columns. Numbers are written with a fixed number of digits, so that a record that is read
//! and written again has the same text. An error quotes the line that cannot be read. The tests are
//! at the end, and `row.rs` reads all committed records.

use std::fmt::Display;
use std::str::FromStr;

use csv::{Reader, StringRecord, WriterBuilder};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Reads all rows below a header whose names are the fields of `R`. Columns without a field in `R`
/// are ignored.
///
/// # Errors
///
/// Returns an error that quotes the line if a line cannot be read.
pub fn read<R: DeserializeOwned>(text: &str) -> lesson::Result<Vec<R>> {
    let rows = Reader::from_reader(text.as_bytes()).into_deserialize();
    rows.map(|row| row.map_err(|error| unreadable(text, &error))).collect()
}

/// Formats a header and the rows below it. The columns are the fields of `R`.
///
/// # Errors
///
/// Returns an error if a row does not consist of texts and numbers.
pub fn write<R: Serialize>(header: &str, rows: &[R]) -> lesson::Result<String> {
    Ok(format!("{header}\n{}", self::rows(rows)?))
}

/// Makes a printable table of a header and the rows below it. The columns are the fields of `R`.
///
/// # Errors
///
/// As for [`write()`].
pub fn table<R: Serialize>(header: &str, rows: &[R]) -> lesson::Result<lesson::Table> {
    let written = Table::read(&write(header, rows)?)?;
    let mut table = lesson::Table::new(written.header());
    written.rows().for_each(|row| table.row(row.cells()));
    Ok(table)
}

/// Formats rows as text, without a header.
///
/// # Errors
///
/// Returns an error if a row does not consist of texts and numbers.
pub fn rows<R: Serialize>(rows: &[R]) -> lesson::Result<String> {
    let mut writer = WriterBuilder::new().has_headers(false).from_writer(Vec::new());
    for row in rows {
        writer.serialize(row)?;
    }
    Ok(String::from_utf8(writer.into_inner().map_err(|error| error.into_error())?)?)
}

/// Formats one row of texts, without the end of its line.
///
/// # Errors
///
/// Texts can always be written, so no error is known.
pub fn row<'a>(cells: impl IntoIterator<Item = &'a str>) -> lesson::Result<String> {
    let cells: Vec<&str> = cells.into_iter().collect();
    Ok(rows(&[cells])?.trim_end_matches('\n').to_owned())
}

fn unreadable(text: &str, error: &csv::Error) -> lesson::Error {
    let line = error.position().map_or(0, |position| position.line());
    let shown = text.lines().nth((line as usize).saturating_sub(1)).unwrap_or_default();
    format!("line {line} cannot be read: `{shown}`: {error}").into()
}

/// A table whose cells are found by their column's name.
#[derive(Debug, Clone)]
pub struct Table {
    header: StringRecord,
    rows: Vec<StringRecord>,
}

impl Table {
    /// Reads a header and the rows below it.
    ///
    /// # Errors
    ///
    /// Returns an error that quotes a line with more or fewer cells than the header.
    pub fn read(text: &str) -> lesson::Result<Table> {
        let mut reader = Reader::from_reader(text.as_bytes());
        let header = reader.headers().map_err(|error| unreadable(text, &error))?.clone();
        let rows = reader.into_records();
        let rows: lesson::Result<_> =
            rows.map(|row| row.map_err(|error| unreadable(text, &error))).collect();
        Ok(Table { header, rows: rows? })
    }

    /// Returns the names of the columns.
    pub fn header(&self) -> Vec<&str> {
        self.header.iter().collect()
    }

    /// Returns the rows.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.rows.iter().map(|cells| Row { header: &self.header, cells })
    }

    /// Returns the rows that have these words in these columns.
    pub fn rows_with<'a>(&'a self, wanted: &'a [(&str, &str)]) -> impl Iterator<Item = Row<'a>> {
        let has = |row: &Row| wanted.iter().all(|(column, word)| row.get(column) == Some(word));
        self.rows().filter(has)
    }
}

/// One row of a [`Table`].
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    header: &'a StringRecord,
    cells: &'a StringRecord,
}

impl<'a> Row<'a> {
    /// Returns all cells of the row.
    pub fn cells(&self) -> Vec<&'a str> {
        self.cells.iter().collect()
    }

    /// Returns the cell in a column, or `None` if there is no such column.
    pub fn get(&self, column: &str) -> Option<&'a str> {
        self.cells.get(self.header.iter().position(|name| name == column)?)
    }

    /// Returns the cell in a column.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such column.
    pub fn text(&self, column: &str) -> lesson::Result<&'a str> {
        let cells = || self.cells.iter().collect::<Vec<_>>().join(",");
        self.get(column).ok_or_else(|| format!("there is no column `{column}`: {}", cells()).into())
    }

    /// Returns the number in a column.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such column, or no number in it.
    pub fn number<N: FromStr>(&self, column: &str) -> lesson::Result<N> {
        let text = self.text(column)?;
        text.parse().map_err(|_| format!("`{text}` in column `{column}` is not a number").into())
    }
}

/// A number together with its number of decimals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decimal {
    /// The number.
    pub value: f64,
    /// The number of digits after the point.
    pub places: usize,
}

impl Decimal {
    /// Makes a number that is written with `places` digits after the point.
    pub fn new(value: f64, places: usize) -> Decimal {
        Decimal { value, places }
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:.*}", self.places, self.value))
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Decimal, D::Error> {
        let text = String::deserialize(deserializer)?;
        let value =
            text.parse().map_err(|_| de::Error::custom(format!("`{text}` is not a number")))?;
        Ok(Decimal { value, places: text.split_once('.').map_or(0, |(_, places)| places.len()) })
    }
}

/// (De)serializes a field by its displayed form: `#[serde(with = "displayed")]`.
pub(crate) mod displayed {
    use super::*;

    /// Writes a value in its displayed form.
    pub fn serialize<V: Display, S: Serializer>(value: &V, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(value)
    }

    /// Parses a value from its displayed form.
    pub fn deserialize<'de, V, D>(from: D) -> Result<V, D::Error>
    where
        V: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        String::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}

/// (De)serializes numbers with six decimals, separated by spaces.
pub(crate) mod spaced {
    use super::*;

    pub fn serialize<S: Serializer>(numbers: &[f64], to: S) -> Result<S::Ok, S::Error> {
        let texts: Vec<String> = numbers.iter().map(|number| format!("{number:.6}")).collect();
        to.serialize_str(&texts.join(" "))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
        let text = String::deserialize(from)?;
        let numbers: Result<_, _> = text.split(' ').map(str::parse).collect();
        let what = "is not a list of numbers separated by spaces";
        numbers.map_err(|_| de::Error::custom(format!("`{text}` {what}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Sample {
        name: String,
        ms: Decimal,
    }

    #[test]
    fn numbers_keep_their_digits_and_cells_their_commas() {
        let text = "a,2.50\n\"b, c\",3\nd,NaN\n";
        let read: Vec<Sample> = read(&format!("name,ms\n{text}")).unwrap();
        assert_eq!((read[0].ms.value, read[1].name.as_str()), (2.5, "b, c"));
        assert_eq!(write("name,ms", &read).unwrap(), format!("name,ms\n{text}"));
        let table = table("name,ms", &read).unwrap();
        assert_eq!(table.to_csv(), format!("name,ms\n{text}"));
        assert_eq!(row(["a", "b, c", ""]).unwrap(), "a,\"b, c\",");
    }

    #[test]
    fn unreadable_records_are_named_with_their_line() {
        for (bad, message) in [("x,fast", "`fast` is not a number"), ("1,2,3", "3 fields")] {
            let error = read::<Sample>(&format!("name,ms\na,1\n{bad}\n")).unwrap_err().to_string();
            assert!(error.contains("line 3") && error.contains(&format!("`{bad}`")), "{error}");
            assert!(error.contains(message), "{error}");
        }
        let error = read::<Sample>("name,seconds\na,1\n").unwrap_err().to_string();
        assert!(error.contains("`ms`"), "{error}");
    }

    #[test]
    fn rows_are_selected_by_their_cells() {
        let table = Table::read("a,b,c\n1,x,2\n3,y,4\n5,x,6\n").unwrap();
        let with = |wanted: &[(&str, &str)]| -> Vec<u32> {
            table.rows_with(wanted).map(|row| row.number("c").unwrap()).collect()
        };
        assert_eq!(with(&[("b", "x")]), [2, 6]);
        assert_eq!(with(&[("b", "x"), ("a", "5")]), [6]);
        assert!(with(&[("d", "x")]).is_empty());
        let row = table.rows().next().unwrap();
        assert_eq!((row.get("b"), row.get("d")), (Some("x"), None));
        let error = row.number::<f64>("b").unwrap_err().to_string();
        assert!(error.contains("`x` in column `b`"), "{error}");
        assert!(row.text("d").unwrap_err().to_string().contains("`d`"));
    }
}
