//! The kernels that a PTX text declares, and the parameters of each.
//!
//! A launch hands the driver one host pointer per parameter, and the driver reads as many bytes as
//! the PTX says. So the sizes must be known of every PTX that the driver takes, those included
//! that the emulator does not: this reads the declarations and nothing else.

use crate::simt::Param;

/// A kernel's name and parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Signature {
    pub(crate) name: String,
    pub(crate) params: Vec<Param>,
}

/// The kernels of a PTX text, in its order; an error quotes what is not understood.
pub(crate) fn signatures(ptx: &str) -> Result<Vec<Signature>, String> {
    let ptx = without_comments(ptx);
    let mut found = Vec::new();
    let mut rest = ptx.as_str();
    while let Some(at) = rest.find(".entry") {
        rest = &rest[at + ".entry".len()..];
        if !rest.starts_with(char::is_whitespace) {
            continue;
        }
        rest = rest.trim_start();
        let end = rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        rest = after.trim_start();
        let mut params = Vec::new();
        if let Some(list) = rest.strip_prefix('(') {
            let end = list
                .find(')')
                .ok_or_else(|| format!("the parameters of the kernel `{name}` have no end"))?;
            params = parameters(name, &list[..end])?;
            rest = &list[end..];
        }
        found.push(Signature { name: name.to_owned(), params });
    }
    Ok(found)
}

fn parameters(kernel: &str, list: &str) -> Result<Vec<Param>, String> {
    let mut params = Vec::new();
    let mut end = 0;
    for declaration in list.split(',').map(str::trim).filter(|text| !text.is_empty()) {
        let refused =
            || format!("the parameter `{declaration}` of the kernel `{kernel}` is not understood");
        let (name, bytes, align) = parameter(declaration).ok_or_else(refused)?;
        let offset = u32::checked_next_multiple_of(end, align).ok_or_else(refused)?;
        end = offset.checked_add(bytes).ok_or_else(refused)?;
        params.push(Param { name: name.into(), bytes, offset });
    }
    Ok(params)
}

/// Name, size and alignment of `.param .u64 .ptr .global .align 4 name` or
/// `.param .align 8 .b8 name[16]`.
fn parameter(declaration: &str) -> Option<(&str, u32, u32)> {
    let mut words = declaration.split_whitespace();
    if words.next() != Some(".param") {
        return None;
    }
    let (mut size, mut align, mut of_target) = (None, None, false);
    for word in words {
        match word {
            ".ptr" => of_target = true,
            ".align" | ".global" | ".shared" | ".const" | ".local" | ".generic" => {}
            // The alignment of what a pointer points to is not the parameter's.
            _ if word.starts_with(|c: char| c.is_ascii_digit()) => {
                if !of_target {
                    align = Some(word.parse().ok().filter(|align: &u32| align.is_power_of_two())?);
                }
            }
            _ if word.starts_with('.') => size = Some(type_bytes(word)?),
            _ => {
                let size = size?;
                let (name, bytes) = match word.split_once('[') {
                    None => (word, size),
                    Some((name, count)) => {
                        let count: u32 = count.strip_suffix(']')?.parse().ok()?;
                        (name, size.checked_mul(count).filter(|&bytes| bytes <= 1 << 16)?)
                    }
                };
                return Some((name, bytes, align.unwrap_or(size)));
            }
        }
    }
    None
}

fn type_bytes(name: &str) -> Option<u32> {
    Some(match name {
        ".b8" | ".u8" | ".s8" => 1,
        ".b16" | ".u16" | ".s16" | ".f16" | ".bf16" => 2,
        ".b32" | ".u32" | ".s32" | ".f32" | ".f16x2" | ".bf16x2" => 4,
        ".b64" | ".u64" | ".s64" | ".f64" => 8,
        ".b128" => 16,
        _ => return None,
    })
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%')
}

/// The text with a space in place of every comment and of every string.
fn without_comments(ptx: &str) -> String {
    let mut text = String::with_capacity(ptx.len());
    let mut rest = ptx;
    while let Some(at) = rest.find(['/', '"']) {
        let (before, from) = rest.split_at(at);
        text.push_str(before);
        let end = if from.starts_with("//") {
            from.find('\n')
        } else if let Some(comment) = from.strip_prefix("/*") {
            comment.find("*/").map(|end| end + "/**/".len())
        } else if let Some(string) = from.strip_prefix('"') {
            string.find('"').map(|end| end + 2)
        } else {
            text.push('/');
            rest = &from[1..];
            continue;
        };
        text.push(' ');
        rest = end.map_or("", |end| &from[end..]);
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(ptx: &str) -> Vec<(String, Vec<(u32, u32)>)> {
        let of = |params: &[Param]| params.iter().map(|p| (p.bytes, p.offset)).collect();
        let found = signatures(ptx).unwrap();
        found.iter().map(|kernel| (kernel.name.clone(), of(&kernel.params))).collect()
    }

    #[test]
    fn parameters_have_their_sizes_and_places() {
        let ptx = "// .entry not_this(\n/* .entry nor_this( */ .file 1 \".entry nor(this\"\n\
            .visible .entry _Z1kPf$0(\n\t.param .u64 .ptr .global .align 16 k_param_0,\n\
            \t.param .u8 k_param_1, .param .f32 c,\n\t.param .align 8 .b8 d[16]\n)\n{ ret; }\n\
            .entry none() { ret; }\n.weak .entry bare { ret; }";
        assert_eq!(
            sizes(ptx),
            [
                ("_Z1kPf$0".to_owned(), vec![(8, 0), (1, 8), (4, 12), (16, 16)]),
                ("none".to_owned(), vec![]),
                ("bare".to_owned(), vec![]),
            ]
        );
    }

    #[test]
    fn what_is_not_understood_is_quoted() {
        for (ptx, said) in [
            (".entry k(.param .u64 a", "the parameters of the kernel `k` have no end"),
            (".entry k(.param .v9 a)", "the parameter `.param .v9 a` of the kernel `k`"),
            (".entry k(.param .b8 a[99999999])", "a[99999999]"),
            (".entry k(.reg .u64 a)", ".reg .u64 a"),
            (".entry k(.param .align 3 .b8 a[8])", ".align 3"),
            (".entry k(.param)", "`.param`"),
        ] {
            let error = signatures(ptx).unwrap_err();
            assert!(error.contains(said), "{ptx}: {error}");
        }
    }

    #[test]
    fn odd_texts_do_not_panic() {
        for ptx in
            ["", ".entry", ".entry ", "/", "\"", "/*", ".entry é(", "é/é", ".entry k(.param é)"]
        {
            let _ = signatures(ptx);
        }
    }

    /// The emulator parses every PTX that is shipped in full; both must agree on what it takes.
    #[test]
    fn it_agrees_with_the_emulator() {
        for (name, ptx) in crate::kernels::shipped() {
            let module = crate::simt::Module::parse(ptx.text()).unwrap();
            let kernels: Vec<_> = module
                .kernels()
                .map(|kernel| Signature {
                    name: kernel.name().to_owned(),
                    params: kernel.params().to_vec(),
                })
                .collect();
            let mut found = signatures(ptx.text()).unwrap();
            assert_eq!(found.len(), kernels.len(), "{name}");
            for kernel in kernels {
                found.retain(|signature| *signature != kernel);
            }
            assert!(found.is_empty(), "{name}: {found:?}");
        }
    }
}
