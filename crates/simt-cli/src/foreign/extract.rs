//! The device code of a file that holds host code as well: by one rule for all files.
//!
//! A file is a sequence of items: directives, functions, types, variables. Kept are those that a device's compiler needs:
//! directives (an `#include` only of what is there), what is marked `__global__`, `__device__` or `__constant__`, types,
//! constants, and uses of macros. All else becomes empty lines, so that every line keeps its number.

use std::ops::Range;

/// A file, cut into items.
#[derive(Debug, Clone)]
pub struct Cut {
    text: String,
    items: Vec<Item>,
}

#[derive(Debug, Clone)]
struct Item {
    at: Range<usize>,
    /// The lines that it stands in, from 1.
    lines: Range<usize>,
    kept: bool,
    /// The kernel that it is.
    kernel: Option<String>,
    /// Begins or ends a namespace: always kept.
    frame: bool,
}

impl Cut {
    /// Cuts a file. `keeps_include` says of a name whether there is such a file.
    pub fn new(source: &str, keeps_include: impl Fn(&str) -> bool) -> Cut {
        let text = without_comments(source);
        let mut items = Vec::new();
        let (bytes, mut at) = (text.as_bytes(), 0);
        while let Some(skip) = bytes[at..].iter().position(|byte| !byte.is_ascii_whitespace()) {
            at += skip;
            let (end, kept, frame) = match bytes[at] {
                b'#' => {
                    let end = end_of_directive(bytes, at);
                    (end, keeps_directive(&text[at..end], &keeps_include), false)
                }
                b'}' => (at + 1, true, true),
                b';' => (at + 1, false, false),
                _ => match frame(&text[at..]) {
                    Some(length) => (at + length, true, true),
                    None => {
                        let (end, head) = end_of_item(bytes, at);
                        (end, keeps(&text[at..head], end > head), false)
                    }
                },
            };
            let kernel = if kept { kernel_of(&text[at..end]) } else { None };
            let line = |at: usize| 1 + bytes[..at].iter().filter(|byte| **byte == b'\n').count();
            items.push(Item { at: at..end, lines: line(at)..line(end) + 1, kept, kernel, frame });
            at = end;
        }
        Cut { text, items }
    }

    /// The kernels that it defines.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.items.iter().filter_map(|item| item.kernel.as_deref())
    }

    /// Drops the item that stands in a line, a kernel only if `kernels` says so; whether there was one.
    pub fn drop_line(&mut self, line: usize, kernels: bool) -> bool {
        let mut dropped = false;
        for item in &mut self.items {
            let may = !item.frame && (kernels || item.kernel.is_none());
            if item.kept && may && item.lines.contains(&line) {
                (item.kept, dropped) = (false, true);
            }
        }
        dropped
    }

    /// What is kept, and of the kernels only those of that name.
    pub fn text(&self, kernel: Option<&str>) -> String {
        let mut bytes: Vec<u8> =
            self.text.bytes().map(|byte| if byte == b'\n' { b'\n' } else { b' ' }).collect();
        for item in &self.items {
            let wanted = kernel
                .is_none_or(|kernel| item.kernel.as_deref().is_none_or(|this| this == kernel));
            if item.kept && wanted {
                bytes[item.at.clone()].copy_from_slice(&self.text.as_bytes()[item.at.clone()]);
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// The text with a space for each byte of a comment, and of what is no ASCII.
fn without_comments(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let end = if rest.starts_with(b"//") {
            at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
        } else if rest.starts_with(b"/*") {
            let close = rest.windows(2).skip(2).position(|pair| pair == b"*/");
            at + close.map_or(rest.len(), |close| close + 4)
        } else {
            let end = at + token(rest);
            out.extend(
                bytes[at..end].iter().map(|byte| if byte.is_ascii() { *byte } else { b'?' }),
            );
            at = end;
            continue;
        };
        out.extend(bytes[at..end].iter().map(|byte| if *byte == b'\n' { b'\n' } else { b' ' }));
        at = end;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The length of a string or a character with its quotation marks; of all else 1.
fn token(rest: &[u8]) -> usize {
    let quote = rest[0];
    if quote != b'"' && quote != b'\'' {
        return 1;
    }
    let mut at = 1;
    while at < rest.len() && rest[at] != quote && rest[at] != b'\n' {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

fn end_of_directive(bytes: &[u8], at: usize) -> usize {
    let mut end = at;
    while end < bytes.len() {
        if bytes[end] == b'\n' && !bytes[..end].trim_ascii_end_of_line().ends_with(b"\\") {
            break;
        }
        end += 1;
    }
    end
}

trait EndOfLine {
    fn trim_ascii_end_of_line(&self) -> &[u8];
}

impl EndOfLine for [u8] {
    /// Without blanks and a carriage return at the end.
    fn trim_ascii_end_of_line(&self) -> &[u8] {
        let mut line = self;
        while let [rest @ .., b' ' | b'\t' | b'\r'] = line {
            line = rest;
        }
        line
    }
}

fn keeps_directive(text: &str, keeps_include: &impl Fn(&str) -> bool) -> bool {
    let words = text[1..].trim_start();
    let Some(include) = words.strip_prefix("include") else {
        return !(words.starts_with("pragma omp") || words.starts_with("pragma comment"));
    };
    let name = include.trim().trim_matches(['"', '<', '>']);
    let name = name.split(['"', '>']).next().unwrap_or_default();
    keeps_include(name)
}

/// The length of `namespace x {` or `extern "C" {`.
fn frame(text: &str) -> Option<usize> {
    let open = text.find('{')?;
    let head: Vec<_> = text[..open].split_whitespace().collect();
    let is_frame = match head[..] {
        ["extern", language] => language.starts_with('"'),
        ["namespace"] | ["namespace", _] | ["inline", "namespace", _] => true,
        _ => false,
    };
    is_frame.then_some(open + 1)
}

/// The end of an item, and of its head: up to its first brace, or its end.
fn end_of_item(bytes: &[u8], start: usize) -> (usize, usize) {
    let (mut at, mut round, mut curly) = (start, 0_i32, 0_i32);
    let (mut head, mut assigned) = (None, false);
    while at < bytes.len() {
        match bytes[at] {
            b'(' => round += 1,
            b')' => {
                round -= 1;
                // A macro that stands for items, in a line of its own.
                if round == 0 && curly == 0 && is_macro(bytes, start, at) {
                    return (at + 1, at + 1);
                }
            }
            b'=' if round == 0 && curly == 0 => assigned = true,
            b'{' => {
                head.get_or_insert(at);
                curly += 1;
            }
            b'}' => {
                curly -= 1;
                if curly < 0 {
                    return (at, head.unwrap_or(at));
                }
                let open = head.unwrap_or(at);
                if curly == 0 && !assigned && is_function(&bytes[start..open]) {
                    return (at + 1, open);
                }
            }
            b';' if round <= 0 && curly == 0 => return (at + 1, head.unwrap_or(at + 1)),
            // Directives inside an item are of it; so are their quotation marks.
            b'"' | b'\'' => at += token(&bytes[at..]) - 1,
            _ => {}
        }
        at += 1;
    }
    (bytes.len(), head.unwrap_or(bytes.len()))
}

/// Whether it is `NAME(…)` with nothing behind it in the line.
fn is_macro(bytes: &[u8], start: usize, close: usize) -> bool {
    let name =
        bytes[start..].iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_');
    let name: Vec<u8> = name.copied().collect();
    let behind = bytes[close + 1..].iter().take_while(|byte| **byte != b'\n');
    let opens = bytes[start + name.len()..].trim_ascii_start().first() == Some(&b'(');
    opens
        && name.iter().any(u8::is_ascii_uppercase)
        && !name.iter().any(u8::is_ascii_lowercase)
        && behind.clone().all(|byte| byte.is_ascii_whitespace() || *byte == b';')
}

fn is_function(head: &[u8]) -> bool {
    let head = String::from_utf8_lossy(head);
    head.contains('(') && !is_type(&head)
}

fn is_type(head: &str) -> bool {
    let head = behind_template(head.trim_start());
    let first = head
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .find(|word| !word.is_empty() && *word != "typedef");
    matches!(first, Some("struct" | "class" | "union" | "enum")) && !declares_function(head)
}

/// Whether there is a parameter list behind a name, as in `struct point move(struct point p)`.
fn declares_function(head: &str) -> bool {
    let Some(open) = head.find('(') else { return false };
    let before = head[..open].trim_end();
    !before.ends_with("__align__")
        && !before.ends_with("alignas")
        && !before.ends_with("__attribute__")
        && before.split_whitespace().count() > 2
}

/// What stands behind `template <…>`, also several of them.
fn behind_template(head: &str) -> &str {
    let Some(rest) = head.strip_prefix("template") else { return head };
    let (mut depth, mut at) = (0_i32, 0);
    for c in rest.chars() {
        at += c.len_utf8();
        depth += match c {
            '<' => 1,
            '>' => -1,
            _ => 0,
        };
        if c == '>' && depth == 0 {
            return behind_template(rest[at..].trim_start());
        }
    }
    head
}

fn keeps(head: &str, has_body: bool) -> bool {
    let has = |word: &str| head.contains(word);
    if has("__global__") || has("__device__") || has("__constant__") || has("__managed__") {
        return true;
    }
    let bare = behind_template(head.trim_start());
    let first = bare.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    match first {
        "typedef" | "using" | "namespace" | "static_assert" | "enum" | "constexpr" | "const" => {
            true
        }
        "struct" | "class" | "union" => !declares_function(bare),
        "static" | "inline" => has("constexpr") || (has("const ") && !has("(")),
        _ => {
            let open = bare.find('(').unwrap_or(bare.len());
            let name = bare[..open].trim();
            !has_body
                && !name.is_empty()
                && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
        }
    }
}

/// The kernel that an item defines.
fn kernel_of(item: &str) -> Option<String> {
    if item.starts_with('#') {
        return None;
    }
    let (_, rest) = item.split_once("__global__")?;
    let body = rest.find('{')?;
    let mut head = rest[..body].to_owned();
    // `__launch_bounds__(256, 2)` has parentheses as well.
    while let Some(at) = head.find("__launch_bounds__").or_else(|| head.find("__cluster_dims__")) {
        let open = at + head[at..].find('(')?;
        let mut depth = 0_i32;
        let close = head[open..].find(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth == 0
        })?;
        head.replace_range(at..=open + close, "");
    }
    let name = head[..head.find('(')?].trim_end();
    let start = name.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
    Some(name[start..].to_owned()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
#include <stdio.h>
#include "there.h"
#define N 3 \
    + 4
/* a comment { */ int host = 3; // }
static const float limit = 2.0f;
typedef struct { int x; } point;
struct pair { int a, b; };
template <typename T, int K> struct box { T t[K]; __device__ T get() { return t[0]; } };
struct pair make(struct pair p) { return p; }
namespace here {
__constant__ float table[] = {1, 2, 3};
template <class T> __device__ __forceinline__ T twice(T x) { return 2 * x; }
extern "C" __global__ void __launch_bounds__(64 * (2), 1) first(int *x) { if (x) { x[0] = '{'; } }
}
MAKE(float, "}")
template <typename T>
__global__ static void second(T *x) { x[0] = 1; }
int main(int argc, char **argv) { first<<<1, 1>>>(0); printf("}\n"); return 0; }
"#;

    #[test]
    fn device_code_is_kept_in_its_lines() {
        let cut = Cut::new(FILE, |name| name == "there.h");
        assert_eq!(cut.kernels().collect::<Vec<_>>(), ["first", "second"]);
        let text = cut.text(None);
        assert_eq!(text.lines().count(), FILE.lines().count());
        for (kept, dropped) in text.lines().zip(FILE.lines()) {
            assert!(kept.trim().is_empty() || dropped.contains(kept.trim()), "{kept}");
        }
        for kept in [
            "there.h",
            "+ 4",
            "limit",
            "point",
            "pair {",
            "box",
            "namespace",
            "table",
            "twice",
            "first",
            "MAKE",
            "second",
        ] {
            assert!(text.contains(kept), "{kept}");
        }
        for dropped in ["stdio", "host", "make", "main", "comment"] {
            assert!(!text.contains(dropped), "{dropped}");
        }
        let text = cut.text(Some("second"));
        assert!(text.contains("second") && !text.contains("first") && text.contains("twice"));
    }

    #[test]
    fn what_a_compiler_refuses_is_dropped_by_its_line() {
        let mut cut = Cut::new(FILE, |_| false);
        assert!(!cut.drop_line(15, false), "the kernel stays");
        assert!(cut.drop_line(15, true) && !cut.drop_line(15, true));
        assert!(!cut.drop_line(16, true), "the end of a namespace stays");
        assert!(!cut.text(None).contains("first"));
    }

    #[test]
    fn any_text_is_cut() {
        for at in 0..FILE.len() {
            for text in [&FILE[at..], &FILE[..at]] {
                Cut::new(text, |_| true).text(None);
            }
        }
        Cut::new("é ' \" \\ /* é", |_| true).text(None);
    }
}
