//! The directives of figures: an SVG becomes part of the page, so that it follows the reader's
//! theme. Some figures and the puzzles are live: the script of live pages adds what can be played.

use std::fs;
use std::path::{Path, PathBuf};

use pulldown_cmark::{Event, html};

use super::page::{Draft, Page};
use super::svg::{self, escape};
use super::{formulas, links, markdown};
use crate::live::{self, Scenes};
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

/// The start of a live figure.
pub const LIVE: &str = "<div class=\"live\" data-";

/// The scene of `name file.svg Caption`: the figure, below which the script of live pages puts the
/// debugger. A `name` alone gives the debugger without a figure.
pub fn live(page: &Page, arguments: &str) -> Result<String, String> {
    let (name, rest) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
    let scenes = Scenes::read(page.root).map_err(|error| format!("{error:#}"))?;
    let scene = scenes.named(name).map_err(|error| error.to_string())?;
    let (title, name) = (escape(&scene.title), &scene.name);
    below(page, rest, &format!("scene=\"{name}\" data-title=\"{title}\""))
}

/// The widget of `name file.svg Caption`, in the same way: one of `crates/live`.
pub fn widget(page: &Page, arguments: &str) -> Result<String, String> {
    let (name, rest) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
    below(page, rest, &format!("widget=\"{}\"", escape(name)))
}

/// The place in which readers run their own PTX, which begins with `example.ptx`.
pub fn yours(page: &Page, _: &str) -> Result<String, String> {
    let example = page.root.join(live::SCRIPTS_FOLDER).join("example.ptx");
    let example = fs::read_to_string(example).map_err(|error| format!("example.ptx: {error}"))?;
    // One block of HTML, which ends at a blank line.
    let example = escape(&example).replace('\n', "&#10;");
    below(page, "", &format!("yours=\"{example}\" data-title=\"Your own kernel\""))
}

/// All puzzles, in their order. The section can be read without scripts; with scripts, a kernel
/// whose hole holds the reader's choice takes the place of the kernel.
pub fn puzzles(page: &Page, _: &str) -> Result<String, String> {
    let puzzles = crate::puzzles::read(page.root).map_err(|error| format!("{error:#}"))?;
    let sections = puzzles.iter().map(|puzzle| {
        let puzzle::Puzzle { number, title, task, goal, name, folder, chapter, .. } = puzzle;
        let chapter = page.chapters.join(chapter).join("README.md");
        let built = page.addresses.get(&chapter);
        let built = built.ok_or_else(|| format!("{folder}: there is no {}", chapter.display()))?;
        let heading = fs::read_to_string(&chapter).map_err(|error| format!("{folder}: {error}"))?;
        let heading = heading.lines().next().unwrap_or_default().trim_start_matches("# ").to_owned();
        let (chapter, kernel) = (page.address(built), puzzle.skeleton());
        Ok(format!(
            "## {number}. {title} {{#{name}}}\n\n\
             {task}\n\n\
             Goal: {goal}. Chapter: [{heading}]({chapter}). In the terminal: `cargo run --release -- puzzle {name}`\n\n\
             {LIVE}puzzle=\"{folder}\">\n\n```cpp\n{kernel}```\n\n</div>\n"
        ))
    });
    Ok(sections.collect::<Result<Vec<_>, String>>()?.join("\n"))
}

/// The figure, if one is given, and the place of the live part.
fn below(page: &Page, drawn: &str, what: &str) -> Result<String, String> {
    let drawn = drawn.trim_start();
    let figure = if drawn.is_empty() { String::new() } else { figure(page, drawn)? };
    Ok(format!("{LIVE}{what}>{figure}</div>"))
}

/// The start of a live page: its script, which is loaded before the rest of the page. At the
/// address of a step, an early script requests the files of that step first.
pub fn script(page: &Page) -> String {
    let folder = page.address(Path::new(live::BUILT));
    let early = include_str!("../../theme/live/early.js").replace("FOLDER", &folder);
    let early = early.lines().filter(|line| !line.starts_with("//")).collect::<Vec<_>>().join(" ");
    format!("<script>{{ {early} }}</script>\n<script async src=\"{folder}/live.js\"></script>\n\n")
}

/// Finds the drawing's file: written by the run, or drawn by hand.
fn find(page: &Page, file: &str) -> Result<PathBuf, String> {
    let places = [FOLDER, "figures"];
    let mut paths = places.iter().map(|place| page.folder().join(place).join(file));
    paths.find(|path| path.is_file()).ok_or_else(|| {
        format!("figure `{file}` is neither in {}/ nor in {}/", places[0], places[1])
    })
}

/// The name without its ending; a hyphen replaces each character but letters and digits.
fn identifier(file: &str) -> String {
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

/// The caption as HTML, and as plain words for readers who hear the page.
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
