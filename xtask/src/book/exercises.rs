//! Checks that every exercise has a solution and hides it.

use pulldown_cmark::{Event, Tag};

use super::markdown::{self, Located};
use super::page::Draft;

/// A heading: its level, its words, the index of its event and its offset in the source.
struct Heading {
    level: usize,
    text: String,
    event: usize,
    offset: usize,
}

/// Notes the exercises without a hidden solution under every heading "Exercises".
pub fn check(draft: &mut Draft, events: &[Located]) {
    let headings: Vec<Heading> = events
        .iter()
        .enumerate()
        .filter_map(|(event, (piece, range))| match piece {
            Event::Start(Tag::Heading { level, .. }) => {
                let text = markdown::plain_text(events, event);
                Some(Heading { level: *level as usize, text, event, offset: range.start })
            }
            _ => None,
        })
        .collect();
    for (at, section) in headings.iter().enumerate() {
        if section.text.eq_ignore_ascii_case("exercises") {
            check_section(draft, events, section, &headings[at + 1..]);
        }
    }
}

fn check_section(draft: &mut Draft, events: &[Located], section: &Heading, behind: &[Heading]) {
    let count = behind.iter().take_while(|heading| heading.level > section.level).count();
    let is_exercise = |heading: &&Heading| heading.level == section.level + 1;
    if !behind[..count].iter().any(|heading| is_exercise(&heading)) {
        draft.fail(section.offset, "no exercise: each has a heading one level below \"Exercises\"");
    }
    for (at, exercise) in behind.iter().enumerate().take(count).filter(|(_, h)| is_exercise(h)) {
        let next = behind[at + 1..].iter().find(|heading| heading.level <= exercise.level);
        let end = next.map_or(events.len(), |heading| heading.event);
        let html: String = events[exercise.event..end]
            .iter()
            .filter_map(|(piece, _)| match piece {
                Event::Html(html) | Event::InlineHtml(html) => Some(html.as_ref()),
                _ => None,
            })
            .collect();
        let name = &exercise.text;
        if !html.contains("<details") || !html.contains("<summary>Solution</summary>") {
            draft.fail(
                exercise.offset,
                format!("exercise \"{name}\" has no <details> with <summary>Solution</summary>"),
            );
        } else if html.contains("<details open") {
            draft.fail(exercise.offset, format!("the solution of \"{name}\" is not hidden"));
        } else if !html.contains("</details>") {
            draft.fail(exercise.offset, format!("the solution of \"{name}\" has no </details>"));
        }
    }
}
