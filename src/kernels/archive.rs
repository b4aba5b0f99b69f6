//! Archives of PTX: the modules of a family, each compressed, and unpacked when its text is first
//! asked for.
//!
//! An archive is a row of Zstandard frames (RFC 8878), so `zstd -dc kernels/ptx/recurrence.zst`
//! prints all of it. The first frame is the table of contents: for each module a line
//! `// module NAME BYTES` with the length of its frame, followed by the head of its PTX. So a
//! kernel is found, and checked against its source, without unpacking any module. `cargo xtask ptx`
//! writes archives.

use std::io::Read;
use std::sync::LazyLock;

use ruzstd::decoding::StreamingDecoder;

use super::Ptx;

/// The modules of an archive: the name and the PTX of each, in the order of the archive.
///
/// The table of contents is unpacked now, and a module when its text is first asked for.
///
/// # Panics
///
/// If `bytes` are not an archive. Only files that `cargo xtask ptx` has made and a test has read
/// are part of a program.
pub fn modules(bytes: &'static [u8]) -> Vec<(&'static str, Ptx)> {
    let mut rest = bytes;
    let contents: &'static str = unpack(&mut rest).leak();
    let mut modules = Vec::new();
    for module in contents.split("// module ").skip(1) {
        let (line, head) = module.split_once('\n').expect("a module has a line in the contents");
        let (name, len) = line.rsplit_once(' ').expect("the line has a name and a length");
        let (mut frame, behind) = rest.split_at(len.parse().expect("the length is a number"));
        rest = behind;
        let text = LazyLock::new(Box::new(move || unpack(&mut frame)) as Box<_>);
        modules.push((name, Ptx::packed(head, Box::leak(Box::new(text)))));
    }
    assert!(rest.is_empty(), "{} bytes behind the last module", rest.len());
    modules
}

/// The text of the first frame; `bytes` are then those behind it.
fn unpack(bytes: &mut &[u8]) -> String {
    let mut text = String::new();
    let mut decoder = StreamingDecoder::new(bytes).expect("a Zstandard frame");
    decoder.read_to_string(&mut text).expect("a frame that holds text");
    text
}

#[cfg(test)]
mod tests {
    use crate::kernels::{Ptx, shipped};

    #[test]
    fn contents_say_what_the_modules_say() {
        for (name, ptx) in shipped() {
            let text = Ptx::from_text(ptx.text().to_owned());
            assert_eq!(text.hash(), ptx.hash(), "{name}");
            assert!(text.entries().eq(ptx.entries()) && ptx.entries().count() > 0, "{name}");
        }
    }
}
