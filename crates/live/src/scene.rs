//! A scene: a kernel, its launch, and the sizes that a reader may choose.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::Deserialize;
use serde_json::{Value, json};
use simt::{Launch, Memory, Module, Stepper};

use crate::expression::evaluate;
use crate::values::{self, Type};

/// A scene as a page delivers it.
#[derive(Debug, Deserialize)]
pub struct Scene {
    /// The PTX, and the name of the kernel in it, for the variant that a reader has chosen.
    pub ptx: String,
    pub symbol: String,
    /// The source files, by their names in the PTX.
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
    /// Blocks of the grid, and threads of a block.
    pub grid: Extents,
    pub block: Extents,
    /// Bytes of dynamic shared memory.
    #[serde(default)]
    pub dynamic_shared: Option<String>,
    /// True if the blocks wait for each other. A scene may leave it out if the kernel contains the
    /// instructions for that.
    #[serde(default)]
    pub cooperative: bool,
    /// The sizes that a reader may choose: the first value, the smallest and the largest.
    #[serde(default)]
    pub sizes: BTreeMap<String, [i64; 3]>,
    /// The arguments in the kernel's order: `inputs: f32[rows * len] = noise`, `outputs: f32[len]`,
    /// `initial: null`, `seq_len: i64 = len`.
    pub arguments: Vec<String>,
}

/// An extent along x alone, or along x, y and z.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Extents {
    One(String),
    Three([String; 3]),
}

/// A buffer of a launch.
#[derive(Debug)]
pub struct Array {
    pub name: String,
    pub ty: Type,
    pub count: usize,
    pub address: u64,
}

/// The largest number of instructions of warps in a scene.
const MOST_STEPS: u64 = 1 << 20;
/// The largest sizes in bytes: of all arrays, which are saved for many steps, and of the rest of a
/// launch.
const MOST_BYTES: u64 = 8 << 20;
const HOST_BYTES: u64 = 256 << 20;
/// The numbers of elements that an array may have.
const COUNTS: RangeInclusive<i64> = 0..=1 << 20;

impl Scene {
    /// Returns the chosen sizes within their bounds. A size that is not chosen has its first value.
    pub fn sizes(&self, chosen: &BTreeMap<String, i64>) -> BTreeMap<String, i64> {
        let size = |(name, &[first, least, most]): (&String, &[i64; 3])| {
            let value = chosen.get(name).copied().unwrap_or(first);
            (name.clone(), value.max(least).min(most))
        };
        self.sizes.iter().map(size).collect()
    }

    /// Runs the launch. `data` has contents of arrays, by their names.
    pub fn launch(
        &self,
        sizes: &BTreeMap<String, i64>,
        data: &BTreeMap<String, String>,
    ) -> Result<(Stepper, Vec<Array>), String> {
        let number = |text: &str| evaluate(text, &|name| sizes.get(name).copied());
        let module = Module::parse_named(&self.ptx).map_err(|error| error.to_string())?;
        let kernel = module.kernel(&self.symbol);
        let kernel = kernel.ok_or_else(|| match module.refusal(&self.symbol) {
            Some(refusal) => refusal.to_string(),
            None => format!("the PTX has no kernel `{}`", self.symbol),
        })?;

        let memory = Memory::new(MOST_BYTES);
        let mut arrays = Vec::new();
        let mut arguments = Vec::new();
        for line in &self.arguments {
            let argument = Argument::read(line, &number)?;
            let param = kernel.params().get(arguments.len());
            let param =
                param.ok_or_else(|| format!("`{line}`: the kernel takes no more arguments"))?;
            let value = argument.place(&memory, data, &mut arrays)?;
            if value.len() != param.bytes as usize {
                let (has, takes) = (value.len(), param.bytes);
                return Err(format!("`{line}` has {has} bytes, and the kernel takes {takes}"));
            }
            arguments.push((param.offset as usize, value));
        }
        if let Some(param) = kernel.params().get(arguments.len()) {
            return Err(format!("the kernel's `{}` has no value", param.name));
        }
        let mut bytes = vec![0; kernel.param_bytes() as usize];
        for (offset, value) in arguments {
            bytes[offset..offset + value.len()].copy_from_slice(&value);
        }

        let extent = |text: &str| {
            let value = number(text)?;
            u32::try_from(value).map_err(|_| format!("`{text}` is {value}"))
        };
        let extents = |extents: &Extents| match extents {
            Extents::One(x) => Ok::<_, String>([extent(x)?, 1, 1]),
            Extents::Three([x, y, z]) => Ok([extent(x)?, extent(y)?, extent(z)?]),
        };
        let mut launch = Launch::new(kernel, extents(&self.grid)?, extents(&self.block)?, &bytes);
        launch.dynamic_shared = self.dynamic_shared.as_deref().map_or(Ok(0), extent)?;
        launch.instructions = MOST_STEPS;
        launch.host_bytes = HOST_BYTES;
        let stepper = Stepper::new(launch, memory, self.cooperative || kernel.communicates());
        Ok((stepper.map_err(|report| report.to_string())?, arrays))
    }
}

/// Returns the kernels of a module with their parameters, and the number of operations that leave
/// their rounding to the driver.
pub fn kernels(ptx: &str) -> Result<Value, String> {
    let module = Module::parse_named(ptx).map_err(|error| error.to_string())?;
    let kernels = module.kernels().map(|kernel| {
        let params = kernel
            .params()
            .iter()
            .map(|param| json!({ "name": &*param.name, "type": param.ty, "bytes": param.bytes }));
        json!({ "name": kernel.name(), "params": params.collect::<Vec<_>>() })
    });
    let (kernels, unrounded): (Vec<Value>, _) = (kernels.collect(), module.unrounded().len());
    if kernels.is_empty() {
        // If a kernel is not emulated, the reason is the error.
        module.complete().map_err(|refusal| refusal.to_string())?;
        return Err("the PTX has no kernel (`.entry`)".to_owned());
    }
    Ok(json!({ "kernels": kernels, "unrounded": unrounded }))
}

/// An argument of the kernel.
#[derive(Debug, PartialEq)]
enum Argument {
    Array { name: String, ty: Type, count: usize, values: Option<String> },
    Number(Vec<u8>),
    Null,
}

impl Argument {
    fn read(line: &str, number: &dyn Fn(&str) -> Result<i64, String>) -> Result<Argument, String> {
        let wrong = |what: &str| format!("`{line}`: {what}");
        let (name, rest) = line.split_once(':').ok_or_else(|| wrong("`name: type` is expected"))?;
        let (ty, value) = match rest.split_once('=') {
            Some((ty, value)) => (ty.trim(), Some(value.trim())),
            None => (rest.trim(), None),
        };
        if ty == "null" {
            return Ok(Argument::Null);
        }
        let Some((element, count)) = ty.split_once('[') else {
            let value = value.ok_or_else(|| wrong("a number needs a value"))?;
            let ty = Type::named(ty)?;
            let fraction = value.parse().ok().filter(|_| ty.is_float());
            return Ok(Argument::Number(match fraction {
                Some(fraction) => ty.encode(fraction),
                None => ty.encode_whole(number(value)?),
            }));
        };
        let count = count.strip_suffix(']').ok_or_else(|| wrong("`]` is missing"))?;
        let count = number(count)?;
        if !COUNTS.contains(&count) {
            return Err(wrong(&format!("{count} elements, at most {}", COUNTS.end())));
        }
        Ok(Argument::Array {
            name: name.trim().to_owned(),
            ty: Type::named(element.trim())?,
            count: count as usize,
            values: value.map(str::to_owned),
        })
    }

    /// Returns the bytes of the argument. Allocates its array and fills it.
    fn place(
        self,
        memory: &Memory,
        data: &BTreeMap<String, String>,
        arrays: &mut Vec<Array>,
    ) -> Result<Vec<u8>, String> {
        let (name, ty, count, values) = match self {
            Argument::Null => return Ok(vec![0; 8]),
            Argument::Number(bytes) => return Ok(bytes),
            Argument::Array { name, ty, count, values } => (name, ty, count, values),
        };
        let bytes = (count * ty.bytes()) as u64;
        let address = memory.allocate(&name, bytes).map_err(|error| error.to_string())?;
        // The kernel writes the arrays that the scene does not fill.
        if let Some(values) = values {
            let values = data.get(&name).unwrap_or(&values);
            let elements =
                values::elements(values, count).map_err(|what| format!("{name}: {what}"))?;
            let bytes: Vec<u8> = elements.into_iter().flat_map(|value| ty.encode(value)).collect();
            memory.write(address, &bytes).map_err(|error| error.to_string())?;
        }
        arrays.push(Array { name, ty, count, address });
        Ok(address.to_le_bytes().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Argument, String> {
        Argument::read(line, &|text| evaluate(text, &|name| (name == "len").then_some(7)))
    }

    #[test]
    fn arguments_are_read() {
        let values = Some("noise".to_owned());
        let (name, ty, count) = ("inputs".to_owned(), Type::F32, 14);
        let array = Argument::Array { name, ty, count, values };
        assert_eq!(read("inputs: f32[2 * len] = noise"), Ok(array));
        assert_eq!(read("n: i64 = len"), Ok(Argument::Number(7_i64.to_le_bytes().to_vec())));
        assert_eq!(read("a: f32 = 0.5"), Ok(Argument::Number(0.5_f32.to_le_bytes().to_vec())));
        assert_eq!(read("a: f32 = len"), Ok(Argument::Number(7_f32.to_le_bytes().to_vec())));
        assert_eq!(read("initial: null"), Ok(Argument::Null));
        for (line, what) in [
            ("n", "`name: type` is expected"),
            ("n: i64", "needs a value"),
            ("x: f32[len", "`]` is missing"),
            ("x: f32[0 - 1]", "-1 elements"),
            ("x: half[1]", "no type `half`"),
        ] {
            let error = read(line).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
    }
}
