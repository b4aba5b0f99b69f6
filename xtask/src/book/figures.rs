//! Figures: an SVG in the page itself, so that it follows the reader's theme.

use std::fs;
use std::path::PathBuf;

use pulldown_cmark::{Event, html};

use super::page::{Draft, Page};
use super::svg::{self, escape};
use super::{formulas, links, markdown};
use crate::results::FOLDER;

/// The figure of `file.svg Caption`.
pub fn figure(page: &Page, arguments: &str) -> Result<String, String> {
    let Some((file, caption)) = arguments.split_once(char::is_whitespace) else {
        return Err("write `{{#figure file.svg Caption}}`".to_owned());
    };
    let path = find(page, file)?;
    let text = fs::read_to_string(&path).map_err(|error| format!("figure `{file}`: {error}"))?;
    let id = format!("figure-{}", identifier(file));
    let (caption, label) = render_caption(page, caption.trim())
        .map_err(|what| format!("caption of figure `{file}`: {what}"))?;
    let drawing =
        svg::inline(&text, &id, &label).map_err(|what| format!("figure `{file}` {what}"))?;
    Ok(format!(
        r#"<figure id="{id}"><div class="drawing">{drawing}</div><figcaption>{caption}</figcaption></figure>"#
    ))
}

/// The drawing's file: written by the run, or drawn by hand.
fn find(page: &Page, file: &str) -> Result<PathBuf, String> {
    let places = [FOLDER, "figures"];
    let mut paths = places.iter().map(|place| page.folder().join(place).join(file));
    paths.find(|path| path.is_file()).ok_or_else(|| {
        format!("figure `{file}` is neither in {}/ nor in {}/", places[0], places[1])
    })
}

/// The name without its ending, with letters, digits and hyphens only.
fn identifier(file: &str) -> String {
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

/// The caption as HTML, and in plain words for those who hear the page.
fn render_caption(page: &Page, caption: &str) -> Result<(String, String), String> {
    let page = Page { source: caption, ..*page };
    let events = markdown::events(caption);
    let label = events.iter().map(|(event, _)| markdown::words(event)).collect::<String>();
    let mut draft = Draft::new(&page);
    formulas::convert_all(&mut draft, &events);
    links::rewrite(&mut draft, &events);
    let (text, failures) = draft.finish();
    if let Some(failure) = failures.into_iter().next() {
        return Err(failure.what);
    }
    let mut output = String::new();
    let inline = markdown::events(&text).into_iter().map(|(event, _)| match event {
        // The figure is one block of HTML, which ends at a blank line.
        Event::SoftBreak => Event::Text(" ".into()),
        other => other,
    });
    html::push_html(&mut output, inline);
    let output = output.trim().trim_start_matches("<p>").trim_end_matches("</p>");
    Ok((output.replace('\n', " "), escape(&label)))
}
