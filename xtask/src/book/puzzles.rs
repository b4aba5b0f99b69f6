//! The directive `{{#puzzles}}`: a section for each puzzle, which the script of live pages turns
//! into a puzzle to play.

use std::fs;

use super::figures::LIVE;
use super::page::Page;
use crate::puzzles;

/// All puzzles, in their order. The section can be read without scripts; with scripts, a kernel
/// whose hole holds the reader's choice takes the place of the kernel.
pub fn all(page: &Page, _: &str) -> Result<String, String> {
    let puzzles = puzzles::read(page.root).map_err(|error| format!("{error:#}"))?;
    let sections = puzzles.iter().map(|puzzle| {
        let puzzle::Puzzle { number, title, task, goal, name, folder, chapter, .. } = puzzle;
        let chapter = page.chapters.join(chapter).join("README.md");
        let built = page.addresses.of(&chapter);
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
