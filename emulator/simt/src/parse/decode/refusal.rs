//! Refusals of instructions, with the reasons for unknown ones.

use crate::parse::source::lexer::show;

/// The reason why an instruction is refused.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The emulator does not know the opcode with these modifiers.
    Unknown,
    /// Another error.
    Because(String),
}

impl<S: Into<String>> From<S> for Refusal {
    fn from(reason: S) -> Self {
        Refusal::Because(reason.into())
    }
}

/// Returns a sentence for an opcode that the emulator does not know, or not with these modifiers.
pub(super) fn unknown(parts: &[&str]) -> String {
    let opcode = show(&parts.join("."));
    let sentence = format!("`{opcode}` is not an instruction that the emulator knows");
    match reason(parts) {
        Some(reason) => format!("{sentence}: {reason}"),
        None => sentence,
    }
}

fn reason(parts: &[&str]) -> Option<&'static str> {
    let has = |modifier: &str| parts[1..].contains(&modifier);
    Some(match parts[0] {
        "brx" => {
            "branches to a computed target are not supported: only `brx.idx`, with a list of `.branchtargets`"
        }
        "tex" if has("cube") || has("acube") || has("2dms") || has("a2dms") => {
            "there are no textures of cubes (`texCubemap`), nor of several samples"
        }
        "tex" if has("grad") => {
            "a texture has one level here, which derivatives do not choose: fetch with `tex1D`, `tex2D`, `tex3D`"
        }
        "tex" if has("s32") && !has("1d") => {
            "textures are read by floats, and linear memory by one integer (`tex1Dfetch`)"
        }
        "tex" => "of fetches there are those of four `f32`, `s32` or `u32`: `.v4`",
        "tld4" => "texels are fetched one by one: there is no `tex2Dgather`",
        "txq" | "suq" => {
            "a texture or surface is asked for `width`, `height`, `depth`, `array_size` and `normalized_coords`"
        }
        "suld" | "sust" if has("p") => {
            "surfaces are read and written by their bytes (`.b`), as `surf2Dread` and its like do"
        }
        "suld" | "sust" => {
            "surfaces are read and written as `.b8` to `.b64`, 16 bytes at most, with `.trap`, `.clamp` or `.zero`"
        }
        "sured" => "there are no reductions on surfaces: use atomics on the buffer",
        "wgmma" | "tcgen05" => "there are no tensor cores",
        "mma" | "wmma" if has("sp") || has("sp::ordered_metadata") => {
            "there are no products of sparse matrices: multiply them as dense ones, with `mma.sync` or `nvcuda::wmma`"
        }
        "mma" | "wmma" => {
            "matrices are multiplied in the shapes and types of an A100, `f16`, `bf16`, `tf32`, `f64` and integers, with `nvcuda::wmma` \
             or the form `mma.sync.aligned`"
        }
        "ldmatrix" | "stmatrix" => {
            "of rows of matrices there are those of halves, `.m8n8` with `.b16`: one, two or four matrices"
        }
        "mbarrier" if has("shared::cluster") => "there are no clusters of blocks",
        "mbarrier" if has("complete_tx") => {
            "bytes of bulk copies are counted by the copies themselves: `cp.async.bulk` with `mbarrier::complete_tx::bytes`"
        }
        "mbarrier" if !has("shared") && !has("shared::cta") && has("b64") => {
            "only the form with `.shared` is supported"
        }
        "clusterlaunchcontrol" | "griddepcontrol" | "getctarank" | "mapa" => {
            "it needs what an A100 does not have, or more than one kernel"
        }
        "vadd" | "vsub" | "vabsdiff" | "vmin" | "vmax" | "vshl" | "vshr" | "vmad" | "vset"
            if ["sat", "min", "max", "shr7", "shr15"].into_iter().any(has) =>
        {
            "GPUs compute this scalar video instruction in another way than PTX says; compute it in 64 bits"
        }
        "isspacep" if has("const") => {
            "constant memory is in global memory here, so it has no separate addresses"
        }
        "vote" | "shfl" | "match" | "elect" if !has("sync") => {
            "only the form with `.sync` is supported"
        }
        "st" | "atom" | "red" if has("const") => "kernels only read constant memory",
        "cp" if has("tensor") => {
            "there are no tensor maps: copy rows with `cp.async.bulk`, which is `cuda::memcpy_async`"
        }
        "cp" if has("multicast::cluster") => "there are no clusters of blocks",
        "cp" if has("bulk") || has("mbarrier") => {
            "of bulk copies there are those from global to shared memory with an mbarrier and back with groups, without reductions"
        }
        "ld" | "st" | "atom" | "red" | "fence" | "barrier" if has("cluster") => {
            "there are no clusters of blocks"
        }
        "ld" | "st" if has("v8") => "no access is wider than 16 bytes",
        "add" | "sub" | "mad" | "addc" | "subc" | "madc"
            if has("cc") || parts[0].ends_with('c') =>
        {
            "the carry flag is that of 32- and 64-bit integers"
        }
        "ex2" if has("bf16") || has("bf16x2") => "of bf16 there is the form with `.ftz`",
        "lg2" | "rcp" | "rsqrt" | "sqrt" | "sin" | "cos"
            if has("f16") || has("f16x2") || has("bf16") || has("bf16x2") =>
        {
            "the approximate functions are those of f32"
        }
        _ => return None,
    })
}
