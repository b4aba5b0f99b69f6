//! The HTML that a value shows itself in, made a part of the page.

use roxmltree::{Document, Node};

use super::outputs;
use crate::book::svg::{self, escape};

/// Elements that are taken as they are.
const KEPT: [&str; 19] = [
    "b", "br", "code", "div", "em", "i", "li", "ol", "p", "small", "span", "strong", "sub", "sup",
    "tbody", "thead", "tr", "td", "th",
];

/// So many letters of a table's cell stay in one line.
const SHORT: usize = 36;

/// `html` in one line, its tables in boxes that scroll, its drawings with ids that begin with
/// `prefix`.
///
/// What is wrong otherwise: HTML that is not closed, or an element that the book does not show.
/// Attributes other than `colspan` and `rowspan` are left out: how things look is the book's.
pub fn html(html: &str, prefix: &str) -> Result<String, String> {
    let html = format!("<div>{html}</div>");
    let document =
        Document::parse(&html).map_err(|error| format!("is not well-formed: {error}"))?;
    let mut writer = Writer { output: String::new(), prefix, drawings: 0 };
    for child in document.root_element().children() {
        writer.write(child)?;
    }
    Ok(writer.output)
}

struct Writer<'a> {
    output: String,
    prefix: &'a str,
    drawings: usize,
}

impl Writer<'_> {
    fn write(&mut self, node: Node) -> Result<(), String> {
        if node.is_text() {
            self.output += &escape(node.text().unwrap_or_default()).replace('\n', " ");
            return Ok(());
        }
        if !node.is_element() {
            return Ok(());
        }
        match node.tag_name().name() {
            "svg" => self.drawing(node),
            "pre" => {
                self.output += &outputs::printed(&text_of(node));
                Ok(())
            }
            "table" => {
                self.output += r#"<div class="table-wrapper"><table>"#;
                self.children(node)?;
                self.output += "</table></div>";
                Ok(())
            }
            name if KEPT.contains(&name) => self.element(node, name),
            name => Err(format!("holds <{name}>, which the book does not show")),
        }
    }

    fn children(&mut self, node: Node) -> Result<(), String> {
        node.children().try_for_each(|child| self.write(child))
    }

    fn element(&mut self, node: Node, name: &str) -> Result<(), String> {
        self.output += &format!("<{name}");
        for span in ["colspan", "rowspan"] {
            if let Some(value) = node.attribute(span) {
                self.output += &format!(r#" {span}="{}""#, escape(value));
            }
        }
        if matches!(name, "td" | "th") && is_number_column(node) {
            self.output += r#" class="number""#;
        } else if name == "td" && text_of(node).chars().count() <= SHORT {
            self.output += r#" class="short""#;
        }
        self.output.push('>');
        if name != "br" {
            self.children(node)?;
            self.output += &format!("</{name}>");
        }
        Ok(())
    }

    fn drawing(&mut self, node: Node) -> Result<(), String> {
        let prefix = format!("{}-{}", self.prefix, self.drawings);
        self.drawings += 1;
        self.output += r#"<div class="drawing">"#;
        self.output += &svg::draw(node, &prefix, "the values as a line")?;
        self.output += "</div>";
        Ok(())
    }
}

/// Whether all cells below the header, in the column of this cell, are numbers.
fn is_number_column(cell: Node) -> bool {
    let place = |cell: Node| cell.prev_siblings().filter(|one| one.is_element()).count();
    let column = place(cell);
    let Some(table) = cell.ancestors().find(|one| one.has_tag_name("table")) else { return false };
    let cells = table.descendants().filter(|one| one.has_tag_name("td") && place(*one) == column);
    let mut texts = cells.map(text_of).filter(|text| !text.trim().is_empty()).peekable();
    texts.peek().is_some() && texts.all(|text| is_number(text.trim()))
}

/// Whether a text is a number, if with commas between the thousands, a unit or a sign of percent; a
/// list of numbers is not.
fn is_number(text: &str) -> bool {
    if text.contains(", ") {
        return false;
    }
    let number = text.split(' ').next().unwrap_or_default().trim_end_matches(['%', '×']);
    number.replace(',', "").replace('−', "-").parse::<f64>().is_ok()
}

fn text_of(node: Node) -> String {
    node.descendants().filter(|one| one.is_text()).filter_map(|one| one.text()).collect()
}

#[cfg(test)]
mod tests {
    use super::{html, is_number};

    #[test]
    fn numbers_are_known_with_their_units() {
        for number in ["-1.5", "1,024", "12 %", "3.0×", "2e-7", "1.25 ms", "−4"] {
            assert!(is_number(number), "{number}");
        }
        for text in ["0.5, 1, 2", "two", "", "Ok(1)", "1/2"] {
            assert!(!is_number(text), "{text}");
        }
    }

    #[test]
    fn a_table_scrolls_and_its_numbers_stand_to_the_right() {
        let table = "<table><tr><th>a</th><th>b</th></tr><tr><td>x\ny</td><td>1.5</td></tr>\
                     <tr><td colspan=\"2\" style=\"color: red\">z</td></tr></table>";
        let expected = "<div class=\"table-wrapper\"><table><tr><th>a</th><th class=\"number\">b</th></tr>\
                        <tr><td class=\"short\">x y</td><td class=\"number\">1.5</td></tr>\
                        <tr><td colspan=\"2\" class=\"short\">z</td></tr></table></div>";
        assert_eq!(html(table, "x").unwrap(), expected);
    }

    #[test]
    fn drawings_have_ids_of_their_own() {
        let drawing = "<svg width=\"2\" height=\"1\"><path id=\"p\"/></svg>";
        let html = html(&format!("{drawing}<br/>{drawing}"), "x").unwrap();
        assert!(html.contains("id=\"x-0-p\"") && html.contains("id=\"x-1-p\""), "{html}");
        assert!(html.contains("</div><br><div class=\"drawing\">"), "{html}");
    }

    #[test]
    fn lines_are_kept_in_preformatted_text() {
        assert_eq!(html("<pre>a\n\nb</pre>", "x").unwrap(), "<pre><samp>a&#10;&#10;b</samp></pre>");
    }

    #[test]
    fn what_the_book_does_not_show_is_refused() {
        for element in ["script", "iframe", "img", "style"] {
            let what = html(&format!("<b><{element}/></b>"), "x").unwrap_err();
            assert_eq!(what, format!("holds <{element}>, which the book does not show"));
        }
        assert!(html("<b>a", "x").unwrap_err().contains("not well-formed"));
    }
}
