//! Compiled kernels, with a head that describes them.

use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;

/// PTX, with a head of comments about its origin and the names of its kernels.
///
/// In PTX the name of a kernel is a plain identifier. The head maps instances of templates to these
/// identifiers:
///
/// ```text
/// // hash 4f0c…
/// // entry scale<float> = scale_float
/// ```
#[derive(Clone)]
pub struct Ptx {
    text: Text,
}

#[derive(Clone)]
enum Text {
    Here(Cow<'static, str>),
    /// The head, and the whole text, which the first access unpacks.
    Packed(&'static str, &'static Unpacked),
}

/// A text that the first access unpacks.
pub type Unpacked = LazyLock<String, Box<dyn FnOnce() -> String + Send>>;

impl Ptx {
    /// Makes PTX of its body and a head.
    ///
    /// `origin` are lines about where it comes from, `hash` is the fingerprint of its program, and
    /// `entries` are pairs of a kernel's name in C++ and in the PTX.
    pub fn new(origin: &[String], hash: &str, entries: &[(String, String)], body: &str) -> Ptx {
        let mut text = String::new();
        let origin = origin.iter().cloned();
        let entries = entries.iter().map(|(name, symbol)| format!("entry {name} = {symbol}"));
        for line in origin.chain([format!("hash {hash}")]).chain(entries) {
            text.push_str("// ");
            text.push_str(&line);
            text.push('\n');
        }
        text.push_str(body.trim_matches(['\n', '\0']));
        text.push('\n');
        Ptx::from_text(text)
    }

    /// Makes PTX of a text that has its head, as in a file.
    pub fn from_text(text: impl Into<Cow<'static, str>>) -> Ptx {
        Ptx { text: Text::Here(text.into()) }
    }

    /// Makes PTX whose head is known and whose text is still packed.
    pub fn packed(head: &'static str, text: &'static Unpacked) -> Ptx {
        Ptx { text: Text::Packed(head, text) }
    }

    /// Returns the whole text, which a driver and the emulator accept as it is.
    pub fn text(&self) -> &str {
        match &self.text {
            Text::Here(text) => text,
            Text::Packed(_, text) => text,
        }
    }

    /// Returns the fingerprint of the program that it was compiled from, if the head has one.
    pub fn hash(&self) -> Option<&str> {
        self.head().find_map(|line| line.strip_prefix("hash "))
    }

    /// Returns the name in the PTX of the kernel that C++ calls `entry`.
    ///
    /// ```
    /// use nvrtc::Ptx;
    ///
    /// let entries = [("twice<float>".to_owned(), "twice_float".to_owned())];
    /// let ptx = Ptx::new(&[], "", &entries, ".version 8.0");
    /// assert_eq!(ptx.symbol("twice<float>"), Some("twice_float"));
    /// assert_eq!(ptx.symbol("twice<double>"), None);
    /// ```
    pub fn symbol(&self, entry: &str) -> Option<&str> {
        self.entries().find_map(|(name, symbol)| (name == entry).then_some(symbol))
    }

    /// Returns the kernels that the head names: their names in C++ and in the PTX.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &str)> {
        self.head().filter_map(|line| line.strip_prefix("entry ")?.split_once(" = "))
    }

    fn head(&self) -> impl Iterator<Item = &str> {
        let head = match &self.text {
            Text::Here(text) => text,
            Text::Packed(head, _) => *head,
        };
        head.lines().map_while(|line| line.strip_prefix("// "))
    }
}

/// Two are equal if their texts are.
impl PartialEq for Ptx {
    fn eq(&self, other: &Ptx) -> bool {
        // The same packed text is at the same address, and different heads have different texts.
        match (&self.text, &other.text) {
            (Text::Packed(_, one), Text::Packed(_, other)) if std::ptr::eq(*one, *other) => true,
            _ => self.head().eq(other.head()) && self.text() == other.text(),
        }
    }
}

impl Eq for Ptx {}

/// The head; the text is long.
impl fmt::Debug for Ptx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.head()).finish()
    }
}
