//! The check of arguments against a kernel's parameters, and the memory that passes them.
//!
//! A launch passes the driver one host pointer per parameter, and the driver reads as many bytes
//! there as the compiled kernel has. Three rules ensure that it reads nothing else of the host.
//! Arguments are refused if their number or sizes are not those that the PTX declares
//! ([`Declarations`](crate::simt::Declarations)). A module is refused if the driver returns other
//! parameters for it. And the pointers are into a block of copies, with zeros behind them.

use super::argument::Slot;
use crate::simt::Param;

/// A parameter's value as a kernel sees it.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// Up to 16 bytes, from the lowest on.
    Words([u64; 2]),
    /// All bytes.
    Bytes(Vec<u8>),
}

impl Value {
    fn bytes(&self) -> &[u8] {
        match self {
            Value::Words(words) => bytemuck::bytes_of(words),
            Value::Bytes(bytes) => bytes,
        }
    }
}

/// Refuses arguments that do not fit the parameters.
pub(super) fn check(params: &[Param], slots: &[Slot]) -> Result<(), String> {
    let (given, taken) = (slots.len(), params.len());
    if given != taken {
        return Err(format!("{given} arguments were given, and the kernel takes {taken}"));
    }
    for (number, (param, slot)) in (1..).zip(params.iter().zip(slots)) {
        if param.bytes != slot.bytes() {
            let (kind, given, taken) = (slot.kind(), bytes(slot.bytes()), param.bytes);
            return Err(format!(
                "argument {number} is {kind} of {given}, and the kernel takes {taken} there"
            ));
        }
    }
    Ok(())
}

/// `1 byte`, `8 bytes`
fn bytes(count: u32) -> String {
    if count == 1 { "1 byte".to_owned() } else { format!("{count} bytes") }
}

/// Copies of all values, each at its parameter's offset, and zeros elsewhere.
#[derive(Debug)]
pub(crate) struct Packed {
    bytes: Vec<u8>,
    starts: Vec<usize>,
}

impl Packed {
    /// Packs the values of these parameters, with `spare` zero bytes behind the last.
    pub(crate) fn new(params: &[Param], values: &[Value], spare: usize) -> Packed {
        let end = |param: &Param| param.offset as usize + param.bytes as usize;
        let len = params.iter().map(end).max().unwrap_or(0);
        let mut bytes = vec![0; len + spare];
        for (param, value) in params.iter().zip(values) {
            let value = value.bytes();
            let length = value.len().min(param.bytes as usize);
            let start = param.offset as usize;
            bytes[start..start + length].copy_from_slice(&value[..length]);
        }
        Packed { bytes, starts: params.iter().map(|param| param.offset as usize).collect() }
    }

    /// The whole block.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes from the beginning of each parameter to the end of the block.
    pub(crate) fn params(&self) -> impl Iterator<Item = &[u8]> {
        self.starts.iter().map(|&start| &self.bytes[start..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simt::Declarations;

    fn params(list: &str) -> Vec<Param> {
        let ptx = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.entry k({list}) {{ unheard.of; }}"
        );
        Declarations::parse(&ptx).unwrap().entries()[0].params().to_vec()
    }

    fn number(bytes: u32) -> Slot {
        Slot::Number { value: [u64::MAX; 2], bytes }
    }

    #[test]
    fn arguments_have_the_sizes_of_the_parameters() {
        let params = params(".param .u64 out, .param .align 8 .b8 p [4096]");
        for (slots, said) in [
            (vec![], "0 arguments were given, and the kernel takes 2"),
            (
                vec![Slot::Null, number(1), number(1)],
                "3 arguments were given, and the kernel takes 2",
            ),
            (
                vec![Slot::Null, number(1)],
                "argument 2 is a number of 1 byte, and the kernel takes 4096",
            ),
            (
                vec![Slot::Null, Slot::Null],
                "argument 2 is a buffer of 8 bytes, and the kernel takes 4096",
            ),
            (
                vec![number(4), number(1)],
                "argument 1 is a number of 4 bytes, and the kernel takes 8",
            ),
        ] {
            let text = check(&params, &slots).unwrap_err();
            assert!(text.starts_with(said), "{text}");
        }
        assert_eq!(check(&params[..1], &[Slot::Null]), Ok(()));
        assert_eq!(check(&[], &[]), Ok(()));
    }

    #[test]
    fn a_texture_takes_no_argument() {
        let text = check(&params(".param .texref t"), &[Slot::Null]).unwrap_err();
        assert!(text.ends_with("the kernel takes 0 there"), "{text}");
    }

    #[test]
    fn values_are_copied_to_the_offsets_of_their_parameters() {
        let params = params(".param .u8 a, .param .u32 b, .param .b128 c, .param .b8 d[40]");
        let packed = Packed::new(&params, &[const { Value::Words([!0; 2]) }; 4], 100);
        let mut expected = vec![0; 72 + 100];
        for written in [0..1, 4..8, 16..32, 32..48] {
            expected[written].fill(0xff);
        }
        assert_eq!(packed.bytes(), expected);
        let lengths: Vec<_> = packed.params().map(<[u8]>::len).collect();
        assert_eq!(lengths, [172, 168, 156, 140]);
        assert_eq!(Packed::new(&[], &[], 0).bytes(), []);
    }
}
