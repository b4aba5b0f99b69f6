//! Compiled kernels, and what their head says of them.

use std::borrow::Cow;

/// PTX, with a head of comments that says where it comes from and how its kernels are called.
///
/// In PTX a kernel has a plain identifier for a name; the head says which one stands for which instance
/// of a template:
///
/// ```text
/// // hash 4f0c…
/// // entry scale<float> = scale_float
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ptx {
    text: Cow<'static, str>,
}

impl Ptx {
    /// PTX that was made from the program with the fingerprint `hash`, with a head that says so.
    ///
    /// `origin` are lines about where it comes from; `entries` pairs of a kernel's name in C++ and in
    /// the PTX.
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
        Ptx { text: text.into() }
    }

    /// PTX with its head, from a file.
    pub fn from_text(text: impl Into<Cow<'static, str>>) -> Ptx {
        Ptx { text: text.into() }
    }

    /// The whole text, which a driver and the emulator take as it is.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The fingerprint of the program that it was made from, if the head has one.
    pub fn hash(&self) -> Option<&str> {
        self.head().find_map(|line| line.strip_prefix("hash "))
    }

    /// The name in the PTX of the kernel that C++ calls `entry`.
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

    /// The kernels that the head names: the name in C++, and the name in the PTX.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &str)> {
        self.head().filter_map(|line| line.strip_prefix("entry ")?.split_once(" = "))
    }

    fn head(&self) -> impl Iterator<Item = &str> {
        self.text.lines().map_while(|line| line.strip_prefix("// "))
    }
}
