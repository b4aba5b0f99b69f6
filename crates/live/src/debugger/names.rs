//! Guesses the C++ names of the registers and places of the PTX.
//!
//! Optimised PTX does not name the variable that a register holds, but it has the source line of
//! each instruction. The register that a line of the form `name = …` writes last gets this name.
//! Parameters and their copies get their names from the kernel's head.

use std::collections::{BTreeMap, HashMap};

use simt::Kernel;

/// Returns the C++ names of the PTX registers that have one.
pub fn of_registers(
    kernel: &Kernel,
    ptx: &[&str],
    sources: &BTreeMap<String, Vec<String>>,
    symbol: &str,
) -> HashMap<String, String> {
    let params = params(sources, symbol);
    let mut names: HashMap<String, Option<String>> = HashMap::new();
    let mut pc = 0;
    while pc < kernel.instructions() as u32 {
        let place = kernel.source(pc);
        let end = (pc..kernel.instructions() as u32)
            .find(|&other| kernel.source(other) != place)
            .unwrap_or(kernel.instructions() as u32);
        let line = place.and_then(|(file, line)| sources.get(file)?.get(line as usize - 1));
        let assigned = line.and_then(|line| assigned(line));
        for at in pc..end {
            let Some(register) = kernel.writes(at) else { continue };
            let last = at + 1 == end;
            let name = given(kernel, at, ptx, &params, &names).or_else(|| {
                let (name, kind) = assigned.filter(|_| last)?;
                kind.fits(register).then(|| name.to_owned())
            });
            // A register that is written twice has a name only if both names are the same.
            match names.get_mut(register) {
                Some(known) if *known != name => *known = None,
                Some(_) => {}
                None => drop(names.insert(register.to_owned(), name)),
            }
        }
        pc = end;
    }
    names.into_iter().filter_map(|(register, name)| Some((register, name?))).collect()
}

/// Returns the name of the parameter that an instruction loads, or of the register or special
/// register that it copies.
fn given(
    kernel: &Kernel,
    pc: u32,
    ptx: &[&str],
    params: &[String],
    names: &HashMap<String, Option<String>>,
) -> Option<String> {
    let (line, opcode) = kernel.instruction(pc);
    let text = ptx.get(line as usize - 1)?.trim().trim_end_matches(';');
    if opcode.starts_with("ld.param") {
        let (_, number) = text.trim_end_matches(']').rsplit_once("_param_")?;
        return params.get(number.parse::<usize>().ok()?).cloned();
    }
    if !(opcode.starts_with("mov.") || opcode.starts_with("cvta.")) {
        return None;
    }
    let operand = text.rsplit_once(',')?.1.trim();
    match operand {
        "%tid.x" => Some("threadIdx.x".to_owned()),
        "%ntid.x" => Some("blockDim.x".to_owned()),
        "%ctaid.x" => Some("blockIdx.x".to_owned()),
        "%nctaid.x" => Some("gridDim.x".to_owned()),
        _ => names.get(operand).cloned().flatten(),
    }
}

/// The kind of number that a line assigns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Whole,
    Long,
    Float,
    /// The line has no type. It may not be an address, because assignments also compute addresses.
    Any,
}

impl Kind {
    /// Returns true if such a number may be in this register, whose name in PTX gives its size.
    fn fits(self, register: &str) -> bool {
        let family = register.trim_end_matches(|c: char| c.is_ascii_digit());
        match self {
            Kind::Whole => family == "%r",
            Kind::Long => family == "%rd",
            Kind::Float => ["%f", "%fd"].contains(&family),
            Kind::Any => ["%f", "%fd", "%r"].contains(&family),
        }
    }
}

/// Returns the name that a line assigns, `x`, `x[i]` or `carry.state`, and its kind. Returns `None`
/// for types with several numbers.
fn assigned(line: &str) -> Option<(&str, Kind)> {
    let line = line.split("//").next().unwrap_or_default().trim_start();
    let at = line.match_indices('=').map(|(at, _)| at).find(|&at| {
        let before = line[..at].chars().next_back();
        !line[at + 1..].starts_with('=') && !before.is_some_and(|c| "=!<>".contains(c))
    })?;
    let target = line[..at].trim_end_matches(['+', '-', '*', '/', '%', '|', '&', '^', ' ']);
    // The name begins behind the last blank that is not in brackets.
    let mut depth = 0;
    let start = target.char_indices().rev().find(|&(_, c)| {
        depth += i32::from(c == ']') - i32::from(c == '[');
        depth == 0 && !(c.is_ascii_alphanumeric() || "_.]>-[".contains(c))
    });
    let (ty, name) = target.split_at(start.map_or(0, |(at, c)| at + c.len_utf8()));
    let kind = match ty.trim().trim_start_matches("const ") {
        "" => Kind::Any,
        "int" | "unsigned" => Kind::Whole,
        "long long" | "unsigned long long" => Kind::Long,
        "float" | "double" | "T" => Kind::Float,
        _ => return None,
    };
    let named = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && depth == 0;
    named.then_some((name, kind))
}

/// Returns the names of a kernel's parameters, from its head in the source.
fn params(sources: &BTreeMap<String, Vec<String>>, symbol: &str) -> Vec<String> {
    for lines in sources.values() {
        let text = lines.join("\n");
        let heads = text.match_indices('(').map(|(at, _)| {
            let name = text[..at].trim_end();
            let start = name.rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            (&name[start.map_or(0, |start| start + 1)..], &text[at + 1..])
        });
        // The symbol is the kernel's name, followed by its template arguments.
        let is_head = |name: &str| {
            !name.is_empty()
                && symbol
                    .strip_prefix(name)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        };
        for (name, rest) in heads {
            if !is_head(name) {
                continue;
            }
            let Some(list) = rest.find(')').map(|end| &rest[..end]) else { continue };
            return split(list).into_iter().map(last_name).collect();
        }
    }
    Vec::new()
}

/// Splits a list at the commas that are not in angle brackets.
fn split(list: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, c) in list.char_indices() {
        depth += i32::from(c == '<') - i32::from(c == '>');
        if c == ',' && depth == 0 {
            parts.push(&list[start..at]);
            start = at + 1;
        }
    }
    parts.push(&list[start..]);
    parts
}

fn last_name(part: &str) -> String {
    let part = part.trim();
    let start = part.rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    part[start.map_or(0, |start| start + 1)..].to_owned()
}

/// Returns the last name in a mangled name: `totals` in `_ZZ3fooE6totals`.
pub fn unmangled(name: &str) -> &str {
    let mut starts = name.char_indices().map(|(at, _)| at).filter(|&at| at > 0);
    // The last match counts: a template argument may happen to be the number of characters behind
    // it.
    let whole = starts.rfind(|&at| {
        let before = &name[..at];
        let scope = before.trim_end_matches(|c: char| c.is_ascii_digit());
        // The length follows the `E` of a function: the name in `5row1x` is not `x`, and `16totals`
        // is not a 1 and `6totals`.
        scope.ends_with(['E', 'Z'])
            && before[scope.len()..].parse() == Ok(name.len() - at)
            && !name[at..].starts_with(|c: char| c.is_ascii_digit())
    });
    whole.map_or(name, |at| &name[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_assigns_a_name() {
        for (line, name) in [
            ("    const int most = (len + 3) / 4;  // a = b", Some(("most", Kind::Whole))),
            ("    states[i] = fma(states[i - 1], c, x);", Some(("states[i]", Kind::Any))),
            ("    delta[i + 1] *= previous;", Some(("delta[i + 1]", Kind::Any))),
            ("    before.coeff = 1;", Some(("before.coeff", Kind::Any))),
            ("    const T start = initial ? initial[0] : T(0);", Some(("start", Kind::Float))),
            ("    long long first = 7;", Some(("first", Kind::Long))),
            ("    for (int i = 0; i < n; i++) x[i] = 1;", None),
            ("    if (a == b && c <= d) return;", None),
            ("    return {first.coeff, state};", None),
            ("    const Share mine = share<4>(len);", None),
            ("    Transition<T> a, b;", None),
        ] {
            assert_eq!(assigned(line), name, "{line}");
        }
        assert!(Kind::Whole.fits("%r12") && !Kind::Whole.fits("%rd1") && !Kind::Any.fits("%p1"));
    }

    #[test]
    fn parameters_have_the_names_in_the_head() {
        let source = "// f(x)\n__global__ void __launch_bounds__(32)\n    scan(const Pair<int, float>* inputs,\n  int n) {";
        let lines = source.lines().map(str::to_owned).collect();
        let sources = BTreeMap::from([("a.cu".to_owned(), lines)]);
        assert_eq!(params(&sources, "scan_float_3"), ["inputs", "n"]);
        assert_eq!(params(&sources, "scanner"), Vec::<String>::new());
    }

    #[test]
    fn the_last_name_of_a_mangled_name_is_found() {
        assert_eq!(unmangled("_ZZ4scanIfLi4EEvPKT_xE6totals"), "totals");
        assert_eq!(unmangled("_Z6totals"), "totals");
        assert_eq!(unmangled("_ZZ4scanIfLi16EEvPKT_xE6totals"), "totals");
        assert_eq!(unmangled("_ZZ4scanIfE18vvvvvvvvvvE6totals"), "totals");
        assert_eq!(unmangled("_ZZ4scanvE5row1x"), "row1x");
        assert_eq!(unmangled("totals"), "totals");
    }
}
