//! Converts the formulas `$…$` and `$$…$$` to MathML.

use std::sync::LazyLock;

use math_core::{LatexToMathML, MathCoreConfig, MathDisplay};
use pulldown_cmark::Event;

use super::font;
use super::markdown::{self, Located};
use super::page::{Draft, Page};
use super::values;

static CONVERTER: LazyLock<LatexToMathML> = LazyLock::new(|| {
    LatexToMathML::new(MathCoreConfig::default()).expect("no macros that could be wrong")
});

/// Converts every formula of the page.
pub fn convert_all(draft: &mut Draft, events: &[Located]) {
    for (event, range) in events {
        if draft.is_replaced(range) {
            continue;
        }
        let converted = match event {
            Event::InlineMath(latex) => convert(draft.page, latex, MathDisplay::Inline),
            Event::DisplayMath(latex) => convert(draft.page, latex, MathDisplay::Block),
            Event::Text(_) if has_bare_dollar(draft.page.source, range.start, range.end) => Err(
                "a `$` that opens or closes no formula (a blank after the opening one, or a `|` in a \
                 table? a dollar sign is written `\\$`)"
                    .to_owned(),
            ),
            _ => continue,
        };
        match converted {
            Ok(mathml) => draft.replace(range.clone(), mathml),
            Err(what) => draft.reject(range.clone(), what),
        }
    }
}

/// The MathML of `latex`, escaped so that Markdown does not change it.
///
/// A displayed formula has its own box, which scrolls if it is wider than the page.
pub fn convert(page: &Page, latex: &str, display: MathDisplay) -> Result<String, String> {
    let latex = values::insert_values(page, latex)?;
    let converted = CONVERTER.convert_with_local_state(latex.trim(), display).map_err(|error| {
        let place = latex.trim().get(error.0.start..).unwrap_or_default();
        let message = error.to_string();
        format!("formula `{}`: {}, at `{place}`", latex.trim(), message.trim_end_matches('.'))
    })?;
    if let Some(missing) = font::missing(&converted.mathml) {
        let code = u32::from(missing);
        return Err(format!(
            "formula `{}`: the math font has no `{missing}` (U+{code:04X}), which xtask/README.md says how to add",
            latex.trim()
        ));
    }
    let mathml = markdown::escape_between_tags(&converted.mathml);
    Ok(match display {
        MathDisplay::Inline => mathml,
        MathDisplay::Block => format!(r#"<span class="formula">{mathml}</span>"#),
    })
}

/// True if text of the source holds a dollar sign that is not escaped.
fn has_bare_dollar(source: &str, start: usize, end: usize) -> bool {
    let escaped = |at: usize| source[..at].ends_with('\\');
    source[start..end].match_indices('$').any(|(at, _)| !escaped(start + at))
}
