//! The same launch on a GPU, and its bits beside the emulator's.

use linrec::device::{Buffer, Bytes, Device};

use super::row::Row;
use crate::argument::Value;
use crate::name::is_meant;
use crate::number::Type;
use crate::options::extent;
use crate::output::difference;
use crate::plan::{Hole, Plan};

/// Runs a row's kernel on the first GPU and compares every buffer with what the emulator left in it: where they
/// differ, if they do.
pub fn on_gpu(
    row: &Row,
    ptx: &str,
    emulated: &[(String, Vec<u8>)],
) -> Result<Option<String>, String> {
    let written = with_constants(ptx, &row.variables())?;
    let device = Device::cuda(0).map_err(|error| error.to_string())?;
    let module = device.module(&written).map_err(|error| error.to_string())?;
    let mut functions =
        module.functions().filter(|function| super::is_of(row, ptx, function.name()));
    let function = functions.next().ok_or("the driver has no such kernel")?;
    let mut plan = Plan::default();
    plan.arguments(&row.arguments(), function.params())?;
    if plan.buffers.iter().any(|buffer| !buffer.holes.is_empty()) {
        return Err("addresses in memory are written on the emulator only".to_owned());
    }
    if plan.buffers.iter().any(|buffer| buffer.object.is_some()) {
        return Err("textures and surfaces are made on the emulator only".to_owned());
    }
    let mut buffers: Vec<Buffer<u8>> = Vec::new();
    for buffer in &plan.buffers {
        let mut made = device.zeros::<u8>(buffer.bytes).map_err(|error| error.to_string())?;
        if let Some(contents) = &buffer.contents {
            made.upload(contents).map_err(|error| error.to_string())?;
        }
        buffers.push(made);
    }
    let shared = if row.shared.is_empty() {
        0
    } else {
        row.shared.parse().map_err(|_| "no number of bytes")?
    };
    let ([gx, gy, gz], [bx, by, bz]) = (extent(&row.grid)?, extent(&row.block)?);
    // What arguments point to is borrowed until the launch.
    let mut parts = Vec::new();
    for &Hole { buffer, offset, .. } in plan.arguments.iter().flat_map(|piece| &piece.holes) {
        let part = buffers[buffer].slice(offset as usize..);
        parts.push(part.map_err(|error| error.to_string())?);
    }
    let mut launch = function.launch((gx, gy, gz), (bx, by, bz)).shared(shared);
    let mut parts = parts.iter();
    for piece in &plan.arguments {
        let holes = piece.holes.iter().zip(&mut parts);
        let bytes = Bytes::new(piece.bytes.clone());
        launch = launch.arg(holes.fold(bytes, |bytes, (hole, part)| bytes.address(hole.at, part)));
    }
    // As for the emulator: what meets at a barrier of the grid asks for the workspace of such a launch.
    if ptx.contains("%envreg2") {
        launch = launch.cooperative();
    }
    let stream = device.stream();
    launch.run(&stream).map_err(|error| error.to_string())?;
    for (((name, emulated), buffer), planned) in emulated.iter().zip(&buffers).zip(&plan.buffers) {
        let found = buffer.download().map_err(|error| error.to_string())?;
        if let Some(difference) = difference(planned.ty, &found, emulated, 0.0) {
            let farthest = farthest(planned.ty, &found, emulated);
            return Ok(Some(format!("{name}: {difference}{farthest}")));
        }
    }
    Ok(None)
}

/// A module whose constants hold from the first what these variables say, as `simt run --variable` takes them. A compiler of
/// C++ writes arrays and structs as bytes, and no others are known here.
fn with_constants(ptx: &str, variables: &[String]) -> Result<String, String> {
    let mut text = ptx.to_owned();
    for variable in variables {
        let wrong = |why: &str| format!("`{variable}`: {why}");
        let (name, value) = variable.split_once(':').ok_or_else(|| wrong("it has no name"))?;
        let (Value::Buffer { ty, count, fill, .. } | Value::Numbers { ty, count, fill }) =
            Value::parse(value)?
        else {
            return Err(wrong("it is not NAME:TYPE[COUNT]=FILL"));
        };
        let contents = fill.bytes(ty, count, 0)?.ok_or_else(|| wrong("it says no numbers"))?;
        let declared = |line: &&str| {
            let bytes = line.trim_end().strip_suffix("];").and_then(|line| line.split_once(".b8 "));
            bytes.and_then(|(before, array)| Some((before, array.split_once('[')?))).is_some_and(
                |(before, (named, _))| before.contains(".const ") && is_meant(named, name),
            )
        };
        let line = text.lines().find(declared).ok_or_else(|| {
            wrong("only constants that are arrays of bytes in the PTX are written on a GPU, too")
        })?;
        let numbers: Vec<_> = contents.iter().map(u8::to_string).collect();
        let end = format!("] = {{{}}};", numbers.join(", "));
        text = text.replacen(line, &line.replace("];", &end), 1);
    }
    Ok(text)
}

/// How far numbers are apart at most, relative to those above 1.
fn farthest(ty: Type, found: &[u8], expected: &[u8]) -> String {
    let pairs = found.chunks(ty.bytes()).zip(expected.chunks(ty.bytes()));
    let apart = pairs.map(|(a, b)| (ty.value(a) - ty.value(b)).abs() / ty.value(b).abs().max(1.0));
    format!(", {:.1e} apart at most", apart.fold(0.0, f64::max))
}

#[cfg(test)]
mod tests {
    use simt::{Memory, Module};

    use super::*;
    use crate::run::variables;

    /// What a module holds from the first is what is written to its variables before a launch.
    #[test]
    fn constants_hold_what_is_written_to_them() {
        let ptx = "\
.version 8.0
.target sm_80
.address_size 64
.global .align 4 .b8 other[8];
.const .align 4 .b8 _Z4maskIfE[16];
.const .align 4 .b8 one[4];
.visible .entry k() { ret; }
";
        let asked = ["_Z4maskIfE:f32[3]=0.5,2,-1", "one:u32=258"].map(str::to_owned);
        let written = with_constants(ptx, &asked).unwrap();
        assert_eq!(written.lines().count(), ptx.lines().count());
        let (before, after) = (Module::parse(ptx).unwrap(), Module::parse(&written).unwrap());
        let [one, two] = [Memory::new(1 << 20), Memory::new(1 << 20)];
        variables(&before, &one, &asked).unwrap();
        let held = |memory: &Memory, module: &Module| {
            let all = memory.variables(module).unwrap();
            let bytes = |variable: &simt::Variable| {
                let mut bytes = vec![0; variable.bytes as usize];
                memory.read(variable.address, &mut bytes).unwrap();
                bytes
            };
            all.iter()
                .map(|variable| (variable.name.to_string(), bytes(variable)))
                .collect::<Vec<_>>()
        };
        let expected = held(&one, &before);
        assert_eq!(held(&two, &after), expected);
        assert!(expected.iter().any(|(_, bytes)| bytes[..] == [2, 1, 0, 0]), "{expected:?}");

        for (asked, said) in
            [("other:u32[2]=1", "only constants"), ("one:u32[1]", "no numbers"), ("one", "no name")]
        {
            let error = with_constants(ptx, &[asked.to_owned()]).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
