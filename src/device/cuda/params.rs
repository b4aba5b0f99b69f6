//! The parameters of a kernel as the driver compiled it, against those that the PTX declares.

use crate::simt::Param;

/// Offset and size of a parameter, in bytes.
pub(super) type ParamPlace = (usize, usize);

/// The largest alignment for which offsets do not depend on the address of the first parameter.
const BASE_ALIGN: u32 = 16;

/// Refuses parameters that the driver compiled in another way than the PTX declares them.
pub(super) fn compare(declared: &[Param], compiled: &[ParamPlace]) -> Result<(), String> {
    for (number, (param, &(offset, bytes))) in (1..).zip(declared.iter().zip(compiled)) {
        let before = &declared[..number];
        // An opaque parameter has no place, and behind a wide alignment places depend on the GPU.
        let has_place = param.bytes > 0 && before.iter().all(|param| param.align <= BASE_ALIGN);
        let moved = has_place && offset != param.offset as usize;
        if bytes != param.bytes as usize || moved {
            return Err(format!(
                "its parameter {number}, `{}`, is declared at byte {} with a size of {} and compiled at byte \
                 {offset} with a size of {bytes}",
                param.name, param.offset, param.bytes
            ));
        }
    }
    if declared.len() == compiled.len() {
        return Ok(());
    }
    Err(format!(
        "{} parameters are declared, and the driver compiled {}",
        declared.len(),
        compiled.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simt::Declarations;

    fn compared(list: &str, compiled: &[ParamPlace]) -> Result<(), String> {
        let ptx = format!(".version 8.0\n.target sm_80\n.address_size 64\n.entry k({list}) {{}}");
        let declarations = Declarations::parse(&ptx).unwrap();
        compare(declarations.entries()[0].params(), compiled)
    }

    #[test]
    fn what_the_driver_compiled_is_what_was_declared() {
        let list = ".param .u8 a, .param .align 8 .b8 b[4096]";
        assert_eq!(compared(list, &[(0, 1), (8, 4096)]), Ok(()));
        assert_eq!(compared("", &[]), Ok(()));
        for (compiled, said) in [
            (
                vec![(0, 1), (8, 4097)],
                "its parameter 2, `b`, is declared at byte 8 with a size of 4096 and compiled at byte 8 with a size \
                 of 4097",
            ),
            (vec![(0, 1), (16, 4096)], "and compiled at byte 16 with"),
            (
                vec![(0, 2), (8, 4096)],
                "its parameter 1, `a`, is declared at byte 0 with a size of 1 and",
            ),
            (vec![(0, 1)], "2 parameters are declared, and the driver compiled 1"),
            (
                vec![(0, 1), (8, 4096), (4104, 1)],
                "2 parameters are declared, and the driver compiled 3",
            ),
        ] {
            let text = compared(list, &compiled).unwrap_err();
            assert!(text.contains(said), "{text}");
        }
    }

    #[test]
    fn places_behind_a_wide_alignment_depend_on_the_gpu() {
        // As ptxas places them for sm_90, where the first parameter is at byte 528.
        let list = ".param .u8 a, .param .align 64 .b8 b[8], .param .u8 c, .param .texref d";
        assert_eq!(compared(list, &[(0, 1), (48, 8), (56, 1), (65_535, 0)]), Ok(()));
        assert!(compared(list, &[(0, 1), (48, 8), (56, 2), (65_535, 0)]).is_err());
        assert!(compared(list, &[(1, 1), (48, 8), (56, 1), (65_535, 0)]).is_err());
    }
}
