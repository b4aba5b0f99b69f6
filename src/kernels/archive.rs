//! Archives of PTX: the compressed modules of a family. A module is unpacked when its text is first
//! read.
//!
//! An archive is a sequence of Zstandard frames (RFC 8878), so `zstd -dc
//! kernels/ptx/recurrence.zst` prints all of it. The first frame is the table of contents: for each
//! module a line `// module NAME BYTES` with the length of its frame, followed by the head of its
//! PTX. So a kernel is found, and compared with its source, without unpacking any module. `cargo
//! xtask ptx` writes archives.

use std::io::Read;
use std::sync::LazyLock;

use nvrtc::Ptx;
use ruzstd::decoding::StreamingDecoder;

use crate::Error;

/// A module of an archive.
struct PackedModule<'a> {
    name: String,
    head: String,
    frame: &'a [u8],
}

/// Returns the modules of an archive: the name and the PTX of each, in the order of the archive.
///
/// The table of contents is unpacked now, and a module when its text is first read.
///
/// # Errors
///
/// [`Error::Parse`] if `bytes` do not begin with a table of contents, or if the frames do not have
/// the lengths that it lists.
///
/// # Panics
///
/// When the text of a module is read whose frame is broken. [`unpack`] checks the frames.
pub fn modules(bytes: &'static [u8]) -> Result<Vec<(&'static str, Ptx)>, Error> {
    let ptx = |PackedModule { name, head, frame }| {
        let unpacked = move || text(&mut &*frame).expect("a Zstandard frame with text");
        let text = Box::leak(Box::new(LazyLock::new(Box::new(unpacked) as Box<_>)));
        (&*name.leak(), Ptx::packed(head.leak(), text))
    };
    Ok(contents(bytes)?.into_iter().map(ptx).collect())
}

/// Returns the modules of an archive, all unpacked: the name and the text of each.
///
/// # Errors
///
/// As for [`modules`], and if the frame of a module is broken.
pub fn unpack(bytes: &[u8]) -> Result<Vec<(String, String)>, Error> {
    let modules = contents(bytes)?.into_iter();
    let unpacked = |module: PackedModule| match text(&mut &*module.frame) {
        Ok(text) => Ok((module.name, text)),
        Err(error) => Err(broken(bytes, &format!("module {}: {error}", module.name))),
    };
    modules.map(unpacked).collect()
}

/// The modules that the table of contents lists.
fn contents(bytes: &[u8]) -> Result<Vec<PackedModule<'_>>, Error> {
    let mut rest = bytes;
    let contents = text(&mut rest).map_err(|error| broken(bytes, &error))?;
    let mut modules = Vec::new();
    for module in contents.split("// module ").skip(1) {
        let packed = || {
            let (line, head) = module.split_once('\n')?;
            let (name, len) = line.rsplit_once(' ')?;
            let (frame, after) = rest.split_at_checked(len.parse().ok()?)?;
            Some((PackedModule { name: name.to_owned(), head: head.to_owned(), frame }, after))
        };
        let (packed, after) = packed()
            .ok_or_else(|| broken(bytes, &format!("its contents list the module `{module}`")))?;
        modules.push(packed);
        rest = after;
    }
    match rest.len() {
        0 => Ok(modules),
        more => Err(broken(bytes, &format!("{more} bytes follow the last module"))),
    }
}

/// Reads the text of the first frame, and leaves `bytes` at the next one.
fn text(bytes: &mut &[u8]) -> Result<String, String> {
    let mut text = String::new();
    let mut decoder = StreamingDecoder::new(bytes).map_err(|error| error.to_string())?;
    decoder.read_to_string(&mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

fn broken(bytes: &[u8], message: &str) -> Error {
    let text = format!("{} bytes", bytes.len());
    Error::Parse { what: "archive of PTX", text, message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use crate::kernels::{Ptx, shipped};

    #[test]
    fn the_contents_agree_with_the_modules() {
        for (name, ptx) in shipped() {
            let text = Ptx::from_text(ptx.text().to_owned());
            assert_eq!(text.hash(), ptx.hash(), "{name}");
            assert!(text.entries().eq(ptx.entries()) && ptx.entries().count() > 0, "{name}");
        }
    }
}
