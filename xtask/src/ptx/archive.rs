//! Packs PTX into archives, which `linrec::kernels` reads, and unpacks them for comparisons.

use fs_err as fs;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use linrec::kernels::{KernelChoice, Ptx};
use zstd::stream::encode_all;

use crate::workspace;

/// Texts by their names: PTX modules, or files by their path, with slashes.
pub(super) type Files = BTreeMap<String, String>;

/// The table's file, which is beside the archives.
pub(super) const TABLE: &str = "table.rs";

/// The highest level that needs no more memory to unpack.
const LEVEL: i32 = 19;

/// The name of the archive of `kernels/ptx` that a module is in, without the ending.
pub(super) fn of(name: &str) -> &'static str {
    let family = name.split(['-', '/']).next().unwrap_or_default();
    match family {
        "broken" => "mistakes",
        "exercises" | "ladder" | "long" | "fused" => "studies",
        "selective" => "selective-scan",
        // The kernels of the catalogue, and the kernels for pieces of a row, which are made of
        // them.
        "pieces" => "recurrence",
        family if family.parse::<KernelChoice>().is_ok() => "recurrence",
        _ => "others",
    }
}

/// Packs modules, which have names, into an archive.
pub(super) fn pack(modules: &Files) -> Result<Vec<u8>> {
    let (mut contents, mut frames) = (String::new(), Vec::new());
    for (name, text) in modules {
        let frame = encode_all(text.as_bytes(), LEVEL)?;
        let head = text.lines().take_while(|line| line.starts_with("// "));
        contents += &format!("// module {name} {}\n", frame.len());
        head.for_each(|line| contents.extend([line, "\n"]));
        frames.extend(frame);
    }
    let mut archive = encode_all(contents.as_bytes(), LEVEL)?;
    archive.extend(frames);
    Ok(archive)
}

/// Reads the modules of an archive in a file. A file that does not exist has none.
pub(super) fn read(path: &Path) -> Result<Files> {
    if !path.exists() {
        return Ok(Files::new());
    }
    let modules = linrec::kernels::unpack(&fs::read(path)?);
    let modules = modules.with_context(|| format!("{} is no archive of PTX", path.display()))?;
    Ok(modules.into_iter().collect())
}

/// Reads the modules of all archives in `folder`.
pub(super) fn read_all(folder: &Path) -> Result<Files> {
    let mut all = Files::new();
    for path in workspace::files(folder, "zst", 1) {
        for (name, text) in read(&path)? {
            let archive = path.file_stem().unwrap_or_default();
            ensure!(
                archive == of(&name),
                "{name} is in {}, and belongs to {}",
                path.display(),
                of(&name)
            );
            all.insert(name, text);
        }
    }
    Ok(all)
}

/// Replaces the content of `folder` by the archives of these modules and the table that includes
/// them in the library.
pub(super) fn write_all(folder: &Path, modules: &Files, table: &str) -> Result<()> {
    let mut archives = BTreeMap::<&str, Files>::new();
    for (name, text) in modules {
        archives.entry(of(name)).or_default().insert(name.clone(), text.clone());
    }
    lesson::files::replace_folder(folder, |new| {
        for (archive, modules) in &archives {
            fs::write(new.join(format!("{archive}.zst")), pack(modules)?)?;
        }
        fs::write(new.join(TABLE), table)?;
        Ok::<_, anyhow::Error>(())
    })
    .with_context(|| format!("{} cannot be replaced", folder.display()))
}

/// The attribute of a line that only a library with the studies includes.
const STUDIES: &str = "    #[cfg(feature = \"studies\")]\n";

/// The table as Rust source. Paths are relative to `kernels/ptx`.
pub(super) fn table(sources: &Files, modules: &Files) -> String {
    let mut text = String::from("// Written by `cargo xtask ptx`; do not edit.\n");
    text.push_str("\nstatic SOURCES: &[(&str, &str)] = &[\n");
    for path in sources.keys() {
        let studied = path.contains('/');
        text.push_str(if studied { STUDIES } else { "" });
        text.push_str(&format!("    ({path:?}, include_str!({:?})),\n", format!("../{path}")));
    }
    text.push_str("];\n\nstatic ARCHIVES: &[&[u8]] = &[\n");
    for archive in modules.keys().map(|name| of(name)).collect::<BTreeSet<_>>() {
        let studied = matches!(archive, "mistakes" | "studies");
        text.push_str(if studied { STUDIES } else { "" });
        text.push_str(&format!("    include_bytes!(\"{archive}.zst\"),\n"));
    }
    text.push_str("];\n");
    text
}

/// The text of the module or the source with this name, from the library in this program.
pub fn show(name: &str) -> Result<String> {
    if let Some(source) = linrec::kernels::source(name) {
        return Ok(source.to_owned());
    }
    let shipped = linrec::kernels::shipped().map(|(name, ptx)| (name.to_owned(), ptx));
    let answers = puzzle::all().iter().flat_map(|puzzle| {
        puzzle
            .compiled()
            .filter_map(|name| Some((format!("{}/{name}", puzzle.folder), puzzle.ptx(name)?)))
    });
    let all: BTreeMap<String, Ptx> = shipped.chain(answers).collect();
    let found = all.get(name).with_context(|| {
        let names: Vec<_> = all.keys().map(String::as_str).collect();
        format!("there is no PTX {name}; there are\n{}", names.join("\n"))
    });
    Ok(found?.text().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_modules_are_read_again_here_and_by_the_library() {
        let module = |body: &str| format!("// hash 1\n// entry a<1> = a_1\n.version 8.0\n{body}\n");
        let files: Files = ["ref-f32", "broken/a", "pieces-f64"]
            .map(|name| (name.to_owned(), module(name)))
            .into();
        let packed = pack(&files).unwrap();
        assert_eq!(packed, pack(&files).unwrap());
        assert!(linrec::kernels::unpack(&packed).unwrap().into_iter().eq(files.clone()));
        for (name, ptx) in linrec::kernels::modules(packed.leak()).unwrap() {
            assert_eq!(ptx.symbol("a<1>"), Some("a_1"));
            assert_eq!(ptx.text(), files[name]);
        }
        for bytes in [&b"// module a 1\n"[..], &[]] {
            assert!(linrec::kernels::unpack(bytes).is_err());
        }
    }

    #[test]
    fn families_share_an_archive_and_a_stray_module_is_noticed() {
        let names = [
            "pipe-8x64-0-f32",
            "pieces-f32",
            "selective-scan-bwd-8-f16",
            "broken/a",
            "long/three",
            "sums-f32",
        ];
        let archives =
            ["recurrence", "recurrence", "selective-scan", "mistakes", "studies", "others"];
        assert_eq!(names.map(of), archives);

        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("ptx");
        for names in [["a-f32", "broken/a"], ["a-f32", "ref-f64"]] {
            let files: Files = names.map(|name| (name.to_owned(), "// hash 1\n".to_owned())).into();
            write_all(&folder, &files, "table").unwrap();
            assert_eq!(read_all(&folder).unwrap(), files);
        }
        assert!(!folder.join("mistakes.zst").exists());
        fs::copy(folder.join("others.zst"), folder.join("mistakes.zst")).unwrap();
        assert!(read_all(&folder).unwrap_err().to_string().contains("belongs to others"));
    }
}
