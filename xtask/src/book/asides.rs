//! Turns quotations that begin with certain words into boxes.

use pulldown_cmark::{Event, Tag};

use super::markdown::{self, Located};
use super::page::Draft;

/// The first word of the quotation, the class for the stylesheet, and the heading on the page.
const ASIDES: [(&str, &str, &str); 3] = [
    ("Predict.", "predict", "Predict before you run"),
    ("Try.", "try", "Try it"),
    ("Errata.", "errata", "Where the post is wrong or vague"),
];

/// Gives every aside its heading and class.
pub fn mark(draft: &mut Draft, events: &[Located]) {
    for (at, window) in events.windows(3).enumerate() {
        let [
            (Event::Start(Tag::BlockQuote(None)), _),
            (Event::Start(Tag::Paragraph), _),
            (Event::Start(Tag::Strong), range),
        ] = window
        else {
            continue;
        };
        let word = markdown::plain_text(events, at + 2);
        if let Some((_, class, heading)) = ASIDES.iter().find(|(first, ..)| *first == word) {
            draft.replace(
                range.clone(),
                format!(r#"<strong class="aside {class}">{heading}</strong>"#),
            );
        }
    }
}
