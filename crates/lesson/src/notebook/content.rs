//! The form in which a value appears in a notebook, and the message that passes it to evcxr.

use std::io::Write;

/// The displayed form of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// The value as plain text.
    pub plain: String,
    /// The value as something that a browser draws.
    pub rich: Option<Rich>,
}

/// A displayed form that a browser draws.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rich {
    /// The media type: `text/html`, `image/svg+xml`.
    pub media_type: &'static str,
    /// The content, as text.
    pub text: String,
}

/// A value that can be displayed in a notebook.
pub trait Show {
    /// Returns the displayed form.
    fn content(&self) -> Content;

    /// Writes the displayed form to the standard output. evcxr calls this method for the last
    /// expression of a cell.
    fn evcxr_display(&self) {
        // The value has been computed, so a closed notebook is no reason to fail.
        let _ = std::io::stdout().lock().write_all(self.content().to_message().as_bytes());
    }
}

impl Content {
    /// Makes content of plain text and HTML.
    pub fn html(plain: impl Into<String>, html: impl Into<String>) -> Content {
        let rich = Rich { media_type: "text/html", text: html.into() };
        Content { plain: plain.into(), rich: Some(rich) }
    }

    /// Makes content of plain text and an SVG picture.
    pub fn svg(plain: impl Into<String>, svg: impl Into<String>) -> Content {
        // A notebook's file stores each line as a quoted string, and a picture has a line for each
        // element.
        let text = svg.into().replace(">\n<", "><");
        let rich = Rich { media_type: "image/svg+xml", text };
        Content { plain: plain.into(), rich: Some(rich) }
    }

    /// Formats the content as the message that evcxr searches for in the standard output.
    fn to_message(&self) -> String {
        let part = |media_type: &str, text: &str| {
            format!("EVCXR_BEGIN_CONTENT {media_type}\n{text}\nEVCXR_END_CONTENT\n")
        };
        let rich = self.rich.as_ref().map(|rich| part(rich.media_type, &rich.text));
        part("text/plain", &self.plain) + &rich.unwrap_or_default()
    }
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Makes an HTML table of text cells; the first row is the header.
pub(super) fn table(rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |(at, cells): (usize, Vec<String>)| {
        let tag = if at == 0 { "th" } else { "td" };
        let cells = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell)));
        format!("<tr>{}</tr>", cells.collect::<String>())
    };
    let rows: String = rows.into_iter().enumerate().map(line).collect();
    format!("<table>{rows}</table>")
}

#[cfg(test)]
mod tests {
    use super::{Content, table};

    #[test]
    fn evcxr_receives_every_form_between_its_marks() {
        let message = Content::html("1 < 2", "1 &lt; 2").to_message();
        let expected = "EVCXR_BEGIN_CONTENT text/plain\n1 < 2\nEVCXR_END_CONTENT\n\
                        EVCXR_BEGIN_CONTENT text/html\n1 &lt; 2\nEVCXR_END_CONTENT\n";
        assert_eq!(message, expected);
    }

    #[test]
    fn a_table_escapes_html() {
        let rows = [vec!["entry".to_owned()], vec!["fwd<float>".to_owned()]];
        let expected = "<table><tr><th>entry</th></tr><tr><td>fwd&lt;float&gt;</td></tr></table>";
        assert_eq!(table(rows), expected);
    }
}
