//! Makes an SVG drawing part of a page.

use roxmltree::{Document, Node};

/// Escapes text for HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The width in pixels to which a drawing shrinks with the page. On narrower pages it scrolls, so
/// that its labels can be read.
const LEGIBLE_WIDTH: f64 = 480.0;

/// The attributes of a drawing that the page sets itself.
const REPLACED: [&str; 7] = ["role", "aria-label", "viewBox", "style", "width", "height", "class"];

/// Returns the drawing as an element of the page, on one line. It grows to its natural width, its
/// ids begin with `prefix`, and `label` (escaped) describes it to readers who cannot see it.
///
/// The colours stay: the stylesheet replaces pure white and pure black by colours of the theme.
pub fn inline(text: &str, prefix: &str, label: &str) -> Result<String, String> {
    draw(parsed(text)?.root_element(), prefix, label)
}

/// The first text in the drawing, which is the title of a chart.
pub fn title(text: &str) -> Result<Option<String>, String> {
    let document = parsed(text)?;
    let texts = document.descendants().filter(|node| node.has_tag_name("text"));
    let mut words = texts.map(|node| {
        let texts = node.descendants().filter(Node::is_text).filter_map(|node| node.text());
        texts.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
    });
    Ok(words.find(|words| !words.is_empty()))
}

fn parsed(text: &str) -> Result<Document<'_>, String> {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    Document::parse_with_options(text, options)
        .map_err(|error| format!("is not well-formed: {error}"))
}

/// As [`inline`], for a drawing inside a parsed document.
pub fn draw(root: Node, prefix: &str, label: &str) -> Result<String, String> {
    if root.tag_name().name() != "svg" {
        return Err("is not an SVG drawing".to_owned());
    }
    let (view_box, width) = size(root).ok_or("has neither viewBox nor width and height")?;
    let mut output = format!(
        r#"<svg role="img" aria-label="{label}" viewBox="{view_box}" style="max-width:{width}px;min-width:{}px""#,
        width.min(LEGIBLE_WIDTH)
    );
    // The whole drawing shares its font and its colours.
    write_inside(&mut output, root, prefix, &REPLACED)?;
    Ok(output)
}

/// The drawing's coordinates, and its natural width in pixels.
fn size(root: Node) -> Option<(String, f64)> {
    let pixels =
        |name| -> Option<f64> { root.attribute(name)?.trim_end_matches("px").trim().parse().ok() };
    match root.attribute("viewBox") {
        Some(view_box) => {
            let drawn: f64 =
                view_box.split([' ', ',']).filter(|n| !n.is_empty()).nth(2)?.parse().ok()?;
            Some((escape(view_box), pixels("width").unwrap_or(drawn)))
        }
        None => {
            let (width, height) = (pixels("width")?, pixels("height")?);
            Some((format!("0 0 {width} {height}"), width))
        }
    }
}

fn write(output: &mut String, node: Node, prefix: &str) -> Result<(), String> {
    if node.is_text() {
        // Line breaks around labels have no meaning, and a blank line would end the page's block
        // of HTML.
        let words: Vec<&str> = node.text().unwrap_or_default().split_whitespace().collect();
        output.push_str(&escape(&words.join(" ")));
        return Ok(());
    }
    if !node.is_element() {
        return Ok(());
    }
    let name = node.tag_name().name();
    if name == "script" {
        return Err("holds a script".to_owned());
    }
    output.push_str(&format!("<{name}"));
    write_inside(output, node, prefix, &[])
}

/// Writes the rest of an element after its name: the attributes that are not `left_out`, the
/// children and the end.
fn write_inside(
    output: &mut String,
    node: Node,
    prefix: &str,
    left_out: &[&str],
) -> Result<(), String> {
    for attribute in node.attributes().filter(|one| !left_out.contains(&one.name())) {
        let value = own_ids(attribute.name(), attribute.value(), prefix);
        output.push_str(&format!(r#" {}="{}""#, attribute.name(), escape(&value)));
    }
    output.push('>');
    node.children().try_for_each(|child| write(output, child, prefix))?;
    output.push_str(&format!("</{}>", node.tag_name().name()));
    Ok(())
}

/// An attribute's value, with the prefix before each id: two figures in a page may use the same id.
fn own_ids(name: &str, value: &str, prefix: &str) -> String {
    match name {
        "id" => format!("{prefix}-{value}"),
        "href" if value.starts_with('#') => format!("#{prefix}-{}", &value[1..]),
        _ => value.replace("url(#", &format!("url(#{prefix}-")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHART: &str = r##"<svg font-size="9" width="640" height="400" viewBox="0 0 640 400" xmlns="http://www.w3.org/2000/svg">
<clipPath id="c"/><rect x="0" fill="#FFFFFF" clip-path="url(#c)"/>

<text x="1">
a &lt; b
</text></svg>"##;

    #[test]
    fn a_chart_keeps_its_colours_and_scales() {
        let svg = inline(CHART, "figure-x", "what is seen").unwrap();
        assert!(!svg.contains('\n'));
        assert!(
            svg.starts_with(r#"<svg role="img" aria-label="what is seen" viewBox="0 0 640 400""#)
        );
        assert!(svg.contains(r#" style="max-width:640px;min-width:480px" font-size="9">"#));
        assert!(svg.contains(r##"fill="#FFFFFF" clip-path="url(#figure-x-c)""##));
        assert!(svg.contains(r#"<clipPath id="figure-x-c">"#));
        assert!(svg.contains("<text x=\"1\">a &lt; b</text>"));
    }

    #[test]
    fn other_files_than_drawings_are_refused() {
        assert!(inline("<svg", "x", "y").unwrap_err().contains("not well-formed"));
        assert!(inline("<html/>", "x", "y").unwrap_err().contains("not an SVG"));
        assert!(inline("<svg/>", "x", "y").unwrap_err().contains("viewBox"));
        let script = "<svg width='1' height='1'><script/></svg>";
        assert!(inline(script, "x", "y").unwrap_err().contains("script"));
    }
}
