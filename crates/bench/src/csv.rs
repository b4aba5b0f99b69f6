//! Records as CSV: rows of a known type, and tables of other programs by the names of their
//! columns.

use std::fmt::Display;
use std::str::FromStr;

use csv::{Reader, StringRecord, WriterBuilder};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Reads all rows below a header whose names are the fields of `R`; columns that `R` has no field
/// for are left out.
///
/// # Errors
///
/// A sentence with the line that cannot be read.
pub fn read<R: DeserializeOwned>(text: &str) -> lesson::Result<Vec<R>> {
    let rows = Reader::from_reader(text.as_bytes()).into_deserialize();
    rows.map(|row| row.map_err(|error| unreadable(text, &error))).collect()
}

/// Rows as text, without a header.
///
/// # Errors
///
/// A sentence, if a row does not consist of texts and numbers.
pub fn rows<R: Serialize>(rows: &[R]) -> lesson::Result<String> {
    let mut writer = WriterBuilder::new().has_headers(false).from_writer(Vec::new());
    for row in rows {
        writer.serialize(row)?;
    }
    Ok(String::from_utf8(writer.into_inner().map_err(|error| error.into_error())?)?)
}

/// One row of texts, without the end of its line.
///
/// # Errors
///
/// None that is known.
pub fn row<'a>(cells: impl IntoIterator<Item = &'a str>) -> lesson::Result<String> {
    let cells: Vec<&str> = cells.into_iter().collect();
    Ok(rows(&[cells])?.trim_end_matches('\n').to_owned())
}

fn unreadable(text: &str, error: &csv::Error) -> lesson::Error {
    let line = error.position().map_or(0, |position| position.line());
    let shown = text.lines().nth((line as usize).saturating_sub(1)).unwrap_or_default();
    format!("line {line} cannot be read: `{shown}`: {error}").into()
}

/// A table by the names of its columns.
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
    /// A sentence with the line that has more or fewer cells than the header.
    pub fn read(text: &str) -> lesson::Result<Table> {
        let mut reader = Reader::from_reader(text.as_bytes());
        let header = reader.headers().map_err(|error| unreadable(text, &error))?.clone();
        let rows = reader.into_records();
        let rows: lesson::Result<_> =
            rows.map(|row| row.map_err(|error| unreadable(text, &error))).collect();
        Ok(Table { header, rows: rows? })
    }

    /// The names of its columns.
    pub fn header(&self) -> Vec<&str> {
        self.header.iter().collect()
    }

    /// Its rows.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.rows.iter().map(|cells| Row { header: &self.header, cells })
    }

    /// Those rows that have these words in these columns.
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
    /// All of its cells.
    pub fn cells(&self) -> Vec<&'a str> {
        self.cells.iter().collect()
    }

    /// The cell of a column; `None` if there is no such column.
    pub fn get(&self, column: &str) -> Option<&'a str> {
        self.cells.get(self.header.iter().position(|name| name == column)?)
    }

    /// The cell of a column.
    ///
    /// # Errors
    ///
    /// A sentence, if there is no such column.
    pub fn text(&self, column: &str) -> lesson::Result<&'a str> {
        let cells = || self.cells.iter().collect::<Vec<_>>().join(",");
        self.get(column).ok_or_else(|| format!("there is no column `{column}`: {}", cells()).into())
    }

    /// The number in a column.
    ///
    /// # Errors
    ///
    /// A sentence, if there is no such column or no number in it.
    pub fn number<N: FromStr>(&self, column: &str) -> lesson::Result<N> {
        let text = self.text(column)?;
        text.parse().map_err(|_| format!("`{text}` in column `{column}` is no number").into())
    }
}

/// A number as it is written: with so many digits after the point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decimal {
    /// The number.
    pub value: f64,
    /// Digits after the point.
    pub places: usize,
}

impl Decimal {
    /// A number to be written with so many digits after the point.
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
            text.parse().map_err(|_| de::Error::custom(format!("`{text}` is no number")))?;
        Ok(Decimal { value, places: text.split_once('.').map_or(0, |(_, places)| places.len()) })
    }
}

/// For fields that are written as they are displayed: `#[serde(with = "displayed")]`.
pub(crate) mod displayed {
    use super::*;

    /// Writes a value as it is displayed.
    pub fn serialize<V: Display, S: Serializer>(value: &V, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(value)
    }

    /// Reads a value from its name.
    pub fn deserialize<'de, V, D>(from: D) -> Result<V, D::Error>
    where
        V: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        String::deserialize(from)?.parse().map_err(de::Error::custom)
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
        assert_eq!(rows(&read).unwrap(), text);
        assert_eq!(row(["a", "b, c", ""]).unwrap(), "a,\"b, c\",");
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_line() {
        for (bad, said) in [("x,fast", "`fast` is no number"), ("1,2,3", "3 fields")] {
            let error = read::<Sample>(&format!("name,ms\na,1\n{bad}\n")).unwrap_err().to_string();
            assert!(error.contains("line 3") && error.contains(&format!("`{bad}`")), "{error}");
            assert!(error.contains(said), "{error}");
        }
        let error = read::<Sample>("name,seconds\na,1\n").unwrap_err().to_string();
        assert!(error.contains("`ms`"), "{error}");
    }

    #[test]
    fn rows_are_chosen_by_their_cells() {
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
