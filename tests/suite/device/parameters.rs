//! Parameters that are larger than their arguments: no other memory of the host may reach a kernel.

use linrec::Error;
use linrec::device::{Buffer, Device, under_test};

use super::{assert_error, on_every_device};

const SECRET: u64 = 0x5ec2_e75e_c2e7_5ec2;
/// The kernel's second parameter, in words and in bytes.
const WORDS: usize = 512;

/// Copies its second parameter to where the first points. A search of the text once took its size
/// for one byte.
fn copies_its_parameter() -> String {
    let copies: String = (0..WORDS)
        .map(|word| {
            let at = 8 * word;
            format!("ld.param.u64 %rd2, [p+{at}]; st.global.u64 [%rd1+{at}], %rd2;\n")
        })
        .collect();
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n\
         .visible .entry copy(.param .u64 out, .param .align 8 .b8 p [4096])\n{{\n.reg .b64 %rd<3>;\n\
         ld.param.u64 %rd1, [out]; cvta.to.global.u64 %rd1, %rd1;\n{copies}ret;\n}}"
    )
}

/// Fills the heap with secrets, in memory that is in use and in memory that is free again.
fn plant() -> Vec<Vec<u64>> {
    let planted = (0..64 * WORDS).map(|number| vec![SECRET; 2 + number % (2 * WORDS)]);
    let planted: Vec<_> = planted.collect();
    planted
        .into_iter()
        .enumerate()
        .filter(|(number, _)| number % 2 == 0)
        .map(|(_, it)| it)
        .collect()
}

fn attack(device: &Device) -> Result<(), Error> {
    let function = device.module(&copies_its_parameter())?.function("copy")?;
    assert_eq!(function.params()[1].bytes, 4096);
    let mut out: Buffer<u64> = device.allocate(WORDS)?;
    out.zero()?;
    let planted = plant();
    let launching = "launching `copy`: argument 2 is a number of";
    let stream = device.stream();
    let one = function.launch(1, 1).arg(&mut out).arg(7_u8).run(&stream);
    assert_error(one, &[launching, "1 byte, and the kernel takes 4096 there"]);
    let sixteen = function.launch(1, 1).arg(&mut out).arg(num_complex::Complex::new(7.0_f64, 7.0));
    assert_error(sixteen.run(&stream), &[launching, "16 bytes, and the kernel takes 4096 there"]);
    let recorded =
        device.record(|stream| function.launch(1, 1).arg(&mut out).arg(7_u8).run(stream).map(drop));
    assert_error(recorded, &[launching, "1 byte, and the kernel takes 4096 there"]);
    device.synchronize()?;
    let found = out.download()?.into_iter().filter(|&word| word == SECRET).count();
    assert_eq!((found, planted.len()), (0, 32 * WORDS), "secrets of the host");
    Ok(())
}

#[test]
fn a_byte_is_no_parameter_of_4096_bytes() {
    on_every_device(attack);
}

/// The driver returns the place of each parameter from CUDA 12.4 on, and the places must agree.
#[test]
fn kernels_of_every_layout_are_loaded() {
    for device in under_test() {
        for (params, bytes) in [
            ("", vec![]),
            (".param .u8 a, .param .align 8 .b8 b [4096]", vec![1, 4096]),
            (
                ".param .u64 .ptr .global .align 16 a, .param .u8 b, .param .f32 c, .param .u16 d",
                vec![8, 1, 4, 2],
            ),
            (".param .u8 a, .param .align 1 .u64 b, .param .align 16 .u32 c", vec![1, 8, 4]),
            (
                ".param .u8 a, .param .align 4 .b8 .align 8 b[8], .param .align 2 .b32 c[4]",
                vec![1, 8, 16],
            ),
            (".param .u8 a, .param .align 64 .b8 b[128], .param .u8 c", vec![1, 128, 1]),
            (".param .b8 a[0x10], .param .b8 b[020], .param .b8 c[WARP_SZ]", vec![16, 16, 32]),
            (".param .b8 %a[1], .param /* ) */ .u8 _b$ // {\n", vec![1, 1]),
        ] {
            let ptx = format!(
                ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k({params}) {{ ret; }}"
            );
            let module = device.module(&ptx).unwrap_or_else(|error| panic!("{params}: {error}"));
            let function = module.function("k").unwrap();
            let found: Vec<_> = function.params().iter().map(|param| param.bytes).collect();
            assert_eq!(found, bytes, "{params} on {}", device.label());
        }
    }
}
