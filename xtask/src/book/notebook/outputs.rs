//! The outputs of a cell as HTML.
//!
//! An output becomes one line, since a blank line would end the block in the Markdown of the page.
//! The HTML that a value shows is read as XML and written again with the elements on a list, and
//! anything else is refused: a sanitizer such as ammonia would drop it without a word, while the
//! author of the notebook should hear of it.

use roxmltree::{Document, Node};

use crate::book::svg::{self, escape};
use crate::notebooks::format::{Cell, Data, Output, form};

/// The elements that the page may have.
const ALLOWED: [&str; 19] = [
    "b", "br", "code", "div", "em", "i", "li", "ol", "p", "small", "span", "strong", "sub", "sup",
    "tbody", "thead", "tr", "td", "th",
];

/// The most letters of a table's cell that the page keeps in one line.
const SHORT: usize = 36;

/// The box below the cell, empty for a cell without outputs.
///
/// An output that is an error, or has no form that the book shows, is refused.
pub fn of_cell(cell: &Cell) -> Result<String, String> {
    let mut shown = String::new();
    for (at, output) in cell.outputs().iter().enumerate() {
        // No other figure of the page has these ids.
        let id = format!("output-{}-{at}", cell.id);
        shown += &match output {
            Output::Stream { name, text } if name == "stdout" => printed(&text.0),
            Output::Stream { name, .. } => return Err(format!("it wrote to {name}")),
            Output::Error { ename, evalue, .. } => {
                return Err(format!("it failed: {ename}: {evalue}"));
            }
            Output::ExecuteResult { data, .. } | Output::DisplayData { data, .. } => {
                displayed(data, &id)?
            }
        };
    }
    Ok(match shown.as_str() {
        "" => String::new(),
        shown => format!(r#"<div class="output" role="group" aria-label="Output">{shown}</div>"#),
    })
}

/// A value in its richest form.
fn displayed(data: &Data, id: &str) -> Result<String, String> {
    if let Some(drawing) = form(data, "image/svg+xml") {
        figure(drawing, id).map_err(|what| format!("its figure {what}"))
    } else if let Some(text) = form(data, "text/html") {
        html(text, id).map_err(|what| format!("its HTML {what}"))
    } else if let Some(text) = form(data, "text/plain") {
        Ok(printed(text))
    } else {
        let forms = data.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        Err(format!("its output has only the forms {forms}"))
    }
}

fn printed(text: &str) -> String {
    let text = escape(text.trim_matches('\n')).replace('\n', "&#10;");
    if text.is_empty() { text } else { format!("<pre><samp>{text}</samp></pre>") }
}

/// A figure, which has its title as the label for readers who cannot see it.
fn figure(drawing: &str, id: &str) -> Result<String, String> {
    let title = svg::title(drawing)?;
    let label = escape(title.as_deref().unwrap_or("a figure"));
    let drawing = svg::inline(drawing, id, &label)?;
    Ok(format!(r#"<figure id="{id}"><div class="drawing">{drawing}</div></figure>"#))
}

/// `html` in one line, with tables in boxes that scroll, and drawings whose ids begin with
/// `prefix`.
///
/// HTML that is not closed, or an element that the book does not show, is refused. Attributes other
/// than `colspan` and `rowspan` are dropped: the stylesheet decides how things look.
fn html(html: &str, prefix: &str) -> Result<String, String> {
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
            "svg" => self.drawing(node)?,
            "pre" => self.output += &printed(&text_of(node)),
            "table" => {
                self.output += r#"<div class="table-wrapper"><table>"#;
                self.children(node)?;
                self.output += "</table></div>";
            }
            name if ALLOWED.contains(&name) => self.element(node, name)?,
            name => return Err(format!("holds <{name}>, which the book does not show")),
        }
        Ok(())
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
        let drawing = svg::draw(node, &prefix, "the values as a line")?;
        self.output += &format!(r#"<div class="drawing">{drawing}</div>"#);
        Ok(())
    }
}

/// True if all cells below the header in the column of this cell are numbers.
fn is_number_column(cell: Node) -> bool {
    let place = |cell: Node| cell.prev_siblings().filter(|node| node.is_element()).count();
    let column = place(cell);
    let Some(table) = cell.ancestors().find(|node| node.has_tag_name("table")) else {
        return false;
    };
    let cells =
        table.descendants().filter(|node| node.has_tag_name("td") && place(*node) == column);
    let mut texts = cells.map(text_of).filter(|text| !text.trim().is_empty()).peekable();
    texts.peek().is_some() && texts.all(|text| is_number(text.trim()))
}

/// True for a number, also with commas between the thousands, a unit or a percent sign. A list of
/// numbers is not a number.
fn is_number(text: &str) -> bool {
    if text.contains(", ") {
        return false;
    }
    let number = text.split(' ').next().unwrap_or_default().trim_end_matches(['%', '×']);
    number.replace(',', "").replace('−', "-").parse::<f64>().is_ok()
}

fn text_of(node: Node) -> String {
    node.descendants().filter(|node| node.is_text()).filter_map(|node| node.text()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::notebooks::format::Kind;

    fn shown(output: Value) -> String {
        let outputs = vec![serde_json::from_value(output).unwrap()];
        let kind = Kind::Code { execution_count: None, outputs };
        of_cell(&Cell { kind, ..Cell::code("a", "1") }).unwrap()
    }

    #[test]
    fn text_keeps_its_lines_in_one_line_of_html() {
        let printed =
            |text: &str| shown(json!({"output_type": "stream", "name": "stdout", "text": text}));
        let html = printed("1 < 2\n\n  3\n");
        assert!(html.contains("<pre><samp>1 &lt; 2&#10;&#10;  3</samp></pre></div>"), "{html}");
        assert_eq!(printed("\n"), "");
    }

    #[test]
    fn the_richest_form_is_shown() {
        let mut data = json!({"text/plain": "plain"});
        let value = |data: &Value| {
            shown(json!({"output_type": "display_data", "metadata": {}, "data": data}))
        };
        assert!(value(&data).contains("<samp>plain</samp>"));
        data["text/html"] = json!("<b>html</b>");
        assert!(value(&data).contains("<b>html</b>") && !value(&data).contains("plain"));
        let drawing = r#"<svg width="10" height="5"><text>A</text><rect id="r"/></svg>"#;
        data["image/svg+xml"] = json!(drawing);
        let figure = value(&data);
        assert!(figure.contains(
            r#"<figure id="output-a-0"><div class="drawing"><svg role="img" aria-label="A""#
        ));
        assert!(figure.contains(r#"id="output-a-0-r""#) && !figure.contains("html"), "{figure}");
    }

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
    fn a_table_scrolls_and_its_numbers_are_right_aligned() {
        let table = "<table><tr><th>a</th><th>b</th></tr><tr><td>x\ny</td><td>1.5</td></tr>\
                     <tr><td colspan=\"2\" style=\"color: red\">z</td></tr></table>";
        let expected = "<div class=\"table-wrapper\"><table><tr><th>a</th><th class=\"number\">b</th></tr>\
                        <tr><td class=\"short\">x y</td><td class=\"number\">1.5</td></tr>\
                        <tr><td colspan=\"2\" class=\"short\">z</td></tr></table></div>";
        assert_eq!(html(table, "x").unwrap(), expected);
    }

    #[test]
    fn drawings_have_different_ids() {
        let drawing = "<svg width=\"2\" height=\"1\"><path id=\"p\"/></svg>";
        let html = html(&format!("{drawing}<br/>{drawing}"), "x").unwrap();
        assert!(html.contains("id=\"x-0-p\"") && html.contains("id=\"x-1-p\""), "{html}");
        assert!(html.contains("</div><br><div class=\"drawing\">"), "{html}");
    }

    #[test]
    fn preformatted_text_keeps_its_lines() {
        assert_eq!(html("<pre>a\n\nb</pre>", "x").unwrap(), "<pre><samp>a&#10;&#10;b</samp></pre>");
    }

    #[test]
    fn elements_off_the_list_are_refused() {
        for element in ["script", "iframe", "img", "style"] {
            let what = html(&format!("<b><{element}/></b>"), "x").unwrap_err();
            assert_eq!(what, format!("holds <{element}>, which the book does not show"));
        }
        assert!(html("<b>a", "x").unwrap_err().contains("not well-formed"));
    }
}
