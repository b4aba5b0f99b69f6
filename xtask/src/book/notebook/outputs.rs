//! What a cell gave, as HTML in one line: a blank line would end the block in the Markdown of the
//! page.

use std::collections::BTreeMap;

use super::html;
use crate::book::svg::{self, escape};
use crate::notebooks::format::{Cell, Displayed, Form, Output};

/// The box below the cell; nothing when it gave nothing.
///
/// What is wrong otherwise: an error, or a form that the book does not show.
pub fn html(cell: &Cell) -> Result<String, String> {
    let mut shown = String::new();
    for (at, output) in cell.outputs.iter().flatten().enumerate() {
        // The ids of a figure are its own in the page.
        let id = format!("output-{}-{at}", cell.id);
        shown += &match output {
            Output::Stream { name, text } if name == "stdout" => printed(&text.0),
            Output::Stream { name, .. } => return Err(format!("it wrote to {name}")),
            Output::Error { ename, evalue, .. } => {
                return Err(format!("it failed: {ename}: {evalue}"));
            }
            Output::ExecuteResult(shown) | Output::DisplayData(shown) => displayed(shown, &id)?,
        };
    }
    Ok(match shown.as_str() {
        "" => String::new(),
        shown => format!(r#"<div class="output" role="group" aria-label="Output">{shown}</div>"#),
    })
}

/// The richest form of a value.
fn displayed(shown: &Displayed, id: &str) -> Result<String, String> {
    let form = |name: &str| match shown.data.get(name) {
        Some(Form::Text(text)) => Some(text.0.as_str()),
        _ => None,
    };
    if let Some(drawing) = form("image/svg+xml") {
        return figure(drawing, id).map_err(|what| format!("its figure {what}"));
    }
    if let Some(text) = form("text/html") {
        return html::html(text, id).map_err(|what| format!("its HTML {what}"));
    }
    match form("text/plain") {
        Some(text) => Ok(printed(text)),
        None => Err(format!("its output has only the forms {}", names(&shown.data))),
    }
}

fn names(data: &BTreeMap<String, Form>) -> String {
    data.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Printed text.
pub fn printed(text: &str) -> String {
    let text = escape(text.trim_matches('\n')).replace('\n', "&#10;");
    if text.is_empty() { text } else { format!("<pre><samp>{text}</samp></pre>") }
}

/// A figure: it says its title to those who cannot see it.
fn figure(drawing: &str, id: &str) -> Result<String, String> {
    let title = svg::title(drawing)?;
    let label = escape(title.as_deref().unwrap_or("a figure"));
    let drawing = svg::inline(drawing, id, &label)?;
    Ok(format!(r#"<figure id="{id}"><div class="drawing">{drawing}</div></figure>"#))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notebooks::format::Text;

    fn cell(outputs: Vec<Output>) -> Cell {
        Cell { outputs: Some(outputs), ..Cell::code("a", "1") }
    }

    fn value(forms: &[(&str, &str)]) -> Output {
        let form = |(name, text): &(&str, &str)| {
            ((*name).to_owned(), Form::Text(Text((*text).to_owned())))
        };
        let data = forms.iter().map(form).collect();
        Output::ExecuteResult(Displayed {
            data,
            execution_count: None,
            metadata: BTreeMap::default(),
        })
    }

    fn stream(name: &str, text: &str) -> Output {
        Output::Stream { name: name.to_owned(), text: Text(text.to_owned()) }
    }

    #[test]
    fn text_keeps_its_lines_in_one_line_of_html() {
        let html = html(&cell(vec![stream("stdout", "1 < 2\n\n  3\n"), stream("stdout", "")]));
        let html = html.unwrap();
        assert!(html.contains("<pre><samp>1 &lt; 2&#10;&#10;  3</samp></pre></div>"), "{html}");
        assert_eq!(super::html(&cell(vec![stream("stdout", "\n")])).unwrap(), "");
    }

    #[test]
    fn the_richest_form_is_shown() {
        let drawing = r#"<svg width="10" height="5"><text>A</text><rect id="r"/></svg>"#;
        let forms =
            [("text/plain", "plain"), ("text/html", "<b>html</b>"), ("image/svg+xml", drawing)];
        let shown = |forms| html(&cell(vec![value(forms)])).unwrap();
        assert!(shown(&forms[..1]).contains("<samp>plain</samp>"));
        assert!(
            shown(&forms[..2]).contains("<b>html</b>") && !shown(&forms[..2]).contains("plain")
        );
        let figure = shown(&forms);
        assert!(figure.contains(
            r#"<figure id="output-a-0"><div class="drawing"><svg role="img" aria-label="A""#
        ));
        assert!(figure.contains(r#"id="output-a-0-r""#) && !figure.contains("html"), "{figure}");
    }

    #[test]
    fn what_cannot_be_shown_is_an_error() {
        let wrong = |output| html(&cell(vec![output])).unwrap_err();
        assert_eq!(wrong(stream("stderr", "warning")), "it wrote to stderr");
        let error = Output::Error {
            ename: "Error".to_owned(),
            evalue: "no such name".to_owned(),
            traceback: Vec::new(),
        };
        assert_eq!(wrong(error), "it failed: Error: no such name");
        assert_eq!(
            wrong(value(&[("image/png", "AAAA")])),
            "its output has only the forms image/png"
        );
        assert!(
            wrong(value(&[("image/svg+xml", "<svg")])).contains("its figure is not well-formed")
        );
        assert!(wrong(value(&[("text/html", "<b>")])).contains("its HTML is not well-formed"));
    }
}
