//! Corrections to the PTX that NVRTC writes: file names, and the PTX version that it requires.

use crate::Program;

/// The PTX version that every driver since CUDA 12.0 accepts. It knows `sm_90`.
const ACCEPTED_VERSION: (u32, u32) = (8, 0);

/// Returns `ptx` with the names of the program's files, and with a version that drivers accept.
///
/// NVRTC 12.0 puts the current folder before each name in `.file`, so that the same source compiled
/// elsewhere would differ.
///
/// NVRTC writes its own version in `.version`, whatever the kernels use, and an older driver
/// refuses the PTX for this alone. The sources use nothing newer than PTX 8.0, and no architecture
/// newer than `sm_90` is compiled for, so the version is lowered. If an instruction were newer, the
/// driver would refuse it when it loads the PTX.
///
/// NVRTC 12.0 also declares a table of all architectures, `nv::target`, which no kernel reads,
/// under names that contain the number of the process. It is left out, so that the same program
/// always gives the same text.
pub(crate) fn tidy(ptx: &str, program: &Program) -> String {
    let mut tidied = String::with_capacity(ptx.len());
    for line in ptx.trim_end_matches('\0').lines() {
        if line.starts_with(".global ")
            && line.contains("_INTERNAL_")
            && line.contains("2nv6target")
        {
            continue;
        }
        let version = line.strip_prefix(".version").and_then(accepted_version);
        let file = line.trim_start().strip_prefix(".file").and_then(|rest| file(rest, program));
        match version.or(file) {
            Some(better) => tidied.push_str(&better),
            None => tidied.push_str(line.trim_end()),
        }
        tidied.push('\n');
    }
    tidied
}

/// Returns the line in place of a `.version` that is newer than needed.
fn accepted_version(version: &str) -> Option<String> {
    let (major, minor) = version.trim().split_once('.')?;
    let version = (major.parse().ok()?, minor.parse().ok()?);
    let (major, minor) = ACCEPTED_VERSION;
    (version > ACCEPTED_VERSION).then(|| format!(".version {major}.{minor}"))
}

/// Returns the line in place of a `.file` that is a file of the program. `rest` follows `.file`.
fn file(rest: &str, program: &Program) -> Option<String> {
    let (number, rest) = rest.split_once('"')?;
    let (path, rest) = rest.split_once('"')?;
    let path = path.replace('\\', "/");
    let headers = program.headers.iter().map(|header| header.file.as_str());
    let file = headers.chain([program.file.as_str()]).find(|file| base(file) == base(&path))?;
    Some(format!("\t.file\t{} \"{file}\"{rest}", number.trim()))
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns `ptx` with readable names for its kernels, because people read them in reports and
/// profiles: `block_scan_false` where C++ mangles `block_scan<false>` to `_Z10block_scanILb0EE…`.
///
/// `symbols` are pairs of a kernel's name in C++ and in the PTX, and get the new names. Two entries
/// that would have the same name keep their mangled names.
pub(crate) fn rename(ptx: &str, symbols: &mut [(String, String)]) -> String {
    let names: Vec<String> = symbols.iter().map(|(entry, _)| identifier(entry)).collect();
    let mut renamed = ptx.to_owned();
    for (i, (_, symbol)) in symbols.iter_mut().enumerate() {
        let name = &names[i];
        let unique = names.iter().filter(|other| *other == name).count() == 1;
        if unique && !name.is_empty() && symbol.starts_with("_Z") {
            renamed = replace_identifier(&renamed, symbol, name);
            symbol.clone_from(name);
        }
    }
    renamed
}

/// Returns the letters, digits and underscores of a C++ name, with one underscore between them for
/// everything else.
fn identifier(entry: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    entry.split(|c| !is_part(c)).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("_")
}

/// Replaces `symbol` where it is a whole identifier or is followed by `_param_`.
fn replace_identifier(text: &str, symbol: &str, name: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(symbol) {
        let (before, after) = (&rest[..at], &rest[at + symbol.len()..]);
        let alone = !before.ends_with(is_part)
            && (!after.starts_with(is_part) || after.starts_with("_param_"));
        replaced.push_str(before);
        replaced.push_str(if alone { name } else { symbol });
        rest = after;
    }
    replaced + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_the_programs_names_and_versions_are_lowered() {
        let read = |path: &str| match path {
            "scale.cu" => Some("#include \"element.cuh\"\n".into()),
            "element.cuh" => Some("".into()),
            _ => None,
        };
        let program = Program::gather("scale.cu", read).unwrap();
        let written = ".version 9.5\n.target sm_80\n\
                       .global .align 8 .u64 _ZN4_INTERNAL_0_4_x_cu_71882nv6target5sm_90E = 90;\n\t.file\t1 \"/home/me/kernels/scale.cu\"\n\
                       \t.file\t2 \"C:\\\\me\\\\element.cuh\", 12, 34\n\t.file\t3 \"/usr/other.h\"\n\0";
        let expected = ".version 8.0\n.target sm_80\n\t.file\t1 \"kernels/scale.cu\"\n\
                        \t.file\t2 \"kernels/element.cuh\", 12, 34\n\t.file\t3 \"/usr/other.h\"\n";
        assert_eq!(tidy(written, &program), expected);
        assert_eq!(tidy(".version 7.8\n", &program), ".version 7.8\n");
        assert_eq!(tidy(".version 8.0\n", &program), ".version 8.0\n");
    }

    #[test]
    fn kernels_get_readable_names_unless_two_would_be_the_same() {
        let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|&(a, b)| (a.to_owned(), b.to_owned())).collect()
        };
        let mut symbols =
            pairs(&[("f<float, true>", "_Z1fIfE"), ("g", "g"), ("h<int>", "_Z1hIiE")]);
        let ptx = "_Z1fIfE(_Z1fIfE_param_0) _ZZ1fIfEx _Z1fIfEx a_Z1fIfE g _Z1hIiE";
        let renamed = rename(ptx, &mut symbols);
        assert_eq!(
            renamed,
            "f_float_true(f_float_true_param_0) _ZZ1fIfEx _Z1fIfEx a_Z1fIfE g h_int"
        );
        assert_eq!(symbols[0].1, "f_float_true");
        assert_eq!(symbols[1].1, "g");

        let same = pairs(&[("f<a*>", "_Z1"), ("f<a>", "_Z2")]);
        let mut symbols = same.clone();
        assert_eq!(rename("_Z1 _Z2", &mut symbols), "_Z1 _Z2");
        assert_eq!(symbols, same);
    }
}
