//! Reads Markdown as mdBook does, with the range of each element in the source.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};

/// A piece of Markdown and its range in the source.
pub type Located<'a> = (Event<'a>, Range<usize>);

/// The extensions that mdBook 0.5 reads, and formulas.
const OPTIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_FOOTNOTES)
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS)
    .union(Options::ENABLE_HEADING_ATTRIBUTES)
    .union(Options::ENABLE_DEFINITION_LIST)
    .union(Options::ENABLE_GFM)
    .union(Options::ENABLE_MATH);

pub fn events(source: &str) -> Vec<Located<'_>> {
    Parser::new_ext(source, OPTIONS).into_offset_iter().collect()
}

/// A block of code between fences.
pub struct CodeBlock {
    /// The first word after the fence.
    pub language: String,
    /// The whole block, with its fences.
    pub range: Range<usize>,
}

pub fn code_blocks(events: &[Located]) -> Vec<CodeBlock> {
    let fenced = |(event, range): &Located| match event {
        Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
            let language = info.split([',', ' ']).next().unwrap_or_default().to_owned();
            Some(CodeBlock { language, range: range.clone() })
        }
        _ => None,
    };
    events.iter().filter_map(fenced).collect()
}

/// The ranges of code that no rewriting may touch: blocks (also indented ones) and spans.
pub fn code_ranges(events: &[Located]) -> Vec<Range<usize>> {
    let code = |(event, range): &Located| match event {
        Event::Start(Tag::CodeBlock(_)) | Event::Code(_) => Some(range.clone()),
        _ => None,
    };
    events.iter().filter_map(code).collect()
}

/// The words of the element that starts with `events[start]`, without their markup.
pub fn plain_text(events: &[Located], start: usize) -> String {
    let end = events[start].1.end;
    let inside = events[start + 1..].iter().take_while(|(_, range)| range.start < end);
    inside.map(|(event, _)| words(event)).collect()
}

/// The words in one piece of Markdown.
pub fn words<'a>(event: &'a Event) -> &'a str {
    match event {
        Event::Text(text)
        | Event::Code(text)
        | Event::InlineMath(text)
        | Event::DisplayMath(text) => text,
        Event::SoftBreak | Event::HardBreak => " ",
        _ => "",
    }
}

/// Escapes `text` for Markdown and HTML.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        push_escaped(&mut escaped, character);
    }
    escaped
}

/// Escapes the text between the tags as [`escape`] does, but for its entities.
pub fn escape_between_tags(html: &str) -> String {
    let mut escaped = String::with_capacity(html.len());
    let (mut in_tag, mut in_entity) = (false, false);
    for character in html.chars() {
        match character {
            '<' => in_tag = true,
            '&' if !in_tag => in_entity = true,
            _ => {}
        }
        if in_tag || in_entity {
            escaped.push(character);
        } else {
            push_escaped(&mut escaped, character);
        }
        match character {
            '>' => in_tag = false,
            ';' => in_entity = false,
            _ => {}
        }
    }
    escaped
}

fn push_escaped(text: &mut String, character: char) {
    if character.is_ascii_punctuation() {
        text.push_str(&format!("&#{};", u32::from(character)));
    } else {
        text.push(character);
    }
}
