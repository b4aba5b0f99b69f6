//! A program for NVRTC to compile.

use std::borrow::Cow;

use crate::Hash;

/// The options with which every kernel is compiled. With `--fmad=false` only the source decides
/// where a product and a sum are rounded together.
pub const OPTIONS: &[&str] = &["--fmad=false", "-lineinfo", "--std=c++17"];

/// A CUDA C++ source with everything that is needed to compile it.
///
/// ```
/// use nvrtc::Program;
///
/// let source = "template <typename T> __global__ void twice(T* x) { x[threadIdx.x] *= 2; }";
/// let program = Program::new("twice.cu", source).with_entries(["twice<float>", "twice<double>"]);
/// assert_eq!(program.entries.len(), 2);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The source's name, in messages and in the line numbers of the PTX: `kernels/scale.cu`.
    pub file: String,
    /// The CUDA C++ source.
    pub source: Cow<'static, str>,
    /// The files that the source includes.
    pub headers: Vec<Header>,
    /// The kernels to compile, as C++ writes them: `scale<float>`. A template is compiled only to
    /// the instances named here; other kernels need not be named.
    pub entries: Vec<String>,
    /// The compiler's options, without the architecture. The default is [`OPTIONS`].
    pub options: Vec<String>,
}

/// A file that a source includes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The name between the quotation marks of `#include "…"`.
    pub name: String,
    /// The file's name, in messages and in the line numbers of the PTX: `kernels/element.cuh`.
    pub file: String,
    /// The text of the file.
    pub text: Cow<'static, str>,
}

impl Program {
    /// Makes a program without headers and entries, with the default options.
    pub fn new(file: impl Into<String>, source: impl Into<Cow<'static, str>>) -> Program {
        Program {
            file: file.into(),
            source: source.into(),
            headers: Vec::new(),
            entries: Vec::new(),
            options: OPTIONS.iter().map(|&option| option.to_owned()).collect(),
        }
    }

    /// Makes the program whose source is at `path` under `kernels/`, with all headers that it
    /// includes and without entries. `read` returns the text of a file at such a path.
    ///
    /// Returns `None` if there is no file at `path`. A header that `read` does not know is left to
    /// the compiler.
    pub fn gather(path: &str, read: impl Fn(&str) -> Option<Cow<'static, str>>) -> Option<Program> {
        let mut program = Program::new(format!("kernels/{path}"), read(path)?);
        let mut unread = includes(path, &program.source);
        while let Some((name, path)) = unread.pop() {
            if program.headers.iter().any(|header| header.name == name) {
                continue;
            }
            if let Some(text) = read(&path) {
                unread.extend(includes(&path, &text));
                program.headers.push(Header { name, file: format!("kernels/{path}"), text });
            }
        }
        Some(program)
    }

    /// This program with these entries in place of those it had.
    #[must_use]
    pub fn with_entries(mut self, entries: impl IntoIterator<Item = impl Into<String>>) -> Program {
        self.entries = entries.into_iter().map(Into::into).collect();
        self
    }

    /// Returns a fingerprint of everything that the result depends on, apart from compiler and
    /// architecture.
    ///
    /// Line ends of Windows count like line ends of Unix, so that a checkout has the same
    /// fingerprint on every machine.
    pub fn hash(&self) -> Hash {
        let unix = |text: &str| text.replace("\r\n", "\n");
        let mut texts = vec![self.file.clone(), unix(&self.source)];
        // The length of each list comes first, so that an entry is not taken for an option or for
        // the name of a header.
        texts.push(self.headers.len().to_string());
        for header in &self.headers {
            texts.extend([header.name.clone(), header.file.clone(), unix(&header.text)]);
        }
        for list in [&self.entries, &self.options] {
            texts.push(list.len().to_string());
            texts.extend_from_slice(list);
        }
        Hash::of(texts.iter().map(String::as_str))
    }
}

/// Returns the names that a text at `path` includes, with the paths of the files.
fn includes(path: &str, text: &str) -> Vec<(String, String)> {
    let names = text.lines().filter_map(|line| line.strip_prefix("#include \"")?.split('"').next());
    names.map(|name| (name.to_owned(), resolved(path, name))).collect()
}

/// Returns the path of a file that a file at `path` includes as `name`; both have slashes.
fn resolved(path: &str, name: &str) -> String {
    let mut folders: Vec<&str> = path.split('/').collect();
    folders.pop();
    for part in name.split('/') {
        match part {
            ".." => drop(folders.pop()),
            "." => {}
            part => folders.push(part),
        }
    }
    folders.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_but_line_ends_counts_in_the_fingerprint() {
        let program = Program::new("a.cu", "a\nb").with_entries(["f", "g"]);
        assert_eq!(program.hash(), Program { source: "a\r\nb".into(), ..program.clone() }.hash());
        let header = |name: &str, file: &str, text: &'static str| Header {
            name: name.to_owned(),
            file: file.to_owned(),
            text: text.into(),
        };
        let others = [
            // A carriage return inside a line is a character like others.
            Program { source: "a\rb".into(), ..program.clone() },
            Program { file: "b.cu".into(), ..program.clone() },
            program.clone().with_entries(["f"]),
            program.clone().with_entries(["fg", ""]),
            Program { options: vec![], ..program.clone() },
            // Texts that move from one list to another.
            Program { entries: vec![], options: vec!["f".into(), "g".into()], ..program.clone() },
            Program { headers: vec![header("f", "g", "")], entries: vec![], ..program.clone() },
        ];
        for other in others {
            assert_ne!(other.hash(), program.hash(), "{other:?}");
        }
        let headed = Program { headers: vec![header("x", "y", "z")], ..program.clone() };
        let moved = program.with_entries(["x", "y", "z", "f", "g"]);
        assert_ne!(headed.hash(), moved.hash());
    }

    #[test]
    fn includes_are_relative_to_the_including_file() {
        assert_eq!(resolved("scale.cu", "element.cuh"), "element.cuh");
        assert_eq!(resolved("broken/lost_carry.cu", "../element.cuh"), "element.cuh");
        assert_eq!(resolved("broken/lost_carry.cu", "./a.cuh"), "broken/a.cuh");
    }

    #[test]
    fn headers_are_gathered_once_each_and_through_each_other() {
        let read = |path: &str| match path {
            "a.cu" => {
                Some("#include \"b.cuh\"\n#include \"c.cuh\"\n#include \"none.cuh\"\n".into())
            }
            "b.cuh" | "c.cuh" => Some("#include \"c.cuh\"\n#include \"b.cuh\"\n".into()),
            _ => None,
        };
        let program = Program::gather("a.cu", read).unwrap();
        let mut names: Vec<_> = program.headers.iter().map(|header| header.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["b.cuh", "c.cuh"]);
        assert!(Program::gather("none.cu", read).is_none());
    }
}
