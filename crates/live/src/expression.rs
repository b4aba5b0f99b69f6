//! Evaluates whole numbers as a reader writes them: `rows * len`, `32 * ceil(len, 128)`.

/// Returns the value of an expression. `variable` returns the values of names.
///
/// # Errors
///
/// Returns the part that cannot be parsed, is unknown or is too large.
pub fn evaluate(text: &str, variable: &dyn Fn(&str) -> Option<i64>) -> Result<i64, String> {
    let mut reader = Reader { rest: text.trim_start(), variable, depth: 0 };
    let value = reader.sum().map_err(|what| format!("`{text}`: {what}"))?;
    if reader.rest.is_empty() {
        return Ok(value);
    }
    Err(format!("`{text}`: `{}` is not understood", reader.rest))
}

/// The largest depth of nested parentheses.
const DEEPEST: u32 = 50;

struct Reader<'a> {
    rest: &'a str,
    variable: &'a dyn Fn(&str) -> Option<i64>,
    depth: u32,
}

impl<'a> Reader<'a> {
    fn sum(&mut self) -> Result<i64, String> {
        let mut value = self.product()?;
        loop {
            value = if self.accept("+") {
                value.checked_add(self.product()?)
            } else if self.accept("-") {
                value.checked_sub(self.product()?)
            } else {
                return Ok(value);
            }
            .ok_or(TOO_LARGE)?;
        }
    }

    fn product(&mut self) -> Result<i64, String> {
        let mut value = self.operand()?;
        loop {
            value = if self.accept("*") {
                value.checked_mul(self.operand()?).ok_or(TOO_LARGE)?
            } else if self.accept("/") {
                value.checked_div(self.operand()?).ok_or(BY_ZERO)?
            } else if self.accept("%") {
                value.checked_rem(self.operand()?).ok_or(BY_ZERO)?
            } else {
                return Ok(value);
            };
        }
    }

    fn operand(&mut self) -> Result<i64, String> {
        if self.accept("-") {
            return self.operand()?.checked_neg().ok_or_else(|| TOO_LARGE.to_owned());
        }
        if self.accept("(") {
            let value = self.inside(|reader| reader.sum())?;
            return self.expect(")").map(|()| value);
        }
        let word = self.word();
        if word.is_empty() {
            let found = self.rest.chars().next().map_or("the end".to_owned(), |c| format!("`{c}`"));
            return Err(format!("a number or a name is expected, not {found}"));
        }
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return word.parse().map_err(|_| format!("`{word}` is no whole number"));
        }
        if self.accept("(") {
            return self.call(word);
        }
        (self.variable)(word).ok_or_else(|| format!("there is no `{word}`"))
    }

    /// Evaluates a function of two numbers. `ceil` is the first divided by the second, rounded up.
    fn call(&mut self, name: &str) -> Result<i64, String> {
        let (a, b) = self.inside(|reader| {
            let a = reader.sum()?;
            reader.expect(",")?;
            Ok((a, reader.sum()?))
        })?;
        self.expect(")")?;
        match name {
            "min" => Ok(a.min(b)),
            "max" => Ok(a.max(b)),
            "ceil" if b > 0 => Ok(a.div_euclid(b) + i64::from(a.rem_euclid(b) > 0)),
            "ceil" => Err(BY_ZERO.to_owned()),
            _ => Err(format!("there is no function `{name}`")),
        }
    }

    fn inside<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("parentheses nested too deep".to_owned());
        }
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn word(&mut self) -> &'a str {
        let end = self.rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest.trim_start();
        word
    }

    fn accept(&mut self, mark: &str) -> bool {
        let rest = self.rest.strip_prefix(mark);
        self.rest = rest.map_or(self.rest, str::trim_start);
        rest.is_some()
    }

    fn expect(&mut self, mark: &str) -> Result<(), String> {
        if self.accept(mark) { Ok(()) } else { Err(format!("`{mark}` is missing")) }
    }
}

const TOO_LARGE: &str = "the numbers become too large";
const BY_ZERO: &str = "a division by zero, or too large a number";

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<i64, String> {
        evaluate(text, &|name| match name {
            "len" => Some(77),
            "threadIdx.x" => Some(5),
            _ => None,
        })
    }

    #[test]
    fn expressions_have_values() {
        for (text, expected) in [
            ("1 + 2 * 3 - 4", 3),
            ("(1+2)*3 % 4", 1),
            ("32 * ceil(len, 128)", 32),
            ("min(len, 32) + max(-1, -len)", 31),
            (" threadIdx.x * 33 ", 165),
            ("- -4 / 2", 2),
        ] {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, what) in [
            ("1 +", "not the end"),
            ("1 ? 2", "`? 2` is not understood"),
            ("row * 2", "there is no `row`"),
            ("1 / 0", "division by zero"),
            ("ceil(1, 0)", "division by zero"),
            ("sqrt(1, 2)", "no function `sqrt`"),
            ("(1", "`)` is missing"),
            ("9223372036854775807 + 1", "too large"),
            ("1.5", "no whole number"),
        ] {
            let error = value(text).unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
        }
        let deep = format!("{}1{}", "(".repeat(1000), ")".repeat(1000));
        assert!(value(&deep).unwrap_err().contains("too deep"));
        // Signs may follow each other.
        assert_eq!(value(&format!("{}1", "-".repeat(100))), Ok(1));
    }
}
