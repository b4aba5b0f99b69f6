//! A launch's buffers and arguments, laid out before there is a device: bytes, with holes where
//! addresses come.

use std::collections::HashSet;

use simt::Param;

use crate::argument::Value;
use crate::number::Type;
use crate::object::Object;

/// All that a kernel is given.
#[derive(Debug, Default)]
pub struct Plan {
    pub buffers: Vec<Buffer>,
    /// One for each parameter.
    pub arguments: Vec<Piece>,
}

/// A buffer, as it is before the launch.
#[derive(Debug)]
pub struct Buffer {
    pub name: String,
    /// What its bytes are shown as.
    pub ty: Type,
    pub bytes: usize,
    /// `None`: nothing is written to it.
    pub contents: Option<Vec<u8>>,
    pub holes: Vec<Hole>,
    /// What has its bytes as texels.
    pub object: Option<Object>,
}

/// Bytes with the alignment of the widest number in them.
#[derive(Debug, Default, Clone)]
pub struct Piece {
    pub bytes: Vec<u8>,
    pub align: usize,
    pub holes: Vec<Hole>,
}

/// Eight bytes, at an offset, that are an address: of a byte of a buffer, by the buffer's number;
/// or the handle of what has it as texels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hole {
    pub at: usize,
    pub buffer: usize,
    pub offset: u64,
    pub handle: bool,
}

impl Plan {
    /// Makes the buffers of `values` that are no arguments.
    pub fn add(&mut self, values: &[String]) -> Result<(), String> {
        for text in values {
            let value = Value::parse(text)?;
            let wrong = |why| format!("the buffer `{text}`: {why}");
            if !matches!(value, Value::Buffer { .. } | Value::Holding { .. } | Value::Object { .. })
            {
                return Err(wrong("no buffer; say for example `x:f32[1024]=random`".to_owned()));
            }
            self.piece(&value, &format!("buffer{}", self.buffers.len())).map_err(wrong)?;
        }
        Ok(())
    }

    /// Lays out the arguments of a kernel with these parameters.
    pub fn arguments(&mut self, texts: &[String], params: &[Param]) -> Result<(), String> {
        if texts.len() != params.len() {
            let (given, takes) = (texts.len(), params.len());
            return Err(format!(
                "{given} arguments are given, and the kernel takes {takes}: {}",
                shown(params)
            ));
        }
        for (number, (text, param)) in texts.iter().zip(params).enumerate() {
            let wrong = |why: String| format!("argument {number}, `{text}`: {why}");
            let value = Value::parse(text)?;
            let piece = self.piece(&value, &format!("arg{number}")).map_err(wrong)?;
            let (given, takes) = (piece.bytes.len(), param.bytes as usize);
            if given != takes {
                let (ty, count) = (param.ty, takes / bytes_of(param.ty).max(1));
                let array = if count > 1 {
                    format!(" (.{ty}[{count}] in the PTX)")
                } else {
                    format!(" (.{ty} in the PTX)")
                };
                return Err(wrong(format!(
                    "has {given} bytes, and the kernel takes {takes} there{array}"
                )));
            }
            self.arguments.push(piece);
        }
        Ok(())
    }

    /// The number of the buffer of that name.
    pub fn buffer(&self, name: &str) -> Result<usize, String> {
        let found = self.buffers.iter().position(|buffer| buffer.name == name);
        found.ok_or_else(|| {
            let names: Vec<_> = self.buffers.iter().map(|buffer| buffer.name.as_str()).collect();
            let names = if names.is_empty() {
                "there is none".to_owned()
            } else {
                format!("there are {}", names.join(", "))
            };
            format!("there is no buffer `{name}`; {names}")
        })
    }

    fn piece(&mut self, value: &Value, name: &str) -> Result<Piece, String> {
        let seed = self.buffers.len() as u64;
        match value {
            Value::Null => Ok(Piece { bytes: vec![0; 8], align: 8, holes: vec![] }),
            Value::Bytes(bytes) => Ok(Piece { bytes: bytes.clone(), align: 1, holes: vec![] }),
            Value::Numbers { ty, count, fill } => {
                let bytes = fill.bytes(*ty, *count, seed)?.ok_or("a number has to be written")?;
                Ok(Piece { bytes, align: ty.bytes(), holes: vec![] })
            }
            Value::Address { name, offset } => Ok(pointer(self.buffer(name)?, *offset)),
            Value::Struct(parts) => {
                let mut whole = Piece { align: 1, ..Piece::default() };
                for part in parts {
                    let part = self.piece(part, name)?;
                    let at = whole.bytes.len().next_multiple_of(part.align);
                    whole.bytes.resize(at, 0);
                    whole.bytes.extend(part.bytes);
                    whole
                        .holes
                        .extend(part.holes.iter().map(|hole| Hole { at: hole.at + at, ..*hole }));
                    whole.align = whole.align.max(part.align);
                }
                whole.bytes.resize(whole.bytes.len().next_multiple_of(whole.align), 0);
                Ok(whole)
            }
            Value::Buffer { name: own, ty, count, fill } => {
                let contents = fill.bytes(*ty, *count, seed)?;
                let bytes =
                    ty.bytes().checked_mul(*count).ok_or("more bytes than there are addresses")?;
                self.push(own, name, Buffer { contents, ..Buffer::empty(*ty, bytes) })
            }
            Value::Holding { name: own, value } => {
                let piece = self.piece(value, &format!("{name}.held"))?;
                // Of pieces of numbers it shows these, of all others words.
                let ty = match &**value {
                    Value::Numbers { ty, .. } => *ty,
                    _ if piece.bytes.len().is_multiple_of(8) => Type::Unsigned(8),
                    _ => Type::Unsigned(1),
                };
                let (bytes, contents) = (piece.bytes.len(), Some(piece.bytes));
                let buffer = Buffer { contents, holes: piece.holes, ..Buffer::empty(ty, bytes) };
                self.push(own, name, buffer)
            }
            Value::Object { name: own, object, fill } => {
                let (ty, count) = (object.ty(), object.count());
                let contents = fill.bytes(ty, count, seed)?;
                let bytes =
                    ty.bytes().checked_mul(count).ok_or("more bytes than there are addresses")?;
                let object = Some(*object);
                let buffer = Buffer { contents, object, ..Buffer::empty(ty, bytes) };
                let mut piece = self.push(own, name, buffer)?;
                piece.holes.iter_mut().for_each(|hole| hole.handle = true);
                Ok(piece)
            }
        }
    }

    /// A new buffer, and its address.
    fn push(&mut self, own: &Option<String>, name: &str, buffer: Buffer) -> Result<Piece, String> {
        let taken: HashSet<&str> = self.buffers.iter().map(|buffer| buffer.name.as_str()).collect();
        let name = match own {
            Some(own) if taken.contains(own.as_str()) => {
                return Err(format!("there is a buffer `{own}` already; `&{own}` is its address"));
            }
            Some(own) => own.clone(),
            None => {
                let numbered = (1..).map(|number| format!("{name}.{number}"));
                let mut names = std::iter::once(name.to_owned()).chain(numbered);
                names.find(|name| !taken.contains(name.as_str())).unwrap_or_default()
            }
        };
        self.buffers.push(Buffer { name, ..buffer });
        Ok(pointer(self.buffers.len() - 1, 0))
    }
}

impl Buffer {
    /// One that nothing has been written to.
    fn empty(ty: Type, bytes: usize) -> Buffer {
        Buffer { name: String::new(), ty, bytes, contents: None, holes: vec![], object: None }
    }
}

fn pointer(buffer: usize, offset: u64) -> Piece {
    let hole = Hole { at: 0, buffer, offset, handle: false };
    Piece { bytes: vec![0; 8], align: 8, holes: vec![hole] }
}

/// The bytes of a type of PTX.
fn bytes_of(ty: &str) -> usize {
    let bits = ty.trim_start_matches(|c: char| !c.is_ascii_digit());
    bits.parse::<usize>().map_or(1, |bits| bits / 8)
}

/// What a kernel takes, in words.
pub fn shown(params: &[Param]) -> String {
    if params.is_empty() {
        return "nothing".to_owned();
    }
    let one = |param: &Param| match param.bytes as usize / bytes_of(param.ty).max(1) {
        1 => format!(".{}", param.ty),
        count => format!(".{}[{count}]", param.ty),
    };
    params.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(list: &str) -> Vec<Param> {
        let ptx = format!(".version 8.0 .target sm_80 .address_size 64 .entry k({list}) {{}}");
        simt::Declarations::parse(&ptx).unwrap().entries()[0].params().to_vec()
    }

    fn planned(texts: &[&str], list: &str) -> Result<Plan, String> {
        let mut plan = Plan::default();
        let texts: Vec<_> = texts.iter().map(|text| (*text).to_owned()).collect();
        plan.arguments(&texts, &params(list)).map(|()| plan)
    }

    #[test]
    fn structs_are_laid_out_as_in_cpp() {
        let list = ".param .align 8 .b8 s[40]";
        let plan = planned(&["{u8=1; u32=2; u16=3; f32[4]=0; {u8=4; f64=5}}"], list).unwrap();
        let piece = &plan.arguments[0];
        let mut expected = vec![0; 40];
        expected[0] = 1;
        expected[4] = 2;
        expected[8] = 3;
        expected[24] = 4;
        expected[32..].copy_from_slice(&5_f64.to_le_bytes());
        assert_eq!(piece.bytes, expected);
        assert_eq!(piece.holes, [Hole { at: 16, buffer: 0, offset: 0, handle: false }]);
        assert_eq!((plan.buffers[0].name.as_str(), plan.buffers[0].bytes), ("arg0", 16));
    }

    #[test]
    fn buffers_hold_addresses_of_buffers() {
        let list = ".param .u64 a, .param .u64 b";
        let plan = planned(&["x:f32[2]=1", "*{&x+4; null; f32[1]}"], list).unwrap();
        let table = &plan.buffers[2];
        assert_eq!((table.name.as_str(), table.bytes), ("arg1", 24));
        let held = plan.buffer("arg1.held").unwrap();
        let hole = |at, buffer, offset| Hole { at, buffer, offset, handle: false };
        let holes = [hole(0, 0, 4), hole(16, held, 0)];
        assert_eq!(table.holes, holes);
    }

    #[test]
    fn what_does_not_fit_is_told() {
        for (texts, list, said) in [
            (
                &["u32=7"][..],
                ".param .u64 a",
                "argument 0, `u32=7`: has 4 bytes, and the kernel takes 8 there (.u64 in",
            ),
            (&["u32=7"], ".param .align 4 .b8 a[12]", "takes 12 there (.b8[12] in the PTX)"),
            (
                &[],
                ".param .u64 a, .param .b8 b[4]",
                "0 arguments are given, and the kernel takes 2: .u64, .b8[4]",
            ),
            (&["&x"], ".param .u64 a", "there is no buffer `x`; there is none"),
            (
                &["x:f32[1]", "x:f32[1]"],
                ".param .u64 a, .param .u64 b",
                "there is a buffer `x` already; `&x` is",
            ),
            (&["u32=unwritten"], ".param .u32 a", "a number has to be written"),
        ] {
            let error = planned(texts, list).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
